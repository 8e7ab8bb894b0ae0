/* See desc_packed.h. */
#include "attn/desc_packed.h"

#include <inttypes.h>

#include "core/status.h"

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
