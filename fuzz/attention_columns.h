/*
 * The pass over columns and a rectangle of weights, of a case whose lse may be anything: what
 * forward wrote, or the canaries that it left.
 */
#ifndef QKV_FUZZ_ATTENTION_COLUMNS_H
#define QKV_FUZZ_ATTENTION_COLUMNS_H

#include <qkv/columns.h>

#include "fuzz/attention_case.h"

enum { COLUMNS_ARRAYS = 16 };

/* An output of exactly the promised size, and what it is an array of. */
typedef struct columns_array {
    size_t elem_bytes, n;
    void *data;
} columns_array;

typedef struct attention_columns {
    qkv_attention_columns want;
    columns_array a[COLUMNS_ARRAYS];
    float *row_weights;
    qkv_status pass, weights;
} attention_columns;

/* On a descriptor that forward's workspace query accepted, with its arrays; false: too large. */
bool attention_columns_run(qkv_ctx *ctx, const attention_case *c, const qkv_attention_desc *desc,
                           const void *q, const void *k, const float *lse, attention_columns *x);
void attention_columns_free(attention_columns *x);
/* The same statuses and the same bits. */
void attention_columns_compare(const attention_columns *x, const attention_columns *y);

#endif
