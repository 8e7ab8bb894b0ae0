/*
 * Training: for each step examples, losses and gradients, clipped AdamW, and the weights packed
 * again. See trainer.h for why a run is a pure function of its options.
 */
#include "model/train/trainer.h"

#include <math.h>

#include "core/cancel.h"
#include "core/fpstate.h"
#include "core/options.h"
#include "model/train/progress.h"
#include "model/train/schedule.h"

static qkv_status diverged(const qkvi_trainer *t, int64_t step, const char *what,
                           qkv_error *error) {
    return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                          "step %lld: %s is not finite; a smaller learning_rate than %g may help",
                          (long long)step, what, t->options->learning_rate);
}

static qkv_status run_step(qkvi_trainer *t, qkvi_progress *progress, double rate,
                           qkv_error *error) {
    double losses[QKVI_TRAIN_LOSSES];
    int64_t n_tokens;
    QKV_TRY(qkvi_train_step(t, losses, &n_tokens, error));
    const double norm = qkvi_adamw_run(t->ctx, &t->adamw, t->step + 1, rate,
                                       t->mean ? t->mean : t->grads, t->params, t->m, t->v);
    if (!isfinite(norm)) return diverged(t, t->step + 1, "the gradient", error);
    qkvi_net_pack(t->ctx, t->weights);
    qkvi_progress_add(progress, t, losses, n_tokens);
    t->step++;
    return QKV_OK;
}

static int is_due(const qkvi_trainer *t, int64_t every) {
    return every > 0 && (t->step % every == 0 || t->step == t->options->n_steps);
}

/* The caller's flag, asked after each step. */
static qkv_status check_cancel(const qkvi_trainer *t, qkv_error *error) {
    if (!qkvi_is_raised(t->options->cancel) || t->step == t->options->n_steps) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_CANCELLED, "training was stopped after step %lld",
                          (long long)t->step);
}

static qkv_status run_steps(qkvi_trainer *t, qkvi_progress *progress, qkv_error *error) {
    const qkv_train_options *const o = t->options;
    while (t->step < o->n_steps) {
        const double rate = qkvi_schedule_rate(o->learning_rate, o->warmup, o->n_steps, t->step);
        qkv_status status = QKV_OK;
        double loss;
        QKV_TRY(run_step(t, progress, rate, error));
        if (is_due(t, o->report_every)) {
            QKV_TRY(qkvi_train_held_out(t, &loss, error));
            status = qkvi_progress_report(progress, t, rate, loss, error);
        }
        if (status == QKV_OK) status = check_cancel(t, error);
        if (status == QKV_ERR_CANCELLED || is_due(t, o->checkpoint_every))
            QKV_TRY(qkvi_checkpoint_save(t, o->out, error));
        if (status != QKV_OK) return status;
    }
    return QKV_OK;
}

/* After the last step: no gradient tells. */
static qkv_status check_weights(const qkvi_trainer *t, qkv_error *error) {
    for (size_t p = 0; p < t->table.n_elems; p++)
        if (!isfinite(t->params[p])) return diverged(t, t->step, "a weight", error);
    return QKV_OK;
}

static qkv_status train(qkvi_trainer *trainer, qkv_error *error) {
    qkvi_progress progress;
    QKV_TRY(qkvi_trainer_open(trainer, error));
    if (trainer->is_finished) return QKV_OK;
    QKV_TRY(qkvi_progress_begin(trainer, &progress, error));
    QKV_TRY(run_steps(trainer, &progress, error));
    QKV_TRY(check_weights(trainer, error));
    QKV_TRY(qkvi_trainer_save(trainer, error));
    qkvi_checkpoint_remove(trainer->options->out);
    return QKV_OK;
}

qkv_status qkv_train(qkv_ctx *ctx, const qkv_train_options *options, qkv_error *error) {
    qkv_train_options own = qkv_train_options_init();
    if (!ctx || !options)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", ctx ? "options" : "ctx");
    QKV_TRY(qkvi_options_read(&own, sizeof own, options, "qkv_train_options", error));
    if (own.accumulate == 0) own.accumulate = 1;
    if (own.eps == 0) own.eps = 1e-8;
    QKV_TRY(qkvi_train_options_check(&own, error));
    qkvi_weights_resolve((int)own.compute, &own.compute);
    qkvi_trainer trainer = { .ctx = ctx, .options = &own };
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    const qkv_status status = train(&trainer, error);
    qkvi_trainer_close(&trainer);
    qkvi_fpstate_leave(saved);
    return status;
}
