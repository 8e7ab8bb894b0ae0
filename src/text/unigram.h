/**
 * Unigram (Kudo 2018) as a kind of tokenizer: a word becomes the sequence of pieces with the
 * largest sum of scores. XLM-RoBERTa, multilingual sentence models.
 *
 *     stretch → steps of the normalizer → words at white space → U+2581 → the best path
 *
 * Here ids are those of PyPI tokenizers, for a tokenizer.json; spm.h is for SentencePiece's own
 * files. The differences: sums are in double, there is no denormalizer, and a rule of the map
 * applies to a whole grapheme. Reference: models/unigram/model.rs (encode_optimized),
 * normalizers/{precompiled,strip,replace}.rs, pre_tokenizers/{whitespace,metaspace}.rs.
 */
#ifndef QKVI_TEXT_UNIGRAM_H
#define QKVI_TEXT_UNIGRAM_H

#include "text/metaspace.h"
#include "text/spm.h"
#include "text/tokenizer.h"

/** A step of the normalizer. */
typedef enum qkvi_unigram_step_kind {
    QKVI_STEP_MAP,   /* Precompiled: rules of the map */
    QKVI_STEP_STRIP, /* white space at the ends is removed */
    QKVI_STEP_SPACES /* each run of two or more spaces becomes one character */
} qkvi_unigram_step_kind;

typedef struct qkvi_unigram_step {
    qkvi_unigram_step_kind kind;
    int left, right; /* the ends that QKVI_STEP_STRIP strips */
    int32_t code;    /* the character of QKVI_STEP_SPACES */
} qkvi_unigram_step;

enum { QKVI_UNIGRAM_STEPS = 8 };

/** The model of such a tokenizer. */
typedef struct qkvi_unigram {
    qkvi_trie trie;
    double *scores; /* by id */
    size_t n_scores;
    double unknown; /* the score of a character that is no piece: the smallest score - 10 */
    int32_t unk;
    int byte_fallback;     /* unknown text becomes tokens of its bytes, if all bytes have tokens */
    int32_t byte_ids[256]; /* -1: there is none */
    qkvi_charsmap map;     /* of QKVI_STEP_MAP */
    qkvi_unigram_step steps[QKVI_UNIGRAM_STEPS];
    int n_steps;
    int splits_white; /* WhitespaceSplit: words end at white space, which is removed */
    qkvi_metaspace metaspace;
} qkvi_unigram;

extern const qkvi_tokenizer_kind qkvi_unigram_kind;

/** Makes a tokenizer without tokens and steps. NULL without memory. */
qkv_tokenizer *qkvi_unigram_new(void);

/** The model of a tokenizer, which must be of this kind. */
qkvi_unigram *qkvi_unigram_of(const qkv_tokenizer *tokenizer);

/** The score of a decimal number: the nearest double, as in Python. */
double qkvi_unigram_score(const char *decimal);

/**
 * The score of a decimal number as the crate serde_json computes it: the rounded digits, divided by
 * a rounded power of ten. It is used for files that are taken as they are, since it decides whether
 * sums of scores are equal.
 */
double qkvi_unigram_score_quick(const char *decimal);

/** Applies the steps of the normalizer to text[begin … end); spare is scratch. MEMORY. */
qkv_status qkvi_unigram_normalize(const qkvi_unigram *model, const char *text, uint32_t begin,
                                  uint32_t end, qkvi_normal_text *normal, qkvi_normal_text *spare);

#endif
