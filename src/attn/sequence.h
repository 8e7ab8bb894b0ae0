/*
 * Where the tokens of a batch lie. Batches are either a dimension of their own, or sequences of any
 * length packed one after another into arrays without it (cu_seqlens):
 *
 *     [n_batch][n_heads][len][dim]           token i of batch b at [b][h][i]
 *     [n_heads][cu_seqlens[n_batch]][dim]                       at [h][cu_seqlens[b] + i]
 *
 * Addresses of query rows (q, o, lse and their gradients) and of key rows (k, v and theirs) are
 * computed here and nowhere else, in elements of the array.
 *
 * Blocks of n tokens are numbered through all batches; packed ones without a table: those of batch
 * b begin at number floor(cu[b] / n) + b, which leaves room for all of them and for at most one
 * more, and at least one for every batch.
 */
#ifndef QKVI_ATTN_SEQUENCE_H
#define QKVI_ATTN_SEQUENCE_H

#include "attn/desc.h"
#include "core/ints.h"

/* Tokens of batch b. */
static inline int64_t qkvi_len_q(const qkvi_problem *p, int64_t b) {
    return p->cu_q ? p->cu_q[b + 1] - p->cu_q[b] : p->len_q;
}
static inline int64_t qkvi_len_k(const qkvi_problem *p, int64_t b) {
    return p->cu_k ? p->cu_k[b + 1] - p->cu_k[b] : p->len_k;
}

/*
 * The sizes that arrays have: their first dimension, and their rows of one head of one entry of it.
 */
static inline int64_t qkvi_n_arrays(const qkvi_problem *p) { return p->cu_q ? 1 : p->n_batch; }
static inline int64_t qkvi_rows_q(const qkvi_problem *p) {
    return p->cu_q ? p->cu_q[p->n_batch] : p->len_q;
}
static inline int64_t qkvi_rows_k(const qkvi_problem *p) {
    return p->cu_k ? p->cu_k[p->n_batch] : p->len_k;
}

/* The row of query i, of key j. */
static inline int64_t qkvi_q_at(const qkvi_problem *p, const int64_t stride[3], int64_t b,
                                int64_t h, int64_t i) {
    return b * stride[0] + h * stride[1] + (p->cu_q ? p->cu_q[b] + i : i) * stride[2];
}
static inline int64_t qkvi_k_at(const qkvi_problem *p, const int64_t stride[3], int64_t b,
                                int64_t g, int64_t j) {
    return b * stride[0] + g * stride[1] + (p->cu_k ? p->cu_k[b] + j : j - p->first_k) * stride[2];
}

/*
 * The first block of batch b; of batch n_batch: their number. cu NULL: every batch has len tokens.
 */
static inline int64_t qkvi_first_block(const int64_t *cu, int64_t len, int64_t n, int64_t b) {
    return cu ? cu[b] / n + b : b * qkvi_max_i64(1, qkvi_ceil_div(len, n));
}

/* The batch to which a block belongs. */
static inline int64_t qkvi_batch_of_block(const int64_t *cu, int64_t len, int64_t n,
                                          int64_t n_batch, int64_t block) {
    int64_t low = 0, high = n_batch - 1;
    if (!cu) return block / qkvi_max_i64(1, qkvi_ceil_div(len, n));
    while (low < high) { /* the last that begins at it or before */
        const int64_t b = high - (high - low) / 2;
        if (qkvi_first_block(cu, len, n, b) <= block)
            low = b;
        else
            high = b - 1;
    }
    return low;
}

/* The place of query 0 among the keys. */
static inline int64_t qkvi_position(const qkvi_problem *p, int64_t b) {
    return (p->q_offsets ? p->q_offsets[b] : p->q_offset) + p->first_q;
}

/* Query rows that count: those at or beyond it are neither read nor written. */
static inline int64_t qkvi_rows_that_count(const qkvi_problem *p, int64_t b) {
    const int64_t len = qkvi_len_q(p, b);
    return p->q_len ? qkvi_min_i64(qkvi_max_i64(p->q_len[b] - p->first_q, 0), len) : len;
}

/* Products of queries and keys of all batches and heads. */
static inline double qkvi_pairs(const qkvi_problem *p) {
    double pairs = 0;
    if (!p->cu_q) return (double)(p->n_batch * p->n_heads * p->len_q) * (double)p->len_k;
    for (int64_t b = 0; b < p->n_batch; b++)
        pairs += (double)qkvi_len_q(p, b) * (double)qkvi_len_k(p, b);
    return pairs * (double)p->n_heads;
}

#endif
