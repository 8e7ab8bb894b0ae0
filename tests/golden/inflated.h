/**
 * The deflated files of tests/golden/tokenizer and bpe (tools/tokenizer_cases.py, bpe_cases.py).
 */
#ifndef GOLDEN_INFLATED_H
#define GOLDEN_INFLATED_H

#include <stdlib.h>

#include <zlib.h>

#include "files/file.h"

enum { INFLATED_LIMIT = 16 << 20 };

/** Inflates a file and adds a NUL; to be freed by free(). Any failure fails the test. */
static inline char *inflated(const char *path, size_t *n_bytes) {
    char *packed = NULL, *bytes = malloc(INFLATED_LIMIT + 1);
    size_t n_packed = 0;
    qkv_error error;
    if (qkvi_file_load(path, INFLATED_LIMIT, &packed, &n_packed, &error))
        fail_msg("%s", error.message);
    assert_non_null(bytes);
    uLongf n = INFLATED_LIMIT;
    if (uncompress((Bytef *)bytes, &n, (const Bytef *)packed, n_packed) != Z_OK)
        fail_msg("%s: not a deflated file", path);
    free(packed);
    bytes[n] = '\0';
    *n_bytes = n;
    return bytes;
}

#endif
