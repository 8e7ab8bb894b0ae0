/*
 * config.json, and finding models: fields that are used, and every way in which a folder, a file or
 * a cached name can be wrong. Refusals of config.json are in
 * test_model_files_hostile.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "files/file.h"
#include "files/hub.h"
#include "limits/temporary.h"
#include "model/arch/family.h"
#include "model/config/config.h"

/* ---- config.json ----------------------------------------------------------------------------- */

#define SIZES                                                                                      \
    "\"hidden_size\":8,\"num_hidden_layers\":2,\"num_attention_heads\":2,"                         \
    "\"intermediate_size\":16,\"vocab_size\":30,\"max_position_embeddings\":12"
#define CONFIG(more) "{\"model_type\":\"bert\"," SIZES more "}"
static void test_config_fields(void **state) {
    (void)state;
    static const char text[] = CONFIG(",\"layer_norm_eps\":1e-5,\"type_vocab_size\":3");
    qkv_model_info info;
    qkv_error error;
    assert_int_equal(qkvi_config_read("c", text, sizeof text - 1, &info, &error), QKV_OK);
    assert_int_equal(info.hidden, 8);
    assert_int_equal(info.n_layers, 2);
    assert_int_equal(info.n_heads, 2);
    assert_int_equal(info.head_dim, 4);
    assert_int_equal(info.intermediate, 16);
    assert_int_equal(info.vocab_size, 30);
    assert_int_equal(info.max_len, 12);
    assert_int_equal(info.n_types, 3);
    assert_true(info.layer_norm_eps == 1e-5);
}

static void read_config(const char *text, qkv_model_info *info) {
    qkv_error error;
    if (qkvi_config_read("c", text, strlen(text), info, &error) != QKV_OK)
        fail_msg("%s", error.message);
}

static void expect_refusal(const char *text, qkv_status status, const char *says) {
    qkv_model_info info;
    qkv_error error = { QKV_OK, "" };
    const qkv_status got = qkvi_config_read("c", text, strlen(text), &info, &error);
    if (got != status || strcmp(error.message, says) != 0)
        fail_msg("%s: %s \"%s\", expected %s \"%s\"", text, qkv_status_name(got), error.message,
                 qkv_status_name(status), says);
}

#define DISTIL                                                                                     \
    "\"dim\":8,\"n_layers\":2,\"n_heads\":2,\"hidden_dim\":16,\"vocab_size\":30,"                  \
    "\"max_position_embeddings\":12"
/* The same sizes under the names of each family, and what is special to it. */
static void test_config_of_the_family(void **state) {
    (void)state;
    qkv_model_info info;
    read_config("{\"model_type\":\"distilbert\"," DISTIL "}", &info);
    assert_string_equal(info.architecture, "distilbert");
    assert_int_equal(info.hidden, 8);
    assert_int_equal(info.head_dim, 4);
    assert_int_equal(info.intermediate, 16);
    assert_int_equal(info.n_types, 0);
    assert_true(info.layer_norm_eps == 1e-12);
    read_config("{\"model_type\":\"roberta\"," SIZES ",\"type_vocab_size\":1}", &info);
    assert_string_equal(info.architecture, "roberta");
    assert_int_equal(info.max_len, 10);
    assert_int_equal(info.first_position, 2);
    read_config("{\"model_type\":\"roberta\"," SIZES ",\"pad_token_id\":10}", &info);
    assert_int_equal(info.max_len, 1);
    read_config("{\"model_type\":\"xlm-roberta\"," SIZES ",\"pad_token_id\":3}", &info);
    assert_string_equal(info.architecture, "xlm-roberta");
    assert_int_equal(info.first_position, 4);
    assert_int_equal(info.max_len, 8);
    assert_int_equal(info.n_types, 2);
    read_config("{\"model_type\":\"electra\"," SIZES ",\"embedding_size\":5}", &info);
    assert_string_equal(info.architecture, "electra");
    assert_int_equal(info.embedding_size, 5);
    assert_int_equal(info.hidden, 8);
    read_config("{\"model_type\":\"electra\"," SIZES "}", &info);
    assert_int_equal(info.embedding_size, 128);

    expect_refusal("{\"model_type\":\"roberta\"," SIZES ",\"pad_token_id\":11}", QKV_ERR_SHAPE,
                   "c: max_position_embeddings = 12 leaves no position after pad_token_id = 11");
    expect_refusal("{\"model_type\":\"xlm-roberta\"," SIZES ",\"is_decoder\":true}",
                   QKV_ERR_UNSUPPORTED, "c: is_decoder 'true' is not supported");
    expect_refusal("{\"model_type\":\"electra\"," SIZES ",\"embedding_size\":0}", QKV_ERR_SHAPE,
                   "c: embedding_size = 0 is less than 1");
    expect_refusal("{\"model_type\":\"distilbert\"," DISTIL ",\"activation\":\"mish\"}",
                   QKV_ERR_UNSUPPORTED, "c: activation 'mish' is not supported");
    expect_refusal("{\"model_type\":\"roberta\"," SIZES ",\"sinusoidal_positions\":true}",
                   QKV_ERR_UNSUPPORTED, "c: sinusoidal_positions 'true' is not supported");
}

