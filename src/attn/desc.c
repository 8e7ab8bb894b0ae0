/*
 * From the public descriptor to a qkvi_problem: sizes, numbers and lengths are checked here, and
 * every array of a call, mask and lengths included, is listed for arrays.c to check.
 */
#include "attn/desc.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attn/arrays.h"
#include "core/alloc.h"
#include "core/ints.h"
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
    return QKV_OK;
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

static qkv_status fill_mask(const qkv_attention_desc *d, qkvi_problem *p, qkv_error *e) {
    p->mask_len_k = d->len_k;
    if (!(d->flags & QKV_SET_MASK)) return QKV_OK;
    if (d->mask_type != QKV_MASK_BOOL && d->mask_type != QKV_MASK_F32 &&
        d->mask_type != QKV_MASK_BITS)
        return qkvi_error_set(
            e, QKV_ERR_DTYPE,
            "mask_type = %d is none of QKV_MASK_BOOL, QKV_MASK_F32, QKV_MASK_BITS",
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
    if (d->mask_len_k > 1) p->mask_len_k = d->mask_len_k;
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
    };
    for (size_t n = 0; n < sizeof list / sizeof *list; n++)
        if (d->flags & list[n].flag && !list[n].data && list[n].has_elements)
            return qkvi_error_set(e, QKV_ERR_ARGUMENT, "%s is NULL, but %s is set", list[n].name,
                                  list[n].flag_name);
    return QKV_OK;
}

static qkv_status fill_problem(const qkv_attention_desc *given, qkvi_problem *p, qkv_error *e) {
    const uint32_t known = (QKV_SET_SINKS << 1) - 1;
    qkv_attention_desc copy;
    const qkv_attention_desc *d = &copy;
    memset(p, 0, sizeof *p);
    if (!given) return qkvi_error_set(e, QKV_ERR_ARGUMENT, "desc is NULL");
    QKV_TRY(qkvi_options_read(&copy, sizeof copy, given, "desc", e));
    if (d->flags & ~known)
        return qkvi_error_set(e, QKV_ERR_VERSION, "flags = 0x%x has bits outside of 0x%x",
                              (unsigned)d->flags, (unsigned)known);
    if (d->dtype != QKV_F32)
        return qkvi_error_set(e, QKV_ERR_DTYPE, "dtype = %d is not QKV_F32", (int)d->dtype);
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
    fill_heads(d, p);
    QKV_TRY(require_arrays(d, e));
    return fill_mask(d, p, e);
}

/* ---- Arrays ---------------------------------------------------------------------------------- */

static void add_lengths(qkvi_arrays *all, const char *name, const int64_t *data, int64_t n) {
    const int64_t size[4] = { 1, 1, 1, n }, stride[3] = { 0 };
    if (!data) return;
    qkvi_arrays_add(all, name, data, size, stride, false)->elem_bytes = sizeof *data;
}

static void add_heads(qkvi_arrays *all, const char *name, const float *data, int64_t n) {
    const int64_t size[4] = { 1, 1, 1, n }, stride[3] = { 0 };
    if (data) qkvi_arrays_add(all, name, data, size, stride, false);
}

static void add_segments(qkvi_arrays *all, const char *name, const int32_t *data, int64_t n_batch,
                         int64_t stride, int64_t len) {
    const int64_t size[4] = { n_batch, 1, 1, len }, strides[3] = { stride, 0, 0 };
    if (data) qkvi_arrays_add(all, name, data, size, strides, false)->elem_bytes = sizeof *data;
}

/* The shapes of a problem, as every array has them. */
typedef struct shapes {
    int64_t q[4], k[4], v[4], o[4], lse[4];
} shapes;

static shapes shapes_of(const qkvi_problem *p) {
    const int64_t b = p->n_batch, h = p->n_heads, g = p->n_kv_heads, d = p->head_dim;
    return (shapes){
        .q = { b, h, p->len_q, d },
        .k = { b, g, p->len_k, d },
        .v = { b, g, p->len_k, p->head_dim_v },
        .o = { b, h, p->len_q, p->head_dim_v },
        .lse = { b, h, p->len_q, 1 },
    };
}

