/*
 * Products by blocks in AVX-512 with VNNI (blocks.h), sixteen rows of W at a time, which are the
 * lanes of a vector.
 *
 * Several rows of A: a block of the sixteen is packed into a panel, where four neighbours of a row
 * are a lane, as VPDPBUSD takes them beside four of A in all lanes. The panel is used for all rows.
 * One row of A: sums of four rows of W are in the quarters of a vector, and folded in the end.
 *
 * VPDPBUSD multiplies unsigned bytes by signed ones. So integers of W stay without their z, and
 * those of Q8_0 become q + 128: z Σ q_A is subtracted, or with Q8_0 128 Σ q_A.
 */
#include <immintrin.h>

#include "kernels/tmpl/blocks.h"

#ifndef __AVX512VNNI__
#error "compile with -mavx512bw -mavx512vl -mavx512dq -mavx512vnni"
#endif

/* Rows of at most so many bytes are announced to the second-level cache, sixteen at a time. */
enum { LANES = 16, ROWS = 8, SHORT_BLOCKS = 8, MOST_AHEAD = 1 << 15 };

/* Of sixteen rows a block of 32 elements, and one of 256. */
typedef struct short_panel {
    _Alignas(64) float d[LANES], m[LANES];
    uint8_t q[8][LANES][4];
} short_panel;

typedef struct long_panel {
    _Alignas(64) float d[LANES], m[LANES];
    int32_t s[16][LANES];       /* of each group of 16 (Q6_K), or the first eight, of 32 */
    int16_t pairs[8][LANES][2]; /* s (Q6_K) or t of 16 elements and the next 16 */
    uint8_t q[64][LANES][4];
} long_panel;

/* ---- Packing --------------------------------------------------------------------------------- */

/* Each row's 16 bytes at `at`: those of rows i, 4 + i, 8 + i and 12 + i. */
B_INLINE __m512i four_rows(const uint8_t *const row[LANES], int i, int64_t at) {
    __m512i x = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(row[i] + at)));
    x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(row[4 + i] + at)), 1);
    x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(row[8 + i] + at)), 2);
    return _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(row[12 + i] + at)), 3);
}

/* Word n of all rows, in order, for n from 0 to 3. */
B_INLINE void transpose(const __m512i x[4], __m512i word[4]) {
    const __m512i a = _mm512_unpacklo_epi32(x[0], x[1]), b = _mm512_unpacklo_epi32(x[2], x[3]);
    const __m512i c = _mm512_unpackhi_epi32(x[0], x[1]), d = _mm512_unpackhi_epi32(x[2], x[3]);
    word[0] = _mm512_unpacklo_epi64(a, b);
    word[1] = _mm512_unpackhi_epi64(a, b);
    word[2] = _mm512_unpacklo_epi64(c, d);
    word[3] = _mm512_unpackhi_epi64(c, d);
}

/* Sixteen elements of all rows. */
B_INLINE void put_quads(const __m512i x[4], uint8_t q[4][LANES][4]) {
    __m512i word[4];
    transpose(x, word);
    for (int n = 0; n < 4; n++) _mm512_store_si512(q[n], word[n]);
}

B_INLINE __m512i low_halves(__m512i x) { return _mm512_and_si512(x, _mm512_set1_epi8(15)); }
B_INLINE __m512i high_halves(__m512i x) { return low_halves(_mm512_srli_epi16(x, 4)); }

/* x + 16 where the bits of `mask` have one in common with `bits`. */
B_INLINE __m512i add_fifth(__m512i x, __m512i bits, __m512i mask) {
    return _mm512_mask_add_epi8(x, _mm512_test_epi8_mask(bits, mask), x, _mm512_set1_epi8(16));
}

B_INLINE __m512 floats_of(__m512i halves) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(halves)); }

/* d and m, which are two halves of a word. */
B_INLINE void put_d_m(__m512i word, float d[LANES], float m[LANES]) {
    _mm512_store_ps(d, floats_of(word));
    _mm512_store_ps(m, floats_of(_mm512_srli_epi32(word, 16)));
}

