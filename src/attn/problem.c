/*
 * One entrance for each kind of call (problem.h): after desc.c has read the descriptor, all arrays
 * of the call are listed (call_arrays.h) for arrays.c to check against each other.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "attn/blocks.h"
#include "attn/call_arrays.h"
#include "attn/desc_packed.h"
#include "attn/kv_view.h"
#include "attn/mask.h"
#include "attn/problem.h"
#include "attn/stats.h"
#include "core/options.h"

static qkv_status refuse_stats(const qkvi_problem *p, qkv_error *error) {
    if (!p->has_stats) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                          "QKV_SET_STATS: backward has no statistics; forward and decode have");
}

/* ---- Forward, decode ------------------------------------------------------------------------- */

qkv_status qkvi_problem_shape(const qkv_attention_desc *desc, bool writes_o, qkvi_problem *p,
                              qkv_error *error) {
    qkvi_arrays all = { .count = 0 };
    QKV_TRY(qkvi_problem_read(desc, p, error));
    const qkvi_shapes s = qkvi_shapes_of(p);
    if (!writes_o) QKV_TRY(refuse_stats(p, error));
    qkvi_add_inputs(&all, p);
    qkvi_add_typed(&all, "o", NULL, p->o_dtype, s.o, p->o_stride, writes_o);
    qkvi_stats_arrays(p, &all);
    return qkvi_arrays_check(&all, false, error);
}

qkv_status qkvi_problem_forward(const qkv_attention_desc *desc, const void *q, const void *k,
                                const void *v, void *o, float *lse, const qkv_call_options *call,
                                qkvi_problem *p, qkv_error *error) {
    qkvi_arrays all = { .count = 0 };
    QKV_TRY(qkvi_problem_read(desc, p, error));
    QKV_TRY(qkvi_add_workspace(&all, call, error));
    const qkvi_shapes s = qkvi_shapes_of(p);
    p->q = q;
    p->k = k;
    p->v = v;
    p->o = o;
    p->lse = lse;
    qkvi_add_inputs(&all, p);
    qkvi_add_typed(&all, "o", o, p->o_dtype, s.o, p->o_stride, true);
    if (lse) qkvi_arrays_add(&all, "lse", lse, s.lse, p->lse_stride, true);
    qkvi_stats_arrays(p, &all);
    QKV_TRY(qkvi_arrays_check(&all, true, error));
    QKV_TRY(qkvi_blocks_check(p, p->len_q, &all, error));
    qkvi_rest_strides(p);
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
    const qkvi_shapes s = qkvi_shapes_of(p);
    qkvi_add_typed(&all, "q", NULL, p->dtype, s.q, p->q_stride, false);
    qkvi_add_rules(&all, p, p->len_q);
    qkvi_add_typed(&all, "o", NULL, p->o_dtype, s.o, p->o_stride, true);
    qkvi_stats_arrays(p, &all);
    return qkvi_arrays_check(&all, false, error);
}

qkv_status qkvi_problem_decode(const qkv_attention_desc *desc, const void *q,
                               const qkv_kv_view *view, void *o, float *lse,
                               const qkv_call_options *call, qkvi_problem *p, qkvi_kv *kv,
                               qkv_error *error) {
    qkvi_arrays all = { .count = 0 };
    QKV_TRY(read_decode(desc, p, error));
    QKV_TRY(qkvi_add_workspace(&all, call, error));
    const qkvi_shapes s = qkvi_shapes_of(p);
    p->q = q;
    p->o = o;
    p->lse = lse;
    qkvi_add_typed(&all, "q", p->q, p->dtype, s.q, p->q_stride, false);
    QKV_TRY(qkvi_kv_read(view, p, &all, kv, error));
    qkvi_add_rules(&all, p, p->len_q);
    qkvi_add_typed(&all, "o", o, p->o_dtype, s.o, p->o_stride, true);
    if (lse) qkvi_arrays_add(&all, "lse", lse, s.lse, p->lse_stride, true);
    qkvi_stats_arrays(p, &all);
    QKV_TRY(qkvi_arrays_check(&all, true, error));
    QKV_TRY(qkvi_blocks_check(p, p->len_q, &all, error));
    memset(p->k_stride, 0, sizeof p->k_stride);
    memset(p->v_stride, 0, sizeof p->v_stride);
    qkvi_rest_strides(p);
    return qkvi_kv_check(kv, p, error);
}

