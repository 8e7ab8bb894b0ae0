/* See attention_run.h. */
#include "fuzz/attention_run.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_WORKSPACE = 8 << 20 };

bool attention_accepted(const qkv_ctx *ctx, qkv_status status) {
    qkv_error error = { .status = status };
    strncpy(error.message, qkv_ctx_message(ctx), sizeof error.message - 1);
    return fuzz_accepted(status, &error);
}

static bool wants_d_mask(const attention_case *c) {
    return c->wants_d_mask && c->desc.flags & QKV_SET_MASK && c->desc.mask_type == QKV_MASK_F32;
}

/* The mask's shape, one element where the gradient is summed. */
static bool plan_d_mask(const attention_case *c, attention_run *x) {
    const qkv_attention_desc *d = &c->desc;
    const int64_t *stride = c->grads.d_mask_stride;
    int64_t size[4] = { d->n_batch, d->n_heads, d->len_q,
                        d->mask_len_k ? d->mask_len_k : d->len_k };
    for (int n = 0; n < 4; n++)
        if (stride[n] == 0 && size[n] > 0) size[n] = 1;
    return attention_array_plan(size, stride, stride[3], sizeof(float), &x->a[D_MASK]);
}

static size_t mask_bytes(const qkv_attention_desc *d) {
    return d->mask_type == QKV_MASK_F32                                    ? sizeof(float)
           : d->mask_type == QKV_MASK_BF16 || d->mask_type == QKV_MASK_F16 ? 2
                                                                           : 1;
}

static bool plan_arrays(const attention_case *c, attention_run *x) {
    const qkv_attention_desc *d = &c->desc;
    const qkv_attention_grads *g = &c->grads;
    const size_t f = sizeof(float);
    const qkv_dtype o_type = d->flags & QKV_SET_O_DTYPE ? d->o_dtype : d->dtype;
    const int64_t b = d->n_batch, h = d->n_heads, arrays = attention_packed(c) ? 1 : b;
    const int64_t rows_q = attention_rows(c, false), rows_k = attention_rows(c, true);
    const int64_t q[4] = { arrays, h, rows_q, d->head_dim };
    const int64_t o[4] = { arrays, h, rows_q, d->head_dim_v };
    const int64_t k[4] = { arrays, d->n_kv_heads, rows_k, d->head_dim };
    const int64_t v[4] = { arrays, d->n_kv_heads, rows_k, d->head_dim_v };
    const int64_t lse[4] = { arrays, h, rows_q, 1 };
    const int64_t mask_len = d->mask_len_k > 1 ? d->mask_len_k : d->len_k;
    const bool bits = d->mask_type == QKV_MASK_BITS;
    const int64_t mask[4] = { b, h, d->len_q, bits ? mask_len / 8 + (mask_len % 8 > 0) : mask_len };
    const int64_t heads[4] = { 1, 1, 1, h }, seg_q[4] = { b, 1, 1, d->len_q };
    const int64_t seg_k[4] = { b, 1, 1, d->len_k }, none[3] = { 0 };
    const int64_t seg_q_stride[3] = { d->seg_q_stride }, seg_k_stride[3] = { d->seg_k_stride };
    return (!wants_d_mask(c) || plan_d_mask(c, x)) &&
           attention_array_plan(heads, none, 1, f, &x->a[SLOPES]) &&
           attention_array_plan(heads, none, 1, f, &x->a[SINKS]) &&
           attention_array_plan(heads, none, 1, f, &x->a[D_SINKS]) &&
           attention_array_plan(seg_q, seg_q_stride, 1, sizeof(int32_t), &x->a[SEG_Q]) &&
           attention_array_plan(seg_k, seg_k_stride, 1, sizeof(int32_t), &x->a[SEG_K]) &&
           attention_array_plan_typed(q, d->q_stride, d->dtype, &x->a[Q]) &&
           attention_array_plan_typed(k, d->k_stride, d->dtype, &x->a[K]) &&
           attention_array_plan_typed(v, d->v_stride, d->dtype, &x->a[V]) &&
           attention_array_plan_typed(o, g->d_o_stride, o_type, &x->a[D_O]) &&
           attention_array_plan(lse, d->lse_stride, 1, f, &x->a[D_LSE]) &&
           attention_array_plan(mask, d->mask_stride, d->mask_len_k == 1 ? 0 : d->mask_stride[3],
                                mask_bytes(d), &x->a[MASK]) &&
           attention_array_plan_typed(o, d->o_stride, o_type, &x->a[O]) &&
           attention_array_plan(lse, d->lse_stride, 1, f, &x->a[LSE]) &&
           attention_array_plan_typed(o, d->o_stride, o_type, &x->a[MERGED_O]) &&
           attention_array_plan(lse, d->lse_stride, 1, f, &x->a[MERGED_LSE]) &&
           attention_array_plan_typed(o, d->o_stride, o_type, &x->a[DECODED_O]) &&
           attention_array_plan(lse, d->lse_stride, 1, f, &x->a[DECODED_LSE]) &&
           attention_array_plan_typed(q, g->d_q_stride, d->dtype, &x->a[D_Q]) &&
           attention_array_plan_typed(k, g->d_k_stride, d->dtype, &x->a[D_K]) &&
           attention_array_plan_typed(v, g->d_v_stride, d->dtype, &x->a[D_V]);
}

