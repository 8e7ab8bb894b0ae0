/**
 * AdamW (layer/adamw.h) over the arenas of a parameter table. Biases and layer norms do not decay.
 */
#ifndef QKVI_TRAIN_ADAMW_H
#define QKVI_TRAIN_ADAMW_H

#include "files/base.h"
#include "layer/adamw.h"
#include "model/weights/params.h"

/** Allocates; the caller then sets the five numbers of qkvi_adamw. LIMIT, MEMORY. */
qkv_status qkvi_adamw_make(const qkvi_param_table *table, qkvi_adamw *adamw, qkv_error *error);
void qkvi_adamw_free(qkvi_adamw *adamw);

/**
 * Makes step t = 1, 2, … on arenas of the table's layout. @return the norm of grads before
 * clipping; if it is not finite, nothing is changed.
 */
double qkvi_adamw_run(qkv_ctx *ctx, const qkvi_adamw *adamw, int64_t t, double rate,
                      const float *grads, float *params, float *m, float *v);

/**
 * The learning rate of step 0 … n_steps - 1. It is never 0:
 *
 *     peak (step + 1) / warmup                    if step < warmup
 *     peak (n_steps - step) / (n_steps - warmup)  else
 */
double qkvi_schedule_rate(double peak, int64_t warmup, int64_t n_steps, int64_t step);

#endif
