/* Progress: see progress.h. */
#include "model/train/progress.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/status.h"
#include "model/store/file.h"

enum { MAX_LOG = 64 << 20 };
static const char header[] =
    "step\tloss\tmlm_loss\tnsp_loss\theld_out_loss\tlearning_rate\ttokens\n";

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Copies the lines of an old log whose step is at most step. */
static void keep_lines(FILE *log, const char *text, int64_t step) {
    const char *line = strchr(text, '\n');
    while (line && *++line) {
        const char *const end = strchr(line, '\n');
        if (!end || strtoll(line, NULL, 10) > step) return;
        fwrite(line, 1, (size_t)(end + 1 - line), log);
        line = end;
    }
}

qkv_status qkvi_progress_begin(const char *folder, int64_t step, qkvi_progress *progress,
                               qkv_error *error) {
    char *old = NULL;
    size_t old_bytes;
    memset(progress, 0, sizeof *progress);
    char *const path = qkvi_path_join(folder, "train_log.tsv");
    if (!path) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a path");
    if (step > 0 && qkvi_file_load(path, MAX_LOG, &old, &old_bytes, NULL) != QKV_OK) old = NULL;
    progress->log = fopen(path, "we");
    if (!progress->log) {
        free(old);
        free(path);
        return qkvi_error_set(error, QKV_ERR_IO, "cannot write train_log.tsv: %s", strerror(errno));
    }
    fputs(header, progress->log);
    if (old) keep_lines(progress->log, old, step);
    fflush(progress->log);
    free(old);
    free(path);
    progress->first_step = step;
    progress->started = progress->reported = now();
    return QKV_OK;
}

void qkvi_progress_end(qkvi_progress *progress) {
    if (progress->log) fclose(progress->log);
    progress->log = NULL;
}

void qkvi_progress_add(qkvi_progress *progress, const qkvi_bert_losses *losses, int64_t n_tokens) {
    progress->n_steps++;
    progress->n_tokens += n_tokens;
    progress->mlm += losses->mlm;
    progress->nsp += losses->nsp;
}

qkv_status qkvi_progress_report(qkvi_progress *progress, const qkvi_trainer *trainer, double rate,
                                double held_out_loss, qkv_error *error) {
    const qkv_train_options *const options = trainer->options;
    const double time = now(), steps = (double)(progress->n_steps ? progress->n_steps : 1);
    const double done = (double)(trainer->step - progress->first_step);
    const double per_step = (time - progress->started) / (done > 0 ? done : 1);
    const qkv_train_report report = {
        .step = trainer->step,
        .n_steps = options->n_steps,
        .loss = (progress->mlm + progress->nsp) / steps,
        .mlm_loss = progress->mlm / steps,
        .nsp_loss = progress->nsp / steps,
        .held_out_loss = held_out_loss,
        .learning_rate = rate,
        .tokens_per_second = (double)progress->n_tokens / (time - progress->reported + 1e-9),
        .seconds = time - progress->started,
        .seconds_left = per_step * (double)(options->n_steps - trainer->step)
    };
    fprintf(progress->log, "%lld\t%.6f\t%.6f\t%.6f\t%.6f\t%.6g\t%lld\n", (long long)report.step,
            report.loss, report.mlm_loss, report.nsp_loss, report.held_out_loss,
            report.learning_rate, (long long)progress->n_tokens);
    fflush(progress->log);
    progress->n_steps = progress->n_tokens = 0;
    progress->mlm = progress->nsp = 0;
    progress->reported = time;
    if (options->report && options->report(options->report_user, &report) != 0)
        return qkvi_error_set(error, QKV_ERR_CANCELLED, "training was stopped after step %lld",
                              (long long)report.step);
    return QKV_OK;
}
