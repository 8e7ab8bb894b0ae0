/*
 * The oracle: attention as in a textbook, in double, from the formulas of the public header. One
 * row of scores at a time, no blocks, nothing shared with the library. qkv-check and property tests
 * compare with it.
 *
 * Also here: the bounds of docs/numerics.md, computed from the operands; and the same formulas in
 * f32, whose errors are compared with the library's where there is no such bound.
 */
#ifndef QKV_TESTS_ORACLE_H
#define QKV_TESTS_ORACLE_H

#include <stdbool.h>

#include "qkv/qkv.h"

/*
 * Dense arrays in the logical shapes of the header. Rows at or beyond q_len, or the end of a
 * sequence, are 0 and not to be compared.
 */
typedef struct oracle_forward {
    double *o, *lse;
    double *o_bound, *lse_bound; /* per row: the largest allowed error of f32 results */
    bool *has_bound;             /* per row: no sum comes near the largest float */
} oracle_forward;

typedef struct oracle_backward {
    double *d_q, *d_k, *d_v, *d_sinks;
    double *d_mask;     /* [n_batch][n_heads][len_q][len_k], not summed; NULL if nothing is added */
    double *d_mask_sum; /* see mask_gradient.h */
    double *d_distance; /* likewise */
    double flushed; /* by how much weights below 2^-126, which count as 0, may change any of them */
} oracle_backward;

/* Arrays of the descriptor's types and strides. */
typedef struct oracle_inputs {
    const void *q, *k, *v;
    const double *k_dense, *v_dense; /* instead of k and v, in the logical shapes; or NULL */
    bool whole;                      /* these are whole numbers times a scale */
    const void *d_o;                 /* backward, of o's type */
    const float *d_lse;              /* nullable */
    int64_t d_o_stride[3];
    const void *o; /* only for oracle_textbook_f32: results of a forward call */
    const float *lse;
} oracle_inputs;

/* Does query i of head h see key j? Checks every rule of the descriptor. */
int oracle_sees(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t i, int64_t j);

void oracle_forward_run(const qkv_attention_desc *d, const oracle_inputs *in, oracle_forward *out);
void oracle_backward_run(const qkv_attention_desc *d, const oracle_inputs *in,
                         oracle_backward *out);

/* Are weights and derivatives of scores rounded to bf16 before gradients are summed? */
bool oracle_rounds_gradients(const qkv_attention_desc *d);

/*
 * The header's backward formulas in f32, from o and lse of a forward call. The error of one
 * evaluation of a small problem is random, so there are ORACLE_TEXTBOOKS of them: channels summed
 * from left to right or from right to left; o and lse as given, or changed by one unit in the last
 * place, which is their accuracy.
 */
enum { ORACLE_TEXTBOOKS = 4 };
void oracle_textbook_f32(const qkv_attention_desc *d, const oracle_inputs *in, int which,
                         oracle_backward *out);

/*
 * Allocate results, filled with 0; exit the process if there is no memory, as everywhere in tests.
 */
oracle_forward oracle_forward_new(const qkv_attention_desc *d);
void oracle_forward_free(oracle_forward *f);
oracle_backward oracle_backward_new(const qkv_attention_desc *d);
void oracle_backward_free(oracle_backward *g);

#endif
