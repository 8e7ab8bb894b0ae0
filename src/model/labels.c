/*
 * What logits of a classifier say: probabilities of labels, and where the answer to a question is
 * (qkv_model_probabilities, qkv_model_answers).
 */
#include <math.h>

#include "core/fpstate.h"
#include "core/options.h"
#include "files/base.h"
#include "model/model_impl.h"

static qkv_status check_tokens(const qkv_encoding *input, qkv_error *error) {
    QKV_TRY(qkvi_need(input, "input", error));
    if (input->begin && input->end) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "input has no begin or no end");
}

/* ---- Where an answer may be ------------------------------------------------------------------ */

static bool is_inserted(const qkv_encoding *input, int64_t i) {
    return input->end[i] <= input->begin[i];
}

/* The first token of the second text, behind what stands between both, or of the only one. */
static int64_t begin_of_text(const qkv_encoding *input) {
    int64_t end = 1, begin;
    while (end < input->n && !is_inserted(input, end)) end++;
    for (begin = end; begin < input->n && is_inserted(input, begin); begin++) {
    }
    return begin < input->n ? begin : 0;
}

/* In the text that begins at `begin`, or [CLS], which says that there is none. */
static bool may_answer(const qkv_encoding *input, int64_t begin, int64_t i) {
    return i == 0 || (i >= begin && !is_inserted(input, i));
}

/* ---- Probabilities --------------------------------------------------------------------------- */

/* Of n numbers, `stride` apart; -INFINITY becomes 0. */
static void softmax(double *x, int64_t n, int64_t stride) {
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        if (x[i * stride] > largest) largest = x[i * stride];
    for (int64_t i = 0; i < n; i++) {
        x[i * stride] = exp(x[i * stride] - largest);
        sum += x[i * stride];
    }
    for (int64_t i = 0; i < n; i++) x[i * stride] /= sum;
}

static void answers_softmax(const qkv_encoding *input, double *p) {
    const int64_t begin = begin_of_text(input);
    for (int64_t i = 0; i < input->n; i++)
        if (!may_answer(input, begin, i)) p[2 * i] = p[2 * i + 1] = -INFINITY;
    for (int label = 0; label < 2; label++) softmax(p + label, input->n, 2);
}

static qkv_status check_labels(const qkv_model *model, const qkv_encoding *input, int64_t n_rows,
                               qkv_error *error) {
    if (model->info.n_labels == 0)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "no classifier");
    if (n_rows < 1)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "n_rows = %lld is below 1",
                              (long long)n_rows);
    if (model->info.label_task != QKV_LABELS_OF_ANSWERS) return QKV_OK;
    QKV_TRY(check_tokens(input, error));
    if (input->n == n_rows) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_SHAPE, "n_rows = %lld is not input->n = %lld",
                          (long long)n_rows, (long long)input->n);
}

qkv_status qkv_model_probabilities(const qkv_model *model, const qkv_encoding *input,
                                   int64_t n_rows, const float *logits, double *p,
                                   qkv_error *error) {
    QKV_TRY(qkvi_need(model, "model", error));
    QKV_TRY(qkvi_need(logits, "logits", error));
    QKV_TRY(qkvi_need(p, "p", error));
    QKV_TRY(check_labels(model, input, n_rows, error));
    const qkv_model_info *const info = &model->info;
    const int64_t n = n_rows * info->n_labels;
    const bool of_texts = info->label_task == QKV_LABELS_OF_TEXTS;
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    for (int64_t i = 0; i < n; i++) p[i] = (double)logits[i];
    if (info->label_task == QKV_LABELS_OF_ANSWERS)
        answers_softmax(input, p);
    else if (of_texts && info->label_kind == QKV_LABELS_EACH)
        for (int64_t i = 0; i < n; i++) p[i] = 1 / (1 + exp(-p[i]));
    else if (!of_texts || info->label_kind == QKV_LABELS_ONE)
        for (int64_t r = 0; r < n_rows; r++) softmax(p + r * info->n_labels, info->n_labels, 1);
    qkvi_fpstate_leave(saved);
    return QKV_OK;
}

/* ---- Answers --------------------------------------------------------------------------------- */

/* The likeliest so far, best first, of equal ones the first. */
struct answers {
    qkv_answer *list; /* [most] */
    int64_t n, most;
};

static void keep_answer(struct answers *best, qkv_answer answer) {
    int64_t at = best->n;
    while (at > 0 && best->list[at - 1].probability < answer.probability) at--;
    if (at == best->most) return;
    if (best->n < best->most) best->n++;
    for (int64_t i = best->n - 1; i > at; i--) best->list[i] = best->list[i - 1];
    best->list[at] = answer;
}

static void find_answers(const qkv_encoding *input, const double *p, struct answers *best) {
    const int64_t begin = begin_of_text(input);
    for (int64_t i = 0; i < input->n; i++) {
        if (!may_answer(input, begin, i)) continue;
        const int64_t last = i == 0 ? 0 : i + QKV_ANSWER_TOKENS - 1;
        for (int64_t j = i; j <= last && j < input->n; j++)
            if (may_answer(input, begin, j))
                keep_answer(best, (qkv_answer){ i, j, p[2 * i] * p[2 * j + 1] });
    }
}

static qkv_status check_answers(const qkv_model *model, int64_t most, qkv_error *error) {
    if (model->info.label_task != QKV_LABELS_OF_ANSWERS)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "%s: a %s finds no answers",
                              model->info.source, model->info.architecture);
    if (most >= 1) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "most = %lld is below 1", (long long)most);
}

qkv_status qkv_model_answers(const qkv_model *model, const qkv_encoding *input, const double *p,
                             int64_t most, qkv_answer *answers, size_t answer_bytes,
                             int64_t *n_answers, qkv_error *error) {
    QKV_TRY(qkvi_need(model, "model", error));
    QKV_TRY(check_tokens(input, error));
    QKV_TRY(qkvi_need(p, "p", error));
    QKV_TRY(qkvi_need(answers, "answers", error));
    QKV_TRY(qkvi_need(n_answers, "n_answers", error));
    QKV_TRY(qkvi_element_check(answer_bytes, sizeof *answers, "answer_bytes", error));
    QKV_TRY(check_answers(model, most, error));
    const int64_t spans = input->n * QKV_ANSWER_TOKENS;
    struct answers best = { .most = most < spans ? most : spans };
    best.list = qkvi_malloc_array((size_t)best.most + 1, sizeof *best.list);
    if (!best.list) return qkvi_no_memory(error, "answers");
    find_answers(input, p, &best);
    for (int64_t i = 0; i < best.n; i++)
        qkvi_element_write(answers, i, answer_bytes, &best.list[i], sizeof *best.list);
    *n_answers = best.n;
    free(best.list);
    return QKV_OK;
}
