/*
 * The training loop: each step makes examples, losses and gradients, a step of AdamW with clipping,
 * and packs the weights again. See trainer.h.
 */
#include "train/trainer.h"

#include <math.h>

#include "attn/ctx.h"
#include "core/cancel.h"
#include "core/fpstate.h"
#include "core/options.h"
#include "core/os.h"
#include "files/encode.h"
#include "train/adamw.h"
#include "train/run_fields.h"

/* ---- Progress -------------------------------------------------------------------------------- */

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

/* Begins the log of a run, unless its checkpoint had one. MEMORY. */
static qkv_status progress_begin(qkvi_trainer *trainer, qkvi_progress *progress, qkv_error *error) {
    *progress = (qkvi_progress){ .first_step = trainer->step };
    progress->started = progress->reported = qkvi_os_seconds();
    return trainer->log.n > 0 ? QKV_OK : put_header(trainer, error);
}

/* A step was done. */
static void progress_add(qkvi_progress *progress, qkvi_trainer *trainer,
                         const double losses[QKVI_TRAIN_LOSSES], int64_t n_tokens) {
    progress->n_tokens += n_tokens;
    trainer->sums.n_steps++;
    trainer->sums.n_tokens += n_tokens;
    for (int l = 0; l < QKVI_TRAIN_LOSSES; l++) trainer->sums.losses[l] += losses[l];
}

/* A tab and a loss, with a point in any locale. */
static size_t put_loss(char *text, size_t room, double loss) {
    char number[32];
    qkvi_number(number, sizeof number, isfinite(loss) ? loss : 0, 6);
    return (size_t)snprintf(text, room, "\t%s",
                            isfinite(loss) ? number
                            : isnan(loss)  ? "nan"
                                           : "inf");
}

static qkv_status log_line(qkvi_trainer *trainer, const qkv_train_report *report,
                           const double losses[QKVI_TRAIN_LOSSES], int64_t n_tokens,
                           qkv_error *error) {
    char line[400], number[32];
    size_t n = (size_t)snprintf(line, sizeof line, "%lld", (long long)report->step);
    n += put_loss(line + n, sizeof line - n, report->loss);
    for (int l = 0; trainer->objective->losses[l]; l++)
        n += put_loss(line + n, sizeof line - n, losses[l]);
    n += put_loss(line + n, sizeof line - n, report->held_out_loss);
    qkvi_digits(number, report->learning_rate, 6);
    snprintf(line + n, sizeof line - n, "\t%s\t%lld\n", number, (long long)n_tokens);
    return put(trainer, line, error);
}

/* Logs, begins new sums, and tells the caller; CANCELLED if it says so; MEMORY. */
static qkv_status progress_report(qkvi_progress *progress, qkvi_trainer *trainer, double rate,
                                  double held_out_loss, double right, qkv_error *error) {
    const qkv_train_options *const options = trainer->options;
    const qkvi_train_sums sums = trainer->sums;
    const double time = qkvi_os_seconds(), steps = (double)(sums.n_steps ? sums.n_steps : 1);
    const double done = (double)(trainer->step - progress->first_step);
    const double per_step = (time - progress->started) / (done > 0 ? done : 1);
    const double losses[QKVI_TRAIN_LOSSES] = { sums.losses[0] / steps, sums.losses[1] / steps };
    const int of_images = trainer->pictures != NULL;
    const int is_bert = options->kind == QKV_MODEL_ENCODER && !of_images;
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
        .lm_loss = is_bert || of_images ? 0 : losses[0],
        .of_images = of_images,
        .label_loss = of_images ? losses[0] : 0,
        .held_out_right = right
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

/* ---- A step ---------------------------------------------------------------------------------- */

static qkv_status diverged(const qkvi_trainer *t, int64_t step, const char *what,
                           qkv_error *error) {
    return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                          "step %lld: %s is not finite; a smaller learning_rate than %g may help",
                          (long long)step, what, t->options->learning_rate);
}

