/*
 * safetensors: files of the reference writer are read correctly, and written byte for byte.
 * Refusals are in test_safetensors_hostile.c.
 */
#include <math.h>
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

#include "files/safetensors.h"
#include "limits/temporary.h"

#define DATA QKV_TEST_DATA "/files/store_data/"

/* ---- Valid files ----------------------------------------------------------------------------- */

static void in_folder(char path[256], const char *folder, const char *name) {
    snprintf(path, 256, "%s/%s", folder, name);
}

static int64_t pattern(qkvi_elem_type type, int64_t i) {
    return type == QKVI_BOOL ? i % 3 == 0 : type >= QKVI_U64 ? i % 7 : i % 7 - 3;
}

static void test_reads_reference_files(void **state) {
    (void)state;
    qkvi_safetensors *file;
    qkv_error error;
    assert_int_equal(qkvi_safetensors_open(DATA "mixed.safetensors", &file, &error), QKV_OK);
    assert_int_equal(file->n_tensors, 16);
    for (int64_t t = 0; t < file->n_tensors; t++) {
        const qkvi_stored *const tensor = &file->tensors[t];
        int64_t integers[16] = { 0 };
        float floats[16];
        char raw[128];
        assert_ptr_equal(qkvi_safetensors_find(file, tensor->name), tensor);
        if (qkvi_elem_is_float(tensor->type)) {
            assert_int_equal(qkvi_safetensors_read_f32(file, tensor, floats, &error), QKV_OK);
        } else {
            assert_int_equal(qkvi_safetensors_read_f32(file, tensor, floats, &error),
                             QKV_ERR_UNSUPPORTED);
            assert_int_equal(qkvi_safetensors_read_raw(file, tensor, raw, &error), QKV_OK);
            assert_int_equal(qkvi_elems_to_i64(tensor->type, raw, tensor->n_elems, integers),
                             tensor->n_elems);
        }
        for (size_t i = 0; i < tensor->n_elems; i++) {
            const int64_t got = qkvi_elem_is_float(tensor->type) ? (int64_t)floats[i] : integers[i];
            assert_int_equal(got, pattern(tensor->type, (int64_t)i));
        }
    }
    assert_null(qkvi_safetensors_find(file, "weight"));
    assert_non_null(qkvi_safetensors_find(file, "T\xc3\xbcre \xe9\x96\x80"));
    qkvi_safetensors_close(file);
}

static char *slurp(const char *path, size_t *n) {
    char *bytes;
    qkv_error error;
    assert_int_equal(qkvi_file_load(path, 1 << 20, &bytes, n, &error), QKV_OK);
    return bytes;
}

/* Reads a file of the reference writer, writes its tensors in another order: the same bytes. */
static void rewrite(const char *folder, const char *reference, const char *key, const char *value) {
    char path[256], *raw[32];
    qkvi_stored_out tensors[32];
    qkvi_safetensors *file;
    qkv_error error;
    size_t n_ours, n_theirs;
    assert_int_equal(qkvi_safetensors_open(reference, &file, &error), QKV_OK);
    for (int64_t t = 0; t < file->n_tensors; t++) {
        const qkvi_stored *const from = &file->tensors[file->n_tensors - 1 - t];
        raw[t] = malloc((size_t)(from->end - from->begin) + 1);
        assert_int_equal(qkvi_safetensors_read_raw(file, from, raw[t], &error), QKV_OK);
        tensors[t] = (qkvi_stored_out){ from->name, from->type, from->rank, { 0 }, raw[t] };
        memcpy(tensors[t].shape, from->shape, sizeof from->shape);
    }
    in_folder(path, folder, "ours.safetensors");
    assert_int_equal(qkvi_safetensors_write(path, tensors, file->n_tensors, key, value, &error),
                     QKV_OK);
    char *const ours = slurp(path, &n_ours), *const theirs = slurp(reference, &n_theirs);
    assert_int_equal(n_ours, n_theirs);
    assert_memory_equal(ours, theirs, n_ours);
    for (int64_t t = 0; t < file->n_tensors; t++) free(raw[t]);
    free(ours);
    free(theirs);
    qkvi_safetensors_close(file);
    unlink(path);
}

static void test_writes_reference_bytes(void **state) {
    rewrite(*state, DATA "mixed.safetensors", NULL, NULL);
    rewrite(*state, DATA "metadata.safetensors", "format", "pt");
    rewrite(*state, DATA "empty.safetensors", NULL, NULL);
}

/*
 * f16 and bf16 by their bits, with subnormals, infinities and NaN; unaligned data (ST34); NaN
 * accepted (ST35).
 */
static void test_half_types(void **state) {
    (void)state;
    static const uint16_t half[] = { 0x0000, 0x8000, 0x0001, 0x03ff, 0x0400, 0x3c00,
                                     0xc000, 0x7bff, 0x7c00, 0xfc00, 0x7e01 };
    static const float as_f16[] = { 0.0f, -0.0f, 0x1p-24f, 0x1.ff8p-15f, 0x1p-14f,
                                    1.0f, -2.0f, 65504.0f, INFINITY,     -INFINITY };
    float values[11];
    qkvi_elems_to_f32(QKVI_F16, half, 11, values);
    assert_memory_equal(values, as_f16, sizeof as_f16);
    assert_true(values[10] != values[10]);
    static const uint16_t brain[] = { 0x3f80, 0xc040, 0x0001, 0x7f80 };
    static const float as_bf16[] = { 1.0f, -3.0f, 0x1p-133f, INFINITY };
    qkvi_elems_to_f32(QKVI_BF16, brain, 4, values);
    assert_memory_equal(values, as_bf16, sizeof as_bf16);
    static const double doubles[] = { 1.0 + 0x1p-24, 1.0 + 3 * 0x1p-24, 1e300 };
    static const float rounded[] = { 1.0f, 1.0f + 0x1p-22f, INFINITY };
    qkvi_elems_to_f32(QKVI_F64, doubles, 3, values);
    assert_memory_equal(values, rounded, sizeof rounded);
}

static void test_unaligned_data(void **state) {
    (void)state;
    static const char header[] =
        "{\"t\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}} ";
    enum { HEADER = sizeof header - 1 };
    uint8_t bytes[8 + HEADER + 8] = { HEADER };
    qkvi_safetensors *file;
    qkv_error error;
    float values[2];
    const float stored[2] = { 1.5f, NAN };
    assert_true(HEADER % 4 != 0);
    memcpy(bytes + 8, header, HEADER);
    memcpy(bytes + 8 + HEADER, stored, 8);
    assert_int_equal(qkvi_safetensors_open_memory("m", bytes, sizeof bytes, &file, &error), QKV_OK);
    assert_int_equal(
        qkvi_safetensors_read_f32(file, qkvi_safetensors_find(file, "t"), values, &error), QKV_OK);
    assert_memory_equal(values, stored, 8);
    qkvi_safetensors_close(file);
}

static char folder[TEMPORARY_PATH];

static int make_folder(void **state) {
    *state = mkdtemp(temporary("qkv-store", folder));
    return *state ? 0 : -1;
}

static int remove_folder(void **state) { return rmdir(*state); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_reference_files),
        cmocka_unit_test(test_writes_reference_bytes),
        cmocka_unit_test(test_half_types),
        cmocka_unit_test(test_unaligned_data),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
