/*
 * config.json of Llama and its kin, of GPT-NeoX, GPT-J and ModernBERT: what absent fields mean (the
 * configurations of transformers 5.24), the spellings of transformers 4 and 5, and every field that
 * would be computed otherwise, which is refused by its name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/config/config.h"

static void read_config(const char *text, qkv_model_info *info) {
    qkv_error error;
    if (qkvi_config_read("c", text, strlen(text), info, &error) != QKV_OK)
        fail_msg("%s: %s", text, error.message);
}

#define GPTJ(more)        "{\"model_type\":\"gptj\",\"n_embd\":24,\"n_head\":4" more "}"
#define MODEL(type, more) BARE(type, ",\"num_key_value_heads\":2" more)
#define BARE(type, more)                                                                           \
    "{\"model_type\":\"" type "\",\"hidden_size\":48,\"intermediate_size\":80,"                    \
    "\"num_hidden_layers\":6,\"num_attention_heads\":6,\"vocab_size\":97,"                         \
    "\"max_position_embeddings\":64" more "}"

/* ---- Absent fields --------------------------------------------------------------------------- */

static void test_absent_fields(void **state) {
    (void)state;
    static const struct {
        const char *type;
        int64_t words, hidden, wide, n_layers, n_heads, n_kv_heads, head_dim, max_len, window;
        int64_t bos, eos, pad;
        int tied;
        double theta, eps;
    } rows[] = {
        { "llama", 32000, 4096, 11008, 32, 32, 32, 128, 2048, 0, 1, 2, -1, 0, 1e4, 1e-6 },
        { "mistral", 32000, 4096, 14336, 32, 32, 8, 128, 131072, 4096, 1, 2, -1, 0, 1e4, 1e-6 },
        { "qwen2", 151936, 4096, 22016, 32, 32, 32, 128, 32768, 0, -1, -1, -1, 0, 1e4, 1e-6 },
        { "qwen3", 151936, 4096, 22016, 32, 32, 32, 128, 32768, 0, -1, -1, -1, 0, 1e4, 1e-6 },
        { "gemma", 256000, 3072, 24576, 28, 16, 16, 256, 8192, 0, 2, 1, 0, 1, 1e4, 1e-6 },
        { "gemma2", 256000, 2304, 9216, 26, 8, 4, 256, 8192, 4096, 2, 1, 0, 1, 1e4, 1e-6 },
        { "gemma3_text", 262208, 2304, 9216, 26, 8, 4, 256, 131072, 4096, 2, 1, 0, 1, 1e6, 1e-6 },
        { "smollm3", 128256, 2048, 11008, 36, 16, 4, 128, 32768, 0, 128000, 128001, 128004, 1, 2e6,
          1e-6 },
        { "olmo2", 50304, 4096, 11008, 32, 32, 32, 128, 2048, 0, -1, 50279, 1, 0, 1e4, 1e-5 },
        { "phi3", 32064, 3072, 8192, 32, 32, 32, 96, 4096, 0, 1, 32000, 32000, 0, 1e4, 1e-5 },
        { "gpt_neox", 50432, 6144, 24576, 44, 64, 64, 96, 2048, 0, 0, 2, -1, 0, 1e4, 1e-5 },
        { "modernbert", 50368, 768, 1152, 22, 12, 12, 64, 8192, 65, -1, -1, 50283, 1, 160000,
          1e-5 },
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        qkv_model_info info;
        char text[64];
        snprintf(text, sizeof text, "{\"model_type\":\"%s\"}", rows[r].type);
        read_config(text, &info);
        assert_int_equal(info.vocab_size, rows[r].words);
        assert_int_equal(info.hidden, rows[r].hidden);
        assert_int_equal(info.intermediate, rows[r].wide);
        assert_int_equal(info.n_layers, rows[r].n_layers);
        assert_int_equal(info.n_heads, rows[r].n_heads);
        assert_int_equal(info.n_kv_heads, rows[r].n_kv_heads);
        assert_int_equal(info.head_dim, rows[r].head_dim);
        assert_int_equal(info.max_len, rows[r].max_len);
        assert_int_equal(info.window_left, rows[r].window - 1);
        assert_int_equal(info.bos_id, rows[r].bos);
        assert_int_equal(info.eos_id, rows[r].eos);
        assert_int_equal(info.pad_id, rows[r].pad);
        assert_int_equal(info.untied == 0, rows[r].tied);
        assert_true(info.rope[0].theta == rows[r].theta);
        assert_true(info.layer_norm_eps == rows[r].eps);
        assert_int_equal(info.rope[0].type, QKV_ROPE_DEFAULT);
    }
}

