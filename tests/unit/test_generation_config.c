/* generation_config.json: what is read, what is refused, what is named because it is not honoured. */
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

static qkvi_generation_config parse(const char *json) {
    qkvi_generation_config c;
    qkv_error error = { 0 };
    if (qkvi_generation_config_parse("F", json, strlen(json), &info, &c, &error) != QKV_OK)
        fail_msg("%s: %s", json, error.message);
    return c;
}

static void test_defaults(void **state) {
    const qkvi_generation_config c =
        parse("{\"transformers_version\": \"5\", \"top_k\": null, \"typical_p\": 1.0, "
              "\"num_beam_groups\": 1, \"suppress_tokens\": [], \"guidance_scale\": null}");
    (void)state;
    assert_true(c.bos == 1 && c.pad == 3 && c.start == -1 && c.n_ends == 1 && c.ends[0] == 2);
    assert_true(c.max_new_tokens == 0 && c.max_length == 0 && c.min_length == 0);
    assert_true(c.num_beams == 1 && c.num_return_sequences == 1 && c.length_penalty == 1);
    assert_true(!c.do_sample && c.temperature == 1 && c.top_k == 50 && c.top_p == 1);
    assert_true(c.repetition_penalty == 1 && c.no_repeat_ngram_size == 0 && !c.renormalize_logits);
    assert_true(c.forced_first == -1 && c.n_forced_last == 0 && c.n_bad_words == 0);
    assert_null(c.unsupported);
}

static void test_fields(void **state) {
    const qkvi_generation_config c = parse(
        "{\"max_new_tokens\": 7, \"max_length\": 512, \"min_new_tokens\": 1, \"min_length\": 2, "
        "\"num_beams\": 6, \"num_return_sequences\": 3, \"top_k\": 40, \"top_p\": 0.5, "
        "\"no_repeat_ngram_size\": 3, \"length_penalty\": 2, \"temperature\": 0.25, "
        "\"repetition_penalty\": 1.5, \"do_sample\": true, \"renormalize_logits\": true, "
        "\"early_stopping\": \"never\", \"forced_bos_token_id\": 4, \"forced_eos_token_id\": [5], "
        "\"eos_token_id\": [0, 9], \"bad_words_ids\": [[8], [11]], \"decoder_start_token_id\": 6}");
    (void)state;
    assert_true(c.max_new_tokens == 7 && c.max_length == 512);
    assert_true(c.min_new_tokens == 1 && c.min_length == 2 && c.start == 6);
    assert_true(c.num_beams == 6 && c.num_return_sequences == 3 && c.top_k == 40);
    assert_true(c.top_p == 0.5 && c.no_repeat_ngram_size == 3 && c.length_penalty == 2);
    assert_true(c.temperature == 0.25 && c.repetition_penalty == 1.5 && c.do_sample);
    assert_true(c.renormalize_logits && c.early_stopping == QKVI_STOP_NEVER);
    assert_true(c.forced_first == 4 && c.n_forced_last == 1 && c.forced_last[0] == 5);
    assert_true(c.n_ends == 2 && c.ends[0] == 0 && c.ends[1] == 9);
    assert_true(c.n_bad_words == 2 && c.bad_words[0] == 8 && c.bad_words[1] == 11);
}

static void test_refused(void **state) {
    static const struct {
        const char *json;
        qkv_status status;
        const char *words;
    } cases[] = {
        { "[]", QKV_ERR_FORMAT, "F" },
        { "{\"num_beams\": -1}", QKV_ERR_FORMAT, "num_beams" },
        { "{\"num_beams\": 0}", QKV_ERR_FORMAT, "num_beams = 0" },
        { "{\"num_beams\": 2.5}", QKV_ERR_FORMAT, "num_beams" },
        { "{\"num_beams\": 1, \"num_beams\": 2}", QKV_ERR_FORMAT, "num_beams" },
        { "{\"temperature\": \"hot\"}", QKV_ERR_FORMAT, "temperature" },
        { "{\"temperature\": 0.0}", QKV_ERR_FORMAT, "temperature" },
        { "{\"top_p\": 1.5}", QKV_ERR_FORMAT, "top_p" },
        { "{\"do_sample\": 1}", QKV_ERR_FORMAT, "do_sample" },
        { "{\"early_stopping\": \"always\"}", QKV_ERR_FORMAT, "early_stopping" },
        { "{\"early_stopping\": 3}", QKV_ERR_FORMAT, "early_stopping" },
        { "{\"eos_token_id\": -4}", QKV_ERR_FORMAT, "eos_token_id" },
        { "{\"eos_token_id\": [1, \"a\"]}", QKV_ERR_FORMAT, "eos_token_id" },
        { "{\"pad_token_id\": 100}", QKV_ERR_SHAPE, "pad_token_id = 100" },
        { "{\"bad_words_ids\": 4}", QKV_ERR_FORMAT, "bad_words_ids" },
        { "{\"bad_words_ids\": [4]}", QKV_ERR_FORMAT, "bad_words_ids" },
        { "{\"bad_words_ids\": [[]]}", QKV_ERR_FORMAT, "bad_words_ids" },
        { "{\"bad_words_ids\": [[1.5]]}", QKV_ERR_FORMAT, "bad_words_ids" },
        { "{\"bad_words_ids\": [[100]]}", QKV_ERR_SHAPE, "bad_words_ids" },
        { "{\"bad_words_ids\": [[1, 2]]}", QKV_ERR_UNSUPPORTED, "bad_words_ids" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkvi_generation_config config;
        qkv_error error = { 0 };
        const qkv_status status = qkvi_generation_config_parse(
            "F", cases[i].json, strlen(cases[i].json), &info, &config, &error);
        if (status != cases[i].status || !strstr(error.message, cases[i].words))
            fail_msg("%s: %d, %s", cases[i].json, status, error.message);
    }
}

static void test_unsupported(void **state) {
    (void)state;
    assert_string_equal(parse("{\"num_beam_groups\": 2}").unsupported, "num_beam_groups");
    assert_string_equal(parse("{\"typical_p\": 0.5}").unsupported, "typical_p");
    assert_string_equal(parse("{\"suppress_tokens\": [1]}").unsupported, "suppress_tokens");
    assert_string_equal(parse("{\"stop_strings\": \"a\"}").unsupported, "stop_strings");
    assert_string_equal(parse("{\"watermarking_config\": {\"a\": 1}}").unsupported,
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
        cmocka_unit_test(test_defaults), cmocka_unit_test(test_fields),
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_unsupported),
        cmocka_unit_test(test_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
