/* Runs a model on one text: see attended.h. */
#include "common/attended.h"

#include <string.h>

qkv_status attended_open(struct attended *of, qkv_attention_kind which, const char *target,
                         const struct what_if *parsed, qkv_error *error) {
    const struct text given = { (char *)(uintptr_t)target, target ? strlen(target) : 0 };
    qkv_status status = session_labels(of->session, of->input, &of->labels, error);
    if (status == QKV_OK && which != QKV_SELF)
        status = pair_make(of->session, of->input, given, &of->pair, error);
    of->view = pair_view(of->session, of->input, &of->pair, which);
    of->what_if.asked = qkv_run_options_init();
    if (status != QKV_OK || !parsed) return status;
    status = what_if_of_text(parsed, of->labels, of->input->n, &of->what_if, error);
    if (of->what_if.dropped) of->what_if.asked.dropped = of->what_if.inputs;
    return status == QKV_OK ? pair_check_causal(&of->what_if, &of->view, error) : status;
}

qkv_status attended_run(struct attended *of, uint32_t flags, qkv_error *error) {
    struct progress_clock clock;
    progress_clock_begin(&clock, "running the model", of->session->common->quiet);
    const qkv_status status =
        pair_model_run(of->session, 1, &of->input, &of->pair, QKV_RUN_CAPTURE | flags,
                       &of->what_if.asked, &of->run, error);
    progress_clock_end(&clock);
    if (status != QKV_OK) return status;
    return pair_heads(of->session, &of->view, of->run, 0, &of->heads, error);
}

qkv_status attended_choose(const struct attended *of, bool named, int64_t layer, int64_t head,
                           qkv_heads_choice *choice, qkv_error *error) {
    *choice = qkv_heads_choice_init();
    return qkv_heads_choose(of->heads, named ? layer * of->view.n_heads + head : -1, choice, error);
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
