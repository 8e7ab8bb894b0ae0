/* Models and runs that the groups of nulls.h share. */
#ifndef NULL_MODELS_H
#define NULL_MODELS_H

#include "qkv/model.h"

extern qkv_model *null_bert;
extern qkv_encoding *null_tokens; /* of null_bert */
extern qkv_run *null_run;         /* of null_bert and null_tokens */
extern qkv_run *null_pair_run;    /* of an encoder-decoder, 4 tokens */

/** Reads a whole file; its memory is never freed. */
char *null_load(const char *path, size_t *n_bytes);

#endif
