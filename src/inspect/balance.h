/** How much queries are to be scaled against keys for distances to follow scores. */
#ifndef QKVI_INSPECT_BALANCE_H
#define QKVI_INSPECT_BALANCE_H

#include "kernels/table.h"
#include "qkv/inspect.h"

/**
 * One of 0.2, 0.4, 0.8, 1, 1.25, 2.5 and 5, for queries times it and keys divided by it, keys then
 * centred: that with which near pairs of query and key have the scores that their distances promise.
 * 1 where nothing can be said. options has the metric. MEMORY, and what qkvi_points_make refuses.
 */
qkv_status qkvi_balance_choose(const qkvi_kernels *kernels, const qkv_map_options *options,
                               int64_t n_queries, int64_t n_keys, int64_t head_dim, const float *q,
                               const float *k, double *balance, qkv_error *error);

#endif