/* The integers of four rows, whose first 16 bytes are head: 16 of them, and 16. */
B_INLINE void unpack_short(const qkvi_block_kind kind, const uint8_t *const row[LANES], int i,
                           int64_t at, __m512i head, __m512i *low, __m512i *high) {
    const int q_at = kind == QKVI_Q4_1 ? 4 : kind == QKVI_Q5_0 ? 6 : 2;
    const __m512i x = four_rows(row, i, at + q_at);
    if (kind == QKVI_Q8_0) {
        const __m512i top = _mm512_set1_epi8(-128);
        *low = _mm512_xor_si512(x, top);
        *high = _mm512_xor_si512(four_rows(row, i, at + q_at + 16), top);
        return;
    }
    *low = low_halves(x);
    *high = high_halves(x);
    if (kind != QKVI_Q5_0) return;
    /* 32 bits, in bytes 2 to 5 */
    const __m512i one = _mm512_set1_epi64((long long)0x8040201008040201);
    const __m512i spread =
        _mm512_broadcast_i32x4(_mm_set_epi64x(0x0303030303030303, 0x0202020202020202));
    const __m512i next = _mm512_add_epi8(spread, _mm512_set1_epi8(2));
    *low = add_fifth(*low, _mm512_shuffle_epi8(head, spread), one);
    *high = add_fifth(*high, _mm512_shuffle_epi8(head, next), one);
}

B_INLINE void pack_short(const qkvi_block_kind kind, const uint8_t *const row[LANES], int64_t at,
                         short_panel *to) {
    __m512i head[4], low[4], high[4], word[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        head[i] = four_rows(row, i, at);
        unpack_short(kind, row, i, at, head[i], &low[i], &high[i]);
    }
    put_quads(low, to->q);
    put_quads(high, to->q + 4);
    transpose(head, word);
    put_d_m(word[0], to->d, to->m);
}

/* Of d, m and twelve bytes as in block_scales: bytes 0 to 7 of each row become s, the others t. */
B_INLINE __m512i six_bits(__m512i head) {
    const __m512i low = _mm512_and_si512(head, _mm512_set1_epi8(0x3F));
    const __m512i top = _mm512_and_si512(_mm512_srli_epi16(head, 2), _mm512_set1_epi8(0x30));
    const __m512i last = _mm512_mask_blend_epi32(0xCCCC, low_halves(head), high_halves(head));
    /* words: of the twelve bytes the first and the second, and of the third its lower, its upper */
    const __m512i begin = _mm512_shuffle_epi32(low, 0xA5), above = _mm512_shuffle_epi32(top, 0xA5);
    const __m512i third = _mm512_mask_blend_epi32(
        0xCCCC, _mm512_shuffle_epi32(low_halves(head), 0xFF), _mm512_shuffle_epi32(last, 0xFF));
    return _mm512_mask_blend_epi32(0xAAAA, begin, _mm512_or_si512(above, third));
}

/* s and t of all rows, from the bytes of each. */
B_INLINE void put_scales_45(const __m512i head[4], long_panel *to) {
    __m512i bytes[4], word[4];
    for (int i = 0; i < 4; i++) bytes[i] = six_bits(head[i]);
    transpose(bytes, word); /* s of groups 0 to 3, of 4 to 7, then t */
    const __m512i byte = _mm512_set1_epi32(0xFF);
    for (int g = 0; g < 8; g++) {
        const __m512i s =
            _mm512_and_si512(_mm512_srli_epi32(word[g / 4], 8u * ((unsigned)g % 4)), byte);
        const __m512i t =
            _mm512_and_si512(_mm512_srli_epi32(word[2 + g / 4], 8u * ((unsigned)g % 4)), byte);
        _mm512_store_si512(to->s[g], s);
        _mm512_store_si512(to->pairs[g], _mm512_or_si512(t, _mm512_slli_epi32(t, 16)));
    }
}

/* Half of the 32 elements 2 p of four blocks of Q4_K or Q5_K, and of the next 32. */
B_INLINE void unpack_45(const qkvi_block_kind kind, const uint8_t *const row[LANES], int i,
                        int64_t at, int p, int half, __m512i bits, __m512i *low, __m512i *high) {
    const int q_at = kind == QKVI_Q5_K ? 48 : 16;
    const __m512i x = four_rows(row, i, at + q_at + 32 * p + 16 * half);
    *low = low_halves(x);
    *high = high_halves(x);
    if (kind != QKVI_Q5_K) return;
    *low = add_fifth(*low, bits, _mm512_set1_epi8((char)(1 << 2 * p)));
    *high = add_fifth(*high, bits, _mm512_set1_epi8((char)(2 << 2 * p)));
}

