/*
 * Products by blocks in AVX2 (blocks.h). Eight sums are computed together, in the lanes of a
 * vector: of eight rows of W and one of A (a token), or of one row of W, whose blocks are unpacked
 * once, and eight of A. A block's integers are unsigned bytes, which VPMADDUBSW multiplies by the
 * signed ones of A; two products fit 16 bits (at most 2 · 128 · 127).
 */
#include <immintrin.h>

#include "kernels/tmpl/blocks.h"

#ifndef __AVX2__
#error "compile with -mavx2 -mfma -mf16c"
#endif

/* Rows of at most so many bytes are announced, eight at a time, to the second-level cache. */
enum { LANES = 8, MOST_AHEAD = 1 << 15, BLOCKS_AT_ONCE = 32 };

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

/* The first two words of each of eight groups: the scales, and of short groups their sums. */
B_INLINE void two_words(const uint8_t *const a[LANES], int64_t at, __m256 *scale, __m256i *sum) {
    __m128i x[LANES];
#pragma GCC unroll 8
    for (int i = 0; i < LANES; i++) x[i] = _mm_loadl_epi64((const __m128i *)(a[i] + at));
    const __m128i p = _mm_unpacklo_epi32(x[0], x[1]), q = _mm_unpacklo_epi32(x[2], x[3]);
    const __m128i r = _mm_unpacklo_epi32(x[4], x[5]), s = _mm_unpacklo_epi32(x[6], x[7]);
    *scale =
        _mm256_castsi256_ps(_mm256_set_m128i(_mm_unpacklo_epi64(r, s), _mm_unpacklo_epi64(p, q)));
    *sum = _mm256_set_m128i(_mm_unpackhi_epi64(r, s), _mm_unpackhi_epi64(p, q));
}

B_INLINE __m256 add_blocks(const qkvi_block_kind kind, __m256i sum, __m256i least, __m256 d,
                           __m256 m, __m256 scale, __m256 c) {
    c = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), _mm256_mul_ps(d, scale), c);
    if (!block_has_least(kind)) return c;
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(least), _mm256_mul_ps(m, scale), c);
}

/*
 * Of eight rows of W, which are b_row bytes apart, and one of A. Of Q6_K, d is the upper of two
 * halves: nothing may be read behind a block. ahead: the next eight rows, which are announced from
 * end to end; NULL: none are. (The processor does not see eight streams.)
 */
B_INLINE __m256 eight_columns(const qkvi_block_kind kind, int64_t n_blocks, const void *a,
                              const uint8_t *w, int64_t b_row, const uint8_t *ahead, __m256 c) {
    const bool d_is_last = kind == QKVI_Q6_K;
    const int at = block_d_at(kind) - 2 * d_is_last, all_bytes = LANES * block_bytes(kind);
    for (int64_t g = 0; g < n_blocks; g++, w += block_bytes(kind)) {
        for (int line = 0; ahead && line < all_bytes; line += 64)
            _mm_prefetch((const char *)ahead + g * all_bytes + line, _MM_HINT_T1);
        const qkvi_short_group *const x = (const qkvi_short_group *)a + g;
        const qkvi_long_group *const y = (const qkvi_long_group *)a + g;
        const __m256 scale = _mm256_set1_ps(block_is_long(kind) ? y->scale : x->scale);
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
        c = add_blocks(kind, sum, least, d_is_last ? m : d, m, scale, c);
    }
    return c;
}

/* Of one row of W and eight of A, whose scales and sums are side by side already. */
B_INLINE __m256 eight_rows(const qkvi_block_kind kind, int64_t n_blocks,
                           const uint8_t *const a[LANES], const __m256 *scales, const __m256i *all,
                           const uint8_t *w, __m256 c) {
    const int at = block_d_at(kind);
    for (int64_t g = 0; g < n_blocks; g++, w += block_bytes(kind)) {
        __m256i sums[LANES], leasts[LANES], least = _mm256_setzero_si256();
        unpacked u;
        unpack(kind, w, &u);
#pragma GCC unroll 8
        for (int i = 0; i < LANES; i++) {
            const qkvi_short_group *const x = (const qkvi_short_group *)a[i] + g;
            const qkvi_long_group *const y = (const qkvi_long_group *)a[i] + g;
            sums[i] = block_is_long(kind) ? dot_long(kind, &u, y) : dot_short(kind, &u, x);
            if (block_is_long(kind) && block_has_least(kind))
                leasts[i] = _mm256_madd_epi16(u.leasts, load(y->sums));
        }
        __m256i sum = reduce(is_in_16(kind), sums);
        if (!block_is_long(kind)) {
            least = all[g];
            if (block_zero(kind))
                sum = _mm256_sub_epi32(
                    sum, _mm256_mullo_epi32(least, _mm256_set1_epi32(block_zero(kind))));
        } else if (block_has_least(kind)) {
            least = _mm256_sub_epi32(least, reduce(false, leasts));
        }
        const __m256 d = _mm256_set1_ps(_cvtsh_ss(block_u16(w + at)));
        const __m256 m =
            block_has_least(kind) ? _mm256_set1_ps(_cvtsh_ss(block_u16(w + at + 2))) : d;
        c = add_blocks(kind, sum, least, d, m, scales[g], c);
    }
    return c;
}

