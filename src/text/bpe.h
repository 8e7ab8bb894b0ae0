/**
 * Byte-pair encoding (Sennrich et al. 2016), in two kinds of tokenizers:
 *
 *     byte-level  the symbols of a word are its bytes (Radford et al. 2019, section 2.2): GPT-2,
 *                 RoBERTa, BART, Llama 3, Qwen, SmolLM, ModernBERT
 *     metaspace   the symbols are characters, with U+2581 for a space; a character without a token
 *                 becomes its bytes (SentencePiece, Kudo and Richardson 2018): Llama 2, Mistral,
 *                 Gemma
 */
#ifndef QKVI_TEXT_BPE_H
#define QKVI_TEXT_BPE_H

#include "text/metaspace.h"
#include "text/pieces.h"
#include "text/tokenizer.h"

/**
 * The merges: which two neighbouring tokens become which one, and in which order.
 *
 * They are sorted by their two ids, and found by binary search among those with the same left id.
 * There is no hash table, so a hostile file cannot cause collisions.
 */

/** A merge; lower ranks are merged first. */
typedef struct qkvi_rank {
    int32_t left, right;
    uint32_t rank;
    int32_t id;
} qkvi_rank;

typedef struct qkvi_ranks {
    qkvi_rank *list;
    size_t n, capacity;
    uint32_t *first; /* [n_ids + 1]: where merges with a left id begin in the list */
    int32_t n_ids;
    uint32_t n_ranks; /* how many merges were added */
} qkvi_ranks;

enum { QKVI_RANKS_MAX = 1 << 21 };

/** Adds a merge with the next rank. MEMORY; LIMIT above QKVI_RANKS_MAX. */
qkv_status qkvi_ranks_add(qkvi_ranks *ranks, int32_t left, int32_t right, int32_t id);
/** Sorts the merges; of equal pairs the last one counts. All ids are less than n_ids. Call once. */
qkv_status qkvi_ranks_seal(qkvi_ranks *ranks, int32_t n_ids);
/** The merge of two tokens, or NULL. */
const qkvi_rank *qkvi_ranks_find(const qkvi_ranks *ranks, int32_t left, int32_t right);
void qkvi_ranks_free(qkvi_ranks *ranks);

/** How a stretch is cut into parts; byte-level BPE may cut these into words. */
typedef enum qkvi_bpe_cut {
    QKVI_CUT_NONE,   /* the stretch is one part */
    QKVI_CUT_DIGIT,  /* each digit is a part, and so is what is between digits */
    QKVI_CUT_DIGITS, /* the same with each run of digits */
    QKVI_CUT_MODERN, /* qkvi_modern_word */
    QKVI_CUT_GPT2,   /* qkvi_gpt2_word */
    QKVI_CUT_BLOOM,  /* qkvi_bloom_word */
    QKVI_CUT_CLIP    /* qkvi_clip_word; white space is dropped */
} qkvi_bpe_cut;

/** The model of a tokenizer of either kind. */
typedef struct qkvi_bpe {
    qkvi_ranks ranks;
    int32_t byte_ids[256]; /* the token of a byte, -1 if the vocabulary has none */
    int32_t unk;           /* for a byte without a token; -1: such bytes are dropped */
    int fuse_unk;          /* several such bytes in a row are one unk */
    int ignore_merges;     /* a word that is in the vocabulary becomes that token without merges */
    int byte_fallback;     /* metaspace: a character without a token becomes tokens of its bytes */
    int add_prefix_space;  /* a space is put before each part that does not begin with one */
    qkvi_bpe_cut cut;
    int max_digits; /* of a word, with QKVI_CUT_MODERN */
    int gpt2_words; /* a part is cut into GPT-2's words; 0: it is one word */
    /* The normalizer: lower case if `lowers`, NFC if composes, lower case if lowers_composed. */
    int lowers, composes;
    int lowers_composed;   /* CLIP; then `lowers` is not set */
    int ends_words;        /* the last byte of a word has a token of its own, BYTE</w> (CLIP) */
    int32_t last_ids[256]; /* these tokens */
    qkvi_metaspace metaspace;
} qkvi_bpe;

extern const qkvi_tokenizer_kind qkvi_bpe_kind, qkvi_metaspace_kind;

