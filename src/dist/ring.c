/* See ring.h. */
#include "dist/ring.h"

#include <inttypes.h>
#include <string.h>

#include "attn/forward_part.h"
#include "dist/ordered.h"
#include "dist/ring_keys.h"

enum { MOST_RANGES = 4, MOST_KEYS = 4096 };

/* The rows of this rank: of each run a range, and with a block mask two (ordered.c). */
typedef struct pass {
    qkvi_group *group;
    qkv_ctx *ctx;
    qkvi_problem whole; /* with the arrays of this rank */
    int n_ranges;
    qkvi_problem range[MOST_RANGES];
    qkvi_forward_sums sums[MOST_RANGES];
    qkvi_ring ring;
    void *workspace; /* of a part */
    size_t workspace_bytes;
} pass;

qkv_status qkvi_scheme_named(const char *name, qkvi_scheme *scheme, qkv_error *error) {
    static const char *const names[] = { "ordered", "ring", "zigzag" };
    *scheme = QKVI_SCHEME_ORDERED;
    if (!name) return QKV_OK;
    for (int n = 0; n < 3; n++)
        if (strcmp(name, names[n]) == 0) {
            *scheme = (qkvi_scheme)n;
            return QKV_OK;
        }
    return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                          "scheme is \"%.60s\"; there are ordered, ring and zigzag", name);
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

/* Rows [begin, end) of the arrays, which are queries from `first` on. */
static void add_range(pass *x, int64_t begin, int64_t end, int64_t first) {
    if (begin >= end) return;
    x->range[x->n_ranges] = qkvi_problem_rows(&x->whole, begin, end);
    x->range[x->n_ranges++].first_q = first;
}

static void cut_ranges(pass *x) {
    const int rank = x->group->transport->rank;
    int64_t at = 0;
    for (int n = 0; n < x->ring.n_runs; n++) {
        const qkvi_range run = qkvi_ring_run(&x->ring, x->group->first_q, rank, n);
        const int64_t len = run.end - run.begin;
        int64_t head = 0;
        if (x->whole.block_len) head = qkvi_min_i64(qkvi_round_up(run.begin, 32) - run.begin, len);
        add_range(x, at, at + head, run.begin);
        add_range(x, at + head, at + len, run.begin + head);
        at += len;
    }
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void lay_out(pass *x, qkvi_cutter *cutter) {
    for (int n = 0; n < x->n_ranges; n++)
        qkvi_forward_sums_lay_out(&x->range[n], cutter, &x->sums[n]);
    qkvi_ring_lay_out(&x->ring, cutter);
    x->workspace = qkvi_cut(cutter, (int64_t)x->workspace_bytes, 1);
}

/* All that the call needs, so that nothing fails for lack of memory once it communicates. */
static qkv_status reserve(pass *x) {
    const int64_t n_keys = qkvi_min_i64(MOST_KEYS, x->whole.len_k);
    qkvi_cutter cutter = { 0 };
    void *block;
    for (int n = 0; n < x->n_ranges; n++) {
        size_t bytes;
        QKV_TRY(qkvi_forward_part_workspace(x->ctx, &x->range[n], n_keys, &bytes));
        if (bytes > x->workspace_bytes) x->workspace_bytes = bytes;
    }
    lay_out(x, &cutter);
    if (cutter.overflow) return qkvi_ctx_fail(x->ctx, QKV_ERR_MEMORY, "too many bytes to count");
    QKV_TRY(qkvi_ctx_workspace(x->ctx, NULL, cutter.used_bytes, &block));
    cutter = qkvi_cutter_on(block);
    lay_out(x, &cutter);
    return QKV_OK;
}

/* ---- The pass over all keys ------------------------------------------------------------------ */

static void count_pairs(const qkvi_problem *p, const qkvi_forward_part *part, int64_t *pairs) {
    for (int64_t b = 0; b < p->n_batch; b++) {
        const qkvi_rules rules = qkvi_rules_of(p, b);
        for (int64_t i = 0; i < rules.n_queries; i++) {
            const qkvi_range keys = qkvi_part_keys(part, qkvi_keys_of(&rules, i));
            *pairs += keys.end - keys.begin;
        }
    }
}

/* Keys that `keys` has; last: o and lse are written. */
static qkv_status attend(pass *x, const qkvi_problem *keys, int64_t begin, int64_t end, bool last) {
    qkv_call_options call = qkv_call_options_init();
    call.workspace = x->workspace;
    call.workspace_bytes = x->workspace_bytes;
    call.progress = qkvi_ring_poll;
    call.progress_user = &x->ring;
    for (int n = 0; n < x->n_ranges; n++) {
        const qkvi_forward_part part = {
            .begin = begin, .end = end, .last = last, .sums = x->sums[n]
        };
        qkvi_problem_take_keys(&x->range[n], keys);
        if (x->group->pairs) count_pairs(&x->range[n], &part, x->group->pairs);
        QKV_TRY(qkvi_forward_run_part(x->ctx, &x->range[n], &part, &call));
    }
    return QKV_OK;
}

static qkv_status attend_all(pass *x, const qkvi_problem *keys, qkvi_range range) {
    for (int64_t j = range.begin; j < range.end; j += MOST_KEYS)
        QKV_TRY(attend(x, keys, j, qkvi_min_i64(j + MOST_KEYS, range.end), false));
    return QKV_OK;
}

/* A rank that cannot compute still sends on what comes. */
static qkv_status walk(pass *x) {
    qkvi_problem keys = x->whole;
    qkv_status status = QKV_OK;
    for (int n = 0; n < x->n_ranges; n++) qkvi_forward_sums_begin(&x->sums[n]);
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
    return status == QKV_OK ? attend(x, &keys, 0, 0, true) : status;
}

static qkv_status forward(pass *x, qkv_status status, const qkv_attention_desc *desc,
                          const qkvi_dist_arrays *arrays) {
    QKV_TRY(qkvi_call_open(x->group, x->ctx, status, desc, arrays, &x->whole));
    QKV_TRY(check_scheme(x->group, &x->whole));
    qkvi_ring_init(&x->ring, x->group, &x->whole, x->group->scheme == QKVI_SCHEME_ZIGZAG ? 2 : 1);
    cut_ranges(x);
    QKV_TRY(qkvi_group_agree(x->group, qkvi_group_from_ctx(x->group, x->ctx, reserve(x))));
    return qkvi_group_agree(x->group, qkvi_group_from_ctx(x->group, x->ctx, walk(x)));
}

qkv_status qkvi_forward_by(qkvi_group *group, qkv_ctx *ctx, qkvi_scheme scheme,
                           const qkv_error *refused, const qkv_attention_desc *desc,
                           const qkvi_dist_arrays *arrays) {
    pass x = { .group = group, .ctx = ctx };
    const qkv_status begun = qkvi_call_begin(group, ctx);
    qkv_status status = begun;
    if (status == QKV_OK && refused)
        status = qkvi_group_fail(group, refused->status, "%s", refused->message);
    group->scheme = scheme;
    /* A rank that fails opens the call as the others do, whichever scheme they have. */
    status = scheme == QKVI_SCHEME_ORDERED ? qkvi_ordered_pass(group, ctx, status, desc, arrays)
                                           : forward(&x, status, desc, arrays);
    return qkvi_call_end(group, ctx, begun, status);
}