/* transformers takes these for every model, and computes something else. */
static void test_fields_of_all_models(void **state) {
    static const struct {
        const char *text, *says;
    } refused[] = {
        { CONFIG(",\"quantization_config\":{\"quant_method\":\"fp8\"}"),
          "c: quantization_config is not supported" },
        { CONFIG(",\"transformers_weights\":\"x.safetensors\""),
          "c: transformers_weights is not supported" },
        { CONFIG(",\"per_layer_config\":{\"0\":{}}"), "c: per_layer_config is not supported" },
        { "{\"model_type\":\"gpt2\",\"sliding_window\":3}", "c: sliding_window is not supported" },
        { "{\"model_type\":\"bart\",\"attention_chunk_size\":3}",
          "c: attention_chunk_size is not supported" },
        { "{\"model_type\":\"gpt2\",\"is_causal\":false}",
          "c: is_causal that is not true is not supported" },
        { "{\"model_type\":\"marian\",\"is_causal\":null}",
          "c: is_causal that is not true is not supported" },
    };
    qkv_model_info info;
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        expect_refusal(refused[i].text, QKV_ERR_UNSUPPORTED, refused[i].says);
    read_config(CONFIG(",\"quantization_config\":null,\"transformers_weights\":null,"
                       "\"sliding_window\":3,\"is_causal\":false"),
                &info);
    read_config("{\"model_type\":\"gpt2\",\"sliding_window\":null,\"is_causal\":true}", &info);
}

static void test_ties(void **state) {
    (void)state;
    qkv_model_info info;
    static const struct {
        const char *text;
        int untied;
    } cases[] = {
        { CONFIG(""), 0 },
        { CONFIG(",\"tie_word_embeddings\":true"), 0 },
        { CONFIG(",\"tie_word_embeddings\":null"), 0 },
        { CONFIG(",\"tie_word_embeddings\":false"), QKV_UNTIED_HEAD },
        { "{\"model_type\":\"distilbert\"," DISTIL ",\"tie_weights_\":false}",
          0 }, /* means nothing */
        { "{\"model_type\":\"gpt2\",\"tie_word_embeddings\":false}", QKV_UNTIED_HEAD },
        { "{\"model_type\":\"bart\",\"tie_word_embeddings\":false}",
          QKV_UNTIED_HEAD | QKV_UNTIED_ENCODER | QKV_UNTIED_DECODER },
        { "{\"model_type\":\"marian\",\"tie_word_embeddings\":false,"
          "\"share_encoder_decoder_embeddings\":false}",
          QKV_UNTIED_HEAD },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        read_config(cases[i].text, &info);
        if (info.untied != cases[i].untied) fail_msg("%s: %d", cases[i].text, info.untied);
    }
    expect_refusal(CONFIG(",\"tie_word_embeddings\":0"), QKV_ERR_FORMAT,
                   "c: tie_word_embeddings is an integer, must be true or false");
}

static void test_activations(void **state) {
    (void)state;
    static const char *const names[][2] = {
        { "gelu", "gelu" },           { "gelu_python", "gelu" },
        { "gelu_new", "gelu_tanh" },  { "gelu_pytorch_tanh", "gelu_tanh" },
        { "gelu_fast", "gelu_tanh" }, { "gelu_accurate", "gelu_tanh" },
        { "relu", "relu" },           { "silu", "silu" },
        { "swish", "silu" },          { "quick_gelu", "quick_gelu" },
        { "tanh", "tanh" },
    };
    qkv_model_info info;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[300];
        snprintf(text, sizeof text, CONFIG(",\"hidden_act\":\"%s\""), names[i][0]);
        read_config(text, &info);
        assert_string_equal(info.activation, names[i][1]);
    }
    expect_refusal(CONFIG(",\"hidden_act\":\"gelu_10\""), QKV_ERR_UNSUPPORTED,
                   "c: hidden_act 'gelu_10' is not supported");
}