/* ---- Backward -------------------------------------------------------------------------------- */

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
    qkvi_rest(out->d_mask_size, out->d_mask_stride, 4);
    return QKV_OK;
}

static qkv_status add_d_distance_bias(qkvi_arrays *all, const qkvi_problem *p,
                                      const qkv_attention_grads *grads, qkvi_grads *out,
                                      qkv_error *error) {
    const int64_t step = grads->d_distance_bias_stride;
    if (!grads->d_distance_bias) return QKV_OK;
    if (!p->distance_bias && p->n_heads)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "d_distance_bias is set without QKV_SET_DISTANCE_BIAS");
    if (step < 0)
        return qkvi_error_set(error, QKV_ERR_STRIDE,
                              "d_distance_bias_stride = %" PRId64 " is negative", step);
    out->d_distance_bias = grads->d_distance_bias;
    out->d_distance_bias_stride = step;
    out->d_distance_rows = step ? p->n_heads : qkvi_min_i64(p->n_heads, 1);
    const int64_t size[4] = { 1, 1, out->d_distance_rows, qkvi_distances(p) };
    const int64_t stride[3] = { 0, 0, step };
    qkvi_arrays_add(all, "d_distance_bias", grads->d_distance_bias, size, stride, true);
    return QKV_OK;
}

/* Pointers and strides; packed sequences have no stride of the batch. */
static qkv_status read_grads(const qkv_attention_grads *grads, const qkvi_problem *p,
                             qkvi_grads *out, qkv_error *error) {
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
    return qkvi_check_packed_stride(p, "d_v", grads->d_v_stride, error);
}

static qkv_status add_grads(qkvi_arrays *all, const qkvi_problem *p, const qkvi_shapes *s,
                            const qkv_attention_grads *grads, qkvi_grads *out, qkv_error *error) {
    qkvi_add_typed(all, "d_o", grads->d_o, p->o_dtype, s->o, grads->d_o_stride, false);
    if (grads->d_lse) qkvi_arrays_add(all, "d_lse", grads->d_lse, s->lse, p->lse_stride, false);
    qkvi_add_typed(all, "d_q", grads->d_q, p->dtype, s->q, grads->d_q_stride, true);
    qkvi_add_typed(all, "d_k", grads->d_k, p->dtype, s->k, grads->d_k_stride, true);
    qkvi_add_typed(all, "d_v", grads->d_v, p->dtype, s->v, grads->d_v_stride, true);
    if (grads->d_sinks && !p->sinks && p->n_heads)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "d_sinks is set without QKV_SET_SINKS");
    qkvi_add_heads(all, "d_sinks", grads->d_sinks, p->n_heads, true);
    QKV_TRY(add_d_mask(all, p, grads, out, error));
    return add_d_distance_bias(all, p, grads, out, error);
}

