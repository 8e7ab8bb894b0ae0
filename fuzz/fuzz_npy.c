/*
 * A .npy file, read as the tool reads it, whole and in parts. The elements that its header promises
 * are there, and no more. Parts have the bytes of the whole array, and are refused where it is.
 */
#include <string.h>

#include "files/npy.h"
#include "fuzz/fuzz.h"

static size_t width_of(qkv_array_type type) {
    static const size_t width[] = { 4, 1, 8, 2, 2 }; /* by qkv_array_type */
    return width[type];
}

static void check(const qkv_array *array, const char *path) {
    qkvi_source source;
    qkvi_npy npy;
    qkv_error error;
    int64_t n = 1;
    FUZZ_CHECK(array->rank >= 0 && array->rank <= QKVI_NPY_MAX_RANK);
    for (int d = 0; d < array->rank; d++) n *= array->shape[d];
    FUZZ_CHECK(n == array->n_elems);
    FUZZ_CHECK(qkvi_source_open(path, &source, &error) == QKV_OK);
    FUZZ_CHECK(qkvi_npy_read_header(&source, &npy, &error) == QKV_OK);
    FUZZ_CHECK(npy.data_begin + npy.n_elems * qkvi_elem_bytes(npy.type) == source.n_bytes);
    qkvi_source_close(&source);
    volatile uint8_t sum = 0; /* touches every byte */
    const uint8_t *const data = array->data;
    for (size_t i = 0; i < (size_t)n * width_of(array->type); i++) sum = (uint8_t)(sum + data[i]);
}

/* Rows `at` and on of each block of rows, which are all of the part. */
static void compare(const qkv_array *part, const qkv_array *whole, int64_t at) {
    const int64_t n = part->shape[part->rank - 2], n_rows = whole->shape[whole->rank - 2];
    const size_t row = (size_t)whole->shape[whole->rank - 1] * width_of(whole->type);
    const size_t size = part->n_elems ? (size_t)n * row : 0; /* empty: any product of dimensions */
    const size_t n_blocks = size ? (size_t)part->n_elems * width_of(part->type) / size : 0;
    FUZZ_CHECK(part->type == whole->type && part->rank == whole->rank);
    for (size_t b = 0; b < n_blocks; b++)
        FUZZ_CHECK(memcmp((const char *)part->data + b * size,
                          (const char *)whole->data + (b * (size_t)n_rows + (size_t)at) * row,
                          size) == 0);
}

static void check_parts(const char *path, qkv_array_type floats, const qkv_array *whole) {
    enum { N_PARTS = 3 };
    int64_t n_rows = 0, n_elems = 0;
    for (int p = 0; p < N_PARTS; p++) {
        qkv_array *part;
        qkv_error error;
        int64_t rows[2];
        if (!fuzz_accepted(qkv_array_read_part(path, floats, p, N_PARTS, &part, rows, &error),
                           &error)) {
            FUZZ_CHECK(!part && p == 0);
            return;
        }
        FUZZ_CHECK(whole && rows[0] == n_rows && rows[1] == whole->shape[whole->rank - 2]);
        compare(part, whole, n_rows);
        n_rows += part->shape[part->rank - 2];
        n_elems += part->n_elems;
        qkv_array_free(part);
    }
    FUZZ_CHECK(n_rows == whole->shape[whole->rank - 2] && n_elems == whole->n_elems);
}

/* Of bytes in memory an array is that of the file. */
static void check_memory(const uint8_t *bytes, size_t n_bytes, qkv_array_type floats,
                         const qkv_array *whole) {
    qkv_array *array;
    qkv_error error;
    const bool made =
        fuzz_accepted(qkv_array_parse("memory", bytes, n_bytes, floats, &array, &error), &error);
    FUZZ_CHECK(made == (array != NULL));
    if (n_bytes >= 6 && memcmp(bytes, "\x93NUMPY", 6) == 0) {
        FUZZ_CHECK(made == (whole != NULL));
        FUZZ_CHECK(!made || (array->type == whole->type && array->n_elems == whole->n_elems &&
                             memcmp(array->data, whole->data,
                                    (size_t)array->n_elems * width_of(array->type)) == 0));
    }
    qkv_array_free(array);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    const char *const path = fuzz_file(bytes, n_bytes);
    static const qkv_array_type floats[] = { QKV_ARRAY_F32, QKV_ARRAY_BF16, QKV_ARRAY_F16 };
    qkv_array *array;
    qkv_error error;
    for (int n = 0; n < 3; n++) {
        if (fuzz_accepted(qkv_array_read(path, floats[n], &array, &error), &error))
            check(array, path);
        else
            FUZZ_CHECK(!array);
        check_parts(path, floats[n], array);
        check_memory(bytes, n_bytes, floats[n], array);
        qkv_array_free(array);
    }
    return 0;
}
