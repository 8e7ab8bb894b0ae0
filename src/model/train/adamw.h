/**
 * AdamW over the arenas of a parameter table (Loshchilov and Hutter 2019, algorithm 2), after
 * clipping by the global norm of the gradient:
 *
 *     g *= min(1, clip / |g|)
 *     m = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) g²
 *     p = p (1 - rate decay) - rate m/(1 - beta1^t) / (sqrt(v/(1 - beta2^t)) + eps)
 *
 * Biases and layer norms do not decay. Work is cut into chunks that depend on the table only, and
 * the norm is the sum of the chunks' sums in their order: the bits do not depend on threads.
 */
#ifndef QKVI_TRAIN_ADAMW_H
#define QKVI_TRAIN_ADAMW_H

#include "model/params.h"

typedef struct qkvi_adamw_chunk {
    size_t offset, n;
    int decays;
} qkvi_adamw_chunk;

typedef struct qkvi_adamw {
    double beta1, beta2, eps, weight_decay, clip; /* clip 0: no clipping */
    qkvi_adamw_chunk *chunks;
    int n_chunks;
    float *partial; /* [n_chunks] */
} qkvi_adamw;

/** The caller fills the five numbers afterwards. LIMIT, MEMORY. */
qkv_status qkvi_adamw_make(const qkvi_param_table *table, qkvi_adamw *adamw, qkv_error *error);
void qkvi_adamw_free(qkvi_adamw *adamw);

/**
 * Step t = 1, 2, … on arenas of the table's layout. @return the norm of grads before clipping; not
 * finite: no step.
 */
double qkvi_adamw_run(qkv_ctx *ctx, const qkvi_adamw *adamw, int64_t t, double rate,
                      const float *grads, float *params, float *m, float *v);

#endif
