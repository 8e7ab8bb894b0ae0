/*
 * What `qkv look` knows about one text: runs the model once with capture, and once more as it is if
 * something is asked of it.
 */
#include <math.h>
#include <stdlib.h>

#include "common/term.h"
#include "look/look.h"

/* A model without a head for it still looks. */
static qkv_status make_predictions(const struct look *look, const qkv_run *run,
                                   struct predictions *predictions, qkv_error *error) {
    const qkv_model_info *info = look->text.session->info;
    if (info->kind == QKV_MODEL_DECODER && info->has_lm && look->text.input->n > 0)
        return predictions_next(look->text.session, run, look->text.input->n - 1, look_top(look),
                                predictions, error);
    if (!info->has_mlm) return QKV_OK;
    return predictions_make(look->text.session, run, look->text.input, look_top(look), predictions,
                            error);
}

/* How a decoder expected the text, or the target of a pair. */
static qkv_status make_expected(struct look *look, const qkv_run *run, qkv_error *error) {
    const struct session *session = look->text.session;
    const bool is_pair = look->text.pair.next != NULL;
    const int64_t n = look->n_rows;
    if (!session->info->has_lm || !(is_pair || session->info->kind == QKV_MODEL_DECODER))
        return QKV_OK;
    int32_t *next = malloc((size_t)n * sizeof *next + 1);
    look->log_p = malloc((size_t)n * sizeof *look->log_p + 1);
    for (int64_t i = 0; next && i < n; i++)
        next[i] = is_pair     ? look->text.pair.next->ids[i]
                  : i + 1 < n ? look->text.input->ids[i + 1]
                              : -1;
    const qkv_status status =
        next && look->log_p
            ? qkv_inspect_expected(session->ctx, session->model, run, 0, next, look->log_p, error)
            : text_no_memory(error);
    free(next);
    return status;
}

double look_perplexity(const struct look *look, int64_t *n) {
    double sum = 0;
    *n = 0;
    for (int64_t i = 0; look->log_p && i < look->n_rows; i++) {
        if (!look->text.pair.next && i + 1 == look->n_rows) break; /* no next token is known */
        sum -= look->log_p[i];
        ++*n;
    }
    return *n ? exp(sum / (double)*n) : 0;
}

/* The model as it is, to hold what follows from a question against. */
static qkv_status run_before(struct look *look, qkv_error *error) {
    const struct attended *text = &look->text;
    const qkv_model_info *info = text->session->info;
    qkv_run *run = NULL;
    if (!text->what_if.any || !(info->has_mlm || info->kind == QKV_MODEL_DECODER)) return QKV_OK;
    qkv_status status =
        pair_model_run(text->session, 1, &text->input, &text->pair, 0, NULL, &run, error);
    if (status == QKV_OK) status = make_predictions(look, run, &look->before, error);
    qkv_run_free(run);
    return status;
}

/* Tokens of a text look at each other; those of a pair's decoder at themselves or the text. */
static qkv_status begin(struct look *look, const struct what_if *parsed, qkv_error *error) {
    struct attended *text = &look->text;
    const struct look_options *options = look->options;
    const qkv_status status =
        attended_open(text, look_which(options), options->which.target, parsed, error);
    look->n_rows = text->view.queries.tokens->n;
    look->n_cols = text->view.keys.tokens->n;
    look->rows = text->pair.next ? text->pair.names : text->labels;
    look->cols = text->view.which == QKV_DECODER ? text->pair.input_names : text->labels;
    return status;
}

qkv_status look_make(struct look *look, const struct what_if *parsed, qkv_error *error) {
    struct attended *text = &look->text;
    qkv_status status = begin(look, parsed, error);
    if (status == QKV_OK) status = run_before(look, error);
    if (status == QKV_OK)
        status = attended_run(text, look->options->lens ? QKV_RUN_HIDDEN : 0, error);
    if (status == QKV_OK) status = make_predictions(look, text->run, &look->predictions, error);
    if (status == QKV_OK) status = make_expected(look, text->run, error);
    if (status == QKV_OK)
        status = replaced_make(text->session, text->run, text->input, &look->replaced, error);
    if (status == QKV_OK) status = labels_make(text->session, text->run, &look->labels, error);
    look->choice.struct_size = sizeof look->choice; /* a head that was given stays */
    if (status == QKV_OK)
        status = qkv_heads_choose(text->heads, look->given ? look_chosen(look) : -1, &look->choice,
                                  error);
    if (status == QKV_OK && look->options->align) status = look_align(look, error);
    return status;
}

void look_free_text(struct look *look) {
    free(look->labels);
    free(look->replaced);
    free(look->log_p);
    look_align_free(look->alignment);
    predictions_free(&look->predictions);
    predictions_free(&look->before);
    attended_free(&look->text);
}
