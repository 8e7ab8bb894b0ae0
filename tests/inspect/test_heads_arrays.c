/**
 * Heads of arrays: weights with a soft cap, sinks and added scores beside their formula in double;
 * numbers from statistics of rows beside those of the arrays; what is refused.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/columns.h"
#include "qkv/heads.h"
#include "qkv/stats.h"

enum { HEADS = 4, KV_HEADS = 2, LEN = 21, DIM = 8, TILE = 8, SIDE = (LEN + TILE - 1) / TILE };
#define SOFTCAP 2.5f
static qkv_ctx *ctx;
static float q[HEADS * LEN * DIM], k[KV_HEADS * LEN * DIM], added[HEADS * LEN * LEN], sinks[HEADS];
static const char *names[LEN];

static float draw(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)(int64_t)(*state >> 40) / (float)(1 << 23) - 1;
}

static int set_up(void **state) {
    static const char *const words[] = { "[CLS]", "a", "b", ".", "a", "c", "b" };
    uint64_t seed = 20261124;
    (void)state;
    for (int i = 0; i < HEADS * LEN * DIM; i++) q[i] = 2 * draw(&seed);
    for (int i = 0; i < KV_HEADS * LEN * DIM; i++) k[i] = 2 * draw(&seed);
    for (int i = 0; i < HEADS * LEN * LEN; i++) added[i] = 3 * draw(&seed);
    for (int h = 0; h < HEADS; h++) sinks[h] = draw(&seed);
    for (int i = 0; i < LEN; i++) names[i] = words[i == 0 ? 0 : 1 + i % 6];
    return qkv_ctx_create(NULL, &ctx, NULL) == QKV_OK ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    qkv_ctx_free(ctx);
    return 0;
}

static qkv_heads_arrays plain(void) {
    qkv_heads_arrays a = qkv_heads_arrays_init();
    a.q = q;
    a.k = k;
    a.n_heads = HEADS;
    a.n_kv_heads = KV_HEADS;
    a.n_queries = a.n_keys = LEN;
    a.head_dim = DIM;
    a.keys = names;
    return a;
}

static qkv_heads *open_heads(const qkv_heads_arrays *a) {
    qkv_error error;
    qkv_heads *heads;
    if (qkv_heads_open_arrays(ctx, a, &heads, &error) != QKV_OK) fail_msg("%s", error.message);
    return heads;
}

/* ---- Weights --------------------------------------------------------------------------------- */

/* A weight by the formula of qkv/qkv.h. */
static double exact_score(const qkv_heads_arrays *a, int h, int i, int j) {
    const float *const x = q + (h * LEN + i) * DIM, *const y = k + (h / 2 * LEN + j) * DIM;
    double s = 0;
    for (int c = 0; c < DIM; c++) s += (double)x[c] * (double)y[c];
    s /= sqrt(DIM);
    if (a->softcap > 0) s = (double)a->softcap * tanh(s / (double)a->softcap);
    return a->added ? s + (double)added[(h * LEN + i) * LEN + j] : s;
}

static void exact_row(const qkv_heads_arrays *a, int h, int i, double *p) {
    double sum = a->sinks ? exp((double)sinks[h]) : 0;
    for (int j = 0; j < LEN; j++) {
        p[j] = a->causal && j > i ? 0 : exp(exact_score(a, h, i, j));
        sum += p[j];
    }
    for (int j = 0; j < LEN; j++) p[j] /= sum;
}

static void check_weights(const qkv_heads_arrays *a) {
    qkv_heads *const heads = open_heads(a);
    float got[LEN * LEN], cells[SIDE * SIDE];
    double exact[LEN];
    for (int h = 0; h < HEADS; h++) {
        double peaks[SIDE * SIDE] = { 0 };
        assert_int_equal(qkv_heads_weights(heads, h, 0, LEN, 0, LEN, got, LEN, NULL), QKV_OK);
        for (int i = 0; i < LEN; i++) {
            exact_row(a, h, i, exact);
            for (int j = 0; j < LEN; j++) {
                double *const peak = &peaks[i / TILE * SIDE + j / TILE];
                assert_true(fabs((double)got[i * LEN + j] - exact[j]) < 2e-6);
                *peak = fmax(*peak, exact[j]);
            }
        }
        assert_int_equal(qkv_heads_cells(heads, h, TILE, QKV_TILE_PEAK, cells, NULL, NULL), QKV_OK);
        for (int c = 0; c < SIDE * SIDE; c++)
            if (cells[c] != QKV_CELL_HIDDEN) assert_true(fabs((double)cells[c] - peaks[c]) < 2e-6);
    }
    qkv_heads_free(heads);
}

