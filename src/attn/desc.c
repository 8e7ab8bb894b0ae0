/*
 * From the public descriptor to a qkvi_problem: sizes, numbers and lengths are checked and defaults
 * filled in. The arrays of a call are problem.c's.
 */
#include "attn/desc.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/options.h"

/* ---- Sizes and numbers ----------------------------------------------------------------------- */

static qkv_status check_size(const char *name, int64_t value, int64_t limit, qkv_error *e) {
    if (value < 0)
        return qkvi_error_set(e, QKV_ERR_SHAPE, "%s = %" PRId64 " is negative", name, value);
    if (value > limit)
        return qkvi_error_set(e, QKV_ERR_SHAPE, "%s = %" PRId64 " is greater than %" PRId64, name,
                              value, limit);
    return QKV_OK;
}

/* c = 0 counts as 1, so that the product of the others is safe, too. */
static qkv_status check_rows(const char *names, int64_t a, int64_t b, int64_t c, qkv_error *e) {
    int64_t product;
    if (!qkvi_mul_i64(a, b, &product) || !qkvi_mul_i64(product, c ? c : 1, &product) ||
        product > QKVI_MAX_ROWS)
        return qkvi_error_set(e, QKV_ERR_SHAPE,
                              "%s = %" PRId64 " * %" PRId64 " * %" PRId64
                              " is greater than %" PRId64,
                              names, a, b, c, QKVI_MAX_ROWS);
    return QKV_OK;
}

static qkv_status check_sizes(const qkv_attention_desc *d, qkv_error *e) {
    QKV_TRY(check_size("n_batch", d->n_batch, QKVI_MAX_SIZE, e));
    QKV_TRY(check_size("n_heads", d->n_heads, QKVI_MAX_SIZE, e));
    QKV_TRY(check_size("n_kv_heads", d->n_kv_heads, QKVI_MAX_SIZE, e));
    QKV_TRY(check_size("len_q", d->len_q, QKVI_MAX_SIZE, e));
    QKV_TRY(check_size("len_k", d->len_k, QKVI_MAX_SIZE, e));
    QKV_TRY(check_size("head_dim", d->head_dim, QKVI_MAX_HEAD_DIM, e));
    QKV_TRY(check_size("head_dim_v", d->head_dim_v, QKVI_MAX_HEAD_DIM, e));
    if (d->n_kv_heads ? d->n_heads % d->n_kv_heads != 0 : d->n_heads != 0)
        return qkvi_error_set(e, QKV_ERR_SHAPE,
                              "n_heads = %" PRId64 " is not a multiple of n_kv_heads = %" PRId64,
                              d->n_heads, d->n_kv_heads);
    QKV_TRY(check_rows("n_batch * n_heads * len_q", d->n_batch, d->n_heads, d->len_q, e));
    return check_rows("n_batch * n_kv_heads * len_k", d->n_batch, d->n_kv_heads, d->len_k, e);
}

static qkv_status check_window(const char *name, int64_t value, int64_t *out, qkv_error *e) {
    if (value < -1)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "%s = %" PRId64 " is less than -1 (unbounded)",
                              name, value);
    *out = value == -1 || value > QKVI_NO_WINDOW ? QKVI_NO_WINDOW : value;
    return QKV_OK;
}

/* Words below floor(dropout 2^32) drop their weight; where there is none, nothing is done. */
static qkv_status fill_dropout(const qkv_attention_desc *d, qkvi_problem *p, qkv_error *e) {
    if (!(d->flags & QKV_SET_DROPOUT)) return QKV_OK;
    if (!(d->dropout >= 0 && d->dropout <= 1))
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "dropout = %g is not in [0, 1]",
                              (double)d->dropout);
    const uint64_t threshold = (uint64_t)((double)d->dropout * 0x1p32);
    p->has_dropout = threshold > 0;
    p->dropout = d->dropout;
    p->dropout_last = (uint32_t)(threshold - 1);
    p->dropout_seed = d->dropout_seed;
    return QKV_OK;
}