/* Their fifth bits. */
B_INLINE __m512i fifth_bits(const qkvi_block_kind kind, const uint8_t *const row[LANES], int i,
                            int64_t at, int half) {
    return kind == QKVI_Q5_K ? four_rows(row, i, at + 16 + 16 * half) : _mm512_setzero_si512();
}

B_INLINE void pack_45(const qkvi_block_kind kind, const uint8_t *const row[LANES], int64_t at,
                      long_panel *to) {
    __m512i head[4], word[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) head[i] = four_rows(row, i, at);
    put_scales_45(head, to);
    transpose(head, word);
    put_d_m(word[0], to->d, to->m);
    for (int half = 0; half < 2; half++) {
        __m512i bits[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) bits[i] = fifth_bits(kind, row, i, at, half);
#pragma GCC unroll 4
        for (int p = 0; p < 4; p++) {
            __m512i low[4], high[4];
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++)
                unpack_45(kind, row, i, at, p, half, bits[i], &low[i], &high[i]);
            put_quads(low, to->q + 16 * p + 4 * half);
            put_quads(high, to->q + 16 * p + 8 + 4 * half);
        }
    }
}

/*
 * Of half h / 2 of four blocks of Q6_K, and half h % 2 of each 32 elements there: 16 of the first
 * 32, of the second, the third and the fourth.
 */
B_INLINE void unpack_6(const uint8_t *const row[LANES], int i, int64_t at, int h, __m512i q[4]) {
    const int64_t qs = at + 64 * (h / 2) + 16 * (h % 2);
    const __m512i top = _mm512_set1_epi8(0x30), z = four_rows(row, i, at + 128 + 16 * h);
    const __m512i a = four_rows(row, i, qs), b = four_rows(row, i, qs + 32);
    q[0] = _mm512_or_si512(low_halves(a), _mm512_and_si512(_mm512_slli_epi16(z, 4), top));
    q[1] = _mm512_or_si512(low_halves(b), _mm512_and_si512(_mm512_slli_epi16(z, 2), top));
    q[2] = _mm512_or_si512(high_halves(a), _mm512_and_si512(z, top));
    q[3] = _mm512_or_si512(high_halves(b), _mm512_and_si512(_mm512_srli_epi16(z, 2), top));
}

B_INLINE void pack_6(const uint8_t *const row[LANES], int64_t at, long_panel *to) {
    __m512i x[4], word[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) x[i] = four_rows(row, i, at + 194); /* d is the last two bytes */
    transpose(x, word);
    put_d_m(_mm512_srli_epi32(word[3], 16), to->d, to->m);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) x[i] = four_rows(row, i, at + 192);
    transpose(x, word);
    for (int g = 0; g < 16; g++) {
        const __m512i up = _mm512_slli_epi32(word[g / 4], 24u - 8 * ((unsigned)g % 4));
        const __m512i s = _mm512_srai_epi32(up, 24);
        const __m512i upper = _mm512_and_si512(s, _mm512_set1_epi32(0xFFFF));
        _mm512_store_si512(to->s[g], s);
        if (g % 2 == 0)
            _mm512_store_si512(to->pairs[g / 2], upper);
        else
            _mm512_store_si512(
                to->pairs[g / 2],
                _mm512_or_si512(_mm512_load_si512(to->pairs[g / 2]), _mm512_slli_epi32(s, 16)));
    }
    for (int h = 0; h < 4; h++) {
        uint8_t(*const q)[LANES][4] = to->q + 32 * (h / 2) + 4 * (h % 2);
        __m512i q6[4][4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            __m512i of_row[4];
            unpack_6(row, i, at, h, of_row);
            for (int n = 0; n < 4; n++) q6[n][i] = of_row[n];
        }
        for (int n = 0; n < 4; n++) put_quads(q6[n], q + 8 * n);
    }
}

/* ---- Tiles ----------------------------------------------------------------------------------- */

B_INLINE __m512i quad_of(const void *q) {
    int32_t quad;
    memcpy(&quad, q, sizeof quad);
    return _mm512_set1_epi32(quad);
}

/* sums += quads from `from` to `to` of R groups, whose bytes begin at q. */
B_INLINE void dot_quads(const int R, const uint8_t (*w)[LANES][4], const int8_t *const q[ROWS],
                        int from, int to, __m512i sums[ROWS]) {
    for (int k = from; k < to; k++) {
        const __m512i x = _mm512_load_si512(w[k]);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++)
            sums[r] = _mm512_dpbusd_epi32(sums[r], x, quad_of(q[r] + 4 * k));
    }
}

