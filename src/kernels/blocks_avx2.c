/*
 * Products by blocks in AVX2 (blocks.h). Eight rows of W are computed together, in the lanes of a
 * vector. A block's integers are unsigned bytes, which VPMADDUBSW multiplies by the signed ones of
 * A; two products fit 16 bits (at most 2 · 128 · 127).
 *
 * One or two rows of A (a token): each block gives a vector of sums, and eight vectors are added
 * across. More rows: a block of the eight is packed into a panel, where four neighbours of a row
 * are a lane, beside four of A in all lanes, and used for all rows.
 */
#include <immintrin.h>

#include "kernels/tmpl/blocks.h"

#ifndef __AVX2__
#error "compile with -mavx2 -mfma -mf16c"
#endif

/* Rows of at most so many bytes are announced, eight at a time, to the second-level cache. */
enum { LANES = 8, ROWS = 4, SHORT_BLOCKS = 8, MOST_AHEAD = 1 << 15 };

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

/* ---- Panels ---------------------------------------------------------------------------------- */

/* Of eight rows a block of 32 elements, and one of 256. */
typedef struct short_panel {
    _Alignas(32) float d[LANES], m[LANES];
    uint8_t q[8][LANES][4];
} short_panel;

typedef struct long_panel {
    _Alignas(32) float d[LANES], m[LANES];
    int16_t s[16][LANES][2];     /* twice: of each group of 16 (Q6_K), or the first eight, of 32 */
    int16_t others[8][LANES][2]; /* s (Q6_K) or t of 16 elements and the next 16 */
    uint8_t q[64][LANES][4];
} long_panel;

/* Each row's 16 bytes at `at`: those of rows i and 4 + i. */
B_INLINE __m256i two_rows(const uint8_t *const row[LANES], int i, int64_t at) {
    return _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(row[i] + at))),
        _mm_loadu_si128((const __m128i *)(row[4 + i] + at)), 1);
}

/* Word n of all rows, in order, for n from 0 to 3. */
B_INLINE void transpose(const __m256i x[4], __m256i word[4]) {
    const __m256i a = _mm256_unpacklo_epi32(x[0], x[1]), b = _mm256_unpacklo_epi32(x[2], x[3]);
    const __m256i c = _mm256_unpackhi_epi32(x[0], x[1]), d = _mm256_unpackhi_epi32(x[2], x[3]);
    word[0] = _mm256_unpacklo_epi64(a, b);
    word[1] = _mm256_unpackhi_epi64(a, b);
    word[2] = _mm256_unpacklo_epi64(c, d);
    word[3] = _mm256_unpackhi_epi64(c, d);
}

B_INLINE void put(void *to, __m256i x) { _mm256_store_si256((__m256i *)to, x); }

/* Sixteen elements of all rows. */
B_INLINE void put_quads(const __m256i x[4], uint8_t q[4][LANES][4]) {
    __m256i word[4];
    transpose(x, word);
    for (int n = 0; n < 4; n++) put(q[n], word[n]);
}

B_INLINE __m256i low_halves(__m256i x) { return _mm256_and_si256(x, _mm256_set1_epi8(15)); }
B_INLINE __m256i high_halves(__m256i x) { return low_halves(_mm256_srli_epi16(x, 4)); }

/* x + 16 where the bit of `mask` is one of `bits`. */
B_INLINE __m256i add_fifth(__m256i x, __m256i bits, __m256i mask) {
    const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(bits, mask), mask);
    return _mm256_or_si256(x, _mm256_and_si256(set, _mm256_set1_epi8(16)));
}

/* d and m, which are two halves of a word. */
B_INLINE void put_d_m(__m256i word, float d[LANES], float m[LANES]) {
    const __m256i halves = _mm256_packus_epi32(_mm256_and_si256(word, _mm256_set1_epi32(0xFFFF)),
                                               _mm256_srli_epi32(word, 16));
    const __m256i both = _mm256_permute4x64_epi64(halves, 0xD8); /* all d, then all m */
    _mm256_store_ps(d, _mm256_cvtph_ps(_mm256_castsi256_si128(both)));
    _mm256_store_ps(m, _mm256_cvtph_ps(_mm256_extracti128_si256(both, 1)));
}

