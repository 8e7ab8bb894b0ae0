/*
 * Shapes of a node, and strides of its arrays. Q, K and V of rank 3 become rank 4 by strides; the
 * mask is broadcast by strides of 0.
 */
#include "onnx/shapes.h"

#include <inttypes.h>
#include <math.h>

#include "core/ints.h"
#include "onnx/tensor.h"

/* ---- Shapes ---------------------------------------------------------------------------------- */

/* Rank 4, as it lies. */
static qkv_status read_four(qkvi_onnx *x, qkv_error *e) {
    const qkv_onnx_attention_node *n = &x->node;
    const struct {
        const char *name;
        int64_t given, heads;
        const char *of;
    } heads[] = { { "q_num_heads", n->q_num_heads, n->Q.dims[1], "Q" },
                  { "kv_num_heads", n->kv_num_heads, n->K.dims[1], "K" } };
    for (int i = 0; i < 2; i++) {
        if (heads[i].given && n->opset >= QKVI_ONNX_STRICT)
            return qkvi_error_set(
                e, QKV_ERR_ARGUMENT,
                "%s = %" PRId64 " is given, but Q, K and V have rank 4: opset %d does not allow it",
                heads[i].name, heads[i].given, n->opset);
        if (heads[i].given && heads[i].given != heads[i].heads)
            return qkvi_error_set(e, QKV_ERR_SHAPE, "%s = %" PRId64 " is not %s.dims[1] = %" PRId64,
                                  heads[i].name, heads[i].given, heads[i].of, heads[i].heads);
    }
    QKV_TRY(qkvi_onnx_check_dim("V", &n->V, 1, n->K.dims[1], "the heads of K", e));
    x->n_heads = n->Q.dims[1];
    x->n_kv_heads = n->K.dims[1];
    x->len_q = n->Q.dims[2];
    x->len_new = n->K.dims[2];
    x->head_dim = n->Q.dims[3];
    x->head_dim_v = n->V.dims[3];
    QKV_TRY(qkvi_onnx_check_dim("V", &n->V, 2, x->len_new, "the keys of K", e));
    return qkvi_onnx_check_dim("K", &n->K, 3, x->head_dim, "the head size of Q", e);
}

static qkv_status split(const char *name, const qkv_onnx_tensor *t, const char *heads, int64_t n,
                        int64_t *size, qkv_error *e) {
    if (n < 1 || n > QKVI_MAX_SIZE)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT,
                              "%s = %" PRId64 " is not in [1, %" PRId64 "], and %s has rank 3",
                              heads, n, QKVI_MAX_SIZE, name);
    if (t->dims[2] % n != 0)
        return qkvi_error_set(e, QKV_ERR_SHAPE,
                              "%s.dims[2] = %" PRId64 " is not a multiple of %s = %" PRId64, name,
                              t->dims[2], heads, n);
    *size = t->dims[2] / n;
    return QKV_OK;
}

/* Rank 3: heads are the major part of the last dimension. */
static qkv_status read_three(qkvi_onnx *x, qkv_error *e) {
    const qkv_onnx_attention_node *n = &x->node;
    int64_t dim_k = 0;
    QKV_TRY(split("Q", &n->Q, "q_num_heads", n->q_num_heads, &x->head_dim, e));
    QKV_TRY(split("K", &n->K, "kv_num_heads", n->kv_num_heads, &dim_k, e));
    QKV_TRY(split("V", &n->V, "kv_num_heads", n->kv_num_heads, &x->head_dim_v, e));
    x->n_heads = n->q_num_heads;
    x->n_kv_heads = n->kv_num_heads;
    x->len_q = n->Q.dims[1];
    x->len_new = n->K.dims[1];
    if (dim_k != x->head_dim)
        return qkvi_error_set(e, QKV_ERR_SHAPE,
                              "K.dims[2] / kv_num_heads = %" PRId64
                              " is not Q.dims[2] / q_num_heads = %" PRId64,
                              dim_k, x->head_dim);
    return qkvi_onnx_check_dim("V", &n->V, 1, x->len_new, "the keys of K", e);
}

