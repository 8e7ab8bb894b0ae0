/*
 * Products by blocks of several rows of A (blocks.h): a block of LANES rows of W is packed into a
 * panel, where four neighbours of a row are a lane, and used for all rows of A, of which four
 * neighbours are in all lanes. PANELS of them share what is loaded of A. The includer says how a
 * vector does it:
 *
 *     LANES                    of a vector
 *     ROWS, PANELS             of A at once, 4 to 7; 1 or 2 panels
 *     bi, bf, bm               vectors of integers and of floats, and which lanes are there
 *     B_OP(name)               its intrinsic, such as B_OP(add_ps)
 *     B_COUNT(n)               n as its shifts take it
 *     bytes_of(lower, upper)   16 bytes, the same in each 128 bits
 *     B_SHUFFLE(x, order)      the four words of each 128 bits in another order
 *     B_BLEND(a, b, which)     words of a, or of b where a bit is set
 *     Q8_TOP                   is added to integers of Q8_0: 128, or 0
 *     some_of_rows(row, i, at)    each row's 16 bytes at `at`, of rows i, 4 + i ...
 *     b_load, b_store, b_mask, b_load_n, b_store_n
 *     add_pairs(c, x, y)       c plus products of 16 bits, two by two
 *     add_fifth(x, bits, mask) x + 16 where the bit of mask is set
 *     halves_of(word, lower, upper)
 *                              floats of the two f16 of each word
 *     scale_of(s)              s, from 32 bits, as dot_quads takes it
 *     dot_quads(kind, R, w, q, from, to, s, sums)
 *                              sums[p][r] += s[p] Σ of quads [from, to) of panel p and group r of
 *                              R; of short kinds s is 1
 */
#ifndef QKV_TMPL_BLOCKS_PANEL_H
#define QKV_TMPL_BLOCKS_PANEL_H

/* Rows of at most so many bytes are announced to the second-level cache, LANES at a time. */
enum { SHORT_BLOCKS = 8, MOST_AHEAD = 1 << 15 };

/* Of LANES rows a block of 32 elements, and one of 256. */
typedef struct short_panel {
    _Alignas(64) float d[LANES], m[LANES];
    uint8_t q[8][LANES][4];
} short_panel;

typedef struct long_panel {
    _Alignas(64) float d[LANES], m[LANES];
    int32_t s[16][LANES]; /* of each group of 16 (Q6_K), or the first eight, of 32: scale_of */
    int16_t pairs[8][LANES][2]; /* s (Q6_K) or t of 16 elements and the next 16 */
    uint8_t q[64][LANES][4];
} long_panel;

typedef union panel {
    short_panel shorts[SHORT_BLOCKS];
    long_panel one;
} panel;

/* ---- Packing --------------------------------------------------------------------------------- */

B_INLINE void put_halves(bi word, float d[LANES], float m[LANES]) {
    bf lower, upper;
    halves_of(word, &lower, &upper);
    B_OP(store_ps)(d, lower);
    B_OP(store_ps)(m, upper);
}

/* Word n of all rows, in order, for n from 0 to 3. */
B_INLINE void transpose(const bi x[4], bi word[4]) {
    const bi a = B_OP(unpacklo_epi32)(x[0], x[1]), b = B_OP(unpacklo_epi32)(x[2], x[3]);
    const bi c = B_OP(unpackhi_epi32)(x[0], x[1]), d = B_OP(unpackhi_epi32)(x[2], x[3]);
    word[0] = B_OP(unpacklo_epi64)(a, b);
    word[1] = B_OP(unpackhi_epi64)(a, b);
    word[2] = B_OP(unpacklo_epi64)(c, d);
    word[3] = B_OP(unpackhi_epi64)(c, d);
}

/* Sixteen elements of all rows. */
B_INLINE void put_quads(const bi x[4], uint8_t q[4][LANES][4]) {
    bi word[4];
    transpose(x, word);
    for (int n = 0; n < 4; n++) b_store(q[n], word[n]);
}

B_INLINE bi low_halves(bi x) { return x & B_OP(set1_epi8)(15); }
B_INLINE bi high_halves(bi x) { return low_halves(B_OP(srli_epi16)(x, 4)); }

