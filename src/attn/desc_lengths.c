/* See desc_lengths.h. */
#include "attn/desc_lengths.h"

#include <inttypes.h>

#include "core/status.h"

/* ---- Values per batch ------------------------------------------------------------------------ */

static qkv_status check_given(const char *name, const char *flag, const int64_t *value,
                              qkv_error *e) {
    if (!value) return qkvi_error_set(e, QKV_ERR_ARGUMENT, "%s is NULL, but %s is set", name, flag);
    return QKV_OK;
}

static qkv_status check_aligned(const char *name, const int64_t *value, qkv_error *e) {
    if ((uintptr_t)value % sizeof *value)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "%s is not aligned to its element, %zu bytes",
                              name, sizeof *value);
    return QKV_OK;
}

static qkv_status check_each(const char *name, const int64_t *value, int64_t n, int64_t low,
                             int64_t high, qkv_error *e) {
    QKV_TRY(check_aligned(name, value, e));
    for (int64_t b = 0; b < n; b++)
        if (value[b] < low || value[b] > high)
            return qkvi_error_set(e, QKV_ERR_SHAPE,
                                  "%s[%" PRId64 "] = %" PRId64 " is not in [%" PRId64 ", %" PRId64
                                  "]",
                                  name, b, value[b], low, high);
    return QKV_OK;
}

static qkv_status read_offsets(const qkv_attention_desc *d, qkvi_problem *p, qkv_error *e) {
    if (!(d->flags & QKV_SET_Q_OFFSET)) return QKV_OK;
    p->q_offset = d->q_offset;
    p->q_offsets = d->q_offsets;
    if (p->q_offsets)
        return check_each("q_offsets", p->q_offsets, d->n_batch, -QKVI_MAX_SIZE, QKVI_MAX_SIZE, e);
    if (p->q_offset < -QKVI_MAX_SIZE || p->q_offset > QKVI_MAX_SIZE)
        return qkvi_error_set(e, QKV_ERR_SHAPE,
                              "q_offset = %" PRId64 " is not in [%" PRId64 ", %" PRId64 "]",
                              p->q_offset, -QKVI_MAX_SIZE, QKVI_MAX_SIZE);
    return QKV_OK;
}

/* A length in [0, most] for each of n batches; without batches the list may be NULL. */
static qkv_status read_each(const char *name, const char *flag, const int64_t *given, int64_t n,
                            int64_t most, const int64_t **value, qkv_error *e) {
    *value = given;
    if (n == 0) return QKV_OK;
    QKV_TRY(check_given(name, flag, given, e));
    return check_each(name, given, n, 0, most, e);
}

qkv_status qkvi_lengths_read(const qkv_attention_desc *d, qkvi_problem *p, qkv_error *e) {
    const int64_t n = d->n_batch;
    QKV_TRY(read_offsets(d, p, e));
    if (d->flags & QKV_SET_KV_LEN)
        QKV_TRY(read_each("kv_len", "QKV_SET_KV_LEN", d->kv_len, n, d->len_k, &p->kv_len, e));
    if (d->flags & QKV_SET_Q_LEN)
        QKV_TRY(read_each("q_len", "QKV_SET_Q_LEN", d->q_len, n, d->len_q, &p->q_len, e));
    if (!(d->flags & QKV_SET_PREFIX_LEN)) return QKV_OK;
    if (!p->causal)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT,
                              "QKV_SET_PREFIX_LEN is set without QKV_SET_CAUSAL");
    return read_each("prefix_len", "QKV_SET_PREFIX_LEN", d->prefix_len, n, d->len_k, &p->prefix_len,
                     e);
}

/* ---- Packed sequences ------------------------------------------------------------------------ */

static qkv_status check_cu(const char *name, const char *limit_name, const int64_t *cu, int64_t n,
                           int64_t limit, qkv_error *e) {
    QKV_TRY(check_given(name, "QKV_SET_CU_SEQLENS", cu, e));
    QKV_TRY(check_aligned(name, cu, e));
    if (cu[0] != 0)
        return qkvi_error_set(e, QKV_ERR_SHAPE, "%s[0] = %" PRId64 " is not 0", name, cu[0]);
    for (int64_t b = 0; b < n; b++) {
        if (cu[b + 1] < cu[b])
            return qkvi_error_set(e, QKV_ERR_SHAPE,
                                  "%s[%" PRId64 "] = %" PRId64 " is less than the %" PRId64
                                  " before it",
                                  name, b + 1, cu[b + 1], cu[b]);
        if (cu[b + 1] - cu[b] > limit)
            return qkvi_error_set(e, QKV_ERR_SHAPE,
                                  "%s[%" PRId64 "] = %" PRId64 " is %" PRId64
                                  " after the one before it, which is greater than %s = %" PRId64,
                                  name, b + 1, cu[b + 1], cu[b + 1] - cu[b], limit_name, limit);
    }
    return QKV_OK;
}

/* A length per batch that may only shorten its sequence. */
static qkv_status check_shortens(const char *name, const int64_t *value, const char *what,
                                 const int64_t *cu, int64_t n, qkv_error *e) {
    for (int64_t b = 0; value && b < n; b++)
        if (value[b] > cu[b + 1] - cu[b])
            return qkvi_error_set(e, QKV_ERR_SHAPE,
                                  "%s[%" PRId64 "] = %" PRId64 " is greater than the %" PRId64
                                  " %s of its sequence",
                                  name, b, value[b], cu[b + 1] - cu[b], what);
    return QKV_OK;
}

qkv_status qkvi_check_packed_stride(const qkvi_problem *p, const char *name,
                                    const int64_t stride[3], qkv_error *e) {
    if (p->cu_q && stride[0] != 0)
        return qkvi_error_set(e, QKV_ERR_STRIDE,
                              "%s_stride[0] = %" PRId64
                              " is not 0, packed sequences have no stride of the batch",
                              name, stride[0]);
    return QKV_OK;
}

qkv_status qkvi_packed_read(const qkv_attention_desc *d, qkvi_problem *p, qkv_error *e) {
    const int64_t n = d->n_batch, *const cu_q = d->cu_seqlens_q, *const cu_k = d->cu_seqlens_k;
    if (!(d->flags & QKV_SET_CU_SEQLENS)) return QKV_OK;
    QKV_TRY(check_cu("cu_seqlens_q", "len_q", cu_q, n, d->len_q, e));
    QKV_TRY(check_cu("cu_seqlens_k", "len_k", cu_k, n, d->len_k, e));
    QKV_TRY(check_shortens("q_len", p->q_len, "queries", cu_q, n, e));
    QKV_TRY(check_shortens("kv_len", p->kv_len, "keys", cu_k, n, e));
    p->cu_q = cu_q;
    p->cu_k = cu_k;
    QKV_TRY(qkvi_check_packed_stride(p, "q", p->q_stride, e));
    QKV_TRY(qkvi_check_packed_stride(p, "k", p->k_stride, e));
    QKV_TRY(qkvi_check_packed_stride(p, "v", p->v_stride, e));
    QKV_TRY(qkvi_check_packed_stride(p, "o", p->o_stride, e));
    return qkvi_check_packed_stride(p, "lse", p->lse_stride, e);
}