/* ---- Layers ---------------------------------------------------------------------------------- */

/* S: slides, N: no positions, B: both, -: neither. */
static void expect_layers(const char *text, const char *kinds) {
    qkv_model_info info;
    read_config(text, &info);
    for (int l = 0; kinds[l]; l++) {
        const int wanted = kinds[l] == 'S'   ? QKV_LAYER_SLIDES
                           : kinds[l] == 'N' ? QKV_LAYER_UNROTATED
                           : kinds[l] == 'B' ? QKV_LAYER_SLIDES | QKV_LAYER_UNROTATED
                                             : 0;
        if (info.layer_kinds[l] != wanted) fail_msg("%s: layer %d", text, l);
    }
}

#define FULL  "\"full_attention\""
#define SLIDE "\"sliding_attention\""
#define TYPES ",\"layer_types\":[" FULL "," SLIDE "," FULL "," FULL "," SLIDE "," FULL "]"

static void test_layers(void **state) {
    (void)state;
    qkv_model_info info;
    expect_layers(MODEL("llama", ""), "------");
    expect_layers(MODEL("mistral", ""), "SSSSSS");
    expect_layers(MODEL("mistral", TYPES), "SSSSSS");
    expect_layers(MODEL("mistral", ",\"sliding_window\":null"), "------");
    expect_layers(MODEL("phi3", ""), "------");
    expect_layers(MODEL("phi3", ",\"sliding_window\":4"), "SSSSSS");
    expect_layers(MODEL("qwen2", ",\"max_window_layers\":2"), "------");
    expect_layers(MODEL("qwen2", ",\"max_window_layers\":2,\"use_sliding_window\":true"), "--SSSS");
    expect_layers(MODEL("qwen3", ",\"use_sliding_window\":true" TYPES), "-S--S-");
    expect_layers(MODEL("gemma2", ""), "S-S-S-");
    expect_layers(MODEL("gemma2", TYPES), "-S--S-");
    expect_layers(MODEL("gemma3_text", ""), "SSSSS-");
    expect_layers(MODEL("gemma3_text", ",\"_sliding_window_pattern\":2"), "SSSSS-");
    expect_layers(MODEL("gemma3_text", ",\"sliding_window_pattern\":2"), "S-S-S-");
    expect_layers(MODEL("smollm3", ""), "---N--");
    expect_layers(MODEL("smollm3", ",\"no_rope_layer_interval\":3"), "--N--N");
    expect_layers(MODEL("smollm3", ",\"no_rope_layers\":[1,0,1,1,1,0],\"use_sliding_window\":true,"
                                   "\"sliding_window\":8"),
                  "-B---B");
    expect_layers(BARE("modernbert", ""), "-SS-SS");
    expect_layers(BARE("modernbert", ",\"global_attn_every_n_layers\":2"), "-S-S-S");
    read_config(BARE("modernbert", ",\"local_attention\":6"), &info);
    assert_int_equal(info.window_left, 3);
    assert_int_equal(info.window_right, 3);
    /* which is both sides; sliding_window is one, and goes before it */
    read_config(BARE("modernbert", ",\"sliding_window\":5,\"local_attention\":6"), &info);
    assert_int_equal(info.window_left, 5);
    assert_int_equal(info.window_right, 5);
    read_config(BARE("modernbert", ",\"sliding_window\":0"), &info);
    assert_int_equal(info.window_left, 0);
    read_config(BARE("modernbert", ",\"local_attention\":1"), &info);
    assert_int_equal(info.window_left, 0);
    read_config(MODEL("mistral", ",\"sliding_window\":4"), &info);
    assert_int_equal(info.window_left, 3);
    assert_int_equal(info.window_right, 0);
}

/* ---- Positions ------------------------------------------------------------------------------- */

