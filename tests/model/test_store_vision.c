/*
 * config.json of models that read images, and of CLIP: what an absent field means, towers, and
 * every field that is refused, with its message. Sizes and defaults are those of transformers 5
 * (models/<type>/configuration_<type>.py).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/config/config.h"

static qkv_model_info read_config(const char *text) {
    qkv_model_info info;
    qkv_error error;
    if (qkvi_config_read("c", text, strlen(text), &info, &error) != QKV_OK)
        fail_msg("%s: %s", text, error.message);
    return info;
}

typedef struct defaults {
    const char *type;
    int64_t hidden, layers, heads, wide, size, side, prefix, registers;
    double eps;
    const char *activation;
} defaults;

static void test_defaults(void **state) {
    static const defaults rows[] = {
        { "vit", 768, 12, 12, 3072, 224, 16, 1, 0, 1e-12, "gelu" },
        { "deit", 768, 12, 12, 3072, 224, 16, 2, 0, 1e-12, "gelu" },
        { "dinov2", 768, 12, 12, 3072, 224, 14, 1, 0, 1e-6, "gelu" },
        { "dinov2_with_registers", 768, 12, 12, 3072, 224, 16, 5, 4, 1e-6, "gelu" },
        { "dinov3_vit", 384, 12, 6, 1536, 224, 16, 1, 0, 1e-5, "gelu" },
        { "siglip_vision_model", 768, 12, 12, 3072, 224, 16, 0, 0, 1e-6, "gelu_tanh" },
        { "clip_vision_model", 768, 12, 12, 3072, 224, 32, 1, 0, 1e-5, "quick_gelu" },
    };
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        char text[64];
        const defaults *const d = &rows[r];
        snprintf(text, sizeof text, "{\"model_type\": \"%s\"}", d->type);
        const qkv_model_info info = read_config(text);
        const int64_t n = d->size / d->side;
        assert_string_equal(info.architecture, d->type);
        assert_int_equal(info.kind, QKV_MODEL_ENCODER);
        assert_int_equal(info.hidden, d->hidden);
        assert_int_equal(info.n_layers, d->layers);
        assert_int_equal(info.n_heads, d->heads);
        assert_int_equal(info.intermediate, d->wide);
        assert_int_equal(info.image_height, d->size);
        assert_int_equal(info.image_width, d->size);
        assert_int_equal(info.patch_height, d->side);
        assert_int_equal(info.n_prefix, d->prefix);
        assert_int_equal(info.n_registers, d->registers);
        assert_int_equal(info.max_len, d->prefix + n * n);
        assert_true(info.layer_norm_eps == d->eps);
        assert_string_equal(info.activation, d->activation);
        assert_int_equal(info.vocab_size, 0);
        assert_int_equal(info.has_lm, 0);
    }
}

static void test_towers(void **state) {
    static const char text[] =
        "{\"model_type\": \"clip\", \"projection_dim\": 9, \"text_config\": {\"hidden_size\": 16,"
        "\"num_attention_heads\": 2, \"projection_dim\": 7}, \"vision_config\": {\"image_size\": 8,"
        "\"patch_size\": 4}, \"vision_config_dict\": {\"patch_size\": 2}}";
    qkv_model_info images;
    qkv_error error;
    bool has;
    (void)state;
    const qkv_model_info info = read_config(text);
    assert_string_equal(info.architecture, "clip");
    assert_int_equal(info.kind, QKV_MODEL_DECODER);
    assert_int_equal(info.has_lm, 0);
    assert_int_equal(info.hidden, 16);
    assert_int_equal(info.vocab_size, 49408);
    assert_int_equal(info.max_len, 77);
    assert_int_equal(info.eos_id, 49407);
    assert_int_equal(info.joint_dim, 9);
    assert_int_equal(info.patch_height, 0);
    assert_int_equal(qkvi_config_read_images("c", text, strlen(text), &has, &images, &error),
                     QKV_OK);
    assert_true(has);
    assert_string_equal(images.architecture, "clip_vision_model");
    assert_int_equal(images.patch_height, 2);
    assert_int_equal(images.max_len, 17);
    assert_int_equal(images.joint_dim, 9);
}

/* SigLIP's texts are padded; what is pooled of an image is in the space of both as it is. */
static void test_siglip(void **state) {
    static const char text[] =
        "{\"model_type\": \"siglip\", \"text_config\": {\"hidden_size\": 16, \"num_attention_heads\": 2,"
        "\"projection_size\": 24, \"eos_token_id\": 49407}, \"vision_config\": {\"hidden_size\": 24,"
        "\"num_attention_heads\": 2}}";
    static const char classes[] =
        "{\"model_type\": \"siglip\", \"architectures\": [\"SiglipForImageClassification\"]}";
    (void)state;
    qkv_model_info info = read_config(text);
    assert_string_equal(info.architecture, "siglip");
    assert_int_equal(info.kind, QKV_MODEL_ENCODER);
    assert_int_equal(info.vocab_size, 32000);
    assert_int_equal(info.max_len, 64);
    assert_int_equal(info.padded_len, 64);
    assert_int_equal(info.joint_dim, 24);
    assert_int_equal(info.match_each, 1);
    assert_int_equal(info.pad_id, 1);
    info = read_config("{\"model_type\": \"siglip_text_model\"}");
    assert_int_equal(info.joint_dim, 768);
    info = read_config(classes);
    assert_string_equal(info.architecture, "siglip_vision_model");
    assert_int_equal(info.joint_dim, 0);
}

