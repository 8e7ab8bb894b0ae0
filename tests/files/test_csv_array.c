/* Arrays as text: types, shapes and values of what is accepted, and the message of each refusal. */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "qkv/files.h"

static const char path[] = "unit_csv_array.csv";

static qkv_status read_text(const char *text, qkv_array_type floats, qkv_array **array,
                            qkv_error *error) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
    const qkv_status status = qkv_array_read(path, floats, array, error);
    unlink(path);
    return status;
}

/* The array of a text: its type, lines and fields, and its values in order. */
static void expect(const char *text, qkv_array_type type, int64_t rows, int64_t columns,
                   const double *values) {
    qkv_array *array;
    qkv_error error;
    if (read_text(text, QKV_ARRAY_F32, &array, &error) != QKV_OK)
        fail_msg("%s: %s", text, error.message);
    assert_int_equal(array->type, type);
    assert_int_equal(array->rank, 2);
    assert_int_equal(array->shape[0], rows);
    assert_int_equal(array->shape[1], columns);
    for (int64_t i = 0; i < rows * columns; i++) {
        const double value = type == QKV_ARRAY_I64    ? (double)((const int64_t *)array->data)[i]
                             : type == QKV_ARRAY_BOOL ? (double)((const uint8_t *)array->data)[i]
                                                      : (double)((const float *)array->data)[i];
        if (value != values[i] && !(isnan(value) && isnan(values[i])))
            fail_msg("%s: value %d is %g", text, (int)i, value);
    }
    qkv_array_free(array);
}

static void test_types(void **state) {
    (void)state;
    const double whole[] = { 1, -2, 300, 4 };
    expect("1,-2\n3e2,4\n", QKV_ARRAY_I64, 2, 2, whole);
    expect("1.0,-2\n300,4\n", QKV_ARRAY_F32, 2, 2, whole);
    const double see[] = { 1, 0, 0, 1 };
    expect("true,False\nFALSE,TRUE\n", QKV_ARRAY_BOOL, 2, 2, see);
    const double mask[] = { 0, -INFINITY, NAN, INFINITY };
    expect("0,-inf\nnan,+Inf\n", QKV_ARRAY_F32, 2, 2, mask);
    const double edge[] = { 9007199254740992., -9007199254740992. };
    expect("9007199254740992,-9007199254740992", QKV_ARRAY_I64, 1, 2, edge);
    const double beyond[] = { 18014398509481984. };
    expect("18014398509481984", QKV_ARRAY_F32, 1, 1, beyond);
    expect("9007199254740993", QKV_ARRAY_F32, 1, 1, edge); /* above 2^53, if by one */
    const double tiny[] = { 0, 1 };
    expect("1e-400,1", QKV_ARRAY_F32, 1, 2, tiny); /* not whole */
}

/* Just above the middle of two floats, nearer to it than any double. */
static void test_rounded_once(void **state) {
    (void)state;
    const double up[] = { 1 + 0x1p-23 };
    expect("1.000000059604644775390625000000001", QKV_ARRAY_F32, 1, 1, up);
}

static void test_forms(void **state) {
    (void)state;
    const double values[] = { .5, 1, 2, 3 };
    expect("a,b\n.5,1\n2,3\n", QKV_ARRAY_F32, 2, 2, values);
    expect("\xEF\xBB\xBF.5;1\r\n2;3\r\n", QKV_ARRAY_F32, 2, 2, values);
    expect(".5\t1\n\n2\t3", QKV_ARRAY_F32, 2, 2, values);
    expect("\"0.5\", 1 \n 2,\"3\"\n", QKV_ARRAY_F32, 2, 2, values);
    expect("x\n.5\n1\n2\n3\n", QKV_ARRAY_F32, 4, 1, values);
}

static void test_locale(void **state) {
    (void)state;
    const double values[] = { 1.5 };
    setlocale(LC_ALL, "de_DE.UTF-8");
    expect("1.5", QKV_ARRAY_F32, 1, 1, values);
    setlocale(LC_ALL, "C");
}

/* Rounded once from double to 16 bits: 1 + 2^-11 is half way, and goes to even. */
static void test_half(void **state) {
    (void)state;
    qkv_array *array;
    qkv_error error;
    assert_int_equal(read_text("1.00048828125,1.0004882812500002", QKV_ARRAY_F16, &array, &error),
                     QKV_OK);
    assert_int_equal(array->type, QKV_ARRAY_F16);
    assert_int_equal(((const uint16_t *)array->data)[0], 0x3C00);
    assert_int_equal(((const uint16_t *)array->data)[1], 0x3C01);
    qkv_array_free(array);
}

