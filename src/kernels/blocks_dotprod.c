/*
 * Products by blocks on AArch64 with SDOT (FEAT_DotProd: blocks.h), four rows of W at a time, which
 * are the lanes of a vector. Integers of W are signed, without their z, and so all fit SDOT.
 *
 * neon_... are the operations that the templates are written in, by the names that x86 has for
 * them.
 */
#include <arm_neon.h>

#include "kernels/tmpl/blocks.h"

#ifndef __ARM_FEATURE_DOTPROD
#error "compile with -march=armv8.2-a+dotprod"
#endif

enum { LANES = 4, ROWS = 6, PANELS = 2, Q8_TOP = 0 };

typedef int32x4_t bi;
typedef float32x4_t bf;
typedef int bm; /* lanes that are there, from the first on */

#define B_OP(name) neon_##name
#define B_COUNT(n) (n)
/* The orders and choices that are used: constants. */
#define B_SHUFFLE(x, order)                                                                        \
    __builtin_shufflevector(x, x, (order)&3, (order) >> 2 & 3, (order) >> 4 & 3, (order) >> 6 & 3)
#define B_BLEND(a, b, which)                                                                       \
    __builtin_shufflevector(a, b, (which)&1 ? 4 : 0, (which)&2 ? 5 : 1, (which)&4 ? 6 : 2,         \
                            (which)&8 ? 7 : 3)

/* ---- Vocabulary ------------------------------------------------------------------------------ */

B_INLINE int8x16_t as_8(bi x) { return vreinterpretq_s8_s32(x); }
B_INLINE int16x8_t as_16(bi x) { return vreinterpretq_s16_s32(x); }
B_INLINE int64x2_t as_64(bi x) { return vreinterpretq_s64_s32(x); }
B_INLINE bi of_8(int8x16_t x) { return vreinterpretq_s32_s8(x); }
B_INLINE bi of_16(int16x8_t x) { return vreinterpretq_s32_s16(x); }
B_INLINE bi of_64(int64x2_t x) { return vreinterpretq_s32_s64(x); }

B_INLINE bi neon_set1_epi8(char x) { return of_8(vdupq_n_s8((int8_t)x)); }
B_INLINE bi neon_set1_epi16(short x) { return of_16(vdupq_n_s16(x)); }
B_INLINE bi neon_set1_epi32(int x) { return vdupq_n_s32(x); }
B_INLINE bi neon_add_epi8(bi x, bi y) { return of_8(vaddq_s8(as_8(x), as_8(y))); }
B_INLINE bi neon_add_epi32(bi x, bi y) { return vaddq_s32(x, y); }
B_INLINE bi neon_sub_epi32(bi x, bi y) { return vsubq_s32(x, y); }
B_INLINE bi neon_unpacklo_epi8(bi x, bi y) { return of_8(vzip1q_s8(as_8(x), as_8(y))); }
B_INLINE bi neon_unpackhi_epi8(bi x, bi y) { return of_8(vzip2q_s8(as_8(x), as_8(y))); }
B_INLINE bi neon_unpacklo_epi32(bi x, bi y) { return vzip1q_s32(x, y); }
B_INLINE bi neon_unpackhi_epi32(bi x, bi y) { return vzip2q_s32(x, y); }
B_INLINE bi neon_unpacklo_epi64(bi x, bi y) { return of_64(vzip1q_s64(as_64(x), as_64(y))); }
B_INLINE bi neon_unpackhi_epi64(bi x, bi y) { return of_64(vzip2q_s64(as_64(x), as_64(y))); }
B_INLINE bi neon_slli_epi32(bi x, int n) { return vshlq_s32(x, vdupq_n_s32(n)); }
B_INLINE bi neon_slli_epi16(bi x, int n) {
    return of_16(vshlq_s16(as_16(x), vdupq_n_s16((short)n)));
}
B_INLINE bi neon_srai_epi32(bi x, int n) { return vshlq_s32(x, vdupq_n_s32(-n)); }
B_INLINE bi neon_srai_epi16(bi x, int n) {
    return of_16(vshlq_s16(as_16(x), vdupq_n_s16((short)-n)));
}
B_INLINE bi neon_srli_epi32(bi x, int n) {
    return vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(x), vdupq_n_s32(-n)));
}
B_INLINE bi neon_srli_epi16(bi x, int n) {
    return vreinterpretq_s32_u16(vshlq_u16(vreinterpretq_u16_s32(x), vdupq_n_s16((short)-n)));
}
B_INLINE bi neon_shuffle_epi8(bi x, bi order) {
    return of_8(vqtbl1q_s8(as_8(x), vreinterpretq_u8_s32(order)));
}
B_INLINE bi neon_madd_epi16(bi x, bi y) {
    return vpaddq_s32(vmull_s16(vget_low_s16(as_16(x)), vget_low_s16(as_16(y))),
                      vmull_high_s16(as_16(x), as_16(y)));
}
B_INLINE bi neon_mullo_epi32(bi x, bi y) { return vmulq_s32(x, y); }

