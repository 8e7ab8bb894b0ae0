/* The three numbers of costs.h, measured on these ranks. */
#ifndef QKVI_DIST_MEASURE_H
#define QKVI_DIST_MEASURE_H

#include "dist/costs.h"

/*
 * The worst of all ranks, the same on all of them; with one rank nothing is sent, and what is sent
 * has rates of 0. refused: as in qkvi_forward_by.
 */
QKV_NODISCARD qkv_status qkvi_measure(qkvi_group *group, qkv_ctx *ctx, const qkv_error *refused,
                                      qkv_dtype dtype, qkvi_rates *rates);

#endif
