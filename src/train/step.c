/*
 * A step of training: see trainer.h. The slices i of a part have gradients g_i, each divided by the
 * number of targets of the whole part; the gradient of the part is (g_0 + g_1) + …. The parts k of
 * a step, with n_k targets and gradients g_k, are combined in their order:
 *
 *     mean += (g_k - mean) n_k / (n_0 + … + n_k)
 *
 * which is at last their mean, weighted by targets. Losses are combined in the same way.
 */
#include "attn/ctx.h"
#include "core/rng.h"
#include "train/trainer.h"

enum { PURPOSE_DROPOUT = 0x64726f70 /* "drop" */ };

/* What is dropped is a function of the seed and of the slice's number. */
static uint64_t dropout_seed(const qkvi_trainer *t, int64_t slice) {
    qkvi_rng rng = qkvi_rng_make(t->options->seed, PURPOSE_DROPOUT, (uint64_t)slice);
    const uint64_t high = qkvi_rng_u32(&rng);
    return high << 32 | qkvi_rng_u32(&rng);
}

static void take_losses(const qkvi_net_losses *from, double losses[QKVI_TRAIN_LOSSES]) {
    losses[0] = from->mlm + from->lm + from->label; /* a model has one of the three */
    losses[1] = from->nsp;
}

/* ---- Sums of gradients ----------------------------------------------------------------------- */

typedef struct grads_job {
    const qkvi_adamw *adamw;
    const float *grads;
    float *to, share;
} grads_job;

static void mean_chunk(void *argument, int index) {
    const grads_job *const j = argument;
    const qkvi_adamw_chunk *const chunk = &j->adamw->chunks[index];
    const float *const g = j->grads + chunk->offset;
    float *const mean = j->to + chunk->offset;
    for (size_t i = 0; i < chunk->n; i++) mean[i] += (g[i] - mean[i]) * j->share;
}

/* Adds a part to the means of gradients and losses. */
static void add_part(qkvi_trainer *t, const double part[QKVI_TRAIN_LOSSES], double share,
                     double losses[QKVI_TRAIN_LOSSES]) {
    grads_job job = { &t->adamw, t->sum ? t->sum : t->grads, t->mean, (float)share };
    qkvi_pool_run(t->ctx->pool, t->adamw.n_chunks, mean_chunk, &job);
    for (int l = 0; l < QKVI_TRAIN_LOSSES; l++) losses[l] += (part[l] - losses[l]) * share;
}

/* ---- Slices ---------------------------------------------------------------------------------- */

/* Of the examples that were drawn last. */
typedef struct part_size {
    int64_t n_targets, n_labels, n_tokens;
} part_size;

static part_size measure(const qkvi_trainer *t) {
    part_size size = { 0 };
    for (int64_t s = 0; s < t->options->batch; s++) {
        const qkvi_example *const example = &t->examples.slots[s];
        size.n_targets += example->n_targets;
        size.n_labels += example->label >= 0;
        size.n_tokens += example->n + example->n_decoder;
    }
    return size;
}

/*
 * The losses and, in trainer->grads, the gradient of a slice of the examples that were drawn last.
 */
static qkv_status run_slice(qkvi_trainer *t, const part_size *part, int64_t number, int64_t slice,
                            double losses[QKVI_TRAIN_LOSSES], qkv_error *error) {
    const qkv_train_options *const o = t->options;
    qkvi_net_batch *const view = &t->batch.view;
    qkvi_net_losses found;
    qkvi_examples_take(&t->examples, o->batch * slice / o->n_slices,
                       o->batch * (slice + 1) / o->n_slices, &t->batch);
    view->whole_targets = part->n_targets;
    view->whole_labels = part->n_labels;
    view->dropout = (float)o->dropout;
    view->dropout_seed = dropout_seed(t, number * o->n_slices + slice);
    view->label_smoothing = o->label_smoothing;
    QKV_TRY(qkvi_net_loss(t->ctx, t->weights, view, t->pass, t->gradients, &found, error));
    take_losses(&found, losses);
    return QKV_OK;
}

/* ---- Parts ----------------------------------------------------------------------------------- */

