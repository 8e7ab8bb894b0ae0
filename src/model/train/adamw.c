/*
 * AdamW: see adamw.h. What depends on the step is computed once in double; the chunks are the
 * kernel's.
 */
#include "model/train/adamw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/ctx.h"
#include "core/alloc.h"
#include "kernels/table.h"
#include "model/train/schedule.h"

/*
 * 64 KiB of each arena: four of them fit into a second-level cache, and 1 M parameters make 70
 * chunks to share out.
 */
enum { CHUNK_ELEMS = 16384, MAX_CHUNKS = 1 << 24 };

/* Matrices; not biases and layer norms. */
static int row_decays(const qkvi_param *row) { return row->rank > 1; }

qkv_status qkvi_adamw_make(const qkvi_param_table *table, qkvi_adamw *adamw, qkv_error *error) {
    size_t n_chunks = 0;
    memset(adamw, 0, sizeof *adamw);
    for (int64_t r = 0; r < table->n_rows; r++)
        n_chunks += table->rows[r].n_elems / CHUNK_ELEMS + 1;
    if (n_chunks > MAX_CHUNKS)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "the model is too large to train");
    adamw->chunks = qkvi_malloc_array(n_chunks, sizeof *adamw->chunks);
    adamw->partial = qkvi_malloc_array(n_chunks, sizeof *adamw->partial);
    if (!adamw->chunks || !adamw->partial) {
        qkvi_adamw_free(adamw);
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for the optimizer");
    }
    for (int64_t r = 0; r < table->n_rows; r++) {
        const qkvi_param *const row = &table->rows[r];
        for (size_t i = 0; i < row->n_elems; i += CHUNK_ELEMS) {
            const size_t left = row->n_elems - i;
            adamw->chunks[adamw->n_chunks++] =
                (qkvi_adamw_chunk){ row->offset + i, left < CHUNK_ELEMS ? left : CHUNK_ELEMS,
                                    row_decays(row) };
        }
    }
    return QKV_OK;
}

void qkvi_adamw_free(qkvi_adamw *adamw) {
    free(adamw->chunks);
    free(adamw->partial);
    memset(adamw, 0, sizeof *adamw);
}

typedef struct job {
    const qkvi_layer_kernels *kernels;
    const qkvi_adamw *adamw;
    const float *grads;
    float *params, *m, *v;
    qkvi_adamw_step step[2]; /* [decays] */
} job;

static void sum_chunk(void *argument, int index) {
    const job *const j = argument;
    const qkvi_adamw_chunk *const chunk = &j->adamw->chunks[index];
    j->adamw->partial[index] = j->kernels->sum_squares((int64_t)chunk->n, j->grads + chunk->offset);
}

static void step_chunk(void *argument, int index) {
    const job *const j = argument;
    const qkvi_adamw_chunk *const chunk = &j->adamw->chunks[index];
    const size_t at = chunk->offset;
    j->kernels->adamw((int64_t)chunk->n, &j->step[chunk->decays], j->grads + at, j->params + at,
                      j->m + at, j->v + at);
}

static qkvi_adamw_step make_step(const qkvi_adamw *adamw, int64_t t, double rate, double norm,
                                 int decays) {
    const double rest1 = 1 - qkvi_schedule_power(adamw->beta1, t);
    const double rest2 = 1 - qkvi_schedule_power(adamw->beta2, t);
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

double qkvi_adamw_run(qkv_ctx *ctx, const qkvi_adamw *adamw, int64_t t, double rate,
                      const float *grads, float *params, float *m, float *v) {
    job j = { .kernels = &ctx->kernels->layer,
              .adamw = adamw,
              .grads = grads,
              .params = params,
              .m = m,
              .v = v };
    double sum = 0;
    qkvi_pool_run(ctx->pool, adamw->n_chunks, sum_chunk, &j);
    for (int c = 0; c < adamw->n_chunks; c++) sum += (double)adamw->partial[c];
    const double norm = sqrt(sum);
    if (!isfinite(norm)) return norm;
    for (int d = 0; d < 2; d++) j.step[d] = make_step(adamw, t, rate, norm, d);
    qkvi_pool_run(ctx->pool, adamw->n_chunks, step_chunk, &j);
    return norm;
}
