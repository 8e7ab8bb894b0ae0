/*
 * Products by blocks in AVX-512 with VNNI (blocks.h), sixteen rows of W at a time, which are the
 * lanes of a vector.
 *
 * Several rows of A: panels (tmpl/blocks_panel.h). One: sums of four rows of W are in the quarters
 * of a vector, and folded in the end.
 *
 * VPDPBUSD multiplies unsigned bytes by signed ones. So integers of W stay without their z, and
 * those of Q8_0 become q + 128: z Σ q_A is subtracted, or with Q8_0 128 Σ q_A.
 */
#include <immintrin.h>

#include "kernels/tmpl/blocks.h"

#ifndef __AVX512VNNI__
#error "compile with -mavx512bw -mavx512vl -mavx512dq -mavx512vnni"
#endif

enum { LANES = 16, ROWS = 8, Q8_TOP = 128 };

typedef __m512i bi;
typedef __m512 bf;
typedef __mmask16 bm;

#define B_OP(name)           _mm512_##name
#define B_COUNT(n)           ((unsigned)(n))
#define B_QUARTER(x)         _mm512_broadcast_i32x4(x)
#define B_SHUFFLE(x, order)  _mm512_shuffle_epi32(x, order)
#define B_BLEND(a, b, which) _mm512_mask_blend_epi32(0x0101 * (which), a, b)

B_INLINE bi b_load(const void *at) { return _mm512_load_si512(at); }
B_INLINE void b_store(void *at, bi x) { _mm512_store_si512(at, x); }
B_INLINE bm b_mask(int n) { return (bm)((1u << n) - 1); }
B_INLINE bf b_load_n(bm mask, const float *at) { return _mm512_maskz_loadu_ps(mask, at); }
B_INLINE void b_store_n(bm mask, float *at, bf x) { _mm512_mask_storeu_ps(at, mask, x); }

/* Of rows i, 4 + i, 8 + i and 12 + i. */
B_INLINE bi some_of_rows(const uint8_t *const row[LANES], int i, int64_t at) {
    bi x = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(row[i] + at)));
    x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(row[4 + i] + at)), 1);
    x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(row[8 + i] + at)), 2);
    return _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(row[12 + i] + at)), 3);
}

B_INLINE bi add_fifth(bi x, bi bits, bi mask) {
    return _mm512_mask_add_epi8(x, _mm512_test_epi8_mask(bits, mask), x, _mm512_set1_epi8(16));
}

B_INLINE bf floats_of(bi halves) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(halves)); }

B_INLINE void put_d_m(bi word, float d[LANES], float m[LANES]) {
    _mm512_store_ps(d, floats_of(word));
    _mm512_store_ps(m, floats_of(_mm512_srli_epi32(word, 16)));
}

B_INLINE bi add_pairs(bi c, bi x, bi y) { return _mm512_dpwssd_epi32(c, x, y); }
B_INLINE bi scale_of(bi s) { return s; }
B_INLINE bi quad_of(const void *q) { return _mm512_set1_epi32(block_quad(q)); }

B_INLINE void dot_quads(const qkvi_block_kind kind, const int R, const uint8_t (*w)[LANES][4],
                        const int8_t *const q[ROWS], int from, int to, bi s, bi sums[ROWS]) {
    bi part[ROWS];
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) part[r] = block_is_long(kind) ? _mm512_setzero_si512() : sums[r];
#pragma GCC unroll 8
    for (int k = from; k < to; k++) {
        const bi x = b_load(w[k]);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++)
            part[r] = _mm512_dpbusd_epi32(part[r], x, quad_of(q[r] + 4 * k));
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; r++)
        sums[r] = block_is_long(kind) ? _mm512_add_epi32(sums[r], _mm512_mullo_epi32(part[r], s))
                                      : part[r];
}

#include "kernels/tmpl/blocks_panel.h"

/* ---- One row of A ---------------------------------------------------------------------------- */

/* The sum of each quarter: of rows i, 4 + i, 8 + i and 12 + i, in order. */
B_INLINE bi fold(const bi x[4]) {
    const bi a =
        _mm512_add_epi32(_mm512_unpacklo_epi32(x[0], x[1]), _mm512_unpackhi_epi32(x[0], x[1]));
    const bi b =
        _mm512_add_epi32(_mm512_unpacklo_epi32(x[2], x[3]), _mm512_unpackhi_epi32(x[2], x[3]));
    return _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

/* 16 bytes, in all quarters. */
B_INLINE bi quarter(const void *at) { return B_QUARTER(_mm_loadu_si128((const __m128i *)at)); }

/* Number g of the eight 16-bit lanes of each quarter, everywhere in it. */
B_INLINE bi spread(bi lanes, int g) {
    return _mm512_shuffle_epi8(lanes, _mm512_set1_epi16((short)(2 * g | (2 * g + 1) << 8)));
}

B_INLINE bf one_short(const qkvi_block_kind kind, const uint8_t *const row[LANES], int64_t at,
                      const qkvi_short_group *x, bf c) {
    const bi a = quarter(x->q), b = quarter(x->q + 16);
    bi head[4], sums[4], word[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        bi low, high;
        head[i] = some_of_rows(row, i, at);
        rows_short(kind, row, i, at, head[i], &low, &high);
        sums[i] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), low, a);
        sums[i] = _mm512_dpbusd_epi32(sums[i], high, b);
    }
    const bi sum = _mm512_sub_epi32(fold(sums), _mm512_set1_epi32(short_zero(kind) * x->sum));
    transpose(head, word);
    const bf m = floats_of(_mm512_srli_epi32(word[0], 16));
    return add_block(kind, sum, _mm512_set1_epi32(x->sum), floats_of(word[0]), m, x->scale, c);
}

