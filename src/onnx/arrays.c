/*
 * Checks of the arrays of a call, by attn/arrays.h with ONNX's names; then of the values of
 * nonpad_kv_seqlen.
 */
#include <inttypes.h>
#include <string.h>

#include "attn/call_arrays.h"
#include "onnx/shapes.h"
#include "onnx/tensor.h"

/* As rank 4, with 1 in front. */
static void add(qkvi_arrays *all, const char *name, const qkv_onnx_tensor *t, const void *data,
                bool output) {
    int64_t size[4] = { 1, 1, 1, 1 }, stride[3] = { 0 }, step = 1;
    for (int n = 0; n < t->rank; n++) size[4 - t->rank + n] = t->dims[n];
    for (int n = 3; n >= 0; n--) {
        if (n < 3) stride[n] = step;
        if (size[n] > 0) step *= size[n];
    }
    qkvi_arrays_add(all, name, data, size, stride, output)->elem_bytes =
        qkvi_onnx_type_of(t->type)->bytes;
}

static void add_inputs(qkvi_arrays *all, const qkvi_onnx *x) {
    const qkv_onnx_attention_node *n = &x->node;
    add(all, "Q", &n->Q, n->Q.data, false);
    add(all, "K", &n->K, n->K.data, false);
    add(all, "V", &n->V, n->V.data, false);
    if (x->has_mask) add(all, "attn_mask", &n->attn_mask, n->attn_mask.data, false);
    if (x->has_past) add(all, "past_key", &n->past_key, n->past_key.data, false);
    if (x->has_past) add(all, "past_value", &n->past_value, n->past_value.data, false);
    if (x->has_nonpad)
        add(all, "nonpad_kv_seqlen", &n->nonpad_kv_seqlen, n->nonpad_kv_seqlen.data, false);
}

static void add_outputs(qkvi_arrays *all, const qkvi_onnx *x, const qkvi_onnx_results *r) {
    const qkv_onnx_attention_outputs *o = &x->outputs;
    add(all, "Y", &o->Y, r->y, true);
    if (r->present_key) add(all, "present_key", &o->present_key, r->present_key, true);
    if (r->present_value) add(all, "present_value", &o->present_value, r->present_value, true);
    if (r->qk) add(all, "qk_matmul_output", &o->qk_matmul_output, r->qk, true);
}

static qkv_status check_lengths(const qkvi_onnx *x, qkv_error *e) {
    const int64_t *lengths = x->node.nonpad_kv_seqlen.data;
    for (int64_t b = 0; x->has_nonpad && b < x->n_batch; b++)
        if (lengths[b] < 0 || lengths[b] > x->len_k)
            return qkvi_error_set(e, QKV_ERR_SHAPE,
                                  "nonpad_kv_seqlen[%" PRId64 "] = %" PRId64
                                  " is not in [0, %" PRId64 "], the keys of K",
                                  b, lengths[b], x->len_k);
    return QKV_OK;
}

qkv_status qkvi_onnx_check_arrays(const qkvi_onnx *x, const qkvi_onnx_results *r,
                                  const qkv_call_options *call, qkv_error *e) {
    qkvi_arrays all = { .count = 0 };
    if (!r->present_key != !r->present_value)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "%s is NULL, and %s is not",
                              r->present_key ? "present_value" : "present_key",
                              r->present_key ? "present_key" : "present_value");
    if (r->present_key && x->has_nonpad && x->node.opset >= QKVI_ONNX_STRICT)
        return qkvi_error_set(
            e, QKV_ERR_ARGUMENT,
            "present_key is asked for, and nonpad_kv_seqlen is given: opset %d does "
            "not allow both",
            x->node.opset);
    QKV_TRY(qkvi_add_workspace(&all, call, e));
    add_inputs(&all, x);
    add_outputs(&all, x, r);
    QKV_TRY(qkvi_arrays_check(&all, true, e));
    return check_lengths(x, e);
}
