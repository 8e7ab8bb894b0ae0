/*
 * Where rows are: logical shapes, sequences packed one after another, and the arrays in memory.
 * Rows of sequence b are those of a batch of its own; with cu_seqlens, batch b begins at row cu[b]
 * of arrays whose batch stride is 0.
 */
#ifndef QKV_TESTS_LAYOUT_H
#define QKV_TESTS_LAYOUT_H

#include <stdbool.h>

#include "qkv/qkv.h"

/* Arrays are named by a letter: 'q', 'k', 'v', 'o', or 'l' for lse. */
bool layout_of_keys(char which);

/* Logical: [n_batch][heads][len][channels]. */
void layout_shape(const qkv_attention_desc *d, char which, int64_t size[4]);
/* Of the array in memory: packed sequences are one batch of all rows. */
void layout_storage(const qkv_attention_desc *d, char which, int64_t size[4]);

/* Of an added mask, where nothing repeats but a last dimension of 1. */
void layout_mask(const qkv_attention_desc *d, int64_t size[4]);

/* Rows of batch b that there are, and those that count: q_len and kv_len shorten them. */
int64_t layout_rows(const qkv_attention_desc *d, char which, int64_t b);
int64_t layout_queries(const qkv_attention_desc *d, int64_t b);
int64_t layout_keys(const qkv_attention_desc *d, int64_t b);

/* The element of channel 0 of row i of head h of batch b. */
int64_t layout_place(const qkv_attention_desc *d, char which, const int64_t stride[3], int64_t b,
                     int64_t h, int64_t i);
/* Elements up to the end of the last one, with these strides. */
int64_t layout_elems(const int64_t size[4], const int64_t stride[3]);

#endif
