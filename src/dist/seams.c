/* See seams.h. */
#include "dist/seams.h"

#include <string.h>

/* ---- Whose a split is ------------------------------------------------------------------------ */

/* All keys that some query of some batch may see; of a group of 16 all. */
static qkvi_range visible_keys(const qkvi_problem *p) {
    qkvi_range all = { 0, 0 };
    for (int64_t b = 0; b < p->n_batch && p->n_heads > 0; b++) {
        const qkvi_rules rules = qkvi_rules_of(p, b);
        if (rules.n_queries <= 0) continue;
        const qkvi_range keys = qkvi_keys_of_block(&rules, 0, rules.n_queries);
        if (keys.begin >= keys.end) continue;
        if (all.begin >= all.end) all = keys;
        all.begin = qkvi_min_i64(all.begin, keys.begin);
        all.end = qkvi_max_i64(all.end, keys.end);
    }
    all.begin = all.begin / QKVI_DECODE_GROUP * QKVI_DECODE_GROUP;
    return all;
}

/* The visible keys of a split. */
static qkvi_range keys_of(const qkvi_seams *s, int64_t split) {
    return (qkvi_range){ qkvi_max_i64(split * QKVI_DECODE_SPLIT, s->keys.begin),
                         qkvi_min_i64((split + 1) * QKVI_DECODE_SPLIT, s->keys.end) };
}

qkvi_range qkvi_seams_of(const qkvi_seams *s, int rank) {
    const int64_t begin = qkvi_max_i64(s->group->first_k[rank], s->keys.begin);
    const int64_t end = qkvi_min_i64(s->group->first_k[rank + 1], s->keys.end);
    if (begin >= end) return (qkvi_range){ 0, 0 };
    /* The first split that begins here, and the first that does not. */
    int64_t from = begin / QKVI_DECODE_SPLIT;
    if (keys_of(s, from).begin < begin) from++;
    const int64_t to = qkvi_ceil_div(end, QKVI_DECODE_SPLIT);
    return from < to ? (qkvi_range){ from, to } : (qkvi_range){ 0, 0 };
}

/* The keys of a split that a rank has. */
static qkvi_range keys_on(const qkvi_seams *s, int64_t split, int rank) {
    const qkvi_range all = keys_of(s, split);
    return (qkvi_range){ qkvi_max_i64(all.begin, s->group->first_k[rank]),
                         qkvi_min_i64(all.end, s->group->first_k[rank + 1]) };
}

void qkvi_seams_init(qkvi_seams *s, qkvi_group *group, const qkvi_problem *p, const qkvi_kv *kv) {
    const int64_t n = p->n_batch * p->n_kv_heads;
    *s = (qkvi_seams){ .group = group, .p = p, .kv = kv, .keys = visible_keys(p) };
    const qkvi_range own = qkvi_seams_of(s, group->transport->rank);
    s->from = own.begin;
    s->to = own.end;
    s->has_seam = s->from < s->to && keys_of(s, s->to - 1).end > kv->end;
    s->row_bytes = n * (p->head_dim + p->head_dim_v) * kv->elem_bytes;
    s->n_scales = kv->storage == QKVI_STORE_I8 ? 2 * n : 0;
}

/* What this rank has of a split that is another's; empty: nothing. */
static qkvi_range keys_to_send(const qkvi_seams *s, int *to) {
    const int rank = s->group->transport->rank;
    const int64_t begin = qkvi_max_i64(s->group->first_k[rank], s->keys.begin);
    const int64_t split = begin / QKVI_DECODE_SPLIT;
    const qkvi_range keys = keys_on(s, split, rank);
    if (keys.begin >= keys.end || keys_of(s, split).begin == keys.begin)
        return (qkvi_range){ 0, 0 };
    for (*to = rank - 1; s->group->first_k[*to] > keys_of(s, split).begin;) --*to;
    return keys;
}

