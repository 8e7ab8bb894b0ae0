/*
 * Folders of GPT-2, BLOOM, OPT, T5, BART and Marian: every field of config.json and of
 * generation_config.json, its default, and every value that is refused; and that each parameter of
 * the models of tests/golden/decoder is where the file has it, transposed and cut where it is
 * stored so.
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

#include "model/arch/family.h"
#include "model/arch/net.h"
#include "model/config/config.h"
#include "model/layer/alibi.h"
#include "model/model_impl.h"
#include "model/weights/resolver.h"
#include "param_values.h"

/* ---- config.json ----------------------------------------------------------------------------- */

static qkv_model_info read_config(const char *text) {
    qkv_model_info info;
    qkv_error error;
    if (qkvi_config_read("c", text, strlen(text), &info, &error) != QKV_OK)
        fail_msg("%s: %s", text, error.message);
    return info;
}

static void test_gpt2(void **state) {
    (void)state;
    qkv_model_info info = read_config("{\"model_type\":\"gpt2\"}");
    assert_string_equal(info.architecture, "gpt2");
    assert_int_equal(info.n_layers, 12);
    assert_int_equal(info.n_heads, 12);
    assert_int_equal(info.hidden, 768);
    assert_int_equal(info.head_dim, 64);
    assert_int_equal(info.intermediate, 3072);
    assert_int_equal(info.max_len, 1024);
    assert_int_equal(info.vocab_size, 50257);
    assert_int_equal(info.target_vocab_size, 50257);
    assert_string_equal(info.activation, "gelu_tanh");
    assert_true(info.layer_norm_eps == 1e-5);
    assert_true(info.kind == QKV_MODEL_DECODER && info.has_lm);
    assert_int_equal(info.n_decoder_layers, 0);
    assert_int_equal(info.bos_id, 50256);
    assert_int_equal(info.eos_id, 50256);
    assert_int_equal(info.pad_id, -1);
    assert_int_equal(info.start_id, -1);
    assert_false(info.unscaled || info.scales_by_layer || info.scales_words);
    info = read_config(
        "{\"model_type\":\"gpt2\",\"n_layer\":3,\"n_head\":3,\"n_embd\":21,\"n_inner\":19,"
        "\"n_positions\":45,\"vocab_size\":37,\"activation_function\":\"relu\","
        "\"layer_norm_epsilon\":1e-3,\"scale_attn_weights\":false,\"pad_token_id\":0,"
        "\"scale_attn_by_inverse_layer_idx\":true,\"reorder_and_upcast_attn\":true,"
        "\"bos_token_id\":2,\"eos_token_id\":[3,4]}");
    assert_int_equal(info.n_layers, 3);
    assert_int_equal(info.head_dim, 7);
    assert_int_equal(info.intermediate, 19);
    assert_int_equal(info.max_len, 45);
    assert_int_equal(info.vocab_size, 37);
    assert_string_equal(info.activation, "relu");
    assert_true(info.layer_norm_eps == 1e-3);
    assert_true(info.unscaled && info.scales_by_layer);
    assert_int_equal(info.bos_id, 2);
    assert_int_equal(info.eos_id, 3);
    assert_int_equal(info.pad_id, 0);
    info = read_config("{\"model_type\":\"gpt2\",\"n_inner\":null,\"n_embd\":24,\"vocab_size\":9}");
    assert_int_equal(info.intermediate, 96);
    assert_int_equal(info.eos_id, -1); /* 50256 is no word of this one */
}

static void test_bart(void **state) {
    (void)state;
    qkv_model_info info = read_config("{\"model_type\":\"bart\"}");
    assert_true(info.kind == QKV_MODEL_PAIR && info.has_lm);
    assert_int_equal(info.hidden, 1024);
    assert_int_equal(info.n_layers, 12);
    assert_int_equal(info.n_heads, 16);
    assert_int_equal(info.intermediate, 4096);
    assert_int_equal(info.n_decoder_layers, 12);
    assert_int_equal(info.n_decoder_heads, 16);
    assert_int_equal(info.decoder_intermediate, 4096);
    assert_int_equal(info.vocab_size, 50265);
    assert_int_equal(info.max_len, 1024);
    assert_int_equal(info.first_position, 2);
    assert_string_equal(info.activation, "gelu");
    assert_int_equal(info.bos_id, 0);
    assert_int_equal(info.pad_id, 1);
    assert_int_equal(info.eos_id, 2);
    assert_int_equal(info.start_id, 2);
    assert_false(info.sinusoidal_positions || info.scales_words || info.separate_words);
    info = read_config(
        "{\"model_type\":\"bart\",\"d_model\":20,\"encoder_layers\":2,\"encoder_attention_heads\":"
        "2,"
        "\"encoder_ffn_dim\":37,\"decoder_layers\":1,\"decoder_attention_heads\":4,"
        "\"decoder_ffn_dim\":22,\"vocab_size\":53,\"max_position_embeddings\":43,"
        "\"scale_embedding\":true,\"decoder_start_token_id\":52,\"normalize_before\":false,"
        "\"normalize_embedding\":true,\"static_position_embeddings\":false,"
        "\"extra_pos_embeddings\":2,\"add_final_layer_norm\":false,\"add_bias_logits\":false}");
    assert_int_equal(info.n_layers, 2);
    assert_int_equal(info.head_dim, 10);
    assert_int_equal(info.intermediate, 37);
    assert_int_equal(info.n_decoder_layers, 1);
    assert_int_equal(info.n_decoder_heads, 4);
    assert_int_equal(info.decoder_intermediate, 22);
    assert_int_equal(info.max_len, 43);
    assert_int_equal(info.start_id, 52);
    assert_true(info.scales_words);
}

