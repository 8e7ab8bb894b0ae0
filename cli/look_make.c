/*
 * What `qkv look` knows about one text: runs the model once with capture, and once more as it is if
 * something is asked of it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "look.h"

static int64_t top_of(const struct look *look) {
    return look->options->top.set ? look->options->top.value : 5;
}

/* A model without a head for it still looks. */
static qkv_status make_predictions(const struct look *look, const qkv_run *run,
                                   struct predictions *predictions, qkv_error *error) {
    const qkv_model_info *info = look->session->info;
    if (info->is_decoder && info->has_lm && look->input->n > 0)
        return predictions_next(look->session, run, look->input->n - 1, top_of(look), predictions,
                                error);
    if (!info->has_mlm) return QKV_OK;
    return predictions_make(look->session, run, look->input, top_of(look), predictions, error);
}

/* How a decoder expected the text, or the target of a pair. */
static qkv_status make_expected(struct look *look, const qkv_run *run, qkv_error *error) {
    const struct session *session = look->session;
    const bool is_pair = look->pair.next != NULL;
    const int64_t n = look->n_rows;
    if (!session->info->has_lm || !(is_pair || session->info->is_decoder)) return QKV_OK;
    int32_t *next = malloc((size_t)n * sizeof *next + 1);
    look->log_p = malloc((size_t)n * sizeof *look->log_p + 1);
    for (int64_t i = 0; next && i < n; i++)
        next[i] = is_pair ? look->pair.next->ids[i] : i + 1 < n ? look->input->ids[i + 1] : -1;
    const qkv_status status =
        next && look->log_p
            ? qkv_inspect_expected(session->ctx, session->model, run, 0, next, look->log_p, error)
            : text_error(error, QKV_ERR_MEMORY, "out of memory");
    free(next);
    return status;
}

double look_perplexity(const struct look *look, int64_t *n) {
    double sum = 0;
    *n = 0;
    for (int64_t i = 0; look->log_p && i < look->n_rows; i++) {
        if (!look->pair.next && i + 1 == look->n_rows) break; /* nobody knows what comes */
        sum -= look->log_p[i];
        ++*n;
    }
    return *n ? exp(sum / (double)*n) : 0;
}

static qkv_status run_once(const struct look *look, uint32_t flags, const qkv_what_if *what_if,
                           qkv_run **run, qkv_error *error) {
    return pair_model_run(look->session, 1, &look->input, &look->pair, flags, what_if, run, error);
}

/* The model as it is, to hold what follows from a question against. */
static qkv_status run_before(struct look *look, qkv_error *error) {
    const qkv_model_info *info = look->session->info;
    qkv_run *run = NULL;
    if (!look->what_if.any || !(info->has_mlm || info->is_decoder)) return QKV_OK;
    qkv_status status = run_once(look, 0, NULL, &run, error);
    if (status == QKV_OK) status = make_predictions(look, run, &look->before, error);
    qkv_run_free(run);
    return status;
}

static qkv_status run_model(struct look *look, const struct what_if *parsed, qkv_error *error) {
    qkv_status status =
        what_if_of_text(parsed, look->labels, look->input->n, &look->what_if, error);
    if (status == QKV_OK) status = pair_check_causal(&look->what_if, &look->view, error);
    if (status == QKV_OK) status = run_before(look, error);
    if (status != QKV_OK) return status;
    look->what_if.asked.dropped = look->what_if.dropped ? look->what_if.inputs : NULL;
    look->causal =
        look->view.causal || (look->what_if.asked.causal && look->view.which == QKV_SELF);
    return run_once(look, QKV_RUN_CAPTURE, &look->what_if.asked, &look->run, error);
}

/* Of a text alone its tokens look at each other; of a pair its decoder's, at themselves or at the text. */
static qkv_status take_view(struct look *look, qkv_error *error) {
    const char *target = look->options->which.target;
    const struct text given = { (char *)(uintptr_t)target, target ? strlen(target) : 0 };
    qkv_status status = session_labels(look->session, look->input, &look->labels, error);
    if (status == QKV_OK && look_pair_option(look->options))
        status = pair_make(look->session, look->input, given, &look->pair, error);
    look->view = pair_view(look->session, look->input, &look->pair, look_which(look->options));
    look->n_rows = look->view.queries.tokens->n;
    look->n_cols = look->view.keys.tokens->n;
    look->rows = look->pair.next ? look->pair.names : look->labels;
    look->cols = look->view.which == QKV_DECODER ? look->pair.input_names : look->labels;
    return status;
}

static qkv_status make_stats(struct look *look, qkv_error *error) {
    const struct session *session = look->session;
    look->stats = calloc((size_t)look_n_heads(look) + 1, sizeof(*look->stats));
    if (!look->stats) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    return qkv_inspect_heads_of(session->ctx, session->model, look->run, look->view.which, 0,
                                &look->view.queries, &look->view.keys, look->stats, error);
}

qkv_status look_make(struct look *look, const struct what_if *parsed, qkv_error *error) {
    const struct session *session = look->session;
    qkv_status status = take_view(look, error);
    if (status == QKV_OK) status = run_model(look, parsed, error);
    if (status == QKV_OK) status = make_predictions(look, look->run, &look->predictions, error);
    if (status == QKV_OK) status = make_expected(look, look->run, error);
    if (status == QKV_OK)
        status = judge_make(session, look->run, look->input, &look->replaced, error);
    if (status == QKV_OK) status = make_stats(look, error);
    if (status == QKV_OK)
        status = choose_head(session, look->run, &look->view, look->stats, look->given,
                             &look->choice, error);
    if (status == QKV_OK && look->options->align) status = look_align(look, error);
    return status;
}

void look_free(struct look *look) {
    free(look->mean);
    free(look->replaced);
    free(look->log_p);
    session_labels_free(look->labels, look->labels ? look->input->n : 0);
    look_align_free(look->alignment);
    pair_free(&look->pair);
    free(look->stats);
    predictions_free(&look->predictions);
    predictions_free(&look->before);
    what_if_free(&look->what_if);
    qkv_run_free(look->run);
    slide_free(look->slide);
}

qkv_status look_head_weights(const struct look *look, int64_t layer, int64_t head, float *weights,
                             qkv_error *error) {
    const int64_t n_weights = look->n_rows * look->n_cols;
    if (!look->mean)
        return qkv_run_weights_of(look->run, look->view.which, 0, layer, head, weights, error);
    memcpy(weights, look->mean + (layer * look->view.n_heads + head) * n_weights,
           (size_t)n_weights * sizeof *weights);
    return QKV_OK;
}

/* What was dropped are tokens of the text, which are no keys of a decoder's own. */
bool look_sees(const struct look *look, int64_t row, int64_t col) {
    const uint8_t *dropped = look->view.which == QKV_DECODER ? NULL : look->what_if.dropped;
    return !(look->causal && col > row) && !(dropped && dropped[col]);
}

void look_hide(const struct look *look, float *weights) {
    for (int64_t i = 0; i < look->n_rows; i++)
        for (int64_t j = 0; j < look->n_cols; j++)
            if (!look_sees(look, i, j)) weights[i * look->n_cols + j] = MAP_HIDDEN;
}

void look_head_name(const struct look *look, char name[HEAD_NAME]) {
    attention_head(look->session, look->view.which, look->choice.layer, look->choice.head, name);
}
