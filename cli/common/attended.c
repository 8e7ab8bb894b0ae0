/* Runs a model on one text: see attended.h. */
#include "common/attended.h"

#include <stdlib.h>
#include <string.h>

struct what_if_edges attended_edges(const struct attended *of) {
    const struct attention_view *const view = &of->view;
    return (struct what_if_edges){
        .which = view->which,
        .n_layers = view->n_layers,
        .n_heads = view->n_heads,
        .n_queries = view->queries.tokens->n,
        .n_keys = view->keys.tokens->n,
        .queries = view->which == QKV_SELF ? of->labels : of->pair.input_names,
        .keys = attended_keys(of),
        .causal = view->causal,
    };
}

qkv_status attended_open(struct attended *of, qkv_attention_kind which, const char *target,
                         const struct what_if *parsed, qkv_error *error) {
    const struct text given = { (char *)(uintptr_t)target, target ? strlen(target) : 0 };
    qkv_status status = session_labels(of->session, of->input, &of->labels, error);
    if (status == QKV_OK && which != QKV_SELF)
        status = pair_make(of->session, of->input, given, &of->pair, error);
    of->view = pair_view(of->session, of->input, &of->pair, which);
    of->what_if.run_options = qkv_run_options_init();
    if (status != QKV_OK || !parsed) return status;
    const struct what_if_edges edges = attended_edges(of);
    status = what_if_of_text(parsed, of->labels, of->input->n, &edges, &of->what_if, error);
    if (of->what_if.dropped) of->what_if.run_options.dropped = of->what_if.inputs;
    return status == QKV_OK ? pair_check_causal(&of->what_if, &of->view, error) : status;
}

qkv_status attended_run(struct attended *of, uint32_t flags, qkv_error *error) {
    struct progress_clock clock;
    progress_clock_begin(&clock, "running the model", of->session->common->quiet);
    const qkv_status status =
        pair_model_run(of->session, 1, &of->input, &of->pair, QKV_RUN_CAPTURE | flags,
                       &of->what_if.run_options, &of->run, error);
    progress_clock_end(&clock);
    if (status != QKV_OK) return status;
    return pair_heads(of->session, &of->view, of->run, 0, &of->heads, error);
}

/*
 * Of an image: what [CLS] looks at, or without it the patch in the middle, in the head of the last
 * layer that looks most sharply at a patch.
 */
static qkv_status choose_of_image(const struct attended *of, int64_t index,
                                  qkv_heads_choice *choice, qkv_error *error) {
    const qkv_image_tokens *const image = of->input->image;
    const int64_t n = of->input->n, across = of->view.n_heads,
                  first = index >= 0 ? index : (of->view.n_layers - 1) * across,
                  end = index >= 0 ? index + 1 : first + across,
                  query = image->n_prefix > 0
                              ? 0
                              : image->rows / 2 * image->columns + image->columns / 2;
    float *const weights = malloc((size_t)n * sizeof *weights + 1);
    if (!weights) return text_no_memory(error);
    qkv_status status = QKV_OK;
    for (int64_t h = first; h < end && status == QKV_OK; h++) {
        status = qkv_heads_weights(of->heads, h, query, query + 1, 0, n, weights, n, error);
        for (int64_t j = image->n_prefix; status == QKV_OK && j < n; j++) {
            if (choice->key >= 0 && !(weights[j] > choice->weight)) continue;
            choice->layer = h / across, choice->head = h % across;
            choice->query = query, choice->key = j, choice->weight = weights[j];
        }
    }
    if (index < 0)
        choice->rule = image->n_prefix > 0
                           ? "the head of the last layer in which [CLS] looks most at one patch"
                           : "the head of the last layer in which the patch in the middle looks "
                             "most at one patch";
    free(weights);
    return status;
}

qkv_status attended_choose(const struct attended *of, bool named, int64_t layer, int64_t head,
                           qkv_heads_choice *choice, qkv_error *error) {
    const int64_t index = named ? layer * of->view.n_heads + head : -1;
    *choice = qkv_heads_choice_init();
    choice->query = choice->key = -1;
    return of->input->image ? choose_of_image(of, index, choice, error)
                            : qkv_heads_choose(of->heads, index, choice, error);
}

char *const *attended_queries(const struct attended *of) {
    return of->pair.next ? of->pair.names : of->labels;
}

char *const *attended_keys(const struct attended *of) {
    return of->view.which == QKV_DECODER ? of->pair.input_names : of->labels;
}

void attended_free(struct attended *of) {
    session_labels_free(of->labels, of->labels ? of->input->n : 0);
    pair_free(&of->pair);
    qkv_heads_free(of->heads);
    qkv_run_free(of->run);
    what_if_free(&of->what_if);
}
