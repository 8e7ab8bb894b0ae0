/*
 * Scheme "ulysses", in some cases "auto", has the bits of one process: every pair of features, each
 * in every fourth type (a rank computes like one process, with fewer heads; dist_ordered has every
 * type of every pair), the sequence in uneven and empty pieces, on numbers of ranks that divide the
 * key/value heads, as threads and as processes. Each rank has the same number of pairs of query and
 * key.
 */
#include "dist/turns.h"

#include "dist/jobs.h"

static void in_pieces(const check_case *c, const outputs *whole, world_function *world, cuts at,
                      rng *r, int64_t *pairs) {
    outputs x = outputs_new(c);
    ring_job j = { .c = c,
                   .x = &x,
                   .whole = whole,
                   .at = at,
                   .scheme = QKVI_SCHEME_ULYSSES,
                   .isa = isa,
                   .pairs = pairs };
    j.n_threads = (int)rng_between(r, 1, 2);
    if (!pairs && rng_chance(r, 25)) j.scheme = QKVI_SCHEME_AUTO;
    if (world(at.size, ring_job_of_rank, &j)) fail_msg("some of %d ranks failed", at.size);
    const char *const spoilt = outputs_spoilt(c, &x);
    if (spoilt) fail_msg("%s was written outside of its rows\n%s", spoilt, c->text);
    outputs_free(&x);
}

static void every_pair(void) {
    rng r = { 0x0D1551 };
    int n_cases = 0;
    for (int n = 0; n < PAIRS * COLUMNS; n++) {
        const pair p = pair_of(n / COLUMNS);
        const int column = n % COLUMNS;
        check_case c;
        if ((n / COLUMNS + column) % 4 || !takes_pieces(n, &n_cases)) continue;
        recipe x = pair_recipe(p, column, (int)rng_between(&r, 0, PAIR_SIZES - 1), &r);
        const int size = (int)rng_between(&r, 1, 4), group = (int)(x.n_heads / x.n_kv_heads);
        x.n_kv_heads = size * rng_between(&r, 1, 2);
        x.n_heads = group * x.n_kv_heads;
        case_make_of(&c, &x, rng_next(&r));
        outputs whole = forward_in_one_process(&c, NULL);
        in_pieces(&c, &whole, world_of_threads, cuts_random(&r, size, &c.d), &r, NULL);
        if (n % 7 == 0 && !UNDER_TSAN)
            in_pieces(&c, &whole, world_of_processes, cuts_random(&r, size, &c.d), &r, NULL);
        outputs_free(&whole);
        case_free(&c);
    }
}

static void every_number_of_ranks(void) {
    enum { N_CASES = 5 };
    static const dense_sizes cases[N_CASES] = { { 300, 300, QKV_SET_CAUSAL },
                                                { 3, 3, QKV_SET_CAUSAL },
                                                { 20, 5000,
                                                  0 }, /* more keys than are gathered at once */
                                                { 0, 4, 0 },
                                                { 4, 0, 0 } };
    rng r = { 0x0D1552 };
    for (int n = 0; n < N_CASES; n++)
        for (int size = 1; size <= 8; size++) {
            check_case c;
            int64_t pairs[MOST_RANKS] = { 0 };
            if (!my_turn(size) || !takes_size(n, N_CASES, size)) continue;
            case_of_sizes(&c, &cases[n], 1, 2 * size, size, size % 2, &r);
            outputs whole = forward_in_one_process(&c, NULL);
            if (takes_threads(size))
                in_pieces(&c, &whole, world_of_threads, cuts_even(size, &c.d), &r, pairs);
            for (int rank = 1; rank < size; rank++) assert_int_equal(pairs[rank], pairs[0]);
            if (takes_processes(size))
                in_pieces(&c, &whole, world_of_processes, cuts_even(size, &c.d), &r, NULL);
            outputs_free(&whole);
            case_free(&c);
        }
}

/*
 * As they are exchanged, tokens of the queries lie a multiple of 4 KiB apart, and as the caller has
 * them they do not: the memory of a rank is that of the former.
 */
static void tokens_far_apart(void) {
    enum { SIZE = 2, HEADS = 16, LEN_Q = 40, LEN_K = 50, DIM = 64, DIM_V = 8 };
    static const qkv_dtype types[] = { QKV_F32, QKV_BF16 };
    rng r = { 0x0D1553 };
    for (size_t n = 0; n < sizeof types / sizeof *types; n++) {
        const int64_t n_heads = SIZE * HEADS * (types[n] == QKV_F32 ? 1 : 2);
        int64_t pairs[MOST_RANKS];
        check_case c;
        qkv_attention_desc d;
        qkv_attention_desc_contiguous(&d, 1, n_heads, n_heads, LEN_Q, LEN_K, DIM, DIM_V);
        d.dtype = types[n];
        if (d.dtype == QKV_BF16) d.arithmetic = QKV_CLASS_DP;
        case_dense(&c, &d, rng_next(&r), true);
        case_seal(&c);
        outputs whole = forward_in_one_process(&c, NULL);
        in_pieces(&c, &whole, world_of_threads, cuts_even(SIZE, &c.d), &r, pairs);
        outputs_free(&whole);
        case_free(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROPERTY(every_pair),
        PROPERTY(every_number_of_ranks),
        PROPERTY(tokens_far_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
