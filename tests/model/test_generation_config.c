/*
 * generation_config.json: what is named because it is not implemented, for which search; what
 * generation takes of it; and that a file that says what cannot be stops nothing but generation.
 * What is read: tests/model/test_store_decoder.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "files/file.h"
#include "limits/temporary.h"
#include "model/config/generation_config.h"
#include "model/model_impl.h"
#include "qkv/generate.h"

#define GOLDEN QKV_TEST_DATA "/golden/decoder"

static const qkv_model_info info = {
    .target_vocab_size = 100, .bos_id = 1, .pad_id = 3, .eos_id = 2, .start_id = -1
};

/* ---- Fields that are not implemented --------------------------------------------------------- */

/* The field that is named for greedy search, for drawing, and for beams; "" for none. */
static void expect_named(const char *json, const char *greedy, const char *drawing,
                         const char *beams) {
    const char *const wanted[] = { greedy, drawing, beams };
    qkvi_generation_config c;
    qkv_error error = { 0 };
    if (qkvi_generation_config_parse("F", json, strlen(json), &info, &c, &error) != QKV_OK)
        fail_msg("%s: %s", json, error.message);
    for (int search = 0; search < 3; search++) {
        const char *const got = qkvi_generation_unsupported(&c, search == 1, search == 2 ? 3 : 1);
        if (strcmp(got ? got : "", wanted[search]) != 0)
            fail_msg("%s: search %d: %s", json, search, got ? got : "nothing");
    }
}

static void test_unsupported(void **state) {
    (void)state;
    static const char *const harmless[] = {
        ("{\"top_k\": null, \"typical_p\": 1.0, \"num_beam_groups\": 1, \"suppress_tokens\": [], "
         "\"guidance_scale\": null}"),
        "{\"diversity_penalty\": 0.5}", /* of groups, of which there is one */
        "{\"low_memory\": true, \"use_cache\": false, \"output_scores\": true}",
        "{\"forced_decoder_ids\": [[1, 2]]}", /* none of these models reads it */
        "{\"prompt_lookup_num_tokens\": 3, \"num_assistant_tokens\": 5}",
        "{\"remove_invalid_values\": true, \"unknown\": [1]}",
        "{\"epsilon_cutoff\": 0.0, \"eta_cutoff\": 1, \"typical_p\": 2}",
        "{\"encoder_no_repeat_ngram_size\": -1, \"encoder_repetition_penalty\": 1}",
        "{\"cache_implementation\": \"dynamic\", \"is_assistant\": false}",
        "{\"penalty_alpha\": 0.0, \"stop_strings\": []}",
    };
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        expect_named(harmless[i], "", "", "");
    static const char *const always[][2] = {
        { "begin_suppress_tokens", "[1]" },
        { "constraints", "[]" },
        { "encoder_no_repeat_ngram_size", "2" },
        { "encoder_repetition_penalty", "0.5" },
        { "exponential_decay_length_penalty", "[3,1.1]" },
        { "force_words_ids", "[[3]]" },
        { "guidance_scale", "0" },
        { "is_assistant", "true" },
        { "max_time", "0" },
        { "sequence_bias", "[[[1],-2.0]]" },
        { "stop_strings", "\"a\"" },
        { "suppress_tokens", "[1]" },
        { "token_healing", "true" },
        { "watermarking_config", "{}" },
        { "cache_implementation", "\"quantized\"" },
    };
    char json[200];
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) {
        const char *const name = always[i][0];
        snprintf(json, sizeof json, "{\"%s\": %s}", name, always[i][1]);
        expect_named(json, name, name, name);
    }
    expect_named("{\"typical_p\": 0.5}", "", "typical_p", "");
    expect_named("{\"epsilon_cutoff\": 0.1}", "", "epsilon_cutoff", "");
    expect_named("{\"eta_cutoff\": 0.1}", "", "eta_cutoff", "");
    expect_named("{\"top_h\": 0.5}", "", "top_h", "");
    expect_named("{\"num_beam_groups\": 3}", "", "", "num_beam_groups");
    expect_named("{\"dola_layers\": \"high\"}", "dola_layers", "dola_layers", "");
    expect_named("{\"penalty_alpha\": 0.6}", "penalty_alpha", "", "");
    expect_named("{\"penalty_alpha\": 0.6, \"top_k\": 1}", "", "", "");
}

/* ---- What generation takes ------------------------------------------------------------------- */

