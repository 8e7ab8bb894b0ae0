/*
 * The arrays of a call, mask and lengths included: all are listed here for arrays.c to check
 * against each other, after desc.c has read the descriptor. One entrance for each kind of call.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "attn/arrays.h"
#include "attn/blocks.h"
#include "attn/desc_lengths.h"
#include "attn/kv_view.h"
#include "attn/sequence.h"
#include "core/ints.h"
#include "core/options.h"

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
    const int64_t b = qkvi_n_arrays(p), h = p->n_heads, g = p->n_kv_heads, d = p->head_dim;
    const int64_t rows_q = qkvi_rows_q(p), rows_k = qkvi_rows_k(p);
    return (shapes){
        .q = { b, h, rows_q, d },
        .k = { b, g, rows_k, d },
        .v = { b, g, rows_k, p->head_dim_v },
        .o = { b, h, rows_q, p->head_dim_v },
        .lse = { b, h, rows_q, 1 },
    };
}

/* An array of dtype or o_dtype, whose last stride is 1. */
static void add_typed(qkvi_arrays *all, const char *name, const void *data, qkv_dtype type,
                      const int64_t size[4], const int64_t stride[3], bool output) {
    qkvi_arrays_add(all, name, data, size, stride, output)->elem_bytes = qkvi_dtype_bytes(type);
}

/* Lengths, segments, mask and what else belongs to the rules. */
static void add_rules(qkvi_arrays *all, const qkvi_problem *p) {
    add_lengths(all, "q_offsets", p->q_offsets, p->n_batch);
    add_lengths(all, "kv_len", p->kv_len, p->n_batch);
    add_lengths(all, "q_len", p->q_len, p->n_batch);
    add_lengths(all, "prefix_len", p->prefix_len, p->n_batch);
    add_lengths(all, "cu_seqlens_q", p->cu_q, p->n_batch + 1);
    add_lengths(all, "cu_seqlens_k", p->cu_k, p->n_batch + 1);
    add_heads(all, "alibi_slopes", p->alibi_slopes, p->n_heads);
    add_heads(all, "sinks", p->sinks, p->n_heads);
    add_segments(all, "seg_q", p->seg_q, p->n_batch, p->seg_q_stride, p->len_q);
    add_segments(all, "seg_k", p->seg_k, p->n_batch, p->seg_k_stride, p->len_k);
    if (p->block_len) {
        const int64_t *const strides = p->block_offsets_stride;
        const int64_t n_rows = qkvi_ceil_div(p->len_q, p->block_len) + 1;
        const int64_t size[4] = { p->n_batch, p->n_heads, 1, n_rows };
        const int64_t stride[3] = { strides[0], strides[1], 0 };
        qkvi_arrays_add(all, "block_offsets", p->block_offsets, size, stride, false)->elem_bytes =
            sizeof *p->block_offsets;
    }
    if (!p->mask_type) return;
    const bool bits = p->mask_type == QKV_MASK_BITS;
    const int64_t size[4] = { p->n_batch, p->n_heads, p->len_q,
                              bits ? qkvi_ceil_div(p->mask_len_k, 8) : p->mask_len_k };
    qkvi_array *mask = qkvi_arrays_add(all, "mask", p->mask, size, p->mask_stride, false);
    mask->stride[3] = p->mask_stride[3];
    mask->elem_bytes = qkvi_mask_bytes(p);
}

/* What every call but decode reads. */
static void add_inputs(qkvi_arrays *all, const qkvi_problem *p) {
    const shapes s = shapes_of(p);
    add_typed(all, "q", p->q, p->dtype, s.q, p->q_stride, false);
    add_typed(all, "k", p->k, p->dtype, s.k, p->k_stride, false);
    add_typed(all, "v", p->v, p->dtype, s.v, p->v_stride, false);
    add_rules(all, p);
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
    if (p->n_batch == 1) p->block_offsets_stride[0] = 0;
    if (p->n_heads == 1) p->block_offsets_stride[1] = 0;
}

/* ---- Entrances ------------------------------------------------------------------------------- */

qkv_status qkvi_problem_shape(const qkv_attention_desc *desc, bool writes_o, qkvi_problem *p,
                              qkv_error *error) {
    qkvi_arrays all = { .count = 0 };
    QKV_TRY(qkvi_problem_read(desc, p, error));
    const shapes s = shapes_of(p);
    add_inputs(&all, p);
    add_typed(&all, "o", NULL, p->o_dtype, s.o, p->o_stride, writes_o);
    return qkvi_arrays_check(&all, false, error);
}

