/* Activations over blocks of rows: see act.h; the arithmetic is in kernels/tmpl/act.h. */
#include "layer/act.h"

#include <string.h>

#include "attn/ctx.h"
#include "kernels/table.h"
#include "layer/rows.h"

typedef struct act_job {
    int64_t n;
    void (*forward)(int64_t n, const float *x, float *y);
    void (*backward)(int64_t n, const float *kept, const float *d_y, float *d_x);
    const float *x, *d_y; /* x: what the forward pass kept, in a backward one */
    float *out;
} act_job;

static void run_block(qkv_ctx *ctx, void *argument, qkvi_rows rows) {
    const act_job *j = argument;
    const int64_t at = rows.first * j->n, n_elems = rows.count * j->n;
    (void)ctx;
    if (j->forward) j->forward(n_elems, j->x + at, j->out + at);
    if (j->backward) j->backward(n_elems, j->x + at, j->d_y + at, j->out + at);
}

void qkvi_act_forward(qkv_ctx *ctx, qkvi_act act, int64_t n_rows, int64_t n, const float *x,
                      float *y) {
    act_job j = { n, ctx->kernels->layer->act_forward[act], NULL, x, NULL, y };
    qkvi_rows_run(ctx, n_rows, run_block, &j);
}

void qkvi_act_backward(qkv_ctx *ctx, qkvi_act act, int64_t n_rows, int64_t n, const float *x,
                       const float *d_y, float *d_x) {
    act_job j = { n, NULL, ctx->kernels->layer->act_backward[act], x, d_y, d_x };
    qkvi_rows_run(ctx, n_rows, run_block, &j);
}

/* ---- Gated ----------------------------------------------------------------------------------- */

typedef struct gated_job {
    qkvi_act act;
    int64_t n;
    const float *x, *read; /* read: u of the forward pass */
    float *u, *y, *d, *d_x;
} gated_job;

static void gated_block(qkv_ctx *ctx, void *argument, qkvi_rows rows) {
    const gated_job *j = argument;
    const qkvi_layer_kernels *const kernels = ctx->kernels->layer;
    const int64_t at = rows.first * j->n, n_elems = rows.count * j->n;
    kernels->act_forward[j->act](n_elems, j->x + at, j->y + at);
    kernels->mul(n_elems, j->read + at, j->y + at);
}

void qkvi_gated_forward(qkv_ctx *ctx, qkvi_act act, int64_t n_rows, int64_t n, const float *x,
                        const float *u, float *y) {
    gated_job j = { .act = act, .n = n, .x = x, .read = u, .y = y };
    qkvi_rows_run(ctx, n_rows, gated_block, &j);
}

static void gated_back_block(qkv_ctx *ctx, void *argument, qkvi_rows rows) {
    const gated_job *j = argument;
    const qkvi_layer_kernels *const kernels = ctx->kernels->layer;
    const int64_t at = rows.first * j->n, n_elems = rows.count * j->n;
    float *const d = j->d + at, *const d_x = j->d_x + at;
    memcpy(d_x, j->u + at, (size_t)n_elems * sizeof *d_x);
    kernels->mul(n_elems, d, d_x); /* y = act(x) ⊙ u */
    kernels->act_backward[j->act](n_elems, j->x + at, d_x, d_x);
    kernels->act_forward[j->act](n_elems, j->x + at, j->u + at);
    kernels->mul(n_elems, j->u + at, d);
}

void qkvi_gated_backward(qkv_ctx *ctx, qkvi_act act, int64_t n_rows, int64_t n, const float *x,
                         float *u, float *d, float *d_x) {
    gated_job j = { .act = act, .n = n, .x = x, .u = u, .d = d, .d_x = d_x };
    qkvi_rows_run(ctx, n_rows, gated_back_block, &j);
}

/* ---- Soft caps ------------------------------------------------------------------------------- */

typedef struct cap_job {
    float cap;
    int64_t n;
    float *x;
    const float *y;
} cap_job;

static void cap_block(qkv_ctx *ctx, void *argument, qkvi_rows rows) {
    const cap_job *j = argument;
    ctx->kernels->layer->soft_cap(rows.count * j->n, j->cap, j->x + rows.first * j->n);
}

void qkvi_soft_cap_forward(qkv_ctx *ctx, float cap, int64_t n_rows, int64_t n, float *logits) {
    cap_job j = { cap, n, logits, NULL };
    qkvi_rows_run(ctx, n_rows, cap_block, &j);
}

static void cap_back_block(qkv_ctx *ctx, void *argument, qkvi_rows rows) {
    const cap_job *j = argument;
    const int64_t at = rows.first * j->n;
    ctx->kernels->layer->soft_cap_backward(rows.count * j->n, j->cap, j->y + at, j->x + at);
}

void qkvi_soft_cap_backward(qkv_ctx *ctx, float cap, int64_t n_rows, int64_t n, const float *logits,
                            float *d) {
    cap_job j = { cap, n, d, logits };
    qkvi_rows_run(ctx, n_rows, cap_back_block, &j);
}

/* ---- tanh ------------------------------------------------------------------------------------ */

void qkvi_tanh_forward(qkv_ctx *ctx, int64_t n_rows, int64_t n, const float *x, float *y) {
    act_job j = { n, ctx->kernels->layer->tanh_forward, NULL, x, NULL, y };
    qkvi_rows_run(ctx, n_rows, run_block, &j);
}

void qkvi_tanh_backward(qkv_ctx *ctx, int64_t n_rows, int64_t n, const float *y, const float *d_y,
                        float *d_x) {
    act_job j = { n, NULL, ctx->kernels->layer->tanh_backward, y, d_y, d_x };
    qkvi_rows_run(ctx, n_rows, run_block, &j);
}
