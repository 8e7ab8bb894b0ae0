/*
 * See decode.h. Each rank computes its splits. Then their sums are merged: with "ordered" from rank
 * to rank, in the order of keys; with "tree" first those of each rank, then those of pairs of
 * neighbours.
 */
#include "dist/decode.h"

#include <string.h>

#include "attn/decode_pieces.h"
#include "dist/seams.h"

typedef struct pass {
    qkvi_group *group;
    qkv_ctx *ctx;
    qkvi_problem p;
    qkvi_kv kv; /* of this rank */
    qkvi_seams seams;
    qkvi_decode_pieces pieces;
} pass;

qkv_status qkvi_decode_scheme_named(const char *name, qkvi_scheme *scheme, qkv_error *error) {
    *scheme = QKVI_SCHEME_ORDERED;
    if (!name || strcmp(name, "ordered") == 0 || strcmp(name, "auto") == 0) return QKV_OK;
    if (strcmp(name, "tree") != 0)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "scheme is \"%.60s\"; decode has ordered, tree and auto", name);
    *scheme = QKVI_SCHEME_TREE;
    return QKV_OK;
}

static void lay_out(void *user, qkvi_cutter *cutter) {
    pass *const x = user;
    qkvi_decode_pieces_lay_out(&x->pieces, cutter);
    qkvi_seams_lay_out(&x->seams, cutter);
}

/* The splits of this rank, the one with a seam last, when its keys have come. */
static qkv_status compute(pass *x) {
    const qkvi_seams *const s = &x->seams;
    const int64_t own = s->to - s->has_seam;
    qkv_call_options call = qkv_call_options_init();
    qkvi_kv seam;
    call.progress = qkvi_seams_poll;
    call.progress_user = &x->seams;
    QKV_TRY(qkvi_seams_start(&x->seams));
    qkvi_decode_pieces_run(&x->pieces, x->ctx, &x->kv, s->from, own, &call);
    if (x->group->broken) return x->group->error.status;
    QKV_TRY(qkvi_seams_end(&x->seams, &seam));
    qkvi_decode_pieces_run(&x->pieces, x->ctx, &seam, own, s->to, &call);
    return QKV_OK;
}

static bool has_splits(const pass *x, int rank) {
    const qkvi_range splits = qkvi_seams_of(&x->seams, rank);
    return splits.begin < splits.end;
}

/* The next rank with splits from `rank` on, in steps of 1 or -1; -1: there is none. */
static int neighbour(const pass *x, int rank, int step) {
    for (; rank >= 0 && rank < x->group->transport->size; rank += step)
        if (has_splits(x, rank)) return rank;
    return -1;
}

typedef enum message { SEND, RECEIVE, BROADCAST } message;

/* Sums, to, from or by a rank. */
static qkv_status exchange(pass *x, message what, char *sums, int rank) {
    qkvi_transport *const t = x->group->transport;
    qkvi_request request = { { 0 } };
    qkv_error *const error = &x->group->error;
    const size_t bytes = x->pieces.sum_bytes;
    const qkv_status status = what == SEND ? t->ops->isend(t, sums, bytes, rank, &request, error)
                              : what == RECEIVE
                                  ? t->ops->irecv(t, sums, bytes, rank, &request, error)
                                  : t->ops->ibcast(t, sums, bytes, rank, &request, error);
    if (status != QKV_OK) {
        x->group->broken = true;
        return status;
    }
    return qkvi_group_wait(x->group, &request, 1);
}

/* From rank to rank; the last one's sums become those of all. */
static qkv_status join_chain(pass *x) {
    const int rank = x->group->transport->rank, size = x->group->transport->size;
    const int last = neighbour(x, size - 1, -1);
    char *const sum = x->pieces.sum;
    if (has_splits(x, rank)) {
        const int before = neighbour(x, rank - 1, -1), after = neighbour(x, rank + 1, 1);
        if (before >= 0) QKV_TRY(exchange(x, RECEIVE, sum, before));
        qkvi_decode_pieces_join(&x->pieces, x->ctx);
        if (after >= 0) QKV_TRY(exchange(x, SEND, sum, after));
    }
    return last >= 0 && size > 1 ? exchange(x, BROADCAST, sum, last) : QKV_OK;
}

/* The ranks with splits below this one. */
static int n_before(const pass *x, int rank) {
    int n = 0;
    for (int r = 0; r < rank; r++) n += has_splits(x, r);
    return n;
}

/* Of the ranks with splits the nth from `rank` on, forward or backward. */
static int nth_from(const pass *x, int rank, int n, int step) {
    while (n-- > 0) rank = neighbour(x, rank + step, step);
    return rank;
}

/*
 * Step by step half of the ranks give their sums to one before; the first one's become those of
 * all.
 */
static qkv_status join_tree(pass *x) {
    const int rank = x->group->transport->rank, size = x->group->transport->size;
    const int n = n_before(x, size), place = n_before(x, rank), first = neighbour(x, 0, 1);
    qkvi_decode_pieces *const own = &x->pieces;
    if (has_splits(x, rank)) {
        qkvi_decode_pieces_join(own, x->ctx);
        for (int step = 1; step < n; step *= 2) {
            if (place % (2 * step)) {
                QKV_TRY(exchange(x, SEND, own->sum, nth_from(x, rank, step, -1)));
                break;
            }
            if (place + step >= n) continue;
            QKV_TRY(exchange(x, RECEIVE, own->other, nth_from(x, rank, step, 1)));
            qkvi_decode_pieces_merge(own, x->ctx);
        }
    }
    return first >= 0 && size > 1 ? exchange(x, BROADCAST, own->sum, first) : QKV_OK;
}

static qkv_status walk(pass *x) {
    QKV_TRY(compute(x));
    qkvi_decode_pieces_begin(&x->pieces);
    QKV_TRY(x->pieces.merges ? join_tree(x) : join_chain(x));
    qkvi_decode_pieces_finish(&x->pieces, x->ctx);
    return QKV_OK;
}

static qkv_status decode(pass *x, qkv_status status, const qkv_attention_desc *desc,
                         const qkv_kv_view *view, const qkvi_dist_arrays *arrays) {
    QKV_TRY(qkvi_call_open_decode(x->group, x->ctx, status, desc, view, arrays, &x->p, &x->kv));
    if (x->group->scheme == QKVI_SCHEME_TREE && x->p.has_stats)
        return qkvi_group_fail(x->group, QKV_ERR_UNSUPPORTED,
                               "QKV_SET_STATS: scheme tree has no statistics, ordered has them");
    qkvi_seams_init(&x->seams, x->group, &x->p, &x->kv);
    qkvi_decode_pieces_init(&x->pieces, x->ctx, &x->p, x->seams.from, x->seams.to);
    x->pieces.merges = x->group->scheme == QKVI_SCHEME_TREE;
    QKV_TRY(qkvi_group_agree(
        x->group, qkvi_group_from_ctx(x->group, x->ctx, qkvi_call_reserve(x->ctx, lay_out, x))));
    return qkvi_group_agree(x->group, walk(x));
}

qkv_status qkvi_decode_by(qkvi_group *group, qkv_ctx *ctx, qkvi_scheme scheme,
                          const qkv_error *refused, const qkv_attention_desc *desc,
                          const qkv_kv_view *view, const qkvi_dist_arrays *arrays) {
    pass x = { .group = group, .ctx = ctx };
    const qkv_status begun = qkvi_call_begin(group, ctx);
    const qkv_status status = qkvi_call_refuse(group, begun, refused);
    group->scheme = scheme;
    return qkvi_call_end(group, ctx, begun, decode(&x, status, desc, view, arrays));
}
