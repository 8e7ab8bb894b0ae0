/* What the output heads of a model say, as bars or as JSON: see predict.h. */
#include "common/predict.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/number.h"

static bool is_mask(const struct session *session, const qkv_encoding *input, int64_t i) {
    const int32_t mask = qkv_tokenizer_special(session->tokenizer, QKV_TOKEN_MASK);
    return mask >= 0 && input->ids[i] == mask;
}

char *mask_name(const struct session *session) {
    const int32_t mask = qkv_tokenizer_special(session->tokenizer, QKV_TOKEN_MASK);
    return mask < 0 ? strdup("[MASK]") : session_token(session, mask);
}

int64_t count_masks(const struct session *session, const qkv_encoding *input) {
    int64_t n = 0;
    for (int64_t i = 0; i < input->n; i++) n += is_mask(session, input, i);
    return n;
}

static qkv_status make_room(struct predictions *predictions, int64_t n, int64_t top, int64_t vocab,
                            qkv_error *error) {
    if (top > vocab) top = vocab;
    *predictions = (struct predictions){ .n_masks = n, .top = top };
    predictions->positions = calloc((size_t)n + 1, sizeof(int64_t));
    predictions->candidates = calloc((size_t)(n * top) + 1, sizeof(qkv_candidate));
    return predictions->positions && predictions->candidates ? QKV_OK : text_no_memory(error);
}

/* Candidates of the m-th place, which is `position` of the text. */
static qkv_status ask(const struct session *session, const qkv_run *run, qkv_word_head head,
                      int64_t m, int64_t position, struct predictions *predictions,
                      qkv_error *error) {
    predictions->positions[m] = position;
    return qkv_model_candidates(session->ctx, session->model, run, head, 0, position,
                                predictions->top, predictions->candidates + m * predictions->top,
                                sizeof(qkv_candidate), error);
}

qkv_status predictions_make(const struct session *session, const qkv_run *run,
                            const qkv_encoding *input, int64_t top, struct predictions *predictions,
                            qkv_error *error) {
    qkv_status status =
        make_room(predictions, count_masks(session, input), top, session->info->vocab_size, error);
    for (int64_t i = 0, m = 0; i < input->n && status == QKV_OK; i++)
        if (is_mask(session, input, i))
            status = ask(session, run, QKV_HEAD_MASKED, m++, i, predictions, error);
    return status;
}

qkv_status predictions_next(const struct session *session, const qkv_run *run, int64_t position,
                            int64_t top, struct predictions *predictions, qkv_error *error) {
    const qkv_status status =
        make_room(predictions, 1, top, session->info->target_vocab_size, error);
    predictions->is_next = true;
    if (status != QKV_OK) return status;
    return ask(session, run, QKV_HEAD_NEXT, 0, position, predictions, error);
}

void predictions_free(struct predictions *predictions) {
    free(predictions->positions);
    free(predictions->candidates);
}

void predictions_bar(const char *name, double probability, struct term *term) {
    int bar = term->width - 30;
    if (bar > 40) bar = 40;
    fputs("  ", term->out);
    term_put(term, name ? name : "", 18, false);
    fprintf(term->out, " %.4f ", probability);
    if (bar > 0) term_bar(term, probability, bar);
    term_newline(term);
}

static void print_line(const struct session *session, int32_t id, double probability,
                       struct term *term) {
    char *token = session_token(session, id);
    predictions_bar(token, probability, term);
    free(token);
}

void predictions_print(const struct session *session, const struct predictions *predictions,
                       struct term *term) {
    char *mask = predictions->is_next ? strdup("What comes next") : mask_name(session);
    for (int64_t m = 0; m < predictions->n_masks; m++) {
        term_style(term, STYLE_BOLD);
        term_print(term->out, mask ? mask : "");
        if (predictions->n_masks > 1)
            fprintf(term->out, ", token %" PRId64, predictions->positions[m]);
        term_style(term, STYLE_NONE);
        term_newline(term);
        for (int64_t c = 0; c < predictions->top; c++) {
            const qkv_candidate *word = &predictions->candidates[m * predictions->top + c];
            print_line(session, word->id, (double)word->probability, term);
        }
    }
    free(mask);
}

