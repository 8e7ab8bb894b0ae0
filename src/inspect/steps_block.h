/*
 * One query through a block, step by step, in double and in the order of a textbook: the arrays of
 * its numbers, and the steps.
 */
#ifndef QKVI_INSPECT_STEPS_BLOCK_H
#define QKVI_INSPECT_STEPS_BLOCK_H

#include "inspect/steps.h"
#include "qkv/inspect.h"

/* What the steps read, and their scratch. */
typedef struct qkvi_steps_work {
    const qkvi_stack *stack;
    const qkvi_block *block;
    const qkv_encoding *input;
    double *doubles; /* one block for all arrays, which begins with the qkv_steps: steps.c */
    size_t used;     /* doubles of it that are handed out */
    double *all_q;   /* [n_heads * head_dim] of the query */
    double *all_k, *all_v, *raw; /* [n][n_kv_heads * head_dim]; raw: k before norm and RoPE */
    double *row;                 /* [hidden] */
    double *pixels, *place;      /* of an image: pixels of a patch, [hidden] its position */
    float *places;               /* of an image: qkvi_step_places */
} qkvi_steps_work;

/* The arrays of qkv_steps, whose pointers there are const. */
typedef struct qkvi_steps_arrays {
    double *word, *segment, *position, *embedding, *embedded, *x, *read, *q, *k, *v, *products,
        *biases, *scores, *shifted, *exponentials, *weights, *o, *concat, *projected, *added,
        *normed, *up, *gelu, *down, *added2, *y, *q_projected, *k_projected, *gate, *attended, *fed;
} qkvi_steps_arrays;

/*
 * The embedding of the query; and the largest difference of the embeddings of all tokens to those
 * of the run, hidden [n][hidden].
 */
void qkvi_steps_embed(const qkvi_steps_work *w, const float *hidden, const qkvi_steps_arrays *a,
                      qkv_steps *steps);

/* Finds the keys that the query sees by the rules of position. */
void qkvi_steps_find_keys(qkv_steps *steps);

/* All heads of the query; that of the steps comes last, so that its numbers stay in the arrays. */
void qkvi_steps_attend(const qkvi_steps_work *w, const qkvi_steps_arrays *a, qkv_steps *steps);

/* What follows attention in the block, and the stack's last norm. */
void qkvi_steps_rest(const qkvi_steps_work *w, const qkvi_steps_arrays *a, const qkv_steps *steps);

#endif
