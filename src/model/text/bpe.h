/**
 * Byte-level byte-pair encoding (Sennrich et al. 2016; Radford et al. 2019, section 2.2): GPT-2,
 * RoBERTa, BART. A kind of tokenizer.
 */
#ifndef QKVI_TEXT_BPE_H
#define QKVI_TEXT_BPE_H

#include "model/text/pieces.h"
#include "model/text/tokenizer.h"

/**
 * The merges of byte-pair encoding: which two neighbouring tokens become which one, and in which
 * order.
 *
 * Sorted by their two ids and found by binary search among those with the same left one. No hash:
 * no collisions that hostile files could aim at.
 */

/** A merge; rank: lower ones are done first. */
typedef struct qkvi_rank {
    int32_t left, right;
    uint32_t rank;
    int32_t id;
} qkvi_rank;

typedef struct qkvi_ranks {
    qkvi_rank *list;
    size_t n, capacity;
    uint32_t *first; /* by left id: its part of the list; n_ids + 1 */
    int32_t n_ids;
    uint32_t n_ranks; /* as many as were added */
} qkvi_ranks;

enum { QKVI_RANKS_MAX = 1 << 21 };

/** Adds a merge with the next rank. MEMORY; LIMIT above QKVI_RANKS_MAX. */
qkv_status qkvi_ranks_add(qkvi_ranks *ranks, int32_t left, int32_t right, int32_t id);
/** Sorts; of equal pairs the last one counts. Ids are below n_ids. Call once after the last add. */
qkv_status qkvi_ranks_seal(qkvi_ranks *ranks, int32_t n_ids);
/** The merge of two tokens, or NULL. */
const qkvi_rank *qkvi_ranks_find(const qkvi_ranks *ranks, int32_t left, int32_t right);
void qkvi_ranks_free(qkvi_ranks *ranks);

/** The model of a tokenizer of this kind. */
typedef struct qkvi_bpe {
    qkvi_ranks ranks;
    int32_t byte_ids[256]; /* the token of a byte, -1 if the vocabulary has none */
    int32_t unk;           /* of a byte without token; -1: such bytes are dropped */
    int fuse_unk;          /* several such bytes in a row are one unk */
    int ignore_merges;     /* a word that is a token is that token */
    int add_prefix_space;  /* a space before each stretch that does not begin with one */
} qkvi_bpe;

extern const qkvi_tokenizer_kind qkvi_bpe_kind;

/** No tokens, no merges, no switch on. NULL without memory. */
qkv_tokenizer *qkvi_bpe_new(void);

/** The model of a tokenizer, which must be of this kind. */
qkvi_bpe *qkvi_bpe_of(const qkv_tokenizer *tokenizer);

/**
 * Adds the merge of two tokens with the next rank. They and their joined string are in the
 * vocabulary, which is sealed, or it is FORMAT. file and place are for messages. LIMIT; MEMORY.
 */
qkv_status qkvi_bpe_add_merge(qkv_tokenizer *tokenizer, const char *file, const char *place,
                              const char *const parts[2], const size_t n[2], qkv_error *error);

/** After the last merge; MEMORY. */
qkv_status qkvi_bpe_end_merges(qkv_tokenizer *tokenizer, const char *file, qkv_error *error);

/* ---- Encoding, in bpe_encode.c: as the kind's start, encode and finish ----------------------- */

void *qkvi_bpe_start(const qkv_tokenizer *tokenizer, qkvi_tokens *list);
qkv_status qkvi_bpe_encode(void *user, const char *text, uint32_t begin, uint32_t end);
/** Lower case, for tokenizers that normalize. */
qkv_status qkvi_bpe_normalize(void *user, const char *text, uint32_t begin, uint32_t end,
                              qkvi_normal_text *normal);
qkv_status qkvi_bpe_encode_normal(void *user, const qkvi_normal_text *normal, size_t first,
                                  size_t last);
void qkvi_bpe_finish(void *user);

/* ---- Merging, in bpe_merge.c ----------------------------------------------------------------- */

/** A token of a word and the bytes of the word that it stands for. */
typedef struct qkvi_bpe_symbol {
    int32_t id;
    uint32_t begin, end;
    uint32_t previous, next; /* symbols; QKVI_BPE_NONE */
} qkvi_bpe_symbol;

#define QKVI_BPE_NONE UINT32_MAX

/** What merging needs; zeros to begin with, and to be reused. Grows to 36 bytes for each byte of
 * the longest word. */
typedef struct qkvi_bpe_work {
    qkvi_bpe_symbol *symbols;
    uint64_t *heap; /* rank << 32 | the left symbol */
    size_t n_symbols, n_heap, capacity;
} qkvi_bpe_work;

/**
 * The tokens of a word: symbols[0 … n_symbols), in order. Merges are done one at a time, that of
 * the lowest rank first, of equal ones the leftmost. O(n log n) for n bytes. MEMORY.
 */
qkv_status qkvi_bpe_merge(const qkvi_bpe *model, const char *word, size_t n_bytes,
                          qkvi_bpe_work *work);
void qkvi_bpe_work_free(qkvi_bpe_work *work);

#endif
