/** Growing arrays, error messages, names: see base.h. */
#include "files/base.h"

qkv_status qkvi_no_memory(qkv_error *error, const char *what) {
    return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %s", what);
}

qkv_status qkvi_file_fail(qkv_error *error, qkv_status status, const char *file, const char *format,
                          ...) {
    char text[sizeof error->message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return qkvi_error_set(error, status, "%s: %s", file, text);
}

qkv_status qkvi_need(const void *pointer, const char *name, qkv_error *error) {
    return pointer ? QKV_OK : qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", name);
}

qkv_status qkvi_grow(void *list, size_t *capacity, size_t n, size_t width) {
    enum { LEAST = 64 };
    void *grown;
    size_t more = *capacity ? *capacity : LEAST;
    while (more < n && more <= SIZE_MAX / 2) more *= 2;
    if (more < n) return QKV_ERR_MEMORY;
    memcpy(&grown, list, sizeof grown); /* a pointer to any type of elements */
    grown = qkvi_realloc_array(grown, more, width);
    if (grown == NULL) return QKV_ERR_MEMORY;
    memcpy(list, &grown, sizeof grown);
    *capacity = more;
    return QKV_OK;
}

bool qkvi_ends_with(const char *text, const char *ending) {
    const size_t n = strlen(text), m = strlen(ending);
    return n >= m && strcmp(text + n - m, ending) == 0;
}

bool qkvi_has_stem(const char *text, const char *ending) {
    return strlen(text) > strlen(ending) && qkvi_ends_with(text, ending);
}

int qkvi_edit_distance(const char *a, const char *b) {
    int row[QKVI_NEAREST_BYTES + 1]; /* one at a time */
    const size_t n = strlen(a), m = strlen(b);
    if (n > QKVI_NEAREST_BYTES || m > QKVI_NEAREST_BYTES) return INT32_MAX;
    for (size_t j = 0; j <= m; j++) row[j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            const int change = diagonal + (a[i - 1] != b[j - 1]);
            const int gap = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = change < gap ? change : gap;
        }
    }
    return row[m];
}

/*
 * Bytes that grow by doubling. A failure stays until the end, so that a writer asks for it once.
 */

void qkvi_bytes_add(qkvi_bytes *bytes, const void *more, size_t n) {
    if (bytes->failed || n == 0) return;
    bytes->failed = qkvi_reserve(&bytes->data, &bytes->capacity, bytes->n + n, 1) != QKV_OK;
    if (bytes->failed) return;
    memcpy(bytes->data + bytes->n, more, n);
    bytes->n += n;
}

void qkvi_bytes_text(qkvi_bytes *bytes, const char *text) {
    qkvi_bytes_add(bytes, text, strlen(text));
}

void qkvi_bytes_free(qkvi_bytes *bytes) {
    free(bytes->data);
    *bytes = (qkvi_bytes){ 0 };
}

qkv_status qkvi_growing_put(qkvi_growing *growing, const void *bytes, size_t n) {
    QKV_TRY(qkvi_reserve(&growing->bytes, &growing->capacity, growing->n + n, 1));
    if (n > 0) memcpy(growing->bytes + growing->n, bytes, n);
    growing->n += n;
    return QKV_OK;
}