qkv_status qkvi_problem_forward(const qkv_attention_desc *desc, const void *q, const void *k,
                                const void *v, void *o, float *lse, const qkv_call_options *call,
                                qkvi_problem *p, qkv_error *error) {
    qkvi_arrays all = { .count = 0 };
    QKV_TRY(qkvi_problem_read(desc, p, error));
    QKV_TRY(add_workspace(&all, call, error));
    const shapes s = shapes_of(p);
    p->q = q;
    p->k = k;
    p->v = v;
    p->o = o;
    p->lse = lse;
    add_inputs(&all, p);
    add_typed(&all, "o", o, p->o_dtype, s.o, p->o_stride, true);
    if (lse) qkvi_arrays_add(&all, "lse", lse, s.lse, p->lse_stride, true);
    QKV_TRY(qkvi_arrays_check(&all, true, error));
    QKV_TRY(qkvi_blocks_check(p, &all, error));
    rest_strides(p);
    return QKV_OK;
}

/* What has no meaning for stored keys is refused by name. */
static qkv_status read_decode(const qkv_attention_desc *desc, qkvi_problem *p, qkv_error *error) {
    static const struct {
        uint32_t flag;
        const char *text;
    } refused[] = {
        { QKV_SET_CU_SEQLENS, "QKV_SET_CU_SEQLENS: decode takes sequences by n_batch and kv_len" },
        { QKV_SET_DROPOUT, "QKV_SET_DROPOUT: decode has no dropout" },
    };
    QKV_TRY(qkvi_problem_read(desc, p, error));
    for (size_t n = 0; n < sizeof refused / sizeof *refused; n++)
        if (desc->flags & refused[n].flag)
            return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "%s", refused[n].text);
    return QKV_OK;
}

qkv_status qkvi_problem_decode_shape(const qkv_attention_desc *desc, qkvi_problem *p,
                                     qkv_error *error) {
    qkvi_arrays all = { .count = 0 };
    QKV_TRY(read_decode(desc, p, error));
    const shapes s = shapes_of(p);
    add_typed(&all, "q", NULL, p->dtype, s.q, p->q_stride, false);
    add_rules(&all, p);
    add_typed(&all, "o", NULL, p->o_dtype, s.o, p->o_stride, true);
    return qkvi_arrays_check(&all, false, error);
}

qkv_status qkvi_problem_decode(const qkv_attention_desc *desc, const void *q,
                               const qkv_kv_view *view, void *o, float *lse,
                               const qkv_call_options *call, qkvi_problem *p, qkvi_kv *kv,
                               qkv_error *error) {
    qkvi_arrays all = { .count = 0 };
    QKV_TRY(read_decode(desc, p, error));
    QKV_TRY(add_workspace(&all, call, error));
    const shapes s = shapes_of(p);
    p->q = q;
    p->o = o;
    p->lse = lse;
    add_typed(&all, "q", p->q, p->dtype, s.q, p->q_stride, false);
    QKV_TRY(qkvi_kv_read(view, p, &all, kv, error));
    add_rules(&all, p);
    add_typed(&all, "o", o, p->o_dtype, s.o, p->o_stride, true);
    if (lse) qkvi_arrays_add(&all, "lse", lse, s.lse, p->lse_stride, true);
    QKV_TRY(qkvi_arrays_check(&all, true, error));
    QKV_TRY(qkvi_blocks_check(p, &all, error));
    memset(p->k_stride, 0, sizeof p->k_stride);
    memset(p->v_stride, 0, sizeof p->v_stride);
    rest_strides(p);
    return qkvi_kv_check(kv, p, error);
}