static void test_weights(void **state) {
    (void)state;
    for (unsigned n = 0; n < 16; n++) {
        qkv_heads_arrays a = plain();
        if (n & 1) a.softcap = SOFTCAP;
        if (n & 2) a.sinks = sinks;
        if (n & 4) a.added = added;
        a.causal = (n & 8) != 0;
        check_weights(&a);
    }
}

/* A list chooses heads together with their sinks and added scores. */
/* A query that sees no key has no entropy and no largest weight, beside a sink, too. */
static void test_unseeing(void **state) {
    (void)state;
    enum { UNSEEING = 5 };
    for (int with_sinks = 0; with_sinks < 2; with_sinks++) {
        qkv_heads_arrays a = plain();
        qkv_heads_profile profile = qkv_heads_profile_init();
        double entropy[LEN], largest[LEN];
        qkv_error error;
        a.causal = 1;
        a.q_offset = -UNSEEING;
        a.sinks = with_sinks ? sinks : NULL;
        profile.entropy = entropy;
        profile.largest = largest;
        qkv_heads *const heads = open_heads(&a);
        assert_int_equal(qkv_heads_position(heads, 1, &profile, NULL, &error), QKV_OK);
        for (int i = 0; i < LEN; i++) {
            assert_int_equal(isnan(entropy[i]) != 0, i < UNSEEING);
            assert_int_equal(isnan(largest[i]) != 0, i < UNSEEING);
        }
        qkv_heads_free(heads);
    }
}

static void test_list(void **state) {
    const int64_t list[] = { 3, 1 };
    float all[LEN * LEN], some[LEN * LEN];
    qkv_heads_arrays a = plain();
    (void)state;
    a.sinks = sinks;
    a.added = added;
    qkv_heads *const whole = open_heads(&a);
    a.list = list;
    a.n_list = 2;
    qkv_heads *const part = open_heads(&a);
    for (int n = 0; n < 2; n++) {
        assert_int_equal(qkv_heads_weights(whole, list[n], 0, LEN, 0, LEN, all, LEN, NULL), QKV_OK);
        assert_int_equal(qkv_heads_weights(part, n, 0, LEN, 0, LEN, some, LEN, NULL), QKV_OK);
        assert_memory_equal(all, some, sizeof all);
    }
    qkv_heads_free(whole);
    qkv_heads_free(part);
}

/* ---- Statistics of rows ---------------------------------------------------------------------- */

static float lists[9][HEADS * LEN * QKV_HEADS_N_KINDS];
static int64_t n_queries[HEADS * LEN];

/* What a forward pass and a pass over columns say, as a caller asks for it. */
static qkv_heads_rows compute_rows(const qkv_heads_arrays *a, const int32_t *tokens) {
    static uint8_t kinds[LEN];
    static float o[HEADS * LEN * DIM], lse[HEADS * LEN], received[HEADS * LEN];
    qkv_attention_desc desc;
    qkv_attention_stats stats;
    qkv_attention_columns columns;
    qkv_heads_kinds(names, LEN, kinds);
    qkv_attention_desc_contiguous(&desc, 1, HEADS, KV_HEADS, LEN, LEN, DIM, DIM);
    if (a->causal) desc.flags |= QKV_SET_CAUSAL;
    qkv_attention_stats_contiguous(&stats, &desc);
    stats.entropy = lists[0];
    stats.largest = lists[1];
    stats.effective_keys = lists[2];
    stats.mean_distance = lists[3];
    stats.offset_mass = lists[4];
    stats.offsets = qkv_heads_offsets();
    stats.n_offsets = QKV_HEADS_N_OFFSETS;
    stats.class_mass = lists[5];
    stats.classes = kinds;
    stats.n_classes = QKV_HEADS_N_KINDS;
    stats.tokens_q = stats.tokens_k = tokens;
    stats.same_token = lists[6];
    stats.duplicate = lists[7];
    stats.induction = lists[8];
    desc.stats = &stats;
    desc.flags |= QKV_SET_STATS;
    assert_int_equal(qkv_attention_forward(ctx, &desc, q, k, k, o, lse, NULL), QKV_OK);
    desc.flags &= ~(unsigned)QKV_SET_STATS;
    desc.stats = NULL;
    qkv_attention_columns_contiguous(&columns, &desc);
    columns.received = received;
    columns.n_queries = n_queries;
    assert_int_equal(qkv_attention_columns_pass(ctx, &desc, q, k, lse, &columns, NULL), QKV_OK);
    return (qkv_heads_rows){ .struct_size = sizeof(qkv_heads_rows),
                             .entropy = lists[0],
                             .largest = lists[1],
                             .effective_keys = lists[2],
                             .mean_distance = lists[3],
                             .offset_mass = lists[4],
                             .class_mass = lists[5],
                             .same_token = lists[6],
                             .duplicate = lists[7],
                             .induction = lists[8],
                             .received = received,
                             .n_queries = n_queries };
}