static void test_positions(void **state) {
    (void)state;
    qkv_model_info info;
    read_config(MODEL("llama", ",\"rope_theta\":500,\"rope_scaling\":{\"type\":\"linear\","
                               "\"factor\":2.5}"),
                &info);
    assert_int_equal(info.rope[0].type, QKV_ROPE_LINEAR);
    assert_true(info.rope[0].theta == 500 && info.rope[0].factor == 2.5);
    /* what is in rope_scaling goes before rope_parameters, and an empty one is none */
    read_config(MODEL("llama", ",\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":7},"
                               "\"rope_scaling\":{\"rope_type\":\"dynamic\",\"factor\":2}"),
                &info);
    assert_int_equal(info.rope[0].type, QKV_ROPE_DYNAMIC);
    assert_true(info.rope[0].theta == 10000);
    assert_true(info.rope[0].original_len == 64 && info.max_len == 128);
    read_config(MODEL("llama", ",\"rope_parameters\":{\"rope_theta\":7},\"rope_scaling\":{}"),
                &info);
    assert_true(info.rope[0].theta == 7);
    read_config(MODEL("gemma3_text", ",\"rope_parameters\":{\"full_attention\":{\"rope_theta\":7}},"
                                     "\"rope_scaling\":{}"),
                &info);
    assert_true(info.rope[0].theta == 7);
    read_config(MODEL("qwen2", ",\"rope_parameters\":{\"rope_type\":\"yarn\",\"factor\":null,"
                               "\"original_max_position_embeddings\":16}"),
                &info);
    assert_true(info.rope[0].factor == 4 && info.rope[0].original_len == 16);
    assert_true(info.rope[0].beta_fast == 32 && info.rope[0].beta_slow == 1);
    assert_true(info.rope[0].attention_factor > 1.138 && info.rope[0].attention_factor < 1.139);
    assert_int_equal(info.rope[0].truncates, 1);
    read_config(MODEL("phi3", ",\"original_max_position_embeddings\":8,\"rope_scaling\":{\"type\":"
                              "\"yarn\",\"factor\":2,\"original_max_position_embeddings\":16}"),
                &info);
    assert_true(info.rope[0].original_len == 8);
    read_config(MODEL("gemma3_text", ",\"rope_local_base_freq\":50,\"rope_theta\":60,"
                                     "\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":8}"),
                &info);
    assert_true(info.rope[0].theta == 60 && info.rope[1].theta == 50);
    assert_int_equal(info.rope[0].type, QKV_ROPE_LINEAR);
    assert_int_equal(info.rope[1].type, QKV_ROPE_DEFAULT);
    read_config(BARE("modernbert", ",\"rope_parameters\":{\"full_attention\":{\"rope_theta\":5},"
                                   "\"sliding_attention\":null},\"local_rope_theta\":6"),
                &info);
    assert_true(info.rope[0].theta == 5 && info.rope[1].theta == 6);
}

#define ROPE(type, more) ",\"rope_parameters\":{\"rope_type\":\"" type "\"" more "}"

