/** Options of a map. */
#ifndef QKVI_INSPECT_MAP_OPTIONS_H
#define QKVI_INSPECT_MAP_OPTIONS_H

#include "qkv/inspect.h"

enum { QKVI_MAP_FEW_POINTS = 512 }; /* up to here there are several runs, each of them a task */

qkv_status qkvi_map_check_shape(int64_t n_queries, int64_t n_keys, int64_t head_dim,
                                qkv_error *error);
/** For n points. */
qkv_status qkvi_map_check_options(const qkv_map_options *options, int64_t n, qkv_error *error);
/** Defaults in place of zeros. */
void qkvi_map_complete_options(qkv_map_options *options, int64_t n);

#endif
