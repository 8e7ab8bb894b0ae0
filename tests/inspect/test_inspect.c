/**
 * Content words, the sharpest head, and what statistics of a run refuse, on weights made by hand
 * (hand_run.h). Statistics themselves are in test_signature.c, labels in test_rules.c.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "inspect/function_words.h"
#include "inspect/hand_run.h"
#include "inspect/head_values.h"
#include "inspect/tokens.h"

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

/* ---- A whole run -------------------------------------------------------------------------------
 * */

static void test_heads(void **state) {
    (void)state;
    const int32_t tokens[] = { CLS, DOOR, WATCH, SEP };
    const qkv_encoding input = input_of(4, tokens);
    head_values stats[N_LAYERS * N_HEADS];
    qkv_error error;
    begin_run(4);
    for (int64_t i = 0; i < 4; i++)
        for (int64_t j = 0; j < 4; j++) *log_weight(1, 0, i, j) = j == (i + 1) % 4 ? 0 : -1e4f;
    assert_int_equal(head_values_of_text(ctx, model.tokenizer, &run, &input, stats, &error),
                     QKV_OK);
    for (int i = 0; i < N_LAYERS * N_HEADS; i++) {
        assert_int_equal(stats[i].layer, i / N_HEADS);
        assert_int_equal(stats[i].head, i % N_HEADS);
        assert_string_equal(stats[i].label, i == 2 ? "" : "broad"); /* two queries are too few */
    }
    near(stats[0].entropy, log(4));
    near(stats[0].entropy_normalized, 1);
}

/* Of the run as it is now. */
static qkv_status find_sharpest(int64_t b, const uint8_t *of, const uint8_t *from,
                                const uint8_t *to, qkv_sharpest *sharpest) {
    static const int32_t tokens[MAX_N];
    const qkv_encoding input = input_of(run.n, tokens);
    const qkv_token_list list = { model.tokenizer, &input };
    qkv_heads *heads;
    qkv_status status = qkv_heads_open_run(ctx, &run, QKV_SELF, b, &list, NULL, &heads, NULL);
    if (status == QKV_OK) status = qkv_heads_sharpest(heads, of, from, to, sharpest, NULL);
    qkv_heads_free(heads);
    return status;
}

static void test_sharpest(void **state) {
    (void)state;
    const int32_t tokens[] = { CLS, THE, DOOR, MASK, WATCH, SEP };
    const qkv_encoding input = input_of(6, tokens);
    const uint8_t mask[6] = { 0, 0, 0, 1, 0, 0 }, watch[6] = { 0, 0, 0, 0, 1, 0 };
    const uint8_t first_layer[4] = { 1, 1, 0, 0 };
    uint8_t content[6];
    qkv_sharpest sharpest = qkv_sharpest_init();
    begin_run(6);
    set_weight(1, 1, 3, 2, 0.4f);
    set_weight(0, 1, 3, 1, 0.9f); /* a function word */
    set_weight(0, 0, 3, 5, 0.9f); /* special */
    set_weight(0, 0, 4, 4, 0.9f); /* itself */
    set_weight(1, 0, 2, 4, 0.8f); /* another query */
    *log_weight(0, 0, 1, 0) = NAN;
    qkv_inspect_content(qkv_model_tokenizer(&model, QKV_SOURCE), &input, content);
    const struct {
        const uint8_t *heads, *from, *to;
        qkv_sharpest expected;
    } rows[] = {
        { NULL, mask, content, { sizeof(qkv_sharpest), 1, 1, 3, 2, 0.4f } },
        { NULL, watch, content, { sizeof(qkv_sharpest), 0, 1, 4, 2, 1.0f / 6 } }, /* a tie */
        { NULL, content, content, { sizeof(qkv_sharpest), 1, 0, 2, 4, 0.8f } },
        { NULL, NULL, NULL, { sizeof(qkv_sharpest), 0, 0, 3, 5, 0.9f } },
        { first_layer, mask, content, { sizeof(qkv_sharpest), 0, 0, 3, 2, 0.02f } }, /* a tie */
        { NULL, watch, watch, { sizeof(qkv_sharpest), 0, 0, -1, -1, 0 } },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const qkv_sharpest *want = &rows[i].expected;
        assert_int_equal(find_sharpest(0, rows[i].heads, rows[i].from, rows[i].to, &sharpest),
                         QKV_OK);
        if (sharpest.layer != want->layer || sharpest.head != want->head ||
            sharpest.query != want->query || sharpest.key != want->key)
            fail_msg("row %zu: head %d.%d, %d at %d", i, (int)sharpest.layer, (int)sharpest.head,
                     (int)sharpest.query, (int)sharpest.key);
        near(sharpest.weight, want->weight);
    }
}