static void fill_arrays(const attention_case *c, attention_run *x) {
    for (int i = 0; i < N_ARRAYS; i++) {
        attention_array_alloc(&x->a[i], c->shift);
        if (i == SEG_Q || i == SEG_K)
            attention_array_fill_segments(&x->a[i], c->seed + (uint64_t)i);
        else if (i == PAGES || i == FIRST)
            continue;
        else if (i < O)
            attention_array_fill(&x->a[i], c->style, c->seed + (uint64_t)i);
        else
            attention_array_clear(&x->a[i], i < MERGED_O ? 0xa5 : 0x5a);
    }
    attention_view_fill(c, &x->a[PAGES], &x->a[FIRST]);
}

qkv_call_options attention_with_workspace(size_t n_bytes) {
    qkv_call_options call = qkv_call_options_init();
    FUZZ_CHECK(posix_memalign(&call.workspace, 64, n_bytes ? n_bytes : 1) == 0);
    call.workspace_bytes = n_bytes;
    memset(call.workspace, 0xff, n_bytes); /* nothing may be expected of it */
    return call;
}

/* The descriptor with its arrays. */
static qkv_attention_desc described(const attention_case *c, const attention_run *x) {
    qkv_attention_desc desc = c->desc;
    desc.mask = x->a[MASK].data;
    desc.alibi_slopes = x->a[SLOPES].data;
    desc.sinks = x->a[SINKS].data;
    desc.seg_q = x->a[SEG_Q].data;
    desc.seg_k = x->a[SEG_K].data;
    return desc;
}

static void compute(qkv_ctx *ctx, const attention_case *c, const size_t workspace[2],
                    attention_run *x) {
    const qkv_attention_desc desc = described(c, x);
    const void *const q = x->a[Q].data, *const k = x->a[K].data, *const v = x->a[V].data;
    void *const o = x->a[O].data;
    float *const lse = x->a[LSE].data;
    qkv_call_options call = attention_with_workspace(workspace[0]);
    x->forward = qkv_attention_forward(ctx, &desc, q, k, v, o, c->wants_lse ? lse : NULL, &call);
    free(call.workspace);
    x->backward = x->forward;
    if (!attention_accepted(ctx, x->forward) || !c->wants_lse) return;
    qkv_attention_grads grads = c->grads;
    grads.d_o = x->a[D_O].data;
    grads.d_lse = c->wants_d_lse ? x->a[D_LSE].data : NULL;
    grads.d_q = x->a[D_Q].data;
    grads.d_k = x->a[D_K].data;
    grads.d_v = x->a[D_V].data;
    grads.d_sinks = c->wants_d_sinks ? x->a[D_SINKS].data : NULL;
    grads.d_mask = wants_d_mask(c) ? x->a[D_MASK].data : NULL;
    call = attention_with_workspace(workspace[1]);
    x->backward = qkv_attention_backward(ctx, &desc, q, k, v, o, lse, &grads, &call);
    free(call.workspace);
    attention_accepted(ctx, x->backward);
}

/* The output with itself, and what the caller had left in rows that it did not ask for. */
static void merge(qkv_ctx *ctx, const attention_case *c, attention_run *x) {
    const void *const o[] = { x->a[O].data, x->a[O].data };
    const float *const lse[] = { x->a[LSE].data, x->a[LSE].data };
    x->merge =
        qkv_attention_merge(ctx, &c->desc, 2, o, lse, x->a[MERGED_O].data, x->a[MERGED_LSE].data);
    attention_accepted(ctx, x->merge);
}

/*
 * Over the case's view, mostly without its dropout: that is refused, and so are packed sequences.
 */
static void decode(qkv_ctx *ctx, const attention_case *c, attention_run *x) {
    qkv_attention_desc desc = described(c, x);
    if (c->seed % 8) desc.flags &= ~(uint32_t)QKV_SET_DROPOUT;
    const bool refused = desc.flags & (QKV_SET_DROPOUT | QKV_SET_CU_SEQLENS);
    size_t workspace = 0;
    const qkv_status status = qkv_attention_decode_workspace(ctx, &desc, &workspace);
    FUZZ_CHECK(attention_accepted(ctx, status) == !refused);
    if (!x->decodes) return;
    qkv_kv_view view = c->view;
    view.k = x->a[VIEW_K].data;
    view.v = x->a[VIEW_V].data;
    view.k_scale = x->a[K_SCALE].data;
    view.v_scale = x->a[V_SCALE].data;
    view.pages = x->a[PAGES].data;
    view.first = c->has_first ? x->a[FIRST].data : NULL;
    const qkv_call_options call = attention_with_workspace(workspace);
    x->decode = qkv_attention_decode(ctx, &desc, x->a[Q].data, &view, x->a[DECODED_O].data,
                                     c->wants_lse ? x->a[DECODED_LSE].data : NULL, &call);
    free(call.workspace);
    FUZZ_CHECK(!attention_accepted(ctx, x->decode) || !refused);
    if (c->plain_view && !refused) FUZZ_CHECK(x->decode == x->forward);
}

