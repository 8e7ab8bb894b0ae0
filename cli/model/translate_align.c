/*
 * The source token that each token of a translation looks at most: weights of cross-attention, the
 * mean over all heads of all layers. Row i of the decoder predicts token i. Special tokens are left
 * out, since heads without anything to look at look at them.
 */
#include "model/model.h"

#include <stdlib.h>
#include <string.h>

/* [n_targets][n_sources] */
static qkv_status mean_weights(const struct session *session, const qkv_encoding *source,
                               const qkv_encoding *target, double *mean, qkv_error *error) {
    const qkv_model_info *const info = session->info;
    const size_t n = (size_t)(source->n * target->n);
    qkv_run *run = NULL;
    float *const weights = malloc(n * sizeof *weights);
    if (!weights) return text_no_memory(error);
    qkv_run_options options = qkv_run_options_init();
    options.targets = &target;
    qkv_status status = qkv_model_run(session->ctx, session->model, 1, &source, QKV_RUN_CAPTURE,
                                      &options, &run, error);
    const int64_t n_layers = info->n_decoder_layers, n_heads = info->n_decoder_heads;
    for (int64_t p = 0; status == QKV_OK && p < n_layers * n_heads; p++) {
        status = qkv_run_weights(run, QKV_CROSS, 0, p / n_heads, p % n_heads, weights, error);
        for (size_t i = 0; status == QKV_OK && i < n; i++)
            mean[i] += (double)weights[i] / (double)(n_layers * n_heads);
    }
    qkv_run_free(run);
    free(weights);
    return status;
}

static int64_t looked_at(const qkv_encoding *source, const double *row) {
    int64_t best = -1;
    for (int64_t j = 0; j < source->n; j++)
        if (!(source->special && source->special[j]) && (best < 0 || row[j] > row[best])) best = j;
    return best;
}

static bool is_special(const qkv_model_info *info, int32_t id) {
    return id == info->eos_id || id == info->bos_id || id == info->pad_id || id == info->start_id;
}

static qkv_status tell(struct writing *w, int32_t id, int32_t source, double weight, json_t *list,
                       qkv_error *error) {
    const struct session *const session = &w->job.session;
    char *const token = token_label(session->target, id);
    char *const seen = session_token(session, source);
    const bool all = token && seen;
    if (all && list) {
        json_array_append_new(list, json_set(NULL, "token:o source:o weight:n",
                                             token_json(session->target, id),
                                             token_json(session->tokenizer, source), weight));
    } else if (all) {
        fputs("    ", w->term.out);
        term_put(&w->term, token, 20, false);
        term_put(&w->term, seen, 20, false);
        fprintf(w->term.out, " %.3f\n", weight);
    }
    free(token);
    free(seen);
    return all ? QKV_OK : text_no_memory(error);
}

static qkv_status tell_all(struct writing *w, const qkv_encoding *source, const qkv_sequence *made,
                           const double *mean, json_t *list, qkv_error *error) {
    qkv_status status = QKV_OK;
    for (int64_t i = 0; status == QKV_OK && i < made->n; i++) {
        const double *const row = mean + i * source->n;
        const int64_t best = looked_at(source, row);
        if (best < 0 || is_special(w->job.session.info, made->ids[i])) continue;
        status = tell(w, made->ids[i], source->ids[best], row[best], list, error);
    }
    return status;
}

qkv_status translate_align(struct writing *w, const qkv_encoding *source, const qkv_sequence *made,
                           json_t *json, qkv_error *error) {
    const struct session *const session = &w->job.session;
    json_t *const list = json ? json_array() : NULL;
    if (json) json_object_set_new(json, "align", list);
    if (made->n == 0) return QKV_OK;
    int32_t *const ids = malloc((size_t)made->n * sizeof *ids);
    double *const mean = calloc((size_t)made->n, (size_t)source->n * sizeof *mean);
    const qkv_encoding target = { .n = made->n, .ids = ids };
    qkv_status status = ids && mean ? QKV_OK : text_no_memory(error);
    if (status == QKV_OK) { /* the token that it starts from, and all but the last */
        ids[0] = (int32_t)session->info->start_id;
        memcpy(ids + 1, made->ids, (size_t)(made->n - 1) * sizeof *ids);
        status = mean_weights(session, source, &target, mean, error);
    }
    if (status == QKV_OK) status = tell_all(w, source, made, mean, list, error);
    free(ids);
    free(mean);
    return status;
}
