/** Bytes of a page as text: five characters for four bytes. */
#ifndef QKVI_PAGE_BASE85_H
#define QKVI_PAGE_BASE85_H

#include "files/base.h"

/**
 * Each four bytes, a little-endian number, as five digits to the base of 85, the highest first.
 * Zeros fill the last group. Digits are the characters from ( to ~ in the order of ASCII, without <
 * and \, so the text ends neither an element nor a string of JSON.
 */
void qkvi_base85_add(qkvi_bytes *bytes, const void *data, size_t n);

/** The characters of n bytes. */
static inline size_t qkvi_base85_chars(size_t n) { return (n + 3) / 4 * 5; }

#endif
