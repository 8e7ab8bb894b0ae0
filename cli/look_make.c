/*
 * What `qkv look` knows about one text: runs the model once with capture, and once more as it is if
 * something is asked of it.
 */
#include <stdlib.h>
#include <string.h>

#include "look.h"

/* A model without an MLM head still looks. */
static qkv_status make_predictions(const struct look *look, const qkv_run *run,
                                   struct predictions *predictions, qkv_error *error) {
    if (!look->session->info->has_mlm) return QKV_OK;
    const int64_t top = look->options->top.set ? look->options->top.value : 5;
    return predictions_make(look->session, run, look->input, top, predictions, error);
}

/* The model as it is, to hold what follows from a question against. */
static qkv_status run_before(struct look *look, qkv_error *error) {
    const struct session *session = look->session;
    qkv_run *run = NULL;
    if (!look->what_if.any || !session->info->has_mlm) return QKV_OK;
    qkv_status status =
        qkv_model_run(session->ctx, session->model, 1, &look->input, 0, &run, error);
    if (status == QKV_OK) status = make_predictions(look, run, &look->before, error);
    qkv_run_free(run);
    return status;
}

static qkv_status run_model(struct look *look, const struct what_if *parsed, qkv_error *error) {
    const struct session *session = look->session;
    qkv_status status = session_labels(session, look->input, &look->labels, error);
    if (status == QKV_OK)
        status = what_if_of_text(parsed, look->labels, look->input->n, &look->what_if, error);
    if (status == QKV_OK) status = run_before(look, error);
    if (status != QKV_OK) return status;
    look->what_if.asked.dropped = look->what_if.dropped ? look->what_if.inputs : NULL;
    return qkv_model_run_what_if(session->ctx, session->model, 1, &look->input, QKV_RUN_CAPTURE,
                                 &look->what_if.asked, &look->run, error);
}

qkv_status look_make(struct look *look, const struct what_if *parsed, qkv_error *error) {
    const struct session *session = look->session;
    const qkv_model_info *info = session->info;
    look->stats = calloc((size_t)(info->n_layers * info->n_heads) + 1, sizeof(*look->stats));
    if (!look->stats) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    qkv_status status = run_model(look, parsed, error);
    if (status == QKV_OK) status = make_predictions(look, look->run, &look->predictions, error);
    if (status == QKV_OK)
        status = judge_make(session, look->run, look->input, &look->replaced, error);
    if (status == QKV_OK)
        status = qkv_inspect_heads(session->ctx, session->model, look->run, 0, look->input,
                                   look->stats, error);
    if (status == QKV_OK)
        status = choose_head(session, look->run, look->input, look->stats, look->given,
                             &look->choice, error);
    return status;
}

void look_free(struct look *look) {
    free(look->mean);
    free(look->replaced);
    session_labels_free(look->labels, look->labels ? look->input->n : 0);
    free(look->stats);
    predictions_free(&look->predictions);
    predictions_free(&look->before);
    what_if_free(&look->what_if);
    qkv_run_free(look->run);
    slide_free(look->slide);
}

qkv_status look_head_weights(const struct look *look, int64_t layer, int64_t head, float *weights,
                             qkv_error *error) {
    const int64_t n_weights = look->input->n * look->input->n;
    if (!look->mean) return qkv_run_weights(look->run, 0, layer, head, weights, error);
    memcpy(weights, look->mean + (layer * look->session->info->n_heads + head) * n_weights,
           (size_t)n_weights * sizeof *weights);
    return QKV_OK;
}
