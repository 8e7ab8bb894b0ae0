/*
 * Scheme "ordered" has the bits of one process: every pair of features in every type, the sequence
 * in uneven and empty pieces on 1 to 8 ranks, as threads and as processes; with statistics now and
 * then.
 */
#include "dist/turns.h"

#include "dist/results.h"

static results in_one_process(const check_case *c, bool has_stats, rng *r) {
    results y = results_new(&c->d, has_stats, r);
    y.whole = forward_in_one_process(c, stats_wanted(&y));
    return y;
}

static void in_pieces(const check_case *c, const results *y, world_function *world, cuts at,
                      rng *r) {
    outputs x = outputs_new(c);
    stats_arrays stats = { .classes = NULL };
    forward_job j = { .c = c, .x = &x, .whole = &y->whole, .at = at, .isa = isa };
    j.chunk_keys = 256 * rng_between(r, 0, 2);
    j.n_threads = (int)rng_between(r, 1, 2);
    if (y->has_stats) {
        stats = stats_arrays_new(&c->d, y->seed, false);
        j.stats = &stats;
        j.whole_stats = &y->stats;
    }
    if (world(at.size, forward_job_of_rank, &j)) fail_msg("some of %d ranks failed", at.size);
    const char *const spoilt = outputs_spoilt(c, &x);
    if (spoilt) fail_msg("%s was written outside of its rows\n%s", spoilt, c->text);
    if (y->has_stats) stats_arrays_free(&stats);
    outputs_free(&x);
}

static void every_pair(void) {
    rng r = { 0xD157 };
    int n_cases = 0;
    for (int n = 0; n < PAIRS * COLUMNS; n++) {
        check_case c;
        if (!pair_case(n, &n_cases, &r, &c)) continue;
        results whole = in_one_process(&c, n % 3 == 0, &r);
        const int size = (int)rng_between(&r, 1, 8);
        in_pieces(&c, &whole, world_of_threads, cuts_random(&r, size, &c.d), &r);
        if (n % 7 == 0 && !UNDER_TSAN)
            in_pieces(&c, &whole, world_of_processes, cuts_random(&r, size, &c.d), &r);
        results_free(&whole);
        case_free(&c);
    }
}

static void every_number_of_ranks(void) {
    enum { N_CASES = 6 };
    static const dense_sizes cases[N_CASES] = { { 1000, 1000, QKV_SET_CAUSAL },
                                                { 3, 3, QKV_SET_CAUSAL },
                                                { 5, 1, 0 },
                                                { 700, 1300, 0 },
                                                { 0, 4, 0 },
                                                { 4, 0, 0 } };
    rng r = { 0xD158 };
    for (int n = 0; n < N_CASES; n++)
        for (int size = 1; size <= 8; size++) {
            check_case c;
            if (!my_turn(size) || !takes_size(n, N_CASES, size)) continue;
            case_of_sizes(&c, &cases[n], 1, 4, 2, size % 2, &r);
            results whole = in_one_process(&c, n % 3 == 0, &r);
            if (takes_threads(size))
                in_pieces(&c, &whole, world_of_threads, cuts_even(size, &c.d), &r);
            if (takes_processes(size))
                in_pieces(&c, &whole, world_of_processes, cuts_even(size, &c.d), &r);
            results_free(&whole);
            case_free(&c);
        }
}

static void a_fault_of_one_is_that_of_all(void **state) {
    (void)state;
    for (int size = 2; size <= 5; size++) {
        assert_int_equal(world_of_threads(size, fault_job_of_rank, NULL), 0);
        if (!UNDER_TSAN) assert_int_equal(world_of_processes(size, fault_job_of_rank, NULL), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROPERTY(every_pair),
        PROPERTY(every_number_of_ranks),
        cmocka_unit_test(a_fault_of_one_is_that_of_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
