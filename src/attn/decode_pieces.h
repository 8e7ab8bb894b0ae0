/*
 * Decode of keys that lie on several ranks, as dist/ needs it. A rank computes the splits that are
 * its own, in any order. Then what all splits before them have come to is joined with them, one
 * after the other: the order of keys, which fixes every bit (docs/numerics.md, Decode, step 8).
 */
#ifndef QKVI_ATTN_DECODE_PIECES_H
#define QKVI_ATTN_DECODE_PIECES_H

#include "attn/decode_unit.h"

typedef struct qkvi_decode_pieces {
    qkvi_decode_call call; /* kv is not set */
    int64_t from, to;      /* splits of this rank */
    bool merges;           /* set by the caller after init: `other` is wanted */
    char *sum;             /* what splits have come to, one part for each unit */
    char *other;           /* the sum of another rank; or NULL */
    size_t sum_bytes;      /* the same on all ranks; a message as it lies there */
} qkvi_decode_pieces;

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

/* A checked problem, which must stay where it is. */
void qkvi_decode_pieces_init(qkvi_decode_pieces *pieces, const qkv_ctx *ctx,
                             const qkvi_problem *problem, int64_t from, int64_t to);
void qkvi_decode_pieces_lay_out(qkvi_decode_pieces *pieces, qkvi_cutter *cutter);

/* Before the first split of all: nothing is seen. */
void qkvi_decode_pieces_begin(qkvi_decode_pieces *pieces);

/* Splits [from, to) of this rank's, with the keys of kv. call is not NULL: its progress is told. */
void qkvi_decode_pieces_run(qkvi_decode_pieces *pieces, qkv_ctx *ctx, const qkvi_kv *kv,
                            int64_t from, int64_t to, const qkv_call_options *call);

/* sum, which has the splits before this rank's, gets these, too. */
void qkvi_decode_pieces_join(qkvi_decode_pieces *pieces, qkv_ctx *ctx);

/* sum gets `other`, too, whose keys come behind its own. */
void qkvi_decode_pieces_merge(qkvi_decode_pieces *pieces, qkv_ctx *ctx);

/* o, lse and statistics, once sum has all splits. */
void qkvi_decode_pieces_finish(qkvi_decode_pieces *pieces, qkv_ctx *ctx);

#pragma GCC visibility pop

#endif
