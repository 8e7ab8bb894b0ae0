/*
 * The calls of qkv/onnx.h. A node becomes a descriptor for qkv_attention_forward, if that can
 * compute it; the loop in double (loop.h) computes all else.
 *
 *     node          descriptor
 *     past          q_offset = P, over past and new keys joined (join.h)
 *     nonpad        kv_len = nonpad, q_offsets = nonpad - Sq
 *     window        window_left, window_right
 *     short mask    mask_len_k
 * A mask of 1 or 0 keys, which a descriptor would broadcast or take as one for all keys, becomes
 * kv_len.
 */
#include <string.h>

#include "attn/explain.h"
#include "attn/forward.h"
#include "attn/problem.h"
#include "core/options.h"
#include "onnx/join.h"
#include "onnx/loop.h"

/* What a call does, and the pieces of its workspace. */
typedef struct work {
    bool by_forward, y_by_loop, qk, joins;
    int n_threads; /* of the loop; 0: none */
    qkv_attention_desc desc;
    size_t forward_bytes;
    int64_t *offsets, *lengths; /* [n_batch] */
    void *k, *v;                /* joined */
    void *forward;
    qkvi_onnx_slot *slots;
} work;

static bool has_elements(const qkv_onnx_tensor *t) {
    for (int n = 0; n < t->rank; n++)
        if (t->dims[n] == 0) return false;
    return true;
}

/* ---- The descriptor -------------------------------------------------------------------------- */

/* Does the mask hide keys in a way that only kv_len can say? */
static bool mask_is_len(const qkvi_onnx *x) { return x->mask_len < 2 && x->mask_len < x->len_k; }

static qkv_mask_type mask_type_of(qkv_onnx_type type) {
    return type == QKV_ONNX_BOOL      ? QKV_MASK_BOOL
           : type == QKV_ONNX_FLOAT   ? QKV_MASK_F32
           : type == QKV_ONNX_FLOAT16 ? QKV_MASK_F16
                                      : QKV_MASK_BF16;
}

static void describe_mask(const qkvi_onnx *x, qkv_attention_desc *d) {
    if (!x->has_mask || x->mask_len == 0) return;
    d->flags |= QKV_SET_MASK;
    d->mask = x->node.attn_mask.data;
    d->mask_type = mask_type_of(x->node.attn_mask.type);
    d->mask_len_k = x->mask_stride[3] ? x->mask_len : 1;
    memcpy(d->mask_stride, x->mask_stride, sizeof d->mask_stride);
}

static qkv_attention_desc describe(const qkvi_onnx *x) {
    qkv_attention_desc d;
    qkv_attention_desc_contiguous(&d, x->n_batch, x->n_heads, x->n_kv_heads, x->len_q, x->len_k,
                                  x->head_dim, x->head_dim_v);
    d.dtype = x->type == QKV_ONNX_FLOAT     ? QKV_F32
              : x->type == QKV_ONNX_FLOAT16 ? QKV_F16
                                            : QKV_BF16;
    d.arithmetic = x->node.arithmetic;
    memcpy(d.q_stride, x->q_stride, sizeof d.q_stride);
    memcpy(d.o_stride, x->y_stride, sizeof d.o_stride);
    if (!x->has_past) {
        memcpy(d.k_stride, x->k_stride, sizeof d.k_stride);
        memcpy(d.v_stride, x->v_stride, sizeof d.v_stride);
    }
    if (x->node.flags & QKV_ONNX_SET_SCALE) d.flags |= QKV_SET_SCALE;
    if (x->node.softcap > 0) d.flags |= QKV_SET_SOFTCAP;
    if (x->node.is_causal) d.flags |= QKV_SET_CAUSAL;
    d.scale = x->node.scale;
    d.softcap = x->node.softcap;
    d.flags |= QKV_SET_WINDOW | QKV_SET_Q_OFFSET;
    d.window_left = x->left == QKVI_NO_WINDOW ? -1 : x->left;
    d.window_right = x->right == QKVI_NO_WINDOW ? -1 : x->right;
    d.q_offset = x->len_past;
    describe_mask(x, &d);
    return d;
}

/* Lengths and offsets of each batch. */
static void fill_lists(const qkvi_onnx *x, work *w) {
    const int64_t *nonpad = x->node.nonpad_kv_seqlen.data;
    for (int64_t b = 0; w->lengths && b < x->n_batch; b++) {
        const int64_t len = x->has_nonpad ? nonpad[b] : x->len_k;
        w->offsets[b] = x->has_nonpad ? len - x->len_q : x->len_past;
        w->lengths[b] = mask_is_len(x) ? qkvi_min_i64(len, x->mask_len) : len;
    }
    if (!w->lengths) return;
    w->desc.flags |= QKV_SET_KV_LEN;
    w->desc.kv_len = w->lengths;
    w->desc.q_offsets = w->offsets;
}

/* ---- Workspace ------------------------------------------------------------------------------- */

static void lay_out(const qkvi_onnx *x, qkvi_cutter *cutter, work *w) {
    if (w->by_forward && (x->has_nonpad || mask_is_len(x))) {
        w->offsets = qkvi_cut(cutter, x->n_batch, sizeof *w->offsets);
        w->lengths = qkvi_cut(cutter, x->n_batch, sizeof *w->lengths);
    }
    if (w->joins) {
        const int64_t rows = x->n_batch * x->n_kv_heads * x->len_k;
        w->k = qkvi_cut(cutter, rows * x->head_dim, (size_t)x->type_bytes);
        w->v = qkvi_cut(cutter, rows * x->head_dim_v, (size_t)x->type_v_bytes);
    }
    if (w->by_forward) w->forward = qkvi_cut(cutter, 1, w->forward_bytes);
    if (w->n_threads) w->slots = qkvi_onnx_lay_out_loop(x, w->n_threads, cutter);
}

