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

#include "model/text/charsmap.h"
#include "model/text/trie.h"

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
    uint32_t n, capacity;
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
