/*
 * Heads of arrays that lie in pieces on ranks, which are threads here: numbers, weights, maps and
 * profiles have the bytes of whole arrays, however the rows are cut; and what is wrong on one rank
 * is the error of all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/heads.h"
#include "thread_ranks.h"

enum {
    HEADS = 4,
    KV_HEADS = 2,
    QUERIES = 700,
    KEYS = 611,
    DIM = 8,
    TILE = 7,
    N_TILES = (QUERIES + TILE - 1) / TILE * ((KEYS + TILE - 1) / TILE)
};

static float q[HEADS * QUERIES * DIM], k[KV_HEADS * KEYS * DIM];
static uint64_t state_of_draws;

static uint64_t draw(uint64_t below) {
    state_of_draws = state_of_draws * 6364136223846793005u + 1442695040888963407u;
    return (state_of_draws >> 33) % below;
}

/* ---- Ranks as threads ------------------------------------------------------------------------ */

/* All that the calls tell of two heads. */
typedef struct answers {
    double numbers[2][64], received[KEYS], offsets[QUERIES + KEYS - 1], entropy[QUERIES],
        largest[QUERIES];
    float mass[N_TILES], peak[N_TILES], weights[50 * 40], looked;
    int64_t key;
    qkv_sharpest sharpest;
} answers;

typedef struct member {
    qkv_ranks ranks;
    qkv_heads_arrays arrays;
    answers got;
    qkv_status status;
    qkv_error error;
} member;

static thread_ranks the_world;
static int64_t the_cuts[2][MOST_THREAD_RANKS + 1]; /* of queries, of keys: where ranks begin */
static member members[MOST_THREAD_RANKS];

/* ---- What is asked --------------------------------------------------------------------------- */

static qkv_status ask(qkv_heads *heads, const float *all_q, const float *all_k, int rank,
                      answers *a, qkv_error *error) {
    qkv_heads_profile profile = qkv_heads_profile_init();
    qkv_head_view view = qkv_head_view_init();
    profile.entropy = a->entropy;
    profile.largest = a->largest;
    profile.received = a->received;
    profile.by_offset = a->offsets;
    qkv_status status =
        qkv_heads_measure(heads, QKV_HEADS_RECEIVED | QKV_HEADS_SHARPEST, NULL, error);
    for (int h = 0; status == QKV_OK && h < 2; h++)
        memcpy(a->numbers[h], qkv_heads_numbers(heads, h),
               (size_t)qkv_head_number_count() * sizeof(double));
    if (status == QKV_OK)
        status = qkv_heads_cells(heads, 1, TILE, QKV_TILE_MASS, a->mass, NULL, error);
    if (status == QKV_OK)
        status = qkv_heads_cells(heads, 1, TILE, QKV_TILE_PEAK, a->peak, NULL, error);
    if (status == QKV_OK)
        status = qkv_heads_weights(heads, 1, 300, 350, 280, 320, a->weights, 40, error);
    if (status == QKV_OK) status = qkv_heads_sharpest(heads, NULL, NULL, NULL, &a->sharpest, error);
    if (status == QKV_OK) status = qkv_heads_look(heads, 0, 77, &a->key, &a->looked, error);
    if (status == QKV_OK) status = qkv_heads_position(heads, 0, &profile, NULL, error);
    for (int turn = 0; status == QKV_OK && turn < 2; turn++) { /* it is kept */
        status = qkv_heads_view(heads, 1, &view, error);
        if (status != QKV_OK) return status;
        if (rank > 0 ? view.q || view.k
                     : memcmp(view.q, all_q, QUERIES * DIM * sizeof *q) != 0 ||
                           memcmp(view.k, all_k, KEYS * DIM * sizeof *k) != 0)
            status = QKV_ERR_FORMAT;
    }
    return status;
}

/* Of the heads 3 and 1, or of the first two. */
static qkv_status answer(const qkv_heads_arrays *arrays, int rank, answers *a, qkv_error *error) {
    const int64_t head = arrays->list ? arrays->list[1] : 1;
    qkv_ctx *ctx;
    qkv_heads *heads;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.n_threads = 1 + rank % 2;
    memset(a, 0, sizeof *a);
    a->sharpest = qkv_sharpest_init();
    qkv_status status = qkv_ctx_create(&options, &ctx, error);
    if (status != QKV_OK) return status;
    status = qkv_heads_open_arrays(ctx, arrays, &heads, error);
    if (status == QKV_OK)
        status = ask(heads, q + head * QUERIES * DIM, k + head / (HEADS / KV_HEADS) * KEYS * DIM,
                     rank, a, error);
    qkv_heads_free(heads);
    qkv_ctx_free(ctx);
    return status;
}

/* Rows first … first + n - 1 of each of some heads. */
static float *cut_rows(const float *from, int n_heads, int64_t len, int64_t first, int64_t n) {
    float *const rows = malloc((size_t)(n_heads * n * DIM + 1) * sizeof *rows);
    for (int h = 0; rows && h < n_heads; h++)
        memcpy(rows + h * n * DIM, from + (h * len + first) * DIM, (size_t)n * DIM * sizeof *rows);
    return rows;
}

