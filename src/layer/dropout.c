/* Dropout over blocks of rows: see dropout.h; the arithmetic is in kernels/tmpl/layer.h. */
#include "layer/dropout.h"

#include "attn/ctx.h"
#include "attn/dropout.h"
#include "kernels/table.h"
#include "layer/rows.h"

typedef struct dropout_job {
    int64_t n;
    qkvi_dropout dropout;
    float *x;
} dropout_job;

static void run_block(qkv_ctx *ctx, void *argument, qkvi_rows rows) {
    const dropout_job *j = argument;
    qkvi_dropout d = j->dropout;
    d.row = rows.first;
    ctx->kernels->layer->dropout(rows.count, j->n, &d, j->x + rows.first * j->n);
}

void qkvi_dropout_rows(qkv_ctx *ctx, const qkvi_row_dropout *dropout, int64_t n_rows, int64_t n,
                       float *x) {
    const uint64_t n_words = qkvi_dropout_words(dropout->rate);
    const uint64_t head = (uint64_t)dropout->site | 1ull << 63;
    if (n_words == 0) return;
    dropout_job j = { n, { .last = (uint32_t)(n_words - 1) }, x };
    j.dropout.head[0] = (uint32_t)head;
    j.dropout.head[1] = (uint32_t)(head >> 32);
    j.dropout.factor = qkvi_dropout_scale(dropout->rate);
    qkvi_dropout_key(dropout->seed, j.dropout.key);
    qkvi_rows_run(ctx, n_rows, run_block, &j);
}
