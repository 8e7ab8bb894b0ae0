/**
 * Making vectors of sentences: what embed.c, which runs the model, and embed_vector.c, which does the rest
 * for one input, share.
 */
#ifndef QKVI_MODEL_EMBED_H
#define QKVI_MODEL_EMBED_H

#include "model/model_impl.h"

/** What is asked for, and room for numbers on their way. */
typedef struct qkvi_embedding {
    qkv_ctx *ctx;
    const qkv_model *model;
    int n_poolings, n_steps; /* steps: the first of the sentence's */
    const qkv_pooling *poolings;
    qkv_pooling asked; /* the only one, if somebody asked for it */
    int64_t n_out;     /* tokens at the front that are not pooled */
    int64_t dim, kept; /* of what is pooled and stepped, and of a vector */
    int normalizes;    /* at the end */
    double *x;         /* [widest] */
    float *a, *b;      /* [widest] */
} qkvi_embedding;

/** The vector [e->kept] of an input whose last hidden states are [n][hidden]. */
void qkvi_embed_vector(const qkvi_embedding *e, int64_t n, const float *hidden, float *vector);

#endif
