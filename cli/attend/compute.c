/* The calls of `qkv attend`, forward and, with --grad-out, backward, and their results. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attend/attend.h"
#include "common/term.h"

static float *zeros(int64_t a, int64_t b, int64_t c, int64_t d) {
    int64_t n = 0;
    if (__builtin_mul_overflow(a, b, &n) || __builtin_mul_overflow(n, c, &n) ||
        __builtin_mul_overflow(n, d, &n) || n > INT64_MAX / 8)
        return NULL;
    return calloc((size_t)n + 1, sizeof(float));
}

/*
 * Rows at or beyond --q-len are not computed: o = 0 and lse = -inf, as for a row that sees
 * nothing.
 */
int attend_results_alloc(const struct attend_options *options, const struct attend_problem *problem,
                         struct attend_results *results) {
    const qkv_attention_desc *d = &problem->desc;
    const int64_t n_batch = attend_size(problem->q, 0), rows_q = attend_size(problem->q, 2);
    const int64_t rows_k = attend_size(problem->k, 2);
    results->o = zeros(n_batch, d->n_heads, rows_q, d->head_dim_v);
    results->lse = zeros(n_batch, d->n_heads, rows_q, 1);
    bool made = results->o && results->lse;
    if (results->lse)
        for (int64_t i = 0; i < n_batch * d->n_heads * rows_q; i++) results->lse[i] = -INFINITY;
    if (problem->grad_out) {
        results->dq = zeros(n_batch, d->n_heads, rows_q, d->head_dim);
        results->dk = zeros(n_batch, d->n_kv_heads, rows_k, d->head_dim);
        results->dv = zeros(n_batch, d->n_kv_heads, rows_k, d->head_dim_v);
        results->dsink = zeros(d->n_heads, 1, 1, 1);
        made = made && results->dq && results->dk && results->dv && results->dsink;
    }
    if (options->dmask) {
        results->dmask = zeros(problem->mask->n_elems, 1, 1, 1);
        made = made && results->dmask;
    }
    if (options->stats) {
        results->stats = calloc(1, sizeof *results->stats);
        made = made && results->stats;
    }
    if (!made) return cli_fail("out of memory");
    return results->stats ? attend_stats_ask(problem, results->stats) : EXIT_OK;
}

void attend_results_free(struct attend_results *results) {
    free(results->o);
    free(results->lse);
    free(results->dq);
    free(results->dk);
    free(results->dv);
    free(results->dsink);
    free(results->dmask);
    free(results->joined);
    free(results->projected);
    if (results->stats) attend_stats_free(results->stats);
    free(results->stats);
}

static void show_progress(void *user, int64_t done, int64_t total) {
    progress_bar(user, "attend", done, total);
}

static qkv_status backward(qkv_ctx *ctx, const struct attend_problem *problem,
                           const struct attend_results *results, const qkv_call_options *call) {
    const qkv_attention_desc *d = &problem->desc;
    qkv_attention_grads grads;
    qkv_attention_grads_contiguous(&grads, d);
    memcpy(grads.d_o_stride, d->o_stride, sizeof d->o_stride); /* packed sequences: as they */
    memcpy(grads.d_q_stride, d->q_stride, sizeof d->q_stride);
    memcpy(grads.d_k_stride, d->k_stride, sizeof d->k_stride);
    memcpy(grads.d_v_stride, d->v_stride, sizeof d->v_stride);
    grads.d_o = problem->grad_out->data;
    grads.d_q = results->dq;
    grads.d_k = results->dk;
    grads.d_v = results->dv;
    if (problem->grad_lse) grads.d_lse = problem->grad_lse->data;
    if (problem->sink) grads.d_sinks = results->dsink;
    grads.d_mask = results->dmask; /* summed where the mask repeats: strides of 0 */
    memcpy(grads.d_mask_stride, d->mask_stride, sizeof grads.d_mask_stride);
    return qkv_attention_backward(ctx, d, problem->q->data, problem->k->data, problem->v->data,
                                  results->o, results->lse, &grads, call);
}

static qkv_status forward(qkv_ctx *ctx, const struct attend_problem *problem,
                          const struct attend_results *results, const qkv_call_options *call) {
    const void *q = problem->q->data, *k = problem->k->data, *v = problem->v->data;
    qkv_attention_desc desc = problem->desc;
    if (results->stats) {
        desc.flags |= QKV_SET_STATS;
        desc.stats = &results->stats->rows;
    }
    const qkv_status status =
        qkv_attention_forward(ctx, &desc, q, k, v, results->o, results->lse, call);
    if (status != QKV_OK || !results->stats) return status;
    return qkv_attention_columns_pass(ctx, &problem->desc, q, k, results->lse,
                                      &results->stats->columns, call);
}

qkv_status attend_compute(qkv_ctx *ctx, const struct attend_problem *problem, bool quiet,
                          struct attend_results *results) {
    struct progress progress;
    progress_begin(&progress, quiet);
    qkv_call_options call = qkv_call_options_init();
    call.cancel = &cli_cancelled;
    call.progress = show_progress;
    call.progress_user = &progress;
    const double start = cli_seconds();
    qkv_status status = forward(ctx, problem, results, &call);
    if (status == QKV_OK && problem->grad_out) status = backward(ctx, problem, results, &call);
    results->seconds = cli_seconds() - start;
    progress_end(&progress);
    return status;
}
