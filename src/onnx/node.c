/*
 * From a node to a qkvi_onnx: checks attributes and types, then shapes (shapes.c). The first
 * failure is reported. arrays.c checks the arrays.
 */
#include "onnx/node.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "attn/mask.h"
#include "core/options.h"
#include "kernels/class.h"
#include "onnx/shapes.h"

enum { FIRST_OPSET = 23, LAST_OPSET = 28 };

static bool is_there(const qkv_onnx_tensor *t) { return t->type != QKV_ONNX_UNDEFINED; }

/* ---- Attributes ------------------------------------------------------------------------------ */

static qkv_status from_opset(const qkv_onnx_attention_node *n, const char *name, int first,
                             qkv_error *e) {
    if (n->opset >= first) return QKV_OK;
    return qkvi_error_set(e, QKV_ERR_ARGUMENT,
                          "%s is given, but opset = %d is less than %d, the first "
                          "that has it",
                          name, n->opset, first);
}

static qkv_status check_range(const char *name, int64_t value, int64_t least, int64_t most,
                              qkv_error *e) {
    if (value >= least && value <= most) return QKV_OK;
    return qkvi_error_set(e, QKV_ERR_ARGUMENT,
                          "%s = %" PRId64 " is not in [%" PRId64 ", %" PRId64 "]", name, value,
                          least, most);
}

static qkv_status read_window(const qkv_onnx_attention_node *n, uint32_t flag, const char *name,
                              int64_t size, int64_t *to, qkv_error *e) {
    *to = QKVI_NO_WINDOW;
    if (!(n->flags & flag)) return QKV_OK;
    QKV_TRY(from_opset(n, name, QKVI_ONNX_WINDOWS, e));
    if (size < -1)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "%s = %" PRId64 " is less than -1 (unbounded)",
                              name, size);
    if (size >= 0) *to = qkvi_min_i64(size, QKVI_NO_WINDOW);
    return QKV_OK;
}

static qkv_status check_opset(const qkv_onnx_attention_node *n, qkv_error *e) {
    if (n->opset < FIRST_OPSET)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT,
                              "opset = %d is less than %d, the first that has Attention", n->opset,
                              FIRST_OPSET);
    if (n->opset > LAST_OPSET)
        return qkvi_error_set(e, QKV_ERR_UNSUPPORTED,
                              "opset = %d is greater than %d, the last that is known here",
                              n->opset, LAST_OPSET);
    return QKV_OK;
}

static qkv_status read_attributes(qkvi_onnx *x, qkv_error *e) {
    const qkv_onnx_attention_node *n = &x->node;
    QKV_TRY(check_opset(n, e));
    QKV_TRY(check_range("is_causal", n->is_causal, 0, 1, e));
    QKV_TRY(check_range("qk_matmul_output_mode", n->qk_matmul_output_mode, 0, 3, e));
    const qkvi_onnx_type_row *softmax = qkvi_onnx_type_of(n->softmax_precision);
    if (n->softmax_precision != QKV_ONNX_UNDEFINED && (!softmax || !softmax->is_float))
        return qkvi_error_set(e, QKV_ERR_ARGUMENT,
                              "softmax_precision = %" PRId64
                              " is none of 1 (FLOAT), 10 (FLOAT16), 11 (DOUBLE), 16 (BFLOAT16)",
                              n->softmax_precision);
    if (n->flags & QKV_ONNX_SET_SCALE && !isfinite(n->scale))
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "scale = %g is not finite", (double)n->scale);
    if (!(n->softcap >= 0) || !isfinite(n->softcap))
        return qkvi_error_set(e, QKV_ERR_ARGUMENT,
                              "softcap = %g is neither 0 nor a finite number above it",
                              (double)n->softcap);
    if (n->arithmetic != QKV_CLASS_AUTO && !qkvi_class_given(n->arithmetic))
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "arithmetic = %d is none of " QKVI_GIVEN_NAMES,
                              (int)n->arithmetic);
    QKV_TRY(read_window(n, QKV_ONNX_SET_LEFT_WINDOW_SIZE, "left_window_size", n->left_window_size,
                        &x->left, e));
    return read_window(n, QKV_ONNX_SET_RIGHT_WINDOW_SIZE, "right_window_size", n->right_window_size,
                       &x->right, e);
}

/* ---- Types ----------------------------------------------------------------------------------- */

static qkv_status check_type(const char *name, const qkv_onnx_tensor *t, bool any, qkv_error *e) {
    const qkvi_onnx_type_row *row = qkvi_onnx_type_of(t->type);
    if (!is_there(t)) return qkvi_error_set(e, QKV_ERR_ARGUMENT, "%s is missing", name);
    if (row && (any || row->is_float)) return QKV_OK;
    return qkvi_error_set(e, QKV_ERR_DTYPE, "%s.type = %d%s%s is none of %s", name, (int)t->type,
                          row ? " " : "", row ? row->name : "",
                          any ? "the types of a mask"
                              : "1 FLOAT, 10 FLOAT16, 11 DOUBLE, 16 BFLOAT16");
}

