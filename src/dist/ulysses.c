/* See ulysses.h. */
#include "dist/ulysses.h"

#include <inttypes.h>
#include <string.h>

#include "dist/chunks.h"
#include "dist/forward_rows.h"
#include "dist/query_rows.h"

enum { MOST_KEYS = 4096 };

/* Rows of one kind: those that go to each rank, and those that come from them. */
typedef struct rows {
    int64_t row_bytes;
    char *out; /* [size][rows of this rank] */
    char *in;  /* [rows of all ranks], in their order */
} rows;

typedef struct pass {
    qkvi_group *group;
    qkv_ctx *ctx;
    qkvi_problem whole; /* with the arrays of this rank */
    qkvi_problem heads; /* all tokens of its heads */
    /* Heads as they are sent: as if each had keys of its own. */
    qkvi_problem queries;
    qkvi_query_rows sent;
    qkvi_forward_rows computed;
    rows q, k;
    rows o;         /* out: of all queries, in their order; in: [size][queries of this rank] */
    int64_t lse_at; /* in a row of o, [n_batch][heads][o: head_dim_v][lse: float] */
} pass;

/* ---- Heads ----------------------------------------------------------------------------------- */

/* The share of a rank, as if there were no other heads. */
static qkvi_problem heads_of(const qkvi_group *group, const qkvi_problem *whole, int rank) {
    qkvi_problem p = *whole;
    const int64_t size = group->transport->size;
    p.n_heads /= size;
    p.n_kv_heads /= size;
    const int64_t h = rank * p.n_heads, g = rank * p.n_kv_heads;
    p.q = qkvi_elem(p.q, p.dtype, h * p.q_stride[1]);
    p.k = qkvi_elem(p.k, p.dtype, g * p.k_stride[1]);
    p.v = qkvi_elem(p.v, p.dtype, g * p.v_stride[1]);
    p.all_heads = whole->n_heads;
    p.head_step = 1;
    p.head_first = h;
    if (p.mask) p.mask = (const char *)p.mask + h * p.mask_stride[1] * qkvi_mask_bytes(&p);
    if (p.block_len) p.block_offsets += h * p.block_offsets_stride[1];
    if (p.alibi_slopes) p.alibi_slopes += h;
    if (p.distance_bias) p.distance_bias += h * p.distance_bias_stride;
    if (p.sinks) p.sinks += h;
    return p;
}

static void separate(qkvi_problem *p) {
    p->n_kv_heads = p->n_heads;
    p->heads_per_kv = p->n_heads > 0;
}

static qkv_status check_scheme(qkvi_group *group, const qkvi_problem *p) {
    const int size = group->transport->size;
    if (p->has_stats)
        return qkvi_group_fail(group, QKV_ERR_UNSUPPORTED,
                               "QKV_SET_STATS: scheme ulysses has no statistics, ordered has them");
    if (p->n_kv_heads % size == 0) return QKV_OK;
    return qkvi_group_fail(group, QKV_ERR_SHAPE,
                           "n_kv_heads = %" PRId64
                           " is no multiple of the %d ranks: scheme ulysses shares them out",
                           p->n_kv_heads, size);
}

/* ---- Exchange -------------------------------------------------------------------------------- */

static int64_t rows_of(const int64_t *first, int rank) { return first[rank + 1] - first[rank]; }

/* A message from or to a rank; nothing for itself, or without a byte. */
static void post(pass *x, bool sends, char *data, int64_t bytes, int rank, int *n) {
    qkvi_transport *const t = x->group->transport;
    qkvi_request *const request = &x->group->requests[*n];
    if (bytes == 0 || rank == t->rank || x->group->broken) return;
    const qkv_status status =
        sends ? t->ops->isend(t, data, (size_t)bytes, rank, request, &x->group->error)
              : t->ops->irecv(t, data, (size_t)bytes, rank, request, &x->group->error);
    if (status != QKV_OK)
        x->group->broken = true;
    else
        ++*n;
}

/*
 * The rows of each rank to each other rank. back: from the order of all ranks to rows of this one,
 * otherwise the other way round.
 */