/* What a block adds, of one row. */
B_INLINE __m512 add_block(const qkvi_block_kind kind, __m512i sum, __m512i least, __m512 d,
                          __m512 m, float scale, __m512 c) {
    const __m512 by = _mm512_set1_ps(scale);
    c = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_mul_ps(d, by), c);
    if (!block_has_least(kind)) return c;
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(least), _mm512_mul_ps(m, by), c);
}

B_INLINE void short_tile(const qkvi_block_kind kind, const int R, int n_blocks,
                         const short_panel *w, const uint8_t *a, int64_t a_row, __m512 c[ROWS]) {
    const int zero = kind == QKVI_Q8_0 ? 128 : block_zero(kind);
    for (int g = 0; g < n_blocks; g++, w++) {
        const qkvi_short_group *x[ROWS];
        const int8_t *q[ROWS];
        __m512i sums[ROWS];
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
            x[r] = (const qkvi_short_group *)(a + r * a_row) + g;
            q[r] = x[r]->q;
            sums[r] = _mm512_set1_epi32(-zero * x[r]->sum);
        }
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++) dot_quads(R, w->q, q, k, k + 1, sums);
        const __m512 d = _mm512_load_ps(w->d), m = _mm512_load_ps(w->m);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++)
            c[r] = add_block(kind, sums[r], _mm512_set1_epi32(x[r]->sum), d, m, x[r]->scale, c[r]);
    }
}

B_INLINE void long_tile(const qkvi_block_kind kind, const int R, const long_panel *w,
                        const uint8_t *a, int64_t a_row, __m512 c[ROWS]) {
    const int quads = kind == QKVI_Q6_K ? 4 : 8; /* of a group */
    const qkvi_long_group *x[ROWS];
    const int8_t *q[ROWS];
    __m512i sums[ROWS], others[ROWS];
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
        x[r] = (const qkvi_long_group *)(a + r * a_row);
        q[r] = x[r]->q;
        sums[r] = others[r] = _mm512_setzero_si512();
    }
    for (int g = 0; g < 64 / quads; g++) {
        __m512i part[ROWS];
        const __m512i s = _mm512_load_si512(w->s[g]);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) part[r] = _mm512_setzero_si512();
#pragma GCC unroll 8
        for (int k = 0; k < quads; k++)
            dot_quads(R, w->q, q, quads * g + k, quads * g + k + 1, part);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++)
            sums[r] = _mm512_add_epi32(sums[r], _mm512_mullo_epi32(part[r], s));
    }
    for (int n = 0; n < 8; n++) { /* Σ s Σ q_A, or Σ t Σ q_A */
        const __m512i pair = _mm512_load_si512(w->pairs[n]);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++)
            others[r] = _mm512_dpwssd_epi32(others[r], pair, quad_of(x[r]->sums + 2 * n));
    }
    const __m512 d = _mm512_load_ps(w->d), m = _mm512_load_ps(w->m);
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
        if (kind == QKVI_Q6_K)
            sums[r] = _mm512_sub_epi32(sums[r], _mm512_slli_epi32(others[r], 5));
        else
            others[r] = _mm512_sub_epi32(_mm512_setzero_si512(), others[r]);
        c[r] = add_block(kind, sums[r], others[r], d, m, x[r]->scale, c[r]);
    }
}

/* ---- One row of A ---------------------------------------------------------------------------- */

/* The sum of each quarter: of rows i, 4 + i, 8 + i and 12 + i, in order. */
B_INLINE __m512i fold(const __m512i x[4]) {
    const __m512i a =
        _mm512_add_epi32(_mm512_unpacklo_epi32(x[0], x[1]), _mm512_unpackhi_epi32(x[0], x[1]));
    const __m512i b =
        _mm512_add_epi32(_mm512_unpacklo_epi32(x[2], x[3]), _mm512_unpackhi_epi32(x[2], x[3]));
    return _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

/* 16 bytes, in all quarters. */
B_INLINE __m512i quarter(const void *at) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)at));
}

/* Number g of the eight 16-bit lanes of each quarter, everywhere in it. */
B_INLINE __m512i spread(__m512i lanes, int g) {
    return _mm512_shuffle_epi8(lanes, _mm512_set1_epi16((short)(2 * g | (2 * g + 1) << 8)));
}

