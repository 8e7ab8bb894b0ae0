/*
 * Slices of a batch: for each number of slices the same bytes, on any threads and instruction set
 * and after a stop; losses and weights are near those of one slice; and a run with another number
 * of slices counts as another run.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tiny_run.h"

enum { BATCH = 8, KINDS = 4, LOSSES = 40 };

/* A small run of a kind of model; 3 is a Llama. */
static qkv_train_options run_of(int kind) {
    qkv_train_options options = small_run();
    options.kind = kind == 3 ? QKV_MODEL_DECODER : (qkv_model_kind)kind;
    options.vocab_size = 280;
    options.hidden = 8;
    options.intermediate = 12;
    options.n_steps = 5;
    options.batch = BATCH;
    options.accumulate = 2;
    options.dropout = 0.2;
    options.report_every = 2;
    if (kind == 3) options.architecture = "llama";
    return options;
}

static void run_on(const qkv_train_options *options, const char *isa, int n_threads,
                   const result *expected) {
    qkv_ctx *const ctx = make_ctx(isa, n_threads);
    train(ctx, options);
    qkv_ctx_free(ctx);
    expect_same(take_result(), expected, isa ? isa : "the best");
}

static void test_threads(void **state) {
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (int64_t n = 1; n <= BATCH; n = n == 1 ? 2 : n == 2 ? 8 : BATCH + 1) {
            qkv_train_options options = run_of(kind);
            options.n_slices = n;
            const result expected = whole_run(&options);
            run_on(&options, NULL, 1, &expected);
            run_on(&options, NULL, 2, &expected);
            run_on(&options, NULL, 3, &expected);
            free_result(&expected);
        }
}

/* One slice, or none of a caller who knows of no slices, is the batch as it was. */
static void test_no_slices(void **state) {
    (void)state;
    qkv_train_options options = run_of(QKV_MODEL_ENCODER);
    assert_int_equal(options.n_slices, 1);
    const result expected = whole_run(&options);
    options.n_slices = 0;
    expect_same(whole_run(&options), &expected, "0 slices");
    options.n_slices = 2;
    const result other = whole_run(&options);
    assert_false(other.n_model == expected.n_model &&
                 memcmp(other.model, expected.model, other.n_model) == 0);
    free_result(&other);
    free_result(&expected);
}

/* The numbers of a log. */
static int read_numbers(const result *run, double numbers[LOSSES]) {
    const char *at = run->log + strcspn(run->log, "\n");
    int n = 0;
    for (char *end; n < LOSSES; at = end) {
        numbers[n] = strtod(at, &end);
        if (end == at) break;
        n++;
    }
    return n;
}

/* Without dropout only rounding differs: the objective is one. A slice weighed by anything but its
 * targets, or its labels, would differ from the first step on. */
static void test_one_objective(void **state) {
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        qkv_train_options options = run_of(kind);
        double one[LOSSES], sliced[LOSSES];
        options.dropout = 0;
        options.report_every = 1;
        options.learning_rate = 0.01;
        const result whole = whole_run(&options);
        const int n = read_numbers(&whole, one);
        assert_true(n >= 25);
        for (int64_t slices = 2; slices <= BATCH; slices += 3) {
            options.n_slices = slices;
            const result parts = whole_run(&options);
            assert_int_equal(read_numbers(&parts, sliced), n);
            for (int i = 0; i < n; i++)
                if (fabs(one[i] - sliced[i]) > 2e-5 * fabs(one[i]))
                    fail_msg("kind %d, %d slices: number %d is %.9g, of one slice %.9g", kind,
                             (int)slices, i, sliced[i], one[i]);
            free_result(&parts);
        }
        free_result(&whole);
    }
}

static void expect_refused(const qkv_train_options *options, const char *says) {
    qkv_error error = { QKV_OK, "" };
    qkv_ctx *const ctx = make_ctx(NULL, 1);
    const qkv_status status = qkv_train(ctx, options, &error);
    if (status != QKV_ERR_ARGUMENT || !strstr(error.message, says))
        fail_msg("%s \"%s\", expected \"%s\"", qkv_status_name(status), error.message, says);
    qkv_ctx_free(ctx);
}

static void test_stopped(void **state) {
    (void)state;
    const int raised = 1;
    qkv_error error;
    qkv_train_options options = run_of(QKV_MODEL_ENCODER);
    options.n_slices = 3;
    const result expected = whole_run(&options);
    qkv_ctx *const ctx = make_ctx(NULL, 2);
    options.cancel = &raised;
    assert_int_equal(qkv_train(ctx, &options, &error), QKV_ERR_CANCELLED);
    qkv_ctx_free(ctx);
    options.cancel = NULL;
    options.resume = out_path;
    options.n_slices = 4;
    expect_refused(&options, "is of another run: slices 3, not 4");
    options.n_slices = 1;
    expect_refused(&options, "is of another run: slices 3, not 1");
    options.n_slices = 3;
    run_on(&options, NULL, 1, &expected);
    free_result(&expected);
}

static void test_refused(void **state) {
    (void)state;
    qkv_train_options options = run_of(QKV_MODEL_DECODER);
    options.n_slices = -1;
    expect_refused(&options, "n_slices = -1 is not between 1 and 65536");
    options.n_slices = BATCH + 1;
    expect_refused(&options, "n_slices = 9 is more than batch = 8 sequences");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),       cmocka_unit_test(test_no_slices),
        cmocka_unit_test(test_one_objective), cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
