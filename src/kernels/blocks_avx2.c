/*
 * Products by blocks in AVX2 (blocks.h). Eight rows of W are computed together, in the lanes of a
 * vector. A block's integers are unsigned bytes, which VPMADDUBSW multiplies by the signed ones of
 * A; two products fit 16 bits (at most 2 · 128 · 127).
 *
 * One or two rows of A (a token): each block gives a vector of sums, and eight vectors are added
 * across. More rows: panels (tmpl/blocks_panel.h).
 */
#include <immintrin.h>

#include "kernels/tmpl/blocks.h"

#ifndef __AVX2__
#error "compile with -mavx2 -mfma -mf16c"
#endif

enum { LANES = 8, ROWS = 4, Q8_TOP = 0 };

typedef __m256i bi;
typedef __m256 bf;
typedef __m256i bm;

#define B_OP(name)           _mm256_##name
#define B_COUNT(n)           (n)
#define B_QUARTER(x)         _mm256_broadcastsi128_si256(x)
#define B_SHUFFLE(x, order)  _mm256_shuffle_epi32(x, order)
#define B_BLEND(a, b, which) _mm256_blend_epi32(a, b, which)

B_INLINE bi b_load(const void *at) { return _mm256_load_si256((const __m256i *)at); }
B_INLINE void b_store(void *at, bi x) { _mm256_store_si256((__m256i *)at, x); }
B_INLINE bm b_mask(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
B_INLINE bf b_load_n(bm mask, const float *at) { return _mm256_maskload_ps(at, mask); }
B_INLINE void b_store_n(bm mask, float *at, bf x) { _mm256_maskstore_ps(at, mask, x); }

/* Of rows i and 4 + i. */
B_INLINE bi some_of_rows(const uint8_t *const row[LANES], int i, int64_t at) {
    return _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(row[i] + at))),
        _mm_loadu_si128((const __m128i *)(row[4 + i] + at)), 1);
}

B_INLINE bi add_fifth(bi x, bi bits, bi mask) {
    return x | (_mm256_cmpeq_epi8(bits & mask, mask) & _mm256_set1_epi8(16));
}

B_INLINE void put_d_m(bi word, float d[LANES], float m[LANES]) {
    const bi halves =
        _mm256_packus_epi32(word & _mm256_set1_epi32(0xFFFF), _mm256_srli_epi32(word, 16));
    const bi both = _mm256_permute4x64_epi64(halves, 0xD8); /* all d, then all m */
    _mm256_store_ps(d, _mm256_cvtph_ps(_mm256_castsi256_si128(both)));
    _mm256_store_ps(m, _mm256_cvtph_ps(_mm256_extracti128_si256(both, 1)));
}

B_INLINE bi add_pairs(bi c, bi x, bi y) { return _mm256_add_epi32(c, _mm256_madd_epi16(x, y)); }
B_INLINE bi quad_of(const void *q) { return _mm256_set1_epi32(block_quad(q)); }

/* In either half of a word. */
B_INLINE bi scale_of(bi s) { return (s & _mm256_set1_epi32(0xFFFF)) | _mm256_slli_epi32(s, 16); }

/* Quads whose products, added two by two, fit 16 bits: of at most 15, 31 or 63 times 127 each. */
B_INLINE int quads_in_16(const qkvi_block_kind kind) {
    return kind == QKVI_Q8_0                        ? 1
           : kind == QKVI_Q6_K                      ? 2
           : kind == QKVI_Q5_0 || kind == QKVI_Q5_K ? 4
                                                    : 8;
}

B_INLINE void dot_quads(const qkvi_block_kind kind, const int R, const uint8_t (*w)[LANES][4],
                        const int8_t *const q[ROWS], int from, int to, bi s, bi sums[ROWS]) {
    const int some = quads_in_16(kind);
#pragma GCC unroll 8
    for (int k0 = from; k0 < to; k0 += some) {
        bi pairs[ROWS];
#pragma GCC unroll 8
        for (int k = k0; k < k0 + some; k++) {
            const bi x = b_load(w[k]), size = kind == QKVI_Q8_0 ? _mm256_abs_epi8(x) : x;
#pragma GCC unroll 4
            for (int r = 0; r < R; r++) {
                const bi a = quad_of(q[r] + 4 * k);
                const bi two =
                    _mm256_maddubs_epi16(size, kind == QKVI_Q8_0 ? _mm256_sign_epi8(a, x) : a);
                pairs[r] = k == k0 ? two : _mm256_add_epi16(pairs[r], two);
            }
        }
#pragma GCC unroll 4
        for (int r = 0; r < R; r++) sums[r] = add_pairs(sums[r], pairs[r], s);
    }
}