static json_t *candidates_json(const struct session *session, const struct predictions *predictions,
                               int64_t m) {
    json_t *candidates = json_array();
    for (int64_t c = 0; c < predictions->top; c++) {
        const qkv_candidate *candidate = &predictions->candidates[m * predictions->top + c];
        json_array_append_new(candidates,
                              json_set(NULL, "token:o id:i probability:n",
                                       token_json(session->tokenizer, candidate->id),
                                       (int64_t)candidate->id, (double)candidate->probability));
    }
    return candidates;
}

json_t *predictions_json(const struct session *session, const struct predictions *predictions) {
    if (predictions->is_next) return candidates_json(session, predictions, 0);
    json_t *list = json_array();
    for (int64_t m = 0; m < predictions->n_masks; m++)
        json_array_append_new(list,
                              json_set(NULL, "position:i candidates:o", predictions->positions[m],
                                       candidates_json(session, predictions, m)));
    return list;
}

/* ---- Classes --------------------------------------------------------------------------------- */

qkv_status labels_make(const struct session *session, const qkv_run *run, double **labels,
                       qkv_error *error) {
    const int64_t n = session->info->n_labels;
    *labels = NULL;
    if (n == 0 || session->info->label_task != QKV_LABELS_OF_TEXTS) return QKV_OK;
    float *logits = calloc((size_t)n, sizeof *logits);
    *labels = calloc((size_t)n, sizeof **labels);
    qkv_status status =
        logits && *labels ? qkv_model_classify(session->ctx, session->model, run, 0, logits, error)
                          : text_no_memory(error);
    if (status == QKV_OK)
        status = qkv_model_probabilities(session->model, NULL, 1, logits, *labels, error);
    free(logits);
    return status;
}

const char *label_name(const struct session *session, int64_t label, char number[LABEL_ROOM]) {
    const char *const name = qkv_model_label(session->model, label);
    snprintf(number, LABEL_ROOM, "%" PRId64, label);
    return name ? name : number;
}

void labels_print(const struct session *session, const double *labels, int64_t top,
                  struct term *term) {
    const int64_t n = session->info->n_labels;
    struct sort_key *const order = calloc((size_t)n + 1, sizeof *order);
    char number[LABEL_ROOM];
    term_styled(term, STYLE_BOLD, "Label");
    term_newline(term);
    for (int64_t l = 0; order && l < n; l++) order[l] = (struct sort_key){ -labels[l], l };
    if (order) sort_keys(order, n);
    for (int64_t i = 0; order && i < n && i < top; i++)
        predictions_bar(label_name(session, order[i].index, number), -order[i].key, term);
    free(order);
}

json_t *labels_json(const struct session *session, const double *labels) {
    const char *const key =
        session->info->label_kind == QKV_LABELS_VALUES ? "value" : "probability";
    json_t *list = json_array();
    char number[LABEL_ROOM];
    for (int64_t l = 0; l < session->info->n_labels; l++)
        json_array_append_new(list, json_pack("{s:o, s:o}", "label",
                                              json_text(label_name(session, l, number)), key,
                                              json_number(labels[l])));
    return list;
}

/* ---- ELECTRA's judgement --------------------------------------------------------------------- */

qkv_status replaced_make(const struct session *session, const qkv_run *run,
                         const qkv_encoding *input, double **replaced, qkv_error *error) {
    *replaced = NULL;
    if (!session->info->has_discriminator) return QKV_OK;
    float *logits = calloc((size_t)input->n, sizeof(*logits));
    *replaced = calloc((size_t)input->n, sizeof(**replaced));
    qkv_status status = logits && *replaced ? qkv_model_discriminate(session->ctx, session->model,
                                                                     run, 0, logits, error)
                                            : text_no_memory(error);
    for (int64_t i = 0; status == QKV_OK && i < input->n; i++)
        (*replaced)[i] = 1 / (1 + exp(-(double)logits[i]));
    free(logits);
    return status;
}

void replaced_print(const struct session *session, const qkv_encoding *input,
                    const double *replaced, int64_t top, struct term *term) {
    struct sort_key *const order = calloc((size_t)input->n + 1, sizeof *order);
    int64_t n = 0;
    term_styled(term, STYLE_BOLD, "In place of another token?");
    term_newline(term);
    for (int64_t i = 0; order && i < input->n; i++)
        if (input->end[i] > input->begin[i]) order[n++] = (struct sort_key){ -replaced[i], i };
    if (order) sort_keys(order, n);
    for (int64_t i = 0; order && i < n && i < top; i++)
        print_line(session, input->ids[order[i].index], -order[i].key, term);
    free(order);
}