static qkv_status run_step(qkvi_trainer *t, qkvi_progress *progress, double rate,
                           qkv_error *error) {
    double losses[QKVI_TRAIN_LOSSES];
    const float *grads;
    int64_t n_tokens;
    QKV_TRY(qkvi_train_step(t, losses, &n_tokens, &grads, error));
    const double norm =
        qkvi_adamw_run(t->ctx, &t->adamw, t->step + 1, rate, grads, t->params, t->m, t->v);
    if (!isfinite(norm)) return diverged(t, t->step + 1, "the gradient", error);
    if (t->shares_moments) QKV_TRY(qkvi_peers_share(&t->ranks, t->params, error));
    qkvi_net_pack(t->ctx, t->weights);
    progress_add(progress, t, losses, n_tokens);
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

/* Rank 0 writes for all. */
static qkv_status save_checkpoint(qkvi_trainer *t, qkv_error *error) {
    qkv_status status = QKV_OK;
    QKV_TRY(qkvi_moments_gather(t, error));
    if (t->ranks.rank == 0) status = qkvi_checkpoint_save(t, t->options->out, error);
    return qkvi_peers_agree(&t->ranks, status, NULL, error);
}

/* What follows a step: what is told, whether anyone stops the run, and what is kept. */
static qkv_status end_step(qkvi_trainer *t, qkvi_progress *progress, double rate,
                           qkv_error *error) {
    const qkv_train_options *const o = t->options;
    qkv_status status = QKV_OK;
    qkv_error ignored;
    double loss, right;
    if (is_due(t, o->report_every)) {
        status = qkvi_train_held_out(t, &loss, &right, error);
        if (status == QKV_OK) status = progress_report(progress, t, rate, loss, right, error);
    }
    if (status == QKV_OK) status = check_cancel(t, error);
    status = qkvi_peers_agree(&t->ranks, status, NULL, error);
    if (status != QKV_OK && status != QKV_ERR_CANCELLED) return status;
    if (status == QKV_ERR_CANCELLED || is_due(t, o->checkpoint_every)) {
        const qkv_status saved = save_checkpoint(t, status == QKV_OK ? error : &ignored);
        if (saved != QKV_OK && status != QKV_OK && error) *error = ignored;
        if (saved != QKV_OK) return saved;
    }
    return status;
}

static qkv_status run_steps(qkvi_trainer *t, qkvi_progress *progress, qkv_error *error) {
    const qkv_train_options *const o = t->options;
    while (t->step < o->n_steps) {
        const double rate = qkvi_schedule_rate(o->learning_rate, o->warmup, o->n_steps, t->step);
        QKV_TRY(run_step(t, progress, rate, error));
        QKV_TRY(end_step(t, progress, rate, error));
    }
    return QKV_OK;
}

/* After the last step: no gradient tells. */
static qkv_status check_weights(const qkvi_trainer *t, qkv_error *error) {
    for (size_t p = 0; p < t->table.n_elems; p++)
        if (!isfinite(t->params[p])) return diverged(t, t->step, "a weight", error);
    return QKV_OK;
}

/* All that a run depends on, its weights included. */
static uint64_t hash_run(const qkvi_trainer *t) {
    qkvi_run_fields fields;
    qkvi_run_fields_of(t, &fields);
    uint64_t hash = qkvi_hash(QKVI_HASH_START, &fields, sizeof fields);
    hash = qkvi_hash(hash, &t->shares_moments, sizeof t->shares_moments);
    return t->params ? qkvi_hash(hash, t->params, t->table.n_elems * sizeof *t->params) : hash;
}

static uint64_t hash_files(uint64_t hash, const qkv_tokenizer *tokenizer) {
    uint64_t digest;
    for (int64_t i = 0; qkv_tokenizer_file(tokenizer, i, &digest); i++)
        hash = qkvi_hash(hash, &digest, sizeof digest);
    return hash;
}

/* Which tokens a text becomes is not in the run's fields. */
static qkv_status compare_runs(qkvi_trainer *t, qkv_error *error) {
    const uint64_t files =
        hash_files(hash_files(QKVI_HASH_START, t->tokenizer), t->target_tokenizer);
    if (t->ranks.size == 1) return QKV_OK;
    QKV_TRY(qkvi_peers_compare(&t->ranks, "other options, files or bf16", hash_run(t), error));
    return qkvi_peers_compare(&t->ranks, "other files of the tokenizer", files, error);
}

/* Opens the run on every rank; rank 0 then makes the folder. */
static qkv_status open_run(qkvi_trainer *t, qkv_error *error) {
    QKV_TRY(qkvi_peers_begin(&t->ranks, error));
    QKV_TRY(qkvi_peers_agree(&t->ranks, qkvi_trainer_open(t, error), NULL, error));
    QKV_TRY(compare_runs(t, error));
    const qkv_status status = t->ranks.rank == 0 ? qkvi_trainer_folder(t, error) : QKV_OK;
    return qkvi_peers_agree(&t->ranks, status, NULL, error);
}

/* By rank 0. */
static qkv_status save(const qkvi_trainer *t, qkv_error *error) {
    if (t->ranks.rank != 0) return QKV_OK;
    QKV_TRY(qkvi_trainer_save(t, error));
    qkvi_checkpoint_remove(t->options->out);
    return QKV_OK;
}

static qkv_status train(qkvi_trainer *trainer, qkv_error *error) {
    qkvi_progress progress;
    QKV_TRY(open_run(trainer, error));
    if (trainer->is_finished) return QKV_OK;
    QKV_TRY(progress_begin(trainer, &progress, error));
    QKV_TRY(run_steps(trainer, &progress, error));
    QKV_TRY(check_weights(trainer, error));
    return qkvi_peers_agree(&trainer->ranks, save(trainer, error), NULL, error);
}

qkv_status qkv_train(qkv_ctx *ctx, const qkv_train_options *options, qkv_error *error) {
    qkv_train_options own = qkv_train_options_init();
    if (!ctx || !options)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", ctx ? "options" : "ctx");
    QKV_TRY(qkvi_options_read(&own, sizeof own, options, "qkv_train_options", error));
    if (own.accumulate == 0) own.accumulate = 1;
    if (own.n_slices == 0) own.n_slices = 1;
    if (own.eps == 0) own.eps = 1e-8;
    qkv_ranks ranks = qkv_ranks_init();
    QKV_TRY(qkvi_peers_read(&own.ranks, &ranks, error));
    QKV_TRY(qkvi_train_options_check(&own, error));
    qkvi_weights_resolve((int)own.compute, &own.compute);
    qkvi_trainer trainer = { .ctx = ctx,
                             .options = &own,
                             .ranks = qkvi_peers_of(own.ranks, ctx->pool) };
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    const qkv_status status = train(&trainer, error);
    qkvi_trainer_close(&trainer);
    qkvi_fpstate_leave(saved);
    return status;
}
