/*
 * Schemes "ring" and "zigzag": the keys of each rank go round, from each rank to the next. A rank
 * joins what its queries come to with each rank's keys, in f32, in the order in which they arrive.
 * So results are within the bounds of one process, but have other bits on each number of ranks.
 *
 * In a ring a rank has one run of the sequence. In zigzag the sequence has 2 P runs of one length,
 * and rank r has the runs r and 2 P - 1 - r: under a causal mask all ranks have the same work.
 */
#ifndef QKVI_DIST_RING_H
#define QKVI_DIST_RING_H

#include "dist/costs.h"

/*
 * "ordered" or NULL, "ring", "zigzag", "ulysses", "auto"; of another name QKV_ERR_ARGUMENT with its
 * message.
 */
QKV_NODISCARD qkv_status qkvi_scheme_named(const char *name, qkvi_scheme *scheme, qkv_error *error);

/*
 * Forward by any scheme; the message is group->error's. rates: by which auto chooses. refused:
 * NULL, or why this rank's options are, which becomes the failure of all.
 */
QKV_NODISCARD qkv_status qkvi_forward_by(qkvi_group *group, qkv_ctx *ctx, qkvi_scheme scheme,
                                         const qkvi_rates *rates, const qkv_error *refused,
                                         const qkv_attention_desc *desc,
                                         const qkvi_dist_arrays *arrays);

#endif
