/*
 * Schemes "ring" and "zigzag": the keys of each rank are passed on from each rank to the next one,
 * until all ranks have had them. A rank merges the results of its queries for the keys of each
 * rank, in f32, in the order in which keys arrive. So errors are within the bounds of one process,
 * but bits depend on the number of ranks.
 *
 * With ring a rank has one run of the sequence. With zigzag the sequence of P ranks has 2 P runs of
 * one length, and rank r has the runs r and 2 P - 1 - r: under a causal mask all ranks have the
 * same work.
 */
#ifndef QKVI_DIST_RING_H
#define QKVI_DIST_RING_H

#include "dist/costs.h"

/*
 * The scheme of a name: "ordered" or NULL, "ring", "zigzag", "ulysses", "auto". Any other name is
 * QKV_ERR_ARGUMENT.
 */
QKV_NODISCARD qkv_status qkvi_scheme_named(const char *name, qkvi_scheme *scheme, qkv_error *error);

/*
 * Forward by any scheme. The message is in group->error. rates: for auto. refused: NULL, or the
 * error of this rank's options, with which the call then fails on all ranks.
 */
QKV_NODISCARD qkv_status qkvi_forward_by(qkvi_group *group, qkv_ctx *ctx, qkvi_scheme scheme,
                                         const qkvi_rates *rates, const qkv_error *refused,
                                         const qkv_attention_desc *desc,
                                         const qkvi_dist_arrays *arrays);

#endif
