/* Activations over blocks of rows: see act.h; the arithmetic is in kernels/tmpl/act.h. */
#include "layer/act.h"

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
    act_job j = { n, ctx->kernels->layer.act_forward[act], NULL, x, NULL, y };
    qkvi_rows_run(ctx, n_rows, run_block, &j);
}

void qkvi_act_backward(qkv_ctx *ctx, qkvi_act act, int64_t n_rows, int64_t n, const float *x,
                       const float *d_y, float *d_x) {
    act_job j = { n, NULL, ctx->kernels->layer.act_backward[act], x, d_y, d_x };
    qkvi_rows_run(ctx, n_rows, run_block, &j);
}

void qkvi_tanh_forward(qkv_ctx *ctx, int64_t n_rows, int64_t n, const float *x, float *y) {
    act_job j = { n, ctx->kernels->layer.tanh_forward, NULL, x, NULL, y };
    qkvi_rows_run(ctx, n_rows, run_block, &j);
}

void qkvi_tanh_backward(qkv_ctx *ctx, int64_t n_rows, int64_t n, const float *y, const float *d_y,
                        float *d_x) {
    act_job j = { n, NULL, ctx->kernels->layer.tanh_backward, y, d_y, d_x };
    qkvi_rows_run(ctx, n_rows, run_block, &j);
}
