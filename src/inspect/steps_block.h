/*
 * One query through a block, step by step: where its numbers lie, and the steps themselves, in
 * double and in the order of a textbook.
 */
#ifndef QKVI_INSPECT_STEPS_BLOCK_H
#define QKVI_INSPECT_STEPS_BLOCK_H

#include "inspect/steps.h"
#include "qkv/inspect.h"

/* What the steps read, and what they need besides the arrays below. */
typedef struct qkvi_steps_work {
    const qkvi_stack *stack;
    const qkvi_block *block;
    const qkv_encoding *input;
    double *doubles; /* begins with a qkv_steps; see steps.c */
    size_t used;
    double *all_q;               /* [n_heads head_dim] of the query */
    double *all_k, *all_v, *raw; /* [n][n_kv_heads head_dim]; raw: k before its norm and turns */
    double *row;                 /* [hidden] */
} qkvi_steps_work;

/* The pointers of qkv_steps, for writing. */
typedef struct qkvi_steps_arrays {
    double *word, *segment, *position, *embedding, *embedded, *x, *read, *q, *k, *v, *products,
        *scores, *shifted, *exponentials, *weights, *o, *concat, *projected, *added, *normed, *up,
        *gelu, *down, *added2, *y, *q_projected, *k_projected, *gate, *attended, *fed;
} qkvi_steps_arrays;

/* The embedding of the query, and how far that of every token is from hidden [n][hidden]. */
void qkvi_steps_embed(const qkvi_steps_work *w, const float *hidden, const qkvi_steps_arrays *a,
                      qkv_steps *steps);

/* The keys that the query sees by position. */
void qkvi_steps_find_keys(qkv_steps *steps);

/* All heads of the query, that of the steps last, so that its numbers are those that stay. */
void qkvi_steps_attend(const qkvi_steps_work *w, const qkvi_steps_arrays *a, qkv_steps *steps);

/* What follows attention in the block, and the stack's last norm. */
void qkvi_steps_rest(const qkvi_steps_work *w, const qkvi_steps_arrays *a, const qkv_steps *steps);

#endif
