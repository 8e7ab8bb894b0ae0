/* Hidden states that a head for words reads, and ln p of words from the logits that it makes. */
#ifndef QKVI_INSPECT_WORD_STATES_H
#define QKVI_INSPECT_WORD_STATES_H

#include "qkv/model.h"

/*
 * The stack whose last states the head reads: *which, and *n rows of input b. ARGUMENT for a run of
 * another model, or of an encoder alone; UNSUPPORTED without such a head.
 */
qkv_status qkvi_word_states(const qkv_model *model, const qkv_run *run, qkv_word_head head,
                            int64_t b, qkv_attention_kind *which, int64_t *n, qkv_error *error);

float qkvi_largest_logit(const float *logits, int64_t n);

/* ln p of a word of n: (z - m) - ln sum exp(z - m), m = max z, in double. */
double qkvi_log_probability(const float *logits, int64_t n, int32_t word);

#endif
