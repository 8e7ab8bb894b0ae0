/**
 * Bytes that grow by doubling. A failure stays until the end, so that a writer asks for it once.
 */
#include "model/store/bytes.h"

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
