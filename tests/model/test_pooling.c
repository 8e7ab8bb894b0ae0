/*
 * modules.json and the modules that it names: every pooling in both spellings, layers with weights,
 * lengths, prompts, absent fields, refusals and their messages. Folders are not trusted, so a path
 * that leaves the folder is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "files/safetensors.h"
#include "limits/temporary.h"
#include "model/config/recipe.h"

static char folder[TEMPORARY_PATH];

static void put(const char *name, const char *text) {
    char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!text) {
        unlink(path);
        return;
    }
    FILE *const out = fopen(path, "wb");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static qkvi_recipe recipe; /* of the last folder */
static int64_t tokenizer_len = 200;

static qkv_status read_folder(const char *modules, const char *pooling, qkv_model_info *info,
                              qkv_error *error) {
    *info =
        (qkv_model_info){ .max_len = 100, .hidden = 2, .pooled_dim = 2, .architecture = "bert" };
    put("modules.json", modules);
    put("1_Pooling/config.json", pooling);
    qkvi_recipe_free(&recipe);
    return qkvi_recipe_read(folder, tokenizer_len, info, &recipe, error);
}

#define MODULE(kind, path)                                                                         \
    "{\"idx\":0,\"name\":\"0\",\"path\":\"" path "\",\"type\":\"sentence_transformers.b." kind "\"}"
#define TWO     MODULE("Transformer", "") "," MODULE("Pooling", "1_Pooling")
#define MODULES "[" TWO "]"
#define THREE   "[" TWO "," MODULE("Normalize", "2_Normalize") "]"
#define MEAN    "{\"pooling_mode\":\"mean\"}"

static void expect(const char *modules, const char *pooling, qkv_pooling wanted, int normalizes) {
    qkv_model_info info;
    qkv_error error;
    if (read_folder(modules, pooling, &info, &error) != QKV_OK) fail_msg("%s", error.message);
    if (info.pooling != wanted) fail_msg("%s: pooling %d", pooling, (int)info.pooling);
    assert_int_equal(info.normalizes, normalizes);
}

/* says: what follows "FOLDER/" */
static void refuse(const char *modules, const char *pooling, qkv_status status, const char *says) {
    qkv_model_info info;
    qkv_error error = { QKV_OK, "" };
    char message[600];
    const qkv_status got = read_folder(modules, pooling, &info, &error);
    snprintf(message, sizeof message, "%s/%s", folder, says);
    if (got != status || strcmp(error.message, message) != 0)
        fail_msg("%s \"%s\", expected %s \"%s\"", qkv_status_name(got), error.message,
                 qkv_status_name(status), message);
}

static void test_kinds(void **state) {
    static const char *const names[] = { "mean",         "cls",      "max", "mean_sqrt_len_tokens",
                                         "weightedmean", "lasttoken" };
    static const char *const switches[] = { "mean_tokens",         "cls_token",
                                            "max_tokens",          "mean_sqrt_len_tokens",
                                            "weightedmean_tokens", "lasttoken" };
    char text[128];
    (void)state;
    for (int i = 0; i < 6; i++) {
        snprintf(text, sizeof text, "{\"pooling_mode\":\"%s\"}", names[i]);
        expect(MODULES, text, (qkv_pooling)(QKV_POOLING_MEAN + i), 0);
        snprintf(text, sizeof text, "{\"pooling_mode_%s\":true,\"pooling_mode_%s\":false}",
                 switches[i], switches[(i + 1) % 6]);
        expect(MODULES, text, (qkv_pooling)(QKV_POOLING_MEAN + i), 0);
    }
    expect(THREE, "{\"pooling_mode\":\"max\"}", QKV_POOLING_MAX, 1);
    expect(NULL, NULL, QKV_POOLING_MEAN, 0);
    expect(MODULES, "{}", QKV_POOLING_MEAN, 0); /* no switch is on */
    expect(MODULES, "{\"pooling_mode_mean_tokens\":false}", QKV_POOLING_MEAN, 0);
}

