/**
 * Bytes as characters, so that a vocabulary of bytes is readable text (GPT-2, encoder.py,
 * bytes_to_unicode): 33–126, 161–172 and 174–255 are the characters of the same number; the other
 * 68, in ascending order, are U+0100, U+0101, …. So a space is U+0120 and a newline U+010A.
 */
#ifndef QKVI_TEXT_BYTE_LEVEL_H
#define QKVI_TEXT_BYTE_LEVEL_H

#include "files/base.h"

/** The character of a byte, 0 … 255. */
int32_t qkvi_byte_char(int byte);
/** The byte of a character, -1 if it stands for none. */
int qkvi_char_byte(int32_t code);

/**
 * The bytes that a token stands for, one for each of its characters; or the token itself, if a
 * character stands for no byte. bytes has room for n_token. Returns their number.
 */
size_t qkvi_byte_level_bytes(const char *token, size_t n_token, char *bytes);

/** Appends bytes as text, with U+FFFD for each maximal subpart that is invalid UTF-8. */
qkv_status qkvi_byte_level_text(const char *bytes, size_t n, qkvi_growing *text);

/**
 * Appends bytes in readable form: U+2423 for a space, U+21B5 for a newline, U+21E5 for a tab; other
 * control characters and bytes that are no whole character as \x1b; all else as it is.
 */
qkv_status qkvi_show(const char *bytes, size_t n, qkvi_growing *text);

#endif
