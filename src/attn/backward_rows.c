/* See backward_rows.h. */
#include "attn/backward_rows.h"

#include <math.h>
#include <string.h>

#include "attn/mask.h"

void qkvi_backward_rows(const qkvi_problem *p, const qkvi_grads *g, const qkvi_kernels *kernels,
                        int64_t b, int64_t h, int64_t i0, int64_t n, float *lse, float *delta) {
    const int64_t lse_at = qkvi_q_at(p, p->lse_stride, b, h, i0), lse_row = p->lse_stride[2];
    const qkv_dtype type = p->o_dtype;
    for (int64_t r = 0; r < n; r++) lse[r] = p->lse[lse_at + r * lse_row];
    if (g->delta) {
        const float *const of = g->delta + qkvi_q_at(p, g->delta_stride, b, h, i0);
        for (int64_t r = 0; r < n; r++) delta[r] = of[r * g->delta_stride[2]];
        for (int64_t r = n; r < QKVI_BWD_QUERIES; r++) lse[r] = delta[r] = 0;
        return;
    }
    const void *const o = qkvi_elem(p->o, type, qkvi_q_at(p, p->o_stride, b, h, i0));
    const void *const d_o = qkvi_elem(g->d_o, type, qkvi_q_at(p, g->d_o_stride, b, h, i0));
    if (p->grads_dp)
        kernels->bwd->delta_pairs(o, p->o_stride[2], d_o, g->d_o_stride[2], n, p->head_dim_v,
                                  delta);
    else
        kernels->bwd->delta[type](o, p->o_stride[2], d_o, g->d_o_stride[2], n, p->head_dim_v,
                                  delta);
    for (int64_t r = 0; g->d_lse && r < n; r++) delta[r] -= g->d_lse[lse_at + r * lse_row];
    for (int64_t r = n; r < QKVI_BWD_QUERIES; r++) lse[r] = delta[r] = 0;
}

void qkvi_backward_deltas(const qkvi_problem *p, const qkvi_grads *g, const qkvi_kernels *kernels,
                          float *to) {
    _Alignas(64) float lse[QKVI_BWD_QUERIES], delta[QKVI_BWD_QUERIES];
    for (int64_t head = 0; p->len_q > 0 && head < p->n_batch * p->n_heads; head++) {
        const int64_t b = head / p->n_heads, n_queries = qkvi_rules_of(p, b).n_queries;
        for (int64_t i0 = 0; i0 < n_queries; i0 += QKVI_BWD_QUERIES) {
            const int64_t n = qkvi_min_i64(QKVI_BWD_QUERIES, n_queries - i0);
            qkvi_backward_rows(p, g, kernels, b, head % p->n_heads, i0, n, lse, delta);
            memcpy(to + head * p->len_q + i0, delta, (size_t)n * sizeof *delta);
        }
    }
}

static float sink_of_head(const qkvi_problem *p, const qkvi_grads *g, const qkvi_kernels *kernels,
                          int64_t h) {
    _Alignas(64) float lse[QKVI_BWD_QUERIES], delta[QKVI_BWD_QUERIES];
    float sum = 0;
    if (p->sinks[h] == -INFINITY || qkvi_rows_q(p) == 0) return 0; /* batches may be 2^48 then */
    for (int64_t b = 0; b < p->n_batch; b++) {
        const int64_t n_queries = qkvi_rules_of(p, b).n_queries;
        for (int64_t i0 = 0; i0 < n_queries; i0 += QKVI_BWD_QUERIES) {
            const int64_t n = qkvi_min_i64(QKVI_BWD_QUERIES, n_queries - i0);
            qkvi_backward_rows(p, g, kernels, b, h, i0, n, lse, delta);
            sum += kernels->bwd->sink((int)n, p->sinks[h], lse, delta);
        }
    }
    return sum;
}

void qkvi_backward_sinks(const qkvi_problem *p, const qkvi_grads *g, const qkvi_kernels *kernels) {
    for (int64_t h = 0; g->d_sinks && h < p->n_heads; h++)
        g->d_sinks[h] = sink_of_head(p, g, kernels, h);
}
