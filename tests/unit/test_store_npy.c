/*
 * .npy: what numpy writes is read right, hostile files are refused with the class and the words
 * that name what is wrong, and what we write numpy's own bytes. ids are those of
 * docs/hostile-inputs.md.
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

/* ---- Hostile files --------------------------------------------------------------------------- */

typedef struct hostile {
    const char *id, *header;
    int version, data_bytes;
    qkv_status status;
    const char *says;
} hostile;

#define F4(shape)   "{'descr': '<f4', 'fortran_order': False, 'shape': " shape ", }"
#define TYPE(descr) "{'descr': " descr ", 'fortran_order': False, 'shape': (2,), }"

static const hostile cases[] = {
    { "NP01", F4("(2,)"), 1, 8, QKV_OK, "" },
    { "NP01", F4("(2,)"), 2, 8, QKV_OK, "" },
    { "NP01", F4("(2,)"), 3, 8, QKV_OK, "" },
    { "NP01", F4("(2,)"), 9, 8, QKV_ERR_UNSUPPORTED, "npy version 9.0 is not supported" },
    { "NP03", "{\"shape\":(2,),\"descr\":\"<f4\",\"fortran_order\":False}", 1, 8, QKV_OK, "" },
    { "NP03", "{ 'shape' : ( 2 , ) , 'fortran_order':False ,'descr':'<f4' , } \n", 1, 8, QKV_OK,
      "" },
    { "NP03", F4("()"), 1, 4, QKV_OK, "" },
    { "NP03", F4("(1, 2)"), 1, 8, QKV_OK, "" },
    { "NP03", F4("(1, 2,)"), 1, 8, QKV_OK, "" },
    { "NP03b", F4("(2)"), 1, 8, QKV_ERR_FORMAT, "shape is a number, not a tuple" },
    { "NP03b", F4("((2,),)"), 1, 8, QKV_ERR_FORMAT, "a dimension is not an integer" },
    { "NP03b", F4("(2 2)"), 1, 16, QKV_ERR_FORMAT, "a comma is missing in shape" },
    { "NP03b", F4("(,)"), 1, 4, QKV_ERR_FORMAT, "a dimension is not an integer" },
    { "NP03b", F4("(2L,)"), 1, 8, QKV_OK, "" },
    { "NP03b", F4("(2L,)"), 2, 8, QKV_ERR_FORMAT, "a comma is missing in shape" },
    { "NP03b", F4("(2,), 'x': 1"), 1, 8, QKV_ERR_FORMAT, "a key is unknown or there twice" },
    { "NP03b", F4("(2,), 'shape': (2,)"), 1, 8, QKV_ERR_FORMAT, "a key is unknown or there twice" },
    { "NP03b", "{'descr': '<f4', 'shape': (2,), }", 1, 8, QKV_ERR_FORMAT, "a key is missing" },
    { "NP03b", F4("(2,)") " # comment", 1, 8, QKV_ERR_FORMAT, "something follows the dict" },
    { "NP03b", TYPE("'<f\\x34'"), 1, 8, QKV_ERR_FORMAT, "has a backslash" },
    { "NP03b", TYPE("u'<f4'"), 1, 8, QKV_ERR_FORMAT, "no string" },
    { "NP03b", "{'descr': '<f4", 1, 8, QKV_ERR_FORMAT, "a string is unfinished" },
    { "NP03b", "", 1, 8, QKV_ERR_FORMAT, "it is not a dict" },
    { "NP04", "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }", 1, 8, QKV_ERR_FORMAT,
      "fortran_order is not True or False" },
    { "NP05b", TYPE("'|O'"), 1, 8, QKV_ERR_UNSUPPORTED, "npy type |O is not supported" },
    { "NP05b", TYPE("[('a', '<f4')]"), 1, 8, QKV_ERR_UNSUPPORTED, "'structured'" },
    { "NP05b", TYPE("'<V2'"), 1, 4, QKV_ERR_UNSUPPORTED, "npy type <V2 is not supported" },
    { "NP05b", TYPE("'<c8'"), 1, 16, QKV_ERR_UNSUPPORTED, "npy type <c8 is not supported" },
    { "NP05b", TYPE("'f4'"), 1, 8, QKV_ERR_FORMAT, "descr has no byte order" },
    { "NP06", F4("(4294967296, 4294967296, 4)"), 1, 0, QKV_ERR_FORMAT, "claims more than 2^64" },
    { "NP06", F4("(9223372036854775808,)"), 1, 0, QKV_ERR_FORMAT, "above 2^63" },
    { "NP06", F4("(99999999999999999999999999,)"), 1, 0, QKV_ERR_FORMAT, "above 2^63" },
    { "NP06", F4("(-2,)"), 1, 8, QKV_ERR_FORMAT, "a dimension is not an integer of at least 0" },
    { "NP06", F4("(2,)"), 1, 7, QKV_ERR_FORMAT, "claims 8 bytes of data, 7 are there" },
    { "NP06", F4("(2,)"), 1, 9, QKV_ERR_FORMAT, "claims 8 bytes of data, 9 are there" },
    { "NP06", F4("(0, 9223372036854775807)"), 1, 0, QKV_ERR_LIMIT, "limit 2^48" },
    { "NP06", F4("(1,1,1,1,1,1,1,1)"), 1, 4, QKV_OK, "" },
    { "NP06", F4("(1,1,1,1,1,1,1,1,1)"), 1, 4, QKV_ERR_LIMIT, "more than 8 dimensions" },
    { "NP07", F4("(65536, 65536, 1000)"), 1, 80, QKV_ERR_FORMAT, "80 are there" },
};