/* What is computed how, and in how many bytes. joins: the caller keeps no joined keys. */
static qkv_status plan(qkv_ctx *ctx, const qkvi_onnx *x, bool qk, bool joins, work *w,
                       size_t *bytes) {
    qkvi_cutter cutter = { 0 };
    const bool y = has_elements(&x->outputs.Y);
    *w = (work){ .by_forward = y && !x->y_by_loop,
                 .y_by_loop = y && x->y_by_loop,
                 .qk = qk && has_elements(&x->outputs.qk_matmul_output) };
    w->joins = w->by_forward && joins && x->has_past;
    if (w->y_by_loop || w->qk)
        w->n_threads = qkvi_onnx_loop_threads(x, qkvi_pool_threads(ctx->pool));
    if (w->by_forward) {
        qkvi_problem problem;
        qkvi_forward_plan made;
        w->desc = describe(x);
        QKV_TRY(qkvi_problem_shape(&w->desc, true, &problem, &ctx->error));
        QKV_TRY(qkvi_forward_plan_of(ctx, &problem, &made, &w->forward_bytes));
    }
    lay_out(x, &cutter, w);
    return qkvi_ctx_measured(ctx, &cutter, bytes);
}

/* ---- The call -------------------------------------------------------------------------------- */

/* Y by the kernels. present or the workspace holds the joined keys, if there is a past. */
static qkv_status forward(qkv_ctx *ctx, const qkvi_onnx *x, const qkvi_onnx_results *r,
                          const qkv_call_options *call, work *w) {
    qkvi_problem problem;
    qkv_call_options inner = *call;
    void *const joined_k = w->joins ? w->k : r->present_key;
    void *const joined_v = w->joins ? w->v : r->present_value;
    const void *const k = x->has_past ? joined_k : x->node.K.data;
    const void *const v = x->has_past ? joined_v : x->node.V.data;
    inner.workspace = w->forward;
    inner.workspace_bytes = w->forward_bytes;
    fill_lists(x, w);
    QKV_TRY(qkvi_problem_forward(&w->desc, x->node.Q.data, k, v, r->y, NULL, &inner, &problem,
                                 &ctx->error));
    if (joined_k) qkvi_onnx_join(ctx->pool, x, joined_k, joined_v);
    return qkvi_forward_run(ctx, &problem, &inner);
}

static qkv_status compute(qkv_ctx *ctx, const qkvi_onnx *x, const qkvi_onnx_results *r,
                          const qkv_call_options *call) {
    work w;
    size_t bytes = 0;
    void *block;
    QKV_TRY(plan(ctx, x, r->qk, !r->present_key, &w, &bytes));
    QKV_TRY(qkvi_ctx_workspace(ctx, call, bytes, &block));
    qkvi_cutter cutter = qkvi_cutter_on(block);
    lay_out(x, &cutter, &w);
    if (w.by_forward)
        QKV_TRY(forward(ctx, x, r, call, &w));
    else if (r->present_key)
        qkvi_onnx_join(ctx->pool, x, r->present_key, r->present_value);
    if (!w.n_threads) return QKV_OK;
    return qkvi_onnx_loop(ctx, x, w.y_by_loop ? r->y : NULL, w.qk ? r->qk : NULL, w.n_threads,
                          w.slots, call);
}

qkv_status qkv_onnx_attention(qkv_ctx *ctx, const qkv_onnx_attention_node *node, void *Y,
                              void *present_key, void *present_value, void *qk_matmul_output,
                              const qkv_call_options *call) {
    const qkvi_onnx_results results = { Y, present_key, present_value, qk_matmul_output };
    qkvi_onnx x;
    qkv_call_options options;
    QKV_TRY(qkvi_ctx_begin(ctx));
    qkv_status status = qkvi_call_read(call, &options, &ctx->error);
    if (status == QKV_OK) status = qkvi_onnx_read(node, &x, &ctx->error);
    if (status == QKV_OK) status = qkvi_onnx_check_arrays(&x, &results, &options, &ctx->error);
    if (status == QKV_OK) status = compute(ctx, &x, &results, &options);
    return qkvi_ctx_end(ctx, status);
}

qkv_status qkv_onnx_attention_workspace(qkv_ctx *ctx, const qkv_onnx_attention_node *node,
                                        size_t *bytes) {
    qkvi_onnx x;
    work w;
    QKV_TRY(qkvi_ctx_begin(ctx));
    qkv_status status = qkvi_onnx_read(node, &x, &ctx->error);
    if (status == QKV_OK && !bytes) status = qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "bytes is NULL");
    if (status == QKV_OK) status = plan(ctx, &x, true, true, &w, bytes);
    return qkvi_ctx_end(ctx, status);
}

qkv_status qkv_onnx_attention_shapes(const qkv_onnx_attention_node *node,
                                     qkv_onnx_attention_outputs *outputs, qkv_error *error) {
    qkvi_onnx x;
    qkv_onnx_attention_outputs given = { 0 };
    QKV_TRY(qkvi_onnx_read(node, &x, error));
    if (!outputs) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "outputs is NULL");
    QKV_TRY(qkvi_options_read(&given, sizeof given, outputs, "outputs", error));
    qkvi_options_write(outputs, &x.outputs, sizeof x.outputs);
    return QKV_OK;
}