static qkv_status exchange(pass *x, const rows *r, const int64_t *first, bool back) {
    const int me = x->group->transport->rank, size = x->group->transport->size;
    const int64_t own = rows_of(first, me) * r->row_bytes;
    char *const by_rank = back ? r->in : r->out, *const in_order = back ? r->out : r->in;
    int n = 0;
    if (own > 0) {
        char *const here = by_rank + me * own, *const there = in_order + first[me] * r->row_bytes;
        memcpy(back ? here : there, back ? there : here, (size_t)own);
    }
    for (int rank = 0; rank < size; rank++) {
        char *const theirs = in_order + first[rank] * r->row_bytes;
        post(x, back, theirs, rows_of(first, rank) * r->row_bytes, rank, &n);
        post(x, !back, by_rank + rank * own, own, rank, &n);
    }
    if (x->group->broken) return x->group->error.status;
    return qkvi_group_wait(x->group, x->group->requests, n);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* What goes to each rank; to itself last, so that its own heads stay in x->queries. */
static void pack_all(pass *x) {
    const int me = x->group->transport->rank, size = x->group->transport->size;
    const int64_t *const q = x->group->first_q + me, *const k = x->group->first_k + me;
    for (int n = 1; n <= size; n++) {
        const int rank = (me + n) % size;
        x->queries = heads_of(x->group, &x->whole, rank);
        qkvi_chunks_pack(&x->queries, k[0], k[1], x->k.out + rank * (k[1] - k[0]) * x->k.row_bytes);
        separate(&x->queries);
        qkvi_query_rows_pack(&x->sent, 0, q[0], q[1],
                             x->q.out + rank * (q[1] - q[0]) * x->q.row_bytes);
    }
}

/* All tokens of this rank's heads, once they have come. */
static void take_all(pass *x) {
    const int64_t all_q = x->group->first_q[x->group->transport->size];
    qkvi_problem *const p = &x->heads;
    qkvi_problem queries;
    qkvi_grads none;
    qkvi_query_rows_take(&x->sent, 0, 0, all_q, x->q.in, &queries, &none);
    p->q = queries.q;
    p->mask = queries.mask;
    p->seg_q = queries.seg_q;
    p->seg_q_stride = queries.seg_q_stride;
    memcpy(p->q_stride, queries.q_stride, sizeof p->q_stride);
    memcpy(p->mask_stride, queries.mask_stride, sizeof p->mask_stride);
    qkvi_chunks_take(p, x->k.in, 0);
}

/* Where o and lse of this rank's heads are written. */
static void place_results(pass *x) {
    qkvi_problem *const p = &x->heads;
    const int64_t head = x->lse_at + (int64_t)sizeof(float), token = x->o.row_bytes;
    const int64_t bytes[3] = { p->n_heads * head, head, token };
    p->o = x->o.out;
    p->lse = (float *)(void *)(x->o.out + x->lse_at);
    for (int n = 0; n < 3; n++) {
        p->o_stride[n] = bytes[n] / qkvi_dtype_bytes(p->o_dtype);
        p->lse_stride[n] = bytes[n] / (int64_t)sizeof(float);
    }
}

/* o and lse of a query of this rank, of all heads. */
static void store_query(const pass *x, int64_t b, int64_t i) {
    const qkvi_problem *const p = &x->whole;
    const int me = x->group->transport->rank;
    const int64_t share = x->heads.n_heads, own = rows_of(x->group->first_q, me);
    const int64_t head = x->lse_at + (int64_t)sizeof(float);
    const size_t bytes = (size_t)(p->head_dim_v * qkvi_dtype_bytes(p->o_dtype));
    for (int64_t h = 0; h < p->n_heads; h++) {
        const char *const from =
            x->o.in + (h / share * own + i) * x->o.row_bytes + (b * share + h % share) * head;
        if (bytes)
            memcpy(qkvi_elem(p->o, p->o_dtype, qkvi_q_at(p, p->o_stride, b, h, i)), from, bytes);
        if (p->lse)
            memcpy(&p->lse[qkvi_q_at(p, p->lse_stride, b, h, i)], from + x->lse_at, sizeof(float));
    }
}

static void store_all(const pass *x) {
    for (int64_t b = 0; b < x->whole.n_batch; b++)
        for (int64_t i = 0; i < qkvi_rows_that_count(&x->whole, b); i++) store_query(x, b, i);
}

/* ---- The pass -------------------------------------------------------------------------------- */

static void lay_out_rows(qkvi_cutter *cutter, rows *r, int64_t out, int64_t in) {
    r->out = qkvi_cut(cutter, out, (size_t)r->row_bytes);
    r->in = qkvi_cut(cutter, in, (size_t)r->row_bytes);
}

static void lay_out(void *user, qkvi_cutter *cutter) {
    pass *const x = user;
    const qkvi_group *const group = x->group;
    const int me = group->transport->rank, size = group->transport->size;
    const int64_t own_q = size * rows_of(group->first_q, me), all_q = group->first_q[size];
    lay_out_rows(cutter, &x->q, own_q, all_q);
    lay_out_rows(cutter, &x->k, size * rows_of(group->first_k, me), group->first_k[size]);
    lay_out_rows(cutter, &x->o, all_q, own_q);
    qkvi_query_rows_lay_out(&x->sent, all_q, cutter);
}

/* From the beginning of a row of o to its lse. */
static int64_t lse_at(const qkvi_problem *p) {
    return qkvi_round_up(p->head_dim_v * qkvi_dtype_bytes(p->o_dtype), 4);
}

qkvi_ulysses_rows qkvi_ulysses_rows_of(qkvi_group *group, const qkvi_problem *whole) {
    qkvi_problem p = heads_of(group, whole, group->transport->rank);
    qkvi_query_rows sent = { .p = &p, .without_lse = true };
    qkvi_ulysses_rows row = { .k = qkvi_chunks_row_bytes(&p) };
    row.o = p.n_batch * p.n_heads * (lse_at(&p) + (int64_t)sizeof(float));
    separate(&p);
    qkvi_query_rows_init(&sent, qkvi_call_mask_dims(group));
    row.q = sent.row_bytes;
    return row;
}

/* Sizes, before there is memory. */
static void plan(pass *x) {
    qkvi_problem *const p = &x->heads;
    *p = heads_of(x->group, &x->whole, x->group->transport->rank);
    x->queries = *p;
    separate(&x->queries);
    x->sent = (qkvi_query_rows){ .p = &x->queries, .without_lse = true };
    qkvi_query_rows_init(&x->sent, qkvi_call_mask_dims(x->group));
    qkvi_query_rows_place(&x->sent, p);
    p->first_q = p->first_k = 0;
    p->len_q = x->group->first_q[x->group->transport->size];
    const qkvi_ulysses_rows row = qkvi_ulysses_rows_of(x->group, &x->whole);
    x->q.row_bytes = row.q;
    x->k.row_bytes = row.k;
    x->o.row_bytes = row.o;
    x->lse_at = lse_at(p);
    x->computed = (qkvi_forward_rows){ .ctx = x->ctx, .pairs = x->group->pairs };
    qkvi_forward_rows_add(&x->computed, p, 0, p->len_q, 0);
}

static qkv_status attend(pass *x) {
    qkvi_problem *const p = &x->heads;
    take_all(x);
    place_results(x);
    x->computed.n_ranges = 0;
    qkvi_forward_rows_add(&x->computed, p, 0, p->len_q, 0);
    qkvi_forward_rows_begin(&x->computed);
    int64_t j = 0;
    do {
        const qkvi_range range = { j, qkvi_min_i64(j + MOST_KEYS, p->len_k) };
        QKV_TRY(qkvi_forward_rows_attend(&x->computed, p, range, range.end == p->len_k));
        j = range.end;
    } while (j < p->len_k);
    return QKV_OK;
}

/*
 * A rank that cannot compute still sends what it has. Not inlined, so that the copies of problems
 * below have a frame of their own.
 */
static __attribute__((noinline)) qkv_status walk(pass *x) {
    const size_t bytes = (size_t)(x->heads.len_q * x->o.row_bytes);
    pack_all(x);
    if (bytes) memset(x->o.out, 0, bytes); /* of rows that do not count nothing is written */
    QKV_TRY(exchange(x, &x->q, x->group->first_q, false));
    QKV_TRY(exchange(x, &x->k, x->group->first_k, false));
    const qkv_status status = attend(x);
    QKV_TRY(exchange(x, &x->o, x->group->first_q, true));
    if (status == QKV_OK) store_all(x);
    return status;
}

qkv_status qkvi_ulysses_pass(qkvi_group *group, qkv_ctx *ctx, qkv_status status,
                             const qkv_attention_desc *desc, const qkvi_dist_arrays *arrays) {
    pass x = { .group = group, .ctx = ctx };
    QKV_TRY(qkvi_call_open(group, ctx, status, desc, arrays, &x.whole));
    QKV_TRY(check_scheme(group, &x.whole));
    plan(&x);
    status =
        qkvi_forward_rows_reserve(&x.computed, qkvi_min_i64(MOST_KEYS, x.heads.len_k), lay_out, &x);
    QKV_TRY(qkvi_group_agree(group, qkvi_group_from_ctx(group, ctx, status)));
    return qkvi_group_agree(group, qkvi_group_from_ctx(group, ctx, walk(&x)));
}
