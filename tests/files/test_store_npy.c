/*
 * .npy: files of numpy are read correctly, and the files that we write have numpy's bytes. Refusals
 * are in test_npy_hostile.c.
 */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "files/elems.h"
#include "files/file.h"
#include "limits/temporary.h"
#include "qkv/files.h"

#define DATA QKV_TEST_DATA "/files/store_data/"

static char folder[TEMPORARY_PATH];

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

/* "F64" of a file that is named after numpy's "f8". */
static void expect_stored(const char *stored, const char *name) {
    char expected[16] = "BOOL";
    if (isdigit((unsigned char)name[1]))
        snprintf(expected, sizeof expected, "%c%d", name[0] - 'a' + 'A', 8 * (name[1] - '0'));
    assert_non_null(stored);
    if (isdigit((unsigned char)name[1]) || strcmp(name, "bool") == 0)
        assert_string_equal(stored, expected);
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
        if (qkv_array_read(path, QKV_ARRAY_F32, &array, &error) != QKV_OK)
            fail_msg("%s", error.message);
        assert_int_equal(array->type, v->type);
        expect_stored(array->stored, v->name);
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

/* The parts, one behind the other in each block of rows, are the whole. */
static void compare_parts(const char *path, const qkv_array *whole, int n_parts) {
    const int64_t n_columns = whole->shape[whole->rank - 1], n_rows = whole->shape[whole->rank - 2];
    const int64_t n_cells = n_rows * n_columns,
                  n_blocks = n_cells > 0 ? whole->n_elems / n_cells : 0;
    int64_t at = 0;
    for (int p = 0; p < n_parts; p++) {
        qkv_array *part;
        qkv_error error = { QKV_OK, "" };
        int64_t rows[2];
        if (qkv_array_read_part(path, QKV_ARRAY_F32, p, n_parts, &part, rows, &error) != QKV_OK)
            fail_msg("%s", error.message);
        const int64_t n = part->shape[part->rank - 2];
        assert_int_equal(rows[0], at);
        assert_int_equal(rows[1], n_rows);
        assert_int_equal(part->type, whole->type);
        assert_string_equal(part->stored, whole->stored);
        assert_int_equal(part->n_elems, n_blocks * n * n_columns);
        for (int64_t i = 0; i < part->n_elems; i++) {
            const int64_t block = i / (n * n_columns), row = i / n_columns % n + at;
            const int64_t j = (block * n_rows + row) * n_columns + i % n_columns;
            if (element(part, i) != element(whole, j))
                fail_msg("%s: part %d of %d, element %d", path, p, n_parts, (int)i);
        }
        at += n;
        qkv_array_free(part);
    }
    assert_int_equal(at, n_rows);
}

static void test_reads_parts(void **state) {
    (void)state;
    int n_compared = 0;
    for (size_t f = 0; f < sizeof valid_files / sizeof *valid_files; f++) {
        const bool is_fortran = strstr(valid_files[f].name, "fortran") != NULL;
        char path[512];
        qkv_array *array, *part;
        qkv_error error = { QKV_OK, "" };
        int64_t rows[2];
        snprintf(path, sizeof path, DATA "%s.npy", valid_files[f].name);
        assert_int_equal(qkv_array_read(path, QKV_ARRAY_F32, &array, &error), QKV_OK);
        if (array->rank < 2 || is_fortran)
            assert_int_equal(qkv_array_read_part(path, QKV_ARRAY_F32, 0, 1, &part, rows, &error),
                             array->rank < 2 ? QKV_ERR_SHAPE : QKV_ERR_UNSUPPORTED);
        else
            for (int n = 1; n < 8; n++, n_compared++) compare_parts(path, array, n);
        qkv_array_free(array);
    }
    assert_true(n_compared > 0);
}

static void test_refuses_parts(void **state) {
    (void)state;
    qkv_array *array;
    qkv_error error;
    int64_t rows[2];
    assert_int_equal(qkv_array_read_part(DATA "f4.npy", QKV_ARRAY_F32, 2, 2, &array, rows, &error),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_array_read_part(DATA "f4.npy", QKV_ARRAY_F32, -1, 2, &array, rows, &error),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_array_read_part(DATA "f4.npy", QKV_ARRAY_I64, 0, 2, &array, rows, &error),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_array_read_part(DATA "f4.npz", QKV_ARRAY_F32, 0, 2, &array, rows, &error),
                     QKV_ERR_IO);
    assert_null(array);
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
        assert_int_equal(qkv_array_read(path, QKV_ARRAY_F32, &array, &error), QKV_OK);
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

/* ---- Types of 16 bits ------------------------------------------------------------------------ */

/* Doubles so close to the middle of two numbers that a float would be the middle. */
static void test_doubles_are_rounded_once(void **state) {
    (void)state;
    static const struct {
        qkvi_elem_type half;
        double lower, upper; /* neighbours, with encodings one apart */
        uint16_t bits;       /* of the lower */
    } pairs[] = {
        { QKVI_F16, 1, 1 + 0x1p-10, 0x3C00 }, { QKVI_F16, 1 + 0x1p-10, 1 + 0x1p-9, 0x3C01 },
        { QKVI_F16, 0, 0x1p-24, 0 },          { QKVI_F16, 65504, 65536, 0x7BFF },
        { QKVI_BF16, 1, 1 + 0x1p-7, 0x3F80 }, { QKVI_BF16, 1 + 0x1p-7, 1 + 0x1p-6, 0x3F81 },
        { QKVI_BF16, 0, 0x1p-133, 0 },        { QKVI_BF16, 0x1.fep127, 0x1p128, 0x7F7F }
    };
    for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++) {
        const double middle = (pairs[n].lower + pairs[n].upper) / 2, step = middle * 0x1p-50;
        const double values[] = { middle - step, middle, middle + step, 1e300, 0.0 };
        const unsigned even = pairs[n].bits + pairs[n].bits % 2u;
        const unsigned infinity = pairs[n].half == QKVI_F16 ? 0x7C00 : 0x7F80;
        const unsigned expected[] = { pairs[n].bits, even, pairs[n].bits + 1u, infinity, 0 };
        for (int v = 0; v < 5; v++)
            for (unsigned sign = 0; sign < 2; sign++) {
                const double value = sign ? -values[v] : values[v];
                uint16_t got;
                qkvi_elems_to_half(QKVI_F64, &value, 1, pairs[n].half, &got);
                assert_int_equal(got, expected[v] | sign << 15);
            }
    }
}

static void test_types_of_16_bits(void **state) {
    char path[512];
    qkv_array *array, *again;
    qkv_error error = { QKV_OK, "" };
    uint16_t data[6] = { 0, 0x3F80, 0xBFC0, 0x7F80, 1, 0x8000 }; /* as bf16 */
    static const float floats[6] = { 0, 1, -1.5f, 0, 0x1p-133f, -0.0f };
    qkv_array given = { QKV_ARRAY_BF16, 2, { 2, 3 }, 6, data, NULL };
    snprintf(path, sizeof path, "%s/half.npy", (const char *)*state);
    assert_int_equal(qkv_array_write(path, &given, &error), QKV_OK);
    assert_int_equal(qkv_array_read(path, QKV_ARRAY_F32, &array, &error), QKV_OK);
    assert_int_equal(array->type, QKV_ARRAY_F32);
    for (int i = 0; i < 6; i++)
        if (i != 3) assert_true(((float *)array->data)[i] == floats[i]);
    assert_int_equal(qkv_array_read(path, QKV_ARRAY_BF16, &again, &error), QKV_OK);
    assert_int_equal(again->type, QKV_ARRAY_BF16);
    assert_memory_equal(again->data, data, sizeof data);
    qkv_array_free(array);
    qkv_array_free(again);
    given.type = QKV_ARRAY_F16;
    assert_int_equal(qkv_array_write(path, &given, &error), QKV_OK);
    assert_int_equal(qkv_array_read(path, QKV_ARRAY_F16, &again, &error), QKV_OK);
    assert_memory_equal(again->data, data, sizeof data);
    qkv_array_free(again);
    assert_int_equal(qkv_array_read(path, QKV_ARRAY_I64, &again, &error), QKV_ERR_ARGUMENT);
    assert_string_equal(error.message, "floats = 2 is none of QKV_ARRAY_F32, QKV_ARRAY_BF16, "
                                       "QKV_ARRAY_F16");
    assert_null(again);
    given.type = (qkv_array_type)6;
    assert_int_equal(qkv_array_write(path, &given, &error), QKV_ERR_ARGUMENT);
    assert_string_equal(error.message, "type = 6 is no qkv_array_type");
    unlink(path);
}

/* ---- Arrays in safetensors, and arguments ---------------------------------------------------- */

static void test_arrays_in_safetensors(void **state) {
    (void)state;
    qkv_array *array;
    qkv_error error = { QKV_OK, "" };
    assert_int_equal(
        qkv_array_read(DATA "mixed.safetensors:weights", QKV_ARRAY_F32, &array, &error), QKV_OK);
    assert_int_equal(array->type, QKV_ARRAY_F32);
    assert_int_equal(array->shape[1], 3);
    assert_true(((float *)array->data)[5] == 2.0f);
    qkv_array_free(array);
    assert_int_equal(qkv_array_read(DATA "mixed.safetensors:flag", QKV_ARRAY_F32, &array, &error),
                     QKV_OK);
    assert_int_equal(array->type, QKV_ARRAY_BOOL);
    qkv_array_free(array);
    assert_int_equal(qkv_array_read(DATA "mixed.safetensors:weight", QKV_ARRAY_F32, &array, &error),
                     QKV_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "there is no tensor 'weight'"));
    assert_int_equal(qkv_array_read(DATA "mixed.safetensors", QKV_ARRAY_F32, &array, &error),
                     QKV_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "FILE:NAME"));
    assert_null(array);
}

static void test_bad_arguments(void **state) {
    (void)state;
    qkv_error error;
    qkv_array *read = NULL;
    float data[6] = { 0 };
    qkv_array array = { QKV_ARRAY_F32, 2, { 2, 3 }, 6, data, NULL };
    assert_int_equal(qkv_array_read(NULL, QKV_ARRAY_F32, &read, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_array_read("x.npy", QKV_ARRAY_F32, NULL, &error), QKV_ERR_ARGUMENT);
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
    *state = mkdtemp(temporary("qkv-npy", folder));
    return *state ? 0 : -1;
}

static int remove_folder(void **state) { return rmdir(*state); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_numpy),
        cmocka_unit_test(test_reads_parts),
        cmocka_unit_test(test_refuses_parts),
        cmocka_unit_test(test_writes_numpy_bytes),
        cmocka_unit_test(test_doubles_are_rounded_once),
        cmocka_unit_test(test_types_of_16_bits),
        cmocka_unit_test(test_arrays_in_safetensors),
        cmocka_unit_test(test_bad_arguments),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
