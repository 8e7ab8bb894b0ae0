/*
 * AdamW: see adamw.h. Factors that depend on the step are computed once, in double; a kernel
 * computes each chunk.
 */
#include "layer/adamw.h"

#include <math.h>

#include "attn/ctx.h"
#include "kernels/table.h"

/*
 * 64 KiB of each array: four of them fit into a second-level cache, and 1 M parameters make 70
 * chunks to share out.
 */
enum { CHUNK_ELEMS = 16384 };

size_t qkvi_adamw_chunks(size_t n) { return n / CHUNK_ELEMS + 1; }

void qkvi_adamw_add(qkvi_adamw *adamw, int64_t arrays, size_t offset, size_t n, int decays) {
    for (size_t i = 0; i < n; i += CHUNK_ELEMS) {
        const size_t left = n - i;
        adamw->chunks[adamw->n_chunks++] =
            (qkvi_adamw_chunk){ arrays, offset + i, left < CHUNK_ELEMS ? left : CHUNK_ELEMS,
                                decays };
    }
}

double qkvi_adamw_power(double base, int64_t n) {
    double power = 1;
    for (; n > 0; n >>= 1, base *= base)
        if (n & 1) power *= base;
    return power;
}

typedef struct job {
    const qkvi_layer_kernels *kernels;
    const qkvi_adamw *adamw;
    const qkvi_adamw_arrays *arrays;
    qkvi_adamw_step step[2]; /* [decays] */
} job;

static void sum_chunk(void *argument, int index) {
    const job *const j = argument;
    const qkvi_adamw_chunk *const chunk = &j->adamw->chunks[index];
    const float *const grads = j->arrays[chunk->arrays].grads + chunk->offset;
    j->adamw->partial[index] = j->kernels->sum_squares((int64_t)chunk->n, grads);
}

static void step_chunk(void *argument, int index) {
    const job *const j = argument;
    const qkvi_adamw_chunk *const chunk = &j->adamw->chunks[index];
    const qkvi_adamw_arrays *const a = &j->arrays[chunk->arrays];
    size_t begin = chunk->offset, end = chunk->offset + chunk->n;
    if (j->adamw->own_end > 0) {
        if (begin < j->adamw->own_begin) begin = j->adamw->own_begin;
        if (end > j->adamw->own_end) end = j->adamw->own_end;
        if (begin >= end) return;
    }
    const size_t own = begin - j->adamw->own_begin;
    j->kernels->adamw((int64_t)(end - begin), &j->step[chunk->decays], a->grads + begin,
                      a->params + begin, a->m + own, a->v + own);
}

static qkvi_adamw_step make_step(const qkvi_adamw *adamw, int64_t t, double rate, double norm,
                                 int decays) {
    const double rest1 = 1 - qkvi_adamw_power(adamw->beta1, t);
    const double rest2 = 1 - qkvi_adamw_power(adamw->beta2, t);
    const int clips = adamw->clip > 0 && norm > adamw->clip;
    return (qkvi_adamw_step){ .grad_scale = clips ? (float)(adamw->clip / norm) : 1.0f,
                              .beta1 = (float)adamw->beta1,
                              .one_minus_beta1 = (float)(1 - adamw->beta1),
                              .beta2 = (float)adamw->beta2,
                              .one_minus_beta2 = (float)(1 - adamw->beta2),
                              .decay = decays ? (float)(1 - rate * adamw->weight_decay) : 1.0f,
                              .rate = (float)(rate / rest1),
                              .root_scale = (float)(1 / sqrt(rest2)),
                              .eps = (float)adamw->eps };
}

double qkvi_adamw_update(qkv_ctx *ctx, const qkvi_adamw *adamw, int64_t t, double rate,
                         const qkvi_adamw_arrays *arrays) {
    job j = { .kernels = ctx->kernels->layer, .adamw = adamw, .arrays = arrays };
    double sum = 0;
    qkvi_pool_run(ctx->pool, adamw->n_chunks, sum_chunk, &j);
    for (int c = 0; c < adamw->n_chunks; c++) sum += (double)adamw->partial[c];
    const double norm = sqrt(sum);
    if (!isfinite(norm)) return norm;
    for (int d = 0; d < 2; d++) j.step[d] = make_step(adamw, t, rate, norm, d);
    qkvi_pool_run(ctx->pool, adamw->n_chunks, step_chunk, &j);
    return norm;
}
