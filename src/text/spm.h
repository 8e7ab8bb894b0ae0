/**
 * A SentencePiece model of the kind unigram (Kudo 2018): the file, text to pieces, pieces to text.
 *
 *     text → normalisation (map of characters, white space; user-defined symbols are kept)
 *          → the segmentation with the largest sum of scores
 *          → neighbouring unknown pieces become one
 *
 * Ids, pieces and ranges are those of PyPI sentencepiece, ties and rounding included. An open model
 * is read-only. Reference: sentencepiece src/normalizer.cc, unigram_model.cc,
 * sentencepiece_processor.cc.
 */
#ifndef QKVI_TEXT_SPM_H
#define QKVI_TEXT_SPM_H

#include "files/base.h"
#include "text/pieces.h"

/**
 * SentencePiece's compiled map of characters: rules that replace some bytes by others. Of all that
 * match at a place, the longest one is applied.
 *
 *     blob  = trie_bytes, 4 bytes, little-endian | trie | strings, each ended by a NUL
 *     trie  = units of 4 bytes: a double array as darts-clone writes it
 *     unit  : bits 0-7 label · 8 has a leaf · 9 the offset is in 256s · 10-30 offset · 31 is a leaf
 *     child of node by byte c = (node ^ offset(node)) ^ c, if its label is c
 *     leaf  of node           =  node ^ offset(node): bits 0-30 are the place of a string
 *
 * qkvi_charsmap_open checks everything that can be reached from the root: no path leaves the array,
 * has a cycle or is longer than QKVI_CHARSMAP_MAX_RULE bytes, and every string is within the blob,
 * ends, and is UTF-8 of at most QKVI_CHARSMAP_MAX_STRING bytes. Tries share branches, so each
 * offset of children is visited once.
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

/** Checks and copies a map. name is for messages; 0 bytes: no rules. FORMAT, LIMIT, MEMORY. */
qkv_status qkvi_charsmap_open(qkvi_charsmap *map, const char *name, const char *bytes,
                              size_t n_bytes, qkv_error *error);
void qkvi_charsmap_free(qkvi_charsmap *map);

/** The rule that matches at the beginning of a text. */
typedef struct qkvi_charsmap_match {
    size_t length; /* of the text; 0: no rule */
    const char *string;
    size_t string_bytes;
} qkvi_charsmap_match;

/** The longest rule that matches. */
qkvi_charsmap_match qkvi_charsmap_longest(const qkvi_charsmap *map, const char *text,
                                          size_t n_bytes);

/** The shortest rule that matches. */
qkvi_charsmap_match qkvi_charsmap_shortest(const qkvi_charsmap *map, const char *text,
                                           size_t n_bytes);

/**
 * A trie, as a double array (Aoe 1989): finds all tokens that a text begins with in one walk.
 *
 *     child of node by byte c = unit at base[node] ^ c, if parent[unit] == node
 *
 * A step takes one load. The trie is built from the intervals of a sorted vocabulary (pieces.h).
 * For the children of a node a bounded number of bases is tried, then a block of 256 units is
 * added, so that building takes linear time whatever a file contains. No token contains byte 0. The
 * root is unit 0.
 */

enum { QKVI_TRIE_MAX_NODES = 1 << 21 };

typedef struct qkvi_trie_unit {
    uint32_t base, parent;
    int32_t id;  /* of the token that ends here, or -1 */
    float score; /* of the token, set by who builds the trie; beside the id for the cache */
} qkvi_trie_unit;

typedef struct qkvi_trie {
    qkvi_trie_unit *units;
    uint32_t n_units; /* a multiple of 256; 0: no tokens */
} qkvi_trie;

/** Is the token with this id put into the trie? */
typedef int qkvi_trie_chooses(const void *user, int32_t id);

/** LIMIT for more than QKVI_TRIE_MAX_NODES nodes; MEMORY. */
qkv_status qkvi_trie_build(qkvi_trie *trie, const qkvi_pieces *pieces, qkvi_trie_chooses *chooses,
                           const void *user);
void qkvi_trie_free(qkvi_trie *trie);

/** The child of a node by a byte, or 0: the root is no child. */
static inline uint32_t qkvi_trie_child(const qkvi_trie_unit *units, uint32_t node, uint8_t byte) {
    const uint32_t child = units[node].base ^ byte;
    return units[child].parent == node && child != 0 && byte != 0 ? child : 0;
}