static void test_opt(void **state) {
    (void)state;
    const int all = QKV_BIAS_QKV | QKV_BIAS_OUTPUT | QKV_BIAS_MLP;
    qkv_model_info info = read_config("{\"model_type\":\"opt\"}");
    assert_true(info.kind == QKV_MODEL_DECODER && info.has_lm && info.untied == 0);
    assert_true(info.vocab_size == 50272 && info.hidden == 768 && info.intermediate == 3072);
    assert_true(info.n_layers == 12 && info.n_heads == 12 && info.head_dim == 64);
    assert_true(info.max_len == 2048 && info.first_position == 2 && info.embedding_size == 768);
    assert_true(info.bos_id == 2 && info.eos_id == 2 && info.pad_id == 1);
    assert_true(info.biases == all && !info.post_norm && !info.no_last_norm && !info.rms_norm);
    assert_true(info.pooled_dim == 768 && info.sentence_dim == 0); /* the latter by other files */
    assert_true(info.layer_norm_eps == 1e-5 && info.rotary_dim == 0 && !info.parallel);
    assert_string_equal(info.activation, "relu");
    info = read_config("{\"model_type\":\"opt\",\"hidden_size\":24,\"num_attention_heads\":4,"
                       "\"word_embed_proj_dim\":10,\"do_layer_norm_before\":false,\"ffn_dim\":7,"
                       "\"enable_bias\":false,\"layer_norm_eps\":0.5,\"intermediate_size\":9,"
                       "\"tie_word_embeddings\":false,\"activation_function\":\"gelu\"}");
    assert_true(info.embedding_size == 10 && info.pooled_dim == 10 && info.hidden == 24);
    assert_true(info.post_norm && info.no_last_norm && info.biases == 0);
    assert_true(info.intermediate == 7 && info.layer_norm_eps == 1e-5);
    assert_int_equal(info.untied, QKV_UNTIED_HEAD);
    info = read_config("{\"model_type\":\"opt\",\"_remove_final_layer_norm\":true,"
                       "\"word_embed_proj_dim\":null,\"hidden_size\":36}");
    assert_true(!info.post_norm && info.no_last_norm && info.embedding_size == 36);
}

static void test_bloom(void **state) {
    (void)state;
    qkv_model_info info = read_config("{\"model_type\":\"bloom\"}");
    assert_true(info.kind == QKV_MODEL_DECODER && info.has_lm && info.untied == 0);
    assert_true(info.vocab_size == 250880 && info.hidden == 64 && info.intermediate == 256);
    assert_true(info.n_layers == 2 && info.n_heads == 8 && info.head_dim == 8);
    assert_true(info.max_len == 16384 && info.alibi && !info.adds_to_norm);
    assert_true(info.bos_id == 1 && info.eos_id == 2 && info.pad_id == -1);
    assert_true(info.rotary_dim == 0 && !info.parallel && info.layer_norm_eps == 1e-5);
    assert_string_equal(info.activation, "gelu_tanh");
    info = read_config("{\"model_type\":\"bloom\",\"hidden_size\":64,\"n_embed\":30,\"n_head\":3,"
                       "\"num_attention_heads\":5,\"hidden_act\":\"relu\",\"n_inner\":7,"
                       "\"apply_residual_connection_post_layernorm\":true,\"seq_length\":9,"
                       "\"tie_word_embeddings\":false,\"pretraining_tp\":4,"
                       "\"layer_norm_epsilon\":0.25,\"n_positions\":12}");
    assert_true(info.hidden == 30 && info.n_heads == 5 && info.intermediate == 120);
    assert_true(info.adds_to_norm && info.untied == QKV_UNTIED_HEAD && info.max_len == 16384);
    assert_true(info.layer_norm_eps == 0.25);
    assert_string_equal(info.activation, "gelu_tanh");
    info = read_config("{\"model_type\":\"bloom\",\"n_embed\":null,\"slow_but_exact\":true}");
    assert_int_equal(info.hidden, 64);
}

/* As transformers 5.24.0 computes them, in floats: powers of two, and heads beyond them. */
static void test_slopes(void **state) {
    (void)state;
    static const float wanted[][8] = {
        [1] = { 0x1p-8f },
        [2] = { 0x1p-4f, 0x1p-8f },
        [3] = { 0x1p-4f, 0x1p-8f, 0x1p-2f },
        [6] = { 0x1p-2f, 0x1p-4f, 0x1p-6f, 0x1p-8f, 0x1p-1f, 0x1p-3f },
    };
    float slopes[16];
    for (int64_t n = 1; n <= 6; n++) {
        qkvi_alibi_slopes(n, slopes);
        for (int64_t h = 0; h < n && wanted[n][0] > 0; h++) assert_true(slopes[h] == wanted[n][h]);
    }
    qkvi_alibi_slopes(12, slopes);
    for (int h = 0; h < 8; h++) assert_true(slopes[h] == ldexpf(1, -h - 1));
    for (int h = 8; h < 12; h++)
        assert_true(fabs((double)slopes[h] - exp2(-0.5 * (2 * (h - 8) + 1))) < 2e-7);
}

