/* Rotary positions: see rope.h. */
#include "model/layer/rope.h"

#include "attn/ctx.h"
#include "layer/angles.h"
#include "layer/rows.h"

#define TWO_PI 6.283185307179586

/* ---- Frequencies ----------------------------------------------------------------------------- */

/* Llama 3: short waves stay, long ones are stretched, those between are mixed. */
static double llama3(const qkv_rope *s, double w) {
    const double waves = s->original_len * w / TWO_PI; /* in the original length */
    if (waves > s->high_freq_factor) return w;
    if (waves < s->low_freq_factor) return w / s->factor;
    const double mix = (waves - s->low_freq_factor) / (s->high_freq_factor - s->low_freq_factor);
    return (1 - mix) * w / s->factor + mix * w;
}

/* The place i of the wave that turns n times in the original length. */
static double place_of(const qkv_rope *s, int64_t dim, double n) {
    return (double)dim * qkvi_ln(s->original_len / (TWO_PI * n)) / (2 * qkvi_ln(s->theta));
}

/* YaRN (Peng et al. 2023): a ramp from waves that stay to waves that are stretched. */
static double yarn(const qkv_rope *s, int64_t dim, int64_t i, double w) {
    double first = place_of(s, dim, s->beta_fast), last = place_of(s, dim, s->beta_slow);
    if (s->truncates) first = floor(first), last = ceil(last);
    if (first < 0) first = 0;
    if (last > (double)dim - 1) last = (double)dim - 1;
    if (first == last) last += 0.001;
    double stretched = ((double)i - first) / (last - first);
    stretched = stretched < 0 ? 0 : stretched > 1 ? 1 : stretched;
    return w * (stretched / s->factor + 1 - stretched);
}

static double frequency(const qkv_rope *s, int64_t dim, int64_t i) {
    const double w = qkvi_angle_exp(-qkvi_ln(s->theta) * ((double)(2 * i) / (double)dim));
    switch (s->type) {
    case QKV_ROPE_LINEAR: return w / s->factor;
    case QKV_ROPE_LLAMA3: return llama3(s, w);
    case QKV_ROPE_YARN: return yarn(s, dim, i, w);
    default: return w;
    }
}

qkv_status qkvi_rope_make(const qkv_rope *settings, int64_t dim, qkvi_rope *rope,
                          qkv_error *error) {
    const int64_t n = dim / 2;
    *rope = (qkvi_rope){ .dim = dim, .factor = settings->attention_factor };
    rope->w = qkvi_malloc_array((size_t)n, sizeof *rope->w);
    if (!rope->w) return qkvi_no_memory(error, "positions");
    for (int64_t i = 0; i < n; i++) rope->w[i] = frequency(settings, dim, i);
    if (settings->type != QKV_ROPE_DYNAMIC) return QKV_OK;
    rope->longest = settings->original_len;
    rope->ln_theta = qkvi_ln(settings->theta);
    rope->stretch = settings->factor;
    return QKV_OK;
}

void qkvi_rope_free(qkvi_rope *rope) {
    free(rope->w);
    rope->w = NULL;
}

/*
 * Dynamic (NTK-aware scaling by length): theta grows by (f n / M - (f - 1))^(d / (d - 2)), so that
 * the last wave is stretched as linear positions would be, and w_0 = 1 stays.
 */
double qkvi_rope_frequency(const qkvi_rope *rope, int64_t reach, int64_t i) {
    if (rope->longest == 0 || (double)reach <= rope->longest || i == 0) return rope->w[i];
    const double d = (double)rope->dim, f = rope->stretch;
    const double grown = f * (double)reach / rope->longest - (f - 1);
    const double ln_theta = rope->ln_theta + d / (d - 2) * qkvi_ln(grown);
    return qkvi_angle_exp(-ln_theta * ((double)(2 * i) / d));
}

/* ---- Rows ------------------------------------------------------------------------------------ */

