/**
 * Pieces by merging: the pair of neighbouring symbols seen most often becomes one symbol, again and
 * again.
 */
#ifndef QKVI_TEXT_MERGES_H
#define QKVI_TEXT_MERGES_H

#include "model/text/counter.h"

/**
 * Words as sequences of symbols; a symbol is an entry of `symbols`, its key is its text ("un",
 * "##able").
 */
typedef struct qkvi_merges {
    qkvi_counter symbols; /* counts are not used */
    int32_t *sequence;    /* all words' symbols */
    size_t n_sequence, sequence_capacity;
    struct qkvi_merge_word {
        size_t begin;
        uint32_t length;
        int64_t count;
    } * words;
    size_t n_words, words_capacity;
    qkvi_counter pairs; /* key: two symbols as int32_t[2] */
    int counted;
} qkvi_merges;

/** Adds a word of valid UTF-8 as its characters. MEMORY. */
qkv_status qkvi_merges_add(qkvi_merges *merges, const char *word, size_t n_bytes, int64_t count);

/**
 * Merges the pair with the highest count everywhere; of equal ones the pair whose symbols are
 * older. *symbol is the text of the result, valid until the next call, NULL when no pair is left.
 * Call after the last add.
 */
qkv_status qkvi_merges_next(qkvi_merges *merges, const char **symbol, size_t *n_bytes);

void qkvi_merges_free(qkvi_merges *merges);

#endif
