/*
 * Class amx by its instruction: tiles of A, and the product of some of its rows and one panel of B.
 */
#ifndef QKVI_KERNELS_AMX_H
#define QKVI_KERNELS_AMX_H

#include "core/ints.h"
#include "kernels/gemm.h"

/*
 * A as tiles of bf16 for AMX, of m rows: groups of 128 rows but the last; in each the depth (k
 * rounded up to 32) in chunks of 256 but the last; in each [rows / 16][depth / 32][16 rows][32].
 * Zeros beyond k; rows beyond m are not read. A product that goes through A chunk by chunk reads
 * it in order, and a block of rows is one piece, which does not compete with itself for sets of the
 * second-level cache.
 */
enum {
    QKVI_AMX_GROUP = 128,
    QKVI_AMX_CHUNK = 256,
    QKVI_AMX_ROWS = 64 /* at once, that read a chunk of B from the first-level cache */
};

typedef struct qkvi_amx_tiles {
    uint16_t *at;
    int64_t rows, depth; /* m rounded up to 16, k to 32 */
} qkvi_amx_tiles;

/* The tile of row i, a multiple of 16, and column c, a multiple of 32. */
static inline uint16_t *qkvi_amx_tile(const qkvi_amx_tiles *t, int64_t i, int64_t c) {
    const int64_t i0 = i / QKVI_AMX_GROUP * QKVI_AMX_GROUP;
    const int64_t c0 = c / QKVI_AMX_CHUNK * QKVI_AMX_CHUNK;
    const int64_t rows = qkvi_min_i64(t->rows - i0, QKVI_AMX_GROUP);
    const int64_t chunk = qkvi_min_i64(t->depth - c0, QKVI_AMX_CHUNK);
    return t->at + i0 * t->depth + rows * c0 + (i - i0) * chunk + 16 * (c - c0);
}

/*
 * round: n_rows <= 16 rows of x become those from `row` on.
 *
 * multiply: C = A B of n_rows and one panel of b, then what a job says. At every 32 of k `lines`
 * lines from `ahead` on are fetched. Between qkvi_amx_begin and qkvi_amx_end of the same thread.
 */
typedef struct qkvi_amx_panel {
    int64_t first_row, n_rows; /* first_row is a multiple of 16 */
    int64_t first_col;
    int n_cols; /* <= 32 */
    qkvi_amx_tiles tiles;
    const uint32_t *b;
    float *c, *mapped; /* element [0][first_col] */
    int64_t c_row;
    bool past_caches;  /* C is more than they hold */
    const float *bias; /* of first_col on */
    qkvi_gemm_map *map;
    qkvi_amx_tiles rounded;
    uint16_t *rows; /* nullable; element [0][first_col], in rows of n_row */
    int64_t n_row;
    float *sums; /* [QKVI_AMX_ROWS][32]; NULL: 32 rows at once, slower */
    const char *ahead;
    int lines;
} qkvi_amx_panel;

void qkvi_amx_round(int n_rows, int64_t k, const float *x, int64_t x_row, const qkvi_amx_tiles *to,
                    int64_t row);
void qkvi_amx_begin(void);
void qkvi_amx_end(void);
void qkvi_amx_multiply(const qkvi_amx_panel *panel);

/*
 * Attention, between the same two; layouts are those of kernels/attend.h.
 *
 * scores: of n_rows rows of q, rounded up to 16, and 32 keys, whose panel is depth / 2 words deep.
 *
 * values: sums [16][32] = P V of 16 rows of weights and 32 channels over those of 8 panels of keys
 * that have a bit, at least one. Memory from ahead on is fetched as by dp_tile's steps.
 */
void qkvi_amx_scores(int n_rows, int64_t depth, const uint16_t *q, int64_t q_row,
                     const uint32_t *keys, float *s, int64_t s_row);
void qkvi_amx_values(uint32_t panels, const uint16_t *p, int64_t p_row, const uint32_t *v,
                     float *sums, const char *ahead, int64_t ahead_step);

#endif
