/*
 * Decode with keys in pieces has the bits of one process: every pair of features, each with keys of
 * every second type, in one array or in pages, cut unevenly and into empty pieces for 1 to 8 ranks,
 * as threads and as processes; with statistics now and then. Scheme "tree" keeps the bounds of one
 * process.
 */
#include "dist/turns.h"

#include "dist/decode.h"
#include "dist/results.h"

static results in_one_process(const stored_case *x, bool has_stats, rng *r) {
    results y = results_new(&x->c.d, has_stats, r);
    y.whole = decode_in_one_process(x, stats_wanted(&y));
    return y;
}

static void in_pieces(const stored_case *x, const results *y, qkvi_scheme scheme,
                      world_function *world, int size, rng *r) {
    kv_stored kv;
    decode_job j = { .x = x, .kv = &kv, .whole = &y->whole, .isa = isa, .stats_seed = y->seed };
    j.scheme = scheme;
    j.at = decode_cuts(r, x, size, &kv);
    j.n_threads = (int)rng_between(r, 1, 2);
    if (y->has_stats && scheme == QKVI_SCHEME_ORDERED) j.stats = &y->stats;
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
            (n / COLUMNS + column) % 2 || !takes_pair(n / COLUMNS, column) || !my_turn(n_cases++))
            continue;
        const recipe y = pair_recipe(p, column, (int)rng_between(&r, 0, PAIR_SIZES - 1), &r);
        stored_case_make_of(&x, &y, check_columns[column].stored, rng_next(&r));
        results whole = in_one_process(&x, n % 3 == 0, &r);
        const int size = (int)rng_between(&r, 1, 8);
        in_pieces(&x, &whole, QKVI_SCHEME_ORDERED, world_of_threads, size, &r);
        if (n / COLUMNS / 2 % 2)
            in_pieces(&x, &whole, QKVI_SCHEME_TREE, world_of_threads, size, &r);
        if (n % 7 == 0 && !UNDER_TSAN)
            in_pieces(&x, &whole, QKVI_SCHEME_ORDERED, world_of_processes, size, &r);
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
            if (takes_threads(size))
                in_pieces(&x, &whole, QKVI_SCHEME_TREE, world_of_threads, size, &r);
            if (takes_threads(size))
                in_pieces(&x, &whole, QKVI_SCHEME_ORDERED, world_of_threads, size, &r);
            if (takes_processes(size))
                in_pieces(&x, &whole, QKVI_SCHEME_ORDERED, world_of_processes, size, &r);
            results_free(&whole);
            stored_case_free(&x);
        }
}

static void names(void **state) {
    qkvi_scheme scheme;
    qkv_error error;
    (void)state;
    assert_int_equal(qkvi_decode_scheme_named(NULL, &scheme, &error), QKV_OK);
    assert_int_equal(scheme, QKVI_SCHEME_ORDERED);
    assert_int_equal(qkvi_decode_scheme_named("auto", &scheme, &error), QKV_OK);
    assert_int_equal(scheme, QKVI_SCHEME_ORDERED);
    assert_int_equal(qkvi_decode_scheme_named("tree", &scheme, &error), QKV_OK);
    assert_int_equal(scheme, QKVI_SCHEME_TREE);
    assert_int_equal(qkvi_decode_scheme_named("ring", &scheme, &error), QKV_ERR_ARGUMENT);
    assert_string_equal(error.message, "scheme is \"ring\"; decode has ordered, tree and auto");
}

/* On one rank, by its own transport. */
static void no_statistics_in_a_tree(void **state) {
    rng r = { 0xD15B };
    const recipe y = { .n_batch = 1,
                       .n_heads = 2,
                       .n_kv_heads = 1,
                       .len_q = 1,
                       .len_k = 40,
                       .head_dim = 16,
                       .head_dim_v = 16 };
    stored_case x;
    qkvi_transport self = qkvi_transport_self();
    qkvi_group *const group = qkvi_group_new(&self);
    qkv_ctx *ctx = NULL;
    (void)state;
    assert_non_null(group);
    assert_int_equal(qkv_ctx_create(NULL, &ctx, NULL), QKV_OK);
    stored_case_make_of(&x, &y, ELEMENT_F32, rng_next(&r));
    stats_arrays stats = stats_arrays_new(&x.c.d, 1, false);
    outputs o = outputs_new(&x.c);
    qkv_attention_desc d = x.c.d;
    const qkvi_dist_arrays a = { .q = x.c.q.data, .o = o.o.data, .lse = o.lse.data };
    d.flags |= QKV_SET_STATS;
    d.stats = &stats.s;
    assert_int_equal(qkvi_decode_by(group, ctx, QKVI_SCHEME_TREE, NULL, &d, &x.kv.view, &a),
                     QKV_ERR_UNSUPPORTED);
    assert_string_equal(group->error.message,
                        "QKV_SET_STATS: scheme tree has no statistics, ordered has them");
    outputs_free(&o);
    stats_arrays_free(&stats);
    stored_case_free(&x);
    qkv_ctx_free(ctx);
    qkvi_group_free(group);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROPERTY(every_pair),
        PROPERTY(every_number_of_ranks),
        cmocka_unit_test(names),
        cmocka_unit_test(no_statistics_in_a_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
