/*
 * Products by blocks in AVX2, with and without VNNI (blocks.h). Eight rows of W are computed
 * together, in the lanes of a vector. A block's integers are unsigned bytes, which are multiplied
 * by the signed ones of A.
 *
 * VPDPBUSD adds four such products to 32 bits; integers of Q8_0 become q + 128 for it, and
 * 128 Σ q_A is subtracted. Without it VPMADDUBSW adds two, which fit 16 bits.
 */
#ifndef QKV_TMPL_BLOCKS_256_H
#define QKV_TMPL_BLOCKS_256_H

#include <immintrin.h>

#include "kernels/tmpl/blocks.h"

#ifndef __AVX2__
#error "compile with -mavx2 -mfma -mf16c"
#endif

#ifdef __AVXVNNI__
enum { Q8_TOP = 128 };
#else
enum { Q8_TOP = 0 };
#endif
enum { LANES = 8, ROWS = 4, PANELS = 1 };

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

B_INLINE void halves_of(bi word, bf *lower, bf *upper) {
    const bi halves =
        _mm256_packus_epi32(word & _mm256_set1_epi32(0xFFFF), _mm256_srli_epi32(word, 16));
    const bi both = _mm256_permute4x64_epi64(halves, 0xD8); /* all lower ones, then the upper */
    *lower = _mm256_cvtph_ps(_mm256_castsi256_si128(both));
    *upper = _mm256_cvtph_ps(_mm256_extracti128_si256(both, 1));
}

B_INLINE bi quad_of(const void *q) { return _mm256_set1_epi32(block_quad(q)); }

#ifdef __AVXVNNI__
B_INLINE bi add_quads(bi c, bi x, bi y) { return _mm256_dpbusd_avx_epi32(c, x, y); }
B_INLINE bi add_pairs(bi c, bi x, bi y) { return _mm256_dpwssd_avx_epi32(c, x, y); }

#include "kernels/tmpl/blocks_vnni.h"
#else
B_INLINE bi add_pairs(bi c, bi x, bi y) { return _mm256_add_epi32(c, _mm256_madd_epi16(x, y)); }

/* In either half of a word. */
B_INLINE bi scale_of(bi s) { return (s & _mm256_set1_epi32(0xFFFF)) | _mm256_slli_epi32(s, 16); }

/* Quads whose products, added two by two, fit 16 bits: of at most 15, 31 or 63 times 127 each. */
B_INLINE int quads_in_16(const qkvi_block_kind kind) {
    return kind == QKVI_Q8_0                        ? 1
           : kind == QKVI_Q6_K                      ? 2
           : kind == QKVI_Q5_0 || kind == QKVI_Q5_K ? 4
                                                    : 8;
}

B_INLINE void dot_quads(const qkvi_block_kind kind, const int R,
                        const uint8_t (*const w[PANELS])[LANES][4], const int8_t *const q[ROWS],
                        int from, int to, const bi s[PANELS], bi sums[PANELS][ROWS]) {
    const int some = quads_in_16(kind);
#pragma GCC unroll 8
    for (int k0 = from; k0 < to; k0 += some) {
        bi pairs[ROWS];
#pragma GCC unroll 8
        for (int k = k0; k < k0 + some; k++) {
            const bi x = b_load(w[0][k]), size = kind == QKVI_Q8_0 ? _mm256_abs_epi8(x) : x;
#pragma GCC unroll 4
            for (int r = 0; r < R; r++) {
                const bi a = quad_of(q[r] + 4 * k);
                const bi two =
                    _mm256_maddubs_epi16(size, kind == QKVI_Q8_0 ? _mm256_sign_epi8(a, x) : a);
                pairs[r] = k == k0 ? two : _mm256_add_epi16(pairs[r], two);
            }
        }
#pragma GCC unroll 4
        for (int r = 0; r < R; r++) sums[0][r] = add_pairs(sums[0][r], pairs[r], s[0]);
    }
}

/* |q_W| of Q8_0 is unsigned, and q_A has the sign of both. Products of others fit 16 bits, four. */
B_INLINE bi dot_two(const qkvi_block_kind kind, bi x, bi a, bi y, bi b) {
    const bi one = _mm256_set1_epi16(1);
    if (kind != QKVI_Q8_0)
        return _mm256_madd_epi16(
            _mm256_add_epi16(_mm256_maddubs_epi16(x, a), _mm256_maddubs_epi16(y, b)), one);
    const bi first = _mm256_maddubs_epi16(_mm256_abs_epi8(x), _mm256_sign_epi8(a, x));
    const bi second = _mm256_maddubs_epi16(_mm256_abs_epi8(y), _mm256_sign_epi8(b, y));
    return _mm256_add_epi32(_mm256_madd_epi16(first, one), _mm256_madd_epi16(second, one));
}
#endif

#include "kernels/tmpl/blocks_x86.h"

#include "kernels/tmpl/blocks_panel.h"
#include "kernels/tmpl/blocks_row.h"

BLOCKS_MULTIPLY(few_rows, 3) /* three are worth a panel */

#endif
