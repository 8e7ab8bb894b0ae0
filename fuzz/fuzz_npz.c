/*
 * A .npz file: a zip, and the arrays in it. What opens is covered by its entries, whose names
 * differ; an entry gives what it claims, in pieces of any size, or is refused; an array has the
 * elements of its shape; and what is listed is what can be read.
 */
#include <stdlib.h>
#include <string.h>

#include "files/npy.h"
#include "fuzz/fuzz.h"

enum { MOST_READ = 1 << 22 };

static void check_places(const qkvi_zip *zip) {
    uint64_t covered = 0;
    for (int64_t e = 0; e < zip->n_entries; e++) {
        const qkvi_zip_entry *const entry = &zip->entries[e];
        FUZZ_CHECK(qkvi_zip_find(zip, entry->name) == entry);
        FUZZ_CHECK(entry->header < entry->begin && entry->begin <= zip->source.n_bytes);
        FUZZ_CHECK(entry->n_stored <= zip->source.n_bytes - entry->begin);
        covered += entry->begin - entry->header + entry->n_stored;
    }
    FUZZ_CHECK(covered <= zip->source.n_bytes);
}

/* The content in pieces of 1, 2, 4 … bytes. */
static bool read_whole(const qkvi_zip *zip, const qkvi_zip_entry *entry) {
    qkvi_zip_reader reader;
    qkv_error error;
    qkv_status status = qkvi_zip_begin(zip, entry, &reader, &error);
    uint64_t left = entry->n_bytes;
    for (size_t piece = 1; status == QKV_OK && left > 0; piece *= 2) {
        const size_t n = piece < left ? piece : (size_t)left;
        void *const bytes = fuzz_alloc(n);
        status = qkvi_zip_take(&reader, bytes, n, &error);
        free(bytes);
        left -= n;
    }
    if (status == QKV_OK) status = qkvi_zip_finish(&reader, &error);
    qkvi_zip_end(&reader);
    return fuzz_accepted(status, &error);
}

static bool read_array(const char *path, const char *name, qkv_array_type floats) {
    static const size_t width[] = { 4, 1, 8, 2, 2 }; /* by qkv_array_type */
    qkv_array *array = NULL;
    qkv_error error;
    int64_t n = 1;
    const bool ok = fuzz_accepted(qkvi_npz_read(path, name, floats, &array, &error), &error);
    if (ok) {
        for (int d = 0; d < array->rank; d++) n *= array->shape[d];
        FUZZ_CHECK(n == array->n_elems);
        volatile uint8_t sum = 0; /* touches every byte */
        for (size_t i = 0; i < (size_t)n * width[array->type]; i++)
            sum = (uint8_t)(sum + ((const uint8_t *)array->data)[i]);
    }
    qkv_array_free(array);
    return ok;
}

static void count(void *user, const qkv_tensor_entry *entry) {
    FUZZ_CHECK(entry->rank >= 0 && entry->rank <= QKVI_NPY_MAX_RANK);
    ++*(int64_t *)user;
}

static int is_array(const qkvi_zip_entry *entry) {
    const size_t n = strlen(entry->name);
    return n >= 4 && strcmp(entry->name + n - 4, ".npy") == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    const char *const path = fuzz_file(bytes, n_bytes);
    qkvi_zip zip;
    qkv_error error;
    int64_t n_listed = 0, n_arrays = 0;
    if (!fuzz_accepted(qkvi_zip_open(path, &zip, &error), &error)) return 0;
    check_places(&zip);
    const bool is_listed = fuzz_accepted(qkvi_npz_list(path, count, &n_listed, &error), &error);
    for (int64_t e = 0; e < zip.n_entries && e < 16; e++) {
        const qkvi_zip_entry *const entry = &zip.entries[e];
        const bool is_whole = entry->n_bytes <= MOST_READ && read_whole(&zip, entry);
        const bool is_read = read_array(path, entry->name, QKV_ARRAY_F32);
        FUZZ_CHECK(!is_read || is_whole || entry->n_bytes > MOST_READ);
        FUZZ_CHECK(!is_read || is_array(entry));
        if (is_read) (void)read_array(path, entry->name, QKV_ARRAY_F16);
    }
    for (int64_t e = 0; e < zip.n_entries; e++) n_arrays += is_array(&zip.entries[e]);
    FUZZ_CHECK(!is_listed || n_listed == n_arrays);
    qkvi_zip_close(&zip);
    return 0;
}
