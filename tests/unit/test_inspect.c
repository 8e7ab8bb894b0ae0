/**
 * Statistics, labels, content words and the sharpest head, on weights made by hand.
 *
 * The run and the model are this file's own: it defines the functions of model.h that inspection
 * calls, so captures can hold anything.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "inspect/function_words.h"
#include "inspect/head_stats.h"
#include "inspect/tokens.h"
#include "qkv/inspect.h"

enum { CLS, SEP, MASK, UNK, DOT, DOOR, THE, WATCH, ING, IT, SELF, PAD, N_VOCAB };
static const char vocab[] =
    "[CLS]\n[SEP]\n[MASK]\n[UNK]\n.\ndoor\nthe\nwatch\n##ing\nit\n##self\n[PAD]\n";

/* ---- A run made by hand ------------------------------------------------------------------------
 * */

enum { MAX_N = 70, N_LAYERS = 2, N_HEADS = 2 };

struct qkv_model {
    qkv_model_info info;
    qkv_tokenizer *tokenizer;
};

/* Head dimension n: q is the logarithm of the weights, k the identity, so p = exp(q - lse). */
struct qkv_run {
    int64_t n;
    float q[N_LAYERS][N_HEADS * MAX_N * MAX_N], k[N_HEADS * MAX_N * MAX_N];
    float lse[N_HEADS * MAX_N];
};

static struct qkv_run run;
static struct qkv_model model = { .info = { .n_layers = N_LAYERS, .n_heads = N_HEADS } };

const qkv_model_info *qkv_model_get_info(const qkv_model *m) { return &m->info; }
const qkv_tokenizer *qkv_model_tokenizer(const qkv_model *m) { return m->tokenizer; }

qkv_status qkv_run_capture(const qkv_run *r, int64_t b, int64_t layer, qkv_capture *capture,
                           qkv_error *error) {
    (void)error;
    if (b != 0 || layer < 0 || layer >= N_LAYERS) return QKV_ERR_ARGUMENT;
    *capture = (qkv_capture){ r->q[layer], r->k, r->lse, N_HEADS, r->n, r->n, 1 };
    return QKV_OK;
}

static float *log_weight(int64_t layer, int64_t head, int64_t i, int64_t j) {
    return &run.q[layer][(head * run.n + i) * run.n + j];
}

qkv_status qkv_run_weights(const qkv_run *r, int64_t b, int64_t layer, int64_t head, float *weights,
                           qkv_error *error) {
    (void)b;
    (void)error;
    for (int64_t i = 0; i < r->n * r->n; i++)
        weights[i] = expf(r->q[layer][head * r->n * r->n + i]);
    return QKV_OK;
}

/* Uniform weights everywhere. */
static void begin_run(int64_t n) {
    run.n = n;
    memset(run.k, 0, sizeof run.k);
    for (int64_t head = 0; head < N_HEADS; head++) {
        for (int64_t i = 0; i < n; i++) {
            run.k[(head * n + i) * n + i] = 1;
            for (int64_t layer = 0; layer < N_LAYERS; layer++)
                for (int64_t j = 0; j < n; j++) *log_weight(layer, head, i, j) = -logf((float)n);
        }
    }
}

/* ---- Encodings ---------------------------------------------------------------------------------
 * */

static int32_t ids[MAX_N];
static uint8_t special[MAX_N];

static qkv_encoding input_of(int64_t n, const int32_t *tokens) {
    for (int64_t i = 0; i < n; i++) {
        ids[i] = tokens[i];
        special[i] = tokens[i] == CLS || tokens[i] == SEP || tokens[i] == MASK || tokens[i] == PAD;
    }
    return (qkv_encoding){ .n = n, .ids = ids, .special = special };
}

static int open_tokenizer(void **state) {
    (void)state;
    return qkv_tokenizer_open_memory(vocab, sizeof vocab - 1, NULL, 0, &model.tokenizer, NULL);
}

static int close_tokenizer(void **state) {
    (void)state;
    qkv_tokenizer_free(model.tokenizer);
    return 0;
}

