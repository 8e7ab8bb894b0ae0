/**
 * How byte-level BPE splits a text into words, without an engine for regular expressions: each
 * function is the code of one pattern. All take text[0 … n), valid UTF-8, n > 0, and return the
 * length of the word at its beginning. Splitting a whole text takes linear time.
 */
#ifndef QKVI_TEXT_WORDS_H
#define QKVI_TEXT_WORDS_H

#include "files/base.h"

/** GPT-2, encoder.py. */
extern const char qkvi_gpt2_pattern[];
size_t qkvi_gpt2_word(const char *text, size_t n);

/** Llama 3 (max_digits 3), Qwen (1). */
extern const char qkvi_llama3_pattern[], qkvi_qwen_pattern[];
size_t qkvi_modern_word(const char *text, size_t n, int max_digits);

/** CLIP, of a text that does not begin with white space; and how much of that begins a text. */
size_t qkvi_clip_word(const char *text, size_t n);
size_t qkvi_spaces(const char *text, size_t n);

/** BLOOM. */
extern const char qkvi_bloom_pattern[];
size_t qkvi_bloom_word(const char *text, size_t n);

/**
 * Digits of PyPI tokenizers: a run of digits (`each`: a single digit), or of other characters.
 */
size_t qkvi_digits_word(const char *text, size_t n, int each);

#endif
