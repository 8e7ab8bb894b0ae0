/*
 * Whole training runs, of seconds: the same bits on every instruction set and with any threads; a
 * text that can be learnt is learnt; options that make no sense are refused. Stops are in
 * test_train_resume.c.
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

#include "tiny_run.h"

/* ---- Bits ------------------------------------------------------------------------------------ */

static void test_same_bits(void **state) {
    (void)state;
    const qkv_train_options options = small_run();
    qkv_ctx *ctx = make_ctx("scalar", 1);
    train(ctx, &options);
    qkv_ctx_free(ctx);
    const result expected = take_result();
    for (int i = 0; qkv_isa_name(i); i++)
        for (int n_threads = 1; n_threads <= 3; n_threads += 2) {
            ctx = make_ctx(qkv_isa_name(i), n_threads);
            train(ctx, &options);
            qkv_ctx_free(ctx);
            expect_same(take_result(), &expected, qkv_isa_name(i));
        }
    free(expected.model);
    free(expected.log);
}

/* An older struct has no clip, and nothing behind it: the defaults hold, whatever lies there. */
static void test_an_older_struct(void **state) {
    (void)state;
    qkv_train_options options = small_run();
    options.seed = qkv_train_options_init().seed;
    const result expected = whole_run(&options);
    options.clip = 1e-3;
    const result clipped = whole_run(&options);
    assert_memory_not_equal(clipped.model, expected.model, expected.n_model);
    options.struct_size = offsetof(qkv_train_options, clip);
    memset(&options.clip, 0xa5, sizeof options - options.struct_size);
    expect_same(whole_run(&options), &expected, "an older struct");
    free_result(&clipped);
    free_result(&expected);
}

/* ---- Learning -------------------------------------------------------------------------------- */

static int note_loss(void *user, const qkv_train_report *report) {
    *(double *)user = report->loss;
    return 0;
}

/* The same figures through the public calls, one sentence and one [MASK] at a time. */
typedef struct recount {
    int64_t n, n_top1;
    double mass, loss;
} recount;

static void count_blank(qkv_ctx *ctx, const qkv_model *model, qkv_encoding *encoding, int64_t at,
                        recount *sums) {
    const int64_t vocab_size = qkv_model_get_info(model)->vocab_size;
    const qkv_tokenizer *const tokenizer = qkv_model_tokenizer(model, QKV_SOURCE);
    const int32_t word = encoding->ids[at];
    qkv_run *run;
    qkv_error error;
    qkv_candidate *const all = calloc((size_t)vocab_size, sizeof *all);
    assert_non_null(all);
    encoding->ids[at] = qkv_tokenizer_special(tokenizer, QKV_TOKEN_MASK);
    if (qkv_model_run(ctx, model, 1, (const qkv_encoding *const *)&encoding, 0, NULL, &run,
                      &error) ||
        qkv_model_candidates(ctx, model, run, QKV_HEAD_MASKED, 0, at, vocab_size, all,
                             sizeof(qkv_candidate), &error))
        fail_msg("%s", error.message);
    for (int64_t c = 0; c < vocab_size; c++)
        if (all[c].id == word) {
            sums->n++;
            sums->n_top1 += c == 0;
            sums->mass += (double)all[c].probability;
            sums->loss -= log((double)all[c].probability);
        }
    encoding->ids[at] = word;
    qkv_run_free(run);
    free(all);
}

static recount count_again(qkv_ctx *ctx, const qkv_model *model) {
    static const char *const lines[][2] = { { FIRST_A, FIRST_B }, { SECOND_A, SECOND_B } };
    recount sums = { 0 };
    for (int l = 0; l < 2; l++) {
        const char *const a = lines[l][0], *const b = lines[l][1];
        qkv_encoding *encoding;
        qkv_error error;
        if (qkv_tokenizer_encode(qkv_model_tokenizer(model, QKV_SOURCE), a, strlen(a), b, strlen(b),
                                 &encoding, &error) != QKV_OK)
            fail_msg("%s", error.message);
        for (int64_t at = 0; at < encoding->n; at++)
            if (!encoding->special[at]) count_blank(ctx, model, encoding, at, &sums);
        qkv_encoding_free(encoding);
    }
    return sums;
}

static void expect_same_figures(qkv_ctx *ctx, const qkv_model *model,
                                const qkv_eval_report *report) {
    const recount sums = count_again(ctx, model);
    const double n = (double)sums.n;
    assert_int_equal(report->total->n_blanks, sums.n);
    assert_int_equal(report->total->n_top1_admissible, sums.n_top1);
    assert_true(fabs(report->total->mass - sums.mass / n) < 1e-6);
    assert_true(fabs(report->mlm_loss - sums.loss / n) < 1e-5);
}

