/**
 * Byte-pair encoding (Sennrich et al. 2016). Two kinds of tokenizers:
 *
 *     byte-level  a word's symbols are its bytes (Radford et al. 2019, section 2.2): GPT-2,
 *                 RoBERTa, BART, Llama 3, Qwen, SmolLM, ModernBERT
 *     metaspace   its symbols are characters, a space is U+2581, and a character without a token is
 *                 its bytes (SentencePiece, Kudo and Richardson 2018): Llama 2, Mistral, Gemma
 */
#ifndef QKVI_TEXT_BPE_H
#define QKVI_TEXT_BPE_H

#include "text/metaspace.h"
#include "text/pieces.h"
#include "text/tokenizer.h"

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

/** How a stretch is cut into parts; byte-level BPE may cut these into words. */
typedef enum qkvi_bpe_cut {
    QKVI_CUT_NONE,   /* the stretch is one part */
    QKVI_CUT_DIGIT,  /* each number is a part, and what is between them */
    QKVI_CUT_DIGITS, /* the same, but of each run of numbers */
    QKVI_CUT_MODERN, /* qkvi_modern_word */
    QKVI_CUT_GPT2    /* qkvi_gpt2_word */
} qkvi_bpe_cut;

/** The model of a tokenizer of either kind. */
typedef struct qkvi_bpe {
    qkvi_ranks ranks;
    int32_t byte_ids[256]; /* the token of a byte, -1 if the vocabulary has none */
    int32_t unk;           /* of a byte without token; -1: such bytes are dropped */
    int fuse_unk;          /* several such bytes in a row are one unk */
    int ignore_merges;     /* a word that is a token is that token */
    int byte_fallback;     /* metaspace: a character without a token is the tokens of its bytes */
    int add_prefix_space;  /* a space before each part that does not begin with one */
    qkvi_bpe_cut cut;
    int max_digits; /* of QKVI_CUT_MODERN */
    int gpt2_words; /* a part is cut into words; 0: it is one */
    int lowers;     /* the normalizer: lower case … */
    int composes;   /* … then NFC */
    qkvi_metaspace metaspace;
} qkvi_bpe;

extern const qkvi_tokenizer_kind qkvi_bpe_kind, qkvi_metaspace_kind;

/**
 * No tokens, no merges; words are those of GPT-2, and no other switch is on. NULL without memory.
 */
qkv_tokenizer *qkvi_bpe_new(void);
/** The same of the other kind, where a stretch is one word. */
qkv_tokenizer *qkvi_metaspace_new(void);

/** Of both kinds: frees a model. */
void qkvi_bpe_free_model(void *model);

/** The model of a tokenizer, which must be of one of these kinds. */
qkvi_bpe *qkvi_bpe_of(const qkv_tokenizer *tokenizer);

/**
 * Adds the merge of two tokens with the next rank. They and their joined string are in the
 * vocabulary, which is sealed, or it is FORMAT. file and place are for messages. LIMIT; MEMORY.
 */
qkv_status qkvi_bpe_add_merge(qkv_tokenizer *tokenizer, const char *file, const char *place,
                              const char *const parts[2], const size_t n[2], qkv_error *error);

/** After the last merge; MEMORY. */
qkv_status qkvi_bpe_end_merges(qkv_tokenizer *tokenizer, const char *file, qkv_error *error);

/**
 * byte_fallback of a sealed vocabulary: without any token of a byte it does nothing. With some but
 * not all the reference puts bytes before unknown characters that stood before them: UNSUPPORTED.
 */
qkv_status qkvi_metaspace_check_bytes(const qkv_tokenizer *tokenizer, const char *file,
                                      qkv_error *error);

/* ---- Encoding, in bpe_encode.c: as the kind's start, encode and finish ----------------------- */

void *qkvi_bpe_start(const qkv_tokenizer *tokenizer, qkvi_tokens *list);
qkv_status qkvi_bpe_encode(void *user, const char *text, uint32_t begin, uint32_t end);
/** Lower case, then NFC, for tokenizers that normalize. */
qkv_status qkvi_bpe_normalize(void *user, const char *text, uint32_t begin, uint32_t end,
                              qkvi_normal_text *normal);
qkv_status qkvi_bpe_encode_normal(void *user, const qkvi_normal_text *normal, size_t first,
                                  size_t last);
int qkvi_bpe_is_normal(const qkv_tokenizer *tokenizer, const char *text, uint32_t begin,
                       uint32_t end);
void qkvi_bpe_finish(void *user);

/**
 * The raw places of the tokens from a number on, whose places are those of the normalised text; in
 * order, without overlap. first: a character at or before the first of them.
 */
void qkvi_bpe_map(const qkvi_normal_text *normal, size_t first, qkvi_tokens *list, int64_t token);

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
/** Room for n symbols, of which none is there. MEMORY. */
qkv_status qkvi_bpe_work_begin(qkvi_bpe_work *work, size_t n);
/** Appends a symbol; there is room. */
void qkvi_bpe_work_put(qkvi_bpe_work *work, int32_t id, uint32_t begin, uint32_t end);
/** Merges the symbols that were put. */
void qkvi_bpe_work_merge(const qkvi_bpe *model, qkvi_bpe_work *work);
void qkvi_bpe_work_free(qkvi_bpe_work *work);

#endif
