/*
 * What all instruction sets do alike of products by blocks: rounding, and the fields of a block.
 * Layouts are those of ggml's ggml-common.h.
 */
#ifndef QKV_TMPL_BLOCKS_H
#define QKV_TMPL_BLOCKS_H

#include <math.h>
#include <string.h>

#include "core/cpu.h"
#include "core/half.h"
#include "kernels/blocks.h"
#include "kernels/int8.h"

#define B_INLINE static inline __attribute__((always_inline))

/* ---- Rounding -------------------------------------------------------------------------------- */

/* The bits of |x| are ordered as its values are; those that are not finite are the greatest. */
B_INLINE uint32_t block_greatest(int n, const float *x) {
    uint32_t greatest = 0;
    for (int e = 0; e < n; e++) {
        uint32_t bits;
        memcpy(&bits, &x[e], sizeof bits);
        bits &= 0x7FFFFFFFu;
        greatest = bits > greatest ? bits : greatest;
    }
    return greatest;
}

/* n integers, whose scale it returns. */
B_INLINE float block_round(int n, const float *x, int8_t *q) {
    const uint32_t bits = block_greatest(n, x);
    const float greatest = qkvi_float_of_bits(bits);
    memset(q, 0, (size_t)n);
    if (bits >= 0x7F800000u) return NAN;
    if (greatest < QKVI_INT8_LEAST) return 0;
    const float inverse = 127.0f / greatest;
    for (int e = 0; e < n; e++)
        q[e] = (int8_t)(int32_t)((x[e] * inverse + QKVI_INT8_MAGIC) - QKVI_INT8_MAGIC);
    return greatest / 127.0f;
}

static void blocks_round(int n_elems, int64_t n_groups, const float *x, void *groups) {
    qkvi_short_group *const shorts = groups;
    qkvi_long_group *const longs = groups;
    for (int64_t g = 0; n_elems == 32 && g < n_groups; g++) {
        qkvi_short_group *const to = &shorts[g];
        to->scale = block_round(32, x + 32 * g, to->q);
        to->sum = 0;
        for (int e = 0; e < 32; e++) to->sum += to->q[e];
    }
    for (int64_t g = 0; n_elems == 256 && g < n_groups; g++) {
        qkvi_long_group *const to = &longs[g];
        to->scale = block_round(256, x + 256 * g, to->q);
        for (int s = 0; s < 16; s++) {
            int sum = 0;
            for (int e = 0; e < 16; e++) sum += to->q[16 * s + e];
            to->sums[s] = (int16_t)sum;
        }
    }
}

/* ---- Fields ---------------------------------------------------------------------------------- */

B_INLINE uint16_t block_u16(const uint8_t *at) { return (uint16_t)(at[0] | at[1] << 8); }

B_INLINE int block_bytes(const qkvi_block_kind kind) {
    static const int bytes[] = { 18, 20, 22, 34, 144, 176, 210 };
    return bytes[kind];
}
B_INLINE bool block_is_long(const qkvi_block_kind kind) { return kind >= QKVI_Q4_K; }
B_INLINE bool block_has_least(const qkvi_block_kind kind) {
    return kind == QKVI_Q4_1 || kind == QKVI_Q4_K || kind == QKVI_Q5_K;
}
/* Where d is in a block; m stands behind it. */
B_INLINE int block_d_at(const qkvi_block_kind kind) { return kind == QKVI_Q6_K ? 208 : 0; }

/* Four integers of A. */
B_INLINE int32_t block_quad(const void *q) {
    int32_t quad;
    memcpy(&quad, q, sizeof quad);
    return quad;
}

/* z */
B_INLINE int block_zero(const qkvi_block_kind kind) {
    return kind == QKVI_Q4_0 ? 8 : kind == QKVI_Q5_0 ? 16 : kind == QKVI_Q6_K ? 32 : 0;
}

/* s and t of the eight groups of Q4_K and Q5_K: 6 bits each, in 12 bytes. */
B_INLINE void block_scales(const uint8_t *s, uint8_t scales[8], uint8_t leasts[8]) {
    uint32_t u[3];
    memcpy(u, s, sizeof u);
    const uint32_t low[2] = { u[0] & 0x3F3F3F3Fu, (u[2] & 0x0F0F0F0Fu) | (u[0] >> 6 & 0x03030303u)
                                                                             << 4 };
    const uint32_t high[2] = { u[1] & 0x3F3F3F3Fu,
                               (u[2] >> 4 & 0x0F0F0F0Fu) | (u[1] >> 6 & 0x03030303u) << 4 };
    memcpy(scales, low, sizeof low);
    memcpy(leasts, high, sizeof high);
}

#endif
