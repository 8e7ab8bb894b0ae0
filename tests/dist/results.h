/* What one process wrote, o and lse and perhaps statistics, beside which ranks are held. */
#ifndef QKV_TESTS_DIST_RESULTS_H
#define QKV_TESTS_DIST_RESULTS_H

#include "dist/jobs.h"

typedef struct results {
    outputs whole;
    bool has_stats;
    stats_arrays stats;
    uint64_t seed; /* of stats */
} results;

/* Before it wrote: `whole` is the caller's to set, with stats_wanted. */
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
