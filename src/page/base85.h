/** Encoding the binary data of a page as text: five characters for four bytes. */
#ifndef QKVI_PAGE_BASE85_H
#define QKVI_PAGE_BASE85_H

#include "files/base.h"

/**
 * Adds each four bytes, a little-endian number, as five digits of base 85, the most significant
 * first. The last group is filled up with zeros. Digits are the ASCII characters from ( to ~
 * without < and \, so that the text ends neither an element of HTML nor a JSON string.
 */
void qkvi_base85_add(qkvi_bytes *bytes, const void *data, size_t n);

/** The characters of n bytes. */
static inline size_t qkvi_base85_chars(size_t n) { return (n + 3) / 4 * 5; }

#endif