/* The integers of some rows, whose first 16 bytes are head: 16 of them, and 16. */
B_INLINE void rows_short(const qkvi_block_kind kind, const uint8_t *const row[LANES], int i,
                         int64_t at, bi head, bi *low, bi *high) {
    const int q_at = kind == QKVI_Q4_1 ? 4 : kind == QKVI_Q5_0 ? 6 : 2;
    const bi x = some_of_rows(row, i, at + q_at);
    if (kind == QKVI_Q8_0) {
        const bi top = B_OP(set1_epi8)((char)Q8_TOP);
        *low = x ^ top;
        *high = some_of_rows(row, i, at + q_at + 16) ^ top;
        return;
    }
    *low = low_halves(x);
    *high = high_halves(x);
    if (kind != QKVI_Q5_0) return;
    /* 32 bits, in bytes 2 to 5 */
    const bi one = bytes_of(0x8040201008040201, 0x8040201008040201);
    const bi first = bytes_of(0x0202020202020202, 0x0303030303030303);
    const bi next = B_OP(add_epi8)(first, B_OP(set1_epi8)(2));
    *low = add_fifth(*low, B_OP(shuffle_epi8)(head, first), one);
    *high = add_fifth(*high, B_OP(shuffle_epi8)(head, next), one);
}

B_INLINE void pack_short(const qkvi_block_kind kind, const uint8_t *const row[LANES], int64_t at,
                         short_panel *to) {
    bi head[4], low[4], high[4], word[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        head[i] = some_of_rows(row, i, at);
        rows_short(kind, row, i, at, head[i], &low[i], &high[i]);
    }
    put_quads(low, to->q);
    put_quads(high, to->q + 4);
    transpose(head, word);
    put_halves(word[0], to->d, to->m);
}

/* Of d, m and twelve bytes as in block_scales: bytes 0 to 7 of each row become s, the others t. */
B_INLINE bi six_bits(bi head) {
    const bi low = head & B_OP(set1_epi8)(0x3F);
    const bi top = B_OP(srli_epi16)(head, 2) & B_OP(set1_epi8)(0x30);
    /* words: of the twelve bytes the first and the second, and of the third its lower, its upper */
    const bi begin = B_SHUFFLE(low, 0xA5), above = B_SHUFFLE(top, 0xA5);
    const bi third =
        B_BLEND(B_SHUFFLE(low_halves(head), 0xFF), B_SHUFFLE(high_halves(head), 0xFF), 0xCC);
    return B_BLEND(begin, above | third, 0xAA);
}

/* Half of the 32 elements 2 p of some blocks of Q4_K or Q5_K, and of the next 32. */
B_INLINE void rows_45(const qkvi_block_kind kind, const uint8_t *const row[LANES], int i,
                      int64_t at, int p, int half, bi bits, bi *low, bi *high) {
    const int q_at = kind == QKVI_Q5_K ? 48 : 16;
    const bi x = some_of_rows(row, i, at + q_at + 32 * p + 16 * half);
    *low = low_halves(x);
    *high = high_halves(x);
    if (kind != QKVI_Q5_K) return;
    *low = add_fifth(*low, bits, B_OP(set1_epi8)((char)(1 << 2 * p)));
    *high = add_fifth(*high, bits, B_OP(set1_epi8)((char)(2 << 2 * p)));
}

/* Their fifth bits. */
B_INLINE bi rows_fifth(const qkvi_block_kind kind, const uint8_t *const row[LANES], int i,
                       int64_t at, int half) {
    return kind == QKVI_Q5_K ? some_of_rows(row, i, at + 16 + 16 * half) : B_OP(set1_epi32)(0);
}

