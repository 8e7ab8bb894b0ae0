/* See ring.h. */
#include "dist/ring.h"

#include <inttypes.h>
#include <string.h>

#include "dist/forward_rows.h"
#include "dist/ordered.h"
#include "dist/ring_keys.h"
#include "dist/ulysses.h"

enum { MOST_KEYS = 4096 };

typedef struct pass {
    qkvi_group *group;
    qkv_ctx *ctx;
    qkvi_problem whole; /* with the arrays of this rank */
    qkvi_forward_rows rows;
    qkvi_ring ring;
} pass;

qkv_status qkvi_scheme_named(const char *name, qkvi_scheme *scheme, qkv_error *error) {
    *scheme = QKVI_SCHEME_ORDERED;
    if (!name) return QKV_OK;
    for (int n = 0; n <= QKVI_N_SCHEMES; n++)
        if (strcmp(name, qkvi_scheme_name((qkvi_scheme)n)) == 0) {
            *scheme = (qkvi_scheme)n;
            return QKV_OK;
        }
    return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                          "scheme is \"%.60s\"; there are ordered, ring, zigzag, ulysses and auto",
                          name);
}

/* ---- What a scheme takes --------------------------------------------------------------------- */

/* Pieces of zigzag have one even length. */
static qkv_status check_pieces(qkvi_group *group, const char *name, const int64_t *first) {
    const int64_t n = first[1];
    for (int rank = 0; rank < group->transport->size; rank++) {
        const int64_t len = first[rank + 1] - first[rank];
        if (len == n && len % 2 == 0) continue;
        return qkvi_group_fail(group, QKV_ERR_SHAPE,
                               "%s = %" PRId64
                               " on rank %d: scheme zigzag needs one even number on "
                               "all ranks",
                               name, len, rank);
    }
    return QKV_OK;
}

static qkv_status check_scheme(qkvi_group *group, const qkvi_problem *p) {
    const bool zigzag = group->scheme == QKVI_SCHEME_ZIGZAG;
    if (p->has_stats)
        return qkvi_group_fail(group, QKV_ERR_UNSUPPORTED,
                               "QKV_SET_STATS: scheme %s has no statistics, ordered has them",
                               zigzag ? "zigzag" : "ring");
    if (!zigzag) return QKV_OK;
    QKV_TRY(check_pieces(group, "len_q", group->first_q));
    return check_pieces(group, "len_k", group->first_k);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static void take_rows(pass *x) {
    const int rank = x->group->transport->rank;
    int64_t at = 0;
    x->rows = (qkvi_forward_rows){
        .ctx = x->ctx, .poll = qkvi_ring_poll, .poll_user = &x->ring, .pairs = x->group->pairs
    };
    for (int n = 0; n < x->ring.n_runs; n++) {
        const qkvi_range run = qkvi_ring_run(&x->ring, x->group->first_q, rank, n);
        const int64_t len = run.end - run.begin;
        qkvi_forward_rows_add(&x->rows, &x->whole, at, at + len, run.begin);
        at += len;
    }
}

static void lay_out(void *user, qkvi_cutter *cutter) {
    qkvi_ring_lay_out(&((pass *)user)->ring, cutter);
}

/* ---- The pass over all keys ------------------------------------------------------------------ */

static qkv_status attend_all(pass *x, const qkvi_problem *keys, qkvi_range range) {
    for (int64_t j = range.begin; j < range.end; j += MOST_KEYS)
        QKV_TRY(qkvi_forward_rows_attend(
            &x->rows, keys, (qkvi_range){ j, qkvi_min_i64(j + MOST_KEYS, range.end) }, false));
    return QKV_OK;
}

/* A rank that cannot compute still sends on what comes. */
static qkv_status walk(pass *x) {
    qkvi_problem keys = x->whole;
    qkv_status status = QKV_OK;
    qkvi_forward_rows_begin(&x->rows);
    qkvi_ring_start(&x->ring);
    for (int step = 0; step < x->group->transport->size; step++) {
        QKV_TRY(qkvi_ring_begin_step(&x->ring, step));
        for (int n = 0; n < x->ring.n_runs; n++) {
            const qkvi_range range = qkvi_ring_take(&x->ring, step, n, &keys);
            if (status == QKV_OK) status = attend_all(x, &keys, range);
        }
        QKV_TRY(qkvi_ring_end_step(&x->ring));
    }
    for (int64_t n = 0; n < x->ring.n_seams && status == QKV_OK;) {
        const qkvi_range range = qkvi_ring_take_seams(&x->ring, &n, &keys);
        status = attend_all(x, &keys, range);
    }
    if (status != QKV_OK) return status;
    return qkvi_forward_rows_attend(&x->rows, &keys, (qkvi_range){ 0, 0 }, true);
}

static qkv_status forward(pass *x, qkv_status status, const qkv_attention_desc *desc,
                          const qkvi_dist_arrays *arrays) {
    QKV_TRY(qkvi_call_open(x->group, x->ctx, status, desc, arrays, &x->whole));
    QKV_TRY(check_scheme(x->group, &x->whole));
    qkvi_ring_init(&x->ring, x->group, &x->whole, x->group->scheme == QKVI_SCHEME_ZIGZAG ? 2 : 1);
    take_rows(x);
    status =
        qkvi_forward_rows_reserve(&x->rows, qkvi_min_i64(MOST_KEYS, x->whole.len_k), lay_out, x);
    QKV_TRY(qkvi_group_agree(x->group, qkvi_group_from_ctx(x->group, x->ctx, status)));
    return qkvi_group_agree(x->group, qkvi_group_from_ctx(x->group, x->ctx, walk(x)));
}

/* A rank that fails opens the call as the others do, whichever scheme they have. */
static qkv_status forward_by(pass *x, qkv_status status, const qkvi_rates *rates,
                             const qkv_attention_desc *desc, const qkvi_dist_arrays *arrays) {
    qkvi_group *const group = x->group;
    if (group->scheme == QKVI_SCHEME_AUTO) {
        qkvi_costs costs;
        QKV_TRY(qkvi_costs_of(group, x->ctx, status, desc, rates, &costs));
        group->scheme = costs.chosen;
    }
    switch (group->scheme) {
    case QKVI_SCHEME_ORDERED: return qkvi_ordered_pass(group, x->ctx, status, desc, arrays);
    case QKVI_SCHEME_ULYSSES: return qkvi_ulysses_pass(group, x->ctx, status, desc, arrays);
    default: return forward(x, status, desc, arrays);
    }
}

qkv_status qkvi_forward_by(qkvi_group *group, qkv_ctx *ctx, qkvi_scheme scheme,
                           const qkvi_rates *rates, const qkv_error *refused,
                           const qkv_attention_desc *desc, const qkvi_dist_arrays *arrays) {
    pass x = { .group = group, .ctx = ctx };
    const qkv_status begun = qkvi_call_begin(group, ctx);
    const qkv_status status = qkvi_call_refuse(group, begun, refused);
    group->scheme = scheme;
    return qkvi_call_end(group, ctx, begun, forward_by(&x, status, rates, desc, arrays));
}
