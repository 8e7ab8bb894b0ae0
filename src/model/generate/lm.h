/*
 * What a search sees of a model: tokens in, logits out, for a number of sequences side by side. The
 * model keeps what it computed for each (keys and values) in slots 0 ... n - 1. Before a search, slot 0
 * has been given the prompt.
 */
#ifndef QKVI_GENERATE_LM_H
#define QKVI_GENERATE_LM_H

#include "qkv/generate.h"

typedef struct qkvi_lm {
    void *self;
    /* Appends ids[i] to slot i < n; logits [n][vocab] are of what follows. */
    qkv_status (*step)(void *self, int64_t n, const int32_t *ids, float *logits, qkv_error *error);
    /* Slot i < n goes on from what slot from[i] was; n may be more than there were. */
    qkv_status (*reorder)(void *self, int64_t n, const int32_t *from, qkv_error *error);
} qkvi_lm;

#endif
