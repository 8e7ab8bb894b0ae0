/*
 * The evaluation of a text in pieces: whoever measures them, the report has the bits of qkv_eval.
 * What is no piece and no answer is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "limits/temporary.h"
#include "make_ctx.h"
#include "qkv/train.h"

enum { N_LINES = 75, N_PIECES = 4 }; /* 75 lines and 50 pairs with another second half */

static char text_path[TEMPORARY_PATH];
static qkv_ctx *ctx;
static qkv_model *model;
static qkv_error error;

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != QKV_OK) fail_msg("%s", error.message);                                       \
    } while (0)

static int set_up(void **state) {
    (void)state;
    const char *const words[] = { "the", "man", "saw", "a", "dog", "book", "garden" };
    const int fd = mkstemp(temporary("qkv-pieces", text_path));
    FILE *const out = fd < 0 ? NULL : fdopen(fd, "w");
    if (!out) return -1;
    for (int i = 0; i < N_LINES; i++) {
        for (int w = 0; w < 1 + i * 5 % 8; w++) fprintf(out, "%s ", words[(i + w * w) % 7]);
        fprintf(out, i % 3 ? "\t%s %s\n" : "\n", words[i % 7], words[i * 3 % 7]);
    }
    ctx = make_ctx(NULL, 2);
    return fclose(out) || qkv_model_open(QKV_TEST_ROOT "/models/default", NULL, &model, &error);
}

static int tear_down(void **state) {
    (void)state;
    qkv_model_free(model);
    qkv_ctx_free(ctx);
    return unlink(text_path);
}

static qkv_eval_work *open_work(const char *path) {
    qkv_eval_work *work;
    MUST(qkv_eval_open(ctx, model, path, &work, &error));
    return work;
}

static void expect_same_row(const qkv_eval_row *a, const qkv_eval_row *b) {
    assert_string_equal(a->slot, b->slot);
    assert_int_equal(a->n_blanks, b->n_blanks);
    assert_int_equal(a->n_top1_admissible, b->n_top1_admissible);
    assert_int_equal(a->n_single, b->n_single);
    assert_int_equal(a->n_top1_single, b->n_top1_single);
    assert_memory_equal(&a->mass, &b->mass, sizeof a->mass);
}

static void expect_same(const qkv_eval_report *a, const qkv_eval_report *b) {
    assert_int_equal(a->n_rows, 1);
    assert_int_equal(b->n_rows, 1);
    expect_same_row(a->rows[0], b->rows[0]);
    expect_same_row(a->total, b->total);
    assert_memory_equal(&a->mlm_loss, &b->mlm_loss, sizeof a->mlm_loss);
    assert_int_equal(a->n_pairs, b->n_pairs);
    assert_int_equal(a->n_pairs_right, b->n_pairs_right);
    assert_int_equal(a->n_probes, b->n_probes);
}

/* Each piece is measured by another than the one that has the text, the last one first. */
static void test_same_bits(void **state) {
    (void)state;
    qkv_eval_work *const first = open_work(text_path), *const other = open_work(NULL);
    qkv_eval_report *report, *expected;
    char *bytes, *answers[N_PIECES];
    size_t n, n_answers[N_PIECES];
    for (int64_t i = N_PIECES - 1; i >= 0; i--) {
        MUST(qkv_eval_piece(first, i, &bytes, &n, &error));
        assert_non_null(bytes);
        char *made;
        MUST(qkv_eval_measure(other, bytes, n, &made, &n_answers[i], &error));
        answers[i] = malloc(n_answers[i]);
        assert_non_null(answers[i]);
        memcpy(answers[i], made, n_answers[i]);
    }
    MUST(qkv_eval_piece(first, N_PIECES, &bytes, &n, &error));
    assert_null(bytes);
    MUST(qkv_eval_piece(other, 0, &bytes, &n, &error));
    assert_null(bytes);
    for (int i = 0; i < N_PIECES; i++) {
        MUST(qkv_eval_take(first, answers[i], n_answers[i], &error));
        free(answers[i]);
    }
    MUST(qkv_eval_finish(first, &report, &error));
    assert_int_equal(qkv_eval_finish(first, &expected, &error), QKV_ERR_ARGUMENT);
    MUST(qkv_eval(ctx, model, text_path, NULL, 1, &expected, &error));
    assert_int_equal(report->n_pairs, 100);
    expect_same(report, expected);
    qkv_eval_report_free(report);
    qkv_eval_report_free(expected);
    qkv_eval_work_free(first);
    qkv_eval_work_free(other);
}

