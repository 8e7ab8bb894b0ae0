/** Signature of one head from what its rows and columns hold; docs/statistics.md has each formula. */
#ifndef QKVI_INSPECT_HEAD_STATS_H
#define QKVI_INSPECT_HEAD_STATS_H

#include "inspect/head_rows.h"
#include "inspect/matches.h"
#include "qkv/inspect.h"

/** What is known of an input: kinds (qkvi_token_kind) and matches (QKVI_HAS_…) are [n]. */
typedef struct qkvi_head_input {
    int64_t n;
    const uint8_t *kinds, *matches;
} qkvi_head_input;

/** Means over the rows of a head. A NaN makes the means that it enters NaN. */
void qkvi_head_means(const qkvi_head_input *input, const qkvi_head_rows *rows, int64_t head,
                     qkv_head_stats *stats);

/** received_…, from what the keys of a head receive; shares is scratch of [n]. */
void qkvi_head_received(const qkvi_head_rows *rows, int64_t head, double *shares,
                        qkv_head_stats *stats);

#endif
