/* See small.h; the arithmetic is in kernels/tmpl/attend_small.h. */
#include "attn/small.h"

#include "attn/seen.h"

enum { MOST_CHANNELS = 512 }; /* of a query, so that a transposed block fits the scratch */

_Static_assert(QKVI_SMALL_WORK + 32 * MOST_CHANNELS <= QKVI_QUERY_BLOCK * QKVI_SCORE_ROW,
               "the work area is the scratch's scores");

const char *qkvi_small_unfit(const qkvi_problem *p, const qkvi_forward_plan *plan) {
    if (qkvi_hides(p)) return "a mask, blocks or segments";
    if (p->alibi_slopes) return "ALiBi";
    if (p->distance_bias) return "a distance bias";
    if (p->sinks) return "sinks";
    if (p->has_softcap) return "a soft cap";
    if (p->has_dropout) return "dropout";
    if (p->has_stats) return "statistics";
    if (qkvi_classes[plan->class].no_small) return qkvi_classes[plan->class].no_small;
    if (p->dtype != QKV_F32 && plan->query_block < QKVI_SMALL)
        return "a head_dim_v beyond the rows of a thread";
    if (plan->k_factor != 1) return "a scale that is 0, negative or extreme";
    if (p->head_dim % 16 || p->head_dim == 0 || p->head_dim > MOST_CHANNELS)
        return "a head_dim that is no multiple of 16 up to 512";
    return p->head_dim_v % 32 || p->head_dim_v == 0 ? "a head_dim_v that is no multiple of 32"
                                                    : NULL;
}

bool qkvi_small_rules(const qkvi_rules *r) {
    if (r->n_queries < 1 || r->n_queries > QKVI_SMALL) return false;
    const qkvi_range keys = qkvi_keys_of_block(r, 0, r->n_queries);
    return keys.begin == 0 && keys.end >= 1 && keys.end <= QKVI_SMALL;
}

/* For each key the queries that see it, and all lanes beyond the last query. */
static int see_keys(const qkvi_rules *r, uint16_t see[QKVI_SMALL]) {
    const int n_keys = (int)qkvi_keys_of_block(r, 0, r->n_queries).end;
    const uint16_t beyond = (uint16_t)((uint32_t)UINT16_MAX << r->n_queries);
    const bool all = qkvi_sight_of(r, 0, r->n_queries, 0, n_keys) == QKVI_SEE_ALL;
    for (int j = 0; j < n_keys; j++) see[j] = all ? UINT16_MAX : beyond;
    for (int i = 0; !all && i < r->n_queries; i++) {
        const qkvi_range keys = qkvi_keys_of(r, i);
        for (int64_t j = keys.begin; j < keys.end; j++) see[j] = (uint16_t)(see[j] | 1u << i);
    }
    return n_keys;
}

/* n rows of the class's type: where they lie, or, of 16 bits that it reads as floats, in `to`. */
static const void *rows_of(const qkvi_problem *p, const qkvi_kernels *kernels,
                           qkvi_arithmetic class, const void *x, int64_t *stride, int n,
                           int64_t dim, void *to) {
    if (p->dtype == qkvi_classes[class].type) return x;
    kernels->rows->load[p->dtype](x, *stride, n, dim, to, dim);
    *stride = dim;
    return to;
}

bool qkvi_small_head(const qkvi_problem *p, const qkvi_kernels *kernels,
                     const qkvi_forward_plan *plan, const qkvi_rules *rules, int64_t b, int64_t g,
                     int thread) {
    const qkvi_forward_slot *slot = &plan->slots[thread];
    const qkvi_packed *pack = &plan->packs[thread]; /* holds unpacked rows here, if anything */
    uint16_t see[QKVI_SMALL];
    qkvi_attend_small a = {
        .class = plan->class,
        .head_dim = p->head_dim,
        .head_dim_v = p->head_dim_v,
        .n_queries = (int)rules->n_queries,
        .n_keys = see_keys(rules, see),
        .k_row = p->k_stride[2],
        .v_row = p->v_stride[2],
        .see = see,
        .work = slot->scratch->s,
        .factor = plan->scale * 1.44269504f,
        .o_sum = slot->o_sum,
        .o_sum_row = plan->o_sum_row,
        .o_row = p->o_stride[2],
        .lse_row = p->lse_stride[2],
    };
    const void *k = qkvi_elem(p->k, p->dtype, qkvi_k_at(p, p->k_stride, b, g, 0));
    const void *v = qkvi_elem(p->v, p->dtype, qkvi_k_at(p, p->v_stride, b, g, 0));
    a.k = rows_of(p, kernels, a.class, k, &a.k_row, a.n_keys, p->head_dim, pack->k);
    a.v = rows_of(p, kernels, a.class, v, &a.v_row, a.n_keys, p->head_dim_v, pack->v);
    if (qkvi_classes[a.class].per_word == 2) {
        kernels->rows->pack_channel_pairs(v, p->v_stride[2], a.n_keys, p->head_dim_v, QKVI_SMALL,
                                          NULL, pack->v);
        a.v = pack->v;
    }
    if (p->o_dtype != QKV_F32) a.o_row = plan->o_sum_row;
    for (int64_t n = 0; n < p->heads_per_kv; n++) {
        const int64_t h = g * p->heads_per_kv + n;
        void *o = qkvi_elem(p->o, p->o_dtype, qkvi_q_at(p, p->o_stride, b, h, 0));
        a.q_row = p->q_stride[2];
        a.q = rows_of(p, kernels, a.class,
                      qkvi_elem(p->q, p->dtype, qkvi_q_at(p, p->q_stride, b, h, 0)), &a.q_row,
                      a.n_queries, p->head_dim, slot->q);
        a.o = p->o_dtype == QKV_F32 ? o : slot->o_sum;
        if (p->lse) a.lse = p->lse + qkvi_q_at(p, p->lse_stride, b, h, 0);
        if (!kernels->attend->small(&a)) return false;
        if (p->o_dtype != QKV_F32)
            kernels->rows->store[p->o_dtype](a.o, a.o_row, a.n_queries, p->head_dim_v, 1, o,
                                             p->o_stride[2]);
    }
    return true;
}
