/*
 * Packing and conversion: the only place where rows and columns end in the middle of a vector, the
 * only one that could read too far, and the only one that knows element types. Reads nothing but
 * the rows and channels it is told of; everything else in a panel is zero.
 *
 * Every function has the element type as its first parameter, a constant: one is compiled for each.
 */
#ifndef QKVI_TMPL_PACK_H
#define QKVI_TMPL_PACK_H

#include <stdbool.h>

#include "core/half.h"

V_INLINE bool pack_sees(const uint32_t *see, int64_t i) {
    return !see || see[i / 32] >> i % 32 & 1;
}

/* ---- Elements by type ------------------------------------------------------------------------ */

V_INLINE const void *pack_at(const qkv_dtype type, const void *x, int64_t elems) {
    return (const char *)x + elems * qkvi_dtype_bytes(type);
}

V_INLINE void *pack_to(const qkv_dtype type, void *y, int64_t elems) {
    return (char *)y + elems * qkvi_dtype_bytes(type);
}

/* n <= 16 elements from x on, zeros beyond them. */
V_INLINE vf pack_load(const qkv_dtype type, const void *x, int n) {
    if (type == QKV_F32) return n == 16 ? vf_loadu(x) : vf_load_n(x, n);
    if (type == QKV_BF16) return n == 16 ? vf_loadu_bf16(x) : vf_load_bf16_n(x, n);
    return n == 16 ? vf_loadu_f16(x) : vf_load_f16_n(x, n);
}

V_INLINE void pack_store(const qkv_dtype type, void *y, vf a, int n) {
    if (type == QKV_F32)
        n == 16 ? vf_storeu(y, a) : vf_store_n(y, a, n);
    else if (type == QKV_BF16)
        n == 16 ? vf_storeu_bf16(y, a) : vf_store_bf16_n(y, a, n);
    else
        n == 16 ? vf_storeu_f16(y, a) : vf_store_f16_n(y, a, n);
}

V_INLINE int pack_left(int64_t n) { return n < 16 ? (int)n : 16; }

/* ---- Panels ---------------------------------------------------------------------------------- */

/* table.h */
V_INLINE bool pack_channels_of(const qkv_dtype type, const void *x, int64_t x_stride, int64_t n,
                               int64_t dim, int64_t rows, const uint32_t *see, float *y) {
    vf sum = vf_set1(0); /* of 0 x: NaN if any x is not finite */
    for (int64_t i = 0; i < n; i++) {
        const void *row = pack_at(type, x, i * x_stride);
        const bool seen = pack_sees(see, i);
        for (int64_t d = 0; d < dim; d += 16) {
            const vf v =
                seen ? pack_load(type, pack_at(type, row, d), pack_left(dim - d)) : vf_set1(0);
            float *to = y + d / 32 * rows * 32 + i * 32 + d % 32;
            sum = vf_fma(v, vf_set1(0), sum);
            vf_store(to, v);
            if (dim - d <= 16 && d % 32 == 0) vf_store(to + 16, vf_set1(0));
        }
    }
    return vm_to_bits(vm_ne(sum, sum)) == 0;
}

/*
 * 16 rows of x, of which those of `see` exist, and 16 channels, of which `dims` exist. y: rows of
 * 32 keys.
 */
V_INLINE void pack_corner_of(const qkv_dtype type, const void *x, int64_t x_stride, uint32_t see,
                             int dims, float *y) {
    _Alignas(64) float from[16 * 16], to[16 * 16];
    if (see == 0) {
        for (int c = 0; c < dims; c++) vf_store(y + 32 * c, vf_set1(0));
        return;
    }
    for (int r = 0; r < 16; r++)
        vf_store(from + 16 * r,
                 see >> r & 1 ? pack_load(type, pack_at(type, x, r * x_stride), dims) : vf_set1(0));
    if (dims == 16) {
        v_transpose(from, 16, y, 32);
        return;
    }
    v_transpose(from, 16, to, 16);
    for (int c = 0; c < dims; c++) vf_store(y + 32 * c, vf_load(to + 16 * c));
}