static qkv_status fill_numbers(const qkv_attention_desc *d, qkvi_problem *p, qkv_error *e) {
    p->scale = d->head_dim ? (float)(1 / sqrt((double)d->head_dim)) : 1.0f;
    if (d->flags & QKV_SET_SCALE) {
        if (!isfinite(d->scale))
            return qkvi_error_set(e, QKV_ERR_ARGUMENT, "scale = %g is not finite",
                                  (double)d->scale);
        p->scale = d->scale;
    }
    if (d->flags & QKV_SET_SOFTCAP) {
        if (!(d->softcap > 0) || !isfinite(d->softcap))
            return qkvi_error_set(e, QKV_ERR_ARGUMENT,
                                  "softcap = %g is not a finite number above 0",
                                  (double)d->softcap);
        p->has_softcap = true;
        p->softcap = d->softcap;
    }
    p->window_left = p->window_right = QKVI_NO_WINDOW;
    if (d->flags & QKV_SET_WINDOW) {
        QKV_TRY(check_window("window_left", d->window_left, &p->window_left, e));
        QKV_TRY(check_window("window_right", d->window_right, &p->window_right, e));
    }
    p->causal = d->flags & QKV_SET_CAUSAL;
    if (d->flags & QKV_SET_CHUNK) {
        if (d->chunk < 1 || d->chunk > QKVI_MAX_SIZE)
            return qkvi_error_set(e, QKV_ERR_ARGUMENT,
                                  "chunk = %" PRId64 " is not in [1, %" PRId64 "]", d->chunk,
                                  QKVI_MAX_SIZE);
        p->chunk = d->chunk;
    }
    return fill_dropout(d, p, e);
}

/* ---- Values per batch ------------------------------------------------------------------------ */

static qkv_status check_each(const char *name, const int64_t *value, int64_t n, int64_t low,
                             int64_t high, qkv_error *e) {
    if ((uintptr_t)value % sizeof *value)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "%s is not aligned to its element, %zu bytes",
                              name, sizeof *value);
    for (int64_t b = 0; b < n; b++)
        if (value[b] < low || value[b] > high)
            return qkvi_error_set(e, QKV_ERR_SHAPE,
                                  "%s[%" PRId64 "] = %" PRId64 " is not in [%" PRId64 ", %" PRId64
                                  "]",
                                  name, b, value[b], low, high);
    return QKV_OK;
}

static qkv_status fill_lengths(const qkv_attention_desc *d, qkvi_problem *p, qkv_error *e) {
    const int64_t n = d->n_batch;
    if (d->flags & QKV_SET_Q_OFFSET) {
        p->q_offset = d->q_offset;
        p->q_offsets = d->q_offsets;
        if (p->q_offsets)
            QKV_TRY(check_each("q_offsets", p->q_offsets, n, -QKVI_MAX_SIZE, QKVI_MAX_SIZE, e));
        else if (p->q_offset < -QKVI_MAX_SIZE || p->q_offset > QKVI_MAX_SIZE)
            return qkvi_error_set(e, QKV_ERR_SHAPE,
                                  "q_offset = %" PRId64 " is not in [%" PRId64 ", %" PRId64 "]",
                                  p->q_offset, -QKVI_MAX_SIZE, QKVI_MAX_SIZE);
    }
    if (d->flags & QKV_SET_KV_LEN) {
        if (!d->kv_len && n)
            return qkvi_error_set(e, QKV_ERR_ARGUMENT, "kv_len is NULL, but QKV_SET_KV_LEN is set");
        p->kv_len = d->kv_len;
        if (n) QKV_TRY(check_each("kv_len", p->kv_len, n, 0, d->len_k, e));
    }
    if (d->flags & QKV_SET_Q_LEN) {
        if (!d->q_len && n)
            return qkvi_error_set(e, QKV_ERR_ARGUMENT, "q_len is NULL, but QKV_SET_Q_LEN is set");
        p->q_len = d->q_len;
        if (n) QKV_TRY(check_each("q_len", p->q_len, n, 0, d->len_q, e));
    }
    if (d->flags & QKV_SET_PREFIX_LEN) {
        if (!p->causal)
            return qkvi_error_set(e, QKV_ERR_ARGUMENT,
                                  "QKV_SET_PREFIX_LEN is set without QKV_SET_CAUSAL");
        if (!d->prefix_len && n)
            return qkvi_error_set(e, QKV_ERR_ARGUMENT,
                                  "prefix_len is NULL, but QKV_SET_PREFIX_LEN is set");
        p->prefix_len = d->prefix_len;
        if (n) QKV_TRY(check_each("prefix_len", p->prefix_len, n, 0, d->len_k, e));
    }
    return QKV_OK;
}