#include "kernels/tmpl/blocks_panel.h"

/* A block: its bytes, and of 256 elements s and t of each 16. */
typedef struct unpacked {
    __m256i q[8], scales[8]; /* 16-bit lanes, as VPMADDUBSW leaves products */
    __m256i each, leasts;    /* s and t, in 16-bit lanes */
} unpacked;

/* ---- Unpacking ------------------------------------------------------------------------------- */

B_INLINE __m256i load(const void *at) { return _mm256_loadu_si256((const __m256i *)at); }

/* 16 bytes of halves: the low ones, then the high ones. */
B_INLINE __m256i nibbles(const uint8_t *qs) {
    const __m128i x = _mm_loadu_si128((const __m128i *)qs);
    return _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(x, 4), x), _mm256_set1_epi8(15));
}

/* 16 where a bit is set, of 32 bits. */
B_INLINE __m256i fifth_bits(const uint8_t *at) {
    uint32_t bits;
    memcpy(&bits, at, sizeof bits);
    const __m256i bytes = _mm256_shuffle_epi8(
        _mm256_set1_epi32((int)bits),
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
    const __m256i mask = _mm256_set1_epi64x((long long)0x8040201008040201);
    const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, mask), mask);
    return _mm256_and_si256(set, _mm256_set1_epi8(16));
}

B_INLINE __m256i unpack_short(const qkvi_block_kind kind, const uint8_t *b) {
    switch (kind) {
    case QKVI_Q4_0: return nibbles(b + 2);
    case QKVI_Q4_1: return nibbles(b + 4);
    case QKVI_Q5_0: return _mm256_or_si256(nibbles(b + 6), fifth_bits(b + 2));
    default: return load(b + 2);
    }
}

/* Number g of the eight 16-bit lanes of either half, everywhere in that half. */
B_INLINE __m256i spread(__m256i lanes, int g) {
    return _mm256_shuffle_epi8(lanes, _mm256_set1_epi16((short)(2 * g | (2 * g + 1) << 8)));
}

B_INLINE void unpack_6(const uint8_t *b, unpacked *u) {
    const __m256i four = _mm256_set1_epi8(15), top = _mm256_set1_epi8(0x30);
    for (int h = 0; h < 2; h++) {
        const __m256i x = load(b + 64 * h), y = load(b + 64 * h + 32), z = load(b + 128 + 32 * h);
        __m256i *const q = u->q + 4 * h;
        q[0] = _mm256_or_si256(_mm256_and_si256(x, four),
                               _mm256_and_si256(_mm256_slli_epi16(z, 4), top));
        q[1] = _mm256_or_si256(_mm256_and_si256(y, four),
                               _mm256_and_si256(_mm256_slli_epi16(z, 2), top));
        q[2] = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(x, 4), four),
                               _mm256_and_si256(z, top));
        q[3] = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(y, 4), four),
                               _mm256_and_si256(_mm256_srli_epi16(z, 2), top));
    }
    /* of the 16 low elements of each 32 in the low half, of the high ones in the high half */
    const __m128i s = _mm_loadu_si128((const __m128i *)(b + 192));
    const __m128i apart = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    const __m256i scales = _mm256_cvtepi8_epi16(_mm_shuffle_epi8(s, apart));
    for (int g = 0; g < 8; g++) u->scales[g] = spread(scales, g);
    u->each = _mm256_cvtepi8_epi16(s);
}

B_INLINE void unpack_45(const qkvi_block_kind kind, const uint8_t *b, unpacked *u) {
    const __m256i four = _mm256_set1_epi8(15), fifth = _mm256_set1_epi8(16);
    const bool has_high = kind == QKVI_Q5_K;
    const uint8_t *const qs = b + (has_high ? 48 : 16);
    uint8_t s[8], t[8];
    for (int p = 0; p < 4; p++) {
        const __m256i x = load(qs + 32 * p);
        u->q[2 * p] = _mm256_and_si256(x, four);
        u->q[2 * p + 1] = _mm256_and_si256(_mm256_srli_epi16(x, 4), four);
    }
    const __m256i high = has_high ? load(b + 16) : _mm256_setzero_si256();
    for (int g = 0; has_high && g < 8; g++) {
        const __m256i moved =
            g < 4 ? _mm256_slli_epi16(high, 4 - g) : _mm256_srli_epi16(high, g - 4);
        u->q[g] = _mm256_or_si256(u->q[g], _mm256_and_si256(moved, fifth));
    }
    block_scales(b + 4, s, t);
    const __m128i scale = _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)s));
    for (int g = 0; g < 8; g++) u->scales[g] = spread(_mm256_set_m128i(scale, scale), g);
    const __m128i least = _mm_loadl_epi64((const __m128i *)t);
    u->leasts = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(least, least));
}