/* Writes magic, version, length, header and zeros to a file. length < 0: the header's own. */
static void write_file(const char *path, int version, int64_t length, const char *header,
                       size_t header_bytes, int data_bytes) {
    FILE *const out = fopen(path, "wb");
    assert_non_null(out);
    const uint64_t n = length < 0 ? header_bytes : (uint64_t)length;
    fwrite("\x93NUMPY", 1, 6, out);
    fputc(version, out);
    fputc(0, out);
    for (int b = 0; b < (version == 1 ? 2 : 4); b++) fputc((int)(n >> 8 * b & 255), out);
    fwrite(header, 1, header_bytes, out);
    for (int b = 0; b < data_bytes; b++) fputc(0, out);
    fclose(out);
}

static void expect(const char *id, const char *path, qkv_status status, const char *says) {
    qkv_array *array;
    qkv_error error = { QKV_OK, "" };
    const qkv_status got = qkv_array_read(path, &array, &error);
    if (got != status || !strstr(error.message, says))
        fail_msg("%s: %s \"%s\", expected %s \"%s\"", id, qkv_status_name(got), error.message,
                 qkv_status_name(status), says);
    assert_true((got == QKV_OK) == (array != NULL));
    qkv_array_free(array);
    unlink(path);
}

static void test_hostile_files(void **state) {
    char path[512];
    snprintf(path, sizeof path, "%s/hostile.npy", (const char *)*state);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        write_file(path, cases[c].version, -1, cases[c].header, strlen(cases[c].header),
                   cases[c].data_bytes);
        expect(cases[c].id, path, cases[c].status, cases[c].says);
    }
}

static void test_hostile_lengths(void **state) {
    static const char header[] = F4("(2,)");
    char path[512];
    snprintf(path, sizeof path, "%s/hostile.npy", (const char *)*state);
    write_file(path, 1, 60000, header, sizeof header - 1, 8);
    expect("NP02", path, QKV_ERR_FORMAT, "npy header of 60000 bytes in");
    write_file(path, 2, INT64_C(0xffffffff), header, sizeof header - 1, 8);
    expect("NP02", path, QKV_ERR_FORMAT, "npy header of 4294967295 bytes in");
    write_file(path, 2, 70000, header, sizeof header - 1, 80000);
    expect("NP02", path, QKV_ERR_LIMIT, "the limit is 65536");
    for (int cut = 0; cut < 8 + 2 + (int)sizeof header - 1 + 8; cut++) {
        write_file(path, 1, -1, header, sizeof header - 1, 8);
        assert_int_equal(truncate(path, cut), 0);
        expect("NP06 cut", path, QKV_ERR_FORMAT, "hostile.npy: ");
    }
    write_file(path, 1, -1, header, sizeof header - 1, 8);
    FILE *const file = fopen(path, "r+b");
    fputc('x', file);
    fclose(file);
    expect("NP01", path, QKV_ERR_FORMAT, "is not a .npy file");
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
        cmocka_unit_test(test_reads_numpy),           cmocka_unit_test(test_writes_numpy_bytes),
        cmocka_unit_test(test_hostile_files),         cmocka_unit_test(test_hostile_lengths),
        cmocka_unit_test(test_arrays_in_safetensors), cmocka_unit_test(test_bad_arguments),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