/* ---- Packed sequences ------------------------------------------------------------------------ */

static qkv_status check_cu(const char *name, const char *limit_name, const int64_t *cu, int64_t n,
                           int64_t limit, qkv_error *e) {
    if (!cu)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "%s is NULL, but QKV_SET_CU_SEQLENS is set",
                              name);
    if ((uintptr_t)cu % sizeof *cu)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "%s is not aligned to its element, %zu bytes",
                              name, sizeof *cu);
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

static qkv_status fill_packed(const qkv_attention_desc *d, qkvi_problem *p, qkv_error *e) {
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

/* ---- Masks, segments, heads ------------------------------------------------------------------ */

static qkv_status fill_mask(const qkv_attention_desc *d, qkvi_problem *p, qkv_error *e) {
    p->mask_len_k = d->len_k;
    if (!(d->flags & QKV_SET_MASK)) return QKV_OK;
    if (d->mask_type < QKV_MASK_BOOL || d->mask_type > QKV_MASK_F16)
        return qkvi_error_set(e, QKV_ERR_DTYPE,
                              "mask_type = %d is none of QKV_MASK_BOOL, QKV_MASK_F32, "
                              "QKV_MASK_BITS, QKV_MASK_BF16, QKV_MASK_F16",
                              (int)d->mask_type);
    QKV_TRY(check_size("mask_len_k", d->mask_len_k, QKVI_MAX_SIZE, e));
    const bool repeats = d->mask_len_k == 1;
    if (d->mask_len_k > d->len_k && !repeats)
        return qkvi_error_set(e, QKV_ERR_SHAPE,
                              "mask_len_k = %" PRId64 " is greater than len_k = %" PRId64,
                              d->mask_len_k, d->len_k);
    p->mask_type = d->mask_type;
    p->mask = d->mask;
    memcpy(p->mask_stride, d->mask_stride, sizeof p->mask_stride);
    if (p->mask_type == QKV_MASK_BITS && !repeats && p->mask_stride[3] != 1)
        return qkvi_error_set(e, QKV_ERR_STRIDE,
                              "mask_stride[3] = %" PRId64 " is not 1, the bits of a row are dense",
                              p->mask_stride[3]);
    if (repeats) p->mask_stride[3] = 0;
    p->mask_repeats = repeats;
    if (d->mask_len_k > 1) p->mask_len_k = d->mask_len_k;
    return QKV_OK;
}

/* Lists are blocks.c's to check, after their addresses. */
static qkv_status fill_blocks(const qkv_attention_desc *d, qkvi_problem *p, qkv_error *e) {
    if (!(d->flags & QKV_SET_BLOCK_MASK)) return QKV_OK;
    if (d->block_len != 32 && d->block_len != 64 && d->block_len != 96 && d->block_len != 128)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT,
                              "block_len = %" PRId64 " is none of 32, 64, 96, 128", d->block_len);
    p->block_len = d->block_len;
    p->block_offsets = d->block_offsets;
    p->block_index = d->block_index;
    memcpy(p->block_offsets_stride, d->block_offsets_stride, sizeof p->block_offsets_stride);
    return QKV_OK;
}

/* Segments, ALiBi and sinks: pointers, which arrays.c checks with the others. */
static void fill_heads(const qkv_attention_desc *d, qkvi_problem *p) {
    if (d->flags & QKV_SET_SEGMENTS) {
        p->seg_q = d->seg_q;
        p->seg_k = d->seg_k;
        p->seg_q_stride = d->seg_q_stride;
        p->seg_k_stride = d->seg_k_stride;
    }
    if (d->flags & QKV_SET_ALIBI) p->alibi_slopes = d->alibi_slopes;
    if (d->flags & QKV_SET_SINKS) p->sinks = d->sinks;
}

