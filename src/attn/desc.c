/*
 * From the public descriptor to a qkvi_problem: types, sizes, numbers and masks are checked and
 * defaults filled in. Rules of position are rules.c's, packed sequences desc_packed.c's, the arrays
 * of a call problem.c's.
 */
#include "attn/desc.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "attn/desc_packed.h"
#include "attn/dropout.h"
#include "attn/problem.h"
#include "attn/rules.h"
#include "attn/stats.h"
#include "core/alloc.h"
#include "core/options.h"
#include "kernels/class.h"

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

/* Words below floor(dropout 2^32) drop their weight; where there is none, nothing is done. */
static qkv_status fill_dropout(const qkv_attention_desc *d, qkvi_problem *p, qkv_error *e) {
    if (!(d->flags & QKV_SET_DROPOUT)) return QKV_OK;
    if (!(d->dropout >= 0 && d->dropout <= 1))
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "dropout = %g is not in [0, 1]",
                              (double)d->dropout);
    const uint64_t n_words = qkvi_dropout_words(d->dropout);
    p->has_dropout = n_words > 0;
    p->dropout = d->dropout;
    p->dropout_last = (uint32_t)(n_words - 1);
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
    return fill_dropout(d, p, e);
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

static qkv_status fill_distances(const qkv_attention_desc *d, qkvi_problem *p, qkv_error *e) {
    if (!(d->flags & QKV_SET_DISTANCE_BIAS)) return QKV_OK;
    QKV_TRY(check_size("distance_before", d->distance_before, QKVI_MAX_SIZE, e));
    QKV_TRY(check_size("distance_after", d->distance_after, QKVI_MAX_SIZE, e));
    if (d->distance_bias_stride < 0)
        return qkvi_error_set(e, QKV_ERR_STRIDE, "distance_bias_stride = %" PRId64 " is negative",
                              d->distance_bias_stride);
    p->distance_bias = d->distance_bias;
    p->distance_bias_stride = d->distance_bias_stride;
    p->distance_before = d->distance_before;
    p->distance_after = d->distance_after;
    return QKV_OK;
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
        { QKV_SET_DISTANCE_BIAS, "QKV_SET_DISTANCE_BIAS", "distance_bias", d->distance_bias,
          d->n_heads },
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
    if (d->arithmetic == QKV_CLASS_AUTO) return QKV_OK;
    const qkvi_class_row *const class = qkvi_class_given(d->arithmetic);
    if (!class)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "arithmetic = %d is none of " QKVI_GIVEN_NAMES,
                              (int)d->arithmetic);
    if (class->type != QKV_F32 && class->type != d->dtype)
        return qkvi_error_set(e, QKV_ERR_UNSUPPORTED,
                              "arithmetic = %s needs dtype = QKV_BF16, not %d", class->given_name,
                              (int)d->dtype);
    return QKV_OK;
}

qkv_status qkvi_problem_read(const qkv_attention_desc *given, qkvi_problem *p, qkv_error *e) {
    const uint32_t known = qkvi_rules_flags() | QKV_SET_SCALE | QKV_SET_SOFTCAP | QKV_SET_MASK |
                           QKV_SET_ALIBI | QKV_SET_SINKS | QKV_SET_O_DTYPE | QKV_SET_CU_SEQLENS |
                           QKV_SET_BLOCK_MASK | QKV_SET_DROPOUT | QKV_SET_STATS |
                           QKV_SET_DISTANCE_BIAS;
    qkv_attention_desc copy = { 0 };
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
    QKV_TRY(qkvi_rules_read(d, p, e));
    QKV_TRY(qkvi_packed_read(d, p, e));
    fill_heads(d, p);
    QKV_TRY(fill_distances(d, p, e));
    QKV_TRY(require_arrays(d, e));
    QKV_TRY(fill_blocks(d, p, e));
    QKV_TRY(fill_mask(d, p, e));
    return d->flags & QKV_SET_STATS ? qkvi_stats_read(d, p, e) : QKV_OK;
}
