/**
 * NFC (Unicode 3.11, D117) of a stretch of text, after lower case if that is wanted.
 */
#ifndef QKVI_TEXT_COMPOSE_H
#define QKVI_TEXT_COMPOSE_H

#include "text/normalize.h"

/**
 * Replaces what normal holds by text[begin … end), valid UTF-8, each character in lower case if
 * `lowers`, then composed if `composes`. A composed character has the bytes of all its parts; of
 * the parts that a character leaves the first has its bytes. Time is linear. MEMORY.
 */
qkv_status qkvi_compose(const char *text, uint32_t begin, uint32_t end, int lowers, int composes,
                        qkvi_normal_text *normal);

/** 1 if NFC leaves all of text[0 … n) as it is because nothing in it is U+0300 or above. */
int qkvi_is_composed(const char *text, size_t n);

#endif
