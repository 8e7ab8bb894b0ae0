/*
 * `qkv heads --effect --edge QUERY>KEY[@L.H]`: what edges are worth. The model runs again with an
 * edge cut, in one head, in all heads of a layer, or everywhere; the weights of the query on its
 * other keys grow, and all that follows is computed anew.
 */
#include <math.h>
#include <stdlib.h>

#include "heads/effect.h"

/* The names of tokens, and which attention has the edges. */
static qkv_status open_edges(const struct effect *effect, struct attended *of, qkv_error *error) {
    *of = (struct attended){ .session = effect->session, .input = effect->input };
    of->pair = effect->pair;
    of->view = pair_view(effect->session, effect->input, &effect->pair, effect->which);
    return session_labels(effect->session, effect->input, &of->labels, error);
}

/* ln softmax of the word at each place. */
static qkv_status measure(const struct effect *effect, const qkv_run *run, float *logits,
                          double *sum, qkv_error *error) {
    const struct session *const session = effect->session;
    const qkv_model_info *const info = session->info;
    const int64_t n = effect->asked.head == QKV_HEAD_NEXT && info->target_vocab_size > 0
                          ? info->target_vocab_size
                          : info->vocab_size;
    *sum = 0;
    for (int64_t t = 0; t < effect->asked.n_places; t++) {
        const qkv_status status =
            qkv_model_logits(session->ctx, session->model, run, effect->asked.head, 0,
                             effect->positions[t], logits, error);
        if (status != QKV_OK) return status;
        double largest = -INFINITY, all = 0;
        for (int64_t w = 0; w < n; w++)
            if ((double)logits[w] > largest) largest = (double)logits[w];
        for (int64_t w = 0; w < n; w++) all += exp((double)logits[w] - largest);
        *sum += (double)logits[effect->words[t]] - largest - log(all);
    }
    return QKV_OK;
}

static qkv_status cut_one(struct effect *effect, const struct what_if_edges *edges,
                          struct effect_edge *edge, float *logits, qkv_error *error) {
    qkv_run_options asked = qkv_run_options_init();
    struct what_if_cut cut;
    qkv_run *run = NULL;
    int64_t *list = NULL;
    double sum;
    qkv_status status = what_if_cut_read("--edge", edge->name, edges, &cut, error);
    if (status == QKV_OK && !(list = calloc((size_t)cut.n, 4 * sizeof *list)))
        status = text_no_memory(error);
    if (status == QKV_OK) {
        what_if_cut_list(edges, &cut, list);
        edge->n = asked.n_cuts = cut.n;
        asked.cuts = list;
        asked.cut_which = effect->which;
        status = pair_model_run(effect->session, 1, &effect->input, &effect->pair, 0, &asked, &run,
                                error);
    }
    if (status == QKV_OK) status = measure(effect, run, logits, &sum, error);
    if (status == QKV_OK) {
        const double value = sum / (double)effect->asked.n_places;
        edge->nats = value - effect->value;
        edge->probability = exp(value) - exp(effect->value);
    }
    qkv_run_free(run);
    what_if_cut_free(&cut);
    free(list);
    return status;
}

qkv_status effect_edges(struct effect *effect, qkv_error *error) {
    const struct arg_texts *const asked = &effect->options->edges;
    const qkv_model_info *const info = effect->session->info;
    const int64_t most =
        info->target_vocab_size > info->vocab_size ? info->target_vocab_size : info->vocab_size;
    struct attended of;
    if (asked->n == 0) return QKV_OK;
    effect->edges = calloc((size_t)asked->n, sizeof *effect->edges);
    float *const logits = calloc((size_t)most, sizeof *logits);
    qkv_status status = open_edges(effect, &of, error);
    if (status == QKV_OK && (!effect->edges || !logits)) status = text_no_memory(error);
    const struct what_if_edges edges = attended_edges(&of);
    for (int e = 0; status == QKV_OK && e < asked->n; e++) {
        effect->edges[e].name = asked->list[e];
        effect->n_edges = e + 1;
        status = cli_cancelled ? text_error(error, QKV_ERR_CANCELLED, "nothing was written")
                               : cut_one(effect, &edges, &effect->edges[e], logits, error);
    }
    session_labels_free(of.labels, of.labels ? effect->input->n : 0);
    free(logits);
    return status;
}
