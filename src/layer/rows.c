/* Blocks of rows in parallel, and sums over rows that do not depend on threads: see rows.h. */
#include "layer/rows.h"

#include <string.h>

#include "attn/ctx.h"
#include "kernels/table.h"

typedef struct job {
    qkv_ctx *ctx;
    int64_t n_rows;
    qkvi_rows_task *task;
    void *argument;
} job;

int64_t qkvi_row_blocks(int64_t n_rows) { return (n_rows + QKVI_ROW_BLOCK - 1) / QKVI_ROW_BLOCK; }

static void run_block(void *argument, int index) {
    const job *j = argument;
    const int64_t first = (int64_t)index * QKVI_ROW_BLOCK, left = j->n_rows - first;
    const int64_t count = left < QKVI_ROW_BLOCK ? left : QKVI_ROW_BLOCK;
    j->task(j->ctx, j->argument, (qkvi_rows){ index, first, count });
}

void qkvi_rows_run(qkv_ctx *ctx, int64_t n_rows, qkvi_rows_task *task, void *argument) {
    job j = { ctx, n_rows, task, argument };
    qkvi_pool_run(ctx->pool, (int)qkvi_row_blocks(n_rows), run_block, &j);
}

typedef struct addition {
    int64_t n;
    const float *x;
    float *y;
} addition;

static void add_block(qkv_ctx *ctx, void *argument, qkvi_rows rows) {
    const addition *a = argument;
    const int64_t at = rows.first * a->n;
    ctx->kernels->layer->add(rows.count * a->n, a->x + at, a->y + at);
}

void qkvi_rows_add(qkv_ctx *ctx, int64_t n_rows, int64_t n, const float *x, float *y) {
    addition a = { n, x, y };
    qkvi_rows_run(ctx, n_rows, add_block, &a);
}

int64_t qkvi_colsum_elems(int64_t n_rows, int64_t n) { return qkvi_row_blocks(n_rows) * n; }

typedef struct colsum {
    int64_t n;
    const float *x; /* [n_rows][n] */
    float *partial; /* [n_blocks][n] */
} colsum;

static void colsum_block(qkv_ctx *ctx, void *argument, qkvi_rows rows) {
    const colsum *s = argument;
    float *partial = s->partial + rows.block * s->n;
    memset(partial, 0, (size_t)s->n * sizeof *partial);
    ctx->kernels->layer->sum_rows(rows.count, NULL, s->n, 1, s->x + rows.first * s->n, partial);
}

void qkvi_colsum_join(qkv_ctx *ctx, int64_t n_blocks, int64_t n, const float *partial, float *sum) {
    memset(sum, 0, (size_t)n * sizeof *sum);
    ctx->kernels->layer->sum_rows(n_blocks, NULL, n, 1, partial, sum);
}

void qkvi_colsum(qkv_ctx *ctx, int64_t n_rows, int64_t n, const float *x, float *scratch,
                 float *sum) {
    colsum s = { n, x, scratch };
    qkvi_rows_run(ctx, n_rows, colsum_block, &s);
    qkvi_colsum_join(ctx, qkvi_row_blocks(n_rows), n, scratch, sum);
}
