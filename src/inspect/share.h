/**
 * Passes over one head of arrays that ranks share: queries, keys or rows of tiles are cut so that
 * each rank has about as many pairs that see each other, and what each rank has computed goes to
 * all. Of one rank these are the calls of libqkv alone. A query's statistics do not depend on other
 * queries, nor a key's sums on other keys, so results have the bits of one rank.
 *
 * status: of what came before, on this rank. A failure of one rank becomes that of all.
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
    const qkv_attention_desc *desc; /* of one head, unless there is one rank */
    const float *q, *k;
    qkvi_head_pieces *pieces; /* q and k are this rank's rows; NULL: all rows */
    const qkv_call_options *call;
} qkvi_share;

/** lse: NULL, or written; stats: NULL, or what is asked for. */
qkv_status qkvi_share_forward(const qkvi_share *share, qkv_status status, float *lse,
                              const qkv_attention_stats *stats, qkv_error *error);

/** Of columns nothing but received and n_queries, each of them nullable. */
qkv_status qkvi_share_received(const qkvi_share *share, qkv_status status, const float *lse,
                               const qkv_attention_columns *columns, qkv_error *error);

/** [rows][cols] tiles of `tile` queries and `tile` keys, which are whole. */
qkv_status qkvi_share_tiles(const qkvi_share *share, qkv_status status, const float *lse,
                            int64_t tile, int64_t rows, int64_t cols, qkv_tile_kind pooling,
                            float *cells, qkv_error *error);

#endif
