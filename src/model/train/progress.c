/* Progress: see progress.h. */
#include "model/train/progress.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/status.h"
#include "model/store/file.h"

enum { MAX_LOG = 64 << 20 };

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

/* step, loss, the losses by name, … */
static qkv_status put_header(const qkvi_trainer *trainer, qkvi_writer *log, qkv_error *error) {
    char header[160];
    size_t n = (size_t)snprintf(header, sizeof header, "step\tloss");
    for (const char *const *name = trainer->objective->losses; *name; name++)
        n += (size_t)snprintf(header + n, sizeof header - n, "\t%s", *name);
    n +=
        (size_t)snprintf(header + n, sizeof header - n, "\theld_out_loss\tlearning_rate\ttokens\n");
    return qkvi_writer_put(log, header, n, error);
}

/* The log as it was at the step, in place of what is there. */
static qkv_status begin_log(const qkvi_trainer *trainer, const char *path, const char *old,
                            qkv_error *error) {
    qkvi_writer writer;
    QKV_TRY(qkvi_writer_begin(path, &writer, error));
    qkv_status status = put_header(trainer, &writer, error);
    if (status == QKV_OK && old) status = keep_lines(&writer, old, trainer->step, error);
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
    if (status == QKV_OK) status = begin_log(trainer, path, old, error);
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
                       const double losses[QKVI_TRAIN_LOSSES], int64_t n_tokens) {
    progress->n_tokens += n_tokens;
    trainer->sums.n_steps++;
    trainer->sums.n_tokens += n_tokens;
    for (int l = 0; l < QKVI_TRAIN_LOSSES; l++) trainer->sums.losses[l] += losses[l];
}

static qkv_status log_line(const qkvi_trainer *trainer, FILE *log, const qkv_train_report *report,
                           const double losses[QKVI_TRAIN_LOSSES], int64_t n_tokens,
                           qkv_error *error) {
    fprintf(log, "%lld\t%.6f", (long long)report->step, report->loss);
    for (int l = 0; trainer->objective->losses[l]; l++) fprintf(log, "\t%.6f", losses[l]);
    fprintf(log, "\t%.6f\t%.6g\t%lld\n", report->held_out_loss, report->learning_rate,
            (long long)n_tokens);
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
    const double losses[QKVI_TRAIN_LOSSES] = { sums.losses[0] / steps, sums.losses[1] / steps };
    const int is_bert = options->arch == QKV_ARCH_BERT;
    const qkv_train_report report = {
        .step = trainer->step,
        .n_steps = options->n_steps,
        .loss = (sums.losses[0] + sums.losses[1]) / steps,
        .mlm_loss = is_bert ? losses[0] : 0,
        .nsp_loss = losses[1],
        .held_out_loss = held_out_loss,
        .learning_rate = rate,
        .tokens_per_second = (double)progress->n_tokens / (time - progress->reported + 1e-9),
        .seconds = time - progress->started,
        .seconds_left = per_step * (double)(options->n_steps - trainer->step),
        .arch = (qkv_arch)options->arch,
        .lm_loss = is_bert ? 0 : losses[0]
    };
    progress->n_tokens = 0;
    progress->reported = time;
    trainer->sums = (qkvi_train_sums){ 0 };
    QKV_TRY(log_line(trainer, progress->log, &report, losses, sums.n_tokens, error));
    if (options->report && options->report(options->report_user, &report) != 0)
        return qkvi_error_set(error, QKV_ERR_CANCELLED, "training was stopped after step %lld",
                              (long long)report.step);
    return QKV_OK;
}