B_INLINE __m512 one_short(const qkvi_block_kind kind, const uint8_t *const row[LANES], int64_t at,
                          const qkvi_short_group *x, __m512 c) {
    const int zero = kind == QKVI_Q8_0 ? 128 : block_zero(kind);
    const __m512i a = quarter(x->q), b = quarter(x->q + 16);
    __m512i head[4], sums[4], word[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        __m512i low, high;
        head[i] = four_rows(row, i, at);
        unpack_short(kind, row, i, at, head[i], &low, &high);
        sums[i] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), low, a);
        sums[i] = _mm512_dpbusd_epi32(sums[i], high, b);
    }
    const __m512i sum = _mm512_sub_epi32(fold(sums), _mm512_set1_epi32(zero * x->sum));
    transpose(head, word);
    const __m512 m = floats_of(_mm512_srli_epi32(word[0], 16));
    return add_block(kind, sum, _mm512_set1_epi32(x->sum), floats_of(word[0]), m, x->scale, c);
}

/* Products of 16 bits: two of at most 31 · 127 each, and two of these are added. */
B_INLINE __m512 one_45(const qkvi_block_kind kind, const uint8_t *const row[LANES], int64_t at,
                       const qkvi_long_group *x, __m512 c) {
    const __m512i zero = _mm512_setzero_si512();
    const __m256i pairs =
        _mm256_madd_epi16(_mm256_loadu_si256((const __m256i *)x->sums), _mm256_set1_epi16(1));
    const __m512i of_32 = _mm512_broadcast_i32x4(_mm256_cvtepi32_epi16(pairs));
    __m512i head[4], word[4], scales[4], bits[4][2], sums[4], leasts[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        head[i] = four_rows(row, i, at);
        const __m512i bytes = six_bits(head[i]);
        scales[i] = _mm512_unpacklo_epi8(bytes, zero);
        leasts[i] = _mm512_madd_epi16(_mm512_unpackhi_epi8(bytes, zero), of_32);
        sums[i] = zero;
        for (int half = 0; half < 2; half++) bits[i][half] = fifth_bits(kind, row, i, at, half);
    }
#pragma GCC unroll 4
    for (int p = 0; p < 4; p++) {
        const int8_t *const q = x->q + 64 * p;
        const __m512i a0 = quarter(q), a1 = quarter(q + 16);
        const __m512i b0 = quarter(q + 32), b1 = quarter(q + 48);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            __m512i low[2], high[2];
            unpack_45(kind, row, i, at, p, 0, bits[i][0], &low[0], &high[0]);
            unpack_45(kind, row, i, at, p, 1, bits[i][1], &low[1], &high[1]);
            const __m512i first = _mm512_add_epi16(_mm512_maddubs_epi16(low[0], a0),
                                                   _mm512_maddubs_epi16(low[1], a1));
            const __m512i second = _mm512_add_epi16(_mm512_maddubs_epi16(high[0], b0),
                                                    _mm512_maddubs_epi16(high[1], b1));
            sums[i] = _mm512_dpwssd_epi32(sums[i], first, spread(scales[i], 2 * p));
            sums[i] = _mm512_dpwssd_epi32(sums[i], second, spread(scales[i], 2 * p + 1));
        }
    }
    transpose(head, word);
    return add_block(kind, fold(sums), _mm512_sub_epi32(zero, fold(leasts)), floats_of(word[0]),
                     floats_of(_mm512_srli_epi32(word[0], 16)), x->scale, c);
}