/* What transformers reads in one place, and ignores in another. */
static void test_positions_of_two_kinds(void **state) {
    (void)state;
    qkv_model_info info;
    /* type is not rope_type where the objects have one already */
    read_config(MODEL("gemma3_text", ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":8,"
                                     "\"rope_theta\":70}"),
                &info);
    assert_int_equal(info.rope[0].type, QKV_ROPE_DEFAULT);
    assert_true(info.rope[0].theta == 70 && info.rope[1].theta == 10000);
    read_config(BARE("modernbert", ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":8}"), &info);
    assert_int_equal(info.rope[0].type, QKV_ROPE_DEFAULT);
    assert_int_equal(info.rope[1].type, QKV_ROPE_DEFAULT);
    read_config(MODEL("gemma3_text", ",\"rope_parameters\":{\"full_attention\":{\"type\":"
                                     "\"linear\",\"factor\":8},\"sliding_attention\":{}}"),
                &info);
    assert_int_equal(info.rope[0].type, QKV_ROPE_LINEAR);
    assert_int_equal(info.rope[1].type, QKV_ROPE_DEFAULT);
    /* an original length counts in the objects alone, and truncate beside them alone */
    read_config(MODEL("gemma3_text", ",\"original_max_position_embeddings\":16,\"rope_scaling\":{"
                                     "\"rope_type\":\"yarn\",\"factor\":4,\"truncate\":false}"),
                &info);
    assert_int_equal(info.rope[0].type, QKV_ROPE_YARN);
    assert_true(info.rope[0].original_len == 64);
    assert_int_equal(info.rope[0].truncates, 1);
    read_config(BARE("modernbert", ",\"rope_parameters\":{\"truncate\":false,\"full_attention\":{"
                                   "\"rope_type\":\"yarn\",\"factor\":4},\"sliding_attention\":{"
                                   "\"rope_type\":\"yarn\",\"factor\":4,\"truncate\":true,"
                                   "\"original_max_position_embeddings\":16}}"),
                &info);
    assert_int_equal(info.rope[0].truncates, 0);
    assert_int_equal(info.rope[1].truncates, 0);
    assert_true(info.rope[0].original_len == 64 && info.rope[1].original_len == 16);
    /* where there is one kind, they are the same place, and null is false */
    read_config(MODEL("llama", ROPE("yarn", ",\"factor\":4,\"truncate\":false")), &info);
    assert_int_equal(info.rope[0].truncates, 0);
    read_config(MODEL("llama", ROPE("yarn", ",\"factor\":4,\"truncate\":null")), &info);
    assert_int_equal(info.rope[0].truncates, 0);
}

/* ---- GPT-NeoX -------------------------------------------------------------------------------- */

/* A share of the channels, and how the parts of a block follow each other. */
static void test_gpt_neox(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t turned;
        double theta;
    } rows[] = {
        { BARE("gpt_neox", ""), 2, 10000 },
        { BARE("gpt_neox", ",\"rotary_pct\":1,\"rotary_emb_base\":500"), 8, 500 },
        { BARE("gpt_neox", ",\"rotary_pct\":0.6"), 4, 10000 }, /* 4.8 */
        /* what is in the object goes before; names of others are not read at the top */
        { BARE("gpt_neox", ",\"rotary_pct\":1,\"rotary_emb_base\":5,\"rope_parameters\":{"
                           "\"rope_theta\":9,\"partial_rotary_factor\":0.5}"),
          4, 9 },
        { BARE("gpt_neox", ",\"rotary_pct\":0.75,\"rope_parameters\":{\"rope_type\":\"default\"},"
                           "\"rope_theta\":7,\"partial_rotary_factor\":0.5"),
          6, 10000 },
        { BARE("gpt_neox", ",\"rotary_emb_base\":50,\"rope_parameters\":{\"rope_theta\":9,"
                           "\"partial_rotary_factor\":1},\"rope_scaling\":{\"type\":\"linear\","
                           "\"factor\":2}"),
          2, 50 },
    };
    qkv_model_info info;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        read_config(rows[r].text, &info);
        if (info.rotary_dim != rows[r].turned || info.rope[0].theta != rows[r].theta)
            fail_msg("%s: %d channels, theta %g", rows[r].text, (int)info.rotary_dim,
                     info.rope[0].theta);
        assert_int_equal(info.parallel, 1);
        assert_int_equal(info.rms_norm, 0);
        assert_int_equal(info.n_kv_heads, 6);
        assert_int_equal(info.biases, QKV_BIAS_QKV | QKV_BIAS_OUTPUT | QKV_BIAS_MLP);
    }
    read_config(BARE("gpt_neox", ",\"use_parallel_residual\":false,\"attention_bias\":false,"
                                 "\"num_key_value_heads\":2,\"hidden_act\":\"gelu_new\","
                                 "\"layer_norm_eps\":0.5,\"rms_norm_eps\":0.25"),
                &info);
    assert_int_equal(info.parallel, 0);
    assert_int_equal(info.biases, QKV_BIAS_MLP);
    assert_int_equal(info.n_kv_heads, 6);
    assert_string_equal(info.activation, "gelu_tanh");
    assert_true(info.layer_norm_eps == 0.5);
    read_config(MODEL("llama", ""), &info);
    assert_int_equal(info.rotary_dim, 8);
    assert_int_equal(info.parallel, 0);
    assert_int_equal(info.rms_norm, 1);
}

