/*
 * What a forward call costs by each scheme: bytes that are sent, by formulas that tests compare
 * with what is counted, and seconds, by a model of three numbers.
 *
 *     compute   operations of the rank that has most, 2 (head_dim + head_dim_v) for each pair of a
 *               query and a key that position lets it see, by operations per second
 *     send      bytes of the busiest link by bytes per second, and messages that wait for others
 *     ordered, ring, zigzag   the greater of both: keys come while others are computed
 *     ulysses                 the sum of both
 */
#ifndef QKVI_DIST_COSTS_H
#define QKVI_DIST_COSTS_H

#include "dist/call.h"

enum { QKVI_COST_REASON_BYTES = 192 };

/* Of a rank. */
typedef struct qkvi_rates {
    double flops_per_second, bytes_per_second, seconds_per_message;
} qkvi_rates;

typedef struct qkvi_cost {
    bool possible;
    int64_t bytes_sent; /* by this rank, by broadcasts or in messages */
    int64_t most_bytes; /* by the rank that sends most */
    double operations;  /* of the rank that has most */
    double imbalance;   /* these over the mean, less 1 */
    double compute_seconds, send_seconds, seconds;
    char reason[QKVI_COST_REASON_BYTES]; /* in words */
} qkvi_cost;

typedef struct qkvi_costs {
    qkvi_rates rates;
    qkvi_cost of[QKVI_N_SCHEMES];
    qkvi_scheme chosen; /* of those that have the bits of one process */
    char reason[QKVI_COST_REASON_BYTES];
} qkvi_costs;

/* Numbers of 0 become those of docs/scale.md; others are checked. */
QKV_NODISCARD qkv_status qkvi_rates_read(qkvi_rates *rates, qkv_error *error);

/* The name of a scheme. */
const char *qkvi_scheme_name(qkvi_scheme scheme);

/*
 * The costs of a call with this descriptor, the same on all ranks but bytes_sent. status: of what
 * came before, on this rank. Between qkvi_call_begin and _end.
 */
QKV_NODISCARD qkv_status qkvi_costs_of(qkvi_group *group, qkv_ctx *ctx, qkv_status status,
                                       const qkv_attention_desc *desc, const qkvi_rates *rates,
                                       qkvi_costs *costs);

/* The same as a call. refused: as in qkvi_forward_by. */
QKV_NODISCARD qkv_status qkvi_explain_costs(qkvi_group *group, qkv_ctx *ctx,
                                            const qkv_error *refused,
                                            const qkv_attention_desc *desc, const qkvi_rates *rates,
                                            qkvi_costs *costs);

#endif
