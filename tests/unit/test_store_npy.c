/*
 * .npy: what numpy writes is read right, and what we write are numpy's own bytes. What is refused is
 * in tests/hostile.
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

#include "model/store/file.h"
#include "qkv/model.h"

#define DATA QKV_TEST_DATA "/unit/store_data/"

static char folder[] = "/tmp/qkv-npy-XXXXXX";

/* ---- Files of numpy -------------------------------------------------------------------------- */

typedef struct valid {
    const char *name;
    qkv_array_type type;
    int rank;
    int64_t shape[3];
    int is_unsigned;
} valid;

static const valid valid_files[] = {
    { "f4", QKV_ARRAY_F32, 2, { 2, 3 }, 0 },
    { "f8", QKV_ARRAY_F32, 2, { 2, 3 }, 0 },
    { "f2", QKV_ARRAY_F32, 2, { 2, 3 }, 0 },
    { "f4_big", QKV_ARRAY_F32, 2, { 2, 3 }, 0 },
    { "version2", QKV_ARRAY_F32, 2, { 2, 3 }, 0 },
    { "version3", QKV_ARRAY_F32, 2, { 2, 3 }, 0 },
    { "f4_fortran", QKV_ARRAY_F32, 3, { 2, 3, 4 }, 0 },
    { "bool", QKV_ARRAY_BOOL, 1, { 4 }, 0 },
    { "i8", QKV_ARRAY_I64, 1, { 3 }, 0 },
    { "i4_big", QKV_ARRAY_I64, 1, { 3 }, 0 },
    { "i2", QKV_ARRAY_I64, 1, { 3 }, 0 },
    { "i1", QKV_ARRAY_I64, 1, { 3 }, 0 },
    { "u8", QKV_ARRAY_I64, 1, { 3 }, 1 },
    { "u4", QKV_ARRAY_I64, 1, { 3 }, 1 },
    { "u2", QKV_ARRAY_I64, 1, { 3 }, 1 },
    { "u1", QKV_ARRAY_I64, 1, { 3 }, 1 },
    { "scalar", QKV_ARRAY_F32, 0, { 0 }, 0 },
    { "none", QKV_ARRAY_F32, 2, { 3, 0 }, 0 },
};

static int64_t element(const qkv_array *array, int64_t i) {
    return array->type == QKV_ARRAY_F32    ? (int64_t)((const float *)array->data)[i]
           : array->type == QKV_ARRAY_BOOL ? ((const uint8_t *)array->data)[i]
                                           : ((const int64_t *)array->data)[i];
}

static void test_reads_numpy(void **state) {
    (void)state;
    for (size_t f = 0; f < sizeof valid_files / sizeof *valid_files; f++) {
        const valid *const v = &valid_files[f];
        char path[512];
        qkv_array *array;
        qkv_error error = { QKV_OK, "" };
        int64_t n = 1;
        snprintf(path, sizeof path, DATA "%s.npy", v->name);
        if (qkv_array_read(path, &array, &error) != QKV_OK) fail_msg("%s", error.message);
        assert_int_equal(array->type, v->type);
        assert_int_equal(array->rank, v->rank);
        for (int d = 0; d < v->rank; d++) {
            assert_int_equal(array->shape[d], v->shape[d]);
            n *= v->shape[d];
        }
        assert_int_equal(array->n_elems, n);
        for (int64_t i = 0; i < n; i++) {
            const int64_t expected = v->type == QKV_ARRAY_BOOL ? i % 3 == 0
                                     : v->is_unsigned          ? i % 7
                                                               : i % 7 - 3;
            if (element(array, i) != expected) fail_msg("%s: element %d", v->name, (int)i);
        }
        qkv_array_free(array);
    }
}

static void test_writes_numpy_bytes(void **state) {
    static const char *const names[] = { "f4", "bool", "i8", "scalar", "none" };
    char path[512], ours_path[512];
    for (size_t f = 0; f < sizeof names / sizeof *names; f++) {
        qkv_array *array;
        qkv_error error = { QKV_OK, "" };
        char *ours, *theirs;
        size_t n_ours, n_theirs;
        snprintf(path, sizeof path, DATA "%s.npy", names[f]);
        snprintf(ours_path, sizeof ours_path, "%s/ours.npy", (const char *)*state);
        assert_int_equal(qkv_array_read(path, &array, &error), QKV_OK);
        assert_int_equal(qkv_array_write(ours_path, array, &error), QKV_OK);
        assert_int_equal(qkvi_file_load(path, 4096, &theirs, &n_theirs, &error), QKV_OK);
        assert_int_equal(qkvi_file_load(ours_path, 4096, &ours, &n_ours, &error), QKV_OK);
        assert_int_equal(n_ours, n_theirs);
        assert_memory_equal(ours, theirs, n_ours);
        qkv_array_free(array);
        free(ours);
        free(theirs);
        unlink(ours_path);
    }
}

/* ---- Arrays in safetensors, and arguments ---------------------------------------------------- */

static void test_arrays_in_safetensors(void **state) {
    (void)state;
    qkv_array *array;
    qkv_error error = { QKV_OK, "" };
    assert_int_equal(qkv_array_read(DATA "mixed.safetensors:weights", &array, &error), QKV_OK);
    assert_int_equal(array->type, QKV_ARRAY_F32);
    assert_int_equal(array->shape[1], 3);
    assert_true(((float *)array->data)[5] == 2.0f);
    qkv_array_free(array);
    assert_int_equal(qkv_array_read(DATA "mixed.safetensors:flag", &array, &error), QKV_OK);
    assert_int_equal(array->type, QKV_ARRAY_BOOL);
    qkv_array_free(array);
    assert_int_equal(qkv_array_read(DATA "mixed.safetensors:weight", &array, &error),
                     QKV_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "there is no tensor 'weight'"));
    assert_int_equal(qkv_array_read(DATA "mixed.safetensors", &array, &error), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "FILE:NAME"));
    assert_null(array);
}

static void test_bad_arguments(void **state) {
    (void)state;
    qkv_error error;
    qkv_array *read = NULL;
    float data[6] = { 0 };
    qkv_array array = { QKV_ARRAY_F32, 2, { 2, 3 }, 6, data };
    assert_int_equal(qkv_array_read(NULL, &read, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_array_read("x.npy", NULL, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_array_write(NULL, &array, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_array_write("x.npy", NULL, &error), QKV_ERR_ARGUMENT);
    array.n_elems = 5;
    assert_int_equal(qkv_array_write("x.npy", &array, &error), QKV_ERR_SHAPE);
    array.n_elems = 6;
    array.shape[0] = -2;
    assert_int_equal(qkv_array_write("x.npy", &array, &error), QKV_ERR_SHAPE);
    array.shape[0] = INT64_MAX;
    assert_int_equal(qkv_array_write("x.npy", &array, &error), QKV_ERR_SHAPE);
    array.rank = 9;
    assert_int_equal(qkv_array_write("x.npy", &array, NULL), QKV_ERR_ARGUMENT);
    assert_int_not_equal(access("x.npy", F_OK), 0);
    qkv_array_free(NULL);
}

static int make_folder(void **state) {
    *state = mkdtemp(folder);
    return *state ? 0 : -1;
}

static int remove_folder(void **state) { return rmdir(*state); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_numpy),
        cmocka_unit_test(test_writes_numpy_bytes),
        cmocka_unit_test(test_arrays_in_safetensors),
        cmocka_unit_test(test_bad_arguments),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
