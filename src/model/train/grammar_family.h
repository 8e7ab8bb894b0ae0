/* Families while they are read: their variables, and their says compiled into frames. */
#ifndef QKV_MODEL_TRAIN_GRAMMAR_FAMILY_H
#define QKV_MODEL_TRAIN_GRAMMAR_FAMILY_H

#include "model/train/grammar_words.h"

/* "family NAME [hold V [W]] [*N]": tokens after the first. Hold names are looked up at the end. */
qkv_status qkvi_family_begin(const qkvi_reader *r, const qkvi_token *tokens, int32_t n);
/* An indented line: "V = …", "say …", "pair … | …", "held say …", "held pair … | …". */
qkv_status qkvi_family_line(const qkvi_reader *r, const qkvi_token *tokens, int32_t n);
/* After the last line of the last family: hold variables and checks. */
qkv_status qkvi_family_end(const qkvi_reader *r);

#endif
