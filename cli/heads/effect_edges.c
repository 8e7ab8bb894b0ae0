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

/* The mean ln p of the words: the lens reads the last layer as the model does. */
static qkv_status mean_log_p(const struct effect *effect, const qkv_run *run, double *mean,
                             qkv_error *error) {
    const struct session *const session = effect->session;
    const qkv_model_info *const info = session->info;
    const int64_t layer = info->kind == QKV_MODEL_PAIR ? info->n_decoder_layers : info->n_layers;
    double sum = 0;
    for (int64_t t = 0; t < effect->request.n_places; t++) {
        qkv_lens lens = qkv_lens_init();
        const qkv_status status =
            qkv_inspect_lens(session->ctx, session->model, run, effect->request.head, 0,
                             effect->positions[t], layer, effect->words[t], &lens, error);
        if (status != QKV_OK) return status;
        sum += lens.log_p;
    }
    *mean = sum / (double)effect->request.n_places;
    return QKV_OK;
}

static qkv_status cut_one(struct effect *effect, const struct what_if_edges *edges,
                          struct effect_edge *edge, qkv_error *error) {
    qkv_run_options options = qkv_run_options_init();
    struct what_if_cut cut;
    qkv_run *run = NULL;
    int64_t *list = NULL;
    double value;
    qkv_status status = what_if_cut_read("--edge", edge->name, edges, &cut, error);
    if (status == QKV_OK && !(list = calloc((size_t)cut.n, 4 * sizeof *list)))
        status = text_no_memory(error);
    if (status == QKV_OK) {
        what_if_cut_list(edges, &cut, list);
        edge->n = options.n_cuts = cut.n;
        options.cuts = list;
        options.cut_which = effect->which;
        status = pair_model_run(effect->session, 1, &effect->input, &effect->pair, 0, &options,
                                &run, error);
    }
    if (status == QKV_OK) status = mean_log_p(effect, run, &value, error);
    if (status == QKV_OK) {
        edge->nats = value - effect->value;
        edge->probability = exp(value) - exp(effect->value);
    }
    qkv_run_free(run);
    what_if_cut_free(&cut);
    free(list);
    return status;
}

qkv_status effect_edges(struct effect *effect, qkv_error *error) {
    const struct arg_texts *const names = &effect->options->edges;
    struct attended of;
    if (names->n == 0) return QKV_OK;
    effect->edges = calloc((size_t)names->n, sizeof *effect->edges);
    qkv_status status = open_edges(effect, &of, error);
    if (status == QKV_OK && !effect->edges) status = text_no_memory(error);
    const struct what_if_edges edges = attended_edges(&of);
    for (int e = 0; status == QKV_OK && e < names->n; e++) {
        effect->edges[e].name = names->list[e];
        effect->n_edges = e + 1;
        status = cli_cancelled ? text_error(error, QKV_ERR_CANCELLED, "nothing was written")
                               : cut_one(effect, &edges, &effect->edges[e], error);
    }
    session_labels_free(of.labels, of.labels ? effect->input->n : 0);
    return status;
}
