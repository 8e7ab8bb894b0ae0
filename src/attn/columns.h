/*
 * The pass over columns (include/qkv/columns.h), in pieces: what is asked for, checked
 * (columns_desc.c); a block of queries against a block of keys (columns_block.c), which weights.c
 * uses, too; sums of each key (columns_keys.c) and across keys (columns_map.c); who computes what
 * (columns.c), or where keys lie in pieces (columns_part.c).
 */
#ifndef QKVI_ATTN_COLUMNS_H
#define QKVI_ATTN_COLUMNS_H

#include "attn/arrays.h"
#include "attn/ctx.h"
#include "attn/mask.h"
#include "attn/plan.h"
#include "core/arena.h"
#include "kernels/table.h"
#include "qkv/columns.h"

/* ---- What is asked for ----------------------------------------------------------------------- */

/* What is not asked for is NULL, and its number 0. */
typedef struct qkvi_columns_problem {
    qkvi_problem p; /* v and o are NULL */
    int64_t rows_k; /* keys of a head that the arrays have */
    qkv_attention_columns want;
    bool all;    /* more than received */
    bool by_key; /* something of a key */
    bool tiles, diagonals;
} qkvi_columns_problem;

/* Without pointers, for the workspace. given NULL: nothing is asked for, as for weights. */
QKV_NODISCARD qkv_status qkvi_columns_shape(const qkv_attention_desc *desc,
                                            const qkv_attention_columns *given,
                                            qkvi_columns_problem *x, qkv_error *error);
QKV_NODISCARD qkv_status qkvi_columns_read(const qkv_attention_desc *desc, const void *q,
                                           const void *k, const float *lse,
                                           const qkv_attention_columns *given,
                                           const qkv_call_options *call, qkvi_columns_problem *x,
                                           qkv_error *error);

/* A rectangle of weights: [rows][cols] floats at out, after the descriptor has been read. */
typedef struct qkvi_rectangle {
    int64_t b, h, i0, i1, j0, j1;
    float *out;
    int64_t row;
} qkvi_rectangle;

/* Does it request no sum? The workspace is then that of weights, below. */
bool qkvi_columns_asks_nothing(const qkvi_columns_problem *x);

/* The workspace of any rectangle of weights. */
QKV_NODISCARD qkv_status qkvi_weights_bytes(const qkvi_problem *problem, qkv_ctx *ctx,
                                            size_t *bytes);
QKV_NODISCARD qkv_status qkvi_weights_read(const qkv_attention_desc *desc, const void *q,
                                           const void *k, const float *lse, const qkvi_rectangle *r,
                                           const qkv_call_options *call, qkvi_columns_problem *x,
                                           qkv_error *error);

/* ---- A block of queries against a block of keys ---------------------------------------------- */

/* How scores are made; the same for the whole call. */
typedef struct qkvi_columns_how {
    const qkvi_problem *p;
    const qkvi_kernels *kernels;
    qkvi_arithmetic class;
    int64_t k_words;
    qkvi_copied_q copied_q;
    float k_factor, scale; /* plan.h */
    qkvi_range there;      /* keys; others of a block are not read, and no query sees them */
} qkvi_columns_how;

/* What belongs to one thread. */
typedef struct qkvi_columns_slot {
    qkvi_attend_scratch *scratch;
    qkvi_columns_scratch *own;
    qkvi_columns_tiles *tiles; /* NULL: none */
    void *k;
    void *q; /* as in plan.h */
} qkvi_columns_slot;

qkvi_columns_how qkvi_columns_how_of(const qkvi_problem *problem, const qkv_ctx *ctx);
int qkvi_columns_threads(const qkvi_problem *problem, const qkv_ctx *ctx, int64_t n_tasks);
void qkvi_columns_lay_out_slot(qkvi_cutter *cutter, const qkvi_columns_how *how, bool tiles,
                               qkvi_columns_slot *slot);
void qkvi_columns_begin_slot(const qkvi_columns_slot *slot);

/* K of the block from key0 on, a multiple of 256, into the slot. */
void qkvi_columns_keys(const qkvi_columns_how *how, const qkvi_columns_slot *slot,
                       const qkvi_rules *rules, int64_t b, int64_t g, int64_t key0);

/*
 * Queries [i0, i1) of head h, 96 at most, i0 a multiple of 32, against that block. false: no query
 * sees a key of it; c and a are undefined then. c has no weights, tiles and diagonals yet.
 */
bool qkvi_columns_open(const qkvi_columns_how *how, const qkvi_columns_slot *slot,
                       const qkvi_rules *rules, int64_t b, int64_t h, int64_t i0, int64_t i1,
                       int64_t key0, qkvi_attend *a, qkvi_columns *c);

/* ---- Sums of each key ------------------------------------------------------------------------ */

void qkvi_columns_begin_keys(qkvi_columns_scratch *own);

/*
 * What belongs to the keys [begin, end) of the block from key0 on is final, of head h; counts of
 * the head are added up, by any thread.
 */
void qkvi_columns_end_keys(const qkvi_columns_problem *x, const qkvi_kernels *kernels,
                           qkvi_columns_scratch *own, int64_t b, int64_t h, int64_t key0,
                           qkvi_range keys);
/* Counts of all heads, before their keys. */
#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */
void qkvi_columns_begin_counts(const qkvi_columns_problem *x);
#pragma GCC visibility pop

/* ---- Sums across keys ------------------------------------------------------------------------ */

/*
 * Of the heads under way. A tile that several blocks of keys meet has a sum for each: that of block
 * c and column b is number c + b, which is unique, as neighbours share one column at most. A
 * diagonal has a sum for every QKVI_COLUMN_LANES-th block.
 */
typedef struct qkvi_columns_map {
    bool has_sums; /* else no query can see a key, and they have not been begun */
    int64_t n_pairs;
    double *mass; /* [head][n_tiles_q][n_pairs] */
    float *peak;
    int64_t *tile_rows; /* [head][n_tiles_q] */
    double *diagonal;   /* [head][lane][n_diagonals] */
    int64_t *diagonal_rows;
    uint8_t *row_seen; /* [head][len_q]: with a sink, whether it sees a key; NULL: no sinks */
} qkvi_columns_map;

void qkvi_columns_lay_out_map(qkvi_cutter *cutter, const qkvi_columns_problem *x, int64_t n_heads,
                              qkvi_columns_map *map);

/* Sums of head number n of those under way and a block of keys from 0. */
void qkvi_columns_begin_tiles(const qkvi_columns_problem *x, const qkvi_columns_map *map, int64_t n,
                              int64_t b, int64_t key0, qkvi_columns_tiles *tiles);
/* Rows of the tiles that a block of queries meets. */
void qkvi_columns_tile_rows(const qkvi_columns_problem *x, const qkvi_rules *rules,
                            const qkvi_columns_map *map, int64_t i0, int64_t i1,
                            qkvi_columns_tiles *tiles);
/* All that is known of a head once its blocks are done: counts, tiles, diagonals. */
void qkvi_columns_finish_head(const qkvi_columns_problem *x, const qkvi_columns_map *map, int64_t n,
                              int64_t b, int64_t h);

#endif
