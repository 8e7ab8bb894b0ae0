/*
 * A table of keys and values. What is accepted has keys that are not empty and finite numbers, as
 * many in every row; written again with every field in quotes, with either separator and line end,
 * it is the same table.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/utf8.h"
#include "fuzz/fuzz.h"
#include "qkv/files.h"

static void put_field(FILE *out, const char *text) {
    fputc('"', out);
    for (; *text; text++) fprintf(out, "%s%c", *text == '"' ? "\"" : "", *text);
    fputc('"', out);
}

/* Names first, if there are any: a first line of numbers is none. */
static char *write_again(const qkv_table *t, char separator, const char *end, size_t *n_bytes) {
    char *bytes = NULL;
    FILE *out = open_memstream(&bytes, n_bytes);
    FUZZ_CHECK(out);
    if (t->names) {
        put_field(out, "key");
        for (int64_t c = 0; c < t->n_values; c++) {
            fputc(separator, out);
            put_field(out, t->names[c]);
        }
        fputs(end, out);
    }
    for (int64_t i = 0; i < t->n_rows; i++) {
        put_field(out, t->keys[i]);
        for (int64_t c = 0; c < t->n_values; c++)
            fprintf(out, "%c%.9g", separator, (double)t->values[i * t->n_values + c]);
        fputs(end, out);
    }
    FUZZ_CHECK(fclose(out) == 0);
    return bytes;
}

static void check_same(const qkv_table *a, const qkv_table *b) {
    FUZZ_CHECK(a->n_rows == b->n_rows && a->n_values == b->n_values);
    FUZZ_CHECK(!a->names == !b->names);
    for (int64_t c = 0; a->names && c < a->n_values; c++)
        FUZZ_CHECK(strcmp(a->names[c], b->names[c]) == 0);
    for (int64_t i = 0; i < a->n_rows; i++) FUZZ_CHECK(strcmp(a->keys[i], b->keys[i]) == 0);
    FUZZ_CHECK(
        memcmp(a->values, b->values, (size_t)(a->n_rows * a->n_values) * sizeof *a->values) == 0);
}

static void check(const qkv_table *t) {
    FUZZ_CHECK(t->n_rows > 0 && t->n_values > 0);
    for (int64_t i = 0; i < t->n_rows; i++) {
        const size_t n = strlen(t->keys[i]);
        FUZZ_CHECK(n > 0 && qkvi_utf8_valid(t->keys[i], n) == n);
    }
    for (int64_t i = 0; i < t->n_rows * t->n_values; i++) FUZZ_CHECK(isfinite(t->values[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    qkv_table *table, *again;
    qkv_error error;
    if (!fuzz_accepted(qkv_table_parse("x", bytes, n_bytes, &table, &error), &error)) {
        FUZZ_CHECK(!table);
        return 0;
    }
    check(table);
    for (int turn = 0; turn < 2; turn++) {
        size_t n_again = 0;
        char *const text = write_again(table, turn ? '\t' : ',', turn ? "\r\n" : "\n", &n_again);
        const qkv_status status = qkv_table_parse("again", text, n_again, &again, &error);
        if (status == QKV_OK) check_same(table, again);
        /* a field that doubled quotes or a name take above their limits may be refused */
        FUZZ_CHECK(status == QKV_OK || status == QKV_ERR_LIMIT);
        qkv_table_free(again);
        free(text);
    }
    qkv_table_free(table);
    return 0;
}