static void test_learns(void **state) {
    (void)state;
    qkv_train_options options = small_run();
    double loss = 0;
    qkv_model *model;
    qkv_eval_report *report;
    qkv_error error;
    qkv_ctx *const ctx = make_ctx(NULL, 2);
    options.n_steps = 500;
    options.batch = 24;
    options.warmup = 20;
    options.hidden = 32;
    options.learning_rate = 2e-3;
    options.report_every = 100;
    options.sinusoidal_positions = 1;
    options.report = note_loss;
    options.report_user = &loss;
    train(ctx, &options);
    if (qkv_model_open(out_path, NULL, &model, &error) != QKV_OK) fail_msg("%s", error.message);
    assert_true(qkv_model_get_info(model)->sinusoidal_positions);
    assert_null(qkv_model_unused(model, 0));
    if (qkv_eval(ctx, model, text_path, NULL, 1, &report, &error) != QKV_OK)
        fail_msg("%s", error.message);
    assert_int_equal(report->n_rows, 1);
    assert_string_equal(report->rows[0]->slot, "token");
    assert_int_equal(report->total->n_blanks, 4 * 6); /* four lines of six words, each once */
    assert_int_equal(report->total->n_single, report->total->n_blanks);
    if (report->total->n_top1_admissible != report->total->n_blanks || report->mlm_loss > 0.5)
        fail_msg("%d of %d words, loss %g", (int)report->total->n_top1_admissible,
                 (int)report->total->n_blanks, report->mlm_loss);
    assert_true(report->total->mass > 0.7 && report->total->mass <= 1);
    assert_int_equal(report->n_probes, 0);
    expect_same_figures(ctx, model, report);
    qkv_eval_report_free(report);
    qkv_model_free(model);
    qkv_ctx_free(ctx);
    clear_out();
}

/* ---- Arguments ------------------------------------------------------------------------------- */

static void expect_refused(const qkv_train_options *options, qkv_status status, const char *says) {
    qkv_error error = { QKV_OK, "" };
    qkv_ctx *const ctx = make_ctx(NULL, 1);
    const qkv_status got = qkv_train(ctx, options, &error);
    if (got != status || !strstr(error.message, says))
        fail_msg("%s \"%s\", expected %s \"%s\"", qkv_status_name(got), error.message,
                 qkv_status_name(status), says);
    qkv_ctx_free(ctx);
}

#define REFUSED(change, status, says)                                                              \
    do {                                                                                           \
        qkv_train_options options = small_run();                                                   \
        change;                                                                                    \
        expect_refused(&options, status, says);                                                    \
    } while (0)

static void test_bad_options(void **state) {
    (void)state;
    qkv_error error;
    REFUSED(options.out = NULL, QKV_ERR_ARGUMENT, "out is NULL");
    REFUSED(options.text = NULL, QKV_ERR_ARGUMENT, "exactly one of text, grammar");
    REFUSED(options.grammar = "x", QKV_ERR_ARGUMENT, "exactly one of text, grammar");
    REFUSED(options.text = "/tmp/absent", QKV_ERR_IO, "absent");
    REFUSED(options.n_layers = 0, QKV_ERR_ARGUMENT, "n_layers = 0 is not between 1 and 1024");
    REFUSED(options.n_heads = 3, QKV_ERR_SHAPE, "hidden = 20 is not a multiple of n_heads = 3");
    REFUSED(options.max_len = 4, QKV_ERR_ARGUMENT, "max_len = 4 is not between 5");
    REFUSED(options.batch = -1, QKV_ERR_ARGUMENT, "batch = -1");
    REFUSED(options.learning_rate = 0, QKV_ERR_ARGUMENT, "learning_rate = 0");
    REFUSED(options.beta2 = 1, QKV_ERR_ARGUMENT, "beta2 = 1");
    REFUSED(options.weight_decay = -1, QKV_ERR_ARGUMENT, "weight_decay = -1");
    REFUSED(options.struct_size = 8, QKV_ERR_ARGUMENT, "struct_size");
    REFUSED(options.out = "/tmp/absent/folder", QKV_ERR_IO, "cannot make the folder");
    assert_int_equal(qkv_train(NULL, NULL, &error), QKV_ERR_ARGUMENT);
    assert_false(exists("config.json"));
}

static void test_bad_eval(void **state) {
    (void)state;
    qkv_eval_report *report = NULL;
    qkv_error error;
    qkv_ctx *const ctx = make_ctx(NULL, 1);
    assert_int_equal(qkv_eval(ctx, NULL, text_path, NULL, 1, &report, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_eval(NULL, NULL, text_path, NULL, 1, NULL, &error), QKV_ERR_ARGUMENT);
    assert_null(report);
    qkv_eval_report_free(NULL);
    qkv_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_an_older_struct),
        cmocka_unit_test(test_learns),    cmocka_unit_test(test_bad_options),
        cmocka_unit_test(test_bad_eval),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