static void near(double value, double wanted) {
    if (!(fabs(value - wanted) < 1e-6)) fail_msg("%.9g is not %.9g", value, wanted);
}

/* ---- Content words -----------------------------------------------------------------------------
 * */

static void test_word_list(void **state) {
    (void)state;
    const size_t n = sizeof qkvi_function_words / sizeof qkvi_function_words[0];
    for (size_t i = 0; i < n; i++) {
        const char *word = qkvi_function_words[i];
        assert_true(i == 0 || strcmp(qkvi_function_words[i - 1], word) < 0);
        assert_true(qkvi_is_function_word(word, strlen(word)));
    }
    assert_true(qkvi_is_function_word("The", 3));
    assert_false(qkvi_is_function_word("door", 4));
    assert_false(qkvi_is_function_word("thethethethethethethethe", 24));
    assert_false(qkvi_is_function_word("", 0));
}

static void test_content(void **state) {
    (void)state;
    const int32_t tokens[] = { CLS, THE, DOOR, WATCH, ING, IT, SELF, MASK, UNK, DOT, IT, ING, SEP };
    const uint8_t wanted[] = { 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0 };
    uint8_t content[13];
    const qkv_encoding input = input_of(13, tokens);
    qkv_inspect_content(model.tokenizer, &input, content);
    assert_memory_equal(content, wanted, sizeof wanted); /* "iting" is no function word */
}

/* ---- Statistics --------------------------------------------------------------------------------
 * */

static void stats_of(int64_t n, const int32_t *tokens, const float *weights,
                     qkv_head_stats *stats) {
    uint8_t kinds[MAX_N];
    for (int64_t i = 0; i < n; i++)
        kinds[i] = (uint8_t)qkvi_token_kind_of(model.tokenizer, tokens[i]);
    qkvi_head_stats(weights, n, tokens, kinds, stats);
}

static void test_numbers(void **state) {
    (void)state;
    const int32_t tokens[] = { CLS, DOOR, DOT, SEP };
    const float weights[] = {
        0,    0,     0,     1, /* not averaged */
        0.5f, 0.25f, 0.25f, 0, /* door */
        0,    0,     0,     1, /* the full stop */
        1,    0,     0,     0, /* not averaged */
    };
    qkv_head_stats stats;
    stats_of(4, tokens, weights, &stats);
    near(stats.entropy, 0.5 * (0.5 * log(2) + 0.5 * log(4)));
    near(stats.entropy_normalized, stats.entropy / log(4));
    near(stats.confidence, (0.5 + 1) / 2);
    near(stats.mean_distance, (0.5 * 1 + 0.25 * 1 + 1) / 2);
    near(stats.mass_cls, 0.25);
    near(stats.mass_sep, 0.5);
    near(stats.mass_punctuation, 0.125);
    near(stats.mass_self, 0.125);
    near(stats.mass_previous, 0.25);
    near(stats.mass_next, (0.25 + 1) / 2);
    assert_string_equal(stats.label, "next");
}

static void test_only_special(void **state) {
    (void)state;
    const int32_t tokens[] = { CLS, SEP }, one[] = { CLS };
    const float weights[] = { 1, 0, 1, 0 }, single[] = { 1.0000001f };
    qkv_head_stats stats;
    stats_of(2, tokens, weights, &stats); /* all rows count */
    near(stats.mass_cls, 1);
    stats_of(1, one, single, &stats);
    assert_true(stats.entropy == 0 && stats.entropy_normalized == 0);
    stats_of(0, one, single, &stats);
    near(stats.confidence, 0);
}

/* One row for all queries. */
static const char *label_for(int64_t n, const int32_t *tokens, const float *row) {
    static qkv_head_stats stats;
    static float weights[MAX_N * MAX_N];
    for (int64_t i = 0; i < n; i++) memcpy(weights + i * n, row, (size_t)n * sizeof *row);
    stats_of(n, tokens, weights, &stats);
    return stats.label;
}

