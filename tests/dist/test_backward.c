/*
 * Gradients of scheme "ordered" have the bits of one process: every pair of features in every type,
 * the sequence in uneven and empty pieces on 1 to 8 ranks, as threads and as processes.
 */
#include "dist/turns.h"

#include "dist/jobs.h"

static void in_pieces(const check_case *c, const outputs *whole, world_function *world, cuts at,
                      rng *r) {
    outputs x = outputs_new(c);
    backward_job j = { .c = c, .x = &x, .whole = whole, .at = at, .isa = isa };
    j.chunk_keys = 256 * rng_between(r, 0, 2);
    j.n_threads = (int)rng_between(r, 1, 2);
    if (world(at.size, backward_job_of_rank, &j)) fail_msg("some of %d ranks failed", at.size);
    const char *const spoilt = outputs_spoilt(c, &x);
    if (spoilt) fail_msg("%s was written outside of its rows\n%s", spoilt, c->text);
    outputs_free(&x);
}

static void every_pair(void) {
    rng r = { 0xBAC4 };
    int n_cases = 0;
    for (int n = 0; n < PAIRS * COLUMNS; n++) {
        check_case c;
        if (!pair_case(n, &n_cases, &r, &c)) continue;
        outputs whole = both_in_one_process(&c);
        const int size = (int)rng_between(&r, 1, 8);
        in_pieces(&c, &whole, world_of_threads, cuts_random(&r, size, &c.d), &r);
        if (n % 7 == 0 && !UNDER_TSAN)
            in_pieces(&c, &whole, world_of_processes, cuts_random(&r, size, &c.d), &r);
        outputs_free(&whole);
        case_free(&c);
    }
}

/* Several chunks, so that each is under way while another is computed. */
static void every_number_of_ranks(void) {
    static const uint32_t features[] = { 1u << FEATURE_CAUSAL | 1u << FEATURE_GQA,
                                         1u << FEATURE_KV_LEN | 1u << FEATURE_SINKS |
                                             1u << FEATURE_DISTANCE,
                                         1u << FEATURE_MASK_ADDED | 1u << FEATURE_GQA };
    rng r = { 0xBAC5 };
    for (int n = 0; n < 3; n++)
        for (int size = 1; size <= 8; size++) {
            const recipe y = { .features = features[n],
                               .n_batch = 2,
                               .n_heads = 4,
                               .n_kv_heads = n == 1 ? 4 : 2,
                               .len_q = 700,
                               .len_k = 900,
                               .head_dim = 16,
                               .head_dim_v = 16 };
            check_case c;
            if (!my_turn(size) || !takes_size(n, 3, size)) continue;
            case_make_of(&c, &y, rng_next(&r));
            outputs whole = both_in_one_process(&c);
            if (takes_threads(size))
                in_pieces(&c, &whole, world_of_threads, cuts_even(size, &c.d), &r);
            if (takes_processes(size))
                in_pieces(&c, &whole, world_of_processes, cuts_even(size, &c.d), &r);
            outputs_free(&whole);
            case_free(&c);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROPERTY(every_pair),
        PROPERTY(every_number_of_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
