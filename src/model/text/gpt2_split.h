/** The pattern by which GPT-2 cuts a text into words before bytes are merged. */
#ifndef QKVI_TEXT_GPT2_SPLIT_H
#define QKVI_TEXT_GPT2_SPLIT_H

#include "model/base.h"

/** The length of the word at the front of text[0 … n), valid UTF-8, n > 0. */
size_t qkvi_gpt2_word(const char *text, size_t n);

#endif
