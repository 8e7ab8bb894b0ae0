/*
 * Schemes "ring" and "zigzag" keep the bounds of one process, which do not depend on the number of
 * ranks: every pair of features in every type against the double oracle, on 1 to 8 ranks. A causal
 * zigzag has the same number of pairs of a query and a key on every rank. Rings of processes have
 * the bits of rings of threads.
 */
#include "dist/turns.h"

#include "dist/jobs.h"
#include "dist/ring.h"

/* Ranks that are processes have the bits of those that are threads. */
static void as_processes(const check_case *c, const ring_job *threads) {
    outputs x = outputs_new(c);
    ring_job j = *threads;
    j.x = &x;
    j.whole = threads->x;
    j.pairs = NULL;
    if (world_of_processes(j.at.size, ring_job_of_rank, &j))
        fail_msg("some of %d processes failed", j.at.size);
    outputs_free(&x);
}

/* On ranks that are threads: they write their rows of o and lse to one array. */
static void in_pieces(const check_case *c, qkvi_scheme scheme, cuts at, rng *r, int64_t *pairs) {
    outputs x = outputs_new(c);
    check_report report = { .failures = 0 };
    ring_job j = { .c = c, .x = &x, .at = at, .scheme = scheme, .isa = isa, .pairs = pairs };
    j.n_threads = (int)rng_between(r, 1, 2);
    if (world_of_threads(at.size, ring_job_of_rank, &j))
        fail_msg("some of %d ranks failed", at.size);
    const char *const spoilt = outputs_spoilt(c, &x);
    if (spoilt) fail_msg("%s was written outside of its rows\n%s", spoilt, c->text);
    compare_forward(c, &x, &report);
    if (report.failures) fail_msg("%d ranks: %s\n%s", at.size, report.message, c->text);
    if (scheme == QKVI_SCHEME_RING && takes_processes(at.size) && rng_chance(r, 20))
        as_processes(c, &j);
    outputs_free(&x);
}

static int64_t multiple(int64_t n, int64_t of) { return (n + of - 1) / of * of; }

static void every_pair(void) {
    rng r = { 0x2196 };
    int n_cases = 0;
    for (int n = 0; n < PAIRS * COLUMNS; n++) {
        const pair p = pair_of(n / COLUMNS);
        const int column = n % COLUMNS;
        const bool zigzag = n % 2;
        check_case c;
        if (!takes_pieces(n, &n_cases)) continue;
        recipe x = pair_recipe(p, column, (int)rng_between(&r, 0, PAIR_SIZES - 1), &r);
        const int size = (int)rng_between(&r, 1, 8);
        if (zigzag) {
            x.len_q = multiple(x.len_q, 2 * size);
            x.len_k = multiple(x.len_k, 2 * size);
        }
        case_make_of(&c, &x, rng_next(&r));
        if (zigzag)
            in_pieces(&c, QKVI_SCHEME_ZIGZAG, cuts_even(size, &c.d), &r, NULL);
        else
            in_pieces(&c, QKVI_SCHEME_RING, cuts_random(&r, size, &c.d), &r, NULL);
        case_free(&c);
    }
}

/* Long enough for whole blocks, seams and several ranks of each. */
static void every_number_of_ranks(void) {
    rng r = { 0x2197 };
    for (int size = 1; size <= 8; size++)
        for (int n = 0; n < 4; n++) {
            qkv_attention_desc d;
            check_case c;
            int64_t pairs[MOST_RANKS] = { 0 };
            const int64_t len = n % 2 ? multiple(900, 2 * size) : 256 * 2 * size;
            if (!my_turn(size) || !takes_size(n, 4, size)) continue;
            qkv_attention_desc_contiguous(&d, 1, 2, 1, len, len, 24, 40);
            d.flags |= QKV_SET_CAUSAL;
            case_dense(&c, &d, rng_next(&r), size % 2);
            case_seal(&c);
            in_pieces(&c, n < 2 ? QKVI_SCHEME_RING : QKVI_SCHEME_ZIGZAG, cuts_even(size, &d), &r,
                      pairs);
            int64_t all = 0;
            for (int rank = 0; rank < size; rank++) {
                all += pairs[rank];
                if (n >= 2) assert_int_equal(pairs[rank], pairs[0]);
            }
            assert_int_equal(all, len * (len + 1) / 2);
            case_free(&c);
        }
}

static void names(void **state) {
    qkvi_scheme scheme;
    qkv_error error;
    (void)state;
    assert_int_equal(qkvi_scheme_named(NULL, &scheme, &error), QKV_OK);
    assert_int_equal(scheme, QKVI_SCHEME_ORDERED);
    assert_int_equal(qkvi_scheme_named("zigzag", &scheme, &error), QKV_OK);
    assert_int_equal(scheme, QKVI_SCHEME_ZIGZAG);
    assert_int_equal(qkvi_scheme_named("rings", &scheme, &error), QKV_ERR_ARGUMENT);
    assert_string_equal(error.message,
                        "scheme is \"rings\"; there are ordered, ring, zigzag, ulysses and auto");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROPERTY(every_pair),
        PROPERTY(every_number_of_ranks),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