B_INLINE void unpack(const qkvi_block_kind kind, const uint8_t *b, unpacked *u) {
    if (!block_is_long(kind))
        u->q[0] = unpack_short(kind, b);
    else if (kind == QKVI_Q6_K)
        unpack_6(b, u);
    else
        unpack_45(kind, b, u);
}

/* ---- Sums of a block and a group, in eight parts --------------------------------------------- */

B_INLINE __m256i dot_short(const qkvi_block_kind kind, const unpacked *u,
                           const qkvi_short_group *x) {
    const __m256i a = load(x->q);
    if (kind == QKVI_Q8_0) /* |q_W| is unsigned, and q_A has the sign of both */
        return _mm256_madd_epi16(
            _mm256_maddubs_epi16(_mm256_abs_epi8(u->q[0]), _mm256_sign_epi8(a, u->q[0])),
            _mm256_set1_epi16(1));
    return _mm256_maddubs_epi16(u->q[0], a); /* 16 sums: see reduce */
}

B_INLINE __m256i dot_long(const qkvi_block_kind kind, const unpacked *u, const qkvi_long_group *x) {
    __m256i sum = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int g = 0; g < 8; g++) {
        const __m256i pairs = _mm256_maddubs_epi16(u->q[g], load(x->q + 32 * g));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, u->scales[g]));
    }
    if (kind != QKVI_Q6_K) return sum;
    const __m256i zero = _mm256_madd_epi16(u->each, load(x->sums));
    return _mm256_sub_epi32(sum, _mm256_slli_epi32(zero, 5));
}

/* Sums of lanes 0 and 2, 1 and 3 of either half, of two vectors in turn; then of what that left. */
B_INLINE __m256i fold(bool in_16, __m256i low, __m256i high) {
    return in_16 ? _mm256_add_epi16(low, high) : _mm256_add_epi32(low, high);
}
B_INLINE __m256i fold_four(bool in_16, const __m256i v[4]) {
    const __m256i a =
        fold(in_16, _mm256_unpacklo_epi32(v[0], v[1]), _mm256_unpackhi_epi32(v[0], v[1]));
    const __m256i b =
        fold(in_16, _mm256_unpacklo_epi32(v[2], v[3]), _mm256_unpackhi_epi32(v[2], v[3]));
    return fold(in_16, _mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}

/*
 * The sums of eight vectors, in order. Those of 16 bits are of two products of at most 31 · 127
 * each, and four of these fit 16 bits.
 */
B_INLINE __m256i reduce(bool in_16, const __m256i v[LANES]) {
    __m256i a = fold_four(in_16, v), b = fold_four(in_16, v + 4);
    if (in_16) {
        a = _mm256_madd_epi16(a, _mm256_set1_epi16(1));
        b = _mm256_madd_epi16(b, _mm256_set1_epi16(1));
    }
    return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20),
                            _mm256_permute2x128_si256(a, b, 0x31));
}

/* Whether the sums of a kind's blocks are of 16 bits. */
B_INLINE bool is_in_16(const qkvi_block_kind kind) {
    return !block_is_long(kind) && kind != QKVI_Q8_0;
}

/* ---- Eight sums ------------------------------------------------------------------------------ */

/* Two f16 at `at` of each of eight blocks. */
B_INLINE void two_halves(const uint8_t *b, int64_t row, int at, __m256 *first, __m256 *second) {
    __m128i x[LANES];
#pragma GCC unroll 8
    for (int i = 0; i < LANES; i++) {
        int both;
        memcpy(&both, b + i * row + at, sizeof both);
        x[i] = _mm_cvtsi32_si128(both);
    }
    const __m128i low =
        _mm_unpacklo_epi64(_mm_unpacklo_epi32(x[0], x[1]), _mm_unpacklo_epi32(x[2], x[3]));
    const __m128i high =
        _mm_unpacklo_epi64(_mm_unpacklo_epi32(x[4], x[5]), _mm_unpacklo_epi32(x[6], x[7]));
    const __m128i mask = _mm_set1_epi32(0xFFFF);
    *first = _mm256_cvtph_ps(_mm_packus_epi32(_mm_and_si128(low, mask), _mm_and_si128(high, mask)));
    *second = _mm256_cvtph_ps(_mm_packus_epi32(_mm_srli_epi32(low, 16), _mm_srli_epi32(high, 16)));
}

