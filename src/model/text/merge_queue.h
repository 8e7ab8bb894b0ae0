/**
 * Pairs of neighbouring symbols by their counts: which is the most frequent, and in which words it
 * may stand.
 */
#ifndef QKVI_TEXT_MERGE_QUEUE_H
#define QKVI_TEXT_MERGE_QUEUE_H

#include "model/base.h"

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