static void test_marian(void **state) {
    (void)state;
    qkv_model_info info = read_config("{\"model_type\":\"marian\"}");
    assert_true(info.kind == QKV_MODEL_PAIR && info.sinusoidal_positions);
    assert_int_equal(info.vocab_size, 58101);
    assert_int_equal(info.target_vocab_size, 58101);
    assert_int_equal(info.first_position, 0);
    assert_int_equal(info.start_id, 58100);
    assert_int_equal(info.pad_id, 58100);
    assert_int_equal(info.eos_id, 0);
    assert_int_equal(info.bos_id, -1);
    assert_false(info.separate_words);
    info = read_config(
        "{\"model_type\":\"marian\",\"vocab_size\":37,\"decoder_vocab_size\":45,"
        "\"share_encoder_decoder_embeddings\":false,\"decoder_start_token_id\":36,"
        "\"pad_token_id\":36,\"activation_function\":\"swish\",\"scale_embedding\":true,"
        "\"static_position_embeddings\":true,\"normalize_embedding\":false}");
    assert_int_equal(info.target_vocab_size, 45);
    assert_true(info.separate_words && info.scales_words);
    assert_string_equal(info.activation, "silu");
    assert_int_equal(info.start_id, 36);
}

static void test_t5(void **state) {
    (void)state;
    qkv_model_info info = read_config("{\"model_type\":\"t5\"}");
    assert_true(info.kind == QKV_MODEL_PAIR && info.has_lm && info.untied == 0 && !info.gated);
    assert_true(info.vocab_size == 32128 && info.hidden == 512 && info.intermediate == 2048);
    assert_true(info.n_layers == 6 && info.n_heads == 8 && info.head_dim == 64);
    assert_true(info.n_decoder_layers == 6 && info.n_decoder_heads == 8);
    assert_true(info.decoder_intermediate == 2048 && info.max_len == 16384);
    assert_true(info.eos_id == 1 && info.pad_id == 0 && info.start_id == 0 && info.bos_id == -1);
    assert_true(info.rms_norm && info.biases == 0 && info.unscaled && info.scales_logits);
    assert_true(info.distance_buckets == 32 && info.max_distance == 128);
    assert_true(info.layer_norm_eps == 1e-6 && !info.sinusoidal_positions);
    assert_string_equal(info.activation, "relu");
    info = read_config("{\"model_type\":\"t5\",\"d_kv\":5,\"num_heads\":3,\"d_model\":8,"
                       "\"num_layers\":2,\"feed_forward_proj\":\"gated-gelu\","
                       "\"tie_word_embeddings\":false,\"relative_attention_num_buckets\":8,"
                       "\"relative_attention_max_distance\":20}");
    assert_true(info.head_dim == 5 && info.n_decoder_layers == 2 && info.untied == 0);
    assert_true(info.gated && !info.scales_logits && info.distance_buckets == 8);
    assert_string_equal(info.activation, "gelu_tanh");
    info = read_config("{\"model_type\":\"t5\",\"tie_word_embeddings\":true,"
                       "\"scale_decoder_outputs\":false,\"feed_forward_proj\":\"relu\","
                       "\"dense_act_fn\":\"silu\",\"is_gated_act\":true,"
                       "\"num_decoder_layers\":null,\"head_dim\":7}");
    assert_true(!info.scales_logits && info.gated && info.n_decoder_layers == 6);
    assert_int_equal(info.head_dim, 7);
    assert_string_equal(info.activation, "silu");
    info = read_config("{\"model_type\":\"t5\",\"num_layers\":3,\"num_hidden_layers\":2}");
    assert_true(info.n_layers == 2 && info.n_decoder_layers == 3); /* as in transformers */
    info = read_config("{\"model_type\":\"mt5\",\"scale_decoder_outputs\":true,"
                       "\"num_decoder_layers\":3}");
    assert_true(info.vocab_size == 250112 && info.intermediate == 1024 && info.n_heads == 6);
    assert_true(info.n_layers == 8 && info.n_decoder_layers == 3 && !info.scales_logits);
    assert_true(info.gated);
    assert_string_equal(info.activation, "gelu_tanh");
}

#define BLOOM(more) "{\"model_type\":\"bloom\",\"vocab_size\":40," more "}"
#define T5(more)    "{\"model_type\":\"t5\",\"vocab_size\":40," more "}"
#define OPT(more)   "{\"model_type\":\"opt\",\"vocab_size\":40," more "}"
#define GPT2(more)  "{\"model_type\":\"gpt2\",\"vocab_size\":40," more "}"
#define BART(more)  "{\"model_type\":\"bart\",\"vocab_size\":40," more "}"
#define MARIAN(more)                                                                               \
    "{\"model_type\":\"marian\",\"vocab_size\":40,\"decoder_start_token_id\":39," more "}"

