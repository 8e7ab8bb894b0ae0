/**
 * Properties of code points by the Unicode versions of the reference tokenizer: classes, lower
 * case, canonical decomposition, combining classes.
 *
 * Tables are libutf8proc's; unicode_exceptions.h corrects them where the reference follows another
 * Unicode version.
 */
#ifndef QKVI_TEXT_UNICODE_H
#define QKVI_TEXT_UNICODE_H

#include <stdint.h>

enum {
    QKVI_CHAR_SPACE = 1u << 0, /* White_Space */
    QKVI_CHAR_DROPPED =
        1u << 1, /* cleaning removes it: Cc, Cf, Co, U+0000, U+FFFD, but not \t \n \r */
    QKVI_CHAR_PUNCTUATION = 1u << 2, /* category P, and every ASCII symbol */
    QKVI_CHAR_IDEOGRAPH = 1u << 3,   /* a word by itself */
    QKVI_CHAR_ACCENT = 1u << 4       /* category Mn */
};

/** The classes of a scalar value, or-ed. */
unsigned qkvi_char_class(int32_t code);

/** White space for str.strip of Python, which takes U+001C to U+001F away, too. */
int qkvi_char_strips(int32_t code);

/** The groups of the patterns of byte-level BPE: \p{L}, \p{N}, \s, and all else. */
typedef enum qkvi_char_group {
    QKVI_GROUP_LETTER,
    QKVI_GROUP_NUMBER,
    QKVI_GROUP_SPACE, /* White_Space */
    QKVI_GROUP_OTHER
} qkvi_char_group;

qkvi_char_group qkvi_char_group_of(int32_t code);

/** Categories N for Digits of PyPI tokenizers, by a newer Unicode version than the groups. */
int qkvi_char_is_numeric(int32_t code);

/** \w: Alphabetic, marks, decimal numbers, connectors, the two joiners. */
int qkvi_char_is_word(int32_t code);

/** Lower case without context; 1 or 2 code points. Returns how many. */
int qkvi_char_lower(int32_t code, int32_t lower[2]);

enum { QKVI_MAX_DECOMPOSITION = 4 };

/**
 * Full canonical decomposition (NFD) of one code point. Returns how many, 1 if it does not
 * decompose.
 */
int qkvi_char_decompose(int32_t code, int32_t parts[QKVI_MAX_DECOMPOSITION]);

/** The canonical composition of two code points (NFC), 0 if there is none. */
int32_t qkvi_char_compose(int32_t first, int32_t second);

/** The canonical combining class, by which marks are sorted; 0: not reordered. */
unsigned qkvi_char_combining(int32_t code);

#endif
