/* What blocks_row.h needs of x86, where B_QUARTER(x) repeats 16 bytes in each 128 bits. */
#ifndef QKV_TMPL_BLOCKS_X86_H
#define QKV_TMPL_BLOCKS_X86_H

B_INLINE bi bytes_of(uint64_t lower, uint64_t upper) {
    return B_QUARTER(_mm_set_epi64x((int64_t)upper, (int64_t)lower));
}

B_INLINE bi quarter(const void *at) { return B_QUARTER(_mm_loadu_si128((const __m128i *)at)); }

B_INLINE bi sums_of_32(const qkvi_long_group *x) {
    const __m128i one = _mm_set1_epi16(1), *const sums = (const __m128i *)x->sums;
    return B_QUARTER(_mm_packs_epi32(_mm_madd_epi16(_mm_loadu_si128(sums), one),
                                     _mm_madd_epi16(_mm_loadu_si128(sums + 1), one)));
}

/* Number g of the eight 16-bit lanes of each quarter, everywhere in it. */
B_INLINE bi spread(bi lanes, int g) {
    return B_OP(shuffle_epi8)(lanes, B_OP(set1_epi16)((short)(2 * g | (2 * g + 1) << 8)));
}

/* In 16 bits fit two products of at most 63 · 127 each, and of 31 · 127 four. */
B_INLINE bi add_scaled_16(bi c, bi x, bi a, bi s, int g) {
    return add_pairs(c, B_OP(maddubs_epi16)(x, a), spread(s, g));
}
B_INLINE bi add_scaled_32(bi c, bi x, bi a, bi y, bi b, bi s, int g) {
    const bi pairs = B_OP(add_epi16)(B_OP(maddubs_epi16)(x, a), B_OP(maddubs_epi16)(y, b));
    return add_pairs(c, pairs, spread(s, g));
}

#endif