B_INLINE void pack_short(const qkvi_block_kind kind, const uint8_t *const row[LANES], int64_t at,
                         short_panel *to) {
    const int q_at = kind == QKVI_Q4_1 ? 4 : kind == QKVI_Q5_0 ? 6 : 2;
    __m256i head[4], low[4], high[4], word[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m256i x = two_rows(row, i, at + q_at);
        head[i] = two_rows(row, i, at);
        low[i] = kind == QKVI_Q8_0 ? x : low_halves(x);
        high[i] = kind == QKVI_Q8_0 ? two_rows(row, i, at + q_at + 16) : high_halves(x);
        if (kind != QKVI_Q5_0) continue;
        /* 32 bits, in bytes 2 to 5 */
        const __m256i one = _mm256_set1_epi64x((long long)0x8040201008040201);
        const __m256i first =
            _mm256_broadcastsi128_si256(_mm_set_epi64x(0x0303030303030303, 0x0202020202020202));
        const __m256i next = _mm256_add_epi8(first, _mm256_set1_epi8(2));
        low[i] = add_fifth(low[i], _mm256_shuffle_epi8(head[i], first), one);
        high[i] = add_fifth(high[i], _mm256_shuffle_epi8(head[i], next), one);
    }
    put_quads(low, to->q);
    put_quads(high, to->q + 4);
    transpose(head, word);
    put_d_m(word[0], to->d, to->m);
}

/* Of d, m and twelve bytes as in block_scales: bytes 0 to 7 of each row become s, the others t. */
B_INLINE __m256i six_bits(__m256i head) {
    const __m256i low = _mm256_and_si256(head, _mm256_set1_epi8(0x3F));
    const __m256i top = _mm256_and_si256(_mm256_srli_epi16(head, 2), _mm256_set1_epi8(0x30));
    /* words: of the twelve bytes the first and the second, and of the third its lower, its upper */
    const __m256i begin = _mm256_shuffle_epi32(low, 0xA5), above = _mm256_shuffle_epi32(top, 0xA5);
    const __m256i third = _mm256_blend_epi32(_mm256_shuffle_epi32(low_halves(head), 0xFF),
                                             _mm256_shuffle_epi32(high_halves(head), 0xFF), 0xCC);
    return _mm256_blend_epi32(begin, _mm256_or_si256(above, third), 0xAA);
}

B_INLINE __m256i twice(__m256i word) { return _mm256_or_si256(word, _mm256_slli_epi32(word, 16)); }

B_INLINE void pack_45(const qkvi_block_kind kind, const uint8_t *const row[LANES], int64_t at,
                      long_panel *to) {
    const bool has_high = kind == QKVI_Q5_K;
    const int64_t qs = at + (has_high ? 48 : 16);
    const __m256i byte = _mm256_set1_epi32(0xFF);
    __m256i x[4], word[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) x[i] = two_rows(row, i, at);
    transpose(x, word);
    put_d_m(word[0], to->d, to->m);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) x[i] = six_bits(x[i]);
    transpose(x, word); /* s of groups 0 to 3, of 4 to 7, then t */
    for (int g = 0; g < 8; g++) {
        const __m256i s = _mm256_srli_epi32(word[g / 4], 8 * (g % 4));
        const __m256i t = _mm256_srli_epi32(word[2 + g / 4], 8 * (g % 4));
        put(to->s[g], twice(_mm256_and_si256(s, byte)));
        put(to->others[g], twice(_mm256_and_si256(t, byte)));
    }
    for (int half = 0; half < 2; half++) { /* of each 32 elements */
        __m256i bits[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4 && has_high; i++) bits[i] = two_rows(row, i, at + 16 + 16 * half);
        for (int p = 0; p < 4; p++) {
            __m256i low[4], high[4];
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
                const __m256i both = two_rows(row, i, qs + 32 * p + 16 * half);
                low[i] = low_halves(both);
                high[i] = high_halves(both);
                if (!has_high) continue;
                low[i] = add_fifth(low[i], bits[i], _mm256_set1_epi8((char)(1 << 2 * p)));
                high[i] = add_fifth(high[i], bits[i], _mm256_set1_epi8((char)(2 << 2 * p)));
            }
            put_quads(low, to->q + 16 * p + 4 * half);
            put_quads(high, to->q + 16 * p + 8 + 4 * half);
        }
    }
}