/*
 * Of eight rows of W, which are b_row bytes apart, and one of A. Of Q6_K, d is the upper of two
 * halves: nothing may be read behind a block. ahead: the next eight rows, which are announced from
 * end to end; NULL: none are. (The processor does not see eight streams.)
 */
B_INLINE __m256 eight_columns(const qkvi_block_kind kind, int64_t n_blocks, const void *a,
                              const uint8_t *w, int64_t b_row, const uint8_t *ahead, __m256 c) {
    const bool d_is_last = kind == QKVI_Q6_K;
    const int at = block_d_at(kind) - 2 * d_is_last;
    for (int64_t g = 0; g < n_blocks; g++, w += block_bytes(kind)) {
        announce(ahead, g, block_bytes(kind));
        const qkvi_short_group *const x = (const qkvi_short_group *)a + g;
        const qkvi_long_group *const y = (const qkvi_long_group *)a + g;
        const float scale = block_is_long(kind) ? y->scale : x->scale;
        __m256i sums[LANES], leasts[LANES], least = _mm256_setzero_si256();
#pragma GCC unroll 8
        for (int j = 0; j < LANES; j++) {
            unpacked u;
            unpack(kind, w + j * b_row, &u);
            sums[j] = block_is_long(kind) ? dot_long(kind, &u, y) : dot_short(kind, &u, x);
            if (block_is_long(kind) && block_has_least(kind))
                leasts[j] = _mm256_madd_epi16(u.leasts, load(y->sums));
        }
        __m256i sum = reduce(is_in_16(kind), sums);
        if (!block_is_long(kind)) {
            least = _mm256_set1_epi32(x->sum);
            if (block_zero(kind))
                sum = _mm256_sub_epi32(sum, _mm256_set1_epi32(block_zero(kind) * x->sum));
        } else if (block_has_least(kind)) {
            least = _mm256_sub_epi32(least, reduce(false, leasts));
        }
        __m256 d, m;
        two_halves(w, b_row, at, &d, &m);
        c = add_block(kind, sum, least, d_is_last ? m : d, m, scale, c);
    }
    return c;
}

/* ---- All ------------------------------------------------------------------------------------- */

B_INLINE void put_sum(const operands *p, int64_t i, int64_t j, float sum) {
    p->c[i * p->c_row + j] = p->bias ? sum + p->bias[j] : sum;
}

/* One row by all columns. */
B_INLINE void by_columns(const qkvi_block_kind kind, const operands *p, int64_t i) {
    for (int64_t j = 0; j < p->n_cols; j += LANES) {
        float sums[LANES] = { 0 };
        const int n = (int)(p->n_cols - j < LANES ? p->n_cols - j : LANES);
        for (int l = 0; p->add && l < n; l++) sums[l] = p->c[i * p->c_row + j + l];
        const uint8_t *const a = p->a + i * p->a_row, *const b = p->b + j * p->b_row;
        if (n == LANES) {
            const bool announces = p->b_row <= MOST_AHEAD && j + 2 * LANES <= p->n_cols;
            const uint8_t *const ahead = announces ? b + LANES * p->b_row : NULL;
            const __m256 c =
                eight_columns(kind, p->n_blocks, a, b, p->b_row, ahead, _mm256_loadu_ps(sums));
            _mm256_storeu_ps(sums, c);
        } else { /* the same row of W eight times */
            for (int l = 0; l < n; l++) {
                const __m256 c = eight_columns(kind, p->n_blocks, a, b + l * p->b_row, 0, NULL,
                                               _mm256_set1_ps(sums[l]));
                sums[l] = _mm256_cvtss_f32(c);
            }
        }
        for (int l = 0; l < n; l++) put_sum(p, i, j + l, sums[l]);
    }
}

B_INLINE void few_rows(const qkvi_block_kind kind, const operands *p) {
    for (int64_t i = 0; i < p->n_rows; i++) by_columns(kind, p, i);
}

BLOCKS_MULTIPLY(few_rows, 3) /* three are worth a panel */

const qkvi_block_kernels qkvi_blocks_avx2 = { blocks_round, multiply };
