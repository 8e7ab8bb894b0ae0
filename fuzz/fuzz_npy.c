/*
 * A .npy file, read as the tool reads it. The elements that its header promises
 * are there, and no more.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "model/store/npy.h"

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
        qkv_array_free(array);
    }
    return 0;
}