B_INLINE void pack_45(const qkvi_block_kind kind, const uint8_t *const row[LANES], int64_t at,
                      long_panel *to) {
    const bi byte = B_OP(set1_epi32)(0xFF);
    bi x[4], word[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) x[i] = some_of_rows(row, i, at);
    transpose(x, word);
    put_halves(word[0], to->d, to->m);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) x[i] = six_bits(x[i]);
    transpose(x, word); /* s of groups 0 to 3, of 4 to 7, then t */
    for (int g = 0; g < 8; g++) {
        const bi s = B_OP(srli_epi32)(word[g / 4], B_COUNT(8 * (g % 4))) & byte;
        const bi t = B_OP(srli_epi32)(word[2 + g / 4], B_COUNT(8 * (g % 4))) & byte;
        b_store(to->s[g], scale_of(s));
        b_store(to->pairs[g], t | B_OP(slli_epi32)(t, 16));
    }
    for (int half = 0; half < 2; half++) {
        bi bits[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) bits[i] = rows_fifth(kind, row, i, at, half);
#pragma GCC unroll 4
        for (int p = 0; p < 4; p++) {
            bi low[4], high[4];
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++)
                rows_45(kind, row, i, at, p, half, bits[i], &low[i], &high[i]);
            put_quads(low, to->q + 16 * p + 4 * half);
            put_quads(high, to->q + 16 * p + 8 + 4 * half);
        }
    }
}

/*
 * Of half h / 2 of some blocks of Q6_K, and half h % 2 of each 32 elements there: 16 of the first
 * 32, of the second, the third and the fourth.
 */
B_INLINE void rows_6(const uint8_t *const row[LANES], int i, int64_t at, int h, bi q[4]) {
    const int64_t qs = at + 64 * (h / 2) + 16 * (h % 2);
    const bi top = B_OP(set1_epi8)(0x30), z = some_of_rows(row, i, at + 128 + 16 * h);
    const bi a = some_of_rows(row, i, qs), b = some_of_rows(row, i, qs + 32);
    q[0] = low_halves(a) | (B_OP(slli_epi16)(z, 4) & top);
    q[1] = low_halves(b) | (B_OP(slli_epi16)(z, 2) & top);
    q[2] = high_halves(a) | (z & top);
    q[3] = high_halves(b) | (B_OP(srli_epi16)(z, 2) & top);
}

B_INLINE void pack_6(const uint8_t *const row[LANES], int64_t at, long_panel *to) {
    const bi lower = B_OP(set1_epi32)(0xFFFF);
    bi x[4], word[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) x[i] = some_of_rows(row, i, at + 194); /* d: the last two bytes */
    transpose(x, word);
    put_halves(B_OP(srli_epi32)(word[3], 16), to->d, to->m);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) x[i] = some_of_rows(row, i, at + 192);
    transpose(x, word);
    for (int g = 0; g < 16; g += 2) {
        const bi up = B_OP(slli_epi32)(word[g / 4], B_COUNT(24 - 8 * (g % 4)));
        const bi up_next = B_OP(slli_epi32)(word[g / 4], B_COUNT(16 - 8 * (g % 4)));
        const bi s = B_OP(srai_epi32)(up, 24), next = B_OP(srai_epi32)(up_next, 24);
        b_store(to->s[g], scale_of(s));
        b_store(to->s[g + 1], scale_of(next));
        b_store(to->pairs[g / 2], (s & lower) | B_OP(slli_epi32)(next, 16));
    }
    for (int h = 0; h < 4; h++) {
        uint8_t(*const q)[LANES][4] = to->q + 32 * (h / 2) + 4 * (h % 2);
        bi part[4][4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            bi of_row[4];
            rows_6(row, i, at, h, of_row);
            for (int n = 0; n < 4; n++) part[n][i] = of_row[n];
        }
        for (int n = 0; n < 4; n++) put_quads(part[n], q + 8 * n);
    }
}

/* ---- Tiles ----------------------------------------------------------------------------------- */

/* What a block adds, of one row. */
B_INLINE bf add_block(const qkvi_block_kind kind, bi sum, bi least, bf d, bf m, float scale, bf c) {
    const bf by = B_OP(set1_ps)(scale);
    c = B_OP(fmadd_ps)(B_OP(cvtepi32_ps)(sum), B_OP(mul_ps)(d, by), c);
    if (!block_has_least(kind)) return c;
    return B_OP(fmadd_ps)(B_OP(cvtepi32_ps)(least), B_OP(mul_ps)(m, by), c);
}

/* What is subtracted of short blocks is so often Σ q_A. */
B_INLINE int short_zero(const qkvi_block_kind kind) {
    return kind == QKVI_Q8_0 ? Q8_TOP : block_zero(kind);
}

