/* Labels of tokens, and answers: see token_labels.h. */
#include "common/token_labels.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "common/predict.h"

static bool answers(const struct session *session) {
    return session->info->label_task == QKV_LABELS_OF_ANSWERS;
}

static bool is_inserted(const qkv_encoding *input, int64_t i) {
    return input->end[i] <= input->begin[i];
}

/* ---- Probabilities --------------------------------------------------------------------------- */

/* Where the text that may hold the answer begins: behind what is inserted between two texts. */
static int64_t answer_text(const qkv_encoding *input) {
    int64_t end = 1, begin;
    while (end < input->n && !is_inserted(input, end)) end++;
    for (begin = end; begin < input->n && is_inserted(input, begin); begin++) {
    }
    return begin < input->n ? begin : 0;
}

static bool may_answer(const qkv_encoding *input, int64_t text, int64_t i) {
    return i == 0 || (i >= text && !is_inserted(input, i));
}

/* p = softmax(p) over n values, `stride` apart, that are not NaN; NaN becomes 0. */
static void softmax(double *p, int64_t n, int64_t stride) {
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        if (p[i * stride] > largest) largest = p[i * stride];
    for (int64_t i = 0; i < n; i++) {
        double *const x = &p[i * stride];
        *x = isnan(*x) ? 0 : exp(*x - largest);
        sum += *x;
    }
    for (int64_t i = 0; i < n; i++) p[i * stride] /= sum;
}

static void read_logits(const struct session *session, const qkv_encoding *input,
                        const float *logits, double *p) {
    const int64_t n = input->n, n_labels = session->info->n_labels;
    const int64_t text = answers(session) ? answer_text(input) : 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t l = 0; l < n_labels; l++)
            p[i * n_labels + l] = answers(session) && !may_answer(input, text, i)
                                      ? (double)NAN
                                      : (double)logits[i * n_labels + l];
    if (answers(session))
        for (int64_t l = 0; l < n_labels; l++) softmax(p + l, n, n_labels);
    else
        for (int64_t i = 0; i < n; i++) softmax(p + i * n_labels, n_labels, 1);
}

qkv_status token_labels_make(const struct session *session, const qkv_run *run,
                             const qkv_encoding *input, double **labels, qkv_error *error) {
    const qkv_model_info *const info = session->info;
    *labels = NULL;
    if (info->n_labels == 0 || info->label_task == QKV_LABELS_OF_TEXTS || input->n == 0)
        return QKV_OK;
    float *logits = calloc((size_t)input->n, (size_t)info->n_labels * sizeof *logits);
    *labels = calloc((size_t)input->n, (size_t)info->n_labels * sizeof **labels);
    const qkv_status status =
        logits && *labels
            ? qkv_model_classify_tokens(session->ctx, session->model, run, 0, logits, error)
            : text_no_memory(error);
    if (status == QKV_OK) read_logits(session, input, logits, *labels);
    free(logits);
    return status;
}

/* ---- Answers --------------------------------------------------------------------------------- */

/* Tokens begin to end; 0 of both: there is no answer. */
struct answer {
    int64_t begin, end;
    double probability;
};

/* Keeps the likeliest, best first, of equal ones the first. */
static void keep(struct answer *best, int64_t *n, int64_t most, struct answer new) {
    int64_t at = *n;
    while (at > 0 && best[at - 1].probability < new.probability) at--;
    if (at == most) return;
    if (*n < most) ++*n;
    for (int64_t i = *n - 1; i > at; i--) best[i] = best[i - 1];
    best[at] = new;
}

/* The likeliest, at most `most`, from malloc; NULL: no memory. */
static struct answer *find_answers(const qkv_encoding *input, const double *p, int64_t most,
                                   int64_t *n) {
    const int64_t text = answer_text(input);
    struct answer *const best = calloc((size_t)most + 1, sizeof *best);
    *n = 0;
    for (int64_t i = 0; best && i < input->n; i++) {
        if (!may_answer(input, text, i)) continue;
        const int64_t last = i == 0 ? 0 : i + ANSWER_TOKENS - 1;
        for (int64_t j = i; j <= last && j < input->n; j++)
            if (may_answer(input, text, j))
                keep(best, n, most, (struct answer){ i, j, p[2 * i] * p[2 * j + 1] });
    }
    return best;
}

/* Its words, escaped for printing, from malloc; NULL: there are none. */
static char *answer_words(const struct session *session, const qkv_encoding *input,
                          const struct answer *answer) {
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
    struct answer *const best = find_answers(input, labels, top, &n);
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
    struct answer *const best = find_answers(input, labels, top, &n);
    json_t *const list = json_array();
    for (int64_t a = 0; best && a < n; a++) {
        char *const words = answer_words(session, input, &best[a]);
        const bool none = best[a].end == 0;
        json_array_append_new(list, json_pack("{s:o, s:o, s:o, s:o}", "begin",
                                              none ? json_null() : json_integer(best[a].begin),
                                              "end", none ? json_null() : json_integer(best[a].end),
                                              "text", words ? json_text(words) : json_null(),
                                              "probability", json_number(best[a].probability)));
        free(words);
    }
    free(best);
    return list;
}

/* ---- Showing --------------------------------------------------------------------------------- */

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