static qkv_status check_same(const char *name, const qkv_onnx_tensor *t, const char *other,
                             qkv_onnx_type type, qkv_error *e) {
    QKV_TRY(check_type(name, t, true, e));
    if (t->type == type) return QKV_OK;
    return qkvi_error_set(e, QKV_ERR_DTYPE,
                          "%s.type is %s, and that of %s is %s: they must be the same", name,
                          qkvi_onnx_type_of(t->type)->name, other, qkvi_onnx_type_of(type)->name);
}

static qkv_status check_cache(const qkvi_onnx *x, qkv_error *e) {
    const qkv_onnx_attention_node *n = &x->node;
    if (is_there(&n->past_key) != is_there(&n->past_value))
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "%s is given without %s",
                              is_there(&n->past_key) ? "past_key" : "past_value",
                              is_there(&n->past_key) ? "past_value" : "past_key");
    if (!x->has_nonpad) return QKV_OK;
    QKV_TRY(from_opset(n, "nonpad_kv_seqlen", QKVI_ONNX_LENGTHS, e));
    if (x->has_past)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT,
                              "nonpad_kv_seqlen is given together with past_key");
    if (n->nonpad_kv_seqlen.type == QKV_ONNX_INT64) return QKV_OK;
    return qkvi_error_set(e, QKV_ERR_DTYPE, "nonpad_kv_seqlen.type = %d is not 7 INT64",
                          (int)n->nonpad_kv_seqlen.type);
}

static qkv_status read_types(qkvi_onnx *x, qkv_error *e) {
    const qkv_onnx_attention_node *n = &x->node;
    x->has_past = is_there(&n->past_key);
    x->has_nonpad = is_there(&n->nonpad_kv_seqlen);
    x->has_mask = is_there(&n->attn_mask);
    QKV_TRY(check_type("Q", &n->Q, false, e));
    QKV_TRY(check_type("K", &n->K, false, e));
    QKV_TRY(check_same("K", &n->K, "Q", n->Q.type, e));
    QKV_TRY(check_type("V", &n->V, false, e));
    QKV_TRY(check_cache(x, e));
    if (x->has_past) {
        QKV_TRY(check_same("past_key", &n->past_key, "K", n->K.type, e));
        QKV_TRY(check_same("past_value", &n->past_value, "V", n->V.type, e));
    }
    if (x->has_mask) QKV_TRY(check_type("attn_mask", &n->attn_mask, true, e));
    x->type = n->Q.type;
    x->type_v = n->V.type;
    x->type_bytes = qkvi_onnx_type_of(x->type)->bytes;
    x->type_v_bytes = qkvi_onnx_type_of(x->type_v)->bytes;
    const bool mask_fits =
        !x->has_mask || n->attn_mask.type == QKV_ONNX_BOOL ||
        (qkvi_onnx_type_of(n->attn_mask.type)->is_float && n->attn_mask.type != QKV_ONNX_DOUBLE);
    x->y_by_loop = x->type != x->type_v || x->type == QKV_ONNX_DOUBLE || !mask_fits ||
                   n->softmax_precision == QKV_ONNX_DOUBLE;
    if (n->arithmetic != QKV_CLASS_AUTO && n->arithmetic != QKV_CLASS_F32 &&
        (x->y_by_loop || x->type != QKV_ONNX_BFLOAT16))
        return qkvi_error_set(
            e, QKV_ERR_UNSUPPORTED,
            "arithmetic = %s needs BFLOAT16 tensors, and a softmax_precision other "
            "than DOUBLE",
            qkvi_class_given(n->arithmetic)->given_name);
    return QKV_OK;
}

qkv_status qkvi_onnx_read(const qkv_onnx_attention_node *given, qkvi_onnx *x, qkv_error *e) {
    const uint32_t known =
        QKV_ONNX_SET_SCALE | QKV_ONNX_SET_LEFT_WINDOW_SIZE | QKV_ONNX_SET_RIGHT_WINDOW_SIZE;
    memset(x, 0, sizeof *x);
    if (!given) return qkvi_error_set(e, QKV_ERR_ARGUMENT, "node is NULL");
    QKV_TRY(qkvi_options_read(&x->node, sizeof x->node, given, "node", e));
    if (x->node.flags & ~known)
        return qkvi_error_set(e, QKV_ERR_VERSION, "flags = 0x%x has the unknown bits 0x%x",
                              (unsigned)x->node.flags, (unsigned)(x->node.flags & ~known));
    QKV_TRY(read_attributes(x, e));
    QKV_TRY(read_types(x, e));
    return qkvi_onnx_read_shapes(x, e);
}
