/*
 * What bench/models.py calls of us beside runs: steps of training and of greedy decoding, by the
 * functions that the trainer and `qkv generate` are made of.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/models_shim.h"
#include "core/alloc.h"
#include "model/arch/decoder.h"
#include "model/model_impl.h"
#include "train/adamw.h"

struct train {
    qkv_ctx *ctx;
    qkv_model *model;
    float *params, *grads, *m, *v;
    qkvi_net *net, *gradients;
    qkvi_net_pass *pass;
    qkvi_adamw adamw;
    int64_t t;
    qkv_error error;
};

static qkv_status fill(struct train *s, unsigned form) {
    const qkvi_param_table *const table = &s->model->params;
    float **const arenas[] = { &s->params, &s->grads, &s->m, &s->v };
    for (int i = 0; i < 4; i++)
        if (!(*arenas[i] = qkvi_params_arena(table))) return QKV_ERR_MEMORY;
    memcpy(s->params, s->model->arena, table->n_elems * sizeof *s->params);
    QKV_TRY(qkvi_net_bind(&s->model->info, table, s->params, form | QKVI_NET_BACKWARD, &s->net,
                          &s->error));
    QKV_TRY(qkvi_net_bind(&s->model->info, table, s->grads, 0, &s->gradients, &s->error));
    QKV_TRY(qkvi_net_pass_create(&s->pass, &s->error));
    QKV_TRY(qkvi_adamw_make(table, &s->adamw, &s->error));
    s->adamw.beta1 = 0.9;
    s->adamw.beta2 = 0.999;
    s->adamw.eps = 1e-8;
    s->adamw.weight_decay = 0.01;
    return QKV_OK;
}

/* NULL: something failed. */
struct train *train_open(const char *folder, int n_threads, int weights) {
    qkv_ctx_options options = qkv_ctx_options_init();
    struct train *s = calloc(1, sizeof *s);
    qkv_model_weights compute;
    options.n_threads = n_threads;
    if (!s || !qkvi_weights_resolve(weights, &compute) ||
        qkv_ctx_create(&options, &s->ctx, NULL) != QKV_OK ||
        qkvi_model_open_to_train(folder, &s->model, &s->error) != QKV_OK ||
        fill(s, qkvi_weights_form(compute)) != QKV_OK) {
        train_close(s);
        return NULL;
    }
    return s;
}

void train_close(struct train *s) {
    if (!s) return;
    float *const arenas[] = { s->params, s->grads, s->m, s->v };
    qkvi_adamw_free(&s->adamw);
    qkvi_net_pass_free(s->pass);
    qkvi_net_free(s->net);
    qkvi_net_free(s->gradients);
    for (int i = 0; i < 4; i++) free(arenas[i]);
    qkv_model_free(s->model);
    qkv_ctx_free(s->ctx);
    free(s);
}

/*
 * One step on ids [n][len], every token of them masked; the loss before it, negative for a failure.
 */
double train_step(struct train *s, int64_t n, int64_t len, const int32_t *ids) {
    qkvi_net_losses losses = { 0 };
    int64_t *lengths = malloc((size_t)n * sizeof *lengths);
    int64_t *tokens = malloc((size_t)(n * len) * sizeof *tokens);
    qkv_status status = lengths && tokens ? QKV_OK : QKV_ERR_MEMORY;
    if (status == QKV_OK) {
        for (int64_t b = 0; b < n; b++) lengths[b] = len;
        for (int64_t i = 0; i < n * len; i++) tokens[i] = i;
        const qkvi_net_batch batch = { .n_sequences = n,
                                       .lengths = lengths,
                                       .ids = ids,
                                       .n_targets = n * len,
                                       .target_tokens = tokens,
                                       .target_ids = ids };
        qkvi_net_pack(s->ctx, s->net);
        status = qkvi_net_loss(s->ctx, s->net, &batch, s->pass, s->gradients, &losses, &s->error);
        if (status == QKV_OK)
            qkvi_adamw_run(s->ctx, &s->adamw, ++s->t, 1e-5, s->grads, s->params, s->m, s->v);
    }
    free(lengths);
    free(tokens);
    return status == QKV_OK ? losses.mlm : -1;
}

/* ---- Decoding -------------------------------------------------------------------------------- */

/*
 * An empty sequence for at most max_len tokens in place of the one before; false: something failed.
 */
int model_begin(struct shim *shim, int64_t max_len) {
    const int64_t vocab = qkv_model_get_info(shim->model)->vocab_size;
    qkvi_decoder_free(shim->decoder);
    shim->decoder = NULL;
    if (!shim->logits) shim->logits = qkvi_aligned_array((size_t)vocab, sizeof *shim->logits);
    return shim->logits && qkvi_decoder_make(shim->ctx, shim->model->net, 1, max_len, 0, NULL,
                                             &shim->decoder, &shim->error) == QKV_OK;
}

/* n tokens at once; model_logits has what follows them. */
int model_prompt(struct shim *shim, int64_t n, const int32_t *ids) {
    return qkvi_decoder_prompt(shim->ctx, shim->decoder, 0, n, ids, shim->logits, &shim->error) ==
           QKV_OK;
}

/* n tokens one after the other. */
int model_steps(struct shim *shim, int64_t n, const int32_t *ids) {
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < n && status == QKV_OK; i++)
        status =
            qkvi_decoder_step(shim->ctx, shim->decoder, 1, ids + i, shim->logits, &shim->error);
    return status == QKV_OK;
}

/* [vocab] */
const float *model_logits(const struct shim *shim) { return shim->logits; }

void model_end(struct shim *shim) {
    qkvi_decoder_free(shim->decoder);
    free(shim->logits);
}

static int32_t greatest(const float *logits, int64_t n) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return (int32_t)best;
}

/* Appends n_new tokens to the n of ids, which has room for them; false: something failed. */
int model_decode(struct shim *shim, int64_t n, int64_t n_new, int32_t *ids) {
    const int64_t vocab = qkv_model_get_info(shim->model)->vocab_size;
    int worked = model_begin(shim, n + n_new) && model_prompt(shim, n, ids);
    for (int64_t i = 0; i < n_new && worked; i++) {
        ids[n + i] = greatest(shim->logits, vocab);
        if (i + 1 < n_new) worked = model_steps(shim, 1, &ids[n + i]);
    }
    return worked;
}
