/** What passes over attention say about rows and columns of some heads of one attention. */
#ifndef QKVI_INSPECT_HEAD_ROWS_H
#define QKVI_INSPECT_HEAD_ROWS_H

#include "inspect/tokens.h"
#include "qkv/qkv.h"

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
    float *lse;           /* [n_heads][n]: read, or (make_lse) written first */
    int make_lse, places; /* places: those of queries and keys compare */
    const int32_t *ids;   /* [n]: tokens of queries and keys; NULL: those do not compare */
    const uint8_t *kinds; /* [n_keys] qkvi_token_kind; NULL: unknown */
    int columns, top;     /* what else is asked for */
    const qkv_call_options *call;
} qkvi_head_pass;

/**
 * Arrays of [n_heads][n], of keys [n_heads][n_keys], in a few allocations; lists have their length as a
 * last dimension. A row that sees no key has a largest weight of 0.
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

#endif
