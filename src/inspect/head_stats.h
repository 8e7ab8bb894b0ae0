/** Statistics of one head from its weights; docs/statistics.md has each formula. */
#ifndef QKVI_INSPECT_HEAD_STATS_H
#define QKVI_INSPECT_HEAD_STATS_H

#include "qkv/inspect.h"

/**
 * Fills everything but layer and head. weights is [n][n], rows are queries; ids and kinds
 * (qkvi_token_kind) are [n]. A NaN makes the means that it enters NaN and leaves the
 * label blank.
 */
void qkvi_head_stats(const float *weights, int64_t n, const int32_t *ids, const uint8_t *kinds,
                     qkv_head_stats *stats);

#endif