/**
 * A byte-level tokenizer without tokens and merges, with GPT-2's words and no other switch. NULL
 * without memory.
 */
qkv_tokenizer *qkvi_bpe_new(void);
/** The same of the kind metaspace, where a stretch is one word. */
qkv_tokenizer *qkvi_metaspace_new(void);

/** Frees a model of either kind. */
void qkvi_bpe_free_model(void *model);

/** The model of a tokenizer, which must be of one of these kinds. */
qkvi_bpe *qkvi_bpe_of(const qkv_tokenizer *tokenizer);

/**
 * Adds the merge of two tokens with the next rank. FORMAT if they or their joined string are not in
 * the vocabulary, which must be sealed. file and place are for messages. LIMIT; MEMORY.
 */
qkv_status qkvi_bpe_add_merge(qkv_tokenizer *tokenizer, const char *file, const char *place,
                              const char *const parts[2], const size_t n[2], qkv_error *error);

/** To be called after the last merge. MEMORY. */
qkv_status qkvi_bpe_end_merges(qkv_tokenizer *tokenizer, const char *file, qkv_error *error);

/**
 * Checks byte_fallback against a sealed vocabulary. Without any token of a byte it has no effect.
 * If only some bytes have tokens it is UNSUPPORTED: the reference then changes the order of bytes
 * and unknown characters.
 */
qkv_status qkvi_metaspace_check_bytes(const qkv_tokenizer *tokenizer, const char *file,
                                      qkv_error *error);

/* ---- Encoding, in bpe_encode.c: functions of qkvi_tokenizer_kind ----------------------------- */

void *qkvi_bpe_start(const qkv_tokenizer *tokenizer, qkvi_tokens *list);
qkv_status qkvi_bpe_encode(void *user, const char *text, uint32_t begin, uint32_t end);
/** Lower case if the model `lowers`, then NFC if it `composes`. */
qkv_status qkvi_bpe_normalize(void *user, const char *text, uint32_t begin, uint32_t end,
                              qkvi_normal_text *normal);
qkv_status qkvi_bpe_encode_normal(void *user, const qkvi_normal_text *normal, size_t first,
                                  size_t last);
int qkvi_bpe_is_normal(const qkv_tokenizer *tokenizer, const char *text, uint32_t begin,
                       uint32_t end);
void qkvi_bpe_finish(void *user);

/**
 * Converts the ranges of the tokens from index `token` on from the normalised text to the raw text.
 * They are in order and do not overlap. first: the index of a character at or before the first.
 */
void qkvi_bpe_map(const qkvi_normal_text *normal, size_t first, qkvi_tokens *list, int64_t token);

/* ---- Merging, in bpe_merge.c ----------------------------------------------------------------- */

/** A token of a word, and the range of bytes of the word that it stands for. */
typedef struct qkvi_bpe_symbol {
    int32_t id;
    uint32_t begin, end;
    uint32_t previous, next; /* indices of symbols, or QKVI_BPE_NONE */
} qkvi_bpe_symbol;

#define QKVI_BPE_NONE UINT32_MAX

/**
 * Scratch of merging, all 0 at first, to be reused. Grows to 36 bytes for each byte of the longest
 * word.
 */
typedef struct qkvi_bpe_work {
    qkvi_bpe_symbol *symbols;
    uint64_t *heap; /* of rank << 32 | index of the left symbol */
    size_t n_symbols, n_heap, capacity;
} qkvi_bpe_work;

/**
 * Makes the tokens of a word, work->symbols[0 … n_symbols), in order. The merge of the lowest rank
 * comes first, of equal ones the leftmost. O(n log n) for n bytes. MEMORY.
 */
qkv_status qkvi_bpe_merge(const qkvi_bpe *model, const char *word, size_t n_bytes,
                          qkvi_bpe_work *work);
/** Drops all symbols, and makes room for n. MEMORY. */
qkv_status qkvi_bpe_work_begin(qkvi_bpe_work *work, size_t n);
/** Appends a symbol; there must be room. */
void qkvi_bpe_work_put(qkvi_bpe_work *work, int32_t id, uint32_t begin, uint32_t end);
/** Merges the symbols that were put. */
void qkvi_bpe_work_merge(const qkvi_bpe *model, qkvi_bpe_work *work);
void qkvi_bpe_work_free(qkvi_bpe_work *work);

#endif
