/* Measuring the three rates of costs.h on these ranks. */
#ifndef QKVI_DIST_MEASURE_H
#define QKVI_DIST_MEASURE_H

#include "dist/costs.h"

/*
 * Gives the worst rates of all ranks, on all ranks. With one rank nothing is sent, and
 * bytes_per_second and seconds_per_message are 0. refused: as in qkvi_forward_by.
 */
QKV_NODISCARD qkv_status qkvi_measure(qkvi_group *group, qkv_ctx *ctx, const qkv_error *refused,
                                      qkv_dtype dtype, qkvi_rates *rates);

#endif