B_INLINE bf neon_setzero_ps(void) { return vdupq_n_f32(0); }
B_INLINE bf neon_set1_ps(float x) { return vdupq_n_f32(x); }
B_INLINE bf neon_load_ps(const float *at) { return vld1q_f32(at); }
B_INLINE void neon_store_ps(float *at, bf x) { vst1q_f32(at, x); }
B_INLINE bf neon_add_ps(bf x, bf y) { return vaddq_f32(x, y); }
B_INLINE bf neon_mul_ps(bf x, bf y) { return vmulq_f32(x, y); }
B_INLINE bf neon_fmadd_ps(bf x, bf y, bf c) { return vfmaq_f32(c, x, y); }
B_INLINE bf neon_cvtepi32_ps(bi x) { return vcvtq_f32_s32(x); }

/* ---- What the templates ask for -------------------------------------------------------------- */

B_INLINE bi quarter(const void *at) { return of_8(vld1q_s8(at)); }
B_INLINE bi bytes_of(uint64_t lower, uint64_t upper) {
    return vreinterpretq_s32_u64(vcombine_u64(vcreate_u64(lower), vcreate_u64(upper)));
}
B_INLINE bi quad_of(const void *q) { return vdupq_n_s32(block_quad(q)); }

B_INLINE bi b_load(const void *at) { return quarter(at); }
B_INLINE void b_store(void *at, bi x) { vst1q_s8(at, as_8(x)); }
B_INLINE bm b_mask(int n) { return n; }
B_INLINE bf b_load_n(bm mask, const float *at) {
    float some[LANES] = { 0 };
    if (mask == LANES) return vld1q_f32(at);
    for (int l = 0; l < mask; l++) some[l] = at[l];
    return vld1q_f32(some);
}
B_INLINE void b_store_n(bm mask, float *at, bf x) {
    float some[LANES];
    if (mask == LANES) {
        vst1q_f32(at, x);
        return;
    }
    vst1q_f32(some, x);
    for (int l = 0; l < mask; l++) at[l] = some[l];
}

/* Of row i alone. */
B_INLINE bi some_of_rows(const uint8_t *const row[LANES], int i, int64_t at) {
    return quarter(row[i] + at);
}

B_INLINE bi add_fifth(bi x, bi bits, bi mask) {
    const uint8x16_t is_set = vtstq_s8(as_8(bits), as_8(mask));
    return x | (vreinterpretq_s32_u8(is_set) & neon_set1_epi8(16));
}

B_INLINE void halves_of(bi word, bf *lower, bf *upper) {
    const uint32x4_t both = vreinterpretq_u32_s32(word);
    *lower = vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32(both)));
    *upper = vcvt_f32_f16(vreinterpret_f16_u16(vshrn_n_u32(both, 16)));
}

B_INLINE bi add_quads(bi c, bi x, bi y) { return vdotq_s32(c, as_8(x), as_8(y)); }
B_INLINE bi add_pairs(bi c, bi x, bi y) { return vaddq_s32(c, neon_madd_epi16(x, y)); }

B_INLINE bi sums_of_32(const qkvi_long_group *x) {
    const int16x8_t lower = vld1q_s16(x->sums), upper = vld1q_s16(x->sums + 8);
    return of_16(vpaddq_s16(lower, upper));
}

/* c + s[g] x. Loops over g are unrolled, so that this is an instruction or two. */
B_INLINE bi times_lane(bi c, bi x, bi s, int g) { return vmlaq_n_s32(c, x, as_16(s)[g]); }
B_INLINE bi add_scaled_16(bi c, bi x, bi a, bi s, int g) {
    return times_lane(c, add_quads(neon_set1_epi32(0), x, a), s, g);
}
B_INLINE bi add_scaled_32(bi c, bi x, bi a, bi y, bi b, bi s, int g) {
    return times_lane(c, add_quads(add_quads(neon_set1_epi32(0), x, a), y, b), s, g);
}

#include "kernels/tmpl/blocks_vnni.h"

#include "kernels/tmpl/blocks_panel.h"
#include "kernels/tmpl/blocks_row.h"

BLOCKS_MULTIPLY(few_rows, 2)

const qkvi_block_kernels qkvi_blocks_dotprod = { "dotprod", QKVI_CPU_DOTPROD, blocks_round,
                                                 multiply };