/* A flag that is set needs its array, unless it has no elements. */
static qkv_status require_arrays(const qkv_attention_desc *d, qkv_error *e) {
    const struct {
        uint32_t flag;
        const char *flag_name, *name;
        const void *data;
        bool has_elements;
    } list[] = {
        { QKV_SET_SEGMENTS, "QKV_SET_SEGMENTS", "seg_q", d->seg_q, d->n_batch && d->len_q },
        { QKV_SET_SEGMENTS, "QKV_SET_SEGMENTS", "seg_k", d->seg_k, d->n_batch && d->len_k },
        { QKV_SET_ALIBI, "QKV_SET_ALIBI", "alibi_slopes", d->alibi_slopes, d->n_heads },
        { QKV_SET_SINKS, "QKV_SET_SINKS", "sinks", d->sinks, d->n_heads },
        { QKV_SET_BLOCK_MASK, "QKV_SET_BLOCK_MASK", "block_offsets", d->block_offsets,
          d->n_batch && d->n_heads },
    };
    for (size_t n = 0; n < sizeof list / sizeof *list; n++)
        if (d->flags & list[n].flag && !list[n].data && list[n].has_elements)
            return qkvi_error_set(e, QKV_ERR_ARGUMENT, "%s is NULL, but %s is set", list[n].name,
                                  list[n].flag_name);
    return QKV_OK;
}

static qkv_status fill_types(const qkv_attention_desc *d, qkvi_problem *p, qkv_error *e) {
    if (d->dtype != QKV_F32 && d->dtype != QKV_BF16 && d->dtype != QKV_F16)
        return qkvi_error_set(e, QKV_ERR_DTYPE, "dtype = %d is none of QKV_F32, QKV_BF16, QKV_F16",
                              (int)d->dtype);
    p->dtype = p->o_dtype = d->dtype;
    if (d->flags & QKV_SET_O_DTYPE) {
        if (d->o_dtype != QKV_F32 && d->o_dtype != d->dtype)
            return qkvi_error_set(e, QKV_ERR_DTYPE,
                                  "o_dtype = %d is neither QKV_F32 nor dtype = %d", (int)d->o_dtype,
                                  (int)d->dtype);
        p->o_dtype = d->o_dtype;
    }
    p->arithmetic = d->arithmetic;
    if (d->arithmetic == QKV_CLASS_AUTO || d->arithmetic == QKV_CLASS_F32) return QKV_OK;
    if (d->arithmetic != QKV_CLASS_DP)
        return qkvi_error_set(
            e, QKV_ERR_ARGUMENT,
            "arithmetic = %d is none of QKV_CLASS_AUTO, QKV_CLASS_F32, QKV_CLASS_DP",
            (int)d->arithmetic);
    if (d->dtype != QKV_BF16)
        return qkvi_error_set(e, QKV_ERR_UNSUPPORTED,
                              "arithmetic = QKV_CLASS_DP needs dtype = QKV_BF16, not %d",
                              (int)d->dtype);
    return QKV_OK;
}