B_INLINE void short_tile(const qkvi_block_kind kind, const int R, int n_blocks,
                         const panel *const w[PANELS], const uint8_t *a, int64_t a_row,
                         bf c[PANELS][ROWS]) {
    for (int g = 0; g < n_blocks; g++) {
        const qkvi_short_group *x[ROWS];
        const int8_t *q[ROWS];
        const uint8_t(*integers[PANELS])[LANES][4];
        bi sums[PANELS][ROWS], one[PANELS];
        for (int p = 0; p < PANELS; p++) {
            integers[p] = w[p]->shorts[g].q;
            one[p] = B_OP(set1_epi16)(1);
        }
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
            x[r] = (const qkvi_short_group *)(a + r * a_row) + g;
            q[r] = x[r]->q;
            const bi zero = B_OP(set1_epi32)(-short_zero(kind) * x[r]->sum);
            for (int p = 0; p < PANELS; p++) sums[p][r] = zero;
        }
        dot_quads(kind, R, integers, q, 0, 8, one, sums);
#pragma GCC unroll 2
        for (int p = 0; p < PANELS; p++) {
            const short_panel *const from = &w[p]->shorts[g];
            const bf d = B_OP(load_ps)(from->d), m = B_OP(load_ps)(from->m);
#pragma GCC unroll 8
            for (int r = 0; r < R; r++)
                c[p][r] = add_block(kind, sums[p][r], B_OP(set1_epi32)(x[r]->sum), d, m,
                                    x[r]->scale, c[p][r]);
        }
    }
}

/* Σ s Σ q_A of Q6_K, else Σ t Σ q_A. */
B_INLINE void dot_pairs(const int R, const panel *const w[PANELS],
                        const qkvi_long_group *const x[ROWS], bi others[PANELS][ROWS]) {
#pragma GCC unroll 2
    for (int p = 0; p < PANELS; p++)
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) others[p][r] = B_OP(set1_epi32)(0);
    for (int n = 0; n < 8; n++)
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
            const bi sums = quad_of(x[r]->sums + 2 * n);
#pragma GCC unroll 2
            for (int p = 0; p < PANELS; p++)
                others[p][r] = add_pairs(others[p][r], b_load(w[p]->one.pairs[n]), sums);
        }
}

B_INLINE void long_tile(const qkvi_block_kind kind, const int R, const panel *const w[PANELS],
                        const uint8_t *a, int64_t a_row, bf c[PANELS][ROWS]) {
    const int n_quads = kind == QKVI_Q6_K ? 4 : 8; /* of a group */
    const bi zero = B_OP(set1_epi32)(0);
    const qkvi_long_group *x[ROWS];
    const int8_t *q[ROWS];
    const uint8_t(*integers[PANELS])[LANES][4];
    bi sums[PANELS][ROWS], others[PANELS][ROWS];
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
        x[r] = (const qkvi_long_group *)(a + r * a_row);
        q[r] = x[r]->q;
        for (int p = 0; p < PANELS; p++) sums[p][r] = zero;
    }
    for (int p = 0; p < PANELS; p++) integers[p] = w[p]->one.q;
    for (int g = 0; g < 64 / n_quads; g++) {
        bi s[PANELS];
        for (int p = 0; p < PANELS; p++) s[p] = b_load(w[p]->one.s[g]);
        dot_quads(kind, R, integers, q, n_quads * g, n_quads * g + n_quads, s, sums);
    }
    dot_pairs(R, w, x, others);
#pragma GCC unroll 2
    for (int p = 0; p < PANELS; p++) {
        const bf d = B_OP(load_ps)(w[p]->one.d), m = B_OP(load_ps)(w[p]->one.m);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
            bi sum = sums[p][r], least = zero;
            if (kind == QKVI_Q6_K)
                sum = B_OP(sub_epi32)(sum, B_OP(slli_epi32)(others[p][r], 5));
            else
                least = B_OP(sub_epi32)(zero, others[p][r]);
            c[p][r] = add_block(kind, sum, least, d, m, x[r]->scale, c[p][r]);
        }
    }
}

/* ---- All rows -------------------------------------------------------------------------------- */

