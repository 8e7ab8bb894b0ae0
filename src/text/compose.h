/** NFC (Unicode 3.11, D117) of a stretch of text, in lower case before or after it if wanted. */
#ifndef QKVI_TEXT_COMPOSE_H
#define QKVI_TEXT_COMPOSE_H

#include "text/normalize.h"

/** What is done, in this order. */
typedef struct qkvi_compose_rules {
    int lowers, composes, lowers_composed;
} qkvi_compose_rules;

/**
 * Sets normal to text[begin … end), valid UTF-8, after the rules. The raw range of a composed
 * character covers all its parts; if a character becomes several, the first one has its range. Time
 * is linear. MEMORY.
 */
qkv_status qkvi_compose(const char *text, uint32_t begin, uint32_t end,
                        const qkvi_compose_rules *rules, qkvi_normal_text *normal);

/** 1 if all of text[0 … n) is less than U+0300, which NFC does not change. */
int qkvi_is_composed(const char *text, size_t n);

#endif
