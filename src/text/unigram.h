/**
 * Unigram (Kudo 2018) as a kind of tokenizer: of all ways to write a word with pieces, the one with
 * the largest sum of scores. XLM-RoBERTa, multilingual sentence models.
 *
 *     stretch → steps of the normalizer → words at white space → U+2581 → the best path
 *
 * SentencePiece's own files are spm.h's. This one has sums in double and no way back, and it takes
 * a rule of the map for a whole grapheme: ids are those of PyPI tokenizers. Reference:
 * models/unigram/model.rs (encode_optimized), normalizers/{precompiled,strip,replace}.rs,
 * pre_tokenizers/{whitespace,metaspace}.rs.
 */
#ifndef QKVI_TEXT_UNIGRAM_H
#define QKVI_TEXT_UNIGRAM_H

#include "text/metaspace.h"
#include "text/spm.h"
#include "text/tokenizer.h"

/** A step of the normalizer. */
typedef enum qkvi_unigram_step_kind {
    QKVI_STEP_MAP,   /* Precompiled: rules of the map */
    QKVI_STEP_STRIP, /* white space at the ends goes */
    QKVI_STEP_SPACES /* each run of two or more spaces becomes one character */
} qkvi_unigram_step_kind;

typedef struct qkvi_unigram_step {
    qkvi_unigram_step_kind kind;
    int left, right; /* QKVI_STEP_STRIP: at which ends */
    int32_t code;    /* QKVI_STEP_SPACES: of the character */
} qkvi_unigram_step;

enum { QKVI_UNIGRAM_STEPS = 8 };

/** The model of such a tokenizer. */
typedef struct qkvi_unigram {
    qkvi_trie trie;
    double *scores; /* by id */
    size_t n_scores;
    double unknown; /* of a character that is no piece: the smallest score - 10 */
    int32_t unk;
    /* what is unknown is the tokens of its bytes, if the vocabulary has all of them */
    int byte_fallback;
    int32_t byte_ids[256]; /* -1: there is none */
    qkvi_charsmap map;     /* of QKVI_STEP_MAP */
    qkvi_unigram_step steps[QKVI_UNIGRAM_STEPS];
    int n_steps;
    int splits_white; /* WhitespaceSplit: words end at white space, which goes */
    qkvi_metaspace metaspace;
} qkvi_unigram;

extern const qkvi_tokenizer_kind qkvi_unigram_kind;

/** No tokens, no steps. NULL without memory. */
qkv_tokenizer *qkvi_unigram_new(void);

/** The model of a tokenizer, which must be of this kind. */
qkvi_unigram *qkvi_unigram_of(const qkv_tokenizer *tokenizer);

/** The score that a number of JSON stands for: the nearest double, as Python has it. */
double qkvi_unigram_score(const char *decimal);

/**
 * The same as the crate serde_json has it, which divides the digits, rounded, by a power of ten,
 * rounded. So do files that are read as they are, and sums of scores tie or not.
 */
double qkvi_unigram_score_quick(const char *decimal);

/** The steps of the normalizer over text[begin … end); spare is scratch. MEMORY. */
qkv_status qkvi_unigram_normalize(const qkvi_unigram *model, const char *text, uint32_t begin,
                                  uint32_t end, qkvi_normal_text *normal, qkvi_normal_text *spare);

#endif
