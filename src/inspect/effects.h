/*
 * Effects of ablated heads: what effects.c, which asks, and effects_pass.c, which runs, share.
 *
 *     base run      hidden states h[l] and outputs o[l] of every layer
 *     set s         with lowest layer l: block l reads h[l], its heads give o[l] but for those of
 *                   s; blocks above l are computed as ever, and their heads of s are replaced, too
 *
 * A copy's rows never meet those of another, so a copy has the bits that it would have alone.
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
    const qkv_effects *asked;
    const qkv_run *base;
    int stack;                                /* of the heads that are ablated */
    bool cross;                               /* they are of cross-attention */
    int64_t n_layers, n_heads, head_dim, len; /* of that attention, and its queries */
    int64_t n_words;                          /* of the head that tells words */
    double *log_p;

    /* A batch: copies with the sets that it ablates, all with the lowest layer `first`. */
    const int64_t *sets;
    int64_t n_copies, first;
} qkvi_effects;

/* The heads of a set. */
static inline const int64_t *qkvi_effects_set(const qkv_effects *asked, int64_t set, int64_t *n) {
    const int64_t begin = set > 0 ? asked->ends[set - 1] : 0;
    *n = asked->ends[set] - begin;
    return asked->heads + begin;
}

/*
 * ln p of the words into log_p, and logits where they are asked for: of n_copies, from the last
 * hidden states of each, [len][hidden]. sets: what each copy ablates; NULL: the model as it is.
 */
qkv_status qkvi_effects_tell(const qkvi_effects *e, int64_t n_copies, const int64_t *sets,
                             const float *const *hidden, qkv_error *error);

/* Runs the batch, and tells what its sets lead to. */
qkv_status qkvi_effects_batch(const qkvi_effects *e, qkv_error *error);

#endif
