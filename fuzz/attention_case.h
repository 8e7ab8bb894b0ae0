/*
 * Bytes as an attention problem. A fixed head gives small sizes, rules and the seed of the values;
 * edits follow, each of which puts any number into any field: sizes, strides, flags, struct_size.
 */
#ifndef QKV_FUZZ_ATTENTION_CASE_H
#define QKV_FUZZ_ATTENTION_CASE_H

#include <qkv/kv.h>

#include "fuzz/fuzz.h"

enum {
    CASE_MOST_BATCHES = 64, /* with values of their own for each batch */
    CASE_MOST_OFFSETS = 4096,
    CASE_MOST_BLOCKS = 4096
};

typedef struct attention_case {
    qkv_attention_desc desc; /* mask, segments, slopes and sinks: NULL */
    qkv_attention_grads grads;
    int64_t q_offsets[CASE_MOST_BATCHES], kv_len[CASE_MOST_BATCHES], q_len[CASE_MOST_BATCHES];
    int64_t prefix_len[CASE_MOST_BATCHES];
    int64_t cu_q[CASE_MOST_BATCHES + 1], cu_k[CASE_MOST_BATCHES + 1];
    int64_t block_offsets[CASE_MOST_OFFSETS];
    int32_t block_index[CASE_MOST_BLOCKS];
    qkv_kv_view view; /* of decode; pointers are NULL */
    bool has_first, plain_view;
    bool wants_lse, wants_d_lse, wants_d_sinks, wants_d_mask;
    uint8_t shift; /* elements before each array: its alignment */
    uint8_t style; /* of the values */
    uint64_t seed;
} attention_case;

void attention_case_read(const uint8_t *bytes, size_t n_bytes, attention_case *c);

/* Numbers of a case beyond its bytes: a function of its seed. */
uint64_t attention_next_random(uint64_t *state);
/* In [low, high], or now and then not. */
int64_t attention_value(uint64_t *state, int64_t low, int64_t high);

/* Packed sequences and block masks: see attention_rules.c. */
void attention_rules_read(attention_case *c);
/* Rows of q (of k): in memory, over all sequences. */
int64_t attention_rows(const attention_case *c, bool keys);
bool attention_packed(const attention_case *c);

/* An array of a case: what its shape and strides promise, and nothing more. */
typedef struct attention_array {
    int64_t size[4], stride[4];
    size_t elem_bytes, n_elems;
    qkv_dtype type; /* of elements of two bytes */
    uint8_t canary; /* of an output */
    void *block, *data;
} attention_array;

/* Lays out, without memory; false if a stride is negative or there are too many elements. */
bool attention_array_plan(const int64_t size[4], const int64_t stride[3], int64_t last_stride,
                          size_t elem_bytes, attention_array *array);
/* The same of a type; the last stride is 1. */
bool attention_array_plan_typed(const int64_t size[4], const int64_t stride[3], qkv_dtype type,
                                attention_array *array);
void attention_array_alloc(attention_array *array, uint8_t shift);
void attention_array_free(attention_array *array);

/* Values of an input: mostly small numbers; by style also zeros, huge, infinite and NaN ones. */
void attention_array_fill(attention_array *array, uint8_t style, uint64_t seed);
/* Runs of equal numbers, int32_t. */
void attention_array_fill_segments(attention_array *array, uint64_t seed);

/* Outputs begin as canaries; not all with the same, for an output may become an input. */
void attention_array_clear(attention_array *array, uint8_t canary);
/*
 * The elements of rows i < rows[b] (NULL: of all rows) were written, all else was not. starts:
 * where the sequences of n_batch begin in an array of packed ones; NULL: each is a batch.
 */
void attention_array_check(const attention_array *array, const int64_t *starts, int64_t n_batch,
                           const int64_t *rows);
/* The same bits, or NaN in both. */
bool attention_array_same(const attention_array *a, const attention_array *b);

/*
 * Keys and values as decode finds them: see attention_view.c. A view is laid out as it says of
 * itself; false if it is too large, or says what no array can be.
 */
void attention_view_read(attention_case *c);
bool attention_view_plan(const attention_case *c, attention_array *k, attention_array *v,
                         attention_array *k_scale, attention_array *v_scale, attention_array *pages,
                         attention_array *first);
/* Pages and first tokens: mostly in range. */
void attention_view_fill(const attention_case *c, attention_array *pages, attention_array *first);

#endif
