/*
 * A forward pass whose keys come in several calls, in ascending order, as they reach this process.
 * What the sums of a row have come to (docs/numerics.md, steps 4 to 7) is kept between the calls.
 *
 * Keys are cut at multiples of 256, where the written order of a row has its seams, so the bits are
 * those of one call with all keys.
 */
#ifndef QKVI_ATTN_FORWARD_PART_H
#define QKVI_ATTN_FORWARD_PART_H

#include "attn/mask.h"
#include "core/arena.h"

/* Of each query row, [n_batch][n_heads][len_q]. */
typedef struct qkvi_forward_sums {
    float *m, *l, *l_rounded;
    float *o; /* [rows][o_row] */
    int64_t o_row, n_rows;
    char *stats; /* [rows], stats_bytes each; NULL: no statistics */
    size_t stats_bytes;
} qkvi_forward_sums;

typedef struct qkvi_forward_part {
    /*
     * Keys of this call. begin is a multiple of 256; so is end, unless it is len_k. k and v of the
     * problem have these keys at least, its first_k is the first that they have.
     */
    int64_t begin, end;
    bool last; /* false: o and lse are not written yet */
    qkvi_forward_sums sums;
} qkvi_forward_part;

/* Keys of a row that belong to the part. */
static inline qkvi_range qkvi_part_keys(const qkvi_forward_part *part, qkvi_range keys) {
    const int64_t begin = qkvi_max_i64(keys.begin, part->begin);
    const int64_t end = qkvi_min_i64(keys.end, part->end);
    return begin < end ? (qkvi_range){ begin, end } : (qkvi_range){ part->begin, part->begin };
}

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

void qkvi_forward_sums_lay_out(const qkvi_problem *problem, qkvi_cutter *cutter,
                               qkvi_forward_sums *sums);
/* As they are before the first key. */
void qkvi_forward_sums_begin(const qkvi_forward_sums *sums);

/* Workspace of a part of n_keys keys. */
QKV_NODISCARD qkv_status qkvi_forward_part_workspace(qkv_ctx *ctx, const qkvi_problem *problem,
                                                     int64_t n_keys, size_t *bytes);

/* Before the parts: rows without a key, and rows that are NaN, are counted from 0. */
void qkvi_forward_parts_begin(const qkvi_problem *problem);

/* A checked problem, between qkvi_ctx_begin and _end. call is not NULL. */
QKV_NODISCARD qkv_status qkvi_forward_run_part(qkv_ctx *ctx, const qkvi_problem *problem,
                                               const qkvi_forward_part *part,
                                               const qkv_call_options *call);

#pragma GCC visibility pop

#endif
