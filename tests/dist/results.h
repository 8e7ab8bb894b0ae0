/* Results of one process, o, lse and perhaps statistics, with which those of ranks are compared. */
#ifndef QKV_TESTS_DIST_RESULTS_H
#define QKV_TESTS_DIST_RESULTS_H

#include "dist/jobs.h"

typedef struct results {
    outputs whole;
    bool has_stats;
    stats_arrays stats;
    uint64_t seed; /* of stats */
} results;

/* Makes empty results; the caller then sets `whole`, with stats_wanted for the statistics. */
static inline results results_new(const qkv_attention_desc *d, bool has_stats, rng *r) {
    results y = { .has_stats = has_stats, .seed = rng_next(r) };
    if (has_stats) y.stats = stats_arrays_new(d, y.seed, false);
    return y;
}

static inline stats_arrays *stats_wanted(results *y) { return y->has_stats ? &y->stats : NULL; }

static inline void results_free(results *y) {
    if (y->has_stats) stats_arrays_free(&y->stats);
    outputs_free(&y->whole);
}

#endif