/* blocks.h: multiply */
typedef struct operands {
    int64_t n_blocks, n_rows, a_row, n_cols, b_row, c_row;
    const uint8_t *a, *b;
    float *c;
    int add;
    const float *bias;
} operands;

/* The LANES rows of W from j on, of fewer the last one several times. */
typedef struct columns {
    const uint8_t *row[LANES], *ahead; /* rows of which as much is announced; NULL: none */
    bm mask;                           /* lanes that are columns */
} columns;

/* Rows step behind these are announced. Behind the last row there are lanes, but no columns. */
B_INLINE columns columns_at(const operands *o, int64_t j, int64_t step) {
    const int64_t left = o->n_cols - j;
    const int n = (int)(left < LANES ? (left > 0 ? left : 0) : LANES);
    const bool announces = o->b_row <= MOST_AHEAD && left >= step + LANES;
    columns x = { .ahead = announces ? o->b + (j + step) * o->b_row : NULL, .mask = b_mask(n) };
    for (int l = 0; l < LANES; l++) x.row[l] = o->b + (l < n ? j + l : o->n_cols - 1) * o->b_row;
    return x;
}

/* As many bytes of the next rows as block g has in all of these: all, from end to end. */
B_INLINE void announce(const uint8_t *ahead, int64_t g, int bytes) {
    for (int line = 0; ahead && line < LANES * bytes; line += 64)
        __builtin_prefetch(ahead + g * LANES * bytes + line, 0, 2);
}

/* Rows of A by some blocks of PANELS panels. */
typedef struct panel_product {
    const uint8_t *a;
    float *c;
    int64_t a_row, c_row;
    const panel *panels[PANELS];
    bm columns[PANELS];
    bool add;
    const float *bias; /* NULL: none, or not yet */
    int n_blocks;      /* short ones */
} panel_product;

B_INLINE void some_rows(const qkvi_block_kind kind, const int R, const panel_product *p,
                        int64_t i) {
    const uint8_t *const a = p->a + i * p->a_row;
    bf c[PANELS][ROWS];
#pragma GCC unroll 2
    for (int n = 0; n < PANELS; n++)
#pragma GCC unroll 8
        for (int r = 0; r < R; r++)
            c[n][r] = p->add ? b_load_n(p->columns[n], p->c + (i + r) * p->c_row + n * LANES)
                             : B_OP(setzero_ps)();
    if (block_is_long(kind))
        long_tile(kind, R, p->panels, a, p->a_row, c);
    else
        short_tile(kind, R, p->n_blocks, p->panels, a, p->a_row, c);
#pragma GCC unroll 2
    for (int n = 0; n < PANELS; n++) {
        const bf bias = p->bias ? b_load_n(p->columns[n], p->bias + n * LANES) : B_OP(setzero_ps)();
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
            if (p->bias) c[n][r] = B_OP(add_ps)(c[n][r], bias);
            b_store_n(p->columns[n], p->c + (i + r) * p->c_row + n * LANES, c[n][r]);
        }
    }
}

B_INLINE void all_rows(const qkvi_block_kind kind, const panel_product *p, int64_t n_rows) {
    int64_t i = 0;
    for (; n_rows - i >= ROWS; i += ROWS) some_rows(kind, ROWS, p, i);
    if (ROWS > 4 && n_rows - i >= 4) {
        some_rows(kind, 4, p, i);
        i += 4;
    }
    if (n_rows - i >= 2) {
        some_rows(kind, 2, p, i);
        i += 2;
    }
    if (n_rows - i >= 1) some_rows(kind, 1, p, i);
}

/* The n blocks from g on of some rows. */
B_INLINE void pack(const qkvi_block_kind kind, const columns *w, int64_t g, int n, panel *to) {
    const int bytes = block_bytes(kind);
    for (int s = 0; s < n; s++) {
        announce(w->ahead, g + s, bytes);
        if (!block_is_long(kind))
            pack_short(kind, w->row, (g + s) * bytes, &to->shorts[s]);
        else if (kind == QKVI_Q6_K)
            pack_6(w->row, g * bytes, &to->one);
        else
            pack_45(kind, w->row, g * bytes, &to->one);
    }
}

