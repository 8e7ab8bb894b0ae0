/*
 * A step of training: see trainer.h. Of the parts k of a step, with n_k targets and gradients g_k,
 *
 *     mean += (g_k - mean) n_k / (n_0 + … + n_k)
 *
 * in their order, so that after the last it is the mean by targets; so are the losses.
 */

#include "attn/ctx.h"
#include "core/rng.h"
#include "model/train/trainer.h"

enum { PURPOSE_DROPOUT = 0x64726f70 /* "drop" */ };

/* What is dropped is a function of the seed and of the part's number. */
static uint64_t dropout_seed(const qkvi_trainer *t, int64_t part) {
    qkvi_rng rng = qkvi_rng_make(t->options->seed, PURPOSE_DROPOUT, (uint64_t)part);
    const uint64_t high = qkvi_rng_u32(&rng);
    return high << 32 | qkvi_rng_u32(&rng);
}

static void take_losses(const qkvi_net_losses *from, double losses[QKVI_TRAIN_LOSSES]) {
    losses[0] = from->mlm + from->lm; /* a model has one of the two */
    losses[1] = from->nsp;
}

typedef struct mean_job {
    const qkvi_adamw *adamw;
    const float *grads;
    float *mean, share;
} mean_job;

static void mean_chunk(void *argument, int index) {
    const mean_job *const j = argument;
    const qkvi_adamw_chunk *const chunk = &j->adamw->chunks[index];
    const float *const g = j->grads + chunk->offset;
    float *const mean = j->mean + chunk->offset;
    for (size_t i = 0; i < chunk->n; i++) mean[i] += (g[i] - mean[i]) * j->share;
}

/* Adds a part to the means of gradients and losses. */
static void add_part(qkvi_trainer *t, const double part[QKVI_TRAIN_LOSSES], double share,
                     double losses[QKVI_TRAIN_LOSSES]) {
    mean_job job = { &t->adamw, t->grads, t->mean, (float)share };
    qkvi_pool_run(t->ctx->pool, t->adamw.n_chunks, mean_chunk, &job);
    for (int l = 0; l < QKVI_TRAIN_LOSSES; l++) losses[l] += (part[l] - losses[l]) * share;
}

static qkv_status run_part(qkvi_trainer *t, int64_t number, double losses[QKVI_TRAIN_LOSSES],
                           qkv_error *error) {
    const qkv_train_options *const o = t->options;
    qkvi_net_losses found;
    QKV_TRY(qkvi_examples_fill(t->ctx, &t->examples, QKVI_SPLIT_TRAIN, number * o->batch, o->batch,
                               &t->batch, error));
    t->batch.view.dropout = (float)o->dropout;
    t->batch.view.dropout_seed = dropout_seed(t, number);
    t->batch.view.label_smoothing = o->label_smoothing;
    QKV_TRY(
        qkvi_net_loss(t->ctx, t->weights, &t->batch.view, t->pass, t->gradients, &found, error));
    take_losses(&found, losses);
    return QKV_OK;
}

qkv_status qkvi_train_step(qkvi_trainer *t, double losses[QKVI_TRAIN_LOSSES], int64_t *n_tokens,
                           qkv_error *error) {
    const int64_t n_parts = t->mean ? t->options->accumulate : 1;
    double n_targets = 0;
    *n_tokens = 0;
    if (t->mean) memset(t->mean, 0, t->table.n_elems * sizeof *t->mean);
    memset(losses, 0, QKVI_TRAIN_LOSSES * sizeof *losses);
    for (int64_t p = 0; p < n_parts; p++) {
        double part[QKVI_TRAIN_LOSSES];
        QKV_TRY(run_part(t, t->step * n_parts + p, part, error));
        const double n = (double)t->batch.view.n_targets;
        *n_tokens += t->batch.n_tokens + t->batch.n_decoder_tokens;
        n_targets += n;
        if (t->mean)
            add_part(t, part, n_targets > 0 ? n / n_targets : 1.0 / (double)(p + 1), losses);
        else
            memcpy(losses, part, sizeof part);
    }
    return QKV_OK;
}

qkv_status qkvi_train_held_out(qkvi_trainer *t, double *loss, qkv_error *error) {
    const int64_t pairs = qkvi_corpus_held_out_pairs(t->corpus);
    qkvi_net_losses found = { 0 };
    double losses[QKVI_TRAIN_LOSSES];
    QKV_TRY(qkvi_examples_fill(t->ctx, &t->examples, QKVI_SPLIT_HELD_OUT, 0,
                               pairs < QKVI_HELD_OUT_PAIRS ? pairs : QKVI_HELD_OUT_PAIRS, &t->batch,
                               error));
    t->batch.view.dropout = 0;
    t->batch.view.label_smoothing = 0;
    if (pairs > 0)
        QKV_TRY(qkvi_net_loss(t->ctx, t->weights, &t->batch.view, t->pass, NULL, &found, error));
    take_losses(&found, losses);
    *loss = losses[0] + losses[1];
    return QKV_OK;
}