static void same_numbers(const qkv_heads *a, const qkv_heads *b, int first_nan, int end_nan) {
    for (int h = 0; h < HEADS; h++)
        for (int c = 0; c < qkv_head_number_count(); c++) {
            const double x = qkv_heads_numbers(a, h)[c], y = qkv_heads_numbers(b, h)[c];
            if (c >= first_nan && c < end_nan)
                assert_true(isnan(y));
            else if (!isnan(x) || !isnan(y))
                assert_true(x == y);
        }
}

static void test_rows(void **state) {
    int32_t tokens[LEN];
    (void)state;
    for (int i = 0; i < LEN; i++) tokens[i] = i == 0 ? 0 : (int32_t)names[i][0];
    for (int causal = 0; causal < 2; causal++) {
        qkv_heads_arrays a = plain();
        a.causal = causal;
        qkv_heads *const arrays = open_heads(&a);
        const qkv_heads_rows rows = compute_rows(&a, tokens);
        a.rows = &rows;
        a.q = a.k = NULL;
        qkv_heads *const given = open_heads(&a);
        assert_int_equal(qkv_heads_measure(arrays, QKV_HEADS_RECEIVED, NULL, NULL), QKV_OK);
        assert_int_equal(
            qkv_heads_measure(given, QKV_HEADS_RECEIVED | QKV_HEADS_SHARPEST, NULL, NULL), QKV_OK);
        same_numbers(arrays, given, 0, 0);
        assert_string_equal(qkv_heads_label(qkv_heads_numbers(arrays, 0)),
                            qkv_heads_label(qkv_heads_numbers(given, 0)));
        assert_int_equal(qkv_heads_measure(given, 0, NULL, NULL), QKV_OK);
        same_numbers(arrays, given, qkv_head_number_find("received_largest", 16),
                     qkv_head_number_find("received_key", 12) + 1);
        qkv_heads_free(arrays);
        qkv_heads_free(given);
    }
}

