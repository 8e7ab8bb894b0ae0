/**
 * What a run says of itself: the caller's callback, and the log, which holds no times, so that the same
 * run writes the same log, stopped and resumed or not. A checkpoint has the log as far as it is; it
 * becomes train_log.tsv together with the model's files.
 */
#ifndef QKVI_TRAIN_PROGRESS_H
#define QKVI_TRAIN_PROGRESS_H

#include "model/train/trainer.h"

typedef struct qkvi_progress {
    int64_t first_step, n_tokens; /* tokens since the last report, in this process */
    double started, reported;     /* seconds of the monotonic clock */
} qkvi_progress;

/** Begins the log of a run, unless its checkpoint had one. MEMORY. */
qkv_status qkvi_progress_begin(qkvi_trainer *trainer, qkvi_progress *progress, qkv_error *error);

/** A step was done. */
void qkvi_progress_add(qkvi_progress *progress, qkvi_trainer *trainer,
                       const double losses[QKVI_TRAIN_LOSSES], int64_t n_tokens);

/** Logs, begins new sums, and tells the caller; CANCELLED if it says so; MEMORY. */
qkv_status qkvi_progress_report(qkvi_progress *progress, qkvi_trainer *trainer, double rate,
                                double held_out_loss, qkv_error *error);

#endif
