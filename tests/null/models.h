/* Models and runs that the groups of nulls.h share. */
#ifndef NULL_MODELS_H
#define NULL_MODELS_H

#include "qkv/model.h"

extern qkv_model *null_bert;
extern qkv_encoding *null_tokens; /* of null_bert */
extern qkv_run *null_run,
    *null_pair_run; /* of null_bert and null_tokens; of an encoder-decoder: 4 tokens */

/** A whole file, for the rest of the process. */
char *null_load(const char *path, size_t *n_bytes);

#endif
