/*
 * Decode with keys in pieces has the bits of one process: every pair of features, keys of every
 * type, in one array or in pages, cut unevenly and into empty pieces for 1 to 8 ranks, as threads
 * and as processes; with statistics now and then.
 */
#include "dist/turns.h"

#include "dist/results.h"

static results in_one_process(const stored_case *x, bool has_stats, rng *r) {
    results y = results_new(&x->c.d, has_stats, r);
    y.whole = decode_in_one_process(x, stats_wanted(&y));
    return y;
}

static void in_pieces(const stored_case *x, const results *y, world_function *world, int size,
                      rng *r) {
    kv_stored kv;
    decode_job j = { .x = x, .kv = &kv, .whole = &y->whole, .isa = isa, .stats_seed = y->seed };
    j.at = decode_cuts(r, x, size, &kv);
    j.n_threads = (int)rng_between(r, 1, 2);
    if (y->has_stats) j.stats = &y->stats;
    if (world(size, decode_job_of_rank, &j)) fail_msg("some of %d ranks failed", size);
    if (kv.k.map != x->kv.k.map) stored_free(&kv);
}

static void every_pair(void) {
    rng r = { 0xD159 };
    int n_cases = 0;
    for (int n = 0; n < PAIRS * COLUMNS; n++) {
        const pair p = pair_of(n / COLUMNS);
        const int column = n % COLUMNS;
        stored_case x;
        if (!check_columns[column].decode || !pair_exists(p, column) ||
            !takes_pair(n / COLUMNS, column) || !my_turn(n_cases++))
            continue;
        const recipe y = pair_recipe(p, column, (int)rng_between(&r, 0, PAIR_SIZES - 1), &r);
        stored_case_make_of(&x, &y, check_columns[column].stored, rng_next(&r));
        results whole = in_one_process(&x, n % 3 == 0, &r);
        const int size = (int)rng_between(&r, 1, 8);
        in_pieces(&x, &whole, world_of_threads, size, &r);
        if (n % 7 == 0 && !UNDER_TSAN) in_pieces(&x, &whole, world_of_processes, size, &r);
        results_free(&whole);
        stored_case_free(&x);
    }
}

/* Long enough that every rank has splits of its own, seams among them. */
static void every_number_of_ranks(void) {
    enum { N_LENGTHS = 5 };
    static const int64_t len_k[N_LENGTHS] = { 0, 3, 1024, 4100, 9000 };
    rng r = { 0xD15A };
    for (int n = 0; n < N_LENGTHS; n++)
        for (int size = 1; size <= 8; size++) {
            recipe y = { .features =
                             1u << (size % 2 ? FEATURE_KV_LEN : FEATURE_CAUSAL) | 1u << FEATURE_GQA,
                         .n_batch = 2,
                         .n_heads = 6,
                         .n_kv_heads = 2,
                         .len_q = 1 + size % 3,
                         .len_k = len_k[n],
                         .head_dim = 16,
                         .head_dim_v = 24 };
            stored_case x;
            if (!my_turn(size) || !takes_size(n, N_LENGTHS, size)) continue;
            stored_case_make_of(&x, &y, size % 3 ? ELEMENT_I8 : ELEMENT_BF16, rng_next(&r));
            results whole = in_one_process(&x, n % 3 == 0, &r);
            if (takes_threads(size)) in_pieces(&x, &whole, world_of_threads, size, &r);
            if (takes_processes(size)) in_pieces(&x, &whole, world_of_processes, size, &r);
            results_free(&whole);
            stored_case_free(&x);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROPERTY(every_pair),
        PROPERTY(every_number_of_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