static void test_models(void **state) {
    qkv_model *model;
    qkv_error error;
    qkv_generate_options options = qkv_generate_options_init();
    (void)state;
    assert_int_equal(qkv_model_open(GOLDEN "/bart_2", NULL, &model, &error), QKV_OK);
    assert_int_equal(qkv_generate_options_read(model, &options, &error), QKV_OK);
    assert_true(options.n_beams == 4 && options.max_length == 40 && options.forced_eos == 2);
    assert_true(options.forced_bos == 0 && options.struct_size == sizeof options);
    assert_int_equal(qkv_generate_options_read(NULL, &options, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_generate_options_read(model, NULL, &error), QKV_ERR_ARGUMENT);
    options.struct_size = 3;
    assert_int_equal(qkv_generate_options_read(model, &options, &error), QKV_ERR_ARGUMENT);
    qkv_model_free(model);
}

/* An older struct, which ends before top_k: what it has is written, what lies behind it is not. */
static void test_an_older_struct(void **state) {
    const size_t bytes = offsetof(qkv_generate_options, top_k);
    qkv_model *model;
    qkv_error error;
    qkv_generate_options options = qkv_generate_options_init();
    unsigned char *const behind = (unsigned char *)&options + bytes;
    (void)state;
    assert_int_equal(qkv_model_open(GOLDEN "/bart_2", NULL, &model, &error), QKV_OK);
    memset(behind, 0xa5, sizeof options - bytes);
    options.struct_size = bytes;
    if (qkv_generate_options_read(model, &options, &error) != QKV_OK) fail_msg("%s", error.message);
    assert_true(options.n_beams == 4 && options.max_length == 40 && options.temperature == 1);
    assert_int_equal(options.struct_size, bytes);
    for (size_t i = 0; i < sizeof options - bytes; i++) assert_int_equal(behind[i], 0xa5);
    qkv_model_free(model);
}

/* A larger one: bytes that we do not know become 0, and may be nothing else before. */
static void test_a_newer_struct(void **state) {
    struct {
        qkv_generate_options known;
        char more[16];
    } options = { .known = qkv_generate_options_init() };
    qkv_model *model;
    qkv_error error;
    (void)state;
    assert_int_equal(qkv_model_open(GOLDEN "/bart_2", NULL, &model, &error), QKV_OK);
    options.known.struct_size = sizeof options.known + 8;
    options.more[8] = 1; /* the caller's own */
    assert_int_equal(qkv_generate_options_read(model, &options.known, &error), QKV_OK);
    assert_true(options.known.n_beams == 4 && options.more[8] == 1);
    options.more[7] = 1;
    assert_int_equal(qkv_generate_options_read(model, &options.known, &error), QKV_ERR_VERSION);
    qkv_model_free(model);
}

/* A folder of links to gpt2_2 of the goldens, but for generation_config.json, which is json. */
static void make_folder(const char *folder, const char *json) {
    static const char *const names[] = { "config.json", "model.safetensors", "vocab.txt" };
    char path[300], to[512];
    for (size_t f = 0; f < sizeof names / sizeof *names; f++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[f]);
        snprintf(to, sizeof to, GOLDEN "/gpt2_2/%s", names[f]);
        unlink(path);
        assert_int_equal(symlink(to, path), 0);
    }
    snprintf(path, sizeof path, "%s/generation_config.json", folder);
    FILE *const out = fopen(path, "wb");
    assert_non_null(out);
    fputs(json, out);
    fclose(out);
}

static void remove_folder(const char *folder) {
    static const char *const names[] = { "config.json", "model.safetensors", "vocab.txt",
                                         "generation_config.json" };
    char path[300];
    for (size_t f = 0; f < sizeof names / sizeof *names; f++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[f]);
        unlink(path);
    }
    assert_int_equal(rmdir(folder), 0);
}

/* What options_of says about a file, for a caller who draws or not. says NULL: it takes it. */
static void expect_options(const char *folder, const char *json, int samples, qkv_status status,
                           const char *says, qkv_generate_options *options) {
    qkv_model *model;
    qkv_error error = { QKV_OK, "" };
    make_folder(folder, json);
    *options = (qkv_generate_options)qkv_generate_options_init();
    options->sample = samples;
    if (qkv_model_open(folder, NULL, &model, &error) != QKV_OK)
        fail_msg("%s: %s", json, error.message);
    const qkv_status got = qkv_generate_options_read(model, options, &error);
    if (got != status || (says && !strstr(error.message, says)))
        fail_msg("%s: %s \"%s\"", json, qkv_status_name(got), error.message);
    options->forced_ends = NULL; /* the model's */
    qkv_model_free(model);
}

