/** What passes over attention say about rows and columns of some heads of one attention. */
#ifndef QKVI_INSPECT_HEAD_ROWS_H
#define QKVI_INSPECT_HEAD_ROWS_H

#include "attn/mask.h"
#include "core/peers.h"
#include "files/base.h"
#include "inspect/head_pieces.h"
#include "inspect/tokens.h"
#include "qkv/heads.h"

/** Keys are near a query if they are at most so far away. */
enum { QKVI_HEAD_WINDOW = 8 };

/** Offsets key - query: the window but for the middle, previous, itself, next, the rest of it. */
enum {
    QKVI_OFFSET_BEFORE,
    QKVI_OFFSET_PREVIOUS,
    QKVI_OFFSET_SELF,
    QKVI_OFFSET_NEXT,
    QKVI_OFFSET_AFTER,
    QKVI_N_OFFSETS
};

/** Their bounds. */
extern const int64_t qkvi_head_offsets[QKVI_N_OFFSETS + 1];

/** Keys of the list of a row: the largest, and the one after it. */
enum { QKVI_N_TOP = 2 };

/** Some heads that go through one pass, and what is known of their tokens. */
typedef struct qkvi_head_pass {
    qkv_ctx *ctx;
    const qkv_attention_desc *desc;
    const float *q, *k;
    float *lse;               /* [n_heads][n]: read, or (make_lse) written first */
    int make_lse, places;     /* places: those of queries and keys compare */
    const int32_t *ids;       /* [n]: tokens of queries and keys; NULL: those do not compare */
    const uint8_t *kinds;     /* [n_keys] qkvi_token_kind; NULL: unknown */
    int columns, top;         /* what else is asked for */
    qkvi_peers *peers;        /* ranks that share the pass; then of one head */
    qkvi_head_pieces *pieces; /* q and k are this rank's rows; NULL: all rows */
    const qkvi_rules *rules;
    const qkv_call_options *call;
} qkvi_head_pass;

/**
 * Arrays of [n_heads][n], of keys [n_heads][n_keys], in a few allocations; lists have their length
 * as a last dimension. A row that sees no key has a largest weight of 0.
 */
typedef struct qkvi_head_rows {
    int64_t n_heads, n, n_keys;
    float *entropy, *largest, *effective_keys, *mean_distance;
    float *same_token, *duplicate, *induction;
    float *kinds;                       /* [QKVI_N_TOKEN_KINDS]: weight on keys of each kind */
    float *offsets;                     /* [QKVI_N_OFFSETS] */
    float *top_weights;                 /* [QKVI_N_TOP] */
    float *received;                    /* of keys: sum of their weights over all rows */
    int64_t *n_queries;                 /* of keys: how many rows see them */
    int64_t *top_keys;                  /* [QKVI_N_TOP] */
    int64_t *n_empty_rows, *n_nan_rows; /* [n_heads] */
} qkvi_head_rows;

/** Memory; free with qkvi_head_rows_free, which allows zeros. */
qkv_status qkvi_head_rows_make(int64_t n_heads, int64_t n, int64_t n_keys, qkvi_head_rows *rows,
                               qkv_error *error);
void qkvi_head_rows_free(qkvi_head_rows *rows);

/** Fills them; what is unknown, or not asked for, is not written. */
qkv_status qkvi_head_rows_compute(const qkvi_head_pass *pass, qkvi_head_rows *rows,
                                  qkv_error *error);

/** Sums over the rows and columns of one head, from which each of its numbers is made. */

/** What is known of an input. */
typedef struct qkvi_head_input {
    int64_t n, n_keys;
    const uint8_t *query_kinds; /* [n] qkvi_token_kind; NULL: all are text */
    const uint8_t *matches; /* [n] QKVI_HAS_…; NULL: tokens of queries and keys do not compare */
    const double *log_keys; /* [n] ln of how many keys a query may see; 0 for none */
    int places, kinds, columns; /* what the rows hold */
} qkvi_head_input;

/** Sums over the rows that are averaged, and what keys receive of all rows. */
typedef struct qkvi_head_sums {
    const qkvi_head_input *input;
    double scale;                             /* 1 / n_rows, or 0 */
    int64_t n_rows;                           /* that are averaged */
    int64_t n_seeing;                         /* all rows that see a key */
    int64_t n_same, n_duplicate, n_induction; /* rows that have such a key */
    double entropy, log_keys, largest, effective_keys, distance, same, duplicate, induction;
    double kinds[QKVI_N_TOKEN_KINDS], offsets[QKVI_N_OFFSETS];
    double received_largest, received_early, received_gini;
    int64_t received_key; /* -1: none */
} qkvi_head_sums;

/** shares is scratch of [n_keys]. A NaN makes the sums that it enters NaN. */
void qkvi_head_sums_make(const qkvi_head_input *input, const qkvi_head_rows *rows, int64_t head,
                         double *shares, qkvi_head_sums *sums);

/** numbers: [qkv_heads_n_numbers()] (numbers.c). */
void qkvi_head_numbers(const qkvi_head_sums *sums, double *numbers);

/** Which queries have keys that their own token leads to: docs/statistics.md. */

/** A query sees: another place of its token; an earlier one; a key after an earlier one. */
enum { QKVI_HAS_SAME = 1u << 0, QKVI_HAS_DUPLICATE = 1u << 1, QKVI_HAS_INDUCTION = 1u << 2 };

/**
 * Sets bits of matches, [n] zeros, by the tokens ids of as many queries and keys. Query i stands at
 * key i and sees the keys of the rules, as far as they are seen (NULL: all are).
 */
qkv_status qkvi_matches_find(const qkvi_rules *rules, const uint8_t *seen, const int32_t *ids,
                             uint8_t *matches, qkv_error *error);

#endif
