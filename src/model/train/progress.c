/* Progress: see progress.h. */
#include "model/train/progress.h"

#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static qkv_status put(qkvi_trainer *trainer, const char *text, qkv_error *error) {
    const qkv_status status = qkvi_growing_put(&trainer->log, text, strlen(text));
    return status == QKV_OK ? QKV_OK : qkvi_error_set(error, status, "no memory for the log");
}

/* step, loss, the losses by name, … */
static qkv_status put_header(qkvi_trainer *trainer, qkv_error *error) {
    QKV_TRY(put(trainer, "step\tloss", error));
    for (const char *const *name = trainer->objective->losses; *name; name++) {
        QKV_TRY(put(trainer, "\t", error));
        QKV_TRY(put(trainer, *name, error));
    }
    return put(trainer, "\theld_out_loss\tlearning_rate\ttokens\n", error);
}

qkv_status qkvi_progress_begin(qkvi_trainer *trainer, qkvi_progress *progress, qkv_error *error) {
    *progress = (qkvi_progress){ .first_step = trainer->step };
    progress->started = progress->reported = now();
    return trainer->log.n > 0 ? QKV_OK : put_header(trainer, error);
}

void qkvi_progress_add(qkvi_progress *progress, qkvi_trainer *trainer,
                       const double losses[QKVI_TRAIN_LOSSES], int64_t n_tokens) {
    progress->n_tokens += n_tokens;
    trainer->sums.n_steps++;
    trainer->sums.n_tokens += n_tokens;
    for (int l = 0; l < QKVI_TRAIN_LOSSES; l++) trainer->sums.losses[l] += losses[l];
}

static qkv_status log_line(qkvi_trainer *trainer, const qkv_train_report *report,
                           const double losses[QKVI_TRAIN_LOSSES], int64_t n_tokens,
                           qkv_error *error) {
    char line[400];
    size_t n =
        (size_t)snprintf(line, sizeof line, "%lld\t%.6f", (long long)report->step, report->loss);
    for (int l = 0; trainer->objective->losses[l]; l++)
        n += (size_t)snprintf(line + n, sizeof line - n, "\t%.6f", losses[l]);
    snprintf(line + n, sizeof line - n, "\t%.6f\t%.6g\t%lld\n", report->held_out_loss,
             report->learning_rate, (long long)n_tokens);
    return put(trainer, line, error);
}

qkv_status qkvi_progress_report(qkvi_progress *progress, qkvi_trainer *trainer, double rate,
                                double held_out_loss, qkv_error *error) {
    const qkv_train_options *const options = trainer->options;
    const qkvi_train_sums sums = trainer->sums;
    const double time = now(), steps = (double)(sums.n_steps ? sums.n_steps : 1);
    const double done = (double)(trainer->step - progress->first_step);
    const double per_step = (time - progress->started) / (done > 0 ? done : 1);
    const double losses[QKVI_TRAIN_LOSSES] = { sums.losses[0] / steps, sums.losses[1] / steps };
    const int is_bert = options->kind == QKV_MODEL_ENCODER;
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
        .kind = options->kind,
        .lm_loss = is_bert ? 0 : losses[0]
    };
    progress->n_tokens = 0;
    progress->reported = time;
    trainer->sums = (qkvi_train_sums){ 0 };
    QKV_TRY(log_line(trainer, &report, losses, sums.n_tokens, error));
    if (options->report && options->report(options->report_user, &report) != 0)
        return qkvi_error_set(error, QKV_ERR_CANCELLED, "training was stopped after step %lld",
                              (long long)report.step);
    return QKV_OK;
}