typedef struct rope_job {
    const qkvi_rope *rope;
    const int32_t *places, *reaches;
    const float *turns;
    float *out; /* turns, or x */
    int64_t dim;
    const qkvi_rope_heads *heads;
    bool back;
} rope_job;

static void turn_block(qkv_ctx *ctx, void *argument, qkvi_rows rows) {
    const rope_job *const j = argument;
    const int64_t half = j->dim / 2;
    (void)ctx;
    for (int64_t r = rows.first; r < rows.first + rows.count; r++)
        for (int64_t i = 0; i < half; i++) {
            const double w = qkvi_rope_frequency(j->rope, j->reaches[r], i);
            const double angle = (double)j->places[r] * w;
            float *const at = j->out + r * j->dim + i;
            at[0] = (float)(j->rope->factor * qkvi_sinusoid(angle, 1));
            at[half] = (float)(j->rope->factor * qkvi_sinusoid(angle, 0));
        }
}

void qkvi_rope_turns(qkv_ctx *ctx, const qkvi_rope *rope, int64_t n_rows, const int32_t *places,
                     const int32_t *reaches, float *turns) {
    rope_job j = {
        .rope = rope, .places = places, .reaches = reaches, .out = turns, .dim = rope->dim
    };
    qkvi_rows_run(ctx, n_rows, turn_block, &j);
}

/* The first dim channels of a head, of neighbours: as halves, some pairs at a time. */
static void rotate_neighbours(const qkvi_kernels *kernels, int64_t dim, const float *turns,
                              bool back, float *x) {
    enum { PAIRS = 64 };
    float halves[2 * PAIRS], some[2 * PAIRS];
    const int64_t n_pairs = dim / 2;
    for (int64_t first = 0; first < n_pairs; first += PAIRS) {
        const int64_t n = n_pairs - first < PAIRS ? n_pairs - first : PAIRS;
        float *const at = x + 2 * first;
        for (int64_t i = 0; i < n; i++) {
            halves[i] = at[2 * i], halves[n + i] = at[2 * i + 1];
            some[i] = turns[first + i], some[n + i] = turns[n_pairs + first + i];
        }
        kernels->layer->rotate(1, 1, 2 * n, back, some, halves);
        for (int64_t i = 0; i < n; i++) at[2 * i] = halves[i], at[2 * i + 1] = halves[n + i];
    }
}

void qkvi_rotate_rows(const qkvi_kernels *kernels, const qkvi_rope_heads *heads, int64_t n_rows,
                      const float *turns, bool back, float *x) {
    const int64_t dim = heads->dim, n_heads = heads->n_heads;
    if (dim == heads->head_dim && !heads->neighbours) {
        kernels->layer->rotate(n_rows, n_heads, dim, back, turns, x);
        return;
    }
    for (int64_t r = 0; r < n_rows; r++)
        for (int64_t h = 0; h < n_heads; h++) {
            float *const at = x + (r * n_heads + h) * heads->head_dim;
            if (heads->neighbours)
                rotate_neighbours(kernels, dim, turns + r * dim, back, at);
            else
                kernels->layer->rotate(1, 1, dim, back, turns + r * dim, at);
        }
}

static void rotate_block(qkv_ctx *ctx, void *argument, qkvi_rows rows) {
    const rope_job *const j = argument;
    qkvi_rotate_rows(ctx->kernels, j->heads, rows.count, j->turns + rows.first * j->dim, j->back,
                     j->out + rows.first * j->heads->n_heads * j->heads->head_dim);
}

void qkvi_rotate(qkv_ctx *ctx, const qkvi_rope_heads *heads, int64_t n_rows, const float *turns,
                 bool back, float *x) {
    rope_job j = { .turns = turns, .out = x, .dim = heads->dim, .heads = heads, .back = back };
    qkvi_rows_run(ctx, n_rows, rotate_block, &j);
}