/* Products of 16 bits: two of at most 31 · 127 each, and two of these are added. */
B_INLINE bf one_45(const qkvi_block_kind kind, const uint8_t *const row[LANES], int64_t at,
                   const qkvi_long_group *x, bf c) {
    const bi zero = _mm512_setzero_si512();
    const __m256i pairs =
        _mm256_madd_epi16(_mm256_loadu_si256((const __m256i *)x->sums), _mm256_set1_epi16(1));
    const bi of_32 = _mm512_broadcast_i32x4(_mm256_cvtepi32_epi16(pairs));
    bi head[4], word[4], scales[4], bits[4][2], sums[4], leasts[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        head[i] = some_of_rows(row, i, at);
        const bi bytes = six_bits(head[i]);
        scales[i] = _mm512_unpacklo_epi8(bytes, zero);
        leasts[i] = _mm512_madd_epi16(_mm512_unpackhi_epi8(bytes, zero), of_32);
        sums[i] = zero;
        for (int half = 0; half < 2; half++) bits[i][half] = rows_fifth(kind, row, i, at, half);
    }
#pragma GCC unroll 4
    for (int p = 0; p < 4; p++) {
        const int8_t *const q = x->q + 64 * p;
        const bi a0 = quarter(q), a1 = quarter(q + 16);
        const bi b0 = quarter(q + 32), b1 = quarter(q + 48);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            bi low[2], high[2];
            rows_45(kind, row, i, at, p, 0, bits[i][0], &low[0], &high[0]);
            rows_45(kind, row, i, at, p, 1, bits[i][1], &low[1], &high[1]);
            const bi first = _mm512_add_epi16(_mm512_maddubs_epi16(low[0], a0),
                                              _mm512_maddubs_epi16(low[1], a1));
            const bi second = _mm512_add_epi16(_mm512_maddubs_epi16(high[0], b0),
                                               _mm512_maddubs_epi16(high[1], b1));
            sums[i] = _mm512_dpwssd_epi32(sums[i], first, spread(scales[i], 2 * p));
            sums[i] = _mm512_dpwssd_epi32(sums[i], second, spread(scales[i], 2 * p + 1));
        }
    }
    transpose(head, word);
    return add_block(kind, fold(sums), _mm512_sub_epi32(zero, fold(leasts)), floats_of(word[0]),
                     floats_of(_mm512_srli_epi32(word[0], 16)), x->scale, c);
}

B_INLINE bf one_6(const uint8_t *const row[LANES], int64_t at, const qkvi_long_group *x, bf c) {
    const bi zero = _mm512_setzero_si512();
    bi head[4], word[4], scales[4][2], sums[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const bi s = some_of_rows(row, i, at + 192);
        head[i] = some_of_rows(row, i, at + 194);
        scales[i][0] = _mm512_srai_epi16(_mm512_unpacklo_epi8(zero, s), 8);
        scales[i][1] = _mm512_srai_epi16(_mm512_unpackhi_epi8(zero, s), 8);
        const bi all = _mm512_dpwssd_epi32(_mm512_madd_epi16(scales[i][0], quarter(x->sums)),
                                           scales[i][1], quarter(x->sums + 8));
        sums[i] = _mm512_sub_epi32(zero, _mm512_slli_epi32(all, 5));
    }
#pragma GCC unroll 4
    for (int h = 0; h < 4; h++) {
        const int8_t *const a = x->q + 128 * (h / 2) + 16 * (h % 2);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            bi q[4];
            rows_6(row, i, at, h, q);
#pragma GCC unroll 4
            for (int n = 0; n < 4; n++)
                sums[i] =
                    _mm512_dpwssd_epi32(sums[i], _mm512_maddubs_epi16(q[n], quarter(a + 32 * n)),
                                        spread(scales[i][h / 2], h % 2 + 2 * n));
        }
    }
    transpose(head, word);
    const bf d = floats_of(_mm512_srli_epi32(word[3], 16));
    return add_block(QKVI_Q6_K, fold(sums), zero, d, d, x->scale, c);
}

B_INLINE void one_row(const qkvi_block_kind kind, const operands *o) {
    const int bytes = block_bytes(kind);
    for (int64_t j = 0; j < o->n_cols; j += LANES) {
        const columns w = columns_at(o, j);
        bf c = o->add ? b_load_n(w.mask, o->c + j) : _mm512_setzero_ps();
        for (int64_t g = 0; g < o->n_blocks; g++) {
            const qkvi_short_group *const x = (const qkvi_short_group *)o->a + g;
            const qkvi_long_group *const y = (const qkvi_long_group *)o->a + g;
            announce(w.ahead, g, bytes);
            if (!block_is_long(kind))
                c = one_short(kind, w.row, g * bytes, x, c);
            else if (kind == QKVI_Q6_K)
                c = one_6(w.row, g * bytes, y, c);
            else
                c = one_45(kind, w.row, g * bytes, y, c);
        }
        if (o->bias) c = _mm512_add_ps(c, b_load_n(w.mask, o->bias + j));
        b_store_n(w.mask, o->c + j, c);
    }
}

BLOCKS_MULTIPLY(one_row, 2)

const qkvi_block_kernels qkvi_blocks_avx512bf16 = { blocks_round, multiply };
