/*
 * One batch of a descriptor, for those who go through its rows from outside.
 */
#ifndef QKVI_ATTN_BATCH_H
#define QKVI_ATTN_BATCH_H

#include "core/status.h"

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

typedef struct qkvi_batch {
    int64_t n_queries; /* those that count: q_len */
    int64_t n_keys;
    int64_t offset; /* query i stands at key i + offset */
} qkvi_batch;

/* Checks the descriptor, but no array; desc is not NULL, b any number. */
QKV_NODISCARD qkv_status qkvi_batch_read(const qkv_attention_desc *desc, int64_t b,
                                         qkvi_batch *batch, qkv_error *error);

#pragma GCC visibility pop

#endif
