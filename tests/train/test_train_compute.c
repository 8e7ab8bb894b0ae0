/*
 * Training that computes in bf16: in each class a run of any architecture has the same bits on
 * every instruction set and number of threads, stopped at each step or not; it stays near the run
 * in f32, from which it differs; `bf16` is one of the two classes; a checkpoint of one class is
 * refused by the others, by name.
 *
 * Usage: unit_train_compute [SEED]
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "tiny_run.h"

static uint64_t seed, draws;
static double losses[64]; /* of the reports of the last run */
static int n_losses;

static uint32_t below(uint32_t n) {
    draws = draws * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((draws >> 33) % n);
}

/* Any of the instruction sets, one to four threads. */
static qkv_ctx *any_ctx(void) {
    int n_isas = 0;
    while (qkv_isa_name(n_isas)) n_isas++;
    return make_ctx(qkv_isa_name((int)below((uint32_t)n_isas)), 1 + (int)below(4));
}

static qkv_train_options run_in(int compute, int arch) {
    qkv_train_options options = small_run();
    options.compute = (qkv_model_weights)compute;
    options.kind = (qkv_model_kind)arch;
    options.n_layers = 1;
    if (arch != QKV_MODEL_ENCODER) options.vocab_size = 280;
    options.n_steps = 4;
    options.batch = 3;
    options.accumulate = 2;
    options.dropout = 0.1;
    return options;
}

/* Stopped after every step. */
static void check_stops(qkv_train_options options, const result *expected) {
    const int raised = 1;
    qkv_status status = QKV_ERR_CANCELLED;
    qkv_error error;
    options.cancel = &raised;
    for (int64_t step = 0; step < options.n_steps; step++) {
        qkv_ctx *const ctx = any_ctx();
        status = qkv_train(ctx, &options, &error);
        qkv_ctx_free(ctx);
        options.resume = out_path;
    }
    if (status != QKV_OK) fail_msg("%s", error.message);
    expect_same(take_result(), expected, "stopped at each step");
}

static void test_same_bits(void **state) {
    (void)state;
    for (int compute = QKV_WEIGHTS_BF16_DP; compute <= QKV_WEIGHTS_BF16_AMX; compute++)
        for (int arch = QKV_MODEL_ENCODER; arch <= QKV_MODEL_PAIR; arch++) {
            const qkv_train_options options = run_in(compute, arch);
            const result expected = whole_run(&options);
            check_stops(options, &expected);
            free_result(&expected);
        }
}

/* ---- Near the run in f32 --------------------------------------------------------------------- */

static int note_loss(void *user, const qkv_train_report *report) {
    (void)user;
    if (n_losses < 64) losses[n_losses++] = report->loss;
    return 0;
}

static void learn(int compute, double to[64]) {
    qkv_train_options options = small_run();
    qkv_ctx *const ctx = make_ctx(NULL, 2);
    options.compute = (qkv_model_weights)compute;
    options.n_steps = 240;
    options.learning_rate = 2e-2;
    options.warmup = 10;
    options.report_every = 40;
    options.report = note_loss;
    n_losses = 0;
    train(ctx, &options);
    memcpy(to, losses, sizeof losses);
    qkv_ctx_free(ctx);
    clear_out();
}

/*
 * The mean losses of 40 steps each. Gradients that are some 1 % apart, not always to the same side,
 * lead to losses that are less than 5 % and 0.05 apart while they fall to a third.
 */
static void test_learns_as_in_f32(void **state) {
    (void)state;
    static double exact[64], near[64];
    learn(QKV_WEIGHTS_F32, exact);
    assert_int_equal(n_losses, 6);
    assert_true(exact[5] < 0.4 * exact[0]);
    for (int compute = QKV_WEIGHTS_BF16_DP; compute <= QKV_WEIGHTS_BF16_AMX; compute++) {
        learn(compute, near);
        for (int i = 0; i < n_losses; i++) {
            if (near[i] == exact[i]) fail_msg("report %d: computed in f32", i);
            if (!(fabs(near[i] - exact[i]) <= 0.05 * exact[i] + 0.05))
                fail_msg("report %d: %g, in f32 %g", i, near[i], exact[i]);
        }
    }
}

/* ---- Checkpoints and options ----------------------------------------------------------------- */

static void expect_error(const qkv_train_options *options, const char *says) {
    qkv_error error = { QKV_OK, "" };
    qkv_ctx *const ctx = any_ctx();
    const qkv_status status = qkv_train(ctx, options, &error);
    qkv_ctx_free(ctx);
    if (status != QKV_ERR_ARGUMENT || !strstr(error.message, says))
        fail_msg("%s \"%s\", expected \"%s\"", qkv_status_name(status), error.message, says);
}

static void stop_after_one_step(int compute) {
    qkv_train_options options = run_in(compute, QKV_MODEL_ENCODER);
    const int raised = 1;
    qkv_ctx *const ctx = any_ctx();
    options.cancel = &raised;
    assert_int_equal(qkv_train(ctx, &options, NULL), QKV_ERR_CANCELLED);
    qkv_ctx_free(ctx);
}

static void test_another_class_is_refused(void **state) {
    (void)state;
    static const char *const names[] = { "f32", NULL, "bf16-dp", "bf16-amx" };
    for (int stored = QKV_WEIGHTS_F32; stored <= QKV_WEIGHTS_BF16_AMX; stored++) {
        if (!names[stored]) continue;
        stop_after_one_step(stored);
        for (int asked = QKV_WEIGHTS_F32; asked <= QKV_WEIGHTS_BF16_AMX; asked++) {
            qkv_train_options options = run_in(asked, QKV_MODEL_ENCODER);
            char says[80];
            if (!names[asked] || asked == stored) continue;
            options.resume = out_path;
            snprintf(says, sizeof says, "is of another run: compute %s, not %s", names[stored],
                     names[asked]);
            expect_error(&options, says);
        }
        clear_out();
    }
}

static void test_the_faster_class(void **state) {
    (void)state;
    const qkv_train_options fast = run_in(QKV_WEIGHTS_BF16, QKV_MODEL_ENCODER);
    const result got = whole_run(&fast);
    int n_same = 0;
    for (int compute = QKV_WEIGHTS_BF16_DP; compute <= QKV_WEIGHTS_BF16_AMX; compute++) {
        const qkv_train_options options = run_in(compute, QKV_MODEL_ENCODER);
        const result one = whole_run(&options);
        n_same += one.n_model == got.n_model && memcmp(one.model, got.model, one.n_model) == 0;
        free_result(&one);
    }
    free_result(&got);
    assert_int_equal(n_same, 1);
    stop_after_one_step(QKV_WEIGHTS_BF16); /* the checkpoint names the class */
    qkv_train_options f32 = run_in(QKV_WEIGHTS_F32, QKV_MODEL_ENCODER);
    f32.resume = out_path;
    expect_error(&f32, "is of another run: compute bf16-");
    clear_out();
}

static void test_bad_values(void **state) {
    (void)state;
    qkv_train_options options = run_in(4, QKV_MODEL_ENCODER);
    expect_error(&options, "compute = 4 is not between 0 and 3");
    options.compute = (qkv_model_weights)-1;
    expect_error(&options, "compute = -1 is not between 0 and 3");
}

int main(int argc, char **argv) {
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t)time(NULL);
    draws = seed;
    print_message("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_same_bits),
                                        cmocka_unit_test(test_learns_as_in_f32),
                                        cmocka_unit_test(test_another_class_is_refused),
                                        cmocka_unit_test(test_the_faster_class),
                                        cmocka_unit_test(test_bad_values) };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
