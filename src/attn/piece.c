/* See piece.h. */
#include "attn/piece.h"

#include <inttypes.h>

#include "attn/blocks.h"
#include "attn/call_arrays.h"
#include "attn/plan.h"
#include "attn/problem.h"
#include "attn/stats.h"
#include "core/options.h"

qkv_status qkvi_piece_read(const qkv_attention_desc *desc, const qkvi_piece *piece, qkvi_problem *p,
                           qkv_error *error) {
    qkv_attention_desc whole = { 0 };
    if (!desc) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "desc is NULL");
    QKV_TRY(qkvi_options_read(&whole, sizeof whole, desc, "desc", error));
    if (whole.flags & QKV_SET_CU_SEQLENS)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "QKV_SET_CU_SEQLENS: sequences in pieces cannot be packed");
    static const int32_t none;
    if (piece->len_q == 0 && !whole.seg_q) whole.seg_q = &none; /* no element of it is here */
    whole.struct_size = sizeof whole;
    whole.len_q = piece->all_q;
    whole.len_k = piece->all_k;
    return qkvi_problem_read(&whole, p, error);
}

qkv_status qkvi_problem_piece(const qkv_attention_desc *desc, const qkvi_piece *piece,
                              const void *q, const void *k, const void *v, void *o, float *lse,
                              qkvi_problem *p, qkv_error *error) {
    qkvi_arrays all = { .count = 0 };
    QKV_TRY(qkvi_piece_read(desc, piece, p, error));
    p->len_q = piece->len_q;
    qkvi_shapes s = qkvi_shapes_of(p);
    s.k[2] = s.v[2] = piece->len_k;
    p->q = q;
    p->k = k;
    p->v = v;
    p->o = o;
    p->lse = lse;
    qkvi_add_typed(&all, "q", q, p->dtype, s.q, p->q_stride, false);
    qkvi_add_typed(&all, "k", k, p->dtype, s.k, p->k_stride, false);
    qkvi_add_typed(&all, "v", v, p->dtype, s.v, p->v_stride, false);
    qkvi_add_rules(&all, p, piece->all_q);
    qkvi_add_typed(&all, "o", o, p->o_dtype, s.o, p->o_stride, true);
    if (lse) qkvi_arrays_add(&all, "lse", lse, s.lse, p->lse_stride, true);
    qkvi_stats_arrays(p, &all);
    QKV_TRY(qkvi_arrays_check(&all, true, error));
    QKV_TRY(qkvi_blocks_check(p, piece->all_q, &all, error));
    qkvi_rest_strides(p);
    qkvi_rest(s.k, p->k_stride, 3);
    qkvi_rest(s.v, p->v_stride, 3);
    p->first_q = piece->first_q;
    p->first_k = piece->first_k;
    return QKV_OK;
}

qkv_status qkvi_problem_piece_shape(const qkv_attention_desc *desc, const qkvi_piece *piece,
                                    qkvi_problem *p, qkv_error *error) {
    QKV_TRY(qkvi_piece_read(desc, piece, p, error));
    p->len_q = piece->len_q;
    qkvi_rest_strides(p);
    p->first_q = piece->first_q;
    p->first_k = piece->first_k;
    return QKV_OK;
}

qkv_status qkvi_problem_backward_piece(const qkv_attention_desc *desc, const qkvi_piece *piece,
                                       qkvi_backward_call *call, qkvi_problem *p, qkvi_grads *grads,
                                       qkv_error *error) {
    QKV_TRY(qkvi_piece_read(desc, piece, p, error));
    p->len_q = piece->len_q;
    call->rows_k = piece->len_k;
    call->all_q = piece->all_q;
    QKV_TRY(qkvi_problem_backward_of(call, p, grads, error));
    if (grads->d_mask)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "d_mask: sequences in pieces have no gradient of a mask");
    if (grads->d_distance_bias)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "d_distance_bias: sequences in pieces have no gradient of a distance "
                              "bias");
    p->first_q = piece->first_q;
    p->first_k = piece->first_k;
    return QKV_OK;
}

/* Keys are looked up in groups of 16, which must lie in one page. */
static qkv_status check_place(const qkvi_kv *kv, const qkvi_piece *piece, qkv_error *error) {
    if (kv->place.ring_len)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "view.ring_len: keys in pieces lie in no ring");
    if (kv->place.page_len && piece->len_k && piece->first_k % QKVI_DECODE_GROUP)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "the keys begin at %" PRId64 ", which is no multiple of %d: keys in "
                              "pages must",
                              piece->first_k, QKVI_DECODE_GROUP);
    return QKV_OK;
}

qkv_status qkvi_problem_decode_piece(const qkv_attention_desc *desc, const qkvi_piece *piece,
                                     const void *q, const qkv_kv_view *view, void *o, float *lse,
                                     qkvi_problem *p, qkvi_kv *kv, qkv_error *error) {
    qkvi_arrays all = { .count = 0 };
    QKV_TRY(qkvi_piece_read(desc, piece, p, error));
    if (desc->flags & QKV_SET_DROPOUT)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "QKV_SET_DROPOUT: decode has no dropout");
    const qkvi_shapes s = qkvi_shapes_of(p);
    p->q = q;
    p->o = o;
    p->lse = lse;
    qkvi_add_typed(&all, "q", p->q, p->dtype, s.q, p->q_stride, false);
    p->len_k = piece->len_k;
    QKV_TRY(qkvi_kv_read(view, p, &all, kv, error));
    p->len_k = piece->all_k;
    qkvi_add_rules(&all, p, p->len_q);
    qkvi_add_typed(&all, "o", o, p->o_dtype, s.o, p->o_stride, true);
    if (lse) qkvi_arrays_add(&all, "lse", lse, s.lse, p->lse_stride, true);
    qkvi_stats_arrays(p, &all);
    QKV_TRY(qkvi_arrays_check(&all, true, error));
    QKV_TRY(qkvi_blocks_check(p, p->len_q, &all, error));
    QKV_TRY(check_place(kv, piece, error));
    memset(p->k_stride, 0, sizeof p->k_stride);
    memset(p->v_stride, 0, sizeof p->v_stride);
    qkvi_rest_strides(p);
    kv->place.first = piece->first_k;
    kv->end = piece->first_k + piece->len_k;
    return qkvi_kv_check(kv, p, error);
}

qkvi_problem qkvi_problem_rows(const qkvi_problem *p, int64_t begin, int64_t end) {
    qkvi_problem rows = *p;
    rows.q = qkvi_elem(p->q, p->dtype, begin * p->q_stride[2]);
    rows.o = qkvi_elem(p->o, p->o_dtype, begin * p->o_stride[2]);
    if (p->lse) rows.lse = p->lse + begin * p->lse_stride[2];
    if (p->seg_q) rows.seg_q = p->seg_q + begin;
    if (p->mask_type) rows.mask = qkvi_mask_row(p, 0, 0, begin);
    if (p->has_stats) qkvi_stats_take_rows(&rows, begin);
    rows.first_q = p->first_q + begin;
    rows.len_q = end - begin;
    return rows;
}

qkv_class qkvi_problem_class(const qkvi_problem *p, const qkv_ctx *ctx) {
    return qkvi_classes[qkvi_arithmetic_of(p, ctx)].given;
}

void qkvi_problem_choose_gradients(qkvi_problem *p, const qkv_ctx *ctx) {
    p->grads_dp = qkvi_backward_arithmetic_of(p, ctx) == QKVI_CLASS_DP;
}
