/*
 * Logical shapes, and where rows are in memory, also for packed sequences: with cu_seqlens,
 * sequence b is batch b, which begins at row cu[b] of arrays whose batch stride is 0.
 */
#ifndef QKV_TESTS_LAYOUT_H
#define QKV_TESTS_LAYOUT_H

#include <stdbool.h>

#include "qkv/qkv.h"

/* Arrays are named by a letter: 'q', 'k', 'v', 'o', or 'l' for lse. */
bool layout_of_keys(char which);

/* The logical shape: [n_batch][heads][len][channels]. */
void layout_shape(const qkv_attention_desc *d, char which, int64_t size[4]);
/* The shape of the array in memory: packed sequences are one batch of all rows. */
void layout_storage(const qkv_attention_desc *d, char which, int64_t size[4]);

/* The shape of an added mask without broadcasting, except a last dimension of 1. */
void layout_mask(const qkv_attention_desc *d, int64_t size[4]);

/* The rows of batch b; and those of them that count by q_len and kv_len. */
int64_t layout_rows(const qkv_attention_desc *d, char which, int64_t b);
int64_t layout_queries(const qkv_attention_desc *d, int64_t b);
int64_t layout_keys(const qkv_attention_desc *d, int64_t b);

/* The index of channel 0 of row i of head h of batch b. */
int64_t layout_place(const qkv_attention_desc *d, char which, const int64_t stride[3], int64_t b,
                     int64_t h, int64_t i);
/* The elements of an array with these strides, up to the last one. */
int64_t layout_elems(const int64_t size[4], const int64_t stride[3]);

#endif
