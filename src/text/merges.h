/**
 * Training of byte-pair encoding: the most frequent pair of neighbouring symbols becomes one
 * symbol, again and again (Sennrich et al. 2016, algorithm 1).
 */
#ifndef QKVI_TEXT_MERGES_H
#define QKVI_TEXT_MERGES_H

#include "files/base.h"
#include "text/counter.h"

/**
 * Words as sequences of symbols. A symbol is an index of `symbols`, whose key is its text ("un",
 * "##able"). The caller sets mark, and all else to 0.
 */
typedef struct qkvi_merges {
    const char *mark;     /* before symbols that do not begin a word, "##", or "" */
    qkvi_counter symbols; /* counts are not used */
    int32_t *sequence;    /* the symbols of all words */
    size_t n_sequence, sequence_capacity;
    struct qkvi_merge_word {
        size_t begin;
        uint32_t length;
        int64_t count;
    } * words;
    size_t n_words, words_capacity;
    struct qkvi_merge_queue *queue; /* made by the first call of qkvi_merges_next */
} qkvi_merges;

/** Adds a word of valid UTF-8 as its characters. MEMORY. */
qkv_status qkvi_merges_add(qkvi_merges *merges, const char *word, size_t n_bytes, int64_t count);

/** A new symbol: its text, of which n_left bytes are the left one of the two merged symbols. */
typedef struct qkvi_merge {
    const char *text; /* valid until the next call; NULL: no pair is left */
    size_t n_bytes, n_left;
} qkvi_merge;

/**
 * Merges the pair with the highest count in all words, if that is at least `least` > 0; of equal
 * counts the pair whose symbols are older. Pairs longer than max_bytes are not merged. Call after
 * the last add, always with the same limits. Time is O(log n) and that of the words with the pair.
 * MEMORY.
 */
qkv_status qkvi_merges_next(qkvi_merges *merges, int64_t least, size_t max_bytes,
                            qkvi_merge *merge);

void qkvi_merges_free(qkvi_merges *merges);

/**
 * A queue of pairs of neighbouring symbols by their counts, with the words in which each pair may
 * be: merge_queue.c.
 */

typedef struct qkvi_merge_queue qkvi_merge_queue;

/** NULL without memory. */
qkvi_merge_queue *qkvi_merge_queue_create(void);
void qkvi_merge_queue_free(qkvi_merge_queue *queue);

/** Adds count to that of a pair, for a word that contains it. LIMIT, MEMORY. */
qkv_status qkvi_merge_queue_more(qkvi_merge_queue *queue, int32_t left, int32_t right, size_t word,
                                 int64_t count);
/** Subtracts count from that of a pair. */
void qkvi_merge_queue_fewer(qkvi_merge_queue *queue, int32_t left, int32_t right, int64_t count);
/** To be called after calls of qkvi_merge_queue_more, before qkvi_merge_queue_best. MEMORY. */
qkv_status qkvi_merge_queue_sort(qkvi_merge_queue *queue);

/**
 * Removes the pair with the highest count (its count is then 0), of equal ones that with the lowest
 * left symbol, then right. Returns 0 if no count is at least `least`.
 */
int qkvi_merge_queue_best(qkvi_merge_queue *queue, int64_t least, int32_t pair[2]);
/**
 * After qkvi_merge_queue_best: gives the words that contain that pair, or did once; a word may come
 * several times. Returns 0 when there are no more.
 */
int qkvi_merge_queue_word(qkvi_merge_queue *queue, size_t *word);

#endif
