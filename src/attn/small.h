/*
 * Heads so short that the kernel for sentences takes them: at most 16 queries and 16 keys. The same
 * bits as the general path; only faster.
 */
#ifndef QKV_ATTN_SMALL_H
#define QKV_ATTN_SMALL_H

#include "attn/mask.h"
#include "attn/plan.h"
#include "kernels/table.h"

/* NULL if heads of this problem may be tried; otherwise what it has that the kernel cannot do. */
const char *qkvi_small_unfit(const qkvi_problem *problem, const qkvi_forward_plan *plan);

/* Whether the heads of a batch with these rules are short enough. */
bool qkvi_small_rules(const qkvi_rules *rules);

/* Attends to the query heads of key/value head g. false: it is work for the general path. */
bool qkvi_small_head(const qkvi_problem *problem, const qkvi_kernels *kernels,
                     const qkvi_forward_plan *plan, const qkvi_rules *rules, int64_t b, int64_t g,
                     int thread);

#endif
