/* generation_config.json: what is read, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/generate/generate_config.h"

static qkv_generate_options *parse(const char *json) {
    qkv_generate_options *options;
    qkv_error error = { 0 };
    if (qkvi_generate_config_parse("F", json, strlen(json), &options, &error) != QKV_OK)
        fail_msg("%s: %s", json, error.message);
    return options;
}

static void test_defaults(void **state) {
    qkv_generate_options *const o =
        parse("{\"transformers_version\": \"5\", \"pad_token_id\": 3, \"top_k\": null, "
              "\"typical_p\": 1.0, \"num_beam_groups\": 1, \"suppress_tokens\": []}");
    (void)state;
    assert_true(o->struct_size == sizeof *o && o->max_new == 0 && o->max_length == 0);
    assert_true(o->n_beams == 1 && o->n_return == 1 && o->length_penalty == 1);
    assert_true(!o->sample && o->temperature == 1 && o->top_k == 0 && o->top_p == 1);
    assert_true(o->repetition_penalty == 1 && o->no_repeat_ngram == 0 && !o->renormalize);
    assert_true(o->forced_bos == -1 && o->forced_eos == -1 && !o->eos && !o->no_eos && !o->stop);
    assert_true(!o->bad_words && !o->bad_word_lengths && o->n_bad_words == 0);
    qkv_generate_config_free(o);
    qkv_generate_config_free(NULL);
}

static void test_fields(void **state) {
    qkv_generate_options *const o = parse(
        "{\"max_new_tokens\": 7, \"max_length\": 512, \"min_new_tokens\": 1, \"min_length\": 2, "
        "\"num_beams\": 6, \"num_return_sequences\": 3, \"top_k\": 40, \"top_p\": 0.5, "
        "\"no_repeat_ngram_size\": 3, \"length_penalty\": 2, \"temperature\": 0.25, "
        "\"repetition_penalty\": 1.5, \"do_sample\": true, \"renormalize_logits\": true, "
        "\"early_stopping\": \"never\", \"forced_bos_token_id\": 4, \"forced_eos_token_id\": [5], "
        "\"eos_token_id\": [0, 9], \"bad_words_ids\": [[8], [1, 2, 3]]}");
    (void)state;
    assert_true(o->max_new == 7 && o->max_length == 512 && o->min_new == 1 && o->min_length == 2);
    assert_true(o->n_beams == 6 && o->n_return == 3 && o->top_k == 40 && o->top_p == 0.5);
    assert_true(o->no_repeat_ngram == 3 && o->length_penalty == 2 && o->temperature == 0.25);
    assert_true(o->repetition_penalty == 1.5 && o->sample && o->renormalize);
    assert_true(o->early_stopping == QKV_EARLY_NEVER && o->forced_bos == 4 && o->forced_eos == 5);
    assert_true(o->n_eos == 2 && o->eos[0] == 0 && o->eos[1] == 9);
    assert_true(o->n_bad_words == 2 && o->bad_word_lengths[0] == 1 && o->bad_word_lengths[1] == 3);
    assert_true(o->bad_words[0] == 8 && o->bad_words[1] == 1 && o->bad_words[3] == 3);
    qkv_generate_config_free(o);
    qkv_generate_options *const one = parse("{\"eos_token_id\": 6, \"early_stopping\": true}");
    assert_true(one->n_eos == 1 && one->eos[0] == 6 && one->early_stopping == QKV_EARLY_ALWAYS);
    qkv_generate_config_free(one);
}

static void test_refused(void **state) {
    static const struct {
        const char *json;
        qkv_status status;
        const char *words;
    } cases[] = {
        { "[]", QKV_ERR_FORMAT, "F" },
        { "{\"num_beams\": -1}", QKV_ERR_FORMAT, "num_beams" },
        { "{\"num_beams\": 2.5}", QKV_ERR_FORMAT, "num_beams" },
        { "{\"num_beams\": 1, \"num_beams\": 2}", QKV_ERR_FORMAT, "num_beams" },
        { "{\"temperature\": \"hot\"}", QKV_ERR_FORMAT, "temperature" },
        { "{\"do_sample\": 1}", QKV_ERR_FORMAT, "do_sample" },
        { "{\"early_stopping\": \"always\"}", QKV_ERR_FORMAT, "F: early_stopping is none of" },
        { "{\"early_stopping\": 3}", QKV_ERR_FORMAT, "early_stopping" },
        { "{\"eos_token_id\": -4}", QKV_ERR_FORMAT, "F: eos_token_id has an entry that is no id" },
        { "{\"eos_token_id\": [1, \"a\"]}", QKV_ERR_FORMAT, "eos_token_id" },
        { "{\"eos_token_id\": 99999999999}", QKV_ERR_FORMAT, "eos_token_id" },
        { "{\"bad_words_ids\": 4}", QKV_ERR_FORMAT, "bad_words_ids" },
        { "{\"bad_words_ids\": [4]}", QKV_ERR_FORMAT, "bad_words_ids has an entry" },
        { "{\"bad_words_ids\": [[]]}", QKV_ERR_FORMAT, "bad_words_ids has an entry" },
        { "{\"bad_words_ids\": [[1.5]]}", QKV_ERR_FORMAT, "bad_words_ids" },
        { "{\"forced_eos_token_id\": [1, 2]}", QKV_ERR_UNSUPPORTED, "with several ids" },
        { "{\"forced_bos_token_id\": []}", QKV_ERR_UNSUPPORTED, "forced_bos_token_id" },
        { "{\"num_beam_groups\": 2}", QKV_ERR_UNSUPPORTED, "F: num_beam_groups is not supported" },
        { "{\"typical_p\": 0.5}", QKV_ERR_UNSUPPORTED, "typical_p" },
        { "{\"suppress_tokens\": [1]}", QKV_ERR_UNSUPPORTED, "suppress_tokens" },
        { "{\"stop_strings\": \"a\"}", QKV_ERR_UNSUPPORTED, "stop_strings" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkv_generate_options *options;
        qkv_error error = { 0 };
        const qkv_status status =
            qkvi_generate_config_parse("F", cases[i].json, strlen(cases[i].json), &options, &error);
        if (status != cases[i].status || !strstr(error.message, cases[i].words) || options)
            fail_msg("%s: %d, %s", cases[i].json, status, error.message);
    }
}

static void test_folders(void **state) {
    qkv_generate_options *options;
    qkv_error error;
    (void)state;
    assert_int_equal(qkv_generate_config_read(QKV_TEST_DATA "/golden/bert_new", &options, &error),
                     QKV_OK); /* config.json alone */
    assert_int_equal(options->n_beams, 1);
    qkv_generate_config_free(options);
    assert_int_equal(qkv_generate_config_read("/nowhere", &options, &error), QKV_ERR_IO);
    assert_null(options);
    assert_int_equal(qkv_generate_config_read(NULL, &options, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_generate_config_read("a", NULL, &error), QKV_ERR_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
