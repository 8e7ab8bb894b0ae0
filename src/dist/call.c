/* See call.h. */
#include "dist/call.h"

#include <inttypes.h>
#include <string.h>

#include "core/options.h"

/* ---- The descriptors ------------------------------------------------------------------------- */

enum { AT_LEN_Q = QKVI_RECORD_FIELDS - 2, AT_LEN_K, AT_MASK = AT_LEN_Q };

/* What must be the same on all ranks, in the order of the record. */
static const qkvi_group_value fields[] = {
    { "flags", QKVI_FIELD_INT },          { "dtype", QKVI_FIELD_INT },
    { "n_batch", QKVI_FIELD_INT },        { "n_heads", QKVI_FIELD_INT },
    { "n_kv_heads", QKVI_FIELD_INT },     { "head_dim", QKVI_FIELD_INT },
    { "head_dim_v", QKVI_FIELD_INT },     { "o_dtype", QKVI_FIELD_INT },
    { "window_left", QKVI_FIELD_INT },    { "window_right", QKVI_FIELD_INT },
    { "q_offset", QKVI_FIELD_INT },       { "chunk", QKVI_FIELD_INT },
    { "mask_type", QKVI_FIELD_INT },      { "mask_len_k", QKVI_FIELD_INT },
    { "block_len", QKVI_FIELD_INT },      { "scale", QKVI_FIELD_FLOAT },
    { "softcap", QKVI_FIELD_FLOAT },      { "dropout", QKVI_FIELD_FLOAT },
    { "dropout_seed", QKVI_FIELD_INT },   { "distance_before", QKVI_FIELD_INT },
    { "distance_after", QKVI_FIELD_INT }, { "the scheme", QKVI_FIELD_HASH },
};
enum { N_FIELDS = sizeof fields / sizeof *fields };

static int64_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Fields without their flag count as 0. */
static void record_of(const qkv_attention_desc *d, qkvi_scheme scheme, qkvi_record *record) {
    const bool has_window = d->flags & QKV_SET_WINDOW, has_mask = d->flags & QKV_SET_MASK;
    const bool has_offset = (d->flags & QKV_SET_Q_OFFSET) && !d->q_offsets;
    const bool has_dropout = d->flags & QKV_SET_DROPOUT;
    const bool has_distances = d->flags & QKV_SET_DISTANCE_BIAS;
    const int64_t value[N_FIELDS] = {
        d->flags,
        d->dtype,
        d->n_batch,
        d->n_heads,
        d->n_kv_heads,
        d->head_dim,
        d->head_dim_v,
        d->flags & QKV_SET_O_DTYPE ? d->o_dtype : d->dtype,
        has_window ? d->window_left : 0,
        has_window ? d->window_right : 0,
        has_offset ? d->q_offset : 0,
        d->flags & QKV_SET_CHUNK ? d->chunk : 0,
        has_mask ? d->mask_type : 0,
        has_mask ? d->mask_len_k : 0,
        d->flags & QKV_SET_BLOCK_MASK ? d->block_len : 0,
        d->flags & QKV_SET_SCALE ? bits_of(d->scale) : 0,
        d->flags & QKV_SET_SOFTCAP ? bits_of(d->softcap) : 0,
        has_dropout ? bits_of(d->dropout) : 0,
        has_dropout ? (int64_t)d->dropout_seed : 0,
        has_distances ? d->distance_before : 0,
        has_distances ? d->distance_after : 0,
        scheme,
    };
    memcpy(record->value, value, sizeof value);
    record->value[AT_LEN_Q] = d->len_q;
    record->value[AT_LEN_K] = d->len_k;
}

static qkv_status read_desc(const qkv_attention_desc *given, qkv_attention_desc *d, qkv_error *e) {
    memset(d, 0, sizeof *d);
    if (!given) return qkvi_error_set(e, QKV_ERR_ARGUMENT, "desc is NULL");
    QKV_TRY(qkvi_options_read(d, sizeof *d, given, "desc", e));
    if (d->len_q < 0 || d->len_k < 0)
        return qkvi_error_set(e, QKV_ERR_SHAPE, "%s = %" PRId64 " is negative",
                              d->len_q < 0 ? "len_q" : "len_k", d->len_q < 0 ? d->len_q : d->len_k);
    return QKV_OK;
}

