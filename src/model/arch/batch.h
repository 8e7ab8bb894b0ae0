/*
 * A batch in the order in which it is computed: sequences sorted by length, shortest first, equal
 * ones in the order of the batch; their tokens one after another, one row each. Where there are two
 * stacks, each sequence is a pair, and pairs are sorted by the length in the first stack, then by
 * that in the second.
 */
#ifndef QKVI_ARCH_BATCH_H
#define QKVI_ARCH_BATCH_H

#include "core/arena.h"
#include "model/arch/stack.h"
#include "model/base.h"

/* What goes into one stack: sequences one after another. */
typedef struct qkvi_sequences {
    int64_t n;
    const int64_t *lengths; /* [n], 1 … max_len */
    const int32_t *ids;     /* [sum of lengths] */
    const uint8_t *types;   /* [sum of lengths], for models with segments; NULL: all 0 */
    const uint8_t *seen;    /* [sum of lengths] of qkvi_mha_change; NULL */
} qkvi_sequences;

typedef struct qkvi_batch_rows {
    int64_t n_sequences, n_rows;
    qkvi_group *groups, *cross_groups; /* of equal length; of equal length and equal memory */
    int64_t n_groups, n_cross_groups;
    int32_t *ids, *types, *places; /* [n_rows] */
    uint8_t *seen;                 /* [n_rows]; NULL */
    int32_t *row_of_token;         /* [n_rows]: where a token of the batch went */
    int64_t *first_row;            /* [n_sequences]: the row of a sequence's first token */
    const int64_t *lengths;        /* [n_sequences], the caller's */
} qkvi_batch_rows;

/* Every length, id and type of sequences, and how many tokens they have. SHAPE, ARGUMENT, LIMIT. */
qkv_status qkvi_sequences_check_lengths(const qkvi_stack *stack, const qkvi_sequences *sequences,
                                        int64_t *n_rows, qkv_error *error);
qkv_status qkvi_sequences_check(const qkvi_stack *stack, const qkvi_sequences *sequences,
                                int64_t *n_rows, qkv_error *error);

/* Scratch of the sort. */
typedef struct qkvi_order {
    int64_t *sequences; /* [n], in the order of the rows at last */
    int64_t *other;     /* [n] */
    int64_t *starts;    /* [the larger max_len + 2] */
} qkvi_order;

void qkvi_order_cut(int64_t n, int64_t max_len, qkvi_cutter *cutter, qkvi_order *order);
/* Of n sequences, by lengths, which are at most max_len; then by `then`, nullable, and their place. */
void qkvi_order_make(int64_t n, const int64_t *lengths, const int64_t *then, int64_t max_len,
                     qkvi_order *order);

void qkvi_rows_cut(const qkvi_sequences *sequences, int64_t n_rows, bool crosses,
                   qkvi_cutter *cutter, qkvi_batch_rows *rows);
/* Fills rows for sequences that have been checked. memory: the rows of the stack before; NULL. */
void qkvi_rows_fill(const qkvi_stack *stack, const qkvi_sequences *sequences,
                    const qkvi_order *order, const qkvi_batch_rows *memory, qkvi_batch_rows *rows);

#endif