/* What follows once the first panel is packed. */
typedef void rest_of_product(panel_product *p, int64_t n_rows, const columns *second, int64_t g,
                             int n);

B_INLINE void by_panels(const qkvi_block_kind kind, rest_of_product *rest, const operands *o) {
    const int at_once = block_is_long(kind) ? 1 : SHORT_BLOCKS;
    const int64_t group_bytes =
        (int64_t)(block_is_long(kind) ? sizeof(qkvi_long_group) : sizeof(qkvi_short_group));
    panel first;
    for (int64_t j = 0; j < o->n_cols; j += PANELS * LANES) {
        columns w[PANELS];
        panel_product p = { .a_row = o->a_row, .c = o->c + j, .c_row = o->c_row };
        for (int n = 0; n < PANELS; n++) {
            w[n] = columns_at(o, j + n * LANES, PANELS * LANES);
            p.columns[n] = w[n].mask;
        }
        for (int64_t g = 0; g == 0 || g < o->n_blocks; g += at_once) {
            const int64_t left = o->n_blocks - g;
            const bool is_last = left <= at_once;
            p.n_blocks = (int)(is_last ? left : at_once);
            p.a = o->a + g * group_bytes;
            p.add = o->add || g > 0;
            p.bias = is_last && o->bias ? o->bias + j : NULL;
            pack(kind, &w[0], g, p.n_blocks, &first);
            p.panels[0] = &first;
            rest(&p, o->n_rows, &w[PANELS - 1], g, p.n_blocks);
        }
    }
}

/*
 * multiply of blocks.h: few_rows(kind, operands) for fewer rows than are worth a panel. Each kind
 * has functions of its own, and either panel the frame of one, so that no frame is above 8 KiB.
 */
#define BLOCKS_OF(kind, few_rows)                                                                  \
    static __attribute__((noinline)) void all_rows_##kind(const panel_product *p, int64_t n) {     \
        all_rows(QKVI_##kind, p, n);                                                               \
    }                                                                                              \
    static __attribute__((noinline)) void rest_##kind(panel_product *p, int64_t n_rows,            \
                                                      const columns *second, int64_t g, int n) {   \
        panel packed;                                                                              \
        if (PANELS == 2) pack(QKVI_##kind, second, g, n, &packed);                                 \
        if (PANELS == 2) p->panels[PANELS - 1] = &packed;                                          \
        all_rows_##kind(p, n_rows);                                                                \
    }                                                                                              \
    static __attribute__((noinline)) void few_##kind(const operands *o) {                          \
        few_rows(QKVI_##kind, o);                                                                  \
    }                                                                                              \
    static __attribute__((noinline)) void many_##kind(const operands *o) {                         \
        by_panels(QKVI_##kind, rest_##kind, o);                                                    \
    }
#define BLOCKS_LIST(rows)                                                                          \
    { rows##_Q4_0, rows##_Q4_1, rows##_Q5_0, rows##_Q8_0, rows##_Q4_K, rows##_Q5_K, rows##_Q6_K }
#define BLOCKS_MULTIPLY(few_rows, worth)                                                           \
    BLOCKS_OF(Q4_0, few_rows)                                                                      \
    BLOCKS_OF(Q4_1, few_rows)                                                                      \
    BLOCKS_OF(Q5_0, few_rows)                                                                      \
    BLOCKS_OF(Q8_0, few_rows)                                                                      \
    BLOCKS_OF(Q4_K, few_rows)                                                                      \
    BLOCKS_OF(Q5_K, few_rows)                                                                      \
    BLOCKS_OF(Q6_K, few_rows)                                                                      \
    static void multiply(qkvi_block_kind kind, int64_t n_blocks, int64_t n_rows, const void *a,    \
                         int64_t a_row, int64_t n_cols, const uint8_t *b, int64_t b_row, float *c, \
                         int64_t c_row, int add, const float *bias) {                              \
        static void (*const products[][QKVI_N_BLOCK_KINDS])(                                       \
            const operands *) = { BLOCKS_LIST(few), BLOCKS_LIST(many) };                           \
        const operands o = { n_blocks, n_rows, a_row, n_cols, b_row, c_row, a, b, c, add, bias };  \
        products[n_rows >= (worth)][kind](&o);                                                     \
    }

#endif