static void test_refused_configs(void **state) {
    (void)state;
    static const struct {
        const char *text;
        qkv_status status;
        const char *says;
    } cases[] = {
        { GPT2("\"n_layer\":0"), QKV_ERR_SHAPE, "c: n_layer = 0 is less than 1" },
        { GPT2("\"n_layer\":1025"), QKV_ERR_LIMIT, "c: n_layer = 1025 is above the limit 1024" },
        { GPT2("\"n_head\":\"2\""), QKV_ERR_FORMAT, "c: n_head is a string, must be an integer" },
        { GPT2("\"n_embd\":20,\"n_head\":3"), QKV_ERR_SHAPE,
          "c: n_embd = 20 is not a multiple of n_head = 3" },
        { GPT2("\"n_inner\":0"), QKV_ERR_SHAPE, "c: n_inner = 0 is less than 1" },
        { GPT2("\"n_positions\":-1"), QKV_ERR_FORMAT,
          "c: n_positions = -1 is not between 0 and 2147483647" },
        { GPT2("\"activation_function\":\"mish\""), QKV_ERR_UNSUPPORTED,
          "c: activation_function 'mish' is not supported" },
        { GPT2("\"layer_norm_epsilon\":0"), QKV_ERR_FORMAT,
          "c: layer_norm_epsilon = 0 is not between 0 and 1" },
        { GPT2("\"add_cross_attention\":true"), QKV_ERR_UNSUPPORTED,
          "c: add_cross_attention 'true' is not supported" },
        { GPT2("\"is_encoder_decoder\":true"), QKV_ERR_UNSUPPORTED,
          "c: is_encoder_decoder 'true' is not supported" },
        { GPT2("\"scale_attn_weights\":1"), QKV_ERR_FORMAT,
          "c: scale_attn_weights is an integer, must be true or false" },
        { GPT2("\"reorder_and_upcast_attn\":\"no\""), QKV_ERR_FORMAT,
          "c: reorder_and_upcast_attn is a string, must be true or false" },
        { T5("\"feed_forward_proj\":\"gated-gelu-new\""), QKV_ERR_UNSUPPORTED,
          "c: feed_forward_proj 'gated-gelu-new' is neither 'ACTIVATION' nor 'gated-ACTIVATION'" },
        { T5("\"dense_act_fn\":\"mish\""), QKV_ERR_UNSUPPORTED,
          "c: dense_act_fn 'mish' is not supported" },
        { T5("\"relative_attention_num_buckets\":30"), QKV_ERR_UNSUPPORTED,
          "c: relative_attention_num_buckets = 30 is no multiple of 4" },
        { T5("\"relative_attention_max_distance\":16"), QKV_ERR_UNSUPPORTED,
          "c: relative_attention_max_distance = 16 is not above 16, half of "
          "relative_attention_num_buckets" },
        { T5("\"relative_attention_max_distance\":16385"), QKV_ERR_LIMIT,
          "c: relative_attention_max_distance = 16385 is above the limit 16384" },
        { T5("\"d_kv\":0"), QKV_ERR_SHAPE, "c: d_kv = 0 is less than 1" },
        { T5("\"scale_decoder_outputs\":1"), QKV_ERR_FORMAT,
          "c: scale_decoder_outputs is an integer, must be true or false" },
        { T5("\"is_encoder_decoder\":false"), QKV_ERR_UNSUPPORTED,
          "c: is_encoder_decoder 'false' is not supported" },
        { BLOOM("\"hidden_size\":20,\"n_head\":3"), QKV_ERR_SHAPE,
          "c: hidden_size = 20 is not a multiple of n_head = 3" },
        { BLOOM("\"n_embed\":0"), QKV_ERR_SHAPE, "c: n_embed = 0 is less than 1" },
        { BLOOM("\"apply_residual_connection_post_layernorm\":1"), QKV_ERR_FORMAT,
          "c: apply_residual_connection_post_layernorm is an integer, must be true or false" },
        { BLOOM("\"slow_but_exact\":true,\"pretraining_tp\":2"), QKV_ERR_UNSUPPORTED,
          "c: slow_but_exact with pretraining_tp = 2 is not supported" },
        { BLOOM("\"is_causal\":false"), QKV_ERR_UNSUPPORTED,
          "c: is_causal that is not true is not supported" },
        { OPT("\"layer_norm_elementwise_affine\":false"), QKV_ERR_UNSUPPORTED,
          "c: layer_norm_elementwise_affine 'false' is not supported" },
        { OPT("\"enable_bias\":0"), QKV_ERR_FORMAT,
          "c: enable_bias is an integer, must be true or false" },
        { OPT("\"do_layer_norm_before\":\"no\""), QKV_ERR_FORMAT,
          "c: do_layer_norm_before is a string, must be true or false" },
        { OPT("\"_remove_final_layer_norm\":1"), QKV_ERR_FORMAT,
          "c: _remove_final_layer_norm is an integer, must be true or false" },
        { OPT("\"word_embed_proj_dim\":0"), QKV_ERR_SHAPE,
          "c: word_embed_proj_dim = 0 is less than 1" },
        { OPT("\"word_embed_proj_dim\":1048576"), QKV_ERR_LIMIT,
          "c: word_embed_proj_dim = 1048576 is above the limit 65536" },
        { OPT("\"ffn_dim\":-1"), QKV_ERR_FORMAT,
          "c: ffn_dim = -1 is not between 0 and 2147483647" },
        { OPT("\"hidden_size\":20,\"num_attention_heads\":3"), QKV_ERR_SHAPE,
          "c: hidden_size = 20 is not a multiple of num_attention_heads = 3" },
        { OPT("\"max_position_embeddings\":0"), QKV_ERR_SHAPE,
          "c: max_position_embeddings = 0 is less than 1" },
        { OPT("\"activation_function\":\"relu6\""), QKV_ERR_UNSUPPORTED,
          "c: activation_function 'relu6' is not supported" },
        { GPT2("\"eos_token_id\":[\"a\"]"), QKV_ERR_FORMAT,
          "c: eos_token_id is a string, must be an integer" },
        { GPT2("\"eos_token_id\":[1,2,3,4,5,6,7,8,9]"), QKV_ERR_LIMIT,
          "c: eos_token_id has 9 entries, the limit is 8" },
        { BART("\"d_model\":20,\"encoder_attention_heads\":3"), QKV_ERR_SHAPE,
          "c: d_model = 20 is not a multiple of encoder_attention_heads = 3" },
        { BART("\"d_model\":48,\"decoder_attention_heads\":5"), QKV_ERR_SHAPE,
          "c: d_model = 48 is not a multiple of decoder_attention_heads = 5" },
        { BART("\"decoder_layers\":0"), QKV_ERR_SHAPE, "c: decoder_layers = 0 is less than 1" },
        { BART("\"decoder_ffn_dim\":1048577"), QKV_ERR_LIMIT,
          "c: decoder_ffn_dim = 1048577 is above the limit 1048576" },
        { BART("\"normalize_before\":true"), QKV_ERR_UNSUPPORTED,
          "c: normalize_before 'true' is not supported" },
        { BART("\"add_final_layer_norm\":true"), QKV_ERR_UNSUPPORTED,
          "c: add_final_layer_norm 'true' is not supported" },
        { BART("\"normalize_embedding\":false"), QKV_ERR_UNSUPPORTED,
          "c: normalize_embedding 'false' is not supported" },
        { BART("\"static_position_embeddings\":true"), QKV_ERR_UNSUPPORTED,
          "c: static_position_embeddings 'true' is not supported" },
        { BART("\"extra_pos_embeddings\":0"), QKV_ERR_UNSUPPORTED,
          "c: extra_pos_embeddings = 0 is not 2" },
        { BART("\"is_encoder_decoder\":false"), QKV_ERR_UNSUPPORTED,
          "c: is_encoder_decoder 'false' is not supported" },
        { BART("\"is_decoder\":true"), QKV_ERR_UNSUPPORTED,
          "c: is_decoder 'true' is not supported" },
        { BART("\"decoder_start_token_id\":40"), QKV_ERR_SHAPE,
          "c: decoder_start_token_id = 40 is not less than the 40 tokens of the decoder" },
        { MARIAN("\"normalize_embedding\":true"), QKV_ERR_UNSUPPORTED,
          "c: normalize_embedding 'true' is not supported" },
        { MARIAN("\"static_position_embeddings\":false"), QKV_ERR_UNSUPPORTED,
          "c: static_position_embeddings 'false' is not supported" },
        { MARIAN("\"decoder_vocab_size\":41"), QKV_ERR_SHAPE,
          "c: decoder_vocab_size = 41 is not vocab_size = 40, but "
          "share_encoder_decoder_embeddings is true" },
        { MARIAN("\"share_encoder_decoder_embeddings\":false,\"decoder_vocab_size\":39"),
          QKV_ERR_SHAPE,
          "c: decoder_start_token_id = 39 is not less than the 39 tokens of the decoder" },
        { "{\"model_type\":\"marian\",\"vocab_size\":40}", QKV_ERR_SHAPE,
          "c: decoder_start_token_id = 58100 is not less than the 40 tokens of the decoder" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkv_model_info info;
        qkv_error error = { QKV_OK, "" };
        const qkv_status status =
            qkvi_config_read("c", cases[i].text, strlen(cases[i].text), &info, &error);
        if (status != cases[i].status || strcmp(error.message, cases[i].says) != 0)
            fail_msg("%s: %s \"%s\"", cases[i].text, qkv_status_name(status), error.message);
    }
}

/* ---- generation_config.json ------------------------------------------------------------------ */

/* Of a decoder with 40 tokens that ends with 2 and starts with 3. */
static qkv_status parse_generation(const char *text, qkvi_generation_config *config,
                                   qkv_error *error) {
    const qkv_model_info info = {
        .target_vocab_size = 40, .bos_id = -1, .eos_id = 2, .pad_id = 1, .start_id = 3, .has_lm = 1
    };
    return qkvi_generation_config_parse("g", text, strlen(text), &info, config, error);
}

/* Only the file counts: transformers 5 looks for nothing of this in config.json beside it. */
static void test_generation_defaults(void **state) {
    (void)state;
    qkvi_generation_config c;
    assert_int_equal(parse_generation("{\"_from_model_config\":true,\"x\":[1]}", &c, NULL), QKV_OK);
    assert_int_equal(c.bos, -1);
    assert_int_equal(c.pad, -1);
    assert_int_equal(c.start, -1);
    assert_int_equal(c.n_ends, 0);
    assert_int_equal(c.forced_first, -1);
    assert_true(c.min_p == 0);
    assert_int_equal(c.n_forced_last + c.n_bad_words + c.max_length + c.max_new_tokens, 0);
    assert_int_equal(c.num_beams, 1);
    assert_int_equal(c.top_k, 50);
    assert_true(c.length_penalty == 1 && c.repetition_penalty == 1 && c.top_p == 1);
    assert_int_equal(c.early_stopping, QKVI_STOP_BY_HEURISTIC);
}

static void test_generation_fields(void **state) {
    (void)state;
    qkvi_generation_config c;
    assert_int_equal(
        parse_generation(
            "{\"bos_token_id\":0,\"pad_token_id\":39,\"decoder_start_token_id\":38,"
            "\"eos_token_id\":[5,40,6],\"forced_bos_token_id\":7,\"forced_eos_token_id\":8,"
            "\"bad_words_ids\":[[39],[4],[5,39,6]],\"max_length\":512,\"max_new_tokens\":20,"
            "\"min_length\":3,\"min_new_tokens\":2,\"num_beams\":6,\"no_repeat_ngram_size\":3,"
            "\"top_k\":0,\"length_penalty\":-0.5,\"repetition_penalty\":1.25,"
            "\"temperature\":0.5,\"top_p\":0.75,\"do_sample\":true,\"early_stopping\":\"never\"}",
            &c, NULL),
        QKV_OK);
    assert_int_equal(c.bos, 0);
    assert_int_equal(c.pad, 39);
    assert_int_equal(c.start, 38);
    assert_int_equal(c.n_ends, 2); /* 40 is no token */
    assert_int_equal(c.ends[1], 6);
    assert_int_equal(c.forced_first, 7);
    assert_int_equal(c.n_forced_last, 1);
    assert_int_equal(c.forced_last[0], 8);
    static const int32_t words[] = { 39, 4, 5, 39, 6 };
    static const int64_t lengths[] = { 1, 1, 3 };
    assert_int_equal(c.n_bad_words, 3);
    assert_memory_equal(c.bad_words, words, sizeof words);
    assert_memory_equal(c.bad_word_lengths, lengths, sizeof lengths);
    assert_int_equal(c.max_length, 512);
    assert_int_equal(c.max_new_tokens, 20);
    assert_int_equal(c.min_length, 3);
    assert_int_equal(c.min_new_tokens, 2);
    assert_int_equal(c.num_beams, 6);
    assert_int_equal(c.no_repeat_ngram_size, 3);
    assert_int_equal(c.top_k, 0);
    assert_true(c.length_penalty == -0.5 && c.repetition_penalty == 1.25);
    assert_true(c.temperature == 0.5 && c.top_p == 0.75);
    assert_true(c.do_sample);
    assert_int_equal(c.early_stopping, QKVI_STOP_NEVER);
    assert_int_equal(parse_generation("{\"early_stopping\":true,\"eos_token_id\":null}", &c, NULL),
                     QKV_OK);
    assert_int_equal(c.early_stopping, QKVI_STOP_AT_ONCE);
    assert_int_equal(c.n_ends, 0);
}

/* What sets no bound, or names no token, is like nothing. */
static void test_generation_without_bounds(void **state) {
    (void)state;
    qkvi_generation_config c;
    qkv_error error;
    static const char text[] =
        "{\"max_length\":1000000000000000019884624838656,\"max_new_tokens\":4294967296,"
        "\"min_length\":-1,\"min_new_tokens\":-2,\"no_repeat_ngram_size\":-3,\"top_k\":-4,"
        "\"top_p\":1.5,\"eos_token_id\":[-1,4,41],\"pad_token_id\":-1,\"bos_token_id\":40,"
        "\"forced_eos_token_id\":[7,-1,9,41],\"nobody_needs\":-100000000000000000000}";
    if (parse_generation(text, &c, &error) != QKV_OK) fail_msg("%s", error.message);
    assert_int_equal(c.max_length + c.max_new_tokens, 0);
    assert_int_equal(c.min_length + c.min_new_tokens + c.no_repeat_ngram_size, 0);
    assert_int_equal(c.top_k, -1);
    assert_true(c.top_p == 1);
    assert_int_equal(c.n_ends, 1);
    assert_int_equal(c.ends[0], 4);
    assert_int_equal(c.pad, -1);
    assert_int_equal(c.bos, -1);
    assert_int_equal(c.n_forced_last, 2);
    assert_int_equal(c.forced_last[0], 7);
    assert_int_equal(c.forced_last[1], 9);
    assert_int_equal(parse_generation("{\"model_type\":\"bart\",\"bos_token_id\":5,"
                                      "\"force_bos_token_to_be_generated\":true}",
                                      &c, &error),
                     QKV_OK);
    assert_int_equal(c.forced_first, 5);
}

/*
 * Without decoder_start_token_id the file's bos_token_id; a config.json that lacks it has its
 * type's.
 */
static void test_start_of_generation(void **state) {
    static const struct {
        const char *text;
        int64_t start;
    } cases[] = {
        { "{\"bos_token_id\":5}", 5 },
        { "{\"bos_token_id\":5,\"decoder_start_token_id\":null}", 5 },
        { "{\"bos_token_id\":5,\"decoder_start_token_id\":6}", 6 },
        { "{}", -1 },
        { "{\"model_type\":\"bart\",\"bos_token_id\":5}", -1 },
        { "{\"model_type\":\"bart\",\"bos_token_id\":5,\"decoder_start_token_id\":null}", 5 },
    };
    const qkv_model_info info = { .kind = QKV_MODEL_PAIR, .target_vocab_size = 40, .has_lm = 1 };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkvi_generation_config c;
        const char *const text = cases[i].text;
        assert_int_equal(qkvi_generation_config_parse("g", text, strlen(text), &info, &c, NULL),
                         QKV_OK);
        if (c.start != cases[i].start) fail_msg("%s: %lld", text, (long long)c.start);
    }
}

