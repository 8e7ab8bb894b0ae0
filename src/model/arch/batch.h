/*
 * A batch in the order in which it is computed: sequences sorted by length, shortest first, equal
 * ones in the order of the batch; their tokens one after another, one row each.
 */
#ifndef QKVI_ARCH_BATCH_H
#define QKVI_ARCH_BATCH_H

#include "core/arena.h"
#include "model/arch/bert.h"

typedef struct qkvi_batch_rows {
    int64_t n_sequences, n_rows;
    qkvi_group *groups;
    int64_t n_groups;
    int32_t *ids, *types, *places; /* [n_rows] */
    uint8_t *seen;                 /* [n_rows] of batch->change; NULL */
    int32_t *row_of_token;         /* [n_rows]: where a token of the batch went */
    int64_t *first_row;            /* [n_sequences]: the row of a sequence's first token */
    int64_t *starts;               /* [max_len + 2]: scratch of the sort */
} qkvi_batch_rows;

/* n_sequences and lengths alone: how many tokens there must be. */
qkv_status qkvi_batch_check_lengths(const qkvi_bert_params *params, const qkvi_bert_batch *batch,
                                    int64_t *n_rows, qkv_error *error);

/* Every size, id and index of a batch, and how many rows it has. SHAPE, ARGUMENT, LIMIT. */
qkv_status qkvi_batch_check(const qkvi_bert_params *params, const qkvi_bert_batch *batch,
                            int64_t *n_rows, qkv_error *error);

void qkvi_batch_cut(const qkvi_bert_params *params, const qkvi_bert_batch *batch, int64_t n_rows,
                    qkvi_cutter *cutter, qkvi_batch_rows *rows);

/* Fills rows for a batch that has been checked. */
void qkvi_batch_sort(const qkvi_bert_params *params, const qkvi_bert_batch *batch,
                     qkvi_batch_rows *rows);

#endif
