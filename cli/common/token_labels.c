/* Labels of tokens, and answers: see token_labels.h. */
#include "common/token_labels.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/predict.h"

static bool answers(const struct session *session) {
    return session->info->label_task == QKV_LABELS_OF_ANSWERS;
}

qkv_status token_labels_make(const struct session *session, const qkv_run *run,
                             const qkv_encoding *input, double **labels, qkv_error *error) {
    const qkv_model_info *const info = session->info;
    *labels = NULL;
    if (info->n_labels == 0 || info->label_task == QKV_LABELS_OF_TEXTS || input->n == 0)
        return QKV_OK;
    float *logits = calloc((size_t)input->n, (size_t)info->n_labels * sizeof *logits);
    *labels = calloc((size_t)input->n, (size_t)info->n_labels * sizeof **labels);
    qkv_status status = logits && *labels ? qkv_model_classify_tokens(session->ctx, session->model,
                                                                      run, 0, logits, error)
                                          : text_no_memory(error);
    if (status == QKV_OK)
        status = qkv_model_probabilities(session->model, input, input->n, logits, *labels, error);
    free(logits);
    return status;
}

/* ---- Answers --------------------------------------------------------------------------------- */

/* The likeliest, at most `most`, from malloc; NULL: no memory. */
static qkv_answer *find_answers(const struct session *session, const qkv_encoding *input,
                                const double *p, int64_t most, int64_t *n) {
    qkv_answer *const best = calloc((size_t)most + 1, sizeof *best);
    qkv_error error;
    *n = 0;
    if (best && qkv_model_answers(session->model, input, p, most, best, sizeof *best, n, &error))
        *n = 0;
    return best;
}

/* Its words, escaped for printing, from malloc; NULL: there are none. */
static char *answer_words(const struct session *session, const qkv_encoding *input,
                          const qkv_answer *answer) {
    qkv_text *text = NULL;
    qkv_error error;
    if (answer->end == 0 ||
        qkv_tokenizer_decode(session->tokenizer, input->ids + answer->begin,
                             answer->end - answer->begin + 1, 0, &text, &error) != QKV_OK)
        return NULL;
    const char *begin = text->bytes;
    while (*begin == ' ') begin++;
    char *const words = term_escape(begin, (size_t)(text->bytes + text->n - begin));
    qkv_text_free(text);
    return words;
}

static void print_answers(const struct session *session, const qkv_encoding *input,
                          const double *labels, int64_t top, struct term *term) {
    int64_t n;
    qkv_answer *const best = find_answers(session, input, labels, top, &n);
    term_styled(term, STYLE_BOLD, "Answer");
    term_newline(term);
    for (int64_t a = 0; best && a < n; a++) {
        char *const words = answer_words(session, input, &best[a]);
        predictions_bar(words ? words : "(none)", best[a].probability, term);
        free(words);
    }
    free(best);
}

static json_t *answers_json(const struct session *session, const qkv_encoding *input,
                            const double *labels, int64_t top) {
    int64_t n;
    qkv_answer *const best = find_answers(session, input, labels, top, &n);
    json_t *const list = json_array();
    for (int64_t a = 0; best && a < n; a++) {
        char *const words = answer_words(session, input, &best[a]);
        const bool none = best[a].end == 0;
        json_array_append_new(list, json_set(NULL, "begin:o end:o text:o probability:n",
                                             json_count(none ? -1 : best[a].begin),
                                             json_count(none ? -1 : best[a].end),
                                             words ? json_text(words) : json_null(),
                                             best[a].probability));
        free(words);
    }
    free(best);
    return list;
}

/* ---- Showing --------------------------------------------------------------------------------- */

static bool is_inserted(const qkv_encoding *input, int64_t i) {
    return input->end[i] <= input->begin[i];
}

static void print_token(const struct session *session, int32_t id, const double *p,
                        struct term *term) {
    char number[24], *const token = session_token(session, id);
    int64_t best = 0;
    for (int64_t l = 1; l < session->info->n_labels; l++)
        if (p[l] > p[best]) best = l;
    fputs("  ", term->out);
    term_put(term, token ? token : "", 18, false);
    fprintf(term->out, " %.4f ", p[best]);
    term_print(term->out, label_name(session, best, number));
    term_newline(term);
    free(token);
}

void token_labels_print(const struct session *session, const qkv_encoding *input,
                        const double *labels, int64_t top, struct term *term) {
    if (answers(session)) {
        print_answers(session, input, labels, top, term);
        return;
    }
    term_styled(term, STYLE_BOLD, "Labels of tokens");
    term_newline(term);
    for (int64_t i = 0; i < input->n; i++)
        if (!is_inserted(input, i))
            print_token(session, input->ids[i], labels + i * session->info->n_labels, term);
}

static json_t *column_json(const qkv_encoding *input, const double *labels, int64_t label) {
    json_t *const list = json_array();
    for (int64_t i = 0; i < input->n; i++)
        json_array_append_new(list, json_number(labels[2 * i + label]));
    return list;
}

void token_labels_json(const struct session *session, const qkv_encoding *input,
                       const double *labels, int64_t top, json_t *object) {
    if (answers(session)) {
        json_set(object, "answers:o", answers_json(session, input, labels, top));
        json_set(object, "begins:o ends:o", column_json(input, labels, 0),
                 column_json(input, labels, 1));
        return;
    }
    json_t *const list = json_array();
    for (int64_t i = 0; i < input->n; i++)
        json_array_append_new(list, labels_json(session, labels + i * session->info->n_labels));
    json_set(object, "token_labels:o", list);
}
