/*
 * Whole training runs, of seconds: the same bits on every instruction set, with any threads and
 * after a stop; files that are there afterwards; a text that can be learnt is learnt; options that
 * make no sense are refused.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "model/store/file.h"
#include "qkv/model.h"

#define FIRST_A  "the red door opened at noon"
#define FIRST_B  "it was a very old one"
#define SECOND_A "two dogs barked in my garden"
#define SECOND_B "they saw some cat run by"

#define TEXT FIRST_A "\t" FIRST_B "\n" SECOND_A "\t" SECOND_B "\n"

static char folder[] = "/tmp/qkv-train-XXXXXX";
static char text_path[64], out_path[64];

/* ---- Helpers --------------------------------------------------------------------------------- */

static qkv_ctx *make_ctx(const char *isa, int n_threads) {
    qkv_ctx_options options = QKV_CTX_OPTIONS_INIT;
    qkv_ctx *ctx;
    qkv_error error;
    options.isa = isa;
    options.n_threads = n_threads;
    if (qkv_ctx_create(&options, &ctx, &error) != QKV_OK) fail_msg("%s", error.message);
    return ctx;
}

static void write_text(const char *text) {
    FILE *const out = fopen(text_path, "wb");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
}

/* A small run: 2 layers of 2 heads, six steps. */
static qkv_train_options small_run(void) {
    qkv_train_options options;
    qkv_train_options_default(&options);
    options.text = text_path;
    options.out = out_path;
    options.n_layers = 2;
    options.n_heads = 2;
    options.hidden = 20;
    options.intermediate = 36;
    options.vocab_size = 200;
    options.max_len = 16;
    options.n_steps = 6;
    options.batch = 12;
    options.warmup = 2;
    options.report_every = 2;
    options.seed = 7;
    return options;
}

static char *slurp(const char *name, size_t *n) {
    char path[128], *bytes;
    qkv_error error;
    snprintf(path, sizeof path, "%s/%s", out_path, name);
    if (qkvi_file_load(path, 1 << 24, &bytes, n, &error) != QKV_OK) fail_msg("%s", error.message);
    return bytes;
}

static int exists(const char *name) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", out_path, name);
    return qkvi_file_exists(path);
}

static void clear_out(void) {
    static const char *const names[] = { "config.json",           "vocab.txt",
                                         "tokenizer.json",        "tokenizer_config.json",
                                         "model.safetensors",     "train_log.tsv",
                                         "checkpoint.safetensors" };
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", out_path, names[n]);
        unlink(path);
    }
    rmdir(out_path); /* fails if anything else is left, and so does the folder's at the end */
}

static void train(qkv_ctx *ctx, const qkv_train_options *options) {
    qkv_error error;
    if (qkv_train(ctx, options, &error) != QKV_OK) fail_msg("%s", error.message);
}

/* ---- Bits ------------------------------------------------------------------------------------ */

typedef struct result {
    char *model, *log;
    size_t n_model, n_log;
} result;

static result take_result(void) {
    result r;
    r.model = slurp("model.safetensors", &r.n_model);
    r.log = slurp("train_log.tsv", &r.n_log);
    clear_out();
    return r;
}

static void expect_same(result got, const result *expected, const char *what) {
    if (got.n_model != expected->n_model || memcmp(got.model, expected->model, got.n_model) != 0)
        fail_msg("%s: another model", what);
    if (got.n_log != expected->n_log || memcmp(got.log, expected->log, got.n_log) != 0)
        fail_msg("%s: another log:\n%s", what, got.log);
    free(got.model);
    free(got.log);
}

static void test_same_bits(void **state) {
    (void)state;
    const qkv_train_options options = small_run();
    qkv_ctx *ctx = make_ctx("scalar", 1);
    train(ctx, &options);
    qkv_ctx_destroy(ctx);
    const result expected = take_result();
    for (int i = 0; qkv_isa_name(i); i++)
        for (int n_threads = 1; n_threads <= 3; n_threads += 2) {
            ctx = make_ctx(qkv_isa_name(i), n_threads);
            train(ctx, &options);
            qkv_ctx_destroy(ctx);
            expect_same(take_result(), &expected, qkv_isa_name(i));
        }
    free(expected.model);
    free(expected.log);
}

static int stop_at(void *user, const qkv_train_report *report) {
    return report->step >= *(const int64_t *)user;
}

