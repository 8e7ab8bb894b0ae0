/**
 * The run of the kernel check: a case that crashes, exits or fails is a failure with its seed, and
 * other cases still run. check_whole is replaced here; parts run unchanged.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "check/check.h"

enum { CRASHES = 13, EXITS = 15, FAILS = 17 };

void __wrap_check_whole(const check_options *options, uint64_t seed, check_report *report);
void __wrap_check_whole(const check_options *options, uint64_t seed, check_report *report) {
    (void)options;
    report->fraction[BOUND_LSE] = (double)seed / 100;
    if (seed == CRASHES) {
        signal(SIGSEGV, SIG_DFL); /* not cmocka's, nor a sanitizer's */
        guarded page = guarded_new(16, true);
        ((volatile char *)page.data)[16] = 1;
    }
    if (seed == EXITS) _exit(3);
    if (seed == FAILS) check_failed(report, "element %d", 5);
}

struct seen {
    int64_t calls, done, total;
};

static void on_progress(void *user, int64_t done, int64_t total) {
    struct seen *seen = user;
    assert_true(done == seen->done + 1);
    *seen = (struct seen){ seen->calls + 1, done, total };
}

static void test_failures(void **state) {
    (void)state;
    struct seen seen = { 0, 0, 0 };
    char *told = NULL;
    size_t n_told = 0;
    FILE *failures = open_memstream(&told, &n_told);
    static check_summary summary;
    const check_options options = {
        .n_cases = 10, .seed = 10, .failures = failures, .progress = on_progress, .user = &seen
    };
    assert_int_equal(check_run(&options, &summary), 3);
    fclose(failures);
    assert_int_equal(summary.n_cases[CHECK_PARTS], 10);
    assert_int_equal(summary.n_failed[CHECK_PARTS], 0);
    assert_int_equal(summary.n_cases[CHECK_WHOLE], 10);
    assert_int_equal(summary.n_failed[CHECK_WHOLE], 3);
    assert_int_equal(summary.first_kind, CHECK_WHOLE);
    assert_int_equal(summary.first_seed, CRASHES);
    assert_string_equal(summary.first_message, "Segmentation fault");
    assert_true(summary.fraction[BOUND_LSE] > 0.1899 && summary.fraction[BOUND_LSE] < 0.1901);
    assert_string_equal(summary.isas[0], "scalar");
    assert_int_equal(seen.calls, 30);
    assert_int_equal(seen.total, 30);
    assert_non_null(strstr(told, "FAILED whole, seed 13: "));
    assert_non_null(strstr(told, "FAILED whole, seed 15: it exited\n"));
    assert_non_null(strstr(told, "FAILED whole, seed 17: element 5\n"));
    free(told);
}

static void test_one_isa(void **state) {
    (void)state;
    static check_summary summary;
    const check_options options = { .n_cases = 1, .seed = 1, .isa = "scalar" };
    assert_int_equal(check_run(&options, &summary), 0);
    assert_int_equal(summary.n_isas, 1);
    assert_string_equal(summary.first_message, "");
}

/* Each pair once; those that cannot be written down are exactly these. */
static void test_pairs(void **state) {
    static const feature refused[][2] = { { FEATURE_MASK_BOOL, FEATURE_MASK_BITS },
                                          { FEATURE_MASK_BOOL, FEATURE_MASK_ADDED },
                                          { FEATURE_MASK_BITS, FEATURE_MASK_ADDED } };
    (void)state;
    int n_refused = 0, at = 0;
    for (int a = 0; a < FEATURE_PAIRED; a++)
        for (int b = a; b < FEATURE_PAIRED; b++, at++) {
            const pair p = pair_of(at);
            assert_int_equal(p.a, a);
            assert_int_equal(p.b, b);
            assert_true(feature_exists(p.a) && feature_exists(p.b));
            /* forward and backward in every type; decode has two features less */
            for (int at_column = 0; at_column < COLUMNS; at_column++) {
                static const uint32_t not_decode = 1u << FEATURE_DROPOUT | 1u << FEATURE_VARLEN;
                const bool refused_there =
                    check_columns[at_column].decode && (1u << a | 1u << b) & not_decode;
                assert_int_equal(pair_exists(p, at_column), !pair_refusal(p) && !refused_there);
            }
            if (!pair_refusal(p)) continue;
            assert_in_range(n_refused, 0, 2);
            assert_int_equal(p.a, refused[n_refused][0]);
            assert_int_equal(p.b, refused[n_refused][1]);
            n_refused++;
        }
    assert_int_equal(at, PAIRS);
    assert_int_equal(n_refused, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_failures),
                                        cmocka_unit_test(test_pairs),
                                        cmocka_unit_test(test_one_isa) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