/* ---- GPT-J ----------------------------------------------------------------------------------- */

static void test_gptj(void **state) {
    (void)state;
    qkv_model_info info;
    read_config("{\"model_type\":\"gptj\"}", &info);
    assert_true(info.kind == QKV_MODEL_DECODER && info.has_lm && info.untied == QKV_UNTIED_HEAD);
    assert_true(info.vocab_size == 50400 && info.hidden == 4096 && info.intermediate == 16384);
    assert_true(info.n_layers == 28 && info.n_heads == 16 && info.head_dim == 256);
    assert_true(info.max_len == 2048 && info.rotary_dim == 64 && info.rotary_neighbours);
    assert_true(info.bos_id == 50256 && info.eos_id == 50256 && info.pad_id == -1);
    assert_true(info.parallel && !info.rms_norm && info.biases == QKV_BIAS_MLP);
    assert_true(info.rope[0].theta == 10000 && info.layer_norm_eps == 1e-5);
    assert_string_equal(info.activation, "gelu_tanh");
    /* an odd head; general names go before; what is of others says nothing */
    read_config("{\"model_type\":\"gptj\",\"n_embd\":10,\"hidden_size\":21,\"n_head\":3,"
                "\"rotary_dim\":6,\"n_inner\":null,\"activation_function\":\"silu\","
                "\"tie_word_embeddings\":true,\"rope_theta\":5,\"use_parallel_residual\":false,"
                "\"rope_parameters\":{\"rope_theta\":5},\"attention_bias\":true}",
                &info);
    assert_true(info.hidden == 21 && info.head_dim == 7 && info.rotary_dim == 6);
    assert_true(info.intermediate == 84 && info.untied == 0 && info.rope[0].theta == 10000);
    assert_true(info.parallel && info.biases == QKV_BIAS_MLP);
    assert_string_equal(info.activation, "silu");
}

/* ---- Others ---------------------------------------------------------------------------------- */

