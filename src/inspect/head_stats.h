/** Signature of one head from what its rows and columns hold; docs/statistics.md has each formula. */
#ifndef QKVI_INSPECT_HEAD_STATS_H
#define QKVI_INSPECT_HEAD_STATS_H

#include "inspect/head_rows.h"
#include "inspect/matches.h"
#include "qkv/inspect.h"

/** What is known of queries: all is [n]. */
typedef struct qkvi_head_input {
    int64_t n;
    const uint8_t *kinds;   /* qkvi_token_kind */
    const uint8_t *matches; /* QKVI_HAS_…; NULL: keys are of another text */
    const double *log_keys; /* ln of how many keys a query may see; 0 for none */
} qkvi_head_input;

/** Means over the rows of a head. A NaN makes the means that it enters NaN. */
void qkvi_head_means(const qkvi_head_input *input, const qkvi_head_rows *rows, int64_t head,
                     qkv_head_stats *stats);

/** received_…, from what the keys of a head receive; shares is scratch of [n_keys]. */
void qkvi_head_received(const qkvi_head_rows *rows, int64_t head, double *shares,
                        qkv_head_stats *stats);

#endif