static void test_refused_generation(void **state) {
    (void)state;
    static const struct {
        const char *text;
        qkv_status status;
        const char *says;
    } cases[] = {
        { "[]", QKV_ERR_FORMAT, "g: the JSON is not an object" },
        { "{\"num_beams\":0}", QKV_ERR_FORMAT, "g: num_beams = 0 is less than 1" },
        { "{\"num_beams\":257}", QKV_ERR_LIMIT, "g: num_beams = 257 is above the limit 256" },
        { "{\"num_return_sequences\":0}", QKV_ERR_FORMAT,
          "g: num_return_sequences = 0 is less than 1" },
        { "{\"num_return_sequences\":257}", QKV_ERR_LIMIT,
          "g: num_return_sequences = 257 is above the limit 256" },
        { "{\"num_beams\":2.0}", QKV_ERR_FORMAT, "g: num_beams is a number, must be an integer" },
        { "{\"max_length\":-1}", QKV_ERR_FORMAT,
          "g: max_length = -1 is not between 0 and 2147483647" },
        { "{\"max_length\":0}", QKV_ERR_FORMAT, "g: max_length = 0 is less than 1" },
        { "{\"max_new_tokens\":0}", QKV_ERR_FORMAT, "g: max_new_tokens = 0 is less than 1" },
        { "{\"max_length\":-100000000000000000000}", QKV_ERR_FORMAT,
          "g: max_length = -1e+20 is not between 0 and 2147483647" },
        { "{\"top_k\":2.5}", QKV_ERR_FORMAT, "g: top_k is a number, must be an integer" },
        { "{\"min_p\":\"a\"}", QKV_ERR_FORMAT, "g: min_p is a string, must be a number" },
        { "{\"length_penalty\":\"1\"}", QKV_ERR_FORMAT,
          "g: length_penalty is a string, must be a number" },
        { "{\"early_stopping\":\"no\"}", QKV_ERR_FORMAT,
          "g: early_stopping is a string other than \"never\"" },
        { "{\"early_stopping\":1}", QKV_ERR_FORMAT,
          "g: early_stopping is an integer, must be true or false" },
        { "{\"forced_bos_token_id\":40}", QKV_ERR_SHAPE,
          "g: forced_bos_token_id = 40 is not less than the 40 tokens of the model" },
        { "{\"decoder_start_token_id\":[1,2]}", QKV_ERR_LIMIT,
          "g: decoder_start_token_id has 2 entries, the limit is 1" },
        { "{\"bad_words_ids\":[3]}", QKV_ERR_FORMAT, "g: bad_words_ids[0] is no list of integers" },
        { "{\"bad_words_ids\":[[1],[]]}", QKV_ERR_FORMAT,
          "g: bad_words_ids[1] is no list of integers" },
        { "{\"bad_words_ids\":[[1,2],[1,2.0]]}", QKV_ERR_FORMAT,
          "g: bad_words_ids[1] is no list of integers" },
        { "{\"bad_words_ids\":[[1,40]]}", QKV_ERR_SHAPE,
          "g: bad_words_ids = 40 is not less than the 40 tokens of the model" },
        { "{\"bad_words_ids\":[[-1]]}", QKV_ERR_SHAPE,
          "g: bad_words_ids = -1 is not less than the 40 tokens of the model" },
        { "{\"do_sample\":\"yes\"}", QKV_ERR_FORMAT,
          "g: do_sample is a string, must be true or false" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkvi_generation_config c;
        qkv_error error = { QKV_OK, "" };
        const qkv_status status = parse_generation(cases[i].text, &c, &error);
        if (status != cases[i].status || strcmp(error.message, cases[i].says) != 0)
            fail_msg("%s: %s \"%s\"", cases[i].text, qkv_status_name(status), error.message);
    }
}

/* ---- Parameters ------------------------------------------------------------------------------ */

/* A value of the file for row i and column c of a parameter, by the definition of qkvi_param. */
static float stored_value(const qkvi_param *row, const float *stored, int64_t i, int64_t c) {
    const int64_t n_out = row->shape[0], n_in = row->shape[1];
    if (row->rank == 1) return stored[row->part * n_out + i];
    if (!row->transposed) return stored[i * n_in + c];
    return stored[c * n_out * row->n_parts + row->part * n_out + i];
}

static void check_row(const qkv_model *model, const qkvi_resolver *resolver,
                      const qkvi_param *row) {
    const char *const name = qkvi_param_stored_name(row);
    const qkvi_stored *const tensor = qkvi_resolve(resolver, name);
    float *const values = param_values(model, row);
    qkv_error error;
    assert_non_null(tensor);
    assert_int_equal(tensor->n_elems, row->n_elems * (size_t)row->n_parts);
    float *const stored = malloc(tensor->n_elems * sizeof *stored);
    float *const again = calloc(tensor->n_elems, sizeof *again);
    assert_int_equal(qkvi_safetensors_read_f32(resolver->file, tensor, stored, &error), QKV_OK);
    qkvi_param_to_stored(row, values, again);
    for (int64_t i = 0; i < row->shape[0]; i++)
        for (int64_t c = 0; c < row->shape[1]; c++) {
            const float wanted = stored_value(row, stored, i, c);
            if (values[i * row->shape[1] + c] != wanted)
                fail_msg("%s: %s[%d][%d] is not that of %s", model->source, row->name, (int)i,
                         (int)c, name);
            assert_true(stored_value(row, again, i, c) == wanted);
        }
    free(again);
    free(stored);
    free(values);
}

static void test_parameters(void **state) {
    char path[512];
    qkv_error error;
    qkv_model *model;
    qkvi_safetensors *file;
    qkvi_resolver resolver;
    snprintf(path, sizeof path, QKV_TEST_DATA "/golden/decoder/%s", (const char *)*state);
    if (qkv_model_open(path, NULL, &model, &error) != QKV_OK) fail_msg("%s", error.message);
    snprintf(path, sizeof path, QKV_TEST_DATA "/golden/decoder/%s/model.safetensors",
             (const char *)*state);
    assert_int_equal(qkvi_safetensors_open(path, &file, &error), QKV_OK);
    const qkvi_model_family *const family = qkvi_family_of(model->info.architecture);
    assert_int_equal(qkvi_resolver_make(file, &family->spelling, &resolver, &error), QKV_OK);
    for (int64_t r = 0; r < model->params.n_rows; r++)
        check_row(model, &resolver, &model->params.rows[r]);
    assert_null(qkv_model_unused(model, 0)); /* masks, ties and a bias of zeros are known */
    qkvi_resolver_free(&resolver);
    qkvi_safetensors_close(file);
    qkv_model_free(model);
}

/* The bias of marian_2's logits is used, that of others, of zeros, is not. */
static void test_bias_of_logits(void **state) {
    (void)state;
    qkv_model *model;
    qkv_error error;
    assert_int_equal(qkv_model_open(QKV_TEST_DATA "/golden/decoder/marian_2", NULL, &model, &error),
                     QKV_OK);
    assert_non_null(model->lm_bias);
    assert_ptr_equal(model->net->lm.bias, model->lm_bias);
    qkv_model_free(model);
    assert_int_equal(qkv_model_open(QKV_TEST_DATA "/golden/decoder/marian_1", NULL, &model, &error),
                     QKV_OK);
    assert_null(model->lm_bias);
    qkv_model_free(model);
}

/* What the net is told by config.json. */
static void test_switches(void **state) {
    (void)state;
    qkv_model *model;
    qkv_error error;
    assert_int_equal(qkv_model_open(QKV_TEST_DATA "/golden/decoder/gpt2_1", NULL, &model, &error),
                     QKV_OK);
    const qkvi_stack *stack = &model->net->stacks[0];
    assert_int_equal(model->net->n_stacks, 1);
    assert_true(stack->causal && stack->blocks[0].pre_norm && stack->last_norm.gamma);
    assert_null(stack->embed_norm.gamma);
    assert_true(stack->blocks[1].mha.scale * 2 == stack->blocks[0].mha.scale);
    assert_int_equal(stack->blocks[0].act, QKVI_GELU_TANH);
    qkv_model_free(model);
    assert_int_equal(qkv_model_open(QKV_TEST_DATA "/golden/decoder/bart_2", NULL, &model, &error),
                     QKV_OK);
    const qkvi_stack *const encoder = &model->net->stacks[0], *const decoder = encoder + 1;
    assert_int_equal(model->net->n_stacks, 2);
    assert_true(!encoder->causal && decoder->causal && !encoder->skips_padding);
    assert_true(encoder->embed_norm.gamma && decoder->embed_norm.gamma);
    assert_ptr_equal(encoder->embed.tied.panels, decoder->embed.tied.panels);
    assert_true(encoder->embed.word_scale * encoder->embed.word_scale > 11.999f);
    assert_int_equal(decoder->blocks[2].cross.n_heads, 2);
    assert_int_equal(encoder->blocks[0].cross.n_heads, 0);
    assert_int_equal(model->info.start_id, 2);
    assert_int_equal(model->generation.forced_first, 0);
    assert_int_equal(model->generation.num_beams, 4);
    qkv_model_free(model);
    assert_int_equal(qkv_model_open(QKV_TEST_DATA "/golden/decoder/marian_3", NULL, &model, &error),
                     QKV_OK);
    assert_non_null(model->net->stacks[0].embed.word); /* no head multiplies with them */
    assert_ptr_equal(model->net->lm.forward, model->net->stacks[1].embed.tied.panels);
    assert_int_equal(model->net->lm.n_out, 45);
    assert_int_equal(model->generation.bad_words[0], 36);
    assert_ptr_not_equal(qkv_model_tokenizer(model, QKV_TARGET),
                         qkv_model_tokenizer(model, QKV_SOURCE));
    qkv_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpt2),
        cmocka_unit_test(test_bart),
        cmocka_unit_test(test_marian),
        cmocka_unit_test(test_opt),
        cmocka_unit_test(test_bloom),
        cmocka_unit_test(test_slopes),
        cmocka_unit_test(test_t5),
        cmocka_unit_test(test_refused_configs),
        cmocka_unit_test(test_generation_defaults),
        cmocka_unit_test(test_generation_fields),
        cmocka_unit_test(test_generation_without_bounds),
        cmocka_unit_test(test_start_of_generation),
        cmocka_unit_test(test_refused_generation),
        cmocka_unit_test_prestate(test_parameters, "gpt2_1"),
        cmocka_unit_test_prestate(test_parameters, "gpt2_2"),
        cmocka_unit_test_prestate(test_parameters, "gpt2_3"),
        cmocka_unit_test_prestate(test_parameters, "bart_1"),
        cmocka_unit_test_prestate(test_parameters, "bart_2"),
        cmocka_unit_test_prestate(test_parameters, "bart_3"),
        cmocka_unit_test_prestate(test_parameters, "marian_1"),
        cmocka_unit_test_prestate(test_parameters, "marian_2"),
        cmocka_unit_test_prestate(test_parameters, "marian_3"),
        cmocka_unit_test_prestate(test_parameters, "t5_1"),
        cmocka_unit_test_prestate(test_parameters, "t5_2"),
        cmocka_unit_test_prestate(test_parameters, "mt5_1"),
        cmocka_unit_test(test_bias_of_logits),
        cmocka_unit_test(test_switches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