static qkv_status read_past(qkvi_onnx *x, qkv_error *e) {
    const qkv_onnx_attention_node *n = &x->node;
    const struct {
        const char *name;
        const qkv_onnx_tensor *t;
        int64_t dim;
    } list[] = { { "past_key", &n->past_key, x->head_dim },
                 { "past_value", &n->past_value, x->head_dim_v } };
    x->len_past = n->past_key.dims[2];
    for (int i = 0; i < 2; i++) {
        QKV_TRY(qkvi_onnx_check_sizes(list[i].name, list[i].t, e));
        if (list[i].t->rank != 4)
            return qkvi_error_set(e, QKV_ERR_SHAPE, "%s.rank = %d is not 4", list[i].name,
                                  list[i].t->rank);
        QKV_TRY(qkvi_onnx_check_dim(list[i].name, list[i].t, 0, x->n_batch, "the batch of Q", e));
        QKV_TRY(
            qkvi_onnx_check_dim(list[i].name, list[i].t, 1, x->n_kv_heads, "the heads of K", e));
        QKV_TRY(qkvi_onnx_check_dim(list[i].name, list[i].t, 2, x->len_past, "the keys of past_key",
                                    e));
        QKV_TRY(qkvi_onnx_check_dim(list[i].name, list[i].t, 3, list[i].dim, "the head size", e));
    }
    return QKV_OK;
}

/* Broadcasting counts dimensions from the right; n is that of [batch][heads][queries][keys]. */
static qkv_status read_mask_dim(qkvi_onnx *x, int n, int64_t full, int64_t stride, qkv_error *e) {
    const qkv_onnx_tensor *t = &x->node.attn_mask;
    const int at = n - (4 - t->rank);
    char shape[QKVI_ONNX_SHAPE_BYTES];
    if (at < 0) return QKV_OK;
    const bool key = n == 3, shorter = key && x->node.opset >= QKVI_ONNX_LENGTHS;
    const int64_t size = t->dims[at];
    if (size == full || (shorter && size < full)) {
        x->mask_stride[n] = size == 1 ? 0 : stride;
        if (key) x->mask_len = size;
        return QKV_OK;
    }
    if (size == 1) return QKV_OK;
    return qkvi_error_set(e, QKV_ERR_SHAPE,
                          "attn_mask has the shape %s: dims[%d] = %" PRId64
                          " is neither 1 nor %" PRId64 ", the %s%s",
                          qkvi_onnx_shape_text(t, shape), at, size, full,
                          (const char *const[]){ "batch", "heads of Q", "queries", "keys" }[n],
                          key && size < full ? "; opset 23 has no shorter masks" : "");
}

static qkv_status read_mask(qkvi_onnx *x, qkv_error *e) {
    const int64_t full[4] = { x->n_batch, x->n_heads, x->len_q, x->len_k };
    const qkv_onnx_tensor *t = &x->node.attn_mask;
    int64_t stride = 1;
    x->mask_len = x->len_k;
    if (!x->has_mask) return QKV_OK;
    QKV_TRY(qkvi_onnx_check_sizes("attn_mask", t, e));
    for (int n = 3; n >= 0; n--) {
        const int at = n - (4 - t->rank);
        QKV_TRY(read_mask_dim(x, n, full[n], stride, e));
        if (at >= 0) stride *= qkvi_max_i64(t->dims[at], 1);
    }
    return QKV_OK;
}

static qkv_status read_shapes(qkvi_onnx *x, qkv_error *e) {
    const qkv_onnx_attention_node *n = &x->node;
    QKV_TRY(qkvi_onnx_check_sizes("Q", &n->Q, e));
    QKV_TRY(qkvi_onnx_check_sizes("K", &n->K, e));
    QKV_TRY(qkvi_onnx_check_sizes("V", &n->V, e));
    if (n->Q.rank != 3 && n->Q.rank != 4)
        return qkvi_error_set(e, QKV_ERR_SHAPE, "Q.rank = %d is neither 3 nor 4", n->Q.rank);
    if (n->K.rank != n->Q.rank || n->V.rank != n->Q.rank)
        return qkvi_error_set(e, QKV_ERR_SHAPE, "%s.rank = %d is not Q.rank = %d",
                              n->K.rank != n->Q.rank ? "K" : "V",
                              n->K.rank != n->Q.rank ? n->K.rank : n->V.rank, n->Q.rank);
    x->n_batch = n->Q.dims[0];
    QKV_TRY(qkvi_onnx_check_dim("K", &n->K, 0, x->n_batch, "the batch of Q", e));
    QKV_TRY(qkvi_onnx_check_dim("V", &n->V, 0, x->n_batch, "the batch of Q", e));
    QKV_TRY(n->Q.rank == 4 ? read_four(x, e) : read_three(x, e));
    if (x->n_kv_heads ? x->n_heads % x->n_kv_heads != 0 : x->n_heads != 0)
        return qkvi_error_set(e, QKV_ERR_SHAPE,
                              "%" PRId64 " heads of Q are not a multiple of %" PRId64 " heads of K",
                              x->n_heads, x->n_kv_heads);
    if (x->head_dim > QKVI_MAX_HEAD_DIM || x->head_dim_v > QKVI_MAX_HEAD_DIM)
        return qkvi_error_set(
            e, QKV_ERR_SHAPE, "the head size of %s, %" PRId64 ", is greater than %" PRId64,
            x->head_dim > QKVI_MAX_HEAD_DIM ? "Q" : "V",
            x->head_dim > QKVI_MAX_HEAD_DIM ? x->head_dim : x->head_dim_v, QKVI_MAX_HEAD_DIM);
    if (x->has_past) QKV_TRY(read_past(x, e));
    x->len_k = x->len_past + x->len_new;
    QKV_TRY(read_mask(x, e));
    if (!x->has_nonpad) return QKV_OK;
    QKV_TRY(qkvi_onnx_check_sizes("nonpad_kv_seqlen", &n->nonpad_kv_seqlen, e));
    if (n->nonpad_kv_seqlen.rank != 1)
        return qkvi_error_set(e, QKV_ERR_SHAPE, "nonpad_kv_seqlen.rank = %d is not 1",
                              n->nonpad_kv_seqlen.rank);
    return qkvi_onnx_check_dim("nonpad_kv_seqlen", &n->nonpad_kv_seqlen, 0, x->n_batch,
                               "the batch of Q", e);
}