/* first[r] = rows of the ranks before r. */
static qkv_status add_up(qkvi_group *group, int at, const char *name, int64_t *first) {
    const int size = group->transport->size;
    for (int rank = 0; rank < size; rank++)
        if (!qkvi_add_i64(first[rank], group->records[rank].value[at], &first[rank + 1]) ||
            first[rank + 1] > QKVI_MAX_SIZE)
            return qkvi_group_fail(group, QKV_ERR_SHAPE,
                                   "the sum of %s up to rank %d is greater than %" PRId64, name,
                                   rank, QKVI_MAX_SIZE);
    return QKV_OK;
}

/* Decode: every rank has all queries. */
static qkv_status compare_queries(qkvi_group *group) {
    const qkvi_record *const all = group->records;
    for (int rank = 1; rank < group->transport->size; rank++)
        if (all[rank].value[AT_LEN_Q] != all[0].value[AT_LEN_Q])
            return qkvi_group_fail(group, QKV_ERR_ARGUMENT,
                                   "len_q = %" PRId64 " on rank %d, but %" PRId64 " on rank 0",
                                   all[rank].value[AT_LEN_Q], rank, all[0].value[AT_LEN_Q]);
    return QKV_OK;
}

static qkv_status exchange_desc(qkvi_group *group, qkv_status status,
                                const qkv_attention_desc *desc) {
    qkvi_record record = { 0 };
    qkv_attention_desc d;
    if (status == QKV_OK) status = read_desc(desc, &d, &group->error);
    if (status == QKV_OK) record_of(&d, group->scheme, &record);
    record.status = status;
    QKV_TRY(qkvi_group_exchange(group, &record));
    QKV_TRY(qkvi_group_compare(group, fields, N_FIELDS));
    QKV_TRY(add_up(group, AT_LEN_Q, "len_q", group->first_q));
    return add_up(group, AT_LEN_K, "len_k", group->first_k);
}

/* ---- The problem ----------------------------------------------------------------------------- */

/* Lists that must be the same: of batches, of heads; and how bf16 is computed. */
static const qkvi_group_value lists[] = {
    { "q_offsets", QKVI_FIELD_HASH },
    { "kv_len", QKVI_FIELD_HASH },
    { "q_len", QKVI_FIELD_HASH },
    { "prefix_len", QKVI_FIELD_HASH },
    { "alibi_slopes", QKVI_FIELD_HASH },
    { "distance_bias", QKVI_FIELD_HASH },
    { "sinks", QKVI_FIELD_HASH },
    { "seg_k", QKVI_FIELD_HASH },
    { "the class of arithmetic", QKVI_FIELD_HASH },
    { "view.dtype", QKVI_FIELD_INT },
    { "stats.top_k", QKVI_FIELD_INT },
    { "stats.n_classes", QKVI_FIELD_INT },
    { "stats.n_offsets", QKVI_FIELD_INT },
    { "stats.offsets", QKVI_FIELD_HASH },
    { "what stats asks for", QKVI_FIELD_HASH },
    { "whether d_sinks is asked for", QKVI_FIELD_HASH },
    { "whether columns.row_weights are given", QKVI_FIELD_HASH },
};
enum { N_LISTS = sizeof lists / sizeof *lists };

/* FNV-1a. */
static int64_t hash_of(const void *data, int64_t n, size_t size) {
    const unsigned char *const bytes = data;
    uint64_t hash = 0xcbf29ce484222325;
    if (!data) return 0;
    for (size_t i = 0; i < (size_t)n * size; i++) hash = (hash ^ bytes[i]) * 0x100000001b3;
    return (int64_t)hash;
}

/* Of the rows of all heads, one after another. */
static int64_t hash_of_distances(const qkvi_problem *p) {
    int64_t hashes[2] = { 0 };
    for (int64_t h = 0; p->distance_bias && h < p->n_heads; h++) {
        hashes[1] = hash_of(p->distance_bias + h * p->distance_bias_stride, qkvi_distances(p),
                            sizeof *p->distance_bias);
        hashes[0] = hash_of(hashes, 2, sizeof *hashes);
    }
    return hashes[0];
}

/* Of the keys of all ranks, which each rank has. Where all batches share a row, its stride is 0. */
static int64_t hash_of_segments(const qkvi_problem *p) {
    int64_t hashes[2] = { 0 };
    for (int64_t b = 0; p->seg_k && b < p->n_batch; b++) {
        hashes[1] = hash_of(p->seg_k + b * p->seg_k_stride, p->len_k, sizeof *p->seg_k);
        hashes[0] = hash_of(hashes, 2, sizeof *hashes);
    }
    return hashes[0];
}