static void test_options(void **state) {
    char folder[TEMPORARY_PATH];
    qkv_generate_options o;
    (void)state;
    assert_non_null(mkdtemp(temporary("qkv-generation", folder)));
    expect_options(folder, "{\"temperature\": 0.0}", 0, QKV_OK, NULL, &o);
    assert_true(o.temperature == 1 && !o.sample);
    expect_options(folder, "{\"temperature\": 0.0}", 1, QKV_ERR_FORMAT,
                   "generation_config.json: temperature = 0 is not between 1e-06 and 1e+06", &o);
    expect_options(folder, "{\"temperature\": 0, \"do_sample\": true}", 0, QKV_ERR_FORMAT,
                   "temperature = 0", &o);
    expect_options(folder, "{\"top_p\": 0, \"top_k\": 0, \"min_p\": 0.25, \"do_sample\": true}", 0,
                   QKV_OK, NULL, &o);
    assert_true(o.sample && o.top_p == 0 && o.top_k == 0 && o.min_p == 0.25);
    expect_options(folder, "{\"top_k\": -1}", 0, QKV_OK, NULL, &o);
    expect_options(folder, "{\"top_k\": -1}", 1, QKV_ERR_FORMAT, "top_k = -1", &o);
    expect_options(folder, "{\"min_p\": 1.5}", 1, QKV_ERR_FORMAT, "min_p = 1.5", &o);
    expect_options(folder, "{\"typical_p\": 0.5}", 0, QKV_OK, NULL, &o);
    expect_options(folder, "{\"typical_p\": 0.5}", 1, QKV_ERR_UNSUPPORTED,
                   "typical_p is not supported", &o);
    static const char *const no_bools[] = { "0", "0.0", "\"\"", "[]", "{}" };
    for (size_t i = 0; i < sizeof no_bools / sizeof *no_bools; i++) {
        char text[40];
        snprintf(text, sizeof text, "{\"use_cache\": %s}", no_bools[i]);
        expect_options(folder, text, 0, QKV_ERR_UNSUPPORTED, "use_cache is not supported", &o);
    }
    expect_options(folder, "{\"use_cache\": false}", 0, QKV_OK, NULL, &o);
    expect_options(folder, "{\"use_cache\": null}", 0, QKV_OK, NULL, &o);
    expect_options(folder, "{\"length_penalty\": 40.0}", 0, QKV_OK, NULL, &o);
    assert_true(o.length_penalty == 1);
    expect_options(folder, "{\"length_penalty\": 40.0, \"num_beams\": 2}", 0, QKV_ERR_FORMAT,
                   "length_penalty = 40", &o);
    expect_options(folder, "{\"repetition_penalty\": 0}", 0, QKV_ERR_FORMAT,
                   "repetition_penalty = 0", &o);
    expect_options(folder, "{\"forced_eos_token_id\": [6, 9]}", 0, QKV_OK, NULL, &o);
    assert_true(o.forced_eos == -1 && o.n_forced_ends == 2);
    expect_options(folder, "{\"forced_eos_token_id\": [6]}", 0, QKV_OK, NULL, &o);
    assert_true(o.forced_eos == 6 && o.n_forced_ends == 0);
    remove_folder(folder);
}

/* ---- What stops nothing else ----------------------------------------------------------------- */

/* The model opens, runs, and warns; options_of says the same words. */
static void test_problems(void **state) {
    static const struct {
        const char *json;
        qkv_status status;
        const char *says;
    } cases[] = {
        { "{", QKV_ERR_FORMAT, "line 1, column 1" },
        { "[1]", QKV_ERR_FORMAT, "the JSON is not an object" },
        { "{\"early_stopping\": \"maybe\"}", QKV_ERR_FORMAT, "other than \"never\"" },
        { "{\"forced_bos_token_id\": 41}", QKV_ERR_SHAPE, "forced_bos_token_id = 41" },
        { "{\"temperature\": \"hot\"}", QKV_ERR_FORMAT, "temperature is a string" },
        { "{\"num_beams\": 2000}", QKV_ERR_LIMIT, "num_beams = 2000" },
    };
    char folder[TEMPORARY_PATH];
    const int32_t ids[] = { 5, 9 };
    const qkv_encoding text = { .n = 2, .ids = (int32_t *)(uintptr_t)ids }, *const texts[] = {
        &text
    };
    qkv_ctx *ctx;
    (void)state;
    assert_non_null(mkdtemp(temporary("qkv-generation", folder)));
    assert_int_equal(qkv_ctx_create(NULL, &ctx, NULL), QKV_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkv_generate_options options;
        qkv_model *model;
        qkv_run *run;
        expect_options(folder, cases[i].json, 0, cases[i].status, cases[i].says, &options);
        assert_int_equal(qkv_model_open(folder, NULL, &model, NULL), QKV_OK);
        assert_non_null(strstr(qkv_model_warning(model, 0), cases[i].says));
        assert_int_equal(qkv_model_run(ctx, model, 1, texts, 0, NULL, &run, NULL), QKV_OK);
        qkv_run_free(run);
        qkv_model_free(model);
    }
    qkv_ctx_free(ctx);
    remove_folder(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unsupported),     cmocka_unit_test(test_models),
        cmocka_unit_test(test_an_older_struct), cmocka_unit_test(test_a_newer_struct),
        cmocka_unit_test(test_options),         cmocka_unit_test(test_problems),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
