/**
 * What a run says of itself: the caller's callback, and train_log.tsv in the folder, which holds
 * no times, so that the same run writes the same log, stopped and resumed or not.
 */
#ifndef QKVI_TRAIN_PROGRESS_H
#define QKVI_TRAIN_PROGRESS_H

#include <stdio.h>

#include "model/train/trainer.h"

typedef struct qkvi_progress {
    FILE *log;
    int64_t first_step, n_tokens; /* tokens since the last report, in this process */
    double started, reported;     /* seconds of the monotonic clock */
} qkvi_progress;

/**
 * Begins the log of a run that has done some steps, with the lines up to there of the log that the
 * resumed folder has. IO, MEMORY.
 */
qkv_status qkvi_progress_begin(const qkvi_trainer *trainer, qkvi_progress *progress,
                               qkv_error *error);
void qkvi_progress_end(qkvi_progress *progress);

/** A step was done. */
void qkvi_progress_add(qkvi_progress *progress, qkvi_trainer *trainer,
                       const qkvi_net_losses *losses);

/** Logs, begins new sums, and tells the caller; CANCELLED if it says so; IO. */
qkv_status qkvi_progress_report(qkvi_progress *progress, qkvi_trainer *trainer, double rate,
                                double held_out_loss, qkv_error *error);

#endif