/* ---- Layout ---------------------------------------------------------------------------------- */

/* Of [batch][heads][tokens][dim], or with rank 3 of [batch][tokens][heads dim]. */
static void fill_strides(int rank, int64_t heads, int64_t tokens, int64_t dim, int64_t stride[3]) {
    stride[0] = heads * tokens * dim;
    stride[1] = rank == 4 ? tokens * dim : dim;
    stride[2] = rank == 4 ? dim : heads * dim;
}

static qkv_onnx_tensor tensor4(qkv_onnx_type type, int64_t a, int64_t b, int64_t c, int64_t d) {
    return (qkv_onnx_tensor){ .type = type, .rank = 4, .dims = { a, b, c, d } };
}

static qkv_status fill_outputs(qkvi_onnx *x, qkv_error *e) {
    qkv_onnx_attention_outputs *o = &x->outputs;
    *o = qkv_onnx_attention_outputs_init();
    o->Y = tensor4(x->type, x->n_batch, x->n_heads, x->len_q, x->head_dim_v);
    o->present_key = tensor4(x->type, x->n_batch, x->n_kv_heads, x->len_k, x->head_dim);
    o->present_value = tensor4(x->type_v, x->n_batch, x->n_kv_heads, x->len_k, x->head_dim_v);
    o->qk_matmul_output = tensor4(x->type, x->n_batch, x->n_heads, x->len_q, x->len_k);
    QKV_TRY(qkvi_onnx_check_sizes("Y", &o->Y, e));
    QKV_TRY(qkvi_onnx_check_sizes("present_key", &o->present_key, e));
    QKV_TRY(qkvi_onnx_check_sizes("present_value", &o->present_value, e));
    QKV_TRY(qkvi_onnx_check_sizes("qk_matmul_output", &o->qk_matmul_output, e));
    if (x->node.Q.rank == 3)
        o->Y = (qkv_onnx_tensor){ .type = x->type,
                                  .rank = 3,
                                  .dims = { x->n_batch, x->len_q, x->n_heads * x->head_dim_v } };
    return QKV_OK;
}

/* Products fit: those of dimensions above 0 were checked, and a product with a 0 is 0. */
static void fill_layout(qkvi_onnx *x) {
    const int rank = x->node.Q.rank;
    fill_strides(rank, x->n_heads, x->len_q, x->head_dim, x->q_stride);
    fill_strides(rank, x->n_kv_heads, x->len_new, x->head_dim, x->k_stride);
    fill_strides(rank, x->n_kv_heads, x->len_new, x->head_dim_v, x->v_stride);
    fill_strides(rank, x->n_heads, x->len_q, x->head_dim_v, x->y_stride);
    fill_strides(4, x->n_kv_heads, x->len_past, x->head_dim, x->past_k_stride);
    fill_strides(4, x->n_kv_heads, x->len_past, x->head_dim_v, x->past_v_stride);
    x->scale = x->head_dim ? 1 / sqrt((double)x->head_dim) : 1;
    if (x->node.flags & QKV_ONNX_SET_SCALE) x->scale = (double)x->node.scale;
}

qkv_status qkvi_onnx_read_shapes(qkvi_onnx *x, qkv_error *e) {
    QKV_TRY(read_shapes(x, e));
    QKV_TRY(fill_outputs(x, e));
    fill_layout(x);
    return QKV_OK;
}
