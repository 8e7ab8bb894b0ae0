/*
 * Tables of keys and values: valid ones are read correctly, with any separator, quotes and locale.
 */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/files.h"

static qkv_table *parse(const char *text) {
    qkv_table *table;
    qkv_error error;
    if (qkv_table_parse("table", text, strlen(text), &table, &error) != QKV_OK)
        fail_msg("%s: %s", text, error.message);
    return table;
}

static void expect(const char *text, int64_t n_rows, int64_t n_values, const char *const *keys,
                   const float *values) {
    qkv_table *t = parse(text);
    assert_int_equal(t->n_rows, n_rows);
    assert_int_equal(t->n_values, n_values);
    for (int64_t i = 0; i < n_rows; i++) assert_string_equal(t->keys[i], keys[i]);
    for (int64_t i = 0; i < n_rows * n_values; i++)
        if (t->values[i] != values[i])
            fail_msg("%s: value %d is %g", text, (int)i, (double)t->values[i]);
    qkv_table_free(t);
}

static void test_forms(void **state) {
    (void)state;
    static const char *const keys[] = { "a b", "c" };
    static const float one[] = { 1.5F, -2e-3F }, two[] = { 1, 2, 3, 4 };
    expect("a b,1.5\nc,-2e-3\n", 2, 1, keys, one);
    expect("\n a b , 1.5 \r\n\r\n\"c\" , \"-.002\" ", 2, 1, keys, one);
    expect("a b\t1.5\nc\t-2e-3", 2, 1, keys, one);
    expect("a b;+1.5\nc;-0.2e-2", 2, 1, keys, one);
    expect("\xef\xbb\xbf"
           "a b,1,2\nc,3,4\n",
           2, 2, keys, two);
    expect("key,x,y\na b,1,2\nc,3,4\n", 2, 2, keys, two);
    expect("a b,\"1, 2\"\nc,\"[3 4]\"\n", 2, 2, keys, two);
    expect("a b,\"1;2\"\nc,3,4\n", 2, 2, keys, two);
    expect("a b\t1, 2\nc\t[3,4]\n", 2, 2, keys, two);
    expect("key,vector\na b,1 2\nc,\" 3,\n4 \"\n", 2, 2, keys, two);
}

static void test_quotes(void **state) {
    (void)state;
    static const char *const keys[] = { "he said \"no\"", "one, two", "line\nbreak", "\"" };
    static const float values[] = { 1, 2, 3, 4 };
    expect("\"he said \"\"no\"\"\",1\n\"one, two\",2\n\"line\nbreak\",3\n\"\"\"\",4\n", 4, 1, keys,
           values);
}

/* The separator of the first line, not of those in its quotes. */
static void test_separator(void **state) {
    (void)state;
    static const char *const keys[] = { "a\tb", "c;d" };
    static const float values[] = { 1, 2 };
    expect("\"a\tb\",1\nc;d,2\n", 2, 1, keys, values);
    static const char *const others[] = { "a,b" };
    expect("a,b\t1\n", 1, 1, others, values);
}

static void test_names(void **state) {
    (void)state;
    qkv_table *t = parse("word,\"price, each\",weight\napple,1,2\n");
    assert_non_null(t->names);
    assert_string_equal(t->names[0], "price, each");
    assert_string_equal(t->names[1], "weight");
    qkv_table_free(t);
    t = parse("apple,1\n");
    assert_null(t->names);
    qkv_table_free(t);
    t = parse("word,vector\napple,\"1 2\"\n"); /* one name for a list: no names */
    assert_null(t->names);
    assert_int_equal(t->n_values, 2);
    qkv_table_free(t);
    t = parse("word,2020,2021\napple,1,2\n"); /* years look like numbers */
    assert_int_equal(t->n_rows, 2);
    qkv_table_free(t);
}

/* Rounded once, to nearest, and by "C" rules in any locale of the host. */
static void test_numbers(void **state) {
    (void)state;
    static const char *const texts[] = { "0.1",
                                         "16777217",
                                         "3.4028235e38",
                                         "1e-45",
                                         "-0",
                                         "1.00000005960464477539",
                                         "1.000000059604644775390626" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char line[80];
        snprintf(line, sizeof line, "a,%s\n", texts[i]);
        for (int turn = 0; turn < 2; turn++) {
            if (turn) setlocale(LC_ALL, "de_DE.UTF-8"); /* where there is none, nothing changes */
            qkv_table *t = parse(line);
            setlocale(LC_ALL, "C");
            assert_true(t->values[0] == strtof(texts[i], NULL));
            assert_int_equal(signbit(t->values[0]) != 0, texts[i][0] == '-');
            qkv_table_free(t);
        }
    }
}

static void test_many(void **state) {
    (void)state;
    enum { N = 5000 };
    char *text = malloc(N * 40), *end = text;
    for (int i = 0; i < N; i++) end += sprintf(end, "key%d,%d,%d.5\n", i, i, -i);
    qkv_table *t = parse(text);
    assert_int_equal(t->n_rows, N);
    for (int i = 0; i < N; i++) {
        char key[20];
        snprintf(key, sizeof key, "key%d", i);
        assert_string_equal(t->keys[i], key);
        assert_true(t->values[2 * i] == (float)i);
        assert_true(fabsf(t->values[2 * i + 1]) == (float)i + 0.5F);
    }
    qkv_table_free(t);
    free(text);
}

static void test_arguments(void **state) {
    (void)state;
    qkv_table *t;
    qkv_error error;
    assert_int_equal(qkv_table_parse(NULL, "a,1", 3, &t, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_table_parse("x", NULL, 3, &t, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_table_parse("x", "a,1", 3, NULL, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_table_read(NULL, &t, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_table_read("x", NULL, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_table_parse("x", NULL, 0, &t, &error), QKV_ERR_FORMAT);
    assert_string_equal(error.message, "x: no line has a key and a value");
    assert_int_equal(qkv_table_parse("a\x1b", "", 0, &t, NULL), QKV_ERR_FORMAT);
    qkv_table_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),     cmocka_unit_test(test_quotes),
        cmocka_unit_test(test_separator), cmocka_unit_test(test_names),
        cmocka_unit_test(test_numbers),   cmocka_unit_test(test_many),
        cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
