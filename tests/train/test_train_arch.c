/*
 * Training of every architecture: stopped at each step and resumed on other threads and instruction
 * sets it ends with the same bits; the parts of a step together are the step of all their examples;
 * a model to start from determines sizes and vocabulary; invalid options are refused by name.
 * test_trained_golden.c shows that transformers reads the results.
 *
 * Usage: unit_train_arch [SEED]
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#include "tiny_run.h"

static uint64_t draws;
static char base_path[TEMPORARY_PATH + 8]; /* a model to start from */

static qkv_ctx *any_ctx(void) {
    int n_isas = 0;
    while (qkv_isa_name(n_isas)) n_isas++;
    draws = draws * 6364136223846793005u + 1442695040888963407u;
    return make_ctx(qkv_isa_name((int)((draws >> 33) % (uint32_t)n_isas)),
                    1 + (int)((draws >> 45) % 3));
}

/* A small run of an architecture with all that may be random or smoothed. */
static qkv_train_options run_of(qkv_model_kind arch) {
    qkv_train_options options = small_run();
    options.kind = arch;
    options.vocab_size = 280;
    options.hidden = 8;
    options.intermediate = 12;
    options.n_steps = 5;
    options.batch = 3;
    options.accumulate = 2;
    options.dropout = 0.2;
    options.report_every = 2;
    if (arch != QKV_MODEL_ENCODER) options.label_smoothing = 0.1;
    if (arch == QKV_MODEL_PAIR) options.n_decoder_layers = 1;
    return options;
}

/* The layers of Llama, with keys that heads share. */
static qkv_train_options run_of_llama(void) {
    qkv_train_options options = run_of(QKV_MODEL_DECODER);
    options.architecture = "llama";
    options.n_heads = 2;
    options.n_kv_heads = 1;
    return options;
}

/* ---- Resuming -------------------------------------------------------------------------------- */

static void resume_each_step(qkv_train_options options, const char *what) {
    const int raised = 1;
    const result expected = whole_run(&options);
    options.cancel = &raised;
    for (int64_t step = 1; step <= options.n_steps; step++) {
        qkv_error error;
        qkv_ctx *const ctx = any_ctx();
        options.resume = step > 1 ? out_path : NULL;
        const qkv_status status = qkv_train(ctx, &options, &error);
        if (status != (step < options.n_steps ? QKV_ERR_CANCELLED : QKV_OK))
            fail_msg("%s: step %d: %s", what, (int)step, error.message);
        qkv_ctx_free(ctx);
    }
    expect_same(take_result(), &expected, what);
    free_result(&expected);
}

static void test_resumes(void **state) {
    (void)state;
    resume_each_step(run_of(QKV_MODEL_ENCODER), "bert");
    resume_each_step(run_of(QKV_MODEL_DECODER), "gpt2");
    resume_each_step(run_of(QKV_MODEL_PAIR), "encdec");
    resume_each_step(run_of_llama(), "llama");
}

static void expect_refused(qkv_train_options options, qkv_status wanted, const char *says) {
    qkv_error error = { QKV_OK, "" };
    qkv_ctx *const ctx = make_ctx(NULL, 1);
    const qkv_status status = qkv_train(ctx, &options, &error);
    if (status != wanted || !strstr(error.message, says))
        fail_msg("%s \"%s\", expected %s \"%s\"", qkv_status_name(status), error.message,
                 qkv_status_name(wanted), says);
    qkv_ctx_free(ctx);
}

