/*
 * modules.json and what it names: every pooling in both spellings, what is absent, what is refused and in
 * which words. Folders come from anywhere, so a path that leaves the folder is no path.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "model/store/pooling.h"

static char folder[64] = "/tmp/qkv_pooling_XXXXXX";

static void put(const char *name, const char *text) {
    char path[200];
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

static qkv_status read_folder(const char *modules, const char *pooling, qkv_model_info *info,
                              qkv_error *error) {
    *info = (qkv_model_info){ .max_len = 100, .sentence_len = 100, .pooling = QKV_POOLING_MEAN };
    put("modules.json", modules);
    put("1_Pooling/config.json", pooling);
    return qkvi_pooling_read(folder, info, error);
}

#define MODULE(kind, path)                                                                         \
    "{\"idx\":0,\"name\":\"0\",\"path\":\"" path "\",\"type\":\"a.b." kind "\"}"
#define MODULES "[" MODULE("Transformer", "") "," MODULE("Pooling", "1_Pooling") "]"

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
    expect("[" MODULE("Pooling", "1_Pooling") "," MODULE("Normalize", "2_Normalize") "]",
           "{\"pooling_mode\":\"max\"}", QKV_POOLING_MAX, 1);
    expect(NULL, NULL, QKV_POOLING_MEAN, 0);
    expect("[]", NULL, QKV_POOLING_MEAN, 0);
}

static void test_length(void **state) {
    qkv_model_info info;
    qkv_error error;
    (void)state;
    static const struct {
        const char *text;
        int64_t wanted;
    } cases[] = { { "{\"max_seq_length\":7}", 7 },     { "{\"max_seq_length\":100}", 100 },
                  { "{\"max_seq_length\":101}", 100 }, { "{\"max_seq_length\":null}", 100 },
                  { "{\"max_seq_length\":0}", 100 },   { "{}", 100 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put("sentence_bert_config.json", cases[i].text);
        assert_int_equal(read_folder("[]", NULL, &info, &error), QKV_OK);
        assert_int_equal(info.sentence_len, cases[i].wanted);
    }
    put("sentence_bert_config.json", "{\"max_seq_length\":-1}");
    assert_int_equal(read_folder("[]", NULL, &info, &error), QKV_ERR_FORMAT);
    put("sentence_bert_config.json", NULL);
}

static void test_refusals(void **state) {
    (void)state;
    refuse("{}", NULL, QKV_ERR_FORMAT, "modules.json: the JSON is not an array");
    refuse("[1]", NULL, QKV_ERR_FORMAT, "modules.json: [0] is not an object");
    refuse("[{}]", NULL, QKV_ERR_FORMAT, "modules.json: [0].type is missing");
    refuse("[" MODULE("Dense", "2_Dense") "]", NULL, QKV_ERR_UNSUPPORTED,
           "modules.json: module 'a.b.Dense' is not supported");
    refuse("[" MODULE("Pooling", "../other") "]", NULL, QKV_ERR_UNSUPPORTED,
           "modules.json: path '../other' is not supported");
    refuse("[" MODULE("Pooling", "..") "]", NULL, QKV_ERR_UNSUPPORTED,
           "modules.json: path '..' is not supported");
    refuse("[" MODULE("Pooling", "") "]", NULL, QKV_ERR_UNSUPPORTED,
           "modules.json: path '' is not supported");
    refuse(MODULES, NULL, QKV_ERR_FORMAT, "1_Pooling/config.json: the pooling's file is missing");
    refuse(MODULES, "[]", QKV_ERR_FORMAT, "1_Pooling/config.json: the JSON is not an object");
    refuse(MODULES, "{}", QKV_ERR_FORMAT, "1_Pooling/config.json: no pooling_mode");
    refuse(MODULES, "{\"pooling_mode\":\"sum\"}", QKV_ERR_UNSUPPORTED,
           "1_Pooling/config.json: pooling_mode 'sum' is not supported");
    refuse(MODULES, "{\"pooling_mode\":[\"cls\",\"mean\"]}", QKV_ERR_FORMAT,
           "1_Pooling/config.json: pooling_mode is an array, must be a string");
    refuse(MODULES, "{\"pooling_mode_cls_token\":true,\"pooling_mode_max_tokens\":true}",
           QKV_ERR_UNSUPPORTED,
           "1_Pooling/config.json: several poolings side by side are not supported");
}

static int make_folder(void **state) {
    char path[100];
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/1_Pooling", folder);
    return mkdir(path, 0700);
}

static int remove_folder(void **state) {
    char path[100];
    (void)state;
    put("modules.json", NULL);
    put("1_Pooling/config.json", NULL);
    snprintf(path, sizeof path, "%s/1_Pooling", folder);
    return rmdir(path) || rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_length),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("pooling", tests, make_folder, remove_folder);
}