/* Of rows that see no key, and of rows that are NaN. */
static void test_odd_rows(void **state) {
    float ones[HEADS * LEN * QKV_HEADS_N_OFFSETS], largest[HEADS * LEN];
    (void)state;
    for (int i = 0; i < HEADS * LEN * QKV_HEADS_N_OFFSETS; i++) ones[i] = 1;
    for (int i = 0; i < HEADS * LEN; i++) largest[i] = i % LEN == 3 ? 0 : 0.5f;
    largest[2 * LEN + 5] = NAN;
    const qkv_heads_rows rows = { .struct_size = sizeof rows,
                                  .entropy = ones,
                                  .largest = largest,
                                  .effective_keys = ones,
                                  .mean_distance = ones,
                                  .offset_mass = ones };
    qkv_heads_arrays a = plain();
    a.rows = &rows;
    a.keys = NULL;
    qkv_heads *const heads = open_heads(&a);
    assert_int_equal(qkv_heads_measure(heads, QKV_HEADS_RECEIVED, NULL, NULL), QKV_OK);
    assert_int_equal(qkv_heads_empty_rows(heads, 1), 1);
    assert_int_equal(qkv_heads_nan_rows(heads, 1), 0);
    assert_int_equal(qkv_heads_nan_rows(heads, 2), 1);
    assert_true(qkv_head_number_value(qkv_heads_numbers(heads, 1), "confidence") == 0.5);
    assert_true(qkv_head_number_value(qkv_heads_numbers(heads, 1), "n_queries") == LEN - 1);
    assert_true(isnan(qkv_head_number_value(qkv_heads_numbers(heads, 2), "confidence")));
    assert_true(isnan(qkv_head_number_value(qkv_heads_numbers(heads, 1), "mass_same_token")));
    assert_true(isnan(qkv_head_number_value(qkv_heads_numbers(heads, 1), "received_largest")));
    qkv_heads_free(heads);
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void refused(const qkv_heads_arrays *a, qkv_status status, const char *words) {
    qkv_error error;
    qkv_heads *heads;
    assert_int_equal(qkv_heads_open_arrays(ctx, a, &heads, &error), status);
    assert_null(heads);
    if (!strstr(error.message, words)) fail_msg("\"%s\" lacks \"%s\"", error.message, words);
}

static void test_errors(void **state) {
    const int64_t list[] = { 0 };
    qkv_heads_rows rows = {
        .struct_size = sizeof rows, .entropy = q, .largest = q, .effective_keys = q
    };
    qkv_heads_arrays a = plain();
    qkv_error error;
    float weight;
    (void)state;
    a.softcap = -1;
    refused(&a, QKV_ERR_ARGUMENT, "softcap = -1 is not 0 to 1e30");
    a.softcap = NAN;
    refused(&a, QKV_ERR_ARGUMENT, "softcap = nan");
    a = plain();
    a.rows = &rows;
    rows.struct_size = 0;
    refused(&a, QKV_ERR_ARGUMENT, "struct_size");
    rows.struct_size = sizeof rows;
    refused(&a, QKV_ERR_ARGUMENT, "arrays.rows.offset_mass is NULL");
    rows.offset_mass = added;
    refused(&a, QKV_ERR_ARGUMENT, "arrays.rows.mean_distance is NULL");
    rows.mean_distance = q;
    rows.received = q;
    refused(&a, QKV_ERR_ARGUMENT, "arrays.rows.n_queries is NULL");
    rows.received = NULL;
    rows.same_token = q;
    refused(&a, QKV_ERR_ARGUMENT, "arrays.rows.same_token, duplicate or induction is NULL");
    rows.same_token = NULL;
    rows.largest = NULL;
    refused(&a, QKV_ERR_ARGUMENT, "arrays.rows.largest is NULL");
    rows.largest = q;
    a.list = list;
    a.n_list = 1;
    refused(&a, QKV_ERR_UNSUPPORTED, "arrays.rows together with a list");
    a.list = NULL;
    qkv_heads *const heads = open_heads(&a);
    assert_int_equal(qkv_heads_weights(heads, 0, 0, 1, 0, 1, &weight, 1, &error),
                     QKV_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "statistics of rows have no queries and keys"));
    qkv_heads_free(heads);
}

static void test_kinds(void **state) {
    static const char *const some[] = { "word", ".", "[CLS]", "</s>", "<pad>", NULL };
    const uint8_t want[] = { 0, 1, 2, 3, 4, 0 };
    uint8_t kinds[6];
    (void)state;
    qkv_heads_kinds(some, 6, kinds);
    assert_memory_equal(kinds, want, sizeof want);
    qkv_heads_kinds(NULL, 6, kinds);
    qkv_heads_kinds(some, 0, NULL);
    const int64_t *const offsets = qkv_heads_offsets();
    const int64_t bounds[QKV_HEADS_N_OFFSETS + 1] = { -8, -1, 0, 1, 2, 9 };
    assert_memory_equal(offsets, bounds, sizeof bounds);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights),  cmocka_unit_test(test_list),
        cmocka_unit_test(test_unseeing), cmocka_unit_test(test_rows),
        cmocka_unit_test(test_odd_rows), cmocka_unit_test(test_errors),
        cmocka_unit_test(test_kinds),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
