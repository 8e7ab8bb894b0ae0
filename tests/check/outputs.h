/*
 * The outputs of a call: arrays filled with canaries, between pages without access, and checks that
 * nothing but their rows was written.
 */
#ifndef QKV_TESTS_OUTPUTS_H
#define QKV_TESTS_OUTPUTS_H

#include "check/cases.h"

/* The type of the array with this letter. */
elem_type output_element(const qkv_attention_desc *d, char which);

guarded output_new(const qkv_attention_desc *d, char which, const int64_t stride[3], bool at_end);
/* Are all bytes still canaries that are not elements of rows that count? */
bool output_intact(const qkv_attention_desc *d, char which, const guarded *g,
                   const int64_t stride[3]);

typedef struct outputs {
    guarded o, lse, d_q, d_k, d_v;
    guarded d_sinks;    /* [n_heads]; canaries without sinks */
    guarded d_mask;     /* where the case wants it; its gaps, and hidden columns, are canaries */
    guarded d_distance; /* likewise */
} outputs;

enum { OUTPUTS = 8 };

outputs outputs_new(const check_case *c);
void outputs_free(outputs *x);
/* The n-th array in the order of the struct, and its type. */
const guarded *outputs_at(const outputs *x, int n);
elem_type outputs_element(const qkv_attention_desc *d, int n);

/* Bytes of an element of the explicit mask; 1 for 8 packed bits. */
size_t outputs_mask_bytes(const qkv_attention_desc *d);

/* The name of the first array that was written outside of its rows; NULL: none. */
const char *outputs_spoilt(const check_case *c, const outputs *x);

#endif