static void *run_member(void *argument) {
    member *const m = argument;
    const int64_t *const at[] = { the_cuts[0] + m->ranks.rank, the_cuts[1] + m->ranks.rank };
    float *const own_q = cut_rows(q, HEADS, QUERIES, at[0][0], at[0][1] - at[0][0]),
                 *const own_k = cut_rows(k, KV_HEADS, KEYS, at[1][0], at[1][1] - at[1][0]);
    m->arrays.q = own_q;
    m->arrays.k = own_k;
    m->status = answer(&m->arrays, m->ranks.rank, &m->got, &m->error);
    free(own_q);
    free(own_k);
    return NULL;
}

static void make_world(const qkv_heads_arrays *arrays, int size) {
    static const int64_t n[] = { QUERIES, KEYS };
    thread_ranks_begin(&the_world, size);
    for (int side = 0; side < 2; side++) {
        int64_t *const cuts = the_cuts[side];
        cuts[0] = 0;
        cuts[size] = n[side];
        for (int r = 1; r < size; r++)
            cuts[r] = cuts[r - 1] + (int64_t)draw((uint64_t)(n[side] - cuts[r - 1] + 1));
        if (size > 2 && draw(2)) cuts[1] = cuts[2]; /* a rank without rows */
    }
    for (int r = 0; r < size; r++) {
        member *const m = &members[r];
        memset(m, 0, sizeof *m);
        m->arrays = *arrays;
        m->ranks = thread_ranks_of(&the_world, r);
        m->arrays.ranks = &m->ranks;
        m->arrays.pieces = 1;
        m->arrays.own_queries = the_cuts[0][r + 1] - the_cuts[0][r];
        m->arrays.own_keys = the_cuts[1][r + 1] - the_cuts[1][r];
    }
}

static void run_world(void) { thread_ranks_run(&the_world, run_member, members, sizeof *members); }

/* ---- Tests ----------------------------------------------------------------------------------- */

static const int64_t two[] = { 3, 1 };

static qkv_heads_arrays arrays_of(int kind) {
    qkv_heads_arrays a = qkv_heads_arrays_init();
    a.q = q;
    a.k = k;
    a.n_heads = HEADS;
    a.n_kv_heads = KV_HEADS;
    a.n_queries = QUERIES;
    a.n_keys = KEYS;
    a.head_dim = DIM;
    if (kind & 1) a.causal = 1;
    if (kind & 1) a.q_offset = -30; /* queries without keys */
    if (kind & 2) a.window_left = 90;
    if (kind & 2) a.window_right = 5;
    if (kind & 4) a.list = two;
    if (kind & 4) a.n_list = 2;
    return a;
}

static void test_bytes(void **state) {
    static answers expected;
    (void)state;
    for (int kind = 0; kind < 8; kind++) {
        const qkv_heads_arrays a = arrays_of(kind);
        qkv_error error;
        if (answer(&a, 0, &expected, &error) != QKV_OK) fail_msg("%s", error.message);
        for (int size = 1; size <= MOST_THREAD_RANKS; size++) {
            make_world(&a, size);
            run_world();
            for (int r = 0; r < size; r++) {
                const member *const m = &members[r];
                if (m->status != QKV_OK)
                    fail_msg("kind %d, rank %d of %d: %s", kind, r, size, m->error.message);
                if (memcmp(&m->got, &expected, sizeof expected) != 0)
                    fail_msg("kind %d, rank %d of %d: other bytes", kind, r, size);
            }
        }
    }
}

static void expect_all(const char *says) {
    run_world();
    for (int r = 0; r < the_world.size; r++)
        if (members[r].status != QKV_ERR_SHAPE || !strstr(members[r].error.message, says))
            fail_msg("rank %d of %d: %s \"%s\", expected \"%s\"", r, the_world.size,
                     qkv_status_name(members[r].status), members[r].error.message, says);
}

static void test_refused(void **state) {
    const qkv_heads_arrays a = arrays_of(0);
    (void)state;
    make_world(&a, 3);
    members[1].arrays.own_queries = -1;
    expect_all("rank 1: arrays.own_queries = -1 is not between 0 and n_queries = 700");
    make_world(&a, 3);
    members[2].arrays.own_keys = KEYS + 1;
    expect_all("rank 2: arrays.own_keys = 612 is not between 0 and n_keys = 611");
    make_world(&a, 2);
    for (int r = 0; r < 2; r++) members[r].arrays.own_keys = 300;
    expect_all("arrays.own_keys of all ranks are 600, and n_keys is 611");
    make_world(&a, 1);
    members[0].arrays.own_queries = 699;
    expect_all("arrays.own_queries = 699 is not between 700 and n_queries = 700");
}

int main(void) {
    const char *const given = getenv("QKV_TEST_SEED");
    const uint64_t seed = given ? strtoull(given, NULL, 10) : 20261127;
    static const struct CMUnitTest tests[] = { cmocka_unit_test(test_bytes),
                                               cmocka_unit_test(test_refused) };
    printf("seed %llu\n", (unsigned long long)seed);
    state_of_draws = seed;
    for (int i = 0; i < HEADS * QUERIES * DIM; i++) q[i] = (float)draw(1 << 16) / (1 << 14) - 2;
    for (int i = 0; i < KV_HEADS * KEYS * DIM; i++) k[i] = (float)draw(1 << 16) / (1 << 14) - 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
