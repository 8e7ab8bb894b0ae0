/*
 * Products by blocks of one row of A (blocks.h): nothing is packed. Each 128 bits of a vector hold
 * 16 bytes of another row of W. Sums stay apart until the end of a block, where four vectors become
 * one that has a lane for each row. Beside what blocks_panel.h needs, the includer says
 *
 *     quarter(at)                  16 bytes, in each 128 bits
 *     sums_of_32(group)            Σ q_A of each 32, in 16 bits, in each 128 bits
 *     dot_two(kind, x, a, y, b)    in 32 bits, sums of the four products of x and a, and y and b
 *     add_scaled_16(c, x, a, s, g)       c + s[g] Σ x a, where s has eight lanes in each 128 bits,
 *     add_scaled_32(c, x, a, y, b, s, g) c + s[g] Σ (x a + y b), spread over four lanes anyhow
 */
#ifndef QKV_TMPL_BLOCKS_ROW_H
#define QKV_TMPL_BLOCKS_ROW_H

/* The sum of each quarter: vector i has those of rows i, 4 + i ..., and lane r will have row r. */
B_INLINE bi fold(const bi x[4]) {
    const bi a =
        B_OP(add_epi32)(B_OP(unpacklo_epi32)(x[0], x[1]), B_OP(unpackhi_epi32)(x[0], x[1]));
    const bi b =
        B_OP(add_epi32)(B_OP(unpacklo_epi32)(x[2], x[3]), B_OP(unpackhi_epi32)(x[2], x[3]));
    return B_OP(add_epi32)(B_OP(unpacklo_epi64)(a, b), B_OP(unpackhi_epi64)(a, b));
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
        sums[i] = dot_two(kind, low, a, high, b);
    }
    const bi sum = B_OP(sub_epi32)(fold(sums), B_OP(set1_epi32)(short_zero(kind) * x->sum));
    bf d, m;
    transpose(head, word);
    halves_of(word[0], &d, &m);
    return add_block(kind, sum, B_OP(set1_epi32)(x->sum), d, m, x->scale, c);
}

B_INLINE bf one_45(const qkvi_block_kind kind, const uint8_t *const row[LANES], int64_t at,
                   const qkvi_long_group *x, bf c) {
    const bi zero = B_OP(set1_epi32)(0);
    const bi of_32 = sums_of_32(x);
    bi head[4], word[4], scales[4], bits[4][2], sums[4], leasts[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        head[i] = some_of_rows(row, i, at);
        const bi bytes = six_bits(head[i]);
        scales[i] = B_OP(unpacklo_epi8)(bytes, zero);
        leasts[i] = B_OP(madd_epi16)(B_OP(unpackhi_epi8)(bytes, zero), of_32);
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
            sums[i] = add_scaled_32(sums[i], low[0], a0, low[1], a1, scales[i], 2 * p);
            sums[i] = add_scaled_32(sums[i], high[0], b0, high[1], b1, scales[i], 2 * p + 1);
        }
    }
    bf d, m;
    transpose(head, word);
    halves_of(word[0], &d, &m);
    return add_block(kind, fold(sums), B_OP(sub_epi32)(zero, fold(leasts)), d, m, x->scale, c);
}

B_INLINE bf one_6(const uint8_t *const row[LANES], int64_t at, const qkvi_long_group *x, bf c) {
    const bi zero = B_OP(set1_epi32)(0);
    bi head[4], word[4], scales[4][2], sums[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const bi s = some_of_rows(row, i, at + 192);
        head[i] = some_of_rows(row, i, at + 194);
        scales[i][0] = B_OP(srai_epi16)(B_OP(unpacklo_epi8)(zero, s), 8);
        scales[i][1] = B_OP(srai_epi16)(B_OP(unpackhi_epi8)(zero, s), 8);
        const bi all = add_pairs(B_OP(madd_epi16)(scales[i][0], quarter(x->sums)), scales[i][1],
                                 quarter(x->sums + 8));
        sums[i] = B_OP(sub_epi32)(zero, B_OP(slli_epi32)(all, 5));
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
                sums[i] = add_scaled_16(sums[i], q[n], quarter(a + 32 * n), scales[i][h / 2],
                                        h % 2 + 2 * n);
        }
    }
    bf d, m; /* the last two bytes, and what is before them */
    transpose(head, word);
    halves_of(word[3], &m, &d);
    return add_block(QKVI_Q6_K, fold(sums), zero, d, m, x->scale, c);
}

/* Row i of A by all columns. */
B_INLINE void one_row(const qkvi_block_kind kind, const operands *o, int64_t i) {
    const int bytes = block_bytes(kind);
    const uint8_t *const a = o->a + i * o->a_row;
    float *const to = o->c + i * o->c_row;
    for (int64_t j = 0; j < o->n_cols; j += LANES) {
        const columns w = columns_at(o, j, LANES);
        bf c = o->add ? b_load_n(w.mask, to + j) : B_OP(setzero_ps)();
        for (int64_t g = 0; g < o->n_blocks; g++) {
            const qkvi_short_group *const x = (const qkvi_short_group *)a + g;
            const qkvi_long_group *const y = (const qkvi_long_group *)a + g;
            announce(w.ahead, g, bytes);
            if (!block_is_long(kind))
                c = one_short(kind, w.row, g * bytes, x, c);
            else if (kind == QKVI_Q6_K)
                c = one_6(w.row, g * bytes, y, c);
            else
                c = one_45(kind, w.row, g * bytes, y, c);
        }
        if (o->bias) c = B_OP(add_ps)(c, b_load_n(w.mask, o->bias + j));
        b_store_n(w.mask, to + j, c);
    }
}

B_INLINE void few_rows(const qkvi_block_kind kind, const operands *o) {
    for (int64_t i = 0; i < o->n_rows; i++) one_row(kind, o, i);
}

#endif
