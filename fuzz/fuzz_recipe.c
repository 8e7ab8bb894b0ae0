/*
 * modules.json and, each behind a NUL that a '{' follows, config.json of 1_Pooling and of 2_Dense,
 * sentence_bert_config.json and config_sentence_transformers.json, in a folder whose 2_Dense has
 * weights of 2 x 4 numbers and whose 3_LayerNorm is complete. What is read is a recipe that can be
 * followed: its steps fit behind one another, its default is one of its prompts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/safetensors.h"
#include "fuzz/fuzz.h"
#include "model/config/recipe.h"
#include "text/settings.h"

enum { HIDDEN = 4, LONGEST = 16, N_WRITTEN = 5 };

static char folder[] = "/tmp/qkv-fuzz-XXXXXX";
static const char *const folders[] = { "1_Pooling", "2_Dense", "3_LayerNorm" };
static const char *const written[N_WRITTEN] = { "modules.json", "1_Pooling/config.json",
                                                "2_Dense/config.json", "sentence_bert_config.json",
                                                "config_sentence_transformers.json" };
static const char *const fixed[] = { "2_Dense/model.safetensors", "3_LayerNorm/config.json",
                                     "3_LayerNorm/model.safetensors" };

static const char *path_of(const char *name) {
    static char path[sizeof folder + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void remove_folder(void) {
    for (size_t f = 0; f < N_WRITTEN; f++) (void)unlink(path_of(written[f]));
    for (size_t f = 0; f < sizeof fixed / sizeof *fixed; f++) (void)unlink(path_of(fixed[f]));
    for (size_t f = 0; f < sizeof folders / sizeof *folders; f++) (void)rmdir(path_of(folders[f]));
    (void)rmdir(folder);
}

static void put(const char *name, const char *bytes, size_t n_bytes) {
    FILE *const file = fopen(path_of(name), "wb");
    FUZZ_CHECK(file);
    FUZZ_CHECK(fwrite(bytes, 1, n_bytes, file) == n_bytes);
    FUZZ_CHECK(fclose(file) == 0);
}

static void put_folder(void) {
    static const float values[2 * HIDDEN] = { 1 };
    static const char norm[] = "{\"dimension\": 2}";
    qkvi_stored_out dense[] = {
        { "linear.bias", QKVI_F32, 1, { 2 }, values },
        { "linear.weight", QKVI_F32, 2, { 2, HIDDEN }, values },
    };
    qkvi_stored_out layer_norm[] = {
        { "norm.bias", QKVI_F32, 1, { 2 }, values },
        { "norm.weight", QKVI_F32, 1, { 2 }, values },
    };
    qkv_error error;
    FUZZ_CHECK(mkdtemp(folder));
    FUZZ_CHECK(atexit(remove_folder) == 0);
    for (size_t f = 0; f < sizeof folders / sizeof *folders; f++)
        FUZZ_CHECK(mkdir(path_of(folders[f]), 0700) == 0);
    FUZZ_CHECK(qkvi_safetensors_write(path_of(fixed[0]), dense, 2, "k", "v", &error) == QKV_OK);
    put(fixed[1], norm, sizeof norm - 1);
    FUZZ_CHECK(qkvi_safetensors_write(path_of(fixed[2]), layer_norm, 2, "k", "v", &error) ==
               QKV_OK);
}

static void put_parts(const uint8_t *bytes, size_t n_bytes) {
    qkvi_text_file parts[N_WRITTEN] = { 0 };
    qkvi_text_file *const others[] = { &parts[1], &parts[2], &parts[3], &parts[4] };
    fuzz_parts(bytes, n_bytes, &parts[0], N_WRITTEN - 1, others);
    for (size_t f = 0; f < N_WRITTEN; f++)
        if (parts[f].bytes)
            put(written[f], parts[f].bytes, parts[f].n_bytes);
        else
            (void)unlink(path_of(written[f]));
}

static void check_steps(const qkvi_recipe *recipe) {
    int64_t n = HIDDEN * recipe->n_poolings;
    for (int i = 0; i < recipe->n_steps; i++) {
        const qkvi_step *const step = &recipe->steps[i];
        FUZZ_CHECK(step->n_in == n && step->name);
        FUZZ_CHECK((step->kind == QKVI_STEP_NORMALIZE) == (step->weight == NULL));
        FUZZ_CHECK(step->kind != QKVI_STEP_LAYER_NORM || step->bias);
        FUZZ_CHECK(step->kind == QKVI_STEP_DENSE || step->n_out == n);
        n = step->n_out;
    }
    FUZZ_CHECK(recipe->dim == n);
    FUZZ_CHECK(recipe->kept > 0 && recipe->kept <= n);
}

static void check(const qkvi_recipe *recipe, const qkv_model_info *info) {
    FUZZ_CHECK(recipe->n_poolings > 0 && recipe->n_poolings <= QKVI_POOLINGS);
    for (int p = 0; p < recipe->n_poolings; p++)
        FUZZ_CHECK(recipe->poolings[p] > 0 && recipe->poolings[p] <= QKV_POOLING_LAST);
    FUZZ_CHECK(recipe->max_len > 0 && recipe->max_len <= LONGEST);
    FUZZ_CHECK(recipe->n_prompts >= 2);
    FUZZ_CHECK(recipe->default_prompt >= -1 && recipe->default_prompt < recipe->n_prompts);
    for (int64_t p = 0; p < recipe->n_prompts; p++)
        FUZZ_CHECK(recipe->prompts[p].name && recipe->prompts[p].text);
    check_steps(recipe);
    FUZZ_CHECK(info->sentence_dim == recipe->kept && info->sentence_len == recipe->max_len);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    static int is_there;
    qkv_model_info info = {
        .hidden = HIDDEN, .pooled_dim = HIDDEN, .max_len = LONGEST, .architecture = "bert"
    };
    qkvi_recipe recipe;
    qkv_error error;
    if (!is_there++) put_folder();
    put_parts(bytes, n_bytes);
    if (fuzz_accepted(qkvi_recipe_read(folder, LONGEST, &info, &recipe, &error), &error))
        check(&recipe, &info);
    qkvi_recipe_free(&recipe);
    return 0;
}
