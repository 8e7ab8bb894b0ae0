/* See types.h. */
#include "onnx/types.h"

#include <assert.h>
#include <math.h>

#include "core/half.h"

const qkvi_onnx_type_row *qkvi_onnx_type_of(int64_t type) {
    static const qkvi_onnx_type_row rows[] = {
        [QKV_ONNX_FLOAT] = { "FLOAT", 4, true },       [QKV_ONNX_UINT8] = { "UINT8", 1, false },
        [QKV_ONNX_INT8] = { "INT8", 1, false },        [QKV_ONNX_UINT16] = { "UINT16", 2, false },
        [QKV_ONNX_INT16] = { "INT16", 2, false },      [QKV_ONNX_INT32] = { "INT32", 4, false },
        [QKV_ONNX_INT64] = { "INT64", 8, false },      [QKV_ONNX_BOOL] = { "BOOL", 1, false },
        [QKV_ONNX_FLOAT16] = { "FLOAT16", 2, true },   [QKV_ONNX_DOUBLE] = { "DOUBLE", 8, true },
        [QKV_ONNX_UINT32] = { "UINT32", 4, false },    [QKV_ONNX_UINT64] = { "UINT64", 8, false },
        [QKV_ONNX_BFLOAT16] = { "BFLOAT16", 2, true },
    };
    if (type < 0 || type >= (int64_t)(sizeof rows / sizeof *rows) || !rows[type].name) return NULL;
    return &rows[type];
}

#define LOAD_AS(c_type, value)                                                                     \
    for (int64_t i = 0; i < n; i++) {                                                              \
        const c_type x = ((const c_type *)data)[at + i];                                           \
        to[i] = (double)(value);                                                                   \
    }                                                                                              \
    return

void qkvi_onnx_load(qkv_onnx_type type, const void *data, int64_t at, int64_t n, double *to) {
    switch (type) {
    case QKV_ONNX_FLOAT: LOAD_AS(float, x);
    case QKV_ONNX_DOUBLE: LOAD_AS(double, x);
    case QKV_ONNX_FLOAT16: LOAD_AS(uint16_t, qkvi_f32_of_f16(x));
    case QKV_ONNX_BFLOAT16: LOAD_AS(uint16_t, qkvi_f32_of_bf16(x));
    case QKV_ONNX_BOOL: LOAD_AS(uint8_t, x != 0);
    case QKV_ONNX_UINT8: LOAD_AS(uint8_t, x);
    case QKV_ONNX_INT8: LOAD_AS(int8_t, x);
    case QKV_ONNX_UINT16: LOAD_AS(uint16_t, x);
    case QKV_ONNX_INT16: LOAD_AS(int16_t, x);
    case QKV_ONNX_UINT32: LOAD_AS(uint32_t, x);
    case QKV_ONNX_INT32: LOAD_AS(int32_t, x);
    case QKV_ONNX_UINT64: LOAD_AS(uint64_t, x);
    case QKV_ONNX_INT64: LOAD_AS(int64_t, x);
    case QKV_ONNX_UNDEFINED: break;
    }
    assert(false);
}

/*
 * The float beside x that has an odd fraction, if x is none itself. Rounding it to 16 bits gives
 * what rounding x gives: it lies on the same side of every number of 16 bits and of every tie
 * between two.
 */
static float to_odd(double x) {
    const float nearest = (float)x;
    if (isnan(x) || (double)nearest == x) return nearest;
    uint32_t bits = qkvi_bits_of_float(nearest);
    if (fabs((double)nearest) > fabs(x)) bits--;
    return qkvi_float_of_bits(bits | 1);
}

void qkvi_onnx_store(qkv_onnx_type type, void *data, int64_t at, int64_t n, const double *from) {
    for (int64_t i = 0; i < n; i++) {
        if (type == QKV_ONNX_DOUBLE)
            ((double *)data)[at + i] = from[i];
        else if (type == QKV_ONNX_FLOAT)
            ((float *)data)[at + i] = (float)from[i];
        else if (type == QKV_ONNX_FLOAT16)
            ((uint16_t *)data)[at + i] = qkvi_f16_of_f32(to_odd(from[i]));
        else
            ((uint16_t *)data)[at + i] = qkvi_bf16_of_f32(to_odd(from[i]));
    }
}