/* Each of the options is part of what a checkpoint is of. */
static void test_another_run(void **state) {
    (void)state;
    const int raised = 1;
    qkv_train_options options = run_of(QKV_MODEL_PAIR);
    qkv_error error;
    qkv_ctx *const ctx = make_ctx(NULL, 1);
    options.cancel = &raised;
    assert_int_equal(qkv_train(ctx, &options, &error), QKV_ERR_CANCELLED);
    options.resume = out_path;
    options.accumulate = 3;
    options.dropout = 0;
    options.label_smoothing = 0.25;
    expect_refused(options, QKV_ERR_ARGUMENT,
                   "is of another run: accumulate 2, not 3; dropout 0.2, not 0; label_smoothing "
                   "0.1, not 0.25");
    options = run_of(QKV_MODEL_PAIR);
    options.resume = out_path;
    options.n_decoder_layers = 2;
    expect_refused(options, QKV_ERR_ARGUMENT, "is of another run: decoder_layers 1, not 2");
    options = run_of_llama();
    options.resume = out_path;
    expect_refused(options, QKV_ERR_ARGUMENT, "llama 0, not 1; kv_heads 0, not 1");
    options = run_of(QKV_MODEL_DECODER);
    options.resume = out_path;
    expect_refused(options, QKV_ERR_ARGUMENT, "arch 2, not 1; decoder_layers 1, not 0");
    qkv_ctx_free(ctx);
    clear_out();
}

/* ---- Parts of a step ------------------------------------------------------------------------- */

/* Losses of the log: step, loss, …, held_out_loss. */
static int read_losses(const char *log, double losses[32]) {
    const size_t n_log = strlen(log);
    int n = 0;
    for (size_t at = strcspn(log, "\n") + 1; at < n_log; at += strcspn(log + at, "\n") + 1) {
        char *end;
        strtoll(log + at, &end, 10);
        while (*end == '\t' && n < 32) losses[n++] = strtod(end, &end);
    }
    return n;
}

/* The same examples in one part or in several: what differs is rounding, and the mean of next
 * sentences, which have no part of their own. */
static void test_parts_are_a_step(void **state) {
    (void)state;
    const qkv_train_options archs[] = { run_of(QKV_MODEL_DECODER), run_of(QKV_MODEL_PAIR),
                                        run_of_llama() };
    for (int a = 0; a < 3; a++) {
        qkv_train_options options = archs[a];
        double one[32], several[32];
        options.dropout = 0;
        options.batch = 12;
        options.accumulate = 1;
        const result whole = whole_run(&options);
        options.batch = 3;
        options.accumulate = 4;
        const result parts = whole_run(&options);
        const int n = read_losses(whole.log, one);
        assert_int_equal(read_losses(parts.log, several), n);
        assert_true(n >= 9);
        for (int i = 0; i < n; i++)
            if (fabs(one[i] - several[i]) > 2e-5 * fabs(one[i]))
                fail_msg("loss %d is %.9g in parts, %.9g as a whole", i, several[i], one[i]);
        free_result(&whole);
        free_result(&parts);
    }
}

/* Dropout and smoothing do something, and not to the loss of what is held out at the first step. */
static void test_dropout_and_smoothing(void **state) {
    (void)state;
    qkv_train_options options = run_of(QKV_MODEL_DECODER);
    double dry[32], wet[32], smooth[32];
    options.dropout = options.label_smoothing = 0;
    options.n_steps = options.report_every = 1;
    options.learning_rate = 1e-12;
    const result none = whole_run(&options);
    options.dropout = 0.5;
    const result dropped = whole_run(&options);
    options.dropout = 0;
    options.label_smoothing = 0.5;
    const result smoothed = whole_run(&options);
    read_losses(none.log, dry);
    read_losses(dropped.log, wet);
    read_losses(smoothed.log, smooth);
    assert_true(dry[0] != wet[0] && dry[0] != smooth[0]);
    assert_true(fabs(dry[1] - wet[1]) < 2e-6 && fabs(dry[1] - smooth[1]) < 2e-6);
    free_result(&none);
    free_result(&dropped);
    free_result(&smoothed);
}

/* ---- Starting from a model ------------------------------------------------------------------- */

static void make_base_of(qkv_train_options options) {
    qkv_ctx *const ctx = make_ctx(NULL, 1);
    train(ctx, &options);
    qkv_ctx_free(ctx);
    assert_int_equal(rename(out_path, base_path), 0);
}

static void make_base(qkv_model_kind arch) { make_base_of(run_of(arch)); }

static void drop_base(void) {
    assert_int_equal(rename(base_path, out_path), 0);
    clear_out();
}