/* Rows that are asked for lie apart, and are more than are looked at together. */
static void test_sharpest_of_many(void **state) {
    (void)state;
    enum { N = MAX_N };
    qkv_sharpest sharpest = qkv_sharpest_init();
    for (int64_t row = 0; row < N; row++) {
        uint8_t from[N];
        for (int64_t i = 0; i < N; i++) from[i] = i % 7 != 0 || i == row;
        begin_run(N);
        set_weight(1, 0, row, 3 + row / 2, 0.5f);
        set_weight(0, 0, (row + 7) / 7 * 7 % N, 1, 0.9f); /* often not asked for */
        from[(row + 7) / 7 * 7 % N] = 0;
        if (!from[row]) continue;
        const qkv_status status = find_sharpest(0, NULL, from, NULL, &sharpest);
        assert_int_equal(status, QKV_OK);
        if (3 + row / 2 == row) continue; /* itself */
        if (sharpest.layer != 1 || sharpest.query != row || sharpest.key != 3 + row / 2)
            fail_msg("row %d: layer %d, %d at %d", (int)row, (int)sharpest.layer,
                     (int)sharpest.query, (int)sharpest.key);
    }
}

static void test_nothing_sharp(void **state) {
    (void)state;
    const uint8_t none[4] = { 0, 0, 0, 0 };
    qkv_sharpest sharpest = qkv_sharpest_init();
    begin_run(4);
    for (int i = 0; i < 3; i++) {
        memset(&sharpest, 7, sizeof sharpest);
        sharpest.struct_size = sizeof sharpest;
        assert_int_equal(find_sharpest(0, i == 0 ? none : NULL, i == 1 ? none : NULL,
                                       i == 2 ? none : NULL, &sharpest),
                         QKV_OK);
        assert_true(sharpest.key == -1 && sharpest.query == -1);
        assert_true(sharpest.layer == 0 && sharpest.head == 0 && sharpest.weight == 0);
    }
}

static void test_refused(void **state) {
    (void)state;
    const int32_t tokens[] = { CLS, THE, IT, SEP };
    const qkv_encoding input = input_of(4, tokens);
    head_values stats[N_LAYERS * N_HEADS];
    qkv_sharpest sharpest = qkv_sharpest_init();
    qkv_error error;
    begin_run(5);
    assert_int_equal(head_values_of_text(ctx, model.tokenizer, &run, &input, stats, &error),
                     QKV_ERR_SHAPE);
    assert_non_null(strstr(error.message, "4 tokens, the run has 5"));
    assert_int_equal(head_values_of_text(ctx, NULL, &run, &input, stats, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(head_values_of_text(ctx, model.tokenizer, NULL, &input, stats, &error),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(head_values_of_text(NULL, model.tokenizer, &run, &input, stats, &error),
                     QKV_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "ctx is NULL"));
    begin_run(4);
    assert_int_equal(find_sharpest(1, NULL, NULL, NULL, &sharpest), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_heads_sharpest(NULL, NULL, NULL, NULL, &sharpest, &error),
                     QKV_ERR_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_word_list),
        cmocka_unit_test(test_content),

        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_sharpest),
        cmocka_unit_test(test_sharpest_of_many),
        cmocka_unit_test(test_nothing_sharp),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, begin_tests, end_tests);
}