qkv_status qkvi_problem_backward_of(const qkvi_backward_call *x, qkvi_problem *p, qkvi_grads *out,
                                    qkv_error *error) {
    qkvi_arrays all = { .count = 0 };
    qkv_attention_grads grads = { 0 };
    qkvi_shapes s = qkvi_shapes_of(p);
    s.k[2] = s.v[2] = x->rows_k;
    QKV_TRY(refuse_stats(p, error));
    if (!x->grads) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "grads is NULL");
    QKV_TRY(qkvi_options_read(&grads, sizeof grads, x->grads, "grads", error));
    QKV_TRY(qkvi_add_workspace(&all, x->call, error));
    QKV_TRY(read_grads(&grads, p, out, error));
    p->q = x->q;
    p->k = x->k;
    p->v = x->v;
    p->o = (void *)(uintptr_t)x->o; /* read only in backward */
    p->lse = (float *)(uintptr_t)x->lse;
    qkvi_add_typed(&all, "q", p->q, p->dtype, s.q, p->q_stride, false);
    qkvi_add_typed(&all, "k", p->k, p->dtype, s.k, p->k_stride, false);
    qkvi_add_typed(&all, "v", p->v, p->dtype, s.v, p->v_stride, false);
    qkvi_add_rules(&all, p, x->all_q);
    qkvi_add_typed(&all, "o", x->o, p->o_dtype, s.o, p->o_stride, false);
    qkvi_arrays_add(&all, "lse", x->lse, s.lse, p->lse_stride, false);
    QKV_TRY(add_grads(&all, p, &s, &grads, out, error));
    QKV_TRY(qkvi_arrays_check(&all, true, error));
    QKV_TRY(qkvi_blocks_check(p, x->all_q, &all, error));
    qkvi_rest_strides(p);
    qkvi_rest(s.k, p->k_stride, 3);
    qkvi_rest(s.v, p->v_stride, 3);
    qkvi_rest(s.o, out->d_o_stride, 3);
    qkvi_rest(s.q, out->d_q_stride, 3);
    qkvi_rest(s.k, out->d_k_stride, 3);
    qkvi_rest(s.v, out->d_v_stride, 3);
    return QKV_OK;
}

qkv_status qkvi_problem_backward(const qkv_attention_desc *desc, const void *q, const void *k,
                                 const void *v, const void *o, const float *lse,
                                 const qkv_attention_grads *grads, const qkv_call_options *call,
                                 qkvi_problem *p, qkvi_grads *out, qkv_error *error) {
    qkvi_backward_call x = { .q = q, .k = k, .v = v, .o = o, .lse = lse, .grads = grads };
    QKV_TRY(qkvi_problem_read(desc, p, error));
    x.call = call;
    x.rows_k = qkvi_rows_k(p);
    x.all_q = p->len_q;
    return qkvi_problem_backward_of(&x, p, out, error);
}

/* ---- Merge ----------------------------------------------------------------------------------- */

/*
 * One part against the outputs. Only an array of its own kind, at the same address, may be shared.
 */
static qkv_status check_part(const qkvi_problem *p, int n, const void *o_part,
                             const float *lse_part, qkv_error *error) {
    qkvi_arrays all = { .count = 0 };
    const qkvi_shapes s = qkvi_shapes_of(p);
    char o_name[32], lse_name[32];
    snprintf(o_name, sizeof o_name, "o_parts[%d]", n);
    snprintf(lse_name, sizeof lse_name, "lse_parts[%d]", n);
    qkvi_add_typed(&all, "o", p->o, p->o_dtype, s.o, p->o_stride, true);
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
    qkvi_rest_strides(p);
    return QKV_OK;
}

qkv_status qkvi_call_read(const qkv_call_options *given, qkv_call_options *call, qkv_error *error) {
    *call = qkv_call_options_init();
    return given ? qkvi_options_read(call, sizeof *call, given, "call", error) : QKV_OK;
}

qkv_status qkvi_batch_read(const qkv_attention_desc *desc, int64_t b, qkvi_batch *batch,
                           qkv_error *error) {
    qkvi_problem p;
    QKV_TRY(qkvi_problem_read(desc, &p, error));
    if (b < 0 || b >= p.n_batch)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "b = %" PRId64 " is not in [0, %" PRId64 ")",
                              b, p.n_batch);
    const qkvi_rules rules = qkvi_rules_of(&p, b);
    *batch = (qkvi_batch){ rules.n_queries, qkvi_len_k(&p, b), rules.offset };
    return QKV_OK;
}
