/*
 * The backward pass of attention: what its kernels work on. One block of at most 128 queries of one
 * head against one block of at most 256 keys, everything packed by the caller. docs/numerics.md
 * states the order of every sum.
 *
 *   product        rows    columns   depth     A (broadcast)        B (32 columns wide)
 *   S  = Q K^T     query    key       channel   Q panels             K^T panel [channel][32 keys]
 *   dP = dO V^T    query    key       channel   dO panels            V^T panel [channel][32 keys]
 *   dV += P^T dO   key      channel   query     P, by columns        dO panel [query][32 channels]
 *   dK += dS^T Q   key      channel   query     dS, by columns       Q panel [query][32 channels]
 *   dQ += dS K     query    channel   key       dS, by rows          K panel [key][32 channels]
 *
 * A is only ever broadcast, so P and dS are never transposed. P lives for one panel of 32 keys, dS
 * for the key block.
 *
 * In class dp, A and B are pairs of bf16 along the depth. Panels hold words: pairs of channels of a
 * key, or pairs of rows of a channel. P and dS are floats of one panel, which become pairs of
 * queries; and rows of dS of the key block, for dQ.
 */
#ifndef QKVI_KERNELS_ATTEND_BWD_H
#define QKVI_KERNELS_ATTEND_BWD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/half.h"
#include "kernels/attend.h"

enum {
    QKVI_BWD_QUERIES = 128, /* a query block: part of the order of dK and dV */
    QKVI_BWD_DEPTH = 128,   /* keys of one chain of dQ: part of the order of dQ */
    QKVI_BWD_KEYS = 256,    /* a key block: free, but a multiple of QKVI_BWD_DEPTH */
    QKVI_BWD_PANEL = 32,
    QKVI_BWD_P_ROW =
        QKVI_BWD_PANEL + 16, /* row strides of P and dS: padded, so that a column does not stay */
    QKVI_BWD_DS_ROW = QKVI_BWD_KEYS + 16, /* in a few sets of L1 */
};

/*
 * Panels of channels ("Q panels") are [ceil(dim / 32)][rows][32], where rows is 128 for queries and
 * 256 for keys; panels of keys are [ceil(n_keys / 32)][dim][32]. All are aligned to 64 and zero in
 * the columns beyond the data. Rows beyond n_queries up to the next multiple of 4 are zero too.
 *
 * In class dp panels are of pairs: half as many rows, and ceil(dim / 2) instead of dim.
 */
struct qkvi_bwd_block {
    int64_t head_dim, head_dim_v;
    int n_queries, n_keys;
    const float *q, *d_o;              /* channel panels */
    const float *k_t, *v_t;            /* key panels */
    const float *k;                    /* channel panels */
    bool dp;                           /* class dp: the panels above are words, and there are: */
    const uint16_t *q_rows, *d_o_rows; /* Q and dO, zeros as in panels */
    int64_t q_row, d_o_row;            /* elements from one row to the next */
    const int32_t *begin,
        *end; /* per query: keys [begin, end) of the block are visible; neither ever falls */
    const float *lse, *delta; /* per query */
    float scale, softcap;     /* softcap 0: none */
    bool capped;              /* dS is wanted without the derivative of the soft cap */

    qkvi_mask mask; /* from query 0 and key 0 of the block on */
    /*
     * Of 32 queries each, the panels that the block mask shows; beyond n_queries like those before.
     */
    uint32_t panels[QKVI_BWD_QUERIES / 32];
    const qkvi_dropout *dropout; /* likewise; NULL: none */

    /* Q, dO or K hold a value that is not finite, and not every query sees and keeps every key. */
    bool select;

    float *p;                      /* [128][P_ROW]  scratch: */
    float *t;                      /* [128][P_ROW]  derivative of the soft cap; NULL without one */
    float *d_s;                    /* [128][DS_ROW]; of class dp, except for the mask, one panel */
    bool whole;                    /* d_s has a place for each panel */
    uint32_t *p_pairs, *d_s_pairs; /* [64][P_ROW]   class dp: pairs of queries of a panel */
    uint16_t *d_s_rows;            /* [128][DS_ROW] class dp: dS of the key block */
    /* [128]: weights kept of the panel under way, a bit each; with dropout. */
    uint32_t *keep;
    /* [128][8]: visible keys, a bit each; where a tile was wholly visible only if select is set. */
    uint32_t *see;

    float *d_k, *d_v; /* channel panels of keys, added to */
    float *d_q;       /* rows of the caller's array, added to */
    int64_t d_q_stride;
};

/* Part of every kernel table (table.h: `bwd`), one body in tmpl/attend_bwd.h. */
typedef struct qkvi_bwd_kernels {
    /* delta[i] = <d_o[i], o[i]>, n >= 1 rows of dim, by their type */
    void (*delta[QKVI_N_DTYPES])(const void *o, int64_t o_stride, const void *d_o,
                                 int64_t d_o_stride, int64_t n, int64_t dim, float *delta);
    /* The same in class dp, of bf16. */
    void (*delta_pairs)(const uint16_t *o, int64_t o_stride, const uint16_t *d_o,
                        int64_t d_o_stride, int64_t n, int64_t dim, float *delta);
    /* A chain over n <= 128 queries of -exp(sink - lse) delta; lse and delta aligned to 64, with
     * anything beyond n. */
    float (*sink)(int n, float sink, const float *lse, const float *delta);
    /* P and dS of a block, added to d_k and d_v; then, with the same block, what dS adds to d_q. */
    void (*keys)(const struct qkvi_bwd_block *block);
    void (*queries)(const struct qkvi_bwd_block *block);
    /*
     * dS of a block with an additive mask, without the derivative of the soft cap: the gradient of
     * the mask, into d_s, rows of DS_ROW. sum_keys: a sum per row, in its first element;
     * sum_queries: the first row is the sum of all. Writes p, t, see and keep too, no gradient.
     */
    void (*mask)(const struct qkvi_bwd_block *block, bool sum_queries, bool sum_keys);
} qkvi_bwd_kernels;

#endif
