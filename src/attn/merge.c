/*
 * Joining results over disjoint sets of keys. The row is in kernels/tmpl/merge.h; here rows are
 * shared out.
 */
#include "attn/ctx.h"
#include "attn/problem.h"
#include "attn/sequence.h"
#include "kernels/table.h"

typedef struct merge {
    const qkvi_problem *p;
    const struct qkvi_kernels *kernels;
    int n_parts, n_tasks;
    const void *const *o_parts;
    const float *const *lse_parts;
} merge;

/* Rows are independent, so any division gives the same bits. */
static void merge_rows(void *argument, int index) {
    const merge *x = argument;
    const qkvi_problem *p = x->p;
    const int64_t len = qkvi_rows_q(p), rows = qkvi_n_arrays(p) * p->n_heads * len;
    const int64_t share = rows / x->n_tasks, extra = rows % x->n_tasks;
    const int64_t first = index * share + (index < extra ? index : extra);
    const int64_t end = first + share + (index < extra);
    for (int64_t row = first; row < end; row++) {
        const int64_t i = row % len, head = row / len;
        const int64_t h = head % p->n_heads, b = head / p->n_heads;
        const int64_t o_at = b * p->o_stride[0] + h * p->o_stride[1] + i * p->o_stride[2];
        const int64_t lse_at = b * p->lse_stride[0] + h * p->lse_stride[1] + i * p->lse_stride[2];
        x->kernels->rows->merge[p->o_dtype](x->n_parts, x->o_parts, x->lse_parts, o_at, lse_at,
                                            p->head_dim_v, qkvi_elem(p->o, p->o_dtype, o_at),
                                            p->lse ? p->lse + lse_at : NULL);
    }
}

qkv_status qkv_attention_merge(qkv_ctx *ctx, const qkv_attention_desc *desc, int n_parts,
                               const void *const *o_parts, const float *const *lse_parts, void *o,
                               float *lse) {
    qkvi_problem problem;
    QKV_TRY(qkvi_ctx_begin(ctx));
    const qkv_status status =
        qkvi_problem_merge(desc, n_parts, o_parts, lse_parts, o, lse, &problem, &ctx->error);
    if (status == QKV_OK && (problem.head_dim_v > 0 || lse)) { /* else there is nothing to write */
        merge x = { .p = &problem,
                    .kernels = ctx->kernels,
                    .n_parts = n_parts,
                    .n_tasks = qkvi_pool_threads(ctx->pool),
                    .o_parts = o_parts,
                    .lse_parts = lse_parts };
        qkvi_pool_run(ctx->pool, x.n_tasks, merge_rows, &x);
    }
    return qkvi_ctx_end(ctx, status);
}
