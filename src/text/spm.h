/**
 * A SentencePiece model of kind unigram (Kudo 2018): the file, text to pieces, pieces to text.
 *
 *     text → rules: user-defined symbols stay, the map of characters, white space
 *          → the segmentation of the largest sum of scores → neighbouring unknowns as one
 *
 * Ids, pieces and places are those of PyPI sentencepiece, ties and rounding included. A model is
 * read-only once it is open. Reference: sentencepiece src/normalizer.cc, unigram_model.cc,
 * sentencepiece_processor.cc.
 */
#ifndef QKVI_TEXT_SPM_H
#define QKVI_TEXT_SPM_H

#include "files/base.h"
#include "text/pieces.h"

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

/** The same of the shortest rule. */
qkvi_charsmap_match qkvi_charsmap_shortest(const qkvi_charsmap *map, const char *text,
                                           size_t n_bytes);

/**
 * The tokens that a text begins with, all of them in one walk: a trie as a double array (Aoe 1989).
 *
 *     child of node by byte c = unit at base[node] ^ c, if parent[unit] == node
 *
 * One load a byte. It is built from a sorted vocabulary (pieces.h) by sorted intervals; places are
 * tried in a bounded number of free units, then a block of 256 is added, so that building takes
 * linear time for whatever a file contains. Byte 0 is in no token. The root is unit 0.
 */

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

/** The node after byte, or 0, which is the root and no node's child. */
static inline uint32_t qkvi_trie_child(const qkvi_trie_unit *units, uint32_t node, uint8_t byte) {
    const uint32_t child = units[node].base ^ byte;
    return units[child].parent == node && child != 0 && byte != 0 ? child : 0;
}

/** The length of the longest token that bytes begin with; 0 if there is none. */
size_t qkvi_trie_longest(const qkvi_trie *trie, const char *bytes, size_t n_bytes);

enum {
    QKVI_SPM_MAX_BYTES = 16 << 20, /* a quarter of a million pieces have 5 MB */
    QKVI_SPM_MAX_PIECES = 600000,
    QKVI_SPM_MAX_SURFACE = 64 /* bytes that stand for an unknown piece */
};

/** As in the file. */
typedef enum qkvi_spm_type {
    QKVI_SPM_NORMAL = 1,
    QKVI_SPM_UNKNOWN,
    QKVI_SPM_CONTROL,
    QKVI_SPM_USER_DEFINED,
    QKVI_SPM_UNUSED,
    QKVI_SPM_BYTE
} qkvi_spm_type;

/** What a text becomes before it is segmented. */
typedef struct qkvi_spm_rules {
    qkvi_charsmap map;
    qkvi_trie symbols; /* user-defined: never rewritten */
    int add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces, whitespace_as_suffix;
} qkvi_spm_rules;

typedef struct qkvi_spm {
    qkvi_pieces pieces;
    uint8_t *types;             /* by id */
    float *scores;              /* by id */
    qkvi_trie trie;             /* what text is segmented into */
    qkvi_spm_rules rules, back; /* back: what a decoded text becomes; often nothing */
    int rewrites_back;
    float unknown_score;
    int byte_fallback;
    int32_t byte_ids[256];
    int32_t unk, bos, eos, pad; /* -1: there is none; unk always is */
    char unk_surface[QKVI_SPM_MAX_SURFACE];
    uint32_t unk_surface_bytes;
} qkvi_spm;

/**
 * Reads a .spm or .model file. name is for messages. On error there is nothing to free.
 * FORMAT, LIMIT, UNSUPPORTED (a model of another kind), MEMORY.
 */
qkv_status qkvi_spm_open(qkvi_spm *spm, const char *name, const char *bytes, size_t n_bytes,
                         qkv_error *error);
void qkvi_spm_free(qkvi_spm *spm);

/** The id of a piece; unk if it is none. */
int32_t qkvi_spm_id(const qkvi_spm *spm, const char *piece, size_t n_bytes);

/** The byte that a piece "<0xE2>" stands for, or -1. */
int qkvi_spm_byte(const char *piece, size_t n_bytes);

/* ---- Normalising ---- */

/** A text as the rules want it, and where each of its bytes comes from. */
typedef struct qkvi_spm_text {
    char *bytes;
    uint32_t *origin; /* n + 1 of them, if n > 0; ascending */
    uint32_t n;
    size_t capacity;
} qkvi_spm_text;

/** Replaces what is in text, which begins as zeros. MEMORY; LIMIT above 2 GiB. */
qkv_status qkvi_spm_normalize(const qkvi_spm_rules *rules, const char *bytes, uint32_t n_bytes,
                              qkvi_spm_text *text);
void qkvi_spm_text_free(qkvi_spm_text *text);

/* ---- Text to pieces ---- */

/**
 * A piece of a text: which bytes of the raw text it stands for, and how it is written, which of an
 * unknown one is the normalised text.
 */
typedef struct qkvi_spm_token {
    int32_t id;
    uint32_t begin, end;
    const char *piece;
    uint32_t n_bytes;
} qkvi_spm_token;

/** Receives each piece; anything but QKV_OK ends the walk and is returned. */
typedef qkv_status qkvi_spm_token_fn(void *user, const qkvi_spm_token *token);

/**
 * Segments a text. Time is linear in the text times the longest piece; memory is 17 bytes for each
 * byte of the normalised text. MEMORY, LIMIT, or what the callback returned.
 */
qkv_status qkvi_spm_encode(const qkvi_spm *spm, const char *bytes, uint32_t n_bytes,
                           qkvi_spm_token_fn *emit, void *user);

/* ---- Pieces to text ---- */

/** A text being put together. Begins as zeros but for spm; qkvi_spm_decoder_free ends it. */
typedef struct qkvi_spm_decoder {
    const qkvi_spm *spm;
    char *bytes; /* the text so far */
    size_t n_bytes, capacity;
    unsigned char *raw; /* byte pieces not yet seen to be characters */
    size_t n_raw, raw_capacity;
    int prefix_gone; /* the dummy prefix has been seen, and left out */
} qkvi_spm_decoder;

/** Adds a piece by its bytes: what is no piece of the model stands for itself. MEMORY. */
qkv_status qkvi_spm_decode(qkvi_spm_decoder *decoder, const char *piece, size_t n_bytes);
/** After the last piece: the text is complete. MEMORY. */
qkv_status qkvi_spm_decode_end(qkvi_spm_decoder *decoder);
void qkvi_spm_decoder_free(qkvi_spm_decoder *decoder);

#endif