B_INLINE __m512 one_6(const uint8_t *const row[LANES], int64_t at, const qkvi_long_group *x,
                      __m512 c) {
    const __m512i zero = _mm512_setzero_si512();
    __m512i head[4], word[4], scales[4][2], sums[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m512i s = four_rows(row, i, at + 192);
        head[i] = four_rows(row, i, at + 194);
        scales[i][0] = _mm512_srai_epi16(_mm512_unpacklo_epi8(zero, s), 8);
        scales[i][1] = _mm512_srai_epi16(_mm512_unpackhi_epi8(zero, s), 8);
        const __m512i all = _mm512_dpwssd_epi32(_mm512_madd_epi16(scales[i][0], quarter(x->sums)),
                                                scales[i][1], quarter(x->sums + 8));
        sums[i] = _mm512_sub_epi32(zero, _mm512_slli_epi32(all, 5));
    }
#pragma GCC unroll 4
    for (int h = 0; h < 4; h++) {
        const int8_t *const a = x->q + 128 * (h / 2) + 16 * (h % 2);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            __m512i q[4];
            unpack_6(row, i, at, h, q);
#pragma GCC unroll 4
            for (int n = 0; n < 4; n++)
                sums[i] =
                    _mm512_dpwssd_epi32(sums[i], _mm512_maddubs_epi16(q[n], quarter(a + 32 * n)),
                                        spread(scales[i][h / 2], h % 2 + 2 * n));
        }
    }
    transpose(head, word);
    const __m512 d = floats_of(_mm512_srli_epi32(word[3], 16));
    return add_block(QKVI_Q6_K, fold(sums), zero, d, d, x->scale, c);
}

/* ---- All ------------------------------------------------------------------------------------- */

/* All rows of A by the blocks of a panel, that is 16 columns of C or fewer. */
typedef struct product {
    const uint8_t *a;
    float *c;
    int64_t a_row, c_row;
    __mmask16 columns;
    bool add, has_bias;
    __m512 bias;
    int n_blocks; /* short ones */
    const short_panel *shorts;
    const long_panel *one;
} product;

B_INLINE void some_rows(const qkvi_block_kind kind, const int R, const product *p, int64_t i) {
    __m512 c[ROWS];
    const uint8_t *const a = p->a + i * p->a_row;
#pragma GCC unroll 8
    for (int r = 0; r < R; r++)
        c[r] = p->add ? _mm512_maskz_loadu_ps(p->columns, p->c + (i + r) * p->c_row)
                      : _mm512_setzero_ps();
    if (block_is_long(kind))
        long_tile(kind, R, p->one, a, p->a_row, c);
    else
        short_tile(kind, R, p->n_blocks, p->shorts, a, p->a_row, c);
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
        if (p->has_bias) c[r] = _mm512_add_ps(c[r], p->bias);
        _mm512_mask_storeu_ps(p->c + (i + r) * p->c_row, p->columns, c[r]);
    }
}

B_INLINE void all_rows(const qkvi_block_kind kind, const product *p, int64_t n_rows) {
    int64_t i = 0;
    for (; n_rows - i >= 8; i += 8) some_rows(kind, 8, p, i);
    if (n_rows - i >= 4) {
        some_rows(kind, 4, p, i);
        i += 4;
    }
    if (n_rows - i >= 2) {
        some_rows(kind, 2, p, i);
        i += 2;
    }
    if (n_rows - i >= 1) some_rows(kind, 1, p, i);
}

/* blocks.h: multiply */
typedef struct operands {
    int64_t n_blocks, n_rows, a_row, n_cols, b_row, c_row;
    const uint8_t *a, *b;
    float *c;
    int add;
    const float *bias;
} operands;

B_INLINE void announce(const uint8_t *at, int bytes) {
    for (int line = 0; line < bytes; line += 64) _mm_prefetch((const char *)at + line, _MM_HINT_T1);
}

/*
 * The sixteen rows of W from j on, of fewer the last one several times; the next sixteen, if they
 * are announced; and which lanes are columns.
 */
typedef struct columns {
    const uint8_t *row[LANES], *ahead;
    __mmask16 mask;
} columns;

B_INLINE columns columns_at(const operands *o, int64_t j) {
    const int64_t left = o->n_cols - j;
    const int n = (int)(left < LANES ? left : LANES);
    const bool announces = o->b_row <= MOST_AHEAD && left >= 2 * LANES;
    columns x = { .ahead = announces ? o->b + (j + LANES) * o->b_row : NULL,
                  .mask = (__mmask16)((1u << n) - 1) };
    for (int l = 0; l < LANES; l++) x.row[l] = o->b + (j + (l < n ? l : n - 1)) * o->b_row;
    return x;
}