/* Stopped after each of the reports, then resumed: the run that was never stopped. */
static void test_resume(void **state) {
    (void)state;
    qkv_train_options options = small_run();
    qkv_error error;
    qkv_ctx *const ctx = make_ctx(NULL, 2);
    train(ctx, &options);
    const result expected = take_result();
    for (int64_t stop = 2; stop <= 4; stop += 2) {
        options = small_run();
        options.report = stop_at;
        options.report_user = &stop;
        assert_int_equal(qkv_train(ctx, &options, &error), QKV_ERR_CANCELLED);
        assert_non_null(strstr(error.message, "stopped after step"));
        assert_true(exists("checkpoint.safetensors"));
        assert_false(exists("model.safetensors"));
        options = small_run();
        options.resume = out_path;
        train(ctx, &options);
        assert_false(exists("checkpoint.safetensors"));
        expect_same(take_result(), &expected, "resumed");
    }
    free(expected.model);
    free(expected.log);
    qkv_ctx_destroy(ctx);
}

static void test_resume_of_another_run(void **state) {
    (void)state;
    qkv_train_options options = small_run();
    int64_t stop = 2;
    qkv_error error;
    qkv_ctx *const ctx = make_ctx(NULL, 1);
    options.report = stop_at;
    options.report_user = &stop;
    assert_int_equal(qkv_train(ctx, &options, &error), QKV_ERR_CANCELLED);
    options.report = NULL;
    options.resume = out_path;
    options.seed = 8;
    assert_int_equal(qkv_train(ctx, &options, &error), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "other options or another corpus"));
    options.seed = 7;
    write_text(FIRST_B "\t" FIRST_A "\n" SECOND_A "\t" SECOND_B "\n"); /* the same words */
    assert_int_equal(qkv_train(ctx, &options, &error), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "other options or another corpus"));
    write_text(TEXT);
    options.resume = folder;
    assert_int_equal(qkv_train(ctx, &options, &error), QKV_ERR_IO);
    clear_out();
    qkv_ctx_destroy(ctx);
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
    const qkv_tokenizer *const tokenizer = qkv_model_tokenizer(model);
    const int32_t word = encoding->ids[at];
    qkv_run *run;
    qkv_error error;
    qkv_candidate *const all = calloc((size_t)vocab_size, sizeof *all);
    assert_non_null(all);
    encoding->ids[at] = qkv_tokenizer_special(tokenizer, QKV_TOKEN_MASK);
    if (qkv_model_run(ctx, model, 1, (const qkv_encoding *const *)&encoding, 0, &run, &error) ||
        qkv_model_fill(ctx, model, run, 0, at, vocab_size, all, &error))
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
        if (qkv_tokenizer_encode(qkv_model_tokenizer(model), a, strlen(a), b, strlen(b), &encoding,
                                 &error) != QKV_OK)
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
    assert_int_equal(report->total.n_blanks, sums.n);
    assert_int_equal(report->total.n_top1_admissible, sums.n_top1);
    assert_true(fabs(report->total.mass - sums.mass / n) < 1e-6);
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
    if (qkv_model_open(out_path, &model, &error) != QKV_OK) fail_msg("%s", error.message);
    assert_true(qkv_model_get_info(model)->sinusoidal_positions);
    assert_null(qkv_model_unused(model, 0));
    if (qkv_eval(ctx, model, text_path, NULL, 1, &report, &error) != QKV_OK)
        fail_msg("%s", error.message);
    assert_int_equal(report->n_rows, 1);
    assert_string_equal(report->rows[0].slot, "token");
    assert_int_equal(report->total.n_blanks, 4 * 6); /* four lines of six words, each once */
    assert_int_equal(report->total.n_single, report->total.n_blanks);
    if (report->total.n_top1_admissible != report->total.n_blanks || report->mlm_loss > 0.5)
        fail_msg("%d of %d words, loss %g", (int)report->total.n_top1_admissible,
                 (int)report->total.n_blanks, report->mlm_loss);
    assert_true(report->total.mass > 0.7 && report->total.mass <= 1);
    assert_int_equal(report->n_probes, 0);
    expect_same_figures(ctx, model, report);
    qkv_eval_report_free(report);
    qkv_model_free(model);
    qkv_ctx_destroy(ctx);
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
    qkv_ctx_destroy(ctx);
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
    REFUSED(options.text = NULL, QKV_ERR_ARGUMENT, "exactly one of text and grammar");
    REFUSED(options.grammar = "x", QKV_ERR_ARGUMENT, "exactly one of text and grammar");
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
    qkv_ctx_destroy(ctx);
}

/* Four sentences in which every word follows from the others, each often. */
static int make_folder(void **state) {
    *state = mkdtemp(folder);
    if (!*state) return -1;
    snprintf(text_path, sizeof text_path, "%s/text", folder);
    snprintf(out_path, sizeof out_path, "%s/out", folder);
    write_text(TEXT);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(text_path);
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_resume_of_another_run),
        cmocka_unit_test(test_learns),
        cmocka_unit_test(test_bad_options),
        cmocka_unit_test(test_bad_eval),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