static void columns(qkv_ctx *ctx, const attention_case *c, attention_run *x) {
    const qkv_attention_desc desc = described(c, x);
    x->has_columns = attention_columns_run(ctx, c, &desc, x->a[Q].data, x->a[K].data,
                                           x->a[LSE].data, &x->columns);
}

/* What a run wrote, and what it left alone. */
static void check_run(const attention_case *c, const attention_run *x) {
    static const int64_t none[CASE_MOST_BATCHES];
    const int64_t *const rows = c->desc.flags & QKV_SET_Q_LEN ? c->q_len : NULL;
    const bool forward = x->forward == QKV_OK, backward = c->wants_lse && x->backward == QKV_OK;
    /* Strides of lse and lists of blocks: no workspace depends on them. */
    const bool blocks = c->desc.flags & QKV_SET_BLOCK_MASK;
    FUZZ_CHECK(forward || x->forward == QKV_ERR_STRIDE || (blocks && x->forward == QKV_ERR_SHAPE));
    const int64_t *const packed_q = attention_packed(c) ? c->cu_q : NULL;
    const int64_t *const packed_k = attention_packed(c) ? c->cu_k : NULL;
    const int64_t n = c->desc.n_batch;
    const int64_t *const all = forward ? rows : none, *const back = backward ? rows : none;
    const int64_t *const keys = backward ? NULL : none;
    attention_array_check(&x->a[O], packed_q, n, all);
    attention_array_check(&x->a[LSE], packed_q, n, c->wants_lse ? all : none);
    attention_array_check(&x->a[D_Q], packed_q, n, back);
    attention_array_check(&x->a[D_K], packed_k, n, keys);
    attention_array_check(&x->a[D_V], packed_k, n, keys);
    attention_array_check(&x->a[D_SINKS], NULL, 1, backward && c->wants_d_sinks ? NULL : none);
    attention_array_check(&x->a[D_MASK], NULL, n, backward && wants_d_mask(c) ? NULL : none);
    attention_array_check(&x->a[MERGED_O], NULL, n, x->merge == QKV_OK ? NULL : none);
    attention_array_check(&x->a[MERGED_LSE], NULL, n, x->merge == QKV_OK ? NULL : none);
    const int64_t *const decoded = x->decodes && x->decode == QKV_OK ? rows : none;
    attention_array_check(&x->a[DECODED_O], packed_q, n, decoded);
    attention_array_check(&x->a[DECODED_LSE], packed_q, n, c->wants_lse ? decoded : none);
}

void attention_run_free(attention_run *x) {
    for (int i = 0; i < N_ARRAYS; i++) attention_array_free(&x->a[i]);
    attention_columns_free(&x->columns);
}

bool attention_run_on(qkv_ctx *ctx, const attention_case *c, attention_run *x) {
    size_t workspace[2];
    memset(x, 0, sizeof *x);
    FUZZ_CHECK(qkv_attention_workspace(ctx, &c->desc, &workspace[0]) == QKV_OK);
    FUZZ_CHECK(qkv_attention_backward_workspace(ctx, &c->desc, &workspace[1]) == QKV_OK);
    if (workspace[0] > MOST_WORKSPACE || workspace[1] > MOST_WORKSPACE || !plan_arrays(c, x))
        return false;
    x->decodes = attention_view_plan(c, &x->a[VIEW_K], &x->a[VIEW_V], &x->a[K_SCALE],
                                     &x->a[V_SCALE], &x->a[PAGES], &x->a[FIRST]);
    fill_arrays(c, x);
    compute(ctx, c, workspace, x);
    merge(ctx, c, x);
    decode(ctx, c, x);
    columns(ctx, c, x);
    check_run(c, x);
    return true;
}

void attention_run_compare(const attention_run *x, const attention_run *y) {
    FUZZ_CHECK(x->forward == y->forward && x->backward == y->backward);
    FUZZ_CHECK(x->merge == y->merge && x->decode == y->decode);
    for (int i = O; i < N_ARRAYS; i++) FUZZ_CHECK(attention_array_same(&x->a[i], &y->a[i]));
    if (x->has_columns && y->has_columns) attention_columns_compare(&x->columns, &y->columns);
}