/* A bit for each statistic. */
static int64_t asked_of(const qkv_attention_stats *s) {
    const void *const outputs[] = {
        s->largest,    s->entropy,        s->effective_keys, s->mean_distance,
        s->logit_mean, s->logit_variance, s->logit_largest,  s->mean_square_distance,
        s->n_seen,     s->top_keys,       s->top_weights,    s->top_scores,
        s->class_mass, s->offset_mass,    s->weighted_mass,  s->same_token,
        s->n_nan_rows, s->duplicate,      s->induction,      s->n_empty_rows,
    };
    int64_t bits = 0;
    for (size_t n = 0; n < sizeof outputs / sizeof *outputs; n++)
        if (outputs[n]) bits |= (int64_t)1 << n;
    return bits;
}

/* What calls but forward have besides. */
typedef struct others {
    const qkvi_kv *kv; /* NULL but in decode */
    bool d_sinks, row_weights;
} others;

static void record_lists(const qkv_ctx *ctx, const qkvi_problem *p, const others *x,
                         qkvi_record *record) {
    const int64_t n = p->n_batch, h = p->n_heads;
    const qkv_attention_stats *const s = &p->stats;
    const int64_t value[N_LISTS] = {
        hash_of(p->q_offsets, n, sizeof *p->q_offsets),
        hash_of(p->kv_len, n, sizeof *p->kv_len),
        hash_of(p->q_len, n, sizeof *p->q_len),
        hash_of(p->prefix_len, n, sizeof *p->prefix_len),
        hash_of(p->alibi_slopes, h, sizeof *p->alibi_slopes),
        hash_of_distances(p),
        hash_of(p->sinks, h, sizeof *p->sinks),
        hash_of_segments(p),
        qkvi_problem_class(p, ctx),
        x->kv ? (int64_t)x->kv->storage : 0,
        s->top_k,
        s->n_classes,
        s->n_offsets,
        s->n_offsets ? hash_of(s->offsets, s->n_offsets + 1, sizeof *s->offsets) : 0,
        asked_of(s),
        x->d_sinks,
        x->row_weights,
    };
    memcpy(record->value, value, sizeof value);
    record->value[AT_MASK] = (p->mask_stride[0] != 0) | (p->mask_stride[1] != 0) << 1;
}

static qkv_status compare_lists(qkvi_group *group, const qkv_ctx *ctx, const qkvi_problem *p,
                                const others *x, qkv_status status) {
    qkvi_record record = { .status = status };
    if (status == QKV_OK) record_lists(ctx, p, x, &record);
    QKV_TRY(qkvi_group_exchange(group, &record));
    return qkvi_group_compare(group, lists, N_LISTS);
}

static qkvi_piece piece_of(const qkvi_group *group) {
    const int rank = group->transport->rank, size = group->transport->size;
    const int64_t *const q = group->first_q, *const k = group->first_k;
    return (qkvi_piece){ q[rank], q[rank + 1] - q[rank], q[size],
                         k[rank], k[rank + 1] - k[rank], k[size] };
}

qkv_status qkvi_call_open(qkvi_group *group, qkv_ctx *ctx, qkv_status status,
                          const qkv_attention_desc *desc, const qkvi_dist_arrays *a,
                          qkvi_problem *p) {
    QKV_TRY(exchange_desc(group, status, desc));
    const qkvi_piece piece = piece_of(group);
    status = qkvi_problem_piece(desc, &piece, a->q, a->k, a->v, a->o, a->lse, p, &group->error);
    return compare_lists(group, ctx, p, &(others){ .kv = NULL }, status);
}

qkv_status qkvi_call_open_shape(qkvi_group *group, qkv_ctx *ctx, qkv_status status,
                                const qkv_attention_desc *desc, qkvi_problem *p) {
    QKV_TRY(exchange_desc(group, status, desc));
    const qkvi_piece piece = piece_of(group);
    status = qkvi_problem_piece_shape(desc, &piece, p, &group->error);
    return compare_lists(group, ctx, p, &(others){ .kv = NULL }, status);
}

