/**
 * Bytes that grow by doubling. A failure stays until the end, so that a writer asks for it once.
 */
#include "model/store/bytes.h"

void qkvi_bytes_add(qkvi_bytes *bytes, const void *more, size_t n) {
    if (bytes->failed || n == 0) return;
    if (bytes->capacity - bytes->n < n) {
        const size_t capacity = 2 * bytes->capacity + n;
        unsigned char *grown = qkvi_realloc_array(bytes->data, capacity, 1);
        if (grown == NULL) {
            bytes->failed = 1;
            return;
        }
        bytes->data = grown;
        bytes->capacity = capacity;
    }
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
    if (growing->capacity - growing->n < n) {
        size_t capacity = growing->capacity ? growing->capacity : 64;
        while (capacity - growing->n < n) capacity *= 2;
        char *grown = qkvi_realloc_array(growing->bytes, capacity, 1);
        if (grown == NULL) return QKV_ERR_MEMORY;
        growing->bytes = grown;
        growing->capacity = capacity;
    }
    if (n > 0) memcpy(growing->bytes + growing->n, bytes, n);
    growing->n += n;
    return QKV_OK;
}