/** The length of the longest token that bytes begin with; 0 if there is none. */
size_t qkvi_trie_longest(const qkvi_trie *trie, const char *bytes, size_t n_bytes);

enum {
    QKVI_SPM_MAX_BYTES = 16 << 20, /* a model of 250,000 pieces has 5 MB */
    QKVI_SPM_MAX_PIECES = 600000,
    QKVI_SPM_MAX_SURFACE = 64 /* bytes of unk_surface */
};

/** Types of pieces, with the values of the file. */
typedef enum qkvi_spm_type {
    QKVI_SPM_NORMAL = 1,
    QKVI_SPM_UNKNOWN,
    QKVI_SPM_CONTROL,
    QKVI_SPM_USER_DEFINED,
    QKVI_SPM_UNUSED,
    QKVI_SPM_BYTE
} qkvi_spm_type;

/** How a text is normalised before it is segmented. */
typedef struct qkvi_spm_rules {
    qkvi_charsmap map;
    qkvi_trie symbols; /* user-defined: never rewritten */
    int add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces, whitespace_as_suffix;
} qkvi_spm_rules;

typedef struct qkvi_spm {
    qkvi_pieces pieces;
    uint8_t *types;             /* by id */
    float *scores;              /* by id */
    qkvi_trie trie;             /* the pieces that text is segmented into */
    qkvi_spm_rules rules, back; /* back: the denormalizer, applied to decoded text; often empty */
    int rewrites_back;          /* back is not empty */
    float unknown_score;
    int byte_fallback;
    int32_t byte_ids[256];
    int32_t unk, bos, eos, pad;             /* -1: there is none; unk always is */
    char unk_surface[QKVI_SPM_MAX_SURFACE]; /* what the unknown piece is decoded to */
    uint32_t unk_surface_bytes;
} qkvi_spm;

/**
 * Reads a .spm or .model file. name is for messages. On error there is nothing to free.
 * FORMAT, LIMIT, UNSUPPORTED (a model of another kind), MEMORY.
 */
qkv_status qkvi_spm_open(qkvi_spm *spm, const char *name, const char *bytes, size_t n_bytes,
                         qkv_error *error);
void qkvi_spm_free(qkvi_spm *spm);

/** The id of a piece; unk if there is no such piece. */
int32_t qkvi_spm_id(const qkvi_spm *spm, const char *piece, size_t n_bytes);

/** The byte that a piece such as "<0xE2>" stands for, or -1. */
int qkvi_spm_byte(const char *piece, size_t n_bytes);

/* ---- Normalising ---- */

/** A normalised text, and the offset in the raw text of each of its bytes (spm_normalize.c). */
typedef struct qkvi_spm_text {
    char *bytes;
    uint32_t *origin; /* [n + 1] if n > 0; ascending */
    uint32_t n;
    size_t capacity;
} qkvi_spm_text;

/** Normalises bytes into *text, which is all 0 at first and may be reused. MEMORY; LIMIT: 2 GiB. */
qkv_status qkvi_spm_normalize(const qkvi_spm_rules *rules, const char *bytes, uint32_t n_bytes,
                              qkvi_spm_text *text);
void qkvi_spm_text_free(qkvi_spm_text *text);

/* ---- Text to pieces ---- */

/**
 * A piece of a text: its range of the raw text, and its bytes; those of an unknown piece are bytes
 * of the normalised text.
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

/** A decoder. The caller sets spm, and all else to 0; at the end qkvi_spm_decoder_free. */
typedef struct qkvi_spm_decoder {
    const qkvi_spm *spm;
    char *bytes; /* the text so far */
    size_t n_bytes, capacity;
    unsigned char *raw; /* the bytes of a run of byte pieces that has not ended yet */
    size_t n_raw, raw_capacity;
    int prefix_gone; /* the dummy prefix has been removed */
} qkvi_spm_decoder;

/** Appends the text of a piece; bytes that are no piece of the model stay as they are. MEMORY. */
qkv_status qkvi_spm_decode(qkvi_spm_decoder *decoder, const char *piece, size_t n_bytes);
/** To be called after the last piece: completes the text. MEMORY. */
qkv_status qkvi_spm_decode_end(qkvi_spm_decoder *decoder);
void qkvi_spm_decoder_free(qkvi_spm_decoder *decoder);

#endif
