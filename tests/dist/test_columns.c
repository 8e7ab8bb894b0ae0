/*
 * Sums of columns have the bits of one process: every pair of features in every type, the sequence
 * in uneven and empty pieces on 1 to 8 ranks, as threads and as processes.
 */
#include "dist/turns.h"

#include "dist/jobs.h"

/* Counts of pieces are parts of that of the whole. */
static void check_tiny(const columns_job *j) {
    const int64_t n_heads = j->c->d.n_batch * j->c->d.n_heads;
    const int64_t *const expected = j->expected->array[COLUMNS_TINY].data;
    for (int64_t head = 0; head < n_heads; head++) {
        int64_t n = 0;
        for (int rank = 0; rank < j->at.size; rank++) n += j->n_tiny[rank * n_heads + head];
        if (n != expected[head]) fail_msg("tiny weights of head %d\n%s", (int)head, j->c->text);
    }
}

static void in_pieces(const check_case *c, const outputs *whole, world_function *world, cuts at,
                      uint64_t seed, rng *r) {
    columns_arrays expected = columns_arrays_new(&c->d, seed, false);
    columns_arrays x = columns_arrays_new(&c->d, seed, false);
    columns_job j = {
        .c = c, .whole = whole, .x = &x, .expected = &expected, .at = at, .isa = isa
    };
    columns_in_one_process(c, whole, &expected);
    j.chunk_keys = 256 * rng_between(r, 0, 2);
    j.n_threads = (int)rng_between(r, 1, 2);
    if (world == world_of_threads)
        j.n_tiny = calloc((size_t)(at.size * c->d.n_batch * c->d.n_heads) + 1, sizeof *j.n_tiny);
    if (world(at.size, columns_job_of_rank, &j)) fail_msg("some of %d ranks failed", at.size);
    if (!columns_intact(&c->d, &x)) fail_msg("written outside of the keys\n%s", c->text);
    if (j.n_tiny) check_tiny(&j);
    free(j.n_tiny);
    columns_arrays_free(&expected);
    columns_arrays_free(&x);
}

static void every_pair(void) {
    rng r = { 0xC01 };
    int n_cases = 0;
    for (int n = 0; n < PAIRS * COLUMNS; n++) {
        check_case c;
        if (!pair_case(n, &n_cases, &r, &c)) continue;
        outputs whole = forward_in_one_process(&c, NULL);
        const int size = (int)rng_between(&r, 1, 8);
        in_pieces(&c, &whole, world_of_threads, cuts_random(&r, size, &c.d), rng_next(&r), &r);
        if (n % 7 == 0 && !UNDER_TSAN)
            in_pieces(&c, &whole, world_of_processes, cuts_random(&r, size, &c.d), rng_next(&r),
                      &r);
        outputs_free(&whole);
        case_free(&c);
    }
}

/* Several chunks, so that each is under way while another is computed; pieces without a token. */
static void every_number_of_ranks(void) {
    enum { N_CASES = 5 };
    static const dense_sizes cases[N_CASES] = { { 1000, 1000, QKV_SET_CAUSAL },
                                                { 3, 3, QKV_SET_CAUSAL },
                                                { 700, 1300, 0 },
                                                { 0, 4, 0 },
                                                { 4, 0, 0 } };
    rng r = { 0xC02 };
    for (int n = 0; n < N_CASES; n++)
        for (int size = 1; size <= 8; size++) {
            check_case c;
            if (!my_turn(size) || !takes_size(n, N_CASES, size)) continue;
            case_of_sizes(&c, &cases[n], 2, 4, 2, size % 2, &r);
            outputs whole = forward_in_one_process(&c, NULL);
            if (takes_threads(size))
                in_pieces(&c, &whole, world_of_threads, cuts_even(size, &c.d), rng_next(&r), &r);
            if (takes_processes(size))
                in_pieces(&c, &whole, world_of_processes, cuts_even(size, &c.d), rng_next(&r), &r);
            outputs_free(&whole);
            case_free(&c);
        }
}

/*
 * As they are streamed, tokens of the queries lie a multiple of 4 KiB apart, and as the caller has
 * them they do not: the memory of a rank is that of the former, also where it has no query.
 */
static void tokens_far_apart(void) {
    enum { SIZE = 2, BATCH = 2, HEADS = 4, LEN_Q = 40, LEN_K = 50, DIM_V = 8, CASES = 8 };
    rng r = { 0xC03 };
    for (int n = 0; n < CASES; n++) {
        const int64_t head_dim = n % 2 ? 126 : 127; /* with a weight of the row, without one */
        check_case c;
        qkv_attention_desc d;
        qkv_attention_desc_contiguous(&d, BATCH, HEADS, HEADS, LEN_Q, LEN_K, head_dim, DIM_V);
        case_dense(&c, &d, rng_next(&r), true);
        case_seal(&c);
        cuts at = cuts_even(SIZE, &c.d);
        if (n >= CASES / 2) at.q[1] = 0;
        outputs whole = forward_in_one_process(&c, NULL);
        in_pieces(&c, &whole, world_of_threads, at, rng_next(&r), &r);
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