void qkvi_seams_lay_out(qkvi_seams *s, qkvi_cutter *cutter) {
    int to;
    const qkvi_range send = keys_to_send(s, &to);
    const int64_t n_sent = send.end - send.begin;
    const int64_t n = s->has_seam ? QKVI_DECODE_SPLIT : 0;
    s->rows = qkvi_cut(cutter, n, (size_t)s->row_bytes);
    s->scales = qkvi_cut(cutter, n * s->n_scales, sizeof *s->scales);
    s->sent = qkvi_cut(cutter, n_sent, (size_t)s->row_bytes);
    s->sent_scales = qkvi_cut(cutter, n_sent * s->n_scales, sizeof *s->sent_scales);
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* Keys of this rank; of those that no query of a batch may see there may be no row: zeros. */
static void pack(const qkvi_seams *s, qkvi_range keys, char *rows, float *scales) {
    const qkvi_problem *const p = s->p;
    const int64_t bytes = (p->head_dim + p->head_dim_v) * s->kv->elem_bytes;
    float pair[2] = { 0, 0 };
    if (s->row_bytes) memset(rows, 0, (size_t)((keys.end - keys.begin) * s->row_bytes));
    for (int64_t b = 0; b < p->n_batch; b++) {
        const qkvi_rules rules = qkvi_rules_of(p, b);
        if (rules.n_queries <= 0) continue;
        const qkvi_range seen = qkvi_keys_of_block(&rules, 0, rules.n_queries);
        const int64_t end = qkvi_min_i64(keys.end, seen.end);
        for (int64_t j = qkvi_max_i64(keys.begin, seen.begin); j < end; j++)
            for (int64_t g = 0; g < p->n_kv_heads; g++) {
                const int64_t head = b * p->n_kv_heads + g, n = j - keys.begin;
                qkvi_kv_copy(s->kv, p, b, g, j, rows + n * s->row_bytes + head * bytes, pair);
                if (s->n_scales) memcpy(scales + n * s->n_scales + 2 * head, pair, sizeof pair);
            }
    }
}

static qkvi_request *next_request(qkvi_seams *s) { return &s->group->requests[s->n_requests]; }

static qkv_status start_one(qkvi_seams *s, bool sends, void *data, size_t bytes, int peer) {
    qkvi_group *const group = s->group;
    qkvi_transport *const t = group->transport;
    const qkv_status status =
        sends ? t->ops->isend(t, data, bytes, peer, next_request(s), &group->error)
              : t->ops->irecv(t, data, bytes, peer, next_request(s), &group->error);
    if (status == QKV_OK) s->n_requests++;
    group->broken |= status != QKV_OK;
    return status;
}

/* Rows of n keys, and their scales. */
static qkv_status start_both(qkvi_seams *s, bool sends, char *rows, float *scales, int64_t n,
                             int peer) {
    const size_t scale_bytes = (size_t)(n * s->n_scales) * sizeof *scales;
    QKV_TRY(start_one(s, sends, rows, (size_t)(n * s->row_bytes), peer));
    return s->n_scales ? start_one(s, sends, scales, scale_bytes, peer) : QKV_OK;
}

static qkv_status receive(qkvi_seams *s) {
    const int rank = s->group->transport->rank;
    const int64_t split = s->to - 1, key0 = split * QKVI_DECODE_SPLIT;
    for (int from = rank; from < s->group->transport->size; from++) {
        const qkvi_range keys = keys_on(s, split, from);
        if (keys.begin >= keys.end) continue;
        char *const rows = s->rows + (keys.begin - key0) * s->row_bytes;
        float *const scales = s->scales ? s->scales + (keys.begin - key0) * s->n_scales : NULL;
        if (from == rank)
            pack(s, keys, rows, scales);
        else
            QKV_TRY(start_both(s, false, rows, scales, keys.end - keys.begin, from));
    }
    return QKV_OK;
}

qkv_status qkvi_seams_start(qkvi_seams *s) {
    int to;
    const qkvi_range keys = keys_to_send(s, &to);
    if (keys.begin < keys.end) {
        pack(s, keys, s->sent, s->sent_scales);
        QKV_TRY(start_both(s, true, s->sent, s->sent_scales, keys.end - keys.begin, to));
    }
    return s->has_seam ? receive(s) : QKV_OK;
}

qkv_status qkvi_seams_end(qkvi_seams *s, qkvi_kv *kv) {
    const qkvi_problem *const p = s->p;
    const int64_t dim = p->head_dim + p->head_dim_v, n = p->n_kv_heads;
    const int n_requests = s->n_requests;
    s->n_requests = 0;
    QKV_TRY(qkvi_group_wait(s->group, s->group->requests, n_requests));
    const int64_t first = (s->to - 1) * QKVI_DECODE_SPLIT;
    *kv = (qkvi_kv){
        .storage = s->kv->storage,
        .elem_bytes = s->kv->elem_bytes,
        .k = s->rows,
        .v = s->rows ? s->rows + p->head_dim * s->kv->elem_bytes : NULL,
        .k_stride = { n * dim, dim, p->n_batch * n * dim },
        .v_stride = { n * dim, dim, p->n_batch * n * dim },
        .place.first = first,
        .end = first + QKVI_DECODE_SPLIT,
        .k_scale = s->scales,
        .v_scale = s->scales ? s->scales + 1 : NULL,
        .k_scale_stride = { 2 * n, 2, s->n_scales },
        .v_scale_stride = { 2 * n, 2, s->n_scales },
    };
    return QKV_OK;
}

void qkvi_seams_poll(void *user, int64_t done, int64_t total) {
    qkvi_seams *const s = user;
    qkvi_transport *const t = s->group->transport;
    bool completed;
    (void)done, (void)total;
    if (s->n_requests == 0 || s->group->broken) return;
    if (t->ops->test(t, s->group->requests, s->n_requests, &completed, &s->group->error) != QKV_OK)
        s->group->broken = true;
}
