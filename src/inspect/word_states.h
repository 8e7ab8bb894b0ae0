/* The hidden states that an output head for words reads, and ln p of words from its logits. */
#ifndef QKVI_INSPECT_WORD_STATES_H
#define QKVI_INSPECT_WORD_STATES_H

#include "qkv/model.h"

/*
 * Finds the stack whose last states the head reads, *which, and their number *n of input b.
 * ARGUMENT if the run is of another model, or has no states of a decoder that the head needs;
 * UNSUPPORTED if the model has no such head.
 */
qkv_status qkvi_word_states(const qkv_model *model, const qkv_run *run, qkv_word_head head,
                            int64_t b, qkv_attention_kind *which, int64_t *n, qkv_error *error);

float qkvi_largest_logit(const float *logits, int64_t n);

/* ln p of one of n words: (z - m) - ln sum exp(z - m), m = max z, in double. */
double qkvi_log_probability(const float *logits, int64_t n, int32_t word);

#endif
