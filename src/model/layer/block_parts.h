/* What the two passes of a block share: where dropout is, and what a part reads. */
#ifndef QKVI_LAYER_BLOCK_PARTS_H
#define QKVI_LAYER_BLOCK_PARTS_H

#include "model/layer/block.h"

enum {
    QKVI_SELF_WEIGHTS,
    QKVI_SELF_RESULT,
    QKVI_CROSS_WEIGHTS,
    QKVI_CROSS_RESULT,
    QKVI_FEED_FORWARD
};

static inline qkvi_row_dropout qkvi_block_site(const qkvi_block_rows *rows, int site) {
    qkvi_row_dropout dropout = rows->dropout;
    dropout.site += (uint32_t)site;
    return dropout;
}

/* The groups of an attention, with the dropout of its weights. */
static inline qkvi_groups qkvi_block_groups(const qkvi_block_rows *rows, int site) {
    qkvi_groups groups = site == QKVI_SELF_WEIGHTS ? rows->self : rows->cross;
    groups.dropout = qkvi_block_site(rows, site);
    return groups;
}

/* Whether f reads a norm of x: not in ModernBERT's first block. */
static inline bool qkvi_block_reads_norm(const qkvi_block *layer, const qkvi_layernorm *norm) {
    return layer->pre_norm && norm->gamma;
}

/* What f read of x. */
static inline const float *qkvi_block_read(const qkvi_block *layer, const qkvi_layernorm *norm,
                                           const qkvi_part_acts *part, const float *x) {
    return qkvi_block_reads_norm(layer, norm) ? part->y : x;
}

#endif