static void test_lone_towers(void **state) {
    static const char lone[] = "{\"model_type\": \"clip_text_model\", \"eos_token_id\": 2}";
    static const char classes[] =
        "{\"model_type\": \"clip\", \"architectures\": [\"CLIPForImageClassification\"],"
        "\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"2\": \"c\"}}";
    qkv_model_info info;
    qkv_error error;
    bool has;
    (void)state;
    assert_int_equal(qkvi_config_read_images("c", lone, strlen(lone), &has, &info, &error), QKV_OK);
    assert_false(has);
    info = read_config(lone);
    assert_int_equal(info.eos_id, 2);
    info = read_config(classes);
    assert_string_equal(info.architecture, "clip_vision_model");
    assert_int_equal(info.n_labels, 3);
}

static void test_fields(void **state) {
    (void)state;
    const qkv_model_info gated =
        read_config("{\"model_type\": \"dinov2\", \"hidden_size\": 40, \"num_attention_heads\": 4,"
                    "\"mlp_ratio\": 3, \"use_swiglu_ffn\": true, \"image_size\": [30, 31],"
                    "\"patch_size\": 10, \"qkv_bias\": false, \"hidden_act\": \"relu\"}");
    assert_int_equal(gated.intermediate, 80); /* 40 · 3 · 2/3 */
    assert_string_equal(gated.activation, "silu");
    assert_int_equal(gated.gated, 1);
    assert_int_equal(gated.max_len, 10);
    assert_int_equal(gated.biases, QKV_BIAS_OUTPUT | QKV_BIAS_MLP);
    const qkv_model_info turned =
        read_config("{\"model_type\": \"dinov3_vit\", \"image_size\": [32, 64], \"key_bias\": true,"
                    "\"proj_bias\": false, \"rope_theta\": 50, \"use_gated_mlp\": true}");
    assert_int_equal(turned.max_len, 9);
    assert_int_equal(turned.biases, QKV_BIAS_QKV | QKV_BIAS_MLP);
    assert_true(turned.rope[0].theta == 50);
    assert_int_equal(read_config("{\"model_type\": \"dinov3_vit\"}").biases,
                     QKV_BIAS_QKV | QKV_BIAS_NO_KEY | QKV_BIAS_OUTPUT | QKV_BIAS_MLP);
    assert_int_equal(read_config("{\"model_type\": \"vit\", \"pooler_output_size\": null}").hidden,
                     768);
}

typedef struct refusal {
    const char *fields; /* behind model_type */
    qkv_status status;
    const char *says;
} refusal;

static void expect(const char *type, const refusal *r) {
    char text[400];
    qkv_model_info info;
    qkv_error error = { QKV_OK, "" };
    snprintf(text, sizeof text, "{\"model_type\": \"%s\", %s}", type, r->fields);
    const qkv_status got = qkvi_config_read("c", text, strlen(text), &info, &error);
    if (got != r->status || !strstr(error.message, r->says))
        fail_msg("%s: %s \"%s\", expected %s \"%s\"", text, qkv_status_name(got), error.message,
                 qkv_status_name(r->status), r->says);
}

