/** Sums over the rows and columns of one head, from which each of its numbers is made. */
#ifndef QKVI_INSPECT_HEAD_SUMS_H
#define QKVI_INSPECT_HEAD_SUMS_H

#include "inspect/head_rows.h"
#include "qkv/heads.h"

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

#endif
