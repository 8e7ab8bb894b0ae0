/* A text through a model: see text.h. */
#include "look/text.h"

#include <stdlib.h>

void text_begin(struct text_seen *t, const struct text_job *job, const qkv_encoding *input,
                const struct head_name *list, int n_list) {
    const struct look_options *const options = job->options;
    *t = (struct text_seen){ .seen = { .common = &options->common,
                                       .sink = &options->sink,
                                       .ctx = job->session.ctx,
                                       .said = { job->said[0], job->said[1] },
                                       .by_name = job->given,
                                       .choice = { .layer = job->layer, .head = job->head },
                                       .in_layers = true,
                                       .own_windows = true,
                                       .print = text_print,
                                       .add_json = text_add_json,
                                       .make_page = text_make_page },
                             .options = options,
                             .text = { .session = &job->session, .input = input },
                             .list = list,
                             .n_list = n_list };
}

/* Tokens of a text look at each other; those of a pair's decoder at themselves or the text. */
qkv_status text_open(struct text_seen *t, const char *target, const struct what_if *parsed,
                     qkv_error *error) {
    struct attended *text = &t->text;
    struct seen_side *const queries = &t->seen.queries, *const keys = &t->seen.keys;
    const struct attention_view *const view = &text->view;
    const qkv_status status = attended_open(text, look_which(t->options), target, parsed, error);
    const bool pair = text->pair.next, cross = view->which == QKV_CROSS;
    *queries = (struct seen_side){
        .n = view->queries.tokens->n,
        .names = attended_queries(text),
        .tokens_a_name = pair ? 2 : 1,
        .tokens = pair ? NULL : &view->queries,
        .sign = "",
        .axis = pair ? "read \u2192 predicts" : NULL,
        .note = pair ? " A row is a token that the decoder read and the one that it predicts." : ""
    };
    *keys = (struct seen_side){ .n = view->keys.tokens->n,
                                .names = attended_keys(text),
                                .tokens = &view->keys,
                                .sign = "",
                                .axis = cross ? "source" : NULL,
                                .note = cross ? " of the source" : "" };
    t->seen.target = text->pair.target;
    return status;
}

qkv_status text_run(struct text_seen *t, uint32_t flags, qkv_error *error) {
    qkv_status status = attended_run(&t->text, flags, error);
    if (status == QKV_OK) status = seen_heads(&t->seen, t->text.heads, error);
    if (status != QKV_OK || !t->list) return status;
    t->seen.order = calloc((size_t)t->n_list + 1, sizeof *t->seen.order);
    if (!t->seen.order) return text_no_memory(error);
    for (int i = 0; i < t->n_list; i++)
        t->seen.order[i] = t->list[i].layer * t->seen.info->n_heads + t->list[i].head;
    return QKV_OK;
}

/* ---- What the model says --------------------------------------------------------------------- */

/* A model without a head for it still looks. */
static qkv_status make_predictions(const struct text_seen *t, const qkv_run *run,
                                   struct predictions *predictions, qkv_error *error) {
    const struct session *const session = t->text.session;
    const qkv_model_info *info = session->info;
    const qkv_encoding *const input = t->text.input;
    const int64_t top = look_top(t->options);
    if (info->kind == QKV_MODEL_DECODER && info->has_lm && input->n > 0)
        return predictions_next(session, run, input->n - 1, top, predictions, error);
    return info->has_mlm ? predictions_make(session, run, input, top, predictions, error) : QKV_OK;
}

/* How a decoder expected the text, or the target of a pair. */
static qkv_status make_expected(struct text_seen *t, qkv_error *error) {
    const struct session *session = t->text.session;
    const qkv_encoding *const target = t->text.pair.next, *const input = t->text.input;
    const int64_t n = t->seen.queries.n;
    if (!session->info->has_lm || !(target || session->info->kind == QKV_MODEL_DECODER))
        return QKV_OK;
    int32_t *next = malloc((size_t)n * sizeof *next + 1);
    t->log_p = malloc((size_t)n * sizeof *t->log_p + 1);
    for (int64_t i = 0; next && i < n; i++)
        next[i] = target ? target->ids[i] : i + 1 < n ? input->ids[i + 1] : -1;
    const qkv_status status = next && t->log_p
                                  ? qkv_inspect_expected(session->ctx, session->model, t->text.run,
                                                         0, next, t->log_p, error)
                                  : text_no_memory(error);
    free(next);
    return status;
}

/* The model as it is, to hold what follows from a question against. */
static qkv_status run_before(struct text_seen *t, qkv_error *error) {
    const struct attended *text = &t->text;
    const qkv_model_info *info = text->session->info;
    qkv_run *run = NULL;
    if (!text->what_if.any || !(info->has_mlm || info->kind == QKV_MODEL_DECODER)) return QKV_OK;
    qkv_status status =
        pair_model_run(text->session, 1, &text->input, &text->pair, 0, NULL, &run, error);
    if (status == QKV_OK) status = make_predictions(t, run, &t->before, error);
    qkv_run_free(run);
    return status;
}

static qkv_status say(struct text_seen *t, qkv_error *error) {
    const struct attended *text = &t->text;
    qkv_status status = make_predictions(t, text->run, &t->predictions, error);
    if (status == QKV_OK) status = make_expected(t, error);
    if (status == QKV_OK)
        status = replaced_make(text->session, text->run, text->input, &t->replaced, error);
    if (status == QKV_OK) status = labels_make(text->session, text->run, &t->labels, error);
    if (status == QKV_OK)
        status = token_labels_make(text->session, text->run, text->input, &t->token_labels, error);
    return status;
}

qkv_status text_look(struct text_seen *t, const struct what_if *parsed, qkv_error *error) {
    const struct look_options *const options = t->options;
    qkv_heads_choice *const choice = &t->seen.choice;
    qkv_status status = text_open(t, options->which.target, parsed, error);
    if (status == QKV_OK) status = run_before(t, error);
    if (status == QKV_OK)
        status =
            text_run(t, (options->lens ? QKV_RUN_HIDDEN : 0) | text_flow_flags(options), error);
    if (status == QKV_OK) status = say(t, error);
    if (status == QKV_OK)
        status =
            attended_choose(&t->text, t->seen.by_name, choice->layer, choice->head, choice, error);
    if (status != QKV_OK) return status;
    text_describe(t, "");
    if (options->norms || options->rollout) return text_flow(t, error);
    return options->align ? text_align(t, error) : QKV_OK;
}

void text_free(struct text_seen *t) {
    free(t->labels);
    free(t->token_labels);
    free(t->replaced);
    free(t->findings.log_p);
    free(t->log_p);
    free(t->factors);
    free(t->map);
    alignment_free(t->alignment);
    predictions_free(&t->predictions);
    predictions_free(&t->before);
    seen_free(&t->seen);
    attended_free(&t->text);
}
