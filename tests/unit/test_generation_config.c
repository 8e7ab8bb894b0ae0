/*
 * generation_config.json: what is named because it is not honoured, and what generation takes of it. What is
 * read and refused: tests/unit/test_store_decoder.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/store/generation_config.h"
#include "qkv/generate.h"

static const qkv_model_info info = {
    .target_vocab_size = 100, .bos_id = 1, .pad_id = 3, .eos_id = 2, .start_id = -1
};

/* What it says, until the next one is read. */
static const qkvi_generation_config *parse(const char *json) {
    static qkvi_generation_config c;
    qkv_error error = { 0 };
    if (qkvi_generation_config_parse("F", json, strlen(json), &info, &c, &error) != QKV_OK)
        fail_msg("%s: %s", json, error.message);
    return &c;
}

static void test_unsupported(void **state) {
    (void)state;
    assert_null(parse("{\"top_k\": null, \"typical_p\": 1.0, \"num_beam_groups\": 1, "
                      "\"suppress_tokens\": [], \"guidance_scale\": null}")
                    ->unsupported);
    assert_true(parse("{\"renormalize_logits\": true}")->renormalize_logits);
    assert_true(parse("{\"num_return_sequences\": 3}")->num_return_sequences == 3);
    assert_string_equal(parse("{\"num_beam_groups\": 2}")->unsupported, "num_beam_groups");
    assert_string_equal(parse("{\"typical_p\": 0.5}")->unsupported, "typical_p");
    assert_string_equal(parse("{\"suppress_tokens\": [1]}")->unsupported, "suppress_tokens");
    assert_string_equal(parse("{\"stop_strings\": \"a\"}")->unsupported, "stop_strings");
    assert_string_equal(parse("{\"watermarking_config\": {\"a\": 1}}")->unsupported,
                        "watermarking_config");
}

static void test_models(void **state) {
    qkv_model *model;
    qkv_error error;
    qkv_generate_options options = QKV_GENERATE_OPTIONS_INIT;
    (void)state;
    assert_int_equal(qkv_model_open(QKV_TEST_DATA "/golden/decoder/bart_2", &model, &error),
                     QKV_OK);
    assert_int_equal(qkv_generate_options_of(model, &options, &error), QKV_OK);
    assert_true(options.n_beams == 4 && options.max_length == 40 && options.forced_eos == 2);
    assert_true(options.forced_bos == 0 && options.struct_size == sizeof options);
    assert_int_equal(qkv_generate_options_of(NULL, &options, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_generate_options_of(model, NULL, &error), QKV_ERR_ARGUMENT);
    options.struct_size = 3;
    assert_int_equal(qkv_generate_options_of(model, &options, &error), QKV_ERR_ARGUMENT);
    qkv_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unsupported),
        cmocka_unit_test(test_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