qkv_status qkvi_call_open_decode(qkvi_group *group, qkv_ctx *ctx, qkv_status status,
                                 const qkv_attention_desc *desc, const qkv_kv_view *view,
                                 const qkvi_dist_arrays *a, qkvi_problem *p, qkvi_kv *kv) {
    const int rank = group->transport->rank, size = group->transport->size;
    QKV_TRY(exchange_desc(group, status, desc));
    QKV_TRY(compare_queries(group));
    const int64_t *const k = group->first_k;
    const int64_t len_q = group->first_q[1];
    const qkvi_piece piece = { 0, len_q, len_q, k[rank], k[rank + 1] - k[rank], k[size] };
    status =
        qkvi_problem_decode_piece(desc, &piece, a->q, view, a->o, a->lse, p, kv, &group->error);
    return compare_lists(group, ctx, p, &(others){ .kv = kv }, status);
}

int qkvi_call_mask_dims(const qkvi_group *group) {
    int dims = 0;
    for (int rank = 0; rank < group->transport->size; rank++)
        dims |= (int)group->records[rank].value[AT_MASK];
    return dims;
}

qkv_status qkvi_call_open_backward(qkvi_group *group, qkv_ctx *ctx, qkv_status status,
                                   const qkv_attention_desc *desc, qkvi_backward_call *call,
                                   qkvi_problem *p, qkvi_grads *g, int *mask_dims) {
    QKV_TRY(exchange_desc(group, status, desc));
    const qkvi_piece piece = piece_of(group);
    status = qkvi_problem_backward_piece(desc, &piece, call, p, g, &group->error);
    if (status == QKV_OK) qkvi_problem_choose_gradients(p, ctx);
    QKV_TRY(compare_lists(group, ctx, p, &(others){ .d_sinks = g->d_sinks }, status));
    *mask_dims = qkvi_call_mask_dims(group);
    return QKV_OK;
}

qkv_status qkvi_call_open_columns(qkvi_group *group, qkv_ctx *ctx, qkv_status status,
                                  const qkv_attention_desc *desc, const qkvi_dist_arrays *a,
                                  const qkv_attention_columns *columns, qkvi_columns_problem *x,
                                  int *mask_dims) {
    QKV_TRY(exchange_desc(group, status, desc));
    const qkvi_piece piece = piece_of(group);
    status = qkvi_columns_piece(desc, &piece, a->q, a->k, a->lse, columns, x, &group->error);
    const others more = { .row_weights = x->want.row_weights };
    QKV_TRY(compare_lists(group, ctx, &x->p, &more, status));
    *mask_dims = qkvi_call_mask_dims(group);
    return QKV_OK;
}

/* ---- Brackets -------------------------------------------------------------------------------- */

qkv_status qkvi_call_begin(qkvi_group *group, qkv_ctx *ctx) {
    group->error = (qkv_error){ QKV_OK, "" };
    group->scheme = QKVI_SCHEME_ORDERED;
    if (group->broken)
        return qkvi_group_fail(group, QKV_ERR_IO, "an earlier call lost the connection");
    const qkv_status status = qkvi_ctx_begin(ctx);
    if (status == QKV_ERR_BUSY)
        return qkvi_group_fail(group, status, "the context is inside another call");
    if (status != QKV_OK) return qkvi_group_fail(group, status, "ctx is NULL");
    return QKV_OK;
}

qkv_status qkvi_call_refuse(qkvi_group *group, qkv_status begun, const qkv_error *refused) {
    if (begun != QKV_OK || !refused) return begun;
    return qkvi_group_fail(group, refused->status, "%s", refused->message);
}

qkv_status qkvi_call_end(qkvi_group *group, qkv_ctx *ctx, qkv_status begun, qkv_status status) {
    if (begun != QKV_OK) return status;
    if (status != QKV_OK) ctx->error = group->error;
    return qkvi_ctx_end(ctx, status);
}

qkv_status qkvi_call_reserve(qkv_ctx *ctx, qkvi_lay_out *lay_out, void *user) {
    qkvi_cutter cutter = { 0 };
    void *block;
    lay_out(user, &cutter);
    if (cutter.overflow) return qkvi_ctx_fail(ctx, QKV_ERR_MEMORY, "too many bytes to count");
    QKV_TRY(qkvi_ctx_workspace(ctx, NULL, cutter.used_bytes, &block));
    cutter = qkvi_cutter_on(block);
    lay_out(user, &cutter);
    return QKV_OK;
}

qkv_status qkvi_group_from_ctx(qkvi_group *group, const qkv_ctx *ctx, qkv_status status) {
    if (status != QKV_OK && !group->broken) group->error = ctx->error;
    return status;
}