B_INLINE void pack_6(const uint8_t *const row[LANES], int64_t at, long_panel *to) {
    const __m256i top = _mm256_set1_epi8(0x30), lower = _mm256_set1_epi32(0xFFFF);
    __m256i x[4], word[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) x[i] = two_rows(row, i, at + 194); /* d is the last two bytes */
    transpose(x, word);
    put_d_m(_mm256_srli_epi32(word[3], 16), to->d, to->m);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) x[i] = two_rows(row, i, at + 192);
    transpose(x, word);
    for (int g = 0; g < 16; g += 2) {
        const __m256i up = _mm256_slli_epi32(word[g / 4], 24 - 8 * (g % 4));
        const __m256i next = _mm256_slli_epi32(word[g / 4], 16 - 8 * (g % 4));
        const __m256i s = _mm256_and_si256(_mm256_srai_epi32(up, 24), lower);
        const __m256i s_next = _mm256_and_si256(_mm256_srai_epi32(next, 24), lower);
        put(to->s[g], twice(s));
        put(to->s[g + 1], twice(s_next));
        put(to->others[g / 2], _mm256_or_si256(s, _mm256_slli_epi32(s_next, 16)));
    }
    for (int h = 0; h < 4; h++) { /* halves of the block, and of each 32 elements */
        uint8_t(*const q)[LANES][4] = to->q + 32 * (h / 2) + 4 * (h % 2);
        const int64_t qs = at + 64 * (h / 2) + 16 * (h % 2);
        __m256i part[4][4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            const __m256i a = two_rows(row, i, qs), b = two_rows(row, i, qs + 32);
            const __m256i z = two_rows(row, i, at + 128 + 16 * h);
            part[0][i] =
                _mm256_or_si256(low_halves(a), _mm256_and_si256(_mm256_slli_epi16(z, 4), top));
            part[1][i] =
                _mm256_or_si256(low_halves(b), _mm256_and_si256(_mm256_slli_epi16(z, 2), top));
            part[2][i] = _mm256_or_si256(high_halves(a), _mm256_and_si256(z, top));
            part[3][i] =
                _mm256_or_si256(high_halves(b), _mm256_and_si256(_mm256_srli_epi16(z, 2), top));
        }
        for (int n = 0; n < 4; n++) put_quads(part[n], q + 8 * n);
    }
}

B_INLINE __m256i quad_of(const void *q) {
    int32_t quad;
    memcpy(&quad, q, sizeof quad);
    return _mm256_set1_epi32(quad);
}

/* Quads whose products, added two by two, fit 16 bits: of at most 15, 31 or 63 times 127 each. */
B_INLINE int quads_in_16(const qkvi_block_kind kind) {
    return kind == QKVI_Q8_0                        ? 1
           : kind == QKVI_Q6_K                      ? 2
           : kind == QKVI_Q5_0 || kind == QKVI_Q5_K ? 4
                                                    : 8;
}