static char *slurp_base(const char *name, size_t *n) {
    char path[300], *bytes;
    qkv_error error;
    snprintf(path, sizeof path, "%s/%s", base_path, name);
    if (qkvi_file_load(path, 1 << 24, &bytes, n, &error)) fail_msg("%s", error.message);
    return bytes;
}

static void expect_copied(const char *name) {
    size_t n, n_base;
    char *const ours = slurp(name, &n), *const base = slurp_base(name, &n_base);
    assert_int_equal(n, n_base);
    assert_memory_equal(ours, base, n);
    free(ours);
    free(base);
}

/* Sizes and words are the model's, whatever the options say; it goes on from its weights. */
static void test_from(void **state) {
    (void)state;
    for (int arch = QKV_MODEL_ENCODER; arch <= QKV_MODEL_PAIR; arch++) {
        make_base((qkv_model_kind)arch);
        qkv_train_options options = run_of(QKV_MODEL_ENCODER);
        qkv_model *model;
        qkv_error error;
        options.from = base_path;
        options.hidden = 64;
        options.n_layers = 5;
        options.vocab_size = 999;
        options.learning_rate = 1e-3;
        options.n_steps = 30;
        qkv_ctx *const ctx = make_ctx(NULL, 2);
        train(ctx, &options);
        expect_copied("config.json");
        expect_copied("tokenizer.json");
        if (qkv_model_open(out_path, NULL, &model, &error)) fail_msg("%s", error.message);
        const qkv_model_info *const info = qkv_model_get_info(model);
        assert_int_equal(info->hidden, 8);
        assert_int_equal(info->n_layers, 2);
        assert_int_equal(info->kind, arch);
        qkv_model_free(model);
        qkv_ctx_free(ctx);
        clear_out();
        options.n_steps = 5;
        resume_each_step(options, "from a model");
        drop_base();
    }
}

/* A Llama stays one; its key/value heads are its own. */
static void test_from_llama(void **state) {
    (void)state;
    make_base_of(run_of_llama());
    qkv_train_options options = run_of(QKV_MODEL_ENCODER);
    qkv_model *model;
    qkv_error error;
    options.from = base_path;
    qkv_ctx *const ctx = make_ctx(NULL, 2);
    train(ctx, &options);
    expect_copied("config.json");
    if (qkv_model_open(out_path, NULL, &model, &error)) fail_msg("%s", error.message);
    assert_string_equal(qkv_model_get_info(model)->architecture, "llama");
    assert_int_equal(qkv_model_get_info(model)->n_kv_heads, 1);
    qkv_model_free(model);
    clear_out();
    resume_each_step(options, "from a llama");
    qkv_ctx_free(ctx);
    drop_base();
    options = run_of_llama();
    options.architecture = "qwen2";
    expect_refused(options, QKV_ERR_ARGUMENT,
                   "architecture 'qwen2' is none of a gpt2 that can be trained anew");
    options.architecture = NULL;
    expect_refused(options, QKV_ERR_ARGUMENT, "n_kv_heads is not for this kind of model");
    options = run_of_llama();
    options.n_heads = 8;
    expect_refused(options, QKV_ERR_SHAPE, "hidden = 8 makes heads of 1 channels, which is odd");
    options.hidden = 12;
    options.n_heads = 3, options.n_kv_heads = 2;
    expect_refused(options, QKV_ERR_SHAPE, "n_heads = 3 is not a multiple of n_kv_heads = 2");
}

/* The folder that it started from may be the one that it writes. */
static void test_from_itself(void **state) {
    (void)state;
    qkv_train_options options = run_of(QKV_MODEL_DECODER);
    qkv_ctx *const ctx = make_ctx(NULL, 1);
    double losses[32];
    options.dropout = options.label_smoothing = 0;
    train(ctx, &options);
    size_t n;
    char *log = slurp("train_log.tsv", &n);
    const int n_first = read_losses(log, losses);
    const double first = losses[n_first - 3]; /* of what is held out */
    free(log);
    options.from = out_path;
    train(ctx, &options);
    log = slurp("train_log.tsv", &n);
    assert_int_equal(read_losses(log, losses), n_first);
    assert_true(losses[n_first - 3] < first);
    free(log);
    qkv_ctx_free(ctx);
    clear_out();
}