static void test_refusals(void **state) {
    static const refusal vit[] = {
        { "\"num_channels\": 1", QKV_ERR_UNSUPPORTED, "c: num_channels = 1 is not 3" },
        { "\"num_channels\": \"3\"", QKV_ERR_FORMAT, "num_channels" },
        { "\"image_size\": 0", QKV_ERR_SHAPE, "c: image_size is less than 1" },
        { "\"image_size\": -4", QKV_ERR_SHAPE, "c: image_size is less than 1" },
        { "\"image_size\": [8, 8, 8]", QKV_ERR_LIMIT, "image_size" },
        { "\"image_size\": {}", QKV_ERR_FORMAT, "image_size" },
        { "\"image_size\": [64, null]", QKV_ERR_FORMAT, "image_size" },
        { "\"image_size\": 40000", QKV_ERR_LIMIT, "c: image_size = 40000 is more than 32768" },
        { "\"image_size\": 32768, \"patch_size\": 1", QKV_ERR_LIMIT,
          "c: an image has 1073741824 patches, more than 1048576" },
        { "\"image_size\": 8", QKV_ERR_SHAPE, "c: patch_size is larger than image_size" },
        { "\"image_size\": [32, 64]", QKV_ERR_UNSUPPORTED, "make 2 by 4 patches" },
        { "\"patch_size\": [16, 8]", QKV_ERR_UNSUPPORTED, "make 14 by 28 patches" },
        { "\"patch_size\": \"16\"", QKV_ERR_FORMAT, "patch_size" },
        { "\"hidden_act\": \"mish\"", QKV_ERR_UNSUPPORTED, "c: hidden_act 'mish'" },
        { "\"pooler_act\": \"relu\"", QKV_ERR_UNSUPPORTED, "c: pooler_act 'relu'" },
        { "\"pooler_output_size\": 5", QKV_ERR_UNSUPPORTED,
          "c: pooler_output_size = 5 is not hidden_size = 768" },
        { "\"qkv_bias\": 1", QKV_ERR_FORMAT, "qkv_bias" },
        { "\"quantization_config\": {}", QKV_ERR_UNSUPPORTED, "c: quantization_config" },
        { "\"architectures\": [\"ViTForMaskedImageModeling\"]", QKV_ERR_UNSUPPORTED,
          "c: a model for masked images is not supported" },
        { "\"num_attention_heads\": 7", QKV_ERR_SHAPE, "is not a multiple of" },
    };
    static const refusal dino2[] = {
        { "\"mlp_ratio\": 0", QKV_ERR_LIMIT, "c: mlp_ratio = 0 is not above 0 and at most 64" },
        { "\"mlp_ratio\": 1e300", QKV_ERR_LIMIT, "mlp_ratio" },
        { "\"mlp_ratio\": \"4\"", QKV_ERR_FORMAT, "mlp_ratio" },
        { "\"use_swiglu_ffn\": 1", QKV_ERR_FORMAT, "use_swiglu_ffn" },
        { "\"num_register_tokens\": 5000", QKV_ERR_LIMIT, "num_register_tokens" },
        { "\"num_register_tokens\": -1", QKV_ERR_FORMAT, "num_register_tokens" },
    };
    static const refusal dino3[] = {
        { "\"query_bias\": false", QKV_ERR_UNSUPPORTED, "query_bias and value_bias must be alike" },
        { "\"hidden_size\": 36", QKV_ERR_SHAPE, "c: a head has 6 channels" },
        { "\"rope_theta\": 1", QKV_ERR_FORMAT, "c: rope_theta = 1 is not above 1" },
        { "\"rope_theta\": true", QKV_ERR_FORMAT, "rope_theta" },
    };
    static const refusal clip[] = {
        { "\"text_config\": 3", QKV_ERR_FORMAT, "text_config" },
        { "\"text_config\": {\"vocab_size\": 0}", QKV_ERR_SHAPE, "c: vocab_size = 0" },
        { "\"projection_dim\": 0", QKV_ERR_SHAPE, "c: projection_dim = 0 is less than 1" },
        { "\"text_config_dict\": []", QKV_ERR_FORMAT, "text_config_dict" },
        { "\"text_config\": {\"quantization_config\": {}}", QKV_ERR_UNSUPPORTED,
          "quantization_config" },
        { "\"quantization_config\": {}", QKV_ERR_UNSUPPORTED, "quantization_config" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof vit / sizeof *vit; i++) expect("vit", &vit[i]);
    for (size_t i = 0; i < sizeof dino2 / sizeof *dino2; i++)
        expect("dinov2_with_registers", &dino2[i]);
    for (size_t i = 0; i < sizeof dino3 / sizeof *dino3; i++) expect("dinov3_vit", &dino3[i]);
    for (size_t i = 0; i < sizeof clip / sizeof *clip; i++) expect("clip", &clip[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults), cmocka_unit_test(test_towers),
        cmocka_unit_test(test_siglip),   cmocka_unit_test(test_lone_towers),
        cmocka_unit_test(test_fields),   cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