/* sums += by Σ of quads [from, to) of R groups, whose bytes begin at q. */
B_INLINE void dot_quads(const qkvi_block_kind kind, const int R, const uint8_t (*w)[LANES][4],
                        const int8_t *const q[ROWS], int from, int to, __m256i by,
                        __m256i sums[ROWS]) {
    const int some = quads_in_16(kind);
#pragma GCC unroll 8
    for (int k0 = from; k0 < to; k0 += some) {
        __m256i pairs[ROWS];
#pragma GCC unroll 8
        for (int k = k0; k < k0 + some; k++) {
            const __m256i x = load(w[k]), size = kind == QKVI_Q8_0 ? _mm256_abs_epi8(x) : x;
#pragma GCC unroll 4
            for (int r = 0; r < R; r++) {
                const __m256i a = quad_of(q[r] + 4 * k);
                const __m256i two =
                    _mm256_maddubs_epi16(size, kind == QKVI_Q8_0 ? _mm256_sign_epi8(a, x) : a);
                pairs[r] = k == k0 ? two : _mm256_add_epi16(pairs[r], two);
            }
        }
#pragma GCC unroll 4
        for (int r = 0; r < R; r++)
            sums[r] = _mm256_add_epi32(sums[r], _mm256_madd_epi16(pairs[r], by));
    }
}

B_INLINE void short_tile(const qkvi_block_kind kind, const int R, int n_blocks,
                         const short_panel *w, const uint8_t *a, int64_t a_row, __m256 c[ROWS]) {
    for (int g = 0; g < n_blocks; g++, w++) {
        const qkvi_short_group *x[ROWS];
        const int8_t *q[ROWS];
        __m256i sums[ROWS];
#pragma GCC unroll 4
        for (int r = 0; r < R; r++) {
            x[r] = (const qkvi_short_group *)(a + r * a_row) + g;
            q[r] = x[r]->q;
            sums[r] = _mm256_set1_epi32(-block_zero(kind) * x[r]->sum);
        }
        dot_quads(kind, R, w->q, q, 0, 8, _mm256_set1_epi16(1), sums);
        const __m256 d = _mm256_load_ps(w->d), m = _mm256_load_ps(w->m);
#pragma GCC unroll 4
        for (int r = 0; r < R; r++)
            c[r] = add_blocks(kind, sums[r], _mm256_set1_epi32(x[r]->sum), d, m,
                              _mm256_set1_ps(x[r]->scale), c[r]);
    }
}

B_INLINE void long_tile(const qkvi_block_kind kind, const int R, const long_panel *w,
                        const uint8_t *a, int64_t a_row, __m256 c[ROWS]) {
    const int quads = kind == QKVI_Q6_K ? 4 : 8; /* of a group */
    const qkvi_long_group *x[ROWS];
    const int8_t *q[ROWS];
    __m256i sums[ROWS], others[ROWS];
#pragma GCC unroll 4
    for (int r = 0; r < R; r++) {
        x[r] = (const qkvi_long_group *)(a + r * a_row);
        q[r] = x[r]->q;
        sums[r] = others[r] = _mm256_setzero_si256();
    }
    for (int g = 0; g < 64 / quads; g++)
        dot_quads(kind, R, w->q, q, quads * g, quads * g + quads, load(w->s[g]), sums);
    for (int n = 0; n < 8; n++) { /* Σ s Σ q_A, or Σ t Σ q_A */
        const __m256i pair = load(w->others[n]);
#pragma GCC unroll 4
        for (int r = 0; r < R; r++)
            others[r] =
                _mm256_add_epi32(others[r], _mm256_madd_epi16(pair, quad_of(x[r]->sums + 2 * n)));
    }
    const __m256 d = _mm256_load_ps(w->d), m = _mm256_load_ps(w->m);
#pragma GCC unroll 4
    for (int r = 0; r < R; r++) {
        if (kind == QKVI_Q6_K)
            sums[r] = _mm256_sub_epi32(sums[r], _mm256_slli_epi32(others[r], 5));
        else
            others[r] = _mm256_sub_epi32(_mm256_setzero_si256(), others[r]);
        c[r] = add_blocks(kind, sums[r], others[r], d, m, _mm256_set1_ps(x[r]->scale), c[r]);
    }
}

/* ---- All ------------------------------------------------------------------------------------- */

typedef struct product {
    int64_t n_blocks, n_rows, a_row, n_cols, b_row, c_row;
    const uint8_t *a, *b;
    float *c;
    int add;
    const float *bias;
} product;

B_INLINE void put_sum(const product *p, int64_t i, int64_t j, float sum) {
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
        for (int l = 0; l < n; l++) put_sum(p, i, j + l, sums[l]);
    }
}

