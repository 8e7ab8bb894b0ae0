/* See call_arrays.h. */
#include "attn/call_arrays.h"

#include <inttypes.h>

#include "attn/sequence.h"
#include "core/ints.h"
#include "core/status.h"

static void add_lengths(qkvi_arrays *all, const char *name, const int64_t *data, int64_t n) {
    const int64_t size[4] = { 1, 1, 1, n }, stride[3] = { 0 };
    if (!data) return;
    qkvi_arrays_add(all, name, data, size, stride, false)->elem_bytes = sizeof *data;
}

void qkvi_add_heads(qkvi_arrays *all, const char *name, const float *data, int64_t n, bool output) {
    const int64_t size[4] = { 1, 1, 1, n }, stride[3] = { 0 };
    if (data) qkvi_arrays_add(all, name, data, size, stride, output);
}

static void add_distances(qkvi_arrays *all, const qkvi_problem *p) {
    const int64_t size[4] = { 1, 1, p->n_heads, qkvi_distances(p) };
    const int64_t stride[3] = { 0, 0, p->distance_bias_stride };
    if (!p->distance_bias) return;
    qkvi_arrays_add(all, "distance_bias", p->distance_bias, size, stride, false);
}

static void add_segments(qkvi_arrays *all, const char *name, const int32_t *data, int64_t n_batch,
                         int64_t stride, int64_t len) {
    const int64_t size[4] = { n_batch, 1, 1, len }, strides[3] = { stride, 0, 0 };
    if (data) qkvi_arrays_add(all, name, data, size, strides, false)->elem_bytes = sizeof *data;
}

qkvi_shapes qkvi_shapes_of(const qkvi_problem *p) {
    const int64_t b = qkvi_n_arrays(p), h = p->n_heads, g = p->n_kv_heads, d = p->head_dim;
    const int64_t rows_q = qkvi_rows_q(p), rows_k = qkvi_rows_k(p);
    return (qkvi_shapes){
        .q = { b, h, rows_q, d },
        .k = { b, g, rows_k, d },
        .v = { b, g, rows_k, p->head_dim_v },
        .o = { b, h, rows_q, p->head_dim_v },
        .lse = { b, h, rows_q, 1 },
    };
}

void qkvi_add_typed(qkvi_arrays *all, const char *name, const void *data, qkv_dtype type,
                    const int64_t size[4], const int64_t stride[3], bool output) {
    qkvi_arrays_add(all, name, data, size, stride, output)->elem_bytes = qkvi_dtype_bytes(type);
}

void qkvi_add_rules(qkvi_arrays *all, const qkvi_problem *p, int64_t all_q) {
    add_lengths(all, "q_offsets", p->q_offsets, p->n_batch);
    add_lengths(all, "kv_len", p->kv_len, p->n_batch);
    add_lengths(all, "q_len", p->q_len, p->n_batch);
    add_lengths(all, "prefix_len", p->prefix_len, p->n_batch);
    add_lengths(all, "cu_seqlens_q", p->cu_q, p->n_batch + 1);
    add_lengths(all, "cu_seqlens_k", p->cu_k, p->n_batch + 1);
    qkvi_add_heads(all, "alibi_slopes", p->alibi_slopes, p->n_heads, false);
    qkvi_add_heads(all, "sinks", p->sinks, p->n_heads, false);
    add_distances(all, p);
    add_segments(all, "seg_q", p->seg_q, p->n_batch, p->seg_q_stride, p->len_q);
    add_segments(all, "seg_k", p->seg_k, p->n_batch, p->seg_k_stride, p->len_k);
    if (p->block_len) {
        const int64_t *const strides = p->block_offsets_stride;
        const int64_t n_rows = qkvi_ceil_div(all_q, p->block_len) + 1;
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

void qkvi_add_inputs(qkvi_arrays *all, const qkvi_problem *p) {
    const qkvi_shapes s = qkvi_shapes_of(p);
    qkvi_add_typed(all, "q", p->q, p->dtype, s.q, p->q_stride, false);
    qkvi_add_typed(all, "k", p->k, p->dtype, s.k, p->k_stride, false);
    qkvi_add_typed(all, "v", p->v, p->dtype, s.v, p->v_stride, false);
    qkvi_add_rules(all, p, p->len_q);
}

qkv_status qkvi_add_workspace(qkvi_arrays *all, const qkv_call_options *call, qkv_error *e) {
    if (!call || !call->workspace) return QKV_OK;
    if (call->workspace_bytes > (uint64_t)QKVI_MAX_SPAN)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "workspace_bytes = %zu is greater than %" PRId64,
                              call->workspace_bytes, QKVI_MAX_SPAN);
    qkvi_arrays_add_scratch(all, "workspace", call->workspace, (int64_t)call->workspace_bytes);
    return QKV_OK;
}

void qkvi_rest(const int64_t size[4], int64_t *stride, int n_strides) {
    const bool empty = !size[0] || !size[1] || !size[2] || !size[3];
    for (int i = 0; i < n_strides; i++)
        if (empty || size[i] == 1) stride[i] = 0;
}

void qkvi_rest_strides(qkvi_problem *p) {
    const qkvi_shapes s = qkvi_shapes_of(p);
    const int64_t mask[4] = { p->n_batch, p->n_heads, p->len_q, p->mask_len_k };
    qkvi_rest(s.q, p->q_stride, 3);
    qkvi_rest(s.k, p->k_stride, 3);
    qkvi_rest(s.v, p->v_stride, 3);
    qkvi_rest(s.o, p->o_stride, 3);
    qkvi_rest(s.lse, p->lse_stride, 3);
    qkvi_rest(s.lse, p->stats.stride, 3);
    qkvi_rest(mask, p->mask_stride, 4);
    if (p->n_batch == 1) p->block_offsets_stride[0] = 0;
    if (p->n_heads == 1) p->block_offsets_stride[1] = 0;
}
