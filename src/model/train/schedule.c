/* The learning rate: see schedule.h. */
#include "model/train/schedule.h"

double qkvi_schedule_rate(double peak, int64_t warmup, int64_t n_steps, int64_t step) {
    if (step < warmup) return peak * (double)(step + 1) / (double)warmup;
    return peak * (double)(n_steps - step) / (double)(n_steps - warmup);
}