/* As in transformers 5 they go before the model's own, before and after them. */
static void test_general_names_of_sizes(void **state) {
    (void)state;
    qkv_model_info info;
    read_config("{\"model_type\":\"gpt2\",\"n_head\":3,\"hidden_size\":48,\"n_embd\":768,"
                "\"num_attention_heads\":4,\"num_hidden_layers\":5,\"max_position_embeddings\":60}",
                &info);
    assert_int_equal(info.hidden, 48);
    assert_int_equal(info.n_heads, 4);
    assert_int_equal(info.n_layers, 5);
    assert_int_equal(info.max_len, 60);
    read_config("{\"model_type\":\"distilbert\",\"hidden_size\":6,\"num_hidden_layers\":1,"
                "\"num_attention_heads\":3," DISTIL "}",
                &info);
    assert_int_equal(info.hidden, 6);
    assert_int_equal(info.n_layers, 1);
    assert_int_equal(info.n_heads, 3);
    read_config("{\"model_type\":\"bart\",\"encoder_layers\":12,\"num_hidden_layers\":6,"
                "\"hidden_size\":32,\"num_attention_heads\":8,\"decoder_layers\":3}",
                &info);
    assert_int_equal(info.n_layers, 6);
    assert_int_equal(info.n_decoder_layers, 3);
    assert_int_equal(info.hidden, 32);
    assert_int_equal(info.n_heads, 8);
    assert_int_equal(info.n_decoder_heads, 16);
    read_config("{\"model_type\":\"gpt2\",\"n_head\":3,\"num_attention_heads\":null}", &info);
    assert_int_equal(info.n_heads, 3);
}

static void test_unknown_types(void **state) {
    (void)state;
#define LOADS                                                                                      \
    "is not supported; qkv loads \"bert\", \"distilbert\", \"roberta\", \"xlm-roberta\", "         \
    "\"electra\", \"gpt2\", \"gptj\", \"bloom\", \"opt\", \"bart\", \"marian\", \"t5\", "          \
    "\"mt5\", \"llama\", \"mistral\", \"qwen2\", \"qwen3\", \"gemma\", \"gemma2\", "               \
    "\"gemma3_text\", \"smollm3\", "                                                               \
    "\"olmo2\", \"phi3\", \"gpt_neox\", \"modernbert\", \"vit\", \"deit\", \"dinov2\", "           \
    "\"dinov2_with_registers\", \"dinov3_vit\", \"siglip\", "                                      \
    "\"siglip_text_model\", \"siglip_vision_model\", \"clip\", "                                   \
    "\"clip_text_model\" and \"clip_vision_model\""
    expect_refusal("{\"model_type\":\"mbart\"}", QKV_ERR_UNSUPPORTED,
                   "c: model_type 'mbart' " LOADS "; the nearest is \"bart\"");
    expect_refusal("{\"model_type\":\"xlm-roberta-xl\"}", QKV_ERR_UNSUPPORTED,
                   "c: model_type 'xlm-roberta-xl' " LOADS "; the nearest is \"xlm-roberta\"");
    expect_refusal("{\"model_type\":\"mpnet\"}", QKV_ERR_UNSUPPORTED,
                   "c: model_type 'mpnet' " LOADS);
    expect_refusal("{\"model_type\":\"umt5\"}", QKV_ERR_UNSUPPORTED,
                   "c: model_type 'umt5' " LOADS "; the nearest is \"mt5\"");
    expect_refusal("{\"model_type\":\"gemma3\"}", QKV_ERR_UNSUPPORTED,
                   "c: model_type 'gemma3' " LOADS "; the nearest is \"gemma\"");
    expect_refusal("{\"model_type\":\"gpt_oss\"}", QKV_ERR_UNSUPPORTED,
                   "c: model_type 'gpt_oss' " LOADS);
    expect_refusal("{\"model_type\":\"\"}", QKV_ERR_UNSUPPORTED, "c: model_type '' " LOADS);
}