static void test_scores_and_biases(void **state) {
    (void)state;
    qkv_model_info info;
    read_config(MODEL("gemma2", ",\"query_pre_attn_scalar\":16,\"final_logit_softcapping\":null"),
                &info);
    assert_true(info.score_scale == 0.25 && info.score_cap == 50 && info.logit_cap == 0);
    assert_string_equal(info.activation, "gelu_tanh");
    read_config(MODEL("gemma3_text", ",\"attn_logit_softcapping\":5,\"hidden_act\":\"relu\""),
                &info);
    assert_true(info.score_scale == 1.0 / 16 && info.score_cap == 0 && info.logit_cap == 0);
    assert_string_equal(info.activation, "gelu_tanh");
    read_config(MODEL("gemma", ",\"hidden_act\":\"gelu\""), &info);
    assert_string_equal(info.activation, "gelu_tanh");
    read_config(MODEL("llama", ",\"hidden_act\":\"gelu\",\"attention_bias\":true"), &info);
    assert_string_equal(info.activation, "gelu");
    assert_int_equal(info.biases, QKV_BIAS_QKV | QKV_BIAS_OUTPUT);
    read_config(MODEL("smollm3", ",\"mlp_bias\":true"), &info);
    assert_int_equal(info.biases, QKV_BIAS_MLP);
    read_config(MODEL("qwen2", ",\"attention_bias\":false"), &info);
    assert_int_equal(info.biases, QKV_BIAS_QKV);
    read_config(MODEL("mistral", ",\"attention_bias\":true"), &info);
    assert_int_equal(info.biases, 0);
    read_config(BARE("mistral", ",\"num_key_value_heads\":null,\"head_dim\":10"), &info);
    assert_int_equal(info.n_kv_heads, 6);
    assert_int_equal(info.head_dim, 10);
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *text;
        qkv_status status;
        const char *says;
    } rows[] = {
        { MODEL("llama", ",\"head_dim\":9"), QKV_ERR_SHAPE,
          "head_dim = 9 is odd, which rotary positions cannot be" },
        { MODEL("llama", ",\"head_dim\":0"), QKV_ERR_SHAPE, "head_dim = 0 is less than 1" },
        { MODEL("llama", ",\"head_dim\":\"8\""), QKV_ERR_FORMAT,
          "head_dim is a string, must be an integer" },
        { BARE("llama", ",\"num_key_value_heads\":4"), QKV_ERR_SHAPE,
          "num_attention_heads = 6 is not a multiple of num_key_value_heads = 4" },
        { BARE("llama", ",\"num_key_value_heads\":0"), QKV_ERR_SHAPE,
          "num_key_value_heads = 0 is less than 1" },
        { MODEL("llama", ",\"sliding_window\":4"), QKV_ERR_UNSUPPORTED,
          "sliding_window is not supported" },
        { MODEL("llama", TYPES), QKV_ERR_UNSUPPORTED,
          "layer_types has \"sliding_attention\", and there is no window" },
        { MODEL("qwen2", TYPES), QKV_ERR_UNSUPPORTED,
          "layer_types has \"sliding_attention\", and there is no window" },
        { MODEL("mistral", ",\"sliding_window\":0"), QKV_ERR_SHAPE,
          "sliding_window = 0 is less than 1" },
        { MODEL("gemma2", ",\"layer_types\":[" FULL "]"), QKV_ERR_SHAPE,
          "layer_types has 1 entries, there are 6 layers" },
        { MODEL("gemma2", ",\"layer_types\":[1,2,3,4,5,6]"), QKV_ERR_FORMAT,
          "layer_types[0] is neither \"full_attention\" nor \"sliding_attention\"" },
        { MODEL("gemma2", ",\"layer_types\":[" FULL ",\"chunked_attention\"," FULL "," FULL "," FULL
                          "," FULL "]"),
          QKV_ERR_UNSUPPORTED,
          "layer_types[1] is neither \"full_attention\" nor \"sliding_attention\"" },
        { MODEL("gemma2", ",\"use_bidirectional_attention\":true"), QKV_ERR_UNSUPPORTED,
          "use_bidirectional_attention 'true' is not supported" },
        { MODEL("gemma2", ",\"attn_logit_softcapping\":0"), QKV_ERR_FORMAT,
          "attn_logit_softcapping = 0 is not between 1e-6 and 1e9" },
        { MODEL("gemma2", ",\"query_pre_attn_scalar\":-1"), QKV_ERR_FORMAT,
          "query_pre_attn_scalar = -1 is not between 1e-6 and 1e9" },
        { MODEL("gemma2", ",\"query_pre_attn_scalar\":null"), QKV_ERR_FORMAT,
          "query_pre_attn_scalar is null" },
        { MODEL("gemma3_text", ",\"sliding_window_pattern\":0"), QKV_ERR_SHAPE,
          "sliding_window_pattern = 0 is less than 1" },
        { MODEL("smollm3", ",\"no_rope_layers\":[1,1]"), QKV_ERR_SHAPE,
          "no_rope_layers has 2 entries, there are 6 layers" },
        { MODEL("smollm3", ",\"no_rope_layers\":[1,1,2,1,1,1]"), QKV_ERR_FORMAT,
          "no_rope_layers[2] is not 0 or 1" },
        { MODEL("llama", ROPE("longrope", "")), QKV_ERR_UNSUPPORTED,
          "rope_parameters.rope_type 'longrope' is not supported" },
        { MODEL("phi3", ",\"rope_scaling\":{\"type\":\"su\"}"), QKV_ERR_UNSUPPORTED,
          "rope_scaling.type 'su' is not supported" },
        { MODEL("llama", ",\"rope_scaling\":{\"full_attention\":{\"rope_type\":\"linear\"}}"),
          QKV_ERR_UNSUPPORTED,
          "rope_scaling.full_attention is not supported: the model has one kind of positions" },
        { MODEL("gemma3_text", ",\"rope_parameters\":{\"sliding_attention\":{\"rope_theta\":0}}"),
          QKV_ERR_FORMAT,
          "rope_parameters.sliding_attention.rope_theta = 0 is not between 1.001 and 1e+30" },
        { MODEL("llama", ROPE("linear", "")), QKV_ERR_FORMAT, "rope_parameters.factor is missing" },
        { MODEL("llama", ROPE("linear", ",\"factor\":0.5")), QKV_ERR_FORMAT,
          "rope_parameters.factor = 0.5 is not between 1 and 1e+06" },
        { MODEL("llama", ROPE("default", ",\"rope_theta\":0")), QKV_ERR_FORMAT,
          "rope_parameters.rope_theta = 0 is not between 1.001 and 1e+30" },
        { MODEL("llama", ",\"rope_theta\":\"1e4\""), QKV_ERR_FORMAT,
          "rope_theta is a string, must be a number" },
        { MODEL("llama", ROPE("llama3", ",\"factor\":8")), QKV_ERR_FORMAT,
          "rope_parameters.low_freq_factor is missing" },
        { MODEL("llama", ROPE("llama3", ",\"factor\":8,\"low_freq_factor\":4,"
                                        "\"high_freq_factor\":4")),
          QKV_ERR_FORMAT, "rope_parameters.high_freq_factor = 4 is not above low_freq_factor = 4" },
        { MODEL("llama", ROPE("yarn", ",\"factor\":2,\"beta_fast\":0")), QKV_ERR_FORMAT,
          "rope_parameters.beta_fast = 0 is not between 0.001 and 1e+06" },
        { MODEL("phi3", ROPE("yarn", ",\"factor\":2,\"short_factor\":null,\"long_factor\":[1]")),
          QKV_ERR_UNSUPPORTED, "rope_parameters.long_factor is not supported" },
        { MODEL("llama", ROPE("yarn", ",\"factor\":2,\"truncate\":\"no\"")), QKV_ERR_FORMAT,
          "rope_parameters.truncate is a string, must be true or false" },
        { BARE("modernbert", ",\"sliding_window\":-1"), QKV_ERR_FORMAT,
          "sliding_window = -1 is not between 0 and 2147483647" },
        { MODEL("llama", ROPE("default", ",\"partial_rotary_factor\":0.5")), QKV_ERR_UNSUPPORTED,
          "partial_rotary_factor = 0.5 is not supported" },
        { MODEL("phi3", ",\"partial_rotary_factor\":0.75"), QKV_ERR_UNSUPPORTED,
          "partial_rotary_factor = 0.75 is not supported" },
        { MODEL("llama", ",\"rope_parameters\":{\"full_attention\":{\"rope_theta\":5}}"),
          QKV_ERR_UNSUPPORTED,
          "rope_parameters.full_attention is not supported: the model has one kind of positions" },
        { MODEL("llama", ",\"rope_parameters\":[]"), QKV_ERR_FORMAT,
          "rope_parameters is an array, must be an object" },
        { MODEL("gemma3_text", ",\"rope_parameters\":{\"full_attention\":{}},\"rope_scaling\":"
                               "{\"rope_type\":\"linear\",\"factor\":8}"),
          QKV_ERR_UNSUPPORTED,
          "rope_scaling beside rope_parameters.full_attention is not supported" },
        { BARE("gpt_neox", ",\"rotary_pct\":0.2"), QKV_ERR_UNSUPPORTED,
          "rotary_pct, or partial_rotary_factor, = 0.2 turns 1 of 8 channels of a head, which is no "
          "even number above 0" },
        { BARE("gpt_neox", ",\"rotary_pct\":0"), QKV_ERR_UNSUPPORTED,
          "rotary_pct, or partial_rotary_factor, = 0 turns 0 of 8 channels of a head, which is no "
          "even number above 0" },
        { BARE("gpt_neox", ",\"rotary_pct\":1.5"), QKV_ERR_FORMAT,
          "rotary_pct = 1.5 is not between 0 and 1" },
        { BARE("gpt_neox", ",\"rotary_pct\":null"), QKV_ERR_FORMAT, "rotary_pct is null" },
        { BARE("gpt_neox", ",\"rotary_emb_base\":null"), QKV_ERR_FORMAT,
          "rotary_emb_base is null" },
        { BARE("gpt_neox", ",\"rotary_emb_base\":1"), QKV_ERR_FORMAT,
          "rotary_emb_base = 1 is not between 1.001 and 1e+30" },
        { BARE("gpt_neox", ROPE("default", ",\"partial_rotary_factor\":null")), QKV_ERR_FORMAT,
          "rope_parameters.partial_rotary_factor is null" },
        { BARE("gpt_neox", ROPE("default", ",\"partial_rotary_factor\":-1")), QKV_ERR_FORMAT,
          "rope_parameters.partial_rotary_factor = -1 is not between 0 and 1" },
        { BARE("gpt_neox", ",\"head_dim\":10"), QKV_ERR_SHAPE,
          "head_dim = 10 is not 8, hidden_size / num_attention_heads" },
        { BARE("gpt_neox", ",\"use_parallel_residual\":1"), QKV_ERR_FORMAT,
          "use_parallel_residual is an integer, must be true or false" },
        { BARE("gpt_neox", ",\"sliding_window\":4"), QKV_ERR_UNSUPPORTED,
          "sliding_window is not supported" },
        { GPTJ(",\"rotary_dim\":3"), QKV_ERR_SHAPE,
          "rotary_dim = 3 is odd, or above 6, the channels of a head" },
        { GPTJ(",\"rotary_dim\":8"), QKV_ERR_SHAPE,
          "rotary_dim = 8 is odd, or above 6, the channels of a head" },
        { GPTJ(",\"rotary_dim\":0"), QKV_ERR_SHAPE, "rotary_dim = 0 is less than 1" },
        { GPTJ(",\"rotary_dim\":null"), QKV_ERR_FORMAT, "rotary_dim is null" },
        { GPTJ(",\"rotary_dim\":4,\"hidden_size\":25"), QKV_ERR_SHAPE,
          "n_embd = 25 is not a multiple of n_head = 4" },
        { GPTJ(",\"rotary_dim\":4,\"sliding_window\":3"), QKV_ERR_UNSUPPORTED,
          "sliding_window is not supported" },
        { GPTJ(""), QKV_ERR_SHAPE, "rotary_dim = 64 is odd, or above 6, the channels of a head" },
        { BARE("modernbert", ",\"norm_bias\":true"), QKV_ERR_UNSUPPORTED,
          "norm_bias 'true' is not supported" },
        { BARE("modernbert", ",\"classifier_pooling\":\"max\""), QKV_ERR_UNSUPPORTED,
          "classifier_pooling 'max' is not supported" },
        { BARE("modernbert", ",\"problem_type\":\"ranking\""), QKV_ERR_UNSUPPORTED,
          "problem_type 'ranking' is not supported" },
        { BARE("modernbert",
               ",\"num_labels\":3,\"architectures\":[\"ModernBertForQuestionAnswering\"]"),
          QKV_ERR_UNSUPPORTED,
          "3 labels of a model that answers questions, which has 2: an answer begins, and ends" },
        { BARE("modernbert", ",\"num_labels\":0"), QKV_ERR_SHAPE, "num_labels = 0 is less than 1" },
        { BARE("modernbert", ",\"id2label\":[\"a\"]"), QKV_ERR_FORMAT,
          "id2label is an array, must be an object" },
        { BARE("modernbert", ",\"decoder_bias\":false"), QKV_ERR_UNSUPPORTED,
          "decoder_bias 'false' is not supported" },
        { BARE("modernbert", ",\"head_dim\":10"), QKV_ERR_SHAPE,
          "head_dim = 10 is not 8, hidden_size / num_attention_heads" },
        { BARE("modernbert", ",\"num_key_value_heads\":2"), QKV_ERR_SHAPE,
          "num_key_value_heads = 2 is not num_attention_heads = 6" },
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        qkv_model_info info;
        qkv_error error = { QKV_OK, "" };
        const qkv_status got =
            qkvi_config_read("c", rows[r].text, strlen(rows[r].text), &info, &error);
        if (got != rows[r].status || strncmp(error.message, "c: ", 3) != 0 ||
            strcmp(error.message + 3, rows[r].says) != 0)
            fail_msg("%s: %s \"%s\", expected %s \"%s\"", rows[r].text, qkv_status_name(got),
                     error.message, qkv_status_name(rows[r].status), rows[r].says);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_absent_fields),     cmocka_unit_test(test_layers),
        cmocka_unit_test(test_positions),         cmocka_unit_test(test_positions_of_two_kinds),
        cmocka_unit_test(test_gpt_neox),          cmocka_unit_test(test_gptj),
        cmocka_unit_test(test_scores_and_biases), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests_name("store_rotary", tests, NULL, NULL);
}
