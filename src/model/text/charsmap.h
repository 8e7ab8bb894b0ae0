/**
 * SentencePiece's compiled map of characters: rules "these bytes become those bytes", of which the
 * longest that fits is applied.
 *
 *     blob  = trie_bytes, 4 bytes, little-endian | trie | strings, each ended by a NUL
 *     trie  = units of 4 bytes: a double array as darts-clone writes it
 *     unit  : bits 0-7 label · 8 has a leaf · 9 the offset is in 256s · 10-30 offset · 31 is a leaf
 *     child of node by byte c = (node ^ offset(node)) ^ c, if its label is c
 *     leaf  of node           =  node ^ offset(node): bits 0-30 are the place of a string
 *
 * Everything that can be reached from the root is checked when it is opened: no path leaves the
 * array, comes back to itself or is longer than QKVI_CHARSMAP_MAX_RULE bytes, and every string is
 * there, ends, and is UTF-8 of at most QKVI_CHARSMAP_MAX_STRING bytes. Tries share branches, so
 * this is one visit for each place where children begin.
 * Reference: sentencepiece src/normalizer.cc, third_party/darts_clone/darts.h.
 */
#ifndef QKVI_TEXT_CHARSMAP_H
#define QKVI_TEXT_CHARSMAP_H

#include "model/base.h"

enum {
    QKVI_CHARSMAP_MAX_BYTES = 4 << 20, /* those of SentencePiece's own rules have 0.25 MB */
    QKVI_CHARSMAP_MAX_RULE = 256,
    QKVI_CHARSMAP_MAX_STRING = 256
};

typedef struct qkvi_charsmap {
    uint32_t *units;
    uint32_t n_units; /* 0: no rules */
    char *strings;
    size_t strings_bytes;
} qkvi_charsmap;

/** name is for messages. No bytes: no rules. FORMAT, LIMIT, MEMORY. */
qkv_status qkvi_charsmap_open(qkvi_charsmap *map, const char *name, const char *bytes,
                              size_t n_bytes, qkv_error *error);
void qkvi_charsmap_free(qkvi_charsmap *map);

/** What the longest rule at the front of a text makes of it. */
typedef struct qkvi_charsmap_match {
    size_t length; /* of the text; 0: no rule */
    const char *string;
    size_t string_bytes;
} qkvi_charsmap_match;

qkvi_charsmap_match qkvi_charsmap_longest(const qkvi_charsmap *map, const char *text,
                                          size_t n_bytes);

#endif
