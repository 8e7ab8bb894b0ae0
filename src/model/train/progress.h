/**
 * What a run says of itself: sums since the last report, the caller's callback, and train_log.tsv
 * in the folder, which holds no times, so that the same run writes the same log.
 */
#ifndef QKVI_TRAIN_PROGRESS_H
#define QKVI_TRAIN_PROGRESS_H

#include <stdio.h>

#include "model/train/trainer.h"

typedef struct qkvi_progress {
    FILE *log;
    int64_t first_step, n_steps, n_tokens; /* steps and tokens since the last report */
    double mlm, nsp;                       /* sums of the steps' means */
    double started, reported;              /* seconds of the monotonic clock */
} qkvi_progress;

/** Begins the log, or continues it after the lines up to step (a resumed run). IO, MEMORY. */
qkv_status qkvi_progress_begin(const char *folder, int64_t step, qkvi_progress *progress,
                               qkv_error *error);
void qkvi_progress_end(qkvi_progress *progress);

void qkvi_progress_add(qkvi_progress *progress, const qkvi_bert_losses *losses, int64_t n_tokens);

/** Logs and tells the caller; CANCELLED if it says so. */
qkv_status qkvi_progress_report(qkvi_progress *progress, const qkvi_trainer *trainer, double rate,
                                double held_out_loss, qkv_error *error);

#endif
