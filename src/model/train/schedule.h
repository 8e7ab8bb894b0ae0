/** Learning rate of a step: linear warm-up, then linear decay towards 0. */
#ifndef QKVI_TRAIN_SCHEDULE_H
#define QKVI_TRAIN_SCHEDULE_H

#include "model/base.h"

/**
 * Of step 0 … n_steps - 1:  peak (step + 1) / warmup  while step < warmup,  then  peak (n_steps -
 * step) / (n_steps - warmup). Never 0, so that no step is wasted.
 */
double qkvi_schedule_rate(double peak, int64_t warmup, int64_t n_steps, int64_t step);

#endif
