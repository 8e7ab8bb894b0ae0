/*
 * Probabilities of labels and answers to questions, against their definitions in long double, and
 * against all spans in order.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/model_impl.h"

enum { N = 40, LABELS = 3, MOST = 1000 };

static uint64_t state_of_numbers;

/* Uniform in [-6, 6): a linear congruence. */
static float number(void) {
    state_of_numbers = state_of_numbers * 6364136223846793005U + 1442695040888963407U;
    return (float)(state_of_numbers >> 40) / (1 << 24) * 12 - 6;
}

/* Nothing but what the calls read; the one before is gone. */
static const struct qkv_model *model_of(qkv_label_task task, qkv_label_kind kind,
                                        int64_t n_labels) {
    static struct qkv_model model;
    memset(&model, 0, sizeof model);
    model.info.n_labels = n_labels;
    model.info.label_task = task;
    model.info.label_kind = kind;
    model.info.source = "folder";
    model.info.architecture = "bert";
    return &model;
}

static void expect_near(double got, long double wanted) {
    if (!(fabsl((long double)got - wanted) <= 1e-14L)) fail_msg("%.17g, not %.17Lg", got, wanted);
}

/* ---- Texts and tokens ------------------------------------------------------------------------ */

static void expect_softmax(const float *logits, const double *p) {
    long double sum = 0;
    for (int l = 0; l < LABELS; l++) sum += expl((long double)logits[l]);
    for (int l = 0; l < LABELS; l++) expect_near(p[l], expl((long double)logits[l]) / sum);
}

static void test_rows(void **state) {
    (void)state;
    static float logits[N * LABELS];
    static double p[N * LABELS];
    qkv_error error;
    for (int i = 0; i < N * LABELS; i++) logits[i] = number();
    for (int of_tokens = 0; of_tokens < 2; of_tokens++) {
        const struct qkv_model *const model = model_of(
            of_tokens ? QKV_LABELS_OF_TOKENS : QKV_LABELS_OF_TEXTS, QKV_LABELS_ONE, LABELS);
        assert_int_equal(qkv_model_probabilities(model, NULL, N, logits, p, &error), QKV_OK);
        for (int r = 0; r < N; r++) expect_softmax(logits + r * LABELS, p + r * LABELS);
    }
    const struct qkv_model *model = model_of(QKV_LABELS_OF_TEXTS, QKV_LABELS_EACH, LABELS);
    assert_int_equal(qkv_model_probabilities(model, NULL, N, logits, p, &error), QKV_OK);
    for (int i = 0; i < N * LABELS; i++) expect_near(p[i], 1 / (1 + expl(-(long double)logits[i])));
    model = model_of(QKV_LABELS_OF_TEXTS, QKV_LABELS_VALUES, LABELS);
    assert_int_equal(qkv_model_probabilities(model, NULL, N, logits, p, &error), QKV_OK);
    for (int i = 0; i < N * LABELS; i++) assert_true(p[i] == (double)logits[i]);
}

/* Large logits do not overflow, and a NaN is of its row alone. */
static void test_special(void **state) {
    (void)state;
    const float logits[2 * LABELS] = { 1000, 999, -1000, NAN, 0, 1 };
    double p[2 * LABELS];
    qkv_error error;
    const struct qkv_model *const model = model_of(QKV_LABELS_OF_TEXTS, QKV_LABELS_ONE, LABELS);
    assert_int_equal(qkv_model_probabilities(model, NULL, 2, logits, p, &error), QKV_OK);
    expect_near(p[0], 1 / (1 + expl(-1)));
    expect_near(p[1], expl(-1) / (1 + expl(-1)));
    assert_true(p[2] == 0);
    for (int l = 0; l < LABELS; l++) assert_true(isnan(p[LABELS + l]));
}

/* ---- Answers --------------------------------------------------------------------------------- */

/* [CLS] question [SEP] text [SEP], or [CLS] text [SEP]. allowed: where an answer may be. */
struct pair {
    int64_t begin[N], end[N];
    bool allowed[N];
    qkv_encoding input;
};

static void make_pair(struct pair *pair, int64_t n_question, int64_t n_text) {
    const bool two = n_question > 0;
    const int64_t first = two ? n_question + 2 : 1;
    memset(pair, 0, sizeof *pair);
    pair->input = (qkv_encoding){ .n = first + n_text + 1, .begin = pair->begin, .end = pair->end };
    assert_true(pair->input.n <= N);
    for (int64_t i = 0; i < pair->input.n; i++) {
        const bool in_text = i >= first && i < first + n_text;
        if (in_text || (two && i >= 1 && i <= n_question)) pair->end[i] = 1; /* not empty */
        pair->allowed[i] = i == 0 || in_text;
    }
}

static void expect_columns(const struct pair *pair, const float *logits, const double *p) {
    for (int label = 0; label < 2; label++) {
        long double sum = 0;
        for (int64_t i = 0; i < pair->input.n; i++)
            if (pair->allowed[i]) sum += expl((long double)logits[2 * i + label]);
        for (int64_t i = 0; i < pair->input.n; i++)
            expect_near(p[2 * i + label],
                        pair->allowed[i] ? expl((long double)logits[2 * i + label]) / sum : 0);
    }
}

