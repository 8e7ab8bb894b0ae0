/*
 * Edges that a run cuts: a query does not see a key, in one head, in all heads of a layer, or
 * everywhere. Each layer that has some has a mask of all its pairs, which attention reads.
 */
#ifndef QKVI_MODEL_CUTS_H
#define QKVI_MODEL_CUTS_H

#include "model/layer/block.h"
#include "qkv/model.h"

typedef struct qkvi_cuts {
    qkvi_uncut *layers; /* [n_layers]; NULL: nothing is cut */
    uint8_t *masks;     /* that the layers point into */
} qkvi_cuts;

/* Of one attention on one input. */
typedef struct qkvi_cut_sizes {
    int64_t n_layers, n_heads, n_queries, n_keys;
    const uint8_t *seen; /* [n_keys]: 0 for keys that are dropped besides; NULL: none */
} qkvi_cut_sizes;

/* ARGUMENT, by the fields of qkv_run_options; LIMIT for masks that are too large; MEMORY. */
qkv_status qkvi_cuts_make(const qkv_run_options *asked, const qkvi_cut_sizes *sizes,
                          qkvi_cuts *cuts, qkv_error *error);
void qkvi_cuts_free(qkvi_cuts *cuts);

#endif