/* What every call reads. */
static void add_inputs(qkvi_arrays *all, const qkvi_problem *p) {
    const shapes s = shapes_of(p);
    qkvi_arrays_add(all, "q", p->q, s.q, p->q_stride, false);
    qkvi_arrays_add(all, "k", p->k, s.k, p->k_stride, false);
    qkvi_arrays_add(all, "v", p->v, s.v, p->v_stride, false);
    add_lengths(all, "q_offsets", p->q_offsets, p->n_batch);
    add_lengths(all, "kv_len", p->kv_len, p->n_batch);
    add_lengths(all, "q_len", p->q_len, p->n_batch);
    add_lengths(all, "prefix_len", p->prefix_len, p->n_batch);
    add_heads(all, "alibi_slopes", p->alibi_slopes, p->n_heads);
    add_heads(all, "sinks", p->sinks, p->n_heads);
    add_segments(all, "seg_q", p->seg_q, p->n_batch, p->seg_q_stride, p->len_q);
    add_segments(all, "seg_k", p->seg_k, p->n_batch, p->seg_k_stride, p->len_k);
    if (!p->mask_type) return;
    const bool bits = p->mask_type == QKV_MASK_BITS;
    const int64_t size[4] = { p->n_batch, p->n_heads, p->len_q,
                              bits ? qkvi_ceil_div(p->mask_len_k, 8) : p->mask_len_k };
    qkvi_array *mask = qkvi_arrays_add(all, "mask", p->mask, size, p->mask_stride, false);
    mask->stride[3] = p->mask_stride[3];
    mask->elem_bytes = p->mask_type == QKV_MASK_F32 ? (int64_t)sizeof(float) : 1;
}

/* The caller's workspace, if he brought one. call is nullable. */
static qkv_status add_workspace(qkvi_arrays *all, const qkv_call_options *call, qkv_error *e) {
    if (!call || !call->workspace) return QKV_OK;
    if (call->workspace_bytes > (uint64_t)QKVI_MAX_SPAN)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "workspace_bytes = %zu is greater than %" PRId64,
                              call->workspace_bytes, QKVI_MAX_SPAN);
    qkvi_arrays_add_scratch(all, "workspace", call->workspace, (int64_t)call->workspace_bytes);
    return QKV_OK;
}

/*
 * A stride that leads nowhere may be any number: it becomes 0, so that an address computed past the
 * end of its dimension does not wrap. An array without elements may be NULL: with strides of 0,
 * every address computed in it is its own.
 */
static void rest(const int64_t size[4], int64_t *stride, int n_strides) {
    const bool empty = !size[0] || !size[1] || !size[2] || !size[3];
    for (int i = 0; i < n_strides; i++)
        if (empty || size[i] == 1) stride[i] = 0;
}

static void rest_strides(qkvi_problem *p) {
    const shapes s = shapes_of(p);
    const int64_t mask[4] = { p->n_batch, p->n_heads, p->len_q, p->mask_len_k };
    rest(s.q, p->q_stride, 3);
    rest(s.k, p->k_stride, 3);
    rest(s.v, p->v_stride, 3);
    rest(s.o, p->o_stride, 3);
    rest(s.lse, p->lse_stride, 3);
    rest(mask, p->mask_stride, 4);
}

/* ---- Entrances ------------------------------------------------------------------------------- */

qkv_status qkvi_problem_shape(const qkv_attention_desc *desc, qkvi_problem *p, qkv_error *error) {
    qkvi_arrays all = { .count = 0 };
    QKV_TRY(fill_problem(desc, p, error));
    const shapes s = shapes_of(p);
    add_inputs(&all, p);
    qkvi_arrays_add(&all, "o", NULL, s.o, p->o_stride, true);
    return qkvi_arrays_check(&all, false, error);
}

qkv_status qkvi_problem_forward(const qkv_attention_desc *desc, const void *q, const void *k,
                                const void *v, void *o, float *lse, const qkv_call_options *call,
                                qkvi_problem *p, qkv_error *error) {
    qkvi_arrays all = { .count = 0 };
    QKV_TRY(fill_problem(desc, p, error));
    QKV_TRY(add_workspace(&all, call, error));
    const shapes s = shapes_of(p);
    p->q = q;
    p->k = k;
    p->v = v;
    p->o = o;
    p->lse = lse;
    add_inputs(&all, p);
    qkvi_arrays_add(&all, "o", o, s.o, p->o_stride, true);
    if (lse) qkvi_arrays_add(&all, "lse", lse, s.lse, p->lse_stride, true);
    QKV_TRY(qkvi_arrays_check(&all, true, error));
    rest_strides(p);
    return QKV_OK;
}

