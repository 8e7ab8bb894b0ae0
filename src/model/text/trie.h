/**
 * The tokens that a text begins with, all of them in one walk: a trie as a double array (Aoe 1989).
 *
 *     child of node by byte c = unit at base[node] ^ c, if parent[unit] == node
 *
 * One load a byte. It is built from a sorted vocabulary (pieces.h) by sorted intervals; places are
 * tried in a bounded number of free units, then a block of 256 is added, so that building takes
 * linear time for whatever a file contains. Byte 0 is in no token. The root is unit 0.
 */
#ifndef QKVI_TEXT_TRIE_H
#define QKVI_TEXT_TRIE_H

#include "model/text/pieces.h"

enum { QKVI_TRIE_MAX_NODES = 1 << 21 };

typedef struct qkvi_trie_unit {
    uint32_t base, parent;
    int32_t id;  /* of the token that ends here, or -1 */
    float score; /* the builder's to fill: beside the id, because who needs one needs both */
} qkvi_trie_unit;

typedef struct qkvi_trie {
    qkvi_trie_unit *units;
    uint32_t n_units; /* a multiple of 256; 0: no tokens */
} qkvi_trie;

/** Which tokens enter. */
typedef int qkvi_trie_chooses(const void *user, int32_t id);

/** LIMIT for more than QKVI_TRIE_MAX_NODES nodes; MEMORY. */
qkv_status qkvi_trie_build(qkvi_trie *trie, const qkvi_pieces *pieces, qkvi_trie_chooses *chooses,
                           const void *user);
void qkvi_trie_free(qkvi_trie *trie);

/** The node after byte, or 0, which is the root and nobody's child. */
static inline uint32_t qkvi_trie_child(const qkvi_trie_unit *units, uint32_t node, uint8_t byte) {
    const uint32_t child = units[node].base ^ byte;
    return units[child].parent == node && child != 0 && byte != 0 ? child : 0;
}

/** The length of the longest token that bytes begin with; 0 if there is none. */
size_t qkvi_trie_longest(const qkvi_trie *trie, const char *bytes, size_t n_bytes);

#endif
