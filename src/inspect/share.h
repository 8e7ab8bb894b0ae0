/**
 * Passes over one head of arrays that ranks share: queries, keys or rows of tiles are divided so
 * that each rank has about the same number of visible pairs of query and key, and results are sent
 * to all ranks. With one rank these are plain calls of libqkv. Statistics of a query do not depend
 * on other queries, nor sums of a key on other keys, so results have the bits of one rank.
 *
 * status: of what this rank did before; if it is an error, the call fails on all ranks.
 */
#ifndef QKVI_INSPECT_SHARE_H
#define QKVI_INSPECT_SHARE_H

#include "attn/mask.h"
#include "core/peers.h"
#include "inspect/head_pieces.h"
#include "qkv/columns.h"
#include "qkv/heads.h"
#include "qkv/stats.h"

typedef struct qkvi_share {
    qkvi_peers *peers;
    const qkvi_rules *rules;
    qkv_ctx *ctx;
    const qkv_attention_desc *desc; /* of one head; with one rank it may have several */
    const float *q, *k;
    qkvi_head_pieces *pieces; /* q and k are only this rank's rows; NULL: all rows */
    const qkv_call_options *call;
} qkvi_share;

/** Writes lse and the statistics of stats; each may be NULL. */
qkv_status qkvi_share_forward(const qkvi_share *share, qkv_status status, float *lse,
                              const qkv_attention_stats *stats, qkv_error *error);

/** Writes received and n_queries of columns, each nullable; nothing else of it. */
qkv_status qkvi_share_received(const qkvi_share *share, qkv_status status, const float *lse,
                               const qkv_attention_columns *columns, qkv_error *error);

/** Writes cells [rows][cols], each of a whole tile of `tile` queries and `tile` keys. */
qkv_status qkvi_share_tiles(const qkvi_share *share, qkv_status status, const float *lse,
                            int64_t tile, int64_t rows, int64_t cols, qkv_tile_kind pooling,
                            float *cells, qkv_error *error);

#endif
