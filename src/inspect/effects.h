/*
 * Effects of ablated heads: effects.c orders the work, effects_pass.c runs the model.
 *
 *     base run      gives hidden states h[l] and outputs of heads o[l] of every layer
 *     a set s       whose lowest layer is l: block l reads h[l], and its heads give o[l], except
 *                   those of s, whose output is replaced. Blocks above l are computed anew, with
 *                   the outputs of their heads of s replaced
 *
 * Sets run in batches, each as a copy of the text. Rows of a copy never enter sums of another, so a
 * copy has the bits that it would have alone.
 */
#ifndef QKVI_INSPECT_EFFECTS_H
#define QKVI_INSPECT_EFFECTS_H

#include "model/arch/net.h"
#include "model/model_impl.h"
#include "qkv/effects.h"

typedef struct qkvi_effects {
    qkv_ctx *ctx;
    const qkv_model *model;
    const qkv_encoding *input;
    const qkv_effects *request;
    const qkv_run *base;
    int stack;                           /* the stack of the heads that are ablated */
    bool cross;                          /* they are heads of cross-attention */
    int64_t n_layers, n_heads, head_dim; /* of that attention */
    int64_t len;                         /* its queries */
    int64_t n_words;                     /* outputs of the head that predicts words or classes */
    double *log_p;                       /* [n_sets + 1][n_places]; row 0: nothing is ablated */

    /* A batch: copy c ablates set sets[c], and `first` is the lowest layer of all its sets. */
    const int64_t *sets; /* [n_copies] */
    int64_t n_copies, first;
} qkvi_effects;

/* Whether the words are classes of the whole input. */
static inline bool qkvi_effects_of_labels(const qkvi_effects *e) {
    return e->request->head == QKV_HEAD_LABEL;
}

/* The heads of a set. */
static inline const int64_t *qkvi_effects_set(const qkv_effects *request, int64_t set, int64_t *n) {
    const int64_t begin = !request->ends ? set : set > 0 ? request->ends[set - 1] : 0;
    *n = request->ends ? request->ends[set] - begin : 1;
    return request->heads + begin;
}

/*
 * Writes ln p of the words into log_p, and logits if the caller wants them, from the last hidden
 * states [len][hidden] of each of n_copies. sets: the set that each copy ablates; NULL: there is
 * one copy, without ablation.
 */
qkv_status qkvi_effects_tell(const qkvi_effects *e, int64_t n_copies, const int64_t *sets,
                             const float *const *hidden, qkv_error *error);

/* Runs the batch, and writes its ln p by qkvi_effects_tell. */
qkv_status qkvi_effects_batch(const qkvi_effects *e, qkv_error *error);

#endif