static void test_labels(void **state) {
    (void)state;
    const int32_t tokens[] = { CLS, DOOR, WATCH, THE, DOT, SEP };
    static const struct {
        float row[6];
        const char *label;
    } rows[] = {
        { { 0.61f, 0.39f, 0, 0, 0, 0 }, "[CLS]" },
        { { 0, 0, 0.39f, 0, 0, 0.61f }, "[SEP]" },
        { { 0, 0, 0, 0.39f, 0.61f, 0 }, "punctuation" },
        { { 0.17f, 0.17f, 0.17f, 0.17f, 0.16f, 0.16f }, "broad" },
        { { 0.45f, 0.05f, 0, 0.45f, 0.05f, 0 }, "sink" },
        { { 0.29f, 0.15f, 0, 0.29f, 0.27f, 0 }, "" }, /* 1.37 of 1.79 nats: 0.76 */
        { { NAN, 0, 0, 0, 0, 1 }, "" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(label_for(6, tokens, rows[i].row), rows[i].label);
}

static void test_previous_and_same(void **state) {
    (void)state;
    const int32_t tokens[] = { CLS, DOOR, THE, DOOR, IT, THE, SEP };
    float previous[49] = { 0 }, same[49] = { 0 };
    for (int64_t i = 0; i < 7; i++) {
        previous[i * 7 + (i > 0 ? i - 1 : 6)] = 1;
        same[i * 7 + i] = 0.55f;
        same[i * 7 + (i == 1 ? 3 : i == 3 ? 1 : i == 2 ? 5 : i == 5 ? 2 : 0)] = 0.45f;
    }
    qkv_head_stats stats;
    stats_of(7, tokens, previous, &stats);
    assert_string_equal(stats.label, "prev");
    near(stats.mass_previous, 1);
    stats_of(7, tokens, same, &stats);
    assert_string_equal(stats.label, "same-token"); /* of the rows that have one */
    near(stats.mass_self, 0.55);
}

/* A sink is one of the first 64 tokens. */
static void test_late_sink(void **state) {
    (void)state;
    int32_t tokens[MAX_N];
    float row[MAX_N] = { 0 };
    for (int i = 0; i < MAX_N; i++) tokens[i] = N_VOCAB + i; /* all different */
    row[64] = 0.5f;
    row[3] = 0.25f;
    row[9] = 0.25f;
    assert_string_equal(label_for(MAX_N, tokens, row), "");
    row[63] = 0.5f;
    row[64] = 0;
    assert_string_equal(label_for(MAX_N, tokens, row), "sink");
}

/* ---- A whole run -------------------------------------------------------------------------------
 * */

static void test_heads(void **state) {
    (void)state;
    const int32_t tokens[] = { CLS, DOOR, WATCH, SEP };
    const qkv_encoding input = input_of(4, tokens);
    qkv_head_stats stats[N_LAYERS * N_HEADS];
    qkv_error error;
    begin_run(4);
    for (int64_t i = 0; i < 4; i++)
        for (int64_t j = 0; j < 4; j++) *log_weight(1, 0, i, j) = j == (i + 1) % 4 ? 0 : -INFINITY;
    assert_int_equal(qkv_inspect_heads(&model, &run, 0, &input, stats, &error), QKV_OK);
    for (int i = 0; i < N_LAYERS * N_HEADS; i++) {
        assert_int_equal(stats[i].layer, i / N_HEADS);
        assert_int_equal(stats[i].head, i % N_HEADS);
        assert_string_equal(stats[i].label, i == 2 ? "next" : "broad");
    }
    near(stats[0].entropy, log(4));
    near(stats[0].entropy_normalized, 1);
}

static void test_sharpest(void **state) {
    (void)state;
    const int32_t tokens[] = { CLS, THE, DOOR, MASK, WATCH, SEP };
    const qkv_encoding input = input_of(6, tokens);
    const uint8_t mask[6] = { 0, 0, 0, 1, 0, 0 }, watch[6] = { 0, 0, 0, 0, 1, 0 };
    const uint8_t first_layer[4] = { 1, 1, 0, 0 };
    uint8_t content[6];
    qkv_sharpest sharpest;
    begin_run(6);
    *log_weight(1, 1, 3, 2) = logf(0.4f);
    *log_weight(0, 1, 3, 1) = logf(0.9f); /* a function word */
    *log_weight(0, 0, 3, 5) = logf(0.9f); /* special */
    *log_weight(0, 0, 4, 4) = logf(0.9f); /* itself */
    *log_weight(1, 0, 2, 4) = logf(0.8f); /* another query */
    *log_weight(0, 0, 1, 0) = NAN;
    qkv_inspect_content(qkv_model_tokenizer(&model), &input, content);
    const struct {
        const uint8_t *heads, *from, *to;
        qkv_sharpest expected;
    } rows[] = {
        { NULL, mask, content, { 1, 1, 3, 2, 0.4f } },
        { NULL, watch, content, { 0, 0, 4, 2, 1.0f / 6 } }, /* a tie */
        { NULL, content, content, { 1, 0, 2, 4, 0.8f } },
        { NULL, NULL, NULL, { 0, 0, 3, 5, 0.9f } },
        { first_layer, mask, content, { 0, 0, 3, 2, 1.0f / 6 } },
        { NULL, watch, watch, { 0, 0, -1, -1, 0 } },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const qkv_sharpest *want = &rows[i].expected;
        assert_int_equal(qkv_inspect_sharpest(&model, &run, 0, rows[i].heads, rows[i].from,
                                              rows[i].to, &sharpest, NULL),
                         QKV_OK);
        if (sharpest.layer != want->layer || sharpest.head != want->head ||
            sharpest.query != want->query || sharpest.key != want->key)
            fail_msg("row %zu: head %d.%d, %d at %d", i, (int)sharpest.layer, (int)sharpest.head,
                     (int)sharpest.query, (int)sharpest.key);
        near(sharpest.weight, want->weight);
    }
}

static void test_nothing_sharp(void **state) {
    (void)state;
    const uint8_t none[4] = { 0, 0, 0, 0 };
    qkv_sharpest sharpest;
    begin_run(4);
    for (int i = 0; i < 3; i++) {
        memset(&sharpest, 7, sizeof sharpest);
        assert_int_equal(qkv_inspect_sharpest(&model, &run, 0, i == 0 ? none : NULL,
                                              i == 1 ? none : NULL, i == 2 ? none : NULL, &sharpest,
                                              NULL),
                         QKV_OK);
        assert_true(sharpest.key == -1 && sharpest.query == -1);
        assert_true(sharpest.layer == 0 && sharpest.head == 0 && sharpest.weight == 0);
    }
}

static void test_refused(void **state) {
    (void)state;
    const int32_t tokens[] = { CLS, THE, IT, SEP };
    const qkv_encoding input = input_of(4, tokens);
    qkv_head_stats stats[N_LAYERS * N_HEADS];
    qkv_sharpest sharpest;
    qkv_error error;
    begin_run(5);
    assert_int_equal(qkv_inspect_heads(&model, &run, 0, &input, stats, &error), QKV_ERR_SHAPE);
    assert_non_null(strstr(error.message, "4 tokens, the run has 5"));
    assert_int_equal(qkv_inspect_heads(NULL, &run, 0, &input, stats, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_inspect_heads(&model, &run, 0, &input, NULL, &error), QKV_ERR_ARGUMENT);
    begin_run(4);
    assert_int_equal(qkv_inspect_sharpest(&model, &run, 1, NULL, NULL, NULL, &sharpest, &error),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_inspect_sharpest(NULL, &run, 0, NULL, NULL, NULL, &sharpest, &error),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_inspect_sharpest(&model, NULL, 0, NULL, NULL, NULL, &sharpest, &error),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_inspect_sharpest(&model, &run, 0, NULL, NULL, NULL, NULL, &error),
                     QKV_ERR_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_word_list), cmocka_unit_test(test_content),
        cmocka_unit_test(test_numbers),   cmocka_unit_test(test_only_special),
        cmocka_unit_test(test_labels),    cmocka_unit_test(test_previous_and_same),
        cmocka_unit_test(test_late_sink), cmocka_unit_test(test_heads),
        cmocka_unit_test(test_sharpest),  cmocka_unit_test(test_nothing_sharp),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, open_tokenizer, close_tokenizer);
}
