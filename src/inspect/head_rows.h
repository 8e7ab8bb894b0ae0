/**
 * Statistics of the rows (queries) and columns (keys) of some heads of one attention, the sums over
 * them, and the numbers of heads that are made of the sums.
 */
#ifndef QKVI_INSPECT_HEAD_ROWS_H
#define QKVI_INSPECT_HEAD_ROWS_H

#include "attn/mask.h"
#include "core/peers.h"
#include "files/base.h"
#include "inspect/head_pieces.h"
#include "inspect/tokens.h"
#include "qkv/heads.h"

/** The largest |key - query| of a key that counts as near. */
enum { QKVI_HEAD_WINDOW = 8 };

/** Ranges of offsets key - query: [-8, -2], -1, 0, 1, [2, 8]. */
enum {
    QKVI_OFFSET_BEFORE,
    QKVI_OFFSET_PREVIOUS,
    QKVI_OFFSET_SELF,
    QKVI_OFFSET_NEXT,
    QKVI_OFFSET_AFTER,
    QKVI_N_OFFSETS
};

/** Range o is [qkvi_head_offsets[o], qkvi_head_offsets[o + 1]). */
extern const int64_t qkvi_head_offsets[QKVI_N_OFFSETS + 1];

/** How many of the keys with the largest weight of a row are listed. */
enum { QKVI_N_TOP = 2 };

/** Some heads that go through one pass, and what is known of their tokens. */
typedef struct qkvi_head_pass {
    qkv_ctx *ctx;
    const qkv_attention_desc *desc;
    const float *q, *k;
    float *lse; /* [n_heads][n]: read; with make_lse it is computed first */
    int make_lse;
    int places;               /* positions of queries and keys compare: one text */
    const int32_t *ids;       /* [n]: tokens of queries and keys; NULL: they do not compare */
    const uint8_t *kinds;     /* [n_keys] qkvi_token_kind; NULL: unknown */
    int columns, top;         /* compute statistics of columns, and lists of the top keys, too */
    qkvi_peers *peers;        /* ranks that share the pass; if several, it has one head */
    qkvi_head_pieces *pieces; /* q and k are only this rank's rows; NULL: all rows */
    const qkvi_rules *rules;
    const qkv_call_options *call;
} qkvi_head_pass;

/**
 * Arrays are [n_heads][n] if a comment does not say otherwise; a length in a comment is a further,
 * last dimension. The largest weight of a row that sees no key is 0.
 */
typedef struct qkvi_head_rows {
    int64_t n_heads, n, n_keys;
    float *entropy, *largest, *effective_keys, *mean_distance;
    float *same_token, *duplicate, *induction;
    float *kinds;                       /* [QKVI_N_TOKEN_KINDS]: weight on keys of each kind */
    float *offsets;                     /* [QKVI_N_OFFSETS] */
    float *top_weights;                 /* [QKVI_N_TOP] */
    float *received;                    /* [n_heads][n_keys]: sum of the weights of all rows */
    int64_t *n_queries;                 /* [n_heads][n_keys]: how many rows see the key */
    int64_t *top_keys;                  /* [QKVI_N_TOP] */
    int64_t *n_empty_rows, *n_nan_rows; /* [n_heads] */
} qkvi_head_rows;

/** Allocates the arrays; qkvi_head_rows_free allows zeros. */
qkv_status qkvi_head_rows_make(int64_t n_heads, int64_t n, int64_t n_keys, qkvi_head_rows *rows,
                               qkv_error *error);
void qkvi_head_rows_free(qkvi_head_rows *rows);

/** Computes the arrays, except those that are unknown or that `pass` does not ask for. */
qkv_status qkvi_head_rows_compute(const qkvi_head_pass *pass, qkvi_head_rows *rows,
                                  qkv_error *error);

/* ---- Sums over rows and columns of one head -------------------------------------------------- */

/** What is known of an input, for all heads. */
typedef struct qkvi_head_input {
    int64_t n, n_keys;
    const uint8_t *query_kinds; /* [n] qkvi_token_kind; NULL: all are text */
    const uint8_t *matches; /* [n] QKVI_HAS_…; NULL: tokens of queries and keys do not compare */
    const double *log_keys; /* [n] ln of the number of keys that a query may see; 0 for no key */
    int places, kinds, columns; /* which statistics the qkvi_head_rows have */
} qkvi_head_input;

/** Sums over the rows that are averaged (head_sums.c), and what keys receive from all rows. */
typedef struct qkvi_head_sums {
    const qkvi_head_input *input;
    double scale;                             /* 1 / n_rows, or 0 */
    int64_t n_rows;                           /* rows that are averaged */
    int64_t n_seeing;                         /* rows that see a key, averaged or not */
    int64_t n_same, n_duplicate, n_induction; /* averaged rows that have such a key */
    double entropy, log_keys, largest, effective_keys, distance, same, duplicate, induction;
    double kinds[QKVI_N_TOKEN_KINDS], offsets[QKVI_N_OFFSETS];
    double received_largest, received_early, received_gini;
    int64_t received_key; /* -1: none */
} qkvi_head_sums;

/** Makes the sums of a head; shares is scratch [n_keys]. A NaN makes its sums NaN. */
void qkvi_head_sums_make(const qkvi_head_input *input, const qkvi_head_rows *rows, int64_t head,
                         double *shares, qkvi_head_sums *sums);

/** Makes the numbers of a head, [qkv_head_number_count()], from its sums (numbers.c). */
void qkvi_head_numbers(const qkvi_head_sums *sums, double *numbers);

/* ---- Repeated tokens: docs/statistics.md ----------------------------------------------------- */

/** A query sees another key with its token; an earlier one; a key that follows an earlier one. */
enum { QKVI_HAS_SAME = 1u << 0, QKVI_HAS_DUPLICATE = 1u << 1, QKVI_HAS_INDUCTION = 1u << 2 };

/**
 * Sets QKVI_HAS_… in matches, [n], all 0 before; ids [n] are the tokens. Queries and keys are the
 * same text: query i is at key i, and sees the keys that the rules allow, except those where `seen`
 * is 0 (NULL: none).
 */
qkv_status qkvi_matches_find(const qkvi_rules *rules, const uint8_t *seen, const int32_t *ids,
                             uint8_t *matches, qkv_error *error);

#endif