B_INLINE void by_one(const qkvi_block_kind kind, const operands *o) {
    const int bytes = block_bytes(kind);
    for (int64_t j = 0; j < o->n_cols; j += LANES) {
        const columns w = columns_at(o, j);
        __m512 c = o->add ? _mm512_maskz_loadu_ps(w.mask, o->c + j) : _mm512_setzero_ps();
        for (int64_t g = 0; g < o->n_blocks; g++) {
            const qkvi_short_group *const x = (const qkvi_short_group *)o->a + g;
            const qkvi_long_group *const y = (const qkvi_long_group *)o->a + g;
            if (w.ahead) announce(w.ahead + g * LANES * bytes, LANES * bytes);
            if (!block_is_long(kind))
                c = one_short(kind, w.row, g * bytes, x, c);
            else if (kind == QKVI_Q6_K)
                c = one_6(w.row, g * bytes, y, c);
            else
                c = one_45(kind, w.row, g * bytes, y, c);
        }
        if (o->bias) c = _mm512_add_ps(c, _mm512_maskz_loadu_ps(w.mask, o->bias + j));
        _mm512_mask_storeu_ps(o->c + j, w.mask, c);
    }
}

/* rows: all_rows, in a frame of its own, so that none is above 8 KiB. */
B_INLINE void by_panels(const qkvi_block_kind kind, void (*rows)(const product *, int64_t),
                        const operands *o) {
    const int at_once = block_is_long(kind) ? 1 : SHORT_BLOCKS, bytes = block_bytes(kind);
    const int64_t group_bytes =
        (int64_t)(block_is_long(kind) ? sizeof(qkvi_long_group) : sizeof(qkvi_short_group));
    union {
        short_panel shorts[SHORT_BLOCKS];
        long_panel one;
    } panel;
    for (int64_t j = 0; j < o->n_cols; j += LANES) {
        const columns w = columns_at(o, j);
        for (int64_t g = 0; g == 0 || g < o->n_blocks; g += at_once) {
            const int64_t rest = o->n_blocks - g;
            const int some = (int)(rest < at_once ? rest : at_once);
            for (int s = 0; s < some; s++) {
                if (w.ahead) announce(w.ahead + (g + s) * LANES * bytes, LANES * bytes);
                if (!block_is_long(kind))
                    pack_short(kind, w.row, (g + s) * bytes, &panel.shorts[s]);
                else if (kind == QKVI_Q6_K)
                    pack_6(w.row, g * bytes, &panel.one);
                else
                    pack_45(kind, w.row, g * bytes, &panel.one);
            }
            product p = { .a = o->a + g * group_bytes,
                          .a_row = o->a_row,
                          .c = o->c + j,
                          .c_row = o->c_row,
                          .columns = w.mask,
                          .add = o->add || g > 0,
                          .has_bias = o->bias && g + at_once >= o->n_blocks,
                          .n_blocks = some,
                          .shorts = panel.shorts,
                          .one = &panel.one };
            if (p.has_bias) p.bias = _mm512_maskz_loadu_ps(w.mask, o->bias + j);
            rows(&p, o->n_rows);
        }
    }
}

#define BOTH(kind)                                                                                 \
    static __attribute__((noinline)) void all_rows_##kind(const product *p, int64_t n_rows) {      \
        all_rows(QKVI_##kind, p, n_rows);                                                          \
    }                                                                                              \
    static __attribute__((noinline)) void one_row_##kind(const operands *o) {                      \
        by_one(QKVI_##kind, o);                                                                    \
    }                                                                                              \
    static __attribute__((noinline)) void many_rows_##kind(const operands *o) {                    \
        by_panels(QKVI_##kind, all_rows_##kind, o);                                                \
    }
BOTH(Q4_0)
BOTH(Q4_1)
BOTH(Q5_0)
BOTH(Q8_0)
BOTH(Q4_K)
BOTH(Q5_K)
BOTH(Q6_K)
#undef BOTH

static void multiply(qkvi_block_kind kind, int64_t n_blocks, int64_t n_rows, const void *a,
                     int64_t a_row, int64_t n_cols, const uint8_t *b, int64_t b_row, float *c,
                     int64_t c_row, int add, const float *bias) {
#define OF(rows)                                                                                   \
    { rows##_Q4_0, rows##_Q4_1, rows##_Q5_0, rows##_Q8_0, rows##_Q4_K, rows##_Q5_K, rows##_Q6_K }
    static void (*const products[][QKVI_N_BLOCK_KINDS])(const operands *) = { OF(one_row),
                                                                              OF(many_rows) };
#undef OF
    const operands o = { n_blocks, n_rows, a_row, n_cols, b_row, c_row, a, b, c, add, bias };
    products[n_rows > 1][kind](&o);
}

const qkvi_block_kernels qkvi_blocks_avx512bf16 = { blocks_round, multiply };
