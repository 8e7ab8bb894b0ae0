/*
 * A pass over columns of which this process has some of the keys, while queries come in several
 * calls, in the order of the sequence. Parts begin at multiples of 96 queries, where the written
 * order of these sums has its seams, so the bits are those of one call.
 *
 * The problem of a part has one query head of each group: sums are of one head at a time.
 */
#ifndef QKVI_ATTN_COLUMNS_PART_H
#define QKVI_ATTN_COLUMNS_PART_H

#include "attn/columns.h"
#include "attn/piece.h"

/* Of all batches and key/value heads the blocks that have the keys [first, end). */
typedef struct qkvi_columns_sums {
    qkvi_columns_sum *of; /* [n_heads][n_blocks] */
    qkvi_columns_scratch *own;
    int64_t first, end, n_heads, n_blocks;
} qkvi_columns_sums;

typedef struct qkvi_columns_part {
    const qkvi_problem *p; /* lse too; keys of its arrays: from first_k on */
    const float *weights;  /* of rows, with weights_stride; NULL: 1 */
    const int64_t *weights_stride;
    const qkvi_columns_sums *sums;
    bool all; /* more than received */
    float tiny;
} qkvi_columns_part;

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

/*
 * Checks a call whose queries and keys are those of the piece (piece.h); columns are of its keys,
 * row_weights of its queries.
 */
QKV_NODISCARD qkv_status qkvi_columns_piece(const qkv_attention_desc *desc, const qkvi_piece *piece,
                                            const void *q, const void *k, const float *lse,
                                            const qkv_attention_columns *given,
                                            qkvi_columns_problem *x, qkv_error *error);

void qkvi_columns_sums_lay_out(const qkvi_problem *p, int64_t first, int64_t end,
                               qkvi_cutter *cutter, qkvi_columns_sums *sums);
/* Before the first query of a head. */
void qkvi_columns_sums_begin(const qkvi_columns_sums *sums);

/* Workspace of any part of such a problem. */
QKV_NODISCARD qkv_status qkvi_columns_part_workspace(qkv_ctx *ctx, const qkvi_problem *p,
                                                     size_t *bytes);

/* Between qkvi_ctx_begin and _end. call is not NULL, and has the workspace. */
QKV_NODISCARD qkv_status qkvi_columns_run_part(qkv_ctx *ctx, const qkvi_columns_part *part,
                                               const qkv_call_options *call);

/* Writes what the sums of query head `turn` of each group are, after its last part. */
void qkvi_columns_store(const qkv_ctx *ctx, const qkvi_columns_problem *x,
                        const qkvi_columns_sums *sums, int64_t turn);

#pragma GCC visibility pop

#endif
