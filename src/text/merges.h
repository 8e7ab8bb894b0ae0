/**
 * Pieces by merging: the pair of neighbouring symbols seen most often becomes one symbol, again and
 * again (Sennrich et al. 2016, algorithm 1).
 */
#ifndef QKVI_TEXT_MERGES_H
#define QKVI_TEXT_MERGES_H

#include "files/base.h"
#include "text/counter.h"

/**
 * Words as sequences of symbols; a symbol is an entry of `symbols`, its key is its text ("un",
 * "##able"). Zeros but for mark to begin with.
 */
typedef struct qkvi_merges {
    const char *mark;     /* before symbols inside a word, "##", or "" */
    qkvi_counter symbols; /* counts are not used */
    int32_t *sequence;    /* all words' symbols */
    size_t n_sequence, sequence_capacity;
    struct qkvi_merge_word {
        size_t begin;
        uint32_t length;
        int64_t count;
    } * words;
    size_t n_words, words_capacity;
    struct qkvi_merge_queue *queue; /* of pairs, made by the first merge */
} qkvi_merges;

/** Adds a word of valid UTF-8 as its characters. MEMORY. */
qkv_status qkvi_merges_add(qkvi_merges *merges, const char *word, size_t n_bytes, int64_t count);

/** A new symbol: its text, of which the left of the two that became it has n_left bytes. */
typedef struct qkvi_merge {
    const char *text; /* valid until the next call; NULL: no pair is left */
    size_t n_bytes, n_left;
} qkvi_merge;

/**
 * Merges the pair with the highest count everywhere, if that is at least `least` > 0; of equal ones
 * the pair whose symbols are older. Pairs that would be longer than max_bytes stay two. Call after
 * the last add, always with the same limits. O(log n) and the words that hold the pair. MEMORY.
 */
qkv_status qkvi_merges_next(qkvi_merges *merges, int64_t least, size_t max_bytes,
                            qkvi_merge *merge);

void qkvi_merges_free(qkvi_merges *merges);

/**
 * Pairs of neighbouring symbols by their counts: which is the most frequent, and in which words it
 * may stand.
 */

typedef struct qkvi_merge_queue qkvi_merge_queue;

/** NULL without memory. */
qkvi_merge_queue *qkvi_merge_queue_create(void);
void qkvi_merge_queue_free(qkvi_merge_queue *queue);

/** The pair was seen in a word, count times. LIMIT, MEMORY. */
qkv_status qkvi_merge_queue_more(qkvi_merge_queue *queue, int32_t left, int32_t right, size_t word,
                                 int64_t count);
/** A pair that was seen was seen count times less. */
void qkvi_merge_queue_fewer(qkvi_merge_queue *queue, int32_t left, int32_t right, int64_t count);
/** After calls of more, before best. MEMORY. */
qkv_status qkvi_merge_queue_sort(qkvi_merge_queue *queue);

/**
 * The pair with the highest count, of equal ones that with the lowest left symbol, then right; 0 if
 * no count is at least least. It is taken out: its count is 0 from now on.
 */
int qkvi_merge_queue_best(qkvi_merge_queue *queue, int64_t least, int32_t pair[2]);
/** After best: a word that held the pair at some time, each at least once; 0: no more. */
int qkvi_merge_queue_word(qkvi_merge_queue *queue, size_t *word);

#endif