/* Integers beyond 64 bits. */
static void test_wide_integers(void **state) {
    (void)state;
    qkv_model_info info;
    static const char *const unneeded[] = {
        "1000000000000000019884624838656",
        "-1000000000000000019884624838656",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "-9223372036854775809",
        "18446744073709551615",
        "[1,[100000000000000000000],{\"a\":-99999999999999999999}]",
        "0.10000000000000000000000000001",
        "1e-20000",
        "\"100000000000000000000\"",
    };
    char text[1000];
    for (size_t i = 0; i < sizeof unneeded / sizeof *unneeded; i++) {
        snprintf(text, sizeof text, CONFIG(",\"nobody_needs\":%s"), unneeded[i]);
        read_config(text, &info);
        assert_int_equal(info.hidden, 8);
    }
    snprintf(text, sizeof text, CONFIG(",\"nobody_needs\":1%0500d"), 0);
    read_config(text, &info);
    expect_refusal("{\"model_type\":\"gpt2\",\"n_layer\":100000000000000000000}", QKV_ERR_FORMAT,
                   "c: n_layer = 1e+20 is not between 0 and 2147483647");
    expect_refusal("{\"model_type\":\"gpt2\",\"x\":[012345678901234567890]}", QKV_ERR_FORMAT,
                   "c: line 1, column 27: invalid token near '0'");
    expect_refusal("{\"model_type\":\"gpt2\",\"x\":123456789012345678901,}", QKV_ERR_FORMAT,
                   "c: line 1, column 48: string or '}' expected near '}'");
}

static void join(char path[300], const char *folder, const char *name) {
    const int n = snprintf(path, 300, "%s/%s", folder, name);
    assert_true(n < 300);
}

/* All fields but the source, in their order; padding between them is not compared. */
static void describe(const qkv_model_info *i, char text[1000]) {
#define L(field) (long long)i->field
    const int n = snprintf(
        text, 1000,
        "%s layers %lld heads %lld hidden %lld head_dim %lld intermediate %lld vocab %lld "
        "max_len %lld types %lld parameters %lld eps %a heads %d%d%d sinusoids %d embedding %lld "
        "first %lld judge %d pooling %d normalizes %d sentence %lld kind %d lm %d "
        "of decoder %lld %lld %lld target %lld separate %d ids %lld %lld %lld %lld act %s "
        "scales %d unscaled %d by layer %d weights %d untied %d",
        i->architecture, L(n_layers), L(n_heads), L(hidden), L(head_dim), L(intermediate),
        L(vocab_size), L(max_len), L(n_types), L(n_parameters), i->layer_norm_eps, i->has_mlm,
        i->has_nsp, i->has_pooler, i->sinusoidal_positions, L(embedding_size), L(first_position),
        i->has_discriminator, (int)i->pooling, i->normalizes, L(sentence_len), (int)i->kind,
        i->has_lm, L(n_decoder_layers), L(n_decoder_heads), L(decoder_intermediate),
        L(target_vocab_size), i->separate_words, L(bos_id), L(eos_id), L(pad_id), L(start_id),
        i->activation, i->scales_words, i->unscaled, i->scales_by_layer, i->weights, i->untied);
#undef L
    assert_true(n < 1000);
}

/* Writes a config and reads it again; what is read is what was written. */
static void round_trip(const char *where, const qkv_model_info *written) {
    qkv_model_info read;
    qkv_error error;
    char path[300], *text;
    size_t n;
    qkvi_files files = { .folder = where };
    assert_int_equal(qkvi_config_write(&files, written, 0, &error), QKV_OK);
    assert_int_equal(qkvi_files_commit(&files, &error), QKV_OK);
    join(path, where, "config.json");
    assert_int_equal(qkvi_file_load(path, 4096, &text, &n, &error), QKV_OK);
    if (qkvi_config_read("c", text, n, &read, &error)) fail_msg("%s", error.message);
    char was[1000], is[1000];
    describe(written, was);
    describe(&read, is);
    assert_string_equal(is, was);
    free(text);
    unlink(path);
    join(path, where, "generation_config.json");
    unlink(path);
}