qkv_status qkvi_problem_backward(const qkv_attention_desc *desc, const void *q, const void *k,
                                 const void *v, const void *o, const float *lse,
                                 const qkv_attention_grads *given, const qkv_call_options *call,
                                 qkvi_problem *p, qkvi_grads *out, qkv_error *error) {
    qkvi_arrays all = { .count = 0 };
    qkv_attention_grads copy;
    const qkv_attention_grads *grads = &copy;
    QKV_TRY(fill_problem(desc, p, error));
    if (!given) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "grads is NULL");
    QKV_TRY(qkvi_options_read(&copy, sizeof copy, given, "grads", error));
    QKV_TRY(add_workspace(&all, call, error));
    const shapes s = shapes_of(p);
    p->q = q;
    p->k = k;
    p->v = v;
    p->o = (float *)(uintptr_t)o; /* read only in backward */
    p->lse = (float *)(uintptr_t)lse;
    *out = (qkvi_grads){ .d_o = grads->d_o,
                         .d_lse = grads->d_lse,
                         .d_q = grads->d_q,
                         .d_k = grads->d_k,
                         .d_v = grads->d_v,
                         .d_sinks = grads->d_sinks };
    memcpy(out->d_o_stride, grads->d_o_stride, sizeof out->d_o_stride);
    memcpy(out->d_q_stride, grads->d_q_stride, sizeof out->d_q_stride);
    memcpy(out->d_k_stride, grads->d_k_stride, sizeof out->d_k_stride);
    memcpy(out->d_v_stride, grads->d_v_stride, sizeof out->d_v_stride);
    add_inputs(&all, p);
    qkvi_arrays_add(&all, "o", o, s.o, p->o_stride, false);
    qkvi_arrays_add(&all, "lse", lse, s.lse, p->lse_stride, false);
    qkvi_arrays_add(&all, "d_o", grads->d_o, s.o, grads->d_o_stride, false);
    if (grads->d_lse) qkvi_arrays_add(&all, "d_lse", grads->d_lse, s.lse, p->lse_stride, false);
    qkvi_arrays_add(&all, "d_q", grads->d_q, s.q, grads->d_q_stride, true);
    qkvi_arrays_add(&all, "d_k", grads->d_k, s.k, grads->d_k_stride, true);
    qkvi_arrays_add(&all, "d_v", grads->d_v, s.v, grads->d_v_stride, true);
    if (grads->d_sinks) {
        const int64_t size[4] = { 1, 1, 1, p->n_heads }, stride[3] = { 0 };
        if (!p->sinks && p->n_heads)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "d_sinks is set without QKV_SET_SINKS");
        qkvi_arrays_add(&all, "d_sinks", grads->d_sinks, size, stride, true);
    }
    QKV_TRY(qkvi_arrays_check(&all, true, error));
    rest_strides(p);
    rest(s.o, out->d_o_stride, 3);
    rest(s.q, out->d_q_stride, 3);
    rest(s.k, out->d_k_stride, 3);
    rest(s.v, out->d_v_stride, 3);
    return QKV_OK;
}

/*
 * One part against the outputs. Only an array of its own kind, at the same address, may be shared.
 */
static qkv_status check_part(const qkvi_problem *p, int n, const void *o_part,
                             const float *lse_part, qkv_error *error) {
    qkvi_arrays all = { .count = 0 };
    const shapes s = shapes_of(p);
    char o_name[32], lse_name[32];
    snprintf(o_name, sizeof o_name, "o_parts[%d]", n);
    snprintf(lse_name, sizeof lse_name, "lse_parts[%d]", n);
    qkvi_arrays_add(&all, "o", p->o, s.o, p->o_stride, true);
    if (p->lse) qkvi_arrays_add(&all, "lse", p->lse, s.lse, p->lse_stride, true);
    qkvi_arrays_add(&all, o_name, o_part, s.o, p->o_stride, false)->twin = p->o;
    qkvi_arrays_add(&all, lse_name, lse_part, s.lse, p->lse_stride, false)->twin = p->lse;
    return qkvi_arrays_check(&all, true, error);
}

qkv_status qkvi_problem_merge(const qkv_attention_desc *desc, int n_parts,
                              const void *const *o_parts, const float *const *lse_parts, void *o,
                              float *lse, qkvi_problem *p, qkv_error *error) {
    QKV_TRY(fill_problem(desc, p, error));
    if (n_parts < 1)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "n_parts = %d is less than 1", n_parts);
    if (!o_parts || !lse_parts)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              o_parts ? "lse_parts" : "o_parts");
    p->o = o;
    p->lse = lse;
    for (int n = 0; n < n_parts; n++) QKV_TRY(check_part(p, n, o_parts[n], lse_parts[n], error));
    rest_strides(p);
    return QKV_OK;
}

qkv_status qkvi_call_read(const qkv_call_options *given, qkv_call_options *call, qkv_error *error) {
    *call = (qkv_call_options)QKV_CALL_OPTIONS_INIT;
    return given ? qkvi_options_read(call, sizeof *call, given, "call", error) : QKV_OK;
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

void qkv_attention_grads_contiguous(qkv_attention_grads *grads, const qkv_attention_desc *desc) {
    *grads = (qkv_attention_grads){ .struct_size = sizeof *grads };
    dense(grads->d_q_stride, desc->n_heads, desc->len_q, desc->head_dim);
    dense(grads->d_k_stride, desc->n_kv_heads, desc->len_k, desc->head_dim);
    dense(grads->d_v_stride, desc->n_kv_heads, desc->len_k, desc->head_dim_v);
    dense(grads->d_o_stride, desc->n_heads, desc->len_q, desc->head_dim_v);
}