/* table.h */
V_INLINE void pack_keys_of(const qkv_dtype type, const void *x, int64_t x_stride, int64_t n,
                           int64_t dim, const uint32_t *see, float *y) {
    for (int64_t j = 0; j < (n + 31) / 32 * 32; j += 16) {
        const uint32_t within = n - j >= 16 ? 0xFFFF : n > j ? (1u << (n - j)) - 1 : 0;
        const uint32_t bits = within & (see ? see[j / 32] >> j % 32 : UINT32_MAX);
        for (int64_t d = 0; d < dim; d += 16) {
            const void *from = bits ? pack_at(type, x, j * x_stride + d) : x;
            float *to = y + j / 32 * dim * 32 + d * 32 + j % 32;
            if (type == QKV_F32 && bits == 0xFFFF && dim - d >= 16)
                v_transpose(from, x_stride, to, 32);
            else
                pack_corner_of(type, from, x_stride, bits, pack_left(dim - d), to);
        }
    }
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* table.h */
V_INLINE void load_rows_of(const qkv_dtype type, const void *x, int64_t x_stride, int64_t n,
                           int64_t dim, float *y, int64_t y_stride) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t d = 0; d < dim; d += 16) {
            const int left = pack_left(dim - d);
            pack_store(QKV_F32, y + i * y_stride + d,
                       pack_load(type, pack_at(type, x, i * x_stride + d), left), left);
        }
}

/* table.h */
V_INLINE void store_rows_of(const qkv_dtype type, const float *x, int64_t x_stride, int64_t n,
                            int64_t dim, float factor, void *y, int64_t y_stride) {
    const vf by = vf_set1(factor);
    for (int64_t i = 0; i < n; i++)
        for (int64_t d = 0; d < dim; d += 16) {
            const int left = pack_left(dim - d);
            const vf v = pack_load(QKV_F32, x + i * x_stride + d, left);
            pack_store(type, pack_to(type, y, i * y_stride + d), vf_mul(v, by), left);
        }
}

/* ---- One of each for each type --------------------------------------------------------------- */

#define PACK_FUNCTIONS(name, type)                                                                 \
    static bool pack_channels_##name(const void *x, int64_t x_stride, int64_t n, int64_t dim,      \
                                     int64_t rows, const uint32_t *see, float *y) {                \
        return pack_channels_of(type, x, x_stride, n, dim, rows, see, y);                          \
    }                                                                                              \
    static void pack_keys_##name(const void *x, int64_t x_stride, int64_t n, int64_t dim,          \
                                 const uint32_t *see, float *y) {                                  \
        pack_keys_of(type, x, x_stride, n, dim, see, y);                                           \
    }                                                                                              \
    static void load_rows_##name(const void *x, int64_t x_stride, int64_t n, int64_t dim,          \
                                 float *y, int64_t y_stride) {                                     \
        load_rows_of(type, x, x_stride, n, dim, y, y_stride);                                      \
    }                                                                                              \
    static void store_rows_##name(const float *x, int64_t x_stride, int64_t n, int64_t dim,        \
                                  float factor, void *y, int64_t y_stride) {                       \
        store_rows_of(type, x, x_stride, n, dim, factor, y, y_stride);                             \
    }
#define PACK_EACH_TYPE(functions)                                                                  \
    functions(f32, QKV_F32) functions(bf16, QKV_BF16) functions(f16, QKV_F16)
PACK_EACH_TYPE(PACK_FUNCTIONS)

/* By qkv_dtype. */
#define EACH_TYPE(name)                                                                            \
    { name##_f32, name##_bf16, name##_f16 }

/* A corner of floats, for the small path: x's rows and 16 channels that exist. */
static void pack_corner(const float *x, int64_t x_stride, uint32_t see, int dims, float *y) {
    pack_corner_of(QKV_F32, x, x_stride, see, dims, y);
}

#endif
