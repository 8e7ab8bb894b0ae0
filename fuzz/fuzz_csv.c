/*
 * An array as text. What is accepted has as many elements as lines and fields; written again with
 * 17 digits it is the same array, or one of floats where a number has another spelling.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/csv_array.h"
#include "fuzz/fuzz.h"

static double value_of(const qkv_array *a, int64_t i) {
    return a->type == QKV_ARRAY_BOOL  ? (double)((const uint8_t *)a->data)[i]
           : a->type == QKV_ARRAY_I64 ? (double)((const int64_t *)a->data)[i]
                                      : (double)((const float *)a->data)[i];
}

static char *write_again(const qkv_array *a, size_t *n_bytes) {
    char *bytes = NULL;
    FILE *out = open_memstream(&bytes, n_bytes);
    FUZZ_CHECK(out);
    for (int64_t i = 0; i < a->n_elems; i++) {
        const double value = value_of(a, i);
        if (a->type == QKV_ARRAY_BOOL)
            fputs(value > 0 ? "true" : "false", out);
        else
            fprintf(out, "%.17g", value);
        fputc((i + 1) % a->shape[1] ? ',' : '\n', out);
    }
    FUZZ_CHECK(fclose(out) == 0);
    return bytes;
}

static void check(const qkv_array *a) {
    qkv_array *again = NULL;
    qkv_error error;
    size_t n_bytes = 0;
    FUZZ_CHECK(a->rank == 2 && a->n_elems > 0 && a->shape[0] * a->shape[1] == a->n_elems);
    char *const text = write_again(a, &n_bytes);
    FUZZ_CHECK(qkvi_csv_parse("again", text, n_bytes, QKV_ARRAY_F32, &again, &error) == QKV_OK);
    FUZZ_CHECK(again->shape[0] == a->shape[0] && again->shape[1] == a->shape[1]);
    for (int64_t i = 0; i < a->n_elems; i++) {
        const double x = value_of(a, i), y = value_of(again, i);
        FUZZ_CHECK(x == y || (x != x && y != y));
    }
    qkv_array_free(again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    qkv_array *array = NULL;
    qkv_error error;
    char *const copy = malloc(n_bytes + 1);
    FUZZ_CHECK(copy);
    if (n_bytes > 0) memcpy(copy, bytes, n_bytes);
    copy[n_bytes] = '\0';
    if (fuzz_accepted(qkvi_csv_parse("x", copy, n_bytes, QKV_ARRAY_F32, &array, &error), &error))
        check(array);
    qkv_array_free(array);
    free(copy);
    return 0;
}