static int compare(const void *x, const void *y) {
    const qkv_answer *const a = x, *const b = y;
    if (a->probability != b->probability) return a->probability > b->probability ? -1 : 1;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return a->end < b->end ? -1 : a->end > b->end;
}

/* All spans, best first. */
static int64_t all_spans(const struct pair *pair, const double *p, qkv_answer list[MOST]) {
    int64_t n = 0;
    for (int64_t i = 0; i < pair->input.n; i++)
        for (int64_t j = i; j < pair->input.n && j - i < QKV_ANSWER_TOKENS; j++)
            if (pair->allowed[i] && pair->allowed[j] && (i > 0 || j == 0))
                list[n++] = (qkv_answer){ i, j, p[2 * i] * p[2 * j + 1] };
    qsort(list, (size_t)n, sizeof *list, compare);
    return n;
}

static void check_answers(int64_t n_question, int64_t n_text, int64_t most, bool equal) {
    const struct qkv_model *const model = model_of(QKV_LABELS_OF_ANSWERS, QKV_LABELS_ONE, 2);
    static float logits[2 * N];
    static double p[2 * N];
    static qkv_answer got[MOST], wanted[MOST];
    static struct pair pair;
    qkv_error error;
    int64_t n_got = -1;
    make_pair(&pair, n_question, n_text);
    for (int64_t i = 0; i < 2 * pair.input.n; i++) logits[i] = equal ? 1 : number();
    assert_int_equal(qkv_model_probabilities(model, &pair.input, pair.input.n, logits, p, &error),
                     QKV_OK);
    expect_columns(&pair, logits, p);
    assert_int_equal(
        qkv_model_answers(model, &pair.input, p, most, got, sizeof *got, &n_got, &error), QKV_OK);
    const int64_t n_all = all_spans(&pair, p, wanted);
    assert_int_equal(n_got, n_all < most ? n_all : most);
    for (int64_t i = 0; i < n_got; i++) {
        assert_int_equal(got[i].begin, wanted[i].begin);
        assert_int_equal(got[i].end, wanted[i].end);
        assert_true(got[i].probability == wanted[i].probability);
    }
}

static void test_answers(void **state) {
    (void)state;
    check_answers(4, 20, 5, false);
    check_answers(1, 30, MOST, false);
    check_answers(0, 12, 3, false);
    check_answers(0, 1, MOST, false);
    check_answers(3, 17, 40, true); /* of equal ones the first */
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void refuse(const struct qkv_model *model, const qkv_encoding *input, int64_t n_rows,
                   qkv_status wanted, const char *message) {
    float logits[2 * N] = { 0 };
    double p[2 * N];
    qkv_error error;
    assert_int_equal(qkv_model_probabilities(model, input, n_rows, logits, p, &error), wanted);
    assert_string_equal(error.message, message);
}

static void refuse_answers(const struct qkv_model *model, const qkv_encoding *input, int64_t most,
                           qkv_status wanted, const char *message) {
    const double p[2 * N] = { 0 };
    qkv_answer answer;
    qkv_error error;
    int64_t n = -1;
    assert_int_equal(qkv_model_answers(model, input, p, most, &answer, sizeof answer, &n, &error),
                     wanted);
    assert_string_equal(error.message, message);
    assert_int_equal(n, -1);
}

static void test_refused(void **state) {
    (void)state;
    struct pair pair;
    make_pair(&pair, 2, 3);
    qkv_encoding bare = pair.input;
    bare.end = NULL;
    refuse(model_of(QKV_LABELS_OF_TEXTS, QKV_LABELS_ONE, 0), NULL, 1, QKV_ERR_UNSUPPORTED,
           "no classifier");
    const struct qkv_model *model = model_of(QKV_LABELS_OF_TEXTS, QKV_LABELS_ONE, 2);
    refuse(model, NULL, 0, QKV_ERR_ARGUMENT, "n_rows = 0 is below 1");
    refuse_answers(model, &pair.input, 1, QKV_ERR_UNSUPPORTED, "folder: a bert finds no answers");
    model = model_of(QKV_LABELS_OF_ANSWERS, QKV_LABELS_ONE, 2);
    refuse(model, NULL, 8, QKV_ERR_ARGUMENT, "input is NULL");
    refuse(model, &bare, 8, QKV_ERR_ARGUMENT, "input has no begin or no end");
    refuse(model, &pair.input, 3, QKV_ERR_SHAPE, "n_rows = 3 is not input->n = 8");
    refuse_answers(model, &bare, 1, QKV_ERR_ARGUMENT, "input has no begin or no end");
    refuse_answers(model, &pair.input, 0, QKV_ERR_ARGUMENT, "most = 0 is below 1");
}

int main(void) {
    state_of_numbers = 1;
    print_message("seed 1\n");
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows), cmocka_unit_test(test_special),
                                        cmocka_unit_test(test_answers),
                                        cmocka_unit_test(test_refused) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
