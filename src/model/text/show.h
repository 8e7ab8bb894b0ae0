/** Bytes of tokens as people read them: qkv_tokenizer_show. */
#ifndef QKVI_TEXT_SHOW_H
#define QKVI_TEXT_SHOW_H

#include "model/text/growing.h"

/**
 * Appends bytes as they are shown: U+2423 for a space, U+21B5 for a newline, U+21E5 for a tab, \x1b for
 * other control characters and for bytes that are no whole character, and all else as itself.
 */
qkv_status qkvi_show(const char *bytes, size_t n, qkvi_growing *text);

#endif