/* What all have. */
static qkv_model_info info_of(const char *type) {
    return (qkv_model_info){ .architecture = qkvi_family_of(type)->type,
                             .n_layers = 3,
                             .n_heads = 2,
                             .hidden = 10,
                             .embedding_size = 10,
                             .head_dim = 5,
                             .intermediate = 7,
                             .vocab_size = 99,
                             .max_len = 48,
                             .layer_norm_eps = 1e-5,
                             .pooling = QKV_POOLING_MEAN,
                             .sentence_len = 48,
                             .target_vocab_size = 99,
                             .bos_id = -1,
                             .eos_id = -1,
                             .pad_id = -1,
                             .start_id = -1,
                             .activation = "gelu" };
}

static void test_config_round_trip(void **state) {
    qkv_model_info info = info_of("bert");
    info.n_types = 2;
    info.layer_norm_eps = 1e-12;
    info.sinusoidal_positions = 1;
    info.pad_id = 0;
    round_trip(*state, &info);
    info = info_of("gpt2");
    info.kind = QKV_MODEL_DECODER;
    info.has_lm = 1;
    info.activation = "gelu_tanh";
    info.bos_id = info.eos_id = 5;
    round_trip(*state, &info);
    info = info_of("bart");
    info.kind = QKV_MODEL_PAIR;
    info.has_lm = 1;
    info.first_position = 2;
    info.n_decoder_layers = 4;
    info.n_decoder_heads = 5;
    info.decoder_intermediate = 11;
    info.bos_id = 7, info.eos_id = info.start_id = 8, info.pad_id = 9;
    round_trip(*state, &info);
}

/* The row that learns nothing: as transformers 5 gives it to nn.Embedding. */
static void test_padding(void **state) {
    (void)state;
    static const struct {
        const char *type, *field;
        int64_t id;
    } rows[] = { { "bert", "", 0 },
                 { "roberta", "", 1 },
                 { "electra", "", 0 },
                 { "bert", "\"pad_token_id\": 7,", 7 },
                 { "bert", "\"pad_token_id\": null,", -1 },
                 { "bert", "\"pad_token_id\": -1,", 98 },
                 { "bert", "\"pad_token_id\": -99,", 0 },
                 { "bert", "\"pad_token_id\": -100,", -1 },
                 { "bert", "\"pad_token_id\": 98,", 98 },
                 { "bert", "\"pad_token_id\": 99,", -1 },
                 { "bert", "\"pad_token_id\": \"7\",", -1 },
                 { "roberta", "\"pad_token_id\": 3,", 3 },
                 { "bart", "", 1 },
                 { "bart", "\"pad_token_id\": null,", -1 },
                 { "bart", "\"pad_token_id\": -1,", 98 },
                 { "marian", "\"decoder_start_token_id\": 0, \"pad_token_id\": -2,", 97 },
                 { "marian", "\"decoder_start_token_id\": 0,", -1 },
                 { "gpt2", "\"pad_token_id\": -1,", -1 } };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        char text[600];
        qkv_model_info info;
        qkv_error error;
        const int n = snprintf(text, sizeof text,
                               "{\"model_type\": \"%s\", %s \"num_hidden_layers\": 1, "
                               "\"hidden_size\": 8, \"num_attention_heads\": 2, "
                               "\"intermediate_size\": 7, \"vocab_size\": 99, "
                               "\"decoder_attention_heads\": 2, "
                               "\"max_position_embeddings\": 20}",
                               rows[r].type, rows[r].field);
        if (qkvi_config_read("c", text, (size_t)n, &info, &error)) fail_msg("%s", error.message);
        if (info.pad_id != rows[r].id)
            fail_msg("%s with '%s': %lld", rows[r].type, rows[r].field, (long long)info.pad_id);
    }
}

/* ---- Where models are ------------------------------------------------------------------------ */