/* The same of bytes in memory, which are no text if they begin as a .npy. */
static void test_memory(void **state) {
    (void)state;
    static const char npy[] =
        "\x93NUMPY\1\0\x3a\0{'descr': '|u1', 'fortran_order': False, 'shape': (2, 1)}\n"
        "\1\2";
    qkv_array *array;
    qkv_error error;
    assert_int_equal(qkv_array_parse("x", "a\n1\n-2", 6, QKV_ARRAY_F32, &array, &error), QKV_OK);
    assert_int_equal(array->type, QKV_ARRAY_I64);
    assert_int_equal(array->shape[0], 2);
    assert_int_equal(((const int64_t *)array->data)[1], -2);
    qkv_array_free(array);
    assert_int_equal(qkv_array_parse("x", npy, sizeof npy - 1, QKV_ARRAY_F32, &array, &error),
                     QKV_OK);
    assert_int_equal(array->type, QKV_ARRAY_I64);
    assert_int_equal(array->rank, 2);
    assert_int_equal(((const int64_t *)array->data)[1], 2);
    qkv_array_free(array);
    static const struct {
        const char *name, *bytes, *message;
        size_t n_bytes;
        qkv_array_type floats;
        qkv_status status;
    } cases[] = {
        { "x", "", "x: no line has a number", 0, QKV_ARRAY_F32, QKV_ERR_FORMAT },
        { "x", NULL, "x: no line has a number", 0, QKV_ARRAY_F32, QKV_ERR_FORMAT },
        { "x", NULL, "bytes is NULL", 1, QKV_ARRAY_F32, QKV_ERR_ARGUMENT },
        { NULL, "1", "name is NULL", 1, QKV_ARRAY_F32, QKV_ERR_ARGUMENT },
        { "x", "1", "floats = 2 is none of", 1, QKV_ARRAY_I64, QKV_ERR_ARGUMENT },
        { "x", npy, "x: the npy header claims 2 bytes of data, 1 are there", sizeof npy - 2,
          QKV_ARRAY_F32, QKV_ERR_FORMAT },
        { "x", npy, "x: npy header of 58 bytes in 20", 20, QKV_ARRAY_F32, QKV_ERR_FORMAT },
        { "x", npy, "x: is not a .npy file", 7, QKV_ARRAY_F32, QKV_ERR_FORMAT },
        { "\x1b", "PK\3\4", "\\x1b: is a zip: a .npz is read from a file", 4, QKV_ARRAY_F32,
          QKV_ERR_UNSUPPORTED },
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        array = (qkv_array *)1;
        assert_int_equal(qkv_array_parse(cases[c].name, cases[c].bytes, cases[c].n_bytes,
                                         cases[c].floats, &array, &error),
                         cases[c].status);
        assert_null(array);
        if (!strstr(error.message, cases[c].message))
            fail_msg("'%s', not '%s'", error.message, cases[c].message);
    }
    assert_int_equal(qkv_array_parse("x", "1", 1, QKV_ARRAY_F32, NULL, &error), QKV_ERR_ARGUMENT);
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
        qkv_status status;
    } cases[] = {
        { "", "no line has a number", QKV_ERR_FORMAT },
        { "a,b\n", "no line has a number", QKV_ERR_FORMAT },
        { "1,2\n3\n", "line 2, column 1: 1 values, the lines before have 2", QKV_ERR_FORMAT },
        { "a,b,c\n1,2\n", "line 1 names 3 columns, the lines below have 2", QKV_ERR_FORMAT },
        { "1,\n", "line 1, column 3: a number is missing", QKV_ERR_FORMAT },
        { "1,x\n", "line 1, column 3: 'x' is not a number", QKV_ERR_FORMAT },
        { "0x10,1\n", "'0x10' is not a number", QKV_ERR_FORMAT },
        { "1e999,1\n", "'1e999' is not a number", QKV_ERR_FORMAT },
        { "1 2,3\n", "'1 2' is not a number", QKV_ERR_FORMAT },
        { "1,true\n", "line 1, column 3: true and false beside numbers", QKV_ERR_FORMAT },
        { "true\n1\n", "line 2, column 1: true and false beside numbers", QKV_ERR_FORMAT },
        { "1,\"2\n", "a quote that is never closed", QKV_ERR_FORMAT },
        { "1,\xFF\n", "line 1, column 3: not valid UTF-8", QKV_ERR_FORMAT },
        { "1,\x1b[2J\n", "'\\x1b[2J' is not a number", QKV_ERR_FORMAT },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static qkv_array none;
        qkv_array *array = &none;
        qkv_error error;
        assert_int_equal(read_text(cases[i].text, QKV_ARRAY_F32, &array, &error), cases[i].status);
        assert_null(array);
        if (!strstr(error.message, cases[i].message) || !strstr(error.message, path))
            fail_msg("%s, not %s", error.message, cases[i].message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),    cmocka_unit_test(test_rounded_once),
        cmocka_unit_test(test_forms),    cmocka_unit_test(test_locale),
        cmocka_unit_test(test_half),     cmocka_unit_test(test_memory),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
