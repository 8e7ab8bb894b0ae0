/** What the calls of attention rollout share: rollout.c of chosen tokens, rollout_map.c of all. */
#ifndef QKVI_INSPECT_ROLLOUT_H
#define QKVI_INSPECT_ROLLOUT_H

#include "qkv/patterns.h"

/** Refuses what is no qkv_rollout_heads. */
qkv_status qkvi_rollout_check_heads(qkv_rollout_heads heads, qkv_error *error);

/** What captured queries saw of captured keys, as the layer did. No values: head_dim_v is 0. */
void qkvi_rollout_describe(const qkv_capture *capture, qkv_attention_desc *desc);

/**
 * Adds the weights p [n] of head h at query i to what stands for the heads before it, f [n]: their
 * sum, or cell by cell the largest or the smallest. A row that sees no key is that of I.
 */
void qkvi_rollout_fuse(qkv_rollout_heads heads, int64_t h, int64_t i, int64_t n, float lse,
                       float *p, float *f);

#endif