/* Of R rows from i on what the panel of blocks from g on adds to columns from j on. */
B_INLINE void some_rows(const qkvi_block_kind kind, const int R, const product *p, int64_t i,
                        int64_t g, int some, const void *panel, int64_t j, __m256i mask) {
    const bool is_long = block_is_long(kind), ends = g + some >= p->n_blocks;
    const int64_t bytes = (int64_t)(is_long ? sizeof(qkvi_long_group) : sizeof(qkvi_short_group));
    const uint8_t *const a = p->a + i * p->a_row + g * bytes;
    float *const to = p->c + i * p->c_row + j;
    __m256 c[ROWS];
#pragma GCC unroll 4
    for (int r = 0; r < R; r++)
        c[r] = p->add || g > 0 ? _mm256_maskload_ps(to + r * p->c_row, mask) : _mm256_setzero_ps();
    if (is_long)
        long_tile(kind, R, panel, a, p->a_row, c);
    else
        short_tile(kind, R, some, panel, a, p->a_row, c);
    const bool adds = ends && p->bias;
    const __m256 bias = adds ? _mm256_maskload_ps(p->bias + j, mask) : _mm256_setzero_ps();
#pragma GCC unroll 4
    for (int r = 0; r < R; r++) {
        if (adds) c[r] = _mm256_add_ps(c[r], bias);
        _mm256_maskstore_ps(to + r * p->c_row, mask, c[r]);
    }
}

/* Eight columns at a time, of fewer the last one several times. */
B_INLINE void by_panels(const qkvi_block_kind kind, const product *p) {
    const int at_once = block_is_long(kind) ? 1 : SHORT_BLOCKS, bytes = block_bytes(kind);
    union {
        short_panel shorts[SHORT_BLOCKS];
        long_panel one;
    } panel;
    for (int64_t j = 0; j < p->n_cols; j += LANES) {
        const int n = (int)(p->n_cols - j < LANES ? p->n_cols - j : LANES);
        const __m256i mask =
            _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        const uint8_t *row[LANES];
        for (int l = 0; l < LANES; l++) row[l] = p->b + (j + (l < n ? l : n - 1)) * p->b_row;
        for (int64_t g = 0; g == 0 || g < p->n_blocks; g += at_once) {
            const int64_t rest = p->n_blocks - g;
            const int some = (int)(rest < at_once ? rest : at_once);
            int64_t i = 0;
            for (int s = 0; s < some; s++) {
                if (!block_is_long(kind))
                    pack_short(kind, row, (g + s) * bytes, &panel.shorts[s]);
                else if (kind == QKVI_Q6_K)
                    pack_6(row, g * bytes, &panel.one);
                else
                    pack_45(kind, row, g * bytes, &panel.one);
            }
            for (; p->n_rows - i >= ROWS; i += ROWS)
                some_rows(kind, ROWS, p, i, g, some, &panel, j, mask);
            for (; i < p->n_rows; i++) some_rows(kind, 1, p, i, g, some, &panel, j, mask);
        }
    }
}

B_INLINE void by_rows(const qkvi_block_kind kind, const product *p) {
    for (int64_t i = 0; i < p->n_rows; i++) by_columns(kind, p, i);
}

#define BOTH(kind)                                                                                 \
    static __attribute__((noinline)) void few_##kind(const product *p) {                           \
        by_rows(QKVI_##kind, p);                                                                   \
    }                                                                                              \
    static __attribute__((noinline)) void many_##kind(const product *p) {                          \
        by_panels(QKVI_##kind, p);                                                                 \
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
    static void (*const products[][QKVI_N_BLOCK_KINDS])(const product *) = { OF(few), OF(many) };
#undef OF
    const product p = { n_blocks, n_rows, a_row, n_cols, b_row, c_row, a, b, c, add, bias };
    products[n_rows >= 3][kind](&p); /* three are worth a panel */
}

const qkvi_block_kernels qkvi_blocks_avx2 = { blocks_round, multiply };
