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
static qkv_status keep_lines(qkvi_writer *log, const char *text, int64_t step, qkv_error *error) {
    const char *line = strchr(text, '\n');
    while (line && *++line) {
        const char *const end = strchr(line, '\n');
        if (!end || strtoll(line, NULL, 10) > step) break;
        QKV_TRY(qkvi_writer_put(log, line, (size_t)(end + 1 - line), error));
        line = end;
    }
    return QKV_OK;
}

static char *log_path(const char *folder) { return qkvi_path_join(folder, "train_log.tsv"); }

static qkv_status no_memory(qkv_error *error) {
    return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a path");
}

/* The log of the folder that is resumed; NULL if there is none. */
static qkv_status load_old(const qkv_train_options *options, char **old, qkv_error *error) {
    qkv_status status = QKV_OK;
    size_t n_bytes;
    *old = NULL;
    if (!options->resume) return QKV_OK;
    char *const path = log_path(options->resume);
    if (!path) return no_memory(error);
    if (qkvi_file_exists(path)) status = qkvi_file_load(path, MAX_LOG, old, &n_bytes, error);
    free(path);
    return status;
}

/* The log as it was at the step, in place of what is there. */
static qkv_status begin_log(const char *path, const char *old, int64_t step, qkv_error *error) {
    qkvi_writer writer;
    QKV_TRY(qkvi_writer_begin(path, &writer, error));
    qkv_status status = qkvi_writer_put(&writer, header, strlen(header), error);
    if (status == QKV_OK && old) status = keep_lines(&writer, old, step, error);
    if (status == QKV_OK) return qkvi_writer_commit(&writer, error);
    qkvi_writer_end(&writer);
    return status;
}

qkv_status qkvi_progress_begin(const qkvi_trainer *trainer, qkvi_progress *progress,
                               qkv_error *error) {
    memset(progress, 0, sizeof *progress);
    char *const path = log_path(trainer->options->out);
    if (!path) return no_memory(error);
    char *old;
    qkv_status status = load_old(trainer->options, &old, error);
    if (status == QKV_OK) status = begin_log(path, old, trainer->step, error);
    free(old);
    if (status == QKV_OK && !(progress->log = fopen(path, "ae")))
        status = qkvi_io_failed(path, "cannot write", errno, error);
    free(path);
    progress->first_step = trainer->step;
    progress->started = progress->reported = now();
    return status;
}

void qkvi_progress_end(qkvi_progress *progress) {
    if (progress->log) fclose(progress->log);
    progress->log = NULL;
}

void qkvi_progress_add(qkvi_progress *progress, qkvi_trainer *trainer,
                       const qkvi_net_losses *losses) {
    progress->n_tokens += trainer->batch.n_tokens;
    trainer->sums.n_steps++;
    trainer->sums.n_tokens += trainer->batch.n_tokens;
    trainer->sums.mlm += losses->mlm;
    trainer->sums.nsp += losses->nsp;
}

static qkv_status log_line(FILE *log, const qkv_train_report *report, int64_t n_tokens,
                           qkv_error *error) {
    fprintf(log, "%lld\t%.6f\t%.6f\t%.6f\t%.6f\t%.6g\t%lld\n", (long long)report->step,
            report->loss, report->mlm_loss, report->nsp_loss, report->held_out_loss,
            report->learning_rate, (long long)n_tokens);
    if (fflush(log) == 0) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_IO, "cannot write train_log.tsv: %s", strerror(errno));
}

qkv_status qkvi_progress_report(qkvi_progress *progress, qkvi_trainer *trainer, double rate,
                                double held_out_loss, qkv_error *error) {
    const qkv_train_options *const options = trainer->options;
    const qkvi_train_sums sums = trainer->sums;
    const double time = now(), steps = (double)(sums.n_steps ? sums.n_steps : 1);
    const double done = (double)(trainer->step - progress->first_step);
    const double per_step = (time - progress->started) / (done > 0 ? done : 1);
    const qkv_train_report report = {
        .step = trainer->step,
        .n_steps = options->n_steps,
        .loss = (sums.mlm + sums.nsp) / steps,
        .mlm_loss = sums.mlm / steps,
        .nsp_loss = sums.nsp / steps,
        .held_out_loss = held_out_loss,
        .learning_rate = rate,
        .tokens_per_second = (double)progress->n_tokens / (time - progress->reported + 1e-9),
        .seconds = time - progress->started,
        .seconds_left = per_step * (double)(options->n_steps - trainer->step)
    };
    progress->n_tokens = 0;
    progress->reported = time;
    trainer->sums = (qkvi_train_sums){ 0 };
    QKV_TRY(log_line(progress->log, &report, sums.n_tokens, error));
    if (options->report && options->report(options->report_user, &report) != 0)
        return qkvi_error_set(error, QKV_ERR_CANCELLED, "training was stopped after step %lld",
                              (long long)report.step);
    return QKV_OK;
}
