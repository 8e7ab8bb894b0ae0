/**
 * BERT's normalisation and split into words: raw UTF-8 in, a callback for each normalised word.
 *
 *     clean → spaces around ideographs → NFD, drop accents → lower case
 *           → split at white space → isolate punctuation
 *
 * The reference runs each step over the whole text. Here all steps run over one code point at a
 * time, with the same result: only canonical ordering depends on several code points, and never
 * crosses one of combining class 0.
 */
#ifndef QKVI_TEXT_NORMALIZE_H
#define QKVI_TEXT_NORMALIZE_H

#include "files/base.h"

/** The switches of a BERT normaliser. All 0: only the split remains. */
typedef struct qkvi_bert_rules {
    int clean_text;    /* drop control, format and private-use characters */
    int split_cjk;     /* each ideograph is a word */
    int strip_accents; /* NFD, then drop category Mn */
    int lowercase;
    int lower_first; /* lower case as the very first step */
} qkvi_bert_rules;

/**
 * A code point of a word: its offset in the word's bytes, and the range of the raw text that it
 * comes from.
 */
typedef struct qkvi_word_char {
    uint32_t offset, begin, end;
} qkvi_word_char;

/**
 * A normalised word, and its range in the raw text. A word of more than max_chars has n_chars =
 * max_chars + 1 and is cut there, but its range is that of the whole word.
 */
typedef struct qkvi_word {
    const char *bytes;
    uint32_t n_bytes, n_chars;
    const qkvi_word_char *chars;
    uint32_t begin, end;
} qkvi_word;

/** A stretch of text after normalisation, with its spaces; all 0 at first. */
typedef struct qkvi_normal_text {
    qkvi_growing bytes;
    qkvi_word_char *chars;
    size_t n_chars, capacity;
} qkvi_normal_text;

void qkvi_normal_text_free(qkvi_normal_text *normal);
/** Appends a character. MEMORY. */
qkv_status qkvi_normal_text_put(qkvi_normal_text *normal, int32_t code, uint32_t begin,
                                uint32_t end);

/** Receives each word; anything but QKV_OK ends the walk and is returned. */
typedef qkv_status qkvi_word_fn(void *user, const qkvi_word *word);

/** The buffers of qkvi_normalize, kept between calls so that it rarely allocates. */
typedef struct qkvi_normalizer qkvi_normalizer;

/** For words of up to max_chars code points; NULL without memory. */
qkvi_normalizer *qkvi_normalizer_create(const qkvi_bert_rules *rules, uint32_t max_chars,
                                        qkvi_word_fn *emit, void *user);
void qkvi_normalizer_free(qkvi_normalizer *normalizer);

/**
 * Walks text[begin … end), which must be valid UTF-8; ranges of words count from text. Time is
 * linear, memory is that of the longest run of combining marks. Returns QKV_OK, QKV_ERR_MEMORY or
 * what the callback returned.
 */
qkv_status qkvi_normalize(qkvi_normalizer *normalizer, const char *text, uint32_t begin,
                          uint32_t end);

/**
 * The same in two steps: the normalised text, which replaces that in normal, and then the words in
 * its characters [first … last).
 */
qkv_status qkvi_normalize_text(qkvi_normalizer *normalizer, const char *text, uint32_t begin,
                               uint32_t end, qkvi_normal_text *normal);
qkv_status qkvi_normalize_words(qkvi_normalizer *normalizer, const qkvi_normal_text *normal,
                                size_t first, size_t last);

#endif