qkv_status qkvi_problem_read(const qkv_attention_desc *given, qkvi_problem *p, qkv_error *e) {
    const uint32_t known = ((QKV_SET_SINKS << 1) - 1) | QKV_SET_O_DTYPE | QKV_SET_CU_SEQLENS |
                           QKV_SET_BLOCK_MASK | QKV_SET_DROPOUT;
    qkv_attention_desc copy;
    const qkv_attention_desc *d = &copy;
    memset(p, 0, sizeof *p);
    if (!given) return qkvi_error_set(e, QKV_ERR_ARGUMENT, "desc is NULL");
    QKV_TRY(qkvi_options_read(&copy, sizeof copy, given, "desc", e));
    if (d->flags & ~known)
        return qkvi_error_set(e, QKV_ERR_VERSION, "flags = 0x%x has the unknown bits 0x%x",
                              (unsigned)d->flags, (unsigned)(d->flags & ~known));
    QKV_TRY(fill_types(d, p, e));
    QKV_TRY(check_sizes(d, e));
    p->n_batch = d->n_batch;
    p->n_heads = d->n_heads;
    p->n_kv_heads = d->n_kv_heads;
    p->heads_per_kv = d->n_kv_heads ? d->n_heads / d->n_kv_heads : 0;
    p->len_q = d->len_q;
    p->len_k = d->len_k;
    p->head_dim = d->head_dim;
    p->head_dim_v = d->head_dim_v;
    memcpy(p->q_stride, d->q_stride, sizeof p->q_stride);
    memcpy(p->k_stride, d->k_stride, sizeof p->k_stride);
    memcpy(p->v_stride, d->v_stride, sizeof p->v_stride);
    memcpy(p->o_stride, d->o_stride, sizeof p->o_stride);
    memcpy(p->lse_stride, d->lse_stride, sizeof p->lse_stride);
    QKV_TRY(fill_numbers(d, p, e));
    QKV_TRY(fill_lengths(d, p, e));
    QKV_TRY(fill_packed(d, p, e));
    fill_heads(d, p);
    QKV_TRY(require_arrays(d, e));
    QKV_TRY(fill_blocks(d, p, e));
    return fill_mask(d, p, e);
}
/* ---- Public helpers -------------------------------------------------------------------------- */

/*
 * Strides of a dense [..][n_heads][len][row]. They may wrap for absurd sizes: the checks above find
 * those.
 */
static void dense(int64_t stride[3], int64_t n_heads, int64_t len, int64_t row) {
    stride[2] = row;
    stride[1] = (int64_t)((uint64_t)len * (uint64_t)row);
    stride[0] = (int64_t)((uint64_t)n_heads * (uint64_t)stride[1]);
}

void qkv_attention_desc_contiguous(qkv_attention_desc *desc, int64_t n_batch, int64_t n_heads,
                                   int64_t n_kv_heads, int64_t len_q, int64_t len_k,
                                   int64_t head_dim, int64_t head_dim_v) {
    *desc = (qkv_attention_desc){ .struct_size = sizeof *desc,
                                  .dtype = QKV_F32,
                                  .n_batch = n_batch,
                                  .n_heads = n_heads,
                                  .n_kv_heads = n_kv_heads,
                                  .len_q = len_q,
                                  .len_k = len_k,
                                  .head_dim = head_dim,
                                  .head_dim_v = head_dim_v };
    dense(desc->q_stride, n_heads, len_q, head_dim);
    dense(desc->k_stride, n_kv_heads, len_k, head_dim);
    dense(desc->v_stride, n_kv_heads, len_k, head_dim_v);
    dense(desc->o_stride, n_heads, len_q, head_dim_v);
    dense(desc->lse_stride, n_heads, len_q, 1);
}

/* Dense, and 0 where the mask repeats. */
static void dense_mask(int64_t stride[4], const qkv_attention_desc *desc) {
    const int64_t len_k = desc->mask_len_k ? desc->mask_len_k : desc->len_k;
    const int64_t size[4] = { desc->n_batch, desc->n_heads, desc->len_q, len_k };
    uint64_t elems = 1;
    for (int n = 3; n >= 0; n--) {
        if (desc->mask_stride[n] == 0 || (n == 3 && desc->mask_len_k == 1)) continue;
        stride[n] = (int64_t)elems;
        elems *= (uint64_t)size[n];
    }
}

void qkv_attention_grads_contiguous(qkv_attention_grads *grads, const qkv_attention_desc *desc) {
    *grads = (qkv_attention_grads){ .struct_size = sizeof *grads };
    dense(grads->d_q_stride, desc->n_heads, desc->len_q, desc->head_dim);
    dense(grads->d_k_stride, desc->n_kv_heads, desc->len_k, desc->head_dim);
    dense(grads->d_v_stride, desc->n_kv_heads, desc->len_k, desc->head_dim_v);
    dense(grads->d_o_stride, desc->n_heads, desc->len_q, desc->head_dim_v);
    if (desc->flags & QKV_SET_MASK) dense_mask(grads->d_mask_stride, desc);
}
