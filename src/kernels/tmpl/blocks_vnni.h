/*
 * What blocks_panel.h and blocks_row.h need of VNNI, whose VPDPBUSD the includer has as
 * add_quads(c, x, y): c plus sums of four products of unsigned and signed bytes.
 */
#ifndef QKV_TMPL_BLOCKS_VNNI_H
#define QKV_TMPL_BLOCKS_VNNI_H

B_INLINE bi scale_of(bi s) { return s; }

B_INLINE void dot_quads(const qkvi_block_kind kind, const int R,
                        const uint8_t (*const w[PANELS])[LANES][4], const int8_t *const q[ROWS],
                        int from, int to, const bi s[PANELS], bi sums[PANELS][ROWS]) {
    const bool is_long = block_is_long(kind);
    bi part[PANELS][ROWS];
#pragma GCC unroll 2
    for (int p = 0; p < PANELS; p++)
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) part[p][r] = is_long ? B_OP(set1_epi32)(0) : sums[p][r];
#pragma GCC unroll 8
    for (int k = from; k < to; k++)
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
            const bi a = quad_of(q[r] + 4 * k);
#pragma GCC unroll 2
            for (int p = 0; p < PANELS; p++) part[p][r] = add_quads(part[p][r], b_load(w[p][k]), a);
        }
#pragma GCC unroll 2
    for (int p = 0; p < PANELS; p++)
#pragma GCC unroll 8
        for (int r = 0; r < R; r++)
            sums[p][r] = is_long ? B_OP(add_epi32)(sums[p][r], B_OP(mullo_epi32)(part[p][r], s[p]))
                                 : part[p][r];
}

B_INLINE bi dot_two(const qkvi_block_kind kind, bi x, bi a, bi y, bi b) {
    (void)kind;
    return add_quads(add_quads(B_OP(set1_epi32)(0), x, a), y, b);
}

#endif