/* ---- All ------------------------------------------------------------------------------------- */

typedef struct product {
    int64_t n_blocks, n_rows, a_row, n_cols, b_row, c_row;
    const uint8_t *a, *b;
    float *c;
    int add;
    const float *bias;
} product;

B_INLINE void put(const product *p, int64_t i, int64_t j, float sum) {
    p->c[i * p->c_row + j] = p->bias ? sum + p->bias[j] : sum;
}

/* One row by all columns. */
B_INLINE void by_columns(const qkvi_block_kind kind, const product *p, int64_t i) {
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
        for (int l = 0; l < n; l++) put(p, i, j + l, sums[l]);
    }
}

/* Eight rows, of fewer than eight the last one several times, by all columns. */
B_INLINE void by_rows(const qkvi_block_kind kind, const product *p, int64_t i, int n) {
    const int64_t bytes =
        (int64_t)(block_is_long(kind) ? sizeof(qkvi_long_group) : sizeof(qkvi_short_group));
    __m256 scales[BLOCKS_AT_ONCE];
    __m256i all[BLOCKS_AT_ONCE];
    for (int64_t g0 = 0; g0 == 0 || g0 < p->n_blocks; g0 += BLOCKS_AT_ONCE) {
        const int64_t left = p->n_blocks - g0, some = left < BLOCKS_AT_ONCE ? left : BLOCKS_AT_ONCE;
        const bool is_last = some == left;
        const uint8_t *a[LANES];
        for (int l = 0; l < LANES; l++)
            a[l] = p->a + (i + (l < n ? l : n - 1)) * p->a_row + g0 * bytes;
        for (int64_t g = 0; g < some; g++) two_words(a, g * bytes, &scales[g], &all[g]);
        for (int64_t j = 0; j < p->n_cols; j++) {
            float *const c = p->c + i * p->c_row + j, sums[LANES] = { 0 };
            for (int l = 0; (p->add || g0 > 0) && l < n; l++) sums[l] = c[l * p->c_row];
            const __m256 made =
                eight_rows(kind, some, a, scales, all, p->b + j * p->b_row + g0 * block_bytes(kind),
                           _mm256_loadu_ps(sums));
            _mm256_storeu_ps(sums, made);
            const float bias = is_last && p->bias ? p->bias[j] : 0;
            for (int l = 0; l < n; l++)
                c[l * p->c_row] = is_last && p->bias ? sums[l] + bias : sums[l];
        }
    }
}

/* Three rows and more are worth a vector of eight. */
B_INLINE void all_of(const qkvi_block_kind kind, const product *p) {
    int64_t i = 0;
    for (; p->n_rows - i >= 3; i += p->n_rows - i < LANES ? p->n_rows - i : LANES)
        by_rows(kind, p, i, (int)(p->n_rows - i < LANES ? p->n_rows - i : LANES));
    for (; i < p->n_rows; i++) by_columns(kind, p, i);
}

#define ALL_OF(kind)                                                                               \
    static __attribute__((noinline)) void all_##kind(const product *p) { all_of(QKVI_##kind, p); }
ALL_OF(Q4_0)
ALL_OF(Q4_1)
ALL_OF(Q5_0)
ALL_OF(Q8_0)
ALL_OF(Q4_K)
ALL_OF(Q5_K)
ALL_OF(Q6_K)
#undef ALL_OF

static void multiply(qkvi_block_kind kind, int64_t n_blocks, int64_t n_rows, const void *a,
                     int64_t a_row, int64_t n_cols, const uint8_t *b, int64_t b_row, float *c,
                     int64_t c_row, int add, const float *bias) {
    static void (*const all[])(const product *p) = { all_Q4_0, all_Q4_1, all_Q5_0, all_Q8_0,
                                                     all_Q4_K, all_Q5_K, all_Q6_K };
    const product p = { n_blocks, n_rows, a_row, n_cols, b_row, c_row, a, b, c, add, bias };
    all[kind](&p);
}

const qkvi_block_kernels qkvi_blocks_avx2 = { blocks_round, multiply };