static void expect_refused(qkv_status status, const char *says) {
    assert_int_equal(status, QKV_ERR_FORMAT);
    if (!strstr(error.message, says)) fail_msg("\"%s\", not \"%s\"", error.message, says);
}

static void test_no_piece(void **state) {
    (void)state;
    qkv_eval_work *const work = open_work(NULL);
    char many[3 * 33], *answer = NULL;
    size_t n;
    for (size_t i = 0; i < sizeof many; i++) many[i] = "+a\n"[i % 3];
    expect_refused(qkv_eval_measure(work, "+a\na\n", 5, &answer, &n, &error),
                   "line 2 of a piece begins without + or -");
    expect_refused(qkv_eval_measure(work, "\n", 1, &answer, &n, &error), "line 1 of a piece");
    expect_refused(qkv_eval_measure(work, many, sizeof many, &answer, &n, &error),
                   "more than 32 lines");
    assert_null(answer);
    MUST(qkv_eval_measure(work, many, sizeof many - 3, &answer, &n, &error));
    MUST(qkv_eval_measure(work, "+", 1, &answer, &n, &error));
    MUST(qkv_eval_measure(work, "-\t\n+\t\t", 6, &answer, &n, &error));
    MUST(qkv_eval_measure(work, "", 0, &answer, &n, &error));
    assert_int_equal(qkv_eval_piece(work, -1, &answer, &n, &error), QKV_ERR_ARGUMENT);
    qkv_eval_work_free(work);
}

/* An answer with one number changed, or of another length. */
static void test_no_answer(void **state) {
    (void)state;
    qkv_eval_work *const work = open_work(NULL);
    char *answer, wrong[3 * 8 + 4 * 24 + 8] = { 0 };
    size_t n;
    MUST(qkv_eval_measure(work, "+the man\tsaw\n-a\n", 16, &answer, &n, &error));
    assert_int_equal(n, 3 * 8 + 3 * 24); /* three tokens: the pair that does not belong has none */
    for (size_t cut = 0; cut < n; cut++)
        expect_refused(qkv_eval_take(work, answer, cut, &error), "are no answer to a piece");
    memcpy(wrong, answer, n);
    expect_refused(qkv_eval_take(work, wrong, n + 8, &error), "bytes are no answer");
    expect_refused(qkv_eval_take(work, wrong, n + 24, &error), "bytes are no answer");
    const struct {
        size_t at;
        int64_t value;
    } changes[] = { { 0, -1 }, { 0, 33 },         { 8, -1 },  { 8, 2 },  { 16, 2 },
                    { 16, 4 }, { 16, INT64_MAX }, { 16, -3 }, { 40, 2 }, { 40, -1 } };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        memcpy(wrong, answer, n);
        memcpy(wrong + changes[i].at, &changes[i].value, 8);
        expect_refused(qkv_eval_take(work, wrong, n, &error), "96 bytes are no answer");
    }
    qkv_eval_report *report;
    MUST(qkv_eval_take(work, answer, n, &error));
    MUST(qkv_eval_finish(work, &report, &error));
    assert_int_equal(report->total->n_blanks, 3); /* nothing of what was refused */
    assert_int_equal(report->n_pairs, 1);
    assert_int_equal(qkv_eval_take(work, answer, n, &error), QKV_ERR_ARGUMENT);
    qkv_eval_report_free(report);
    qkv_eval_work_free(work);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_no_piece),
        cmocka_unit_test(test_no_answer),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
