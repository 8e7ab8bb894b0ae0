/*
 * Attention as a textbook has it, in double, from the public header's formulas alone: one score
 * matrix row at a time, no blocks, nothing shared with the library. What qkv-check and the property
 * tests compare with.
 *
 * Also here: the bounds of docs/numerics.md, built from the operands, and the same textbook
 * formulas in f32, whose error is the yardstick where no bound is built from operands.
 */
#ifndef QKV_TESTS_ORACLE_H
#define QKV_TESTS_ORACLE_H

#include <stdbool.h>

#include "qkv/qkv.h"

/*
 * Dense arrays in the logical shapes of the header. Rows at or beyond q_len, or the end of a
 * sequence, hold 0 and mean nothing.
 */
typedef struct oracle_forward {
    double *o, *lse;
    double *o_bound, *lse_bound; /* per row: how far f32 results may be from them */
    bool *has_bound;             /* whether every sum of the row is well within the floats */
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
    bool whole;                      /* those are whole numbers, by a scale */
    const void *d_o;                 /* backward, of o's type */
    const float *d_lse;              /* nullable */
    int64_t d_o_stride[3];
    const void *o; /* textbooks of the backward pass only: what forward gave */
    const float *lse;
} oracle_inputs;

/* Does query i of head h see key j? Every rule of the descriptor, one after the other. */
int oracle_sees(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t i, int64_t j);

void oracle_forward_run(const qkv_attention_desc *d, const oracle_inputs *in, oracle_forward *out);
void oracle_backward_run(const qkv_attention_desc *d, const oracle_inputs *in,
                         oracle_backward *out);

/* Are weights and derivatives of scores rounded to bf16 where gradients are summed? */
bool oracle_rounds_gradients(const qkv_attention_desc *d);

/*
 * The header's backward formulas evaluated in f32, from the o and lse of a forward call. There
 * is more than one such evaluation, and the error of a small problem is a matter of luck, so there
 * are ORACLE_TEXTBOOKS of them: channels from left to right or from right to left; o and lse as
 * given, or moved by a unit in the last place, since they are known no better.
 */
enum { ORACLE_TEXTBOOKS = 4 };
void oracle_textbook_f32(const qkv_attention_desc *d, const oracle_inputs *in, int which,
                         oracle_backward *out);

/*
 * Zero-filled results of the right sizes; exits the process when memory is out, like everything in
 * tests.
 */
oracle_forward oracle_forward_new(const qkv_attention_desc *d);
void oracle_forward_free(oracle_forward *f);
oracle_backward oracle_backward_new(const qkv_attention_desc *d);
void oracle_backward_free(oracle_backward *g);

#endif