static void test_from_refused(void **state) {
    (void)state;
    make_base(QKV_MODEL_DECODER);
    qkv_train_options options = run_of(QKV_MODEL_ENCODER);
    options.from = base_path;
    options.max_len = 17;
    expect_refused(options, QKV_ERR_ARGUMENT, "max_len = 17 is more than 16, that of");
    options.max_len = 16;
    options.from = "/tmp/absent";
    expect_refused(options, QKV_ERR_IO, "absent");
    assert_false(exists("train_log.tsv"));
    drop_base();
}

/* ---- Arguments ------------------------------------------------------------------------------- */

#define REFUSED(which, change, status, says)                                                       \
    do {                                                                                           \
        qkv_train_options options = run_of(which);                                                 \
        change;                                                                                    \
        expect_refused(options, status, says);                                                     \
    } while (0)

static void test_bad_options(void **state) {
    (void)state;
    REFUSED(QKV_MODEL_ENCODER, options.kind = 3, QKV_ERR_ARGUMENT,
            "kind = 3 is not between 0 and 2");
    REFUSED(QKV_MODEL_ENCODER, options.accumulate = -1, QKV_ERR_ARGUMENT, "accumulate = -1");
    REFUSED(QKV_MODEL_ENCODER, options.dropout = 1, QKV_ERR_ARGUMENT,
            "dropout = 1 is not in [0, 1)");
    REFUSED(QKV_MODEL_DECODER, options.dropout = NAN, QKV_ERR_ARGUMENT, "dropout = nan");
    REFUSED(QKV_MODEL_DECODER, options.label_smoothing = -0.1, QKV_ERR_ARGUMENT,
            "= -0.1 is not in");
    REFUSED(QKV_MODEL_ENCODER, options.label_smoothing = 0.1, QKV_ERR_ARGUMENT,
            "label_smoothing is not for this kind of model");
    REFUSED(QKV_MODEL_DECODER, options.n_decoder_layers = 1, QKV_ERR_ARGUMENT,
            "n_decoder_layers is not for this kind of model");
    REFUSED(QKV_MODEL_PAIR, options.sinusoidal_positions = 1, QKV_ERR_ARGUMENT,
            "sinusoidal_positions is not for this kind of model");
    REFUSED(QKV_MODEL_DECODER, options.vocab_size = 256, QKV_ERR_ARGUMENT,
            "vocab_size = 256 is less than the 257 bytes and special tokens");
    write_text("one\ttwo\nthree\n");
    REFUSED(QKV_MODEL_PAIR, (void)options, QKV_ERR_FORMAT, "line 2 is not source TAB target");
    write_text(TEXT);
    REFUSED(QKV_MODEL_PAIR,
            (options.text = NULL, options.grammar = QKV_TEST_ROOT "/models/default/grammar.txt"),
            QKV_ERR_ARGUMENT, "a grammar has no translations");
}

/* 0 parts, of a caller who does not know of them, are one. */
static void test_no_parts(void **state) {
    (void)state;
    qkv_train_options options = run_of(QKV_MODEL_DECODER);
    options.accumulate = 1;
    const result expected = whole_run(&options);
    options.accumulate = 0;
    expect_same(whole_run(&options), &expected, "0 parts");
    free_result(&expected);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resumes),
        cmocka_unit_test(test_another_run),
        cmocka_unit_test(test_parts_are_a_step),
        cmocka_unit_test(test_dropout_and_smoothing),
        cmocka_unit_test(test_from),
        cmocka_unit_test(test_from_llama),
        cmocka_unit_test(test_from_itself),
        cmocka_unit_test(test_from_refused),
        cmocka_unit_test(test_bad_options),
        cmocka_unit_test(test_no_parts),
    };
    draws = argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t)time(NULL);
    print_message("seed %llu\n", (unsigned long long)draws);
    void *made = NULL;
    if (make_folder(&made) != 0) return 1;
    snprintf(base_path, sizeof base_path, "%s/base", folder);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return remove_folder(&made) != 0 || failed;
}
