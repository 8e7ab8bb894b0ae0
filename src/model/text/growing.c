/** See growing.h. */
#include "model/text/growing.h"

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
