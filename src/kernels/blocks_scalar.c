/*
 * Products by blocks in plain C: what they are (blocks.h). A block is unpacked once for all rows of
 * A.
 */
#include "core/fma.h"
#include "kernels/tmpl/blocks.h"

enum { ROWS = 16 };

/* q - z, or q where there is m. */
static void unpack_short(const qkvi_block_kind kind, const uint8_t *b, int8_t q[32]) {
    const uint8_t *const qs = b + (kind == QKVI_Q4_0 ? 2 : kind == QKVI_Q4_1 ? 4 : 6);
    uint32_t high = 0;
    if (kind == QKVI_Q8_0) {
        memcpy(q, b + 2, 32);
        return;
    }
    if (kind == QKVI_Q5_0) high = block_u16(b + 2) | (uint32_t)block_u16(b + 4) << 16;
    for (int e = 0; e < 16; e++) {
        q[e] = (int8_t)(((qs[e] & 15) | (int)(high >> e & 1) << 4) - block_zero(kind));
        q[16 + e] = (int8_t)(((qs[e] >> 4) | (int)(high >> (16 + e) & 1) << 4) - block_zero(kind));
    }
}

static void unpack_long(const qkvi_block_kind kind, const uint8_t *b, int8_t q[256], int scales[16],
                        int leasts[16]) {
    uint8_t s[8], t[8];
    if (kind == QKVI_Q6_K) {
        for (int g = 0; g < 16; g++) {
            const int half = g / 8, l = g % 8 / 2, first = g % 2 * 16;
            const uint8_t *const low = b + 64 * half + 32 * (l & 1) + first;
            const uint8_t *const high = b + 128 + 32 * half + first;
            scales[g] = (int8_t)b[192 + g];
            leasts[g] = 0;
            for (int e = 0; e < 16; e++)
                q[16 * g + e] =
                    (int8_t)(((low[e] >> (l / 2 * 4) & 15) | (high[e] >> (2 * l) & 3) << 4) - 32);
        }
        return;
    }
    const bool has_high = kind == QKVI_Q5_K;
    const uint8_t *const high = b + 16, *const qs = b + (has_high ? 48 : 16);
    block_scales(b + 4, s, t);
    for (int g = 0; g < 8; g++) {
        scales[2 * g] = scales[2 * g + 1] = s[g];
        leasts[2 * g] = leasts[2 * g + 1] = t[g];
        for (int e = 0; e < 32; e++) {
            const int low = qs[32 * (g / 2) + e] >> (g % 2 * 4) & 15;
            q[32 * g + e] = (int8_t)(low | (has_high ? (high[e] >> g & 1) << 4 : 0));
        }
    }
}

static int32_t dot(int n, const int8_t *a, const int8_t *b) {
    int32_t sum = 0;
    for (int e = 0; e < n; e++) sum += a[e] * b[e];
    return sum;
}

/* What a block adds to the sum of a row. */
static float add_block(const qkvi_block_kind kind, const uint8_t *b, float scale, int32_t sum,
                       int32_t least, float c) {
    const uint8_t *const d = b + block_d_at(kind);
    c = qkvi_fmaf((float)sum, qkvi_f32_of_f16(block_u16(d)) * scale, c);
    if (!block_has_least(kind)) return c;
    return qkvi_fmaf((float)least, qkvi_f32_of_f16(block_u16(d + 2)) * scale, c);
}

static void short_blocks(qkvi_block_kind kind, int64_t n_blocks, int n_rows, const uint8_t *a,
                         int64_t a_row, const uint8_t *b, float c[ROWS]) {
    int8_t q[32];
    for (int64_t g = 0; g < n_blocks; g++) {
        const uint8_t *const block = b + g * block_bytes(kind);
        unpack_short(kind, block, q);
        for (int i = 0; i < n_rows; i++) {
            const qkvi_short_group *const x = (const qkvi_short_group *)(a + i * a_row) + g;
            c[i] = add_block(kind, block, x->scale, dot(32, q, x->q), x->sum, c[i]);
        }
    }
}

static void long_blocks(qkvi_block_kind kind, int64_t n_blocks, int n_rows, const uint8_t *a,
                        int64_t a_row, const uint8_t *b, float c[ROWS]) {
    int8_t q[256];
    int scales[16], leasts[16];
    for (int64_t g = 0; g < n_blocks; g++) {
        const uint8_t *const block = b + g * block_bytes(kind);
        unpack_long(kind, block, q, scales, leasts);
        for (int i = 0; i < n_rows; i++) {
            const qkvi_long_group *const x = (const qkvi_long_group *)(a + i * a_row) + g;
            int32_t sum = 0, least = 0;
            for (int s = 0; s < 16; s++) {
                sum += scales[s] * dot(16, q + 16 * s, x->q + 16 * s);
                least -= leasts[s] * x->sums[s];
            }
            c[i] = add_block(kind, block, x->scale, sum, least, c[i]);
        }
    }
}

static void multiply(qkvi_block_kind kind, int64_t n_blocks, int64_t n_rows, const void *a,
                     int64_t a_row, int64_t n_cols, const uint8_t *b, int64_t b_row, float *c,
                     int64_t c_row, int add, const float *bias) {
    float sums[ROWS];
    for (int64_t i0 = 0; i0 < n_rows; i0 += ROWS) {
        const int n = (int)(n_rows - i0 < ROWS ? n_rows - i0 : ROWS);
        const uint8_t *const rows = (const uint8_t *)a + i0 * a_row;
        for (int64_t j = 0; j < n_cols; j++) {
            float *const to = c + i0 * c_row + j;
            for (int i = 0; i < n; i++) sums[i] = add ? to[i * c_row] : 0;
            (block_is_long(kind) ? long_blocks : short_blocks)(kind, n_blocks, n, rows, a_row,
                                                               b + j * b_row, sums);
            for (int i = 0; i < n; i++) to[i * c_row] = bias ? sums[i] + bias[j] : sums[i];
        }
    }
}

const qkvi_block_kernels qkvi_blocks_scalar = { "scalar", 0, blocks_round, multiply };