static void make_file(const char *folder, const char *name, const char *text) {
    char path[300];
    join(path, folder, name);
    FILE *const out = fopen(path, "wb");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static void make_directory(const char *folder, const char *name) {
    char path[300];
    join(path, folder, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static void expect_none(const char *name, qkv_status status, const char *says) {
    char *found, *weights;
    qkv_error error = { QKV_OK, "" };
    const qkv_status got = qkvi_hub_find(name, &found, &weights, &error);
    if (got != status || !strstr(error.message, says))
        fail_msg("%s: %s \"%s\", expected %s \"%s\"", name, qkv_status_name(got), error.message,
                 qkv_status_name(status), says);
    assert_null(found);
    assert_null(weights);
}

static void expect_found(const char *name, const char *folder, const char *weights) {
    char *found, *found_weights, path[300];
    qkv_error error = { QKV_OK, "" };
    if (qkvi_hub_find(name, &found, &found_weights, &error) != QKV_OK)
        fail_msg("%s", error.message);
    assert_string_equal(found, folder);
    join(path, folder, weights);
    assert_string_equal(found_weights, path);
    free(found);
    free(found_weights);
}

static void test_folders_and_files(void **state) {
    char model[300], path[300];
    make_directory(*state, "model");
    join(model, *state, "model");
    expect_none(model, QKV_ERR_IO, "no model.safetensors in this folder");
    make_file(model, "pytorch_model.bin.index.json", "{}");
    expect_none(model, QKV_ERR_UNSUPPORTED, "holds only pytorch_model.bin.index.json, a pickle");
    make_file(model, "pytorch_model.bin", "PK");
    expect_none(model, QKV_ERR_UNSUPPORTED, "python3 tools/bin2safetensors.py");
    make_file(model, "model.safetensors.index.json", "{}");
    expect_found(model, model, "model.safetensors.index.json");
    join(path, model, "model.safetensors.index.json");
    expect_found(path, model, "model.safetensors.index.json");
    make_file(model, "model.safetensors", "");
    expect_found(model, model, "model.safetensors");
    join(path, model, "other.safetensors");
    expect_found(path, model, "other.safetensors");    /* whether it is there, opening says */
    join(path, model, "x-00001-of-00001.safetensors"); /* one of one */
    expect_found(path, model, "x-00001-of-00001.safetensors");
    join(path, model, "x-00001-of-00002.safetensors");
    expect_none(path, QKV_ERR_ARGUMENT, "is one of several files of a model; name their folder");
    expect_none("x-00003-of-00007.safetensors", QKV_ERR_ARGUMENT, "name their folder, ., which");
}

/* What people have in place of safetensors, and what the message says about it. */
static void test_other_formats(void **state) {
    static const struct {
        const char *first, *second; /* files; "/": a folder */
        const char *says;
    } cases[] = {
        { "model-q4.gguf", "config.json",
          "holds only model-q4.gguf, a GGUF file, which may be a model: then name" },
        { "adapter_model.safetensors", "adapter_config.json",
          "holds only adapter_config.json, an adapter (LoRA)" },
        { "adapter_model.safetensors", "README.md",
          "holds only adapter_model.safetensors, an adapter (LoRA)" },
        { "tf_model.h5", "config.json", "holds only tf_model.h5, which is TensorFlow's" },
        { "bert_model.ckpt.index", "bert_config.json",
          "holds only bert_model.ckpt.index, which is" },
        { "saved_model.pb", "variables/", "holds only saved_model.pb, which is TensorFlow's" },
        { "flax_model.msgpack", "config.json", "holds only flax_model.msgpack, which is Flax's" },
        { "model_b.onnx", "model_a.onnx", "holds only model_a.onnx, which is ONNX" },
        { "onnx/", "config.json", "holds only onnx, which is ONNX" },
        { "0_Transformer/", "modules.json", "holds only 0_Transformer, where older versions of" },
        { "0_BERT/", "1_Pooling/", "SentenceTransformer(\"" },
        { "weights.safetensors", "config.json", "holds only weights.safetensors, which may be" },
        { "pytorch_model.bin", "tf_model.h5", "holds only pytorch_model.bin, a pickle" },
        { "a\nb.gguf", "config.json", "holds only a\\x0ab.gguf" },
    };
    char other[300], path[300];
    make_directory(*state, "other");
    join(other, *state, "other");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const names[] = { cases[i].first, cases[i].second };
        for (int n = 0; n < 2; n++) {
            if (names[n][strlen(names[n]) - 1] == '/')
                make_directory(other, names[n]);
            else
                make_file(other, names[n], "");
        }
        expect_none(other, QKV_ERR_UNSUPPORTED, cases[i].says);
        for (int n = 0; n < 2; n++) {
            join(path, other, names[n]);
            remove(path);
        }
    }
    make_file(other, "README.md", "");
    expect_none(other, QKV_ERR_IO, "no model.safetensors in this folder");
    join(path, other, "README.md");
    remove(path);
    rmdir(other);
}

#define COMMIT "0123456789abcdef0123456789abcdef01234567"

static void test_cache(void **state) {
    char cache[300], repository[300], path[300];
    make_directory(*state, "cache");
    join(cache, *state, "cache");
    setenv("HF_HUB_CACHE", cache, 1);
    expect_none("org/name", QKV_ERR_IO, "to download it: hf download org/name");
    expect_none("../name", QKV_ERR_IO, "'../name': no such file or folder");
    expect_none("/org/name", QKV_ERR_IO, "'/org/name': no such file or folder");
    expect_none("a/b/c", QKV_ERR_IO, "'a/b/c': no such file or folder");
    expect_none("a/..", QKV_ERR_IO, "'a/..': no such file or folder");
    expect_none("a\nb", QKV_ERR_IO, "'a\\x0ab': no such file or folder");
    expect_none("", QKV_ERR_IO, "'': no such file or folder");
    /* What is no repository by its name is not to be downloaded. */
    expect_none(
        "bert", QKV_ERR_IO,
        "'bert': no such file or folder, and no model of that name in the Hugging Face cache");
    make_directory(".", "unit_store_config_owner");
    expect_none("unit_store_config_owner/name", QKV_ERR_IO,
                "_owner/name': no such file or folder, and no model of that name in the Hugging");
    rmdir("unit_store_config_owner");
    expect_none("unit_store_config_owner/name", QKV_ERR_IO, "to download it: hf download unit_");
    make_file(cache, "plain", "");
    join(path, cache, "plain");
    expect_none(path, QKV_ERR_IO, "plain' is no folder and no .safetensors or .gguf file");
    remove(path);
    make_directory(cache, "models--org--name");
    join(repository, cache, "models--org--name");
    expect_none("org/name", QKV_ERR_IO, "refs/main: cannot open");
    make_directory(repository, "refs");
    make_file(repository, "refs/main", "../../../../etc");
    expect_none("org/name", QKV_ERR_FORMAT, "is not 40 hexadecimal digits");
    make_file(repository, "refs/main", COMMIT COMMIT);
    expect_none("org/name", QKV_ERR_LIMIT, "80 bytes, the limit is 64");
    make_file(repository, "refs/main", COMMIT);
    expect_none("org/name", QKV_ERR_IO, "no model.safetensors in this folder");
    make_directory(repository, "snapshots");
    make_directory(repository, "snapshots/" COMMIT);
    make_file(repository, "snapshots/" COMMIT "/model.safetensors.index.json", "");
    join(path, repository, "snapshots/" COMMIT);
    expect_found("org/name", path, "model.safetensors.index.json");
    make_file(repository, "snapshots/" COMMIT "/model.safetensors", "");
    expect_found("org/name", path, "model.safetensors");
    unsetenv("HF_HUB_CACHE");
    setenv("HF_HOME", *state, 1);
    join(path, *state, "hub");
    assert_int_equal(rename(cache, path), 0);
    join(path, *state, "hub/models--org--name/snapshots/" COMMIT);
    expect_found("org/name", path, "model.safetensors");
    unsetenv("HF_HOME");
}

static char folder[TEMPORARY_PATH];

static int make_folder(void **state) {
    *state = mkdtemp(temporary("qkv-config", folder));
    return *state ? 0 : -1;
}

static int remove_folder(void **state) {
    static const char *const names[] = {
        ("hub/models--org--name/snapshots/" COMMIT "/model.safetensors"),
        ("hub/models--org--name/snapshots/" COMMIT "/model.safetensors.index.json"),
        ("hub/models--org--name/snapshots/" COMMIT),
        "hub/models--org--name/snapshots",
        "hub/models--org--name/refs/main",
        "hub/models--org--name/refs",
        "hub/models--org--name",
        "hub",
        "model/pytorch_model.bin",
        "model/pytorch_model.bin.index.json",
        "model/model.safetensors",
        "model/model.safetensors.index.json",
        "model/pytorch_model.bin.index.json",
        "model",
    };
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        char path[300];
        join(path, *state, names[n]);
        remove(path);
    }
    return rmdir(*state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config_fields),
        cmocka_unit_test(test_config_of_the_family),
        cmocka_unit_test(test_fields_of_all_models),
        cmocka_unit_test(test_ties),
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_general_names_of_sizes),
        cmocka_unit_test(test_unknown_types),
        cmocka_unit_test(test_wide_integers),
        cmocka_unit_test(test_config_round_trip),
        cmocka_unit_test(test_padding),
        cmocka_unit_test(test_folders_and_files),
        cmocka_unit_test(test_other_formats),
        cmocka_unit_test(test_cache),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
