/*
 * Products by blocks in AVX-512 with VNNI (blocks.h), sixteen rows of W at a time, which are the
 * lanes of a vector.
 *
 * VPDPBUSD multiplies unsigned bytes by signed ones. So integers of W stay without their z, and
 * those of Q8_0 become q + 128: z Σ q_A is subtracted, or with Q8_0 128 Σ q_A.
 */
#include <immintrin.h>

#include "kernels/tmpl/blocks.h"

#ifndef __AVX512VNNI__
#error "compile with -mavx512bw -mavx512vl -mavx512dq -mavx512vnni"
#endif

enum { LANES = 16, ROWS = 6, PANELS = 2, Q8_TOP = 128 };

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

B_INLINE void halves_of(bi word, bf *lower, bf *upper) {
    *lower = floats_of(word);
    *upper = floats_of(_mm512_srli_epi32(word, 16));
}

B_INLINE bi add_quads(bi c, bi x, bi y) { return _mm512_dpbusd_epi32(c, x, y); }
B_INLINE bi add_pairs(bi c, bi x, bi y) { return _mm512_dpwssd_epi32(c, x, y); }
B_INLINE bi quad_of(const void *q) { return _mm512_set1_epi32(block_quad(q)); }

#include "kernels/tmpl/blocks_vnni.h"

#include "kernels/tmpl/blocks_x86.h"

#include "kernels/tmpl/blocks_panel.h"
#include "kernels/tmpl/blocks_row.h"

BLOCKS_MULTIPLY(few_rows, 2)

const qkvi_block_kernels qkvi_blocks_avx512vnni = { "avx512vnni", QKVI_CPU_AVX512VNNI, blocks_round,
                                                    multiply };
