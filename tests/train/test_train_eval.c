/*
 * Evaluation: scores of logits against results by hand, words found in encodings, and the sums of a
 * report on the grammar of the embedded model with an untrained model.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "train/eval.h"

static void test_judgement(void **state) {
    (void)state;
    const float logits[4] = { 0.0f, 2.0f, 2.0f, 1.0f };
    const double sum = 1 + 2 * exp(2) + exp(1);
    static const int32_t both[] = { 3, 1 }, other[] = { 2 };
    qkvi_blank_score score = qkvi_score_blank(logits, 4, both, 2, 3);
    assert_int_equal(score.best, 1); /* the first of equals */
    assert_true(score.best_admissible);
    assert_true(fabs(score.mass - (exp(1) + exp(2)) / sum) < 1e-12);
    assert_true(fabs(score.loss - (log(sum) - 1)) < 1e-12);
    score = qkvi_score_blank(logits, 4, other, 1, 2);
    assert_false(score.best_admissible);
    score = qkvi_score_blank(logits, 4, NULL, 0, 0);
    assert_false(score.best_admissible);
    assert_true(score.mass == 0);
}

/* Large logits must not overflow the sum. */
static void test_large_logits(void **state) {
    (void)state;
    const float logits[2] = { 900.0f, 901.0f };
    static const int32_t id = 1;
    const qkvi_blank_score score = qkvi_score_blank(logits, 2, &id, 1, 0);
    assert_true(fabs(score.mass - 1 / (1 + exp(-1))) < 1e-12);
    assert_true(fabs(score.loss - (log(1 + exp(1)))) < 1e-12);
}

static void test_token_of_span(void **state) {
    (void)state;
    static const char vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nred\ndoor\n##s\n.\n";
    qkv_tokenizer *tokenizer;
    qkv_encoding *e;
    qkv_error error;
    assert_int_equal(
        qkv_tokenizer_open_memory(vocab, sizeof vocab - 1, NULL, 0, &tokenizer, &error), QKV_OK);
    assert_int_equal(qkv_tokenizer_encode(tokenizer, "red doors.", 10, "door", 4, &e, &error),
                     QKV_OK);
    assert_int_equal(qkvi_token_of_span(e, (qkvi_span){ 0, 0, 3 }), 1);
    assert_int_equal(qkvi_token_of_span(e, (qkvi_span){ 0, 4, 9 }), -1); /* two pieces */
    assert_int_equal(qkvi_token_of_span(e, (qkvi_span){ 0, 9, 10 }), 4);
    assert_int_equal(qkvi_token_of_span(e, (qkvi_span){ 1, 0, 4 }), 6);
    assert_int_equal(qkvi_token_of_span(e, (qkvi_span){ 1, 4, 9 }), -1); /* not there */
    qkv_encoding_free(e);
    qkv_tokenizer_free(tokenizer);
}

/* Rows add up to the total, means are means, and figures that ought to be chance are. */
static void test_report_adds_up(void **state) {
    (void)state;
    qkv_ctx *ctx;
    qkv_model *model;
    qkv_eval_report *report;
    qkv_error error;
    int64_t n_blanks = 0, n_single = 0, n_right = 0;
    double mass = 0;
    assert_int_equal(qkv_ctx_create(NULL, &ctx, &error), QKV_OK);
    if (qkv_model_open(QKV_TEST_DATA "/golden/bert_old", NULL, &model, &error) != QKV_OK)
        fail_msg("%s", error.message);
    if (qkv_eval(ctx, model, NULL, QKV_TEST_ROOT "/models/default/grammar.txt", 1, &report,
                 &error) != QKV_OK)
        fail_msg("%s", error.message);
    for (int64_t r = 0; r < report->n_rows; r++) {
        const qkv_eval_row *const row = report->rows[r];
        assert_true(row->n_single <= row->n_blanks && row->n_top1_single <= row->n_single);
        assert_true(row->n_top1_single <= row->n_top1_admissible);
        assert_true(r == 0 || strcmp(report->rows[r - 1]->slot, row->slot) < 0);
        n_blanks += row->n_blanks;
        n_single += row->n_single;
        n_right += row->n_top1_admissible;
        mass += row->mass * (double)row->n_blanks;
    }
    assert_int_equal(report->total->n_blanks, n_blanks);
    assert_int_equal(report->total->n_single, n_single);
    assert_int_equal(report->total->n_top1_admissible, n_right);
    assert_true(fabs(report->total->mass - mass / (double)n_blanks) < 1e-9);
    assert_true(n_blanks > 1000 && report->n_pairs > 100 && report->n_probes >= 100);
    assert_true(report->total->mass < 0.2);
    assert_true(report->n_head_probes == report->n_probes / 2);
    qkv_eval_report_free(report);
    qkv_model_free(model);
    qkv_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_judgement),
        cmocka_unit_test(test_large_logits),
        cmocka_unit_test(test_token_of_span),
        cmocka_unit_test(test_report_adds_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