/* Rank r has the slices r, r + n_ranks, …: one of each turn. */
static qkv_status run_turn(qkvi_trainer *t, const part_size *part, int64_t number, int64_t first,
                           double losses[QKVI_TRAIN_LOSSES], qkv_error *error) {
    qkvi_peers *const ranks = &t->ranks;
    const int64_t mine = first + ranks->rank, left = t->options->n_slices - first;
    const int n = left < ranks->size ? (int)left : ranks->size;
    double own[QKVI_TRAIN_LOSSES] = { 0 };
    qkv_status status = QKV_OK;
    if (ranks->rank < n) status = run_slice(t, part, number, mine, own, error);
    QKV_TRY(qkvi_peers_agree(ranks, status, own, error));
    if (t->sum) QKV_TRY(qkvi_peers_add(ranks, n, t->grads, t->sum, error));
    for (int r = 0; r < n; r++)
        for (int l = 0; l < QKVI_TRAIN_LOSSES; l++) losses[l] += ranks->records[r].values[l];
    return QKV_OK;
}

static qkv_status draw(qkvi_trainer *t, int64_t number, qkv_error *error) {
    const int64_t batch = t->options->batch;
    const qkv_status status =
        qkvi_examples_draw(t->ctx, &t->examples, QKVI_SPLIT_TRAIN, number * batch, batch, error);
    return qkvi_peers_agree(&t->ranks, status, NULL, error);
}

static qkv_status run_part(qkvi_trainer *t, int64_t number, part_size *size,
                           double losses[QKVI_TRAIN_LOSSES], qkv_error *error) {
    QKV_TRY(draw(t, number, error));
    *size = measure(t);
    memset(losses, 0, QKVI_TRAIN_LOSSES * sizeof *losses);
    if (t->sum) memset(t->sum, 0, t->table.n_elems * sizeof *t->sum);
    for (int64_t first = 0; first < t->options->n_slices; first += t->ranks.size)
        QKV_TRY(run_turn(t, size, number, first, losses, error));
    return t->sum ? qkvi_peers_share(&t->ranks, t->sum, error) : QKV_OK;
}

/* The gradient of a step is the mean of those of its parts, each by its number of targets. */
qkv_status qkvi_train_step(qkvi_trainer *t, double losses[QKVI_TRAIN_LOSSES], int64_t *n_tokens,
                           const float **grads, qkv_error *error) {
    const int64_t n_parts = t->mean ? t->options->accumulate : 1;
    double n_targets = 0;
    *n_tokens = 0;
    *grads = t->mean ? t->mean : t->sum ? t->sum : t->grads;
    if (t->mean) memset(t->mean, 0, t->table.n_elems * sizeof *t->mean);
    memset(losses, 0, QKVI_TRAIN_LOSSES * sizeof *losses);
    for (int64_t p = 0; p < n_parts; p++) {
        double part[QKVI_TRAIN_LOSSES];
        part_size size;
        QKV_TRY(run_part(t, t->step * n_parts + p, &size, part, error));
        const double n = (double)size.n_targets;
        *n_tokens += size.n_tokens;
        n_targets += n;
        if (t->mean)
            add_part(t, part, n_targets > 0 ? n / n_targets : 1.0 / (double)(p + 1), losses);
        else
            memcpy(losses, part, sizeof part);
    }
    return QKV_OK;
}

qkv_status qkvi_train_held_out(qkvi_trainer *t, double *loss, double *right, qkv_error *error) {
    const int64_t pairs =
        t->pictures ? qkvi_pictures_n_held_out(t->pictures) : qkvi_corpus_held_out_pairs(t->corpus);
    qkvi_net_batch *const view = &t->batch.view;
    qkvi_net_losses found = { 0 };
    double losses[QKVI_TRAIN_LOSSES];
    QKV_TRY(qkvi_examples_fill(t->ctx, &t->examples, QKVI_SPLIT_HELD_OUT, 0,
                               pairs < QKVI_HELD_OUT_PAIRS ? pairs : QKVI_HELD_OUT_PAIRS, &t->batch,
                               error));
    view->whole_targets = view->whole_labels = 0;
    view->dropout = 0;
    view->label_smoothing = 0;
    if (pairs > 0) QKV_TRY(qkvi_net_loss(t->ctx, t->weights, view, t->pass, NULL, &found, error));
    take_losses(&found, losses);
    *loss = losses[0] + losses[1];
    *right = found.n_label > 0 ? (double)found.n_label_right / (double)found.n_label : 0;
    return QKV_OK;
}