/* The gradient of the mask has its shape, but one element in dimensions that are summed. */
static qkv_status add_d_mask(qkvi_arrays *all, const qkvi_problem *p,
                             const qkv_attention_grads *grads, qkvi_grads *out, qkv_error *error) {
    const int64_t len_k = p->mask_repeats ? 1 : p->mask_len_k;
    const int64_t shape[4] = { p->n_batch, p->n_heads, p->len_q, len_k };
    if (!grads->d_mask) return QKV_OK;
    if (!qkvi_adds(p))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "d_mask is set without an additive mask");
    out->d_mask = grads->d_mask;
    for (int n = 0; n < 4; n++) {
        out->d_mask_stride[n] = grads->d_mask_stride[n];
        out->d_mask_size[n] = grads->d_mask_stride[n] || !shape[n] ? shape[n] : 1;
    }
    qkvi_array *a =
        qkvi_arrays_add(all, "d_mask", grads->d_mask, out->d_mask_size, grads->d_mask_stride, true);
    a->stride[3] = grads->d_mask_stride[3];
    rest(out->d_mask_size, out->d_mask_stride, 4);
    return QKV_OK;
}

qkv_status qkvi_problem_backward(const qkv_attention_desc *desc, const void *q, const void *k,
                                 const void *v, const void *o, const float *lse,
                                 const qkv_attention_grads *given, const qkv_call_options *call,
                                 qkvi_problem *p, qkvi_grads *out, qkv_error *error) {
    qkvi_arrays all = { .count = 0 };
    qkv_attention_grads copy;
    const qkv_attention_grads *grads = &copy;
    QKV_TRY(qkvi_problem_read(desc, p, error));
    if (!given) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "grads is NULL");
    QKV_TRY(qkvi_options_read(&copy, sizeof copy, given, "grads", error));
    QKV_TRY(add_workspace(&all, call, error));
    const shapes s = shapes_of(p);
    p->q = q;
    p->k = k;
    p->v = v;
    p->o = (void *)(uintptr_t)o; /* read only in backward */
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
    QKV_TRY(qkvi_check_packed_stride(p, "d_o", grads->d_o_stride, error));
    QKV_TRY(qkvi_check_packed_stride(p, "d_q", grads->d_q_stride, error));
    QKV_TRY(qkvi_check_packed_stride(p, "d_k", grads->d_k_stride, error));
    QKV_TRY(qkvi_check_packed_stride(p, "d_v", grads->d_v_stride, error));
    add_inputs(&all, p);
    add_typed(&all, "o", o, p->o_dtype, s.o, p->o_stride, false);
    qkvi_arrays_add(&all, "lse", lse, s.lse, p->lse_stride, false);
    add_typed(&all, "d_o", grads->d_o, p->o_dtype, s.o, grads->d_o_stride, false);
    if (grads->d_lse) qkvi_arrays_add(&all, "d_lse", grads->d_lse, s.lse, p->lse_stride, false);
    add_typed(&all, "d_q", grads->d_q, p->dtype, s.q, grads->d_q_stride, true);
    add_typed(&all, "d_k", grads->d_k, p->dtype, s.k, grads->d_k_stride, true);
    add_typed(&all, "d_v", grads->d_v, p->dtype, s.v, grads->d_v_stride, true);
    if (grads->d_sinks) {
        const int64_t size[4] = { 1, 1, 1, p->n_heads }, stride[3] = { 0 };
        if (!p->sinks && p->n_heads)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "d_sinks is set without QKV_SET_SINKS");
        qkvi_arrays_add(&all, "d_sinks", grads->d_sinks, size, stride, true);
    }
    QKV_TRY(add_d_mask(&all, p, grads, out, error));
    QKV_TRY(qkvi_arrays_check(&all, true, error));
    QKV_TRY(qkvi_blocks_check(p, &all, error));
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
    add_typed(&all, "o", p->o, p->o_dtype, s.o, p->o_stride, true);
    if (p->lse) qkvi_arrays_add(&all, "lse", p->lse, s.lse, p->lse_stride, true);
    qkvi_array *part = qkvi_arrays_add(&all, o_name, o_part, s.o, p->o_stride, false);
    part->elem_bytes = qkvi_dtype_bytes(p->o_dtype);
    part->twin = p->o;
    qkvi_arrays_add(&all, lse_name, lse_part, s.lse, p->lse_stride, false)->twin = p->lse;
    return qkvi_arrays_check(&all, true, error);
}

qkv_status qkvi_problem_merge(const qkv_attention_desc *desc, int n_parts,
                              const void *const *o_parts, const float *const *lse_parts, void *o,
                              float *lse, qkvi_problem *p, qkv_error *error) {
    QKV_TRY(qkvi_problem_read(desc, p, error));
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
