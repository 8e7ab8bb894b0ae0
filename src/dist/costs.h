/*
 * Predicted costs of a forward call by each scheme: the bytes that are sent, by formulas that tests
 * compare with counters, and seconds, by a model with three rates.
 *
 *     compute   operations of the rank with most of them / flops_per_second, with 2 (head_dim +
 *               head_dim_v) for each pair of a query and a key that rules of position let it see
 *     send      bytes of the busiest link / bytes_per_second, plus seconds_per_message for each
 *               message that must wait for another one
 *     ordered, ring, zigzag   max(compute, send): keys arrive while others are computed
 *     ulysses                 compute + send
 */
#ifndef QKVI_DIST_COSTS_H
#define QKVI_DIST_COSTS_H

#include "dist/call.h"

enum { QKVI_COST_REASON_BYTES = 192 };

/* Rates of a rank. */
typedef struct qkvi_rates {
    double flops_per_second, bytes_per_second, seconds_per_message;
} qkvi_rates;

typedef struct qkvi_cost {
    bool possible;
    int64_t bytes_sent; /* by this rank, in broadcasts and messages */
    int64_t most_bytes; /* by the rank that sends most */
    double operations;  /* of the rank with most of them */
    double imbalance;   /* operations / their mean over ranks - 1 */
    double compute_seconds, send_seconds, seconds;
    char reason[QKVI_COST_REASON_BYTES]; /* an explanation of the numbers */
} qkvi_cost;

typedef struct qkvi_costs {
    qkvi_rates rates;
    qkvi_cost of[QKVI_N_SCHEMES];
    qkvi_scheme chosen; /* the fastest of the schemes that have the bits of one process */
    char reason[QKVI_COST_REASON_BYTES];
} qkvi_costs;

/* Replaces rates that are 0 by those of docs/scale.md, and checks the others. */
QKV_NODISCARD qkv_status qkvi_rates_read(qkvi_rates *rates, qkv_error *error);

/* The name of a scheme. */
const char *qkvi_scheme_name(qkvi_scheme scheme);

/*
 * The costs of a call with this descriptor, the same on all ranks except bytes_sent. To be called
 * between qkvi_call_begin and _end; status: of what this rank did before.
 */
QKV_NODISCARD qkv_status qkvi_costs_of(qkvi_group *group, qkv_ctx *ctx, qkv_status status,
                                       const qkv_attention_desc *desc, const qkvi_rates *rates,
                                       qkvi_costs *costs);

/* The same with qkvi_call_begin and _end. refused: as in qkvi_forward_by. */
QKV_NODISCARD qkv_status qkvi_explain_costs(qkvi_group *group, qkv_ctx *ctx,
                                            const qkv_error *refused,
                                            const qkv_attention_desc *desc, const qkvi_rates *rates,
                                            qkvi_costs *costs);

#endif
