/*
 * The summary of rounds by `qkv bench`, with invented rounds of an idle and of a busy machine.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "suite/suite.h"

enum { N = 9 };

/* A case of one GFLOP and one GB that n rounds measured. */
static struct bench_result result_of(int n, const struct bench_round *rounds) {
    struct bench_result r = { .name = "suite case", .peak_of = PEAK_FMA };
    bench_summarise(n, rounds, &r);
    r.gflops = r.gbytes = 1 / r.seconds;
    return r;
}

/* Rounds that nothing disturbs: half of a peak of 100, within a percent. */
static void idle_rounds(struct bench_round rounds[N]) {
    for (int i = 0; i < N; i++) {
        const double noise = 1 + 0.001 * ((i * 4) % N);
        rounds[i] = (struct bench_round){ 0.02 * noise, 0.02 * noise, 100 / noise };
    }
}

static void near(double value, double expected) { assert_true(fabs(value - expected) < 1e-9); }

static void test_idle(void **state) {
    struct bench_round rounds[N];
    (void)state;
    idle_rounds(rounds);
    struct bench_result r = result_of(N, rounds);
    near(r.seconds, 0.02 * 1.004);
    near(r.spread, 0.004 / 1.004);
    near(r.low_peak, 100 / 1.006);
    assert_false(r.busy);
    bench_share_peaks(1, &r);
    near(r.peak, 100);
    near(r.share, 0.5 / 1.004);
    assert_false(r.busy);
}

/* Peaks that others halve and worse, beside a case that they leave alone: no share rises. */
static void test_disturbed_peaks(void **state) {
    struct bench_round rounds[N];
    (void)state;
    idle_rounds(rounds);
    for (int i = 0; i < N; i++)
        if (i != 3) rounds[i].peak = 11 + i;
    struct bench_result r = result_of(N, rounds);
    bench_share_peaks(1, &r);
    near(r.peak, 100 / (1 + 0.001 * (3 * 4 % N)));
    assert_true(r.share < 0.51);
    assert_true(r.busy);
}

/*
 * All peaks of a case disturbed: it gets that of another case of its suite, and so do those before
 * it.
 */
static void test_peak_of_suite(void **state) {
    struct bench_round rounds[N];
    struct bench_result r[4];
    (void)state;
    idle_rounds(rounds);
    r[1] = r[2] = r[3] = result_of(N, rounds);
    for (int i = 0; i < N; i++) rounds[i].peak /= 5;
    r[0] = result_of(N, rounds);
    r[2].peak_of = PEAK_DP; /* another one */
    r[2].peak = 200;
    r[2].low_peak = 199;
    r[3].peak_of = PEAK_READ;
    r[3].gbytes = 10;
    bench_share_peaks(4, r);
    near(r[0].peak, 100);
    near(r[0].share, r[1].share);
    assert_true(r[0].busy);
    assert_false(r[1].busy);
    near(r[2].peak, 200);
    near(r[2].share, r[1].share / 2);
    near(r[3].peak, 100);
    near(r[3].share, 0.1);
}

/* What a cache of one size can do is no peak of memory, or of another cache. */
static void test_reading(void **state) {
    struct bench_round rounds[N];
    struct bench_result r[3];
    (void)state;
    idle_rounds(rounds);
    r[0] = result_of(N, rounds);
    r[0].peak_of = PEAK_READ;
    r[1] = r[2] = r[0];
    r[1].peak_bytes = 1 << 20;
    r[1].peak = 400;
    r[1].low_peak = 390;
    r[2].peak = 101;
    bench_share_peaks(3, r);
    near(r[0].peak, 101);
    near(r[1].peak, 400);
    near(r[2].peak, 101);
    assert_false(r[0].busy || r[1].busy || r[2].busy);
}

static void test_times_differ(void **state) {
    struct bench_round rounds[N];
    (void)state;
    idle_rounds(rounds);
    rounds[0].seconds = rounds[0].wall = 1; /* one of them: no quartile */
    assert_false(result_of(N, rounds).busy);
    for (int i = 0; i < N; i += 3) rounds[i].seconds = rounds[i].wall = 0.03;
    assert_true(result_of(N, rounds).busy);
}

/* Processor time is that of an idle machine, but others had the processor in between. */
static void test_waits(void **state) {
    struct bench_round rounds[N];
    (void)state;
    idle_rounds(rounds);
    rounds[0].wall = 1;
    rounds[4].wall = 1;
    assert_false(result_of(N, rounds).busy);
    rounds[8].wall = 1;
    assert_true(result_of(N, rounds).busy);
    for (int i = 0; i < N; i++) rounds[i].wall = 1.05 * rounds[i].seconds;
    assert_false(result_of(N, rounds).busy);
}

/* One round; and peaks that are unknown. */
static void test_least(void **state) {
    const struct bench_round round = { 0.02, 0.02, 0 };
    (void)state;
    struct bench_result r = result_of(1, &round);
    bench_share_peaks(1, &r);
    near(r.seconds, 0.02);
    near(r.spread, 0);
    near(r.peak, 0);
    near(r.share, 0);
    assert_false(r.busy);
    r.peak = 100; /* measured before the rounds */
    r.low_peak = 20;
    bench_share_peaks(1, &r);
    near(r.share, 0.5);
    assert_true(r.busy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle),          cmocka_unit_test(test_disturbed_peaks),
        cmocka_unit_test(test_peak_of_suite), cmocka_unit_test(test_reading),
        cmocka_unit_test(test_times_differ),  cmocka_unit_test(test_waits),
        cmocka_unit_test(test_least),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
