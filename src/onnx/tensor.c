/* See tensor.h. */
#include "onnx/tensor.h"

#include <inttypes.h>
#include <stdio.h>

#include "attn/desc.h"
#include "core/alloc.h"

const char *qkvi_onnx_shape_text(const qkv_onnx_tensor *t, char text[QKVI_ONNX_SHAPE_BYTES]) {
    int at = 0;
    text[0] = 0;
    for (int n = 0; t->rank <= QKV_ONNX_MAX_RANK && n < t->rank; n++)
        at +=
            snprintf(text + at, (size_t)(QKVI_ONNX_SHAPE_BYTES - at), "[%" PRId64 "]", t->dims[n]);
    return text;
}

qkv_status qkvi_onnx_check_sizes(const char *name, const qkv_onnx_tensor *t, qkv_error *e) {
    char shape[QKVI_ONNX_SHAPE_BYTES];
    int64_t product = 1;
    if (t->rank < 0 || t->rank > QKV_ONNX_MAX_RANK)
        return qkvi_error_set(e, QKV_ERR_SHAPE, "%s.rank = %d is not in [0, %d]", name, t->rank,
                              QKV_ONNX_MAX_RANK);
    for (int n = 0; n < t->rank; n++)
        if (t->dims[n] < 0 || t->dims[n] > QKVI_MAX_SIZE)
            return qkvi_error_set(e, QKV_ERR_SHAPE,
                                  "%s.dims[%d] = %" PRId64 " is not in [0, %" PRId64 "]", name, n,
                                  t->dims[n], QKVI_MAX_SIZE);
    for (int n = 0; n < t->rank; n++)
        if (t->dims[n] > 0 &&
            (!qkvi_mul_i64(product, t->dims[n], &product) || product > QKVI_ONNX_MAX_ELEMENTS))
            return qkvi_error_set(e, QKV_ERR_SHAPE,
                                  "%s has the shape %s: more than %" PRId64 " elements", name,
                                  qkvi_onnx_shape_text(t, shape), QKVI_ONNX_MAX_ELEMENTS);
    return QKV_OK;
}

qkv_status qkvi_onnx_check_dim(const char *name, const qkv_onnx_tensor *t, int n, int64_t wanted,
                               const char *what, qkv_error *e) {
    char shape[QKVI_ONNX_SHAPE_BYTES];
    if (t->dims[n] == wanted) return QKV_OK;
    return qkvi_error_set(e, QKV_ERR_SHAPE,
                          "%s has the shape %s: dims[%d] = %" PRId64 " is not %" PRId64 ", %s",
                          name, qkvi_onnx_shape_text(t, shape), n, t->dims[n], wanted, what);
}