/* Side by side: switches in one order, names in that of the list. */
static void test_several(void **state) {
    (void)state;
    expect(MODULES, "{\"pooling_mode\":[\"mean\",\"cls\",\"mean\"],\"include_prompt\":false}",
           QKV_POOLING_MEAN, 0);
    assert_int_equal(recipe.n_poolings, 3);
    assert_int_equal(recipe.poolings[1], QKV_POOLING_CLS);
    assert_int_equal(recipe.dim, 6);
    assert_true(recipe.leaves_prompt);
    expect(MODULES, "{\"pooling_mode_mean_tokens\":true,\"pooling_mode_cls_token\":true}",
           QKV_POOLING_CLS, 0);
    assert_int_equal(recipe.n_poolings, 2);
    assert_int_equal(recipe.poolings[1], QKV_POOLING_MEAN);
    assert_false(recipe.leaves_prompt);
    expect(MODULES, "{\"pooling_mode\":\"mean\",\"include_prompt\":null}", QKV_POOLING_MEAN, 0);
    assert_true(recipe.leaves_prompt);
}

/* The file of sentence-transformers goes before the tokenizer's; neither goes beyond the model. */
static void test_length(void **state) {
    qkv_model_info info;
    qkv_error error;
    (void)state;
    static const struct {
        const char *text;
        int64_t tokenizer, wanted;
    } cases[] = {
        { NULL, 200, 100 },
        { NULL, 60, 60 },
        { "{}", 60, 60 },
        { "{\"max_seq_length\":null}", 60, 60 },
        { "{\"max_seq_length\":7}", 60, 7 },
        { "{\"max_seq_length\":80}", 60, 80 },
        { "{\"max_seq_length\":101}", 60, 100 },
        { "{\"max_seq_length\":1000000000000000019884624838656}", 60, 100 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put("sentence_bert_config.json", cases[i].text);
        tokenizer_len = cases[i].tokenizer;
        if (read_folder(MODULES, MEAN, &info, &error) != QKV_OK) fail_msg("%s", error.message);
        assert_int_equal(info.sentence_len, cases[i].wanted);
    }
    put("sentence_bert_config.json", NULL);
    put("sentence_roberta_config.json", "{\"max_seq_length\":9,\"do_lower_case\":true}");
    assert_int_equal(read_folder(MODULES, MEAN, &info, &error), QKV_OK);
    assert_int_equal(info.sentence_len, 9);
    assert_true(recipe.lower_case);
    assert_int_equal(read_folder(NULL, NULL, &info, &error), QKV_OK); /* of no sentence model */
    assert_int_equal(info.sentence_len, 60);
    put("sentence_roberta_config.json", NULL);
    tokenizer_len = 200;
}

/* ---- Prompts --------------------------------------------------------------------------------- */

static void test_prompts(void **state) {
    qkv_model_info info;
    qkv_error error;
    (void)state;
    assert_int_equal(read_folder(NULL, NULL, &info, &error), QKV_OK);
    assert_int_equal(recipe.n_prompts, 2);
    assert_int_equal(read_folder(MODULES, MEAN, &info, &error), QKV_OK);
    assert_int_equal(recipe.n_prompts, 2); /* every model has these, of no text */
    assert_string_equal(recipe.prompts[0].name, "query");
    assert_string_equal(recipe.prompts[1].text, "");
    assert_int_equal(recipe.default_prompt, -1);
    put("config_sentence_transformers.json",
        "{\"prompts\":{\"p\":\"passage: \",\"query\":null},\"default_prompt_name\":\"p\","
        "\"truncate_dim\":1,\"similarity_fn_name\":\"dot\"}");
    assert_int_equal(read_folder(MODULES, MEAN, &info, &error), QKV_OK);
    assert_int_equal(recipe.n_prompts, 3);
    assert_string_equal(recipe.prompts[recipe.default_prompt].text, "passage: ");
    assert_int_equal(info.sentence_dim, 1);
    put("config_sentence_transformers.json", NULL);
}

/* ---- Layers ---------------------------------------------------------------------------------- */

static void put_weights(const char *name, int n, qkvi_stored_out *tensors) {
    char path[400];
    qkv_error error;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (qkvi_safetensors_write(path, tensors, n, NULL, NULL, &error) != QKV_OK)
        fail_msg("%s", error.message);
}

#define DENSE                                                                                      \
    "\"in_features\":2,\"out_features\":3,\"activation_function\":"                                \
    "\"torch.nn.modules.activation.ReLU\""
#define FOUR "[" TWO "," MODULE("Dense", "2_Dense") "," MODULE("LayerNorm", "3_LayerNorm") "]"

static void test_layers(void **state) {
    static float numbers[6] = { 1, 2, 3, 4, 5, 6 };
    qkvi_stored_out dense[] = {
        { .name = "linear.weight",
          .type = QKVI_F32,
          .rank = 2,
          .shape = { 3, 2 },
          .data = numbers },
        { .name = "linear.bias", .type = QKVI_F32, .rank = 1, .shape = { 3 }, .data = numbers },
    };
    qkvi_stored_out norm[] = {
        { .name = "norm.weight", .type = QKVI_F32, .rank = 1, .shape = { 3 }, .data = numbers },
        { .name = "norm.bias", .type = QKVI_F32, .rank = 1, .shape = { 3 }, .data = numbers },
    };
    qkv_model_info info;
    qkv_error error;
    (void)state;
    put_weights("2_Dense/model.safetensors", 2, dense);
    put_weights("3_LayerNorm/model.safetensors", 2, norm);
    put("2_Dense/config.json", "{" DENSE "}");
    put("3_LayerNorm/config.json", "{\"dimension\":3}");
    if (read_folder(FOUR, MEAN, &info, &error) != QKV_OK) fail_msg("%s", error.message);
    assert_int_equal(recipe.n_steps, 2);
    assert_int_equal(recipe.steps[0].act, QKVI_DENSE_RELU);
    assert_true(recipe.steps[0].weight[5] == 6 && recipe.steps[0].bias[2] == 3);
    assert_true(recipe.steps[1].weight[2] == 3);
    assert_int_equal(info.sentence_dim, 3);
    assert_int_equal(info.sentence_layers, 2);

    put("2_Dense/config.json", "{" DENSE ",\"bias\":false}");
    refuse(FOUR, MEAN, QKV_ERR_UNSUPPORTED,
           "2_Dense/model.safetensors: tensor linear.bias is none of the module");
    put("2_Dense/config.json", "{" DENSE ",\"use_residual\":true}");
    refuse(FOUR, MEAN, QKV_ERR_FORMAT,
           "2_Dense/model.safetensors: tensor residual.weight is missing");
    put("2_Dense/config.json", "{" DENSE ",\"module_input_name\":\"token_embeddings\"}");
    refuse(FOUR, MEAN, QKV_ERR_UNSUPPORTED,
           "2_Dense/config.json: module_input_name 'token_embeddings' is not supported");
    put("2_Dense/config.json", "{\"in_features\":2,\"out_features\":4}");
    refuse(FOUR, MEAN, QKV_ERR_SHAPE,
           "2_Dense/model.safetensors: tensor linear.weight is [3,2], must be [4,2]");
    put("2_Dense/config.json", "{\"in_features\":5,\"out_features\":4}");
    refuse(FOUR, MEAN, QKV_ERR_SHAPE,
           "2_Dense/config.json: in_features = 5, but 2 numbers come in");
    put("2_Dense/config.json",
        "{\"in_features\":2,\"out_features\":3,\"activation_function\":\"torch.nn.ELU\"}");
    refuse(FOUR, MEAN, QKV_ERR_UNSUPPORTED,
           "2_Dense/config.json: activation_function 'torch.nn.ELU' is not supported");
    put("2_Dense/config.json",
        "{\"in_features\":2,\"out_features\":3,\"activation_function\":\"own.ReLU\"}");
    refuse(FOUR, MEAN, QKV_ERR_UNSUPPORTED,
           "2_Dense/config.json: activation_function 'own.ReLU' is not supported");
    put("2_Dense/config.json", NULL);
    refuse(FOUR, MEAN, QKV_ERR_FORMAT, "2_Dense/config.json: the module's file is missing");
    put("2_Dense/config.json", "{" DENSE "}");
    put("3_LayerNorm/config.json", "{\"dimension\":4}");
    refuse(FOUR, MEAN, QKV_ERR_SHAPE,
           "3_LayerNorm/config.json: dimension = 4, but 3 numbers come in");
    put("2_Dense/model.safetensors", NULL);
    refuse(FOUR, MEAN, QKV_ERR_IO,
           "2_Dense/model.safetensors is not there; of a pytorch_model.bin, a pickle file, "
           "tools/bin2safetensors.py makes it");
}

static void test_refusals(void **state) {
    (void)state;
    refuse("{}", NULL, QKV_ERR_FORMAT, "modules.json: the JSON is not an array");
    refuse("[1]", NULL, QKV_ERR_FORMAT, "modules.json: [0] is not an object");
    refuse("[{}]", NULL, QKV_ERR_FORMAT, "modules.json: [0].type is missing");
    refuse("[]", NULL, QKV_ERR_UNSUPPORTED,
           "modules.json: there is no Pooling, so nothing makes a vector");
    refuse("[" MODULE("Router", "") "]", NULL, QKV_ERR_UNSUPPORTED,
           "modules.json: module 'sentence_transformers.b.Router' is not supported");
    refuse("[{\"type\":\"own.Pooling\",\"path\":\"1_Pooling\"}]", NULL, QKV_ERR_UNSUPPORTED,
           "modules.json: module 'own.Pooling' is not supported");
    refuse("[" MODULE("Transformer", "0_Transformer") "]", NULL, QKV_ERR_UNSUPPORTED,
           "modules.json: path '0_Transformer' is not supported");
    refuse("[" MODULE("Pooling", "1_Pooling") "]", MEAN, QKV_ERR_UNSUPPORTED,
           "modules.json: module 'sentence_transformers.b.Pooling' comes before a Transformer");
    refuse("[" TWO "," MODULE("Pooling", "1_Pooling") "]", MEAN, QKV_ERR_UNSUPPORTED,
           "modules.json: module 'sentence_transformers.b.Pooling' is there twice, which is not "
           "supported");
    refuse("[" MODULE("Transformer", "") "," MODULE("Dense", "2_Dense") "]", NULL,
           QKV_ERR_UNSUPPORTED,
           "modules.json: module 'sentence_transformers.b.Dense' comes before a Pooling, which is "
           "not supported");
    refuse("[" MODULE("Pooling", "../other") "]", NULL, QKV_ERR_UNSUPPORTED,
           "modules.json: path '../other' is not supported");
    refuse("[" MODULE("Pooling", "..") "]", NULL, QKV_ERR_UNSUPPORTED,
           "modules.json: path '..' is not supported");
    refuse("[" MODULE("Pooling", "") "]", NULL, QKV_ERR_UNSUPPORTED,
           "modules.json: path '' is not supported");
    refuse(MODULES, NULL, QKV_ERR_FORMAT, "1_Pooling/config.json: the pooling's file is missing");
    refuse(MODULES, "[]", QKV_ERR_FORMAT, "1_Pooling/config.json: the JSON is not an object");
    refuse(MODULES, "{\"pooling_mode\":\"sum\"}", QKV_ERR_UNSUPPORTED,
           "1_Pooling/config.json: pooling_mode 'sum' is not supported");
    refuse(MODULES, "{\"pooling_mode\":7}", QKV_ERR_FORMAT,
           "1_Pooling/config.json: pooling_mode is neither a name nor a list of names");
    refuse(MODULES, "{\"pooling_mode\":[]}", QKV_ERR_LIMIT,
           "1_Pooling/config.json: pooling_mode has 0 names, must be 1 to 6");
    put("2_Normalize/config.json", "{\"module_input_name\":\"token_embeddings\"}");
    refuse(THREE, MEAN, QKV_ERR_UNSUPPORTED,
           "2_Normalize/config.json: module_input_name 'token_embeddings' is not supported");
    put("2_Normalize/config.json", "{\"module_input_name\":null}");
    refuse(THREE, MEAN, QKV_ERR_UNSUPPORTED,
           "2_Normalize/config.json: module_input_name 'null' is not supported");
    put("2_Normalize/config.json", "{\"module_output_name\":\"other\"}");
    refuse(THREE, MEAN, QKV_ERR_UNSUPPORTED,
           "2_Normalize/config.json: module_output_name 'other' is not supported");
    put("2_Normalize/config.json", "{\"module_output_name\":0}");
    refuse(THREE, MEAN, QKV_ERR_FORMAT,
           "2_Normalize/config.json: module_output_name is an integer, must be a string");
    put("2_Normalize/config.json", NULL);
}

static void refuse_config(const char *name, const char *text, qkv_status status, const char *says) {
    char message[300];
    put(name, text);
    snprintf(message, sizeof message, "%s: %s", name, says);
    refuse(MODULES, MEAN, status, message);
    put(name, NULL);
}

static void test_refused_configs(void **state) {
    static const char bert[] = "sentence_bert_config.json";
    static const char own[] = "config_sentence_transformers.json";
    (void)state;
    refuse_config(bert, "[]", QKV_ERR_FORMAT, "the JSON is not an object");
    refuse_config(bert, "{\"max_seq_length\":0}", QKV_ERR_FORMAT,
                  "max_seq_length = 0 is less than 1");
    refuse_config(bert, "{\"max_seq_length\":-1}", QKV_ERR_FORMAT,
                  "max_seq_length = -1 is not between 0 and 2147483647");
    refuse_config(bert, "{\"transformer_task\":\"fill-mask\"}", QKV_ERR_UNSUPPORTED,
                  "transformer_task 'fill-mask' is not supported");
    refuse_config(bert, "{\"processing_kwargs\":{\"text\":{}}}", QKV_ERR_UNSUPPORTED,
                  "processing_kwargs is not empty, which is not supported");
    refuse_config(bert, "{\"modality_config\":{\"text\":{\"method\":\"encode\"}}}",
                  QKV_ERR_UNSUPPORTED, "method 'encode' is not supported");
    refuse_config(bert, "{\"modality_config\":{\"image\":{}}}", QKV_ERR_UNSUPPORTED,
                  "modality_config 'without text' is not supported");
    refuse_config(bert, "{\"tokenizer_name_or_path\":\"x\"}", QKV_ERR_UNSUPPORTED,
                  "tokenizer_name_or_path 'x' is not supported");
    refuse_config(own, "{\"model_type\":\"SparseEncoder\"}", QKV_ERR_UNSUPPORTED,
                  "model_type 'SparseEncoder' is not supported");
    refuse_config(own, "{\"model_type\":null}", QKV_ERR_UNSUPPORTED,
                  "model_type 'null' is not supported");
    refuse_config(own, "{\"default_prompt_name\":\"x\"}", QKV_ERR_FORMAT,
                  "default_prompt_name 'x' is not among the prompts");
    refuse_config(own, "{\"prompts\":{\"x\":1}}", QKV_ERR_FORMAT,
                  "a prompt is neither a string nor null");
    refuse_config(own, "{\"truncate_dim\":0}", QKV_ERR_FORMAT, "truncate_dim = 0 is less than 1");
}

static const char *const folders[] = { "1_Pooling", "2_Dense", "2_Normalize", "3_LayerNorm" };

static int make_folder(void **state) {
    char path[300];
    (void)state;
    if (!mkdtemp(temporary("qkv-pooling", folder))) return -1;
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, folders[i]);
        if (mkdir(path, 0700)) return -1;
    }
    return 0;
}

static int remove_folder(void **state) {
    static const char *const files[] = { "config.json", "model.safetensors" };
    char path[300];
    (void)state;
    qkvi_recipe_free(&recipe);
    put("modules.json", NULL);
    for (int i = 0; i < 4; i++) {
        for (int f = 0; f < 2; f++) {
            snprintf(path, sizeof path, "%s/%s", folders[i], files[f]);
            put(path, NULL);
        }
        snprintf(path, sizeof path, "%s/%s", folder, folders[i]);
        if (rmdir(path)) return -1;
    }
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),           cmocka_unit_test(test_several),
        cmocka_unit_test(test_length),          cmocka_unit_test(test_prompts),
        cmocka_unit_test(test_layers),          cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_refused_configs),
    };
    return cmocka_run_group_tests_name("pooling", tests, make_folder, remove_folder);
}
