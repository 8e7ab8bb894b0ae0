/*
 * The index of a model in several files, beside a.safetensors with the tensor x, b.safetensors with
 * y and z, and c.safetensors with x. What opens has each tensor once, in the order of their names,
 * and each can be read.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/shards.h"
#include "fuzz/fuzz.h"

static char folder[] = "/tmp/qkv-fuzz-XXXXXX";
static const char *const names[] = { "a", "b", "c" };
static const char *const tensors[] = { "x", "yz", "x" };

static const char *path_of(const char *name, const char *ending) {
    static char path[sizeof folder + 64];
    snprintf(path, sizeof path, "%s/%s%s", folder, name, ending);
    return path;
}

static void remove_shards(void) {
    for (int s = 0; s < 3; s++) (void)unlink(path_of(names[s], ".safetensors"));
    (void)rmdir(folder);
}

static void put_shards(void) {
    static const float value[] = { 1 };
    qkv_error error;
    FUZZ_CHECK(mkdtemp(folder));
    FUZZ_CHECK(atexit(remove_shards) == 0);
    for (int s = 0; s < 3; s++) {
        qkvi_stored_out out[2];
        char text[2][2] = { "", "" };
        const int n = (int)strlen(tensors[s]);
        for (int t = 0; t < n; t++) {
            text[t][0] = tensors[s][t];
            out[t] = (qkvi_stored_out){ text[t], QKVI_F32, 1, { 1 }, value };
        }
        FUZZ_CHECK(qkvi_safetensors_write(path_of(names[s], ".safetensors"), out, n, "k", names[s],
                                          &error) == QKV_OK);
    }
}

static void check(const qkvi_safetensors *set) {
    float value;
    qkv_error error;
    FUZZ_CHECK(set->n_shards > 0 && set->n_shards <= 3);
    FUZZ_CHECK(set->n_tensors <= 3);
    for (int64_t t = 0; t < set->n_tensors; t++) {
        const qkvi_stored *const tensor = &set->tensors[t];
        FUZZ_CHECK(t == 0 || strcmp(set->tensors[t - 1].name, tensor->name) < 0);
        FUZZ_CHECK(qkvi_safetensors_find(set, tensor->name) == tensor);
        FUZZ_CHECK(qkvi_safetensors_read_f32(set, tensor, &value, &error) == QKV_OK);
        FUZZ_CHECK(value == 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    static int is_there;
    qkvi_safetensors *set;
    qkv_error error;
    if (!is_there++) put_shards();
    const char *const path = path_of("model", ".safetensors.index.json");
    const qkv_status status = qkvi_shards_open(path, bytes, n_bytes, &set, &error);
    if (fuzz_accepted(status, &error)) check(set);
    FUZZ_CHECK(status == QKV_OK || !set);
    qkvi_safetensors_close(set);
    return 0;
}
