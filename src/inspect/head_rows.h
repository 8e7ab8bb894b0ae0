/** What the passes over attention say about rows and columns of all heads of a layer. */
#ifndef QKVI_INSPECT_HEAD_ROWS_H
#define QKVI_INSPECT_HEAD_ROWS_H

#include "inspect/tokens.h"

/** Offsets key - query: the window but for the middle, previous, itself, next, the rest of it. */
enum {
    QKVI_OFFSET_BEFORE,
    QKVI_OFFSET_PREVIOUS,
    QKVI_OFFSET_SELF,
    QKVI_OFFSET_NEXT,
    QKVI_OFFSET_AFTER,
    QKVI_N_OFFSETS
};

/**
 * Arrays of [n_heads][n], of keys [n_heads][n_keys], in two allocations; lists have their length as a
 * last dimension. A row that sees no key has a largest weight of 0.
 */
typedef struct qkvi_head_rows {
    int64_t n_heads, n, n_keys;
    float *entropy, *largest, *effective_keys, *mean_distance;
    float *same_token, *duplicate, *induction;
    float *kinds;       /* [QKVI_N_TOKEN_KINDS]: weight on keys of each kind */
    float *offsets;     /* [QKVI_N_OFFSETS] */
    float *received;    /* of keys: sum of their weights over all rows */
    int64_t *n_queries; /* of keys: how many rows see them */
} qkvi_head_rows;

/** What captured queries saw of captured keys, as the layer did. No values: head_dim_v is 0. */
void qkvi_capture_describe(const qkv_capture *capture, qkv_attention_desc *desc);

/** Memory for a layer; free with qkvi_head_rows_free, which allows zeros. */
qkv_status qkvi_head_rows_make(const qkv_capture *capture, qkvi_head_rows *rows, qkv_error *error);
void qkvi_head_rows_free(qkvi_head_rows *rows);

/**
 * Fills them from a layer. kinds (qkvi_token_kind) are [n_keys]; ids [n], of queries and keys; NULL:
 * keys are tokens of another text, so that places and tokens of the two do not compare, and what is
 * about them is not written.
 */
qkv_status qkvi_head_rows_compute(qkv_ctx *ctx, const qkv_capture *capture, const int32_t *ids,
                                  const uint8_t *kinds, qkvi_head_rows *rows, qkv_error *error);

#endif
