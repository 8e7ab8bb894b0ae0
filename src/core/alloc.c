/*
 * The default allocator, and arrays with checked sizes.
 */
#include "core/alloc.h"

#include <stdlib.h>

static void *default_alloc(void *user, size_t bytes, size_t alignment) {
    (void)user;
    size_t rounded; /* aligned_alloc wants a multiple of the alignment */
    if (!qkvi_add_size(bytes, alignment - 1, &rounded)) return NULL;
    return aligned_alloc(alignment, rounded & ~(alignment - 1));
}

static void default_release(void *user, void *pointer, size_t bytes) {
    (void)user;
    (void)bytes;
    free(pointer);
}

qkv_allocator qkvi_allocator_resolve(qkv_allocator allocator) {
    if (!allocator.alloc && !allocator.release) {
        allocator.alloc = default_alloc;
        allocator.release = default_release;
    }
    return allocator;
}

void *qkvi_alloc(const qkv_allocator *allocator, size_t bytes) {
    return allocator->alloc(allocator->user, bytes, QKVI_ALIGNMENT);
}

void qkvi_release(const qkv_allocator *allocator, void *pointer, size_t bytes) {
    if (pointer) allocator->release(allocator->user, pointer, bytes);
}

/* n * size, at least 1, so that an empty array is not mistaken for a failure. */
static bool array_bytes(size_t n, size_t size, size_t *bytes) {
    if (!qkvi_mul_size(n, size, bytes)) return false;
    if (*bytes == 0) *bytes = 1;
    return true;
}

void *qkvi_malloc_array(size_t n, size_t size) {
    size_t bytes;
    return array_bytes(n, size, &bytes) ? malloc(bytes) : NULL;
}

void *qkvi_calloc_array(size_t n, size_t size) {
    size_t bytes;
    return array_bytes(n, size, &bytes) ? calloc(1, bytes) : NULL;
}

void *qkvi_realloc_array(void *pointer, size_t n, size_t size) {
    size_t bytes;
    return array_bytes(n, size, &bytes) ? realloc(pointer, bytes) : NULL;
}

void *qkvi_aligned_array(size_t n, size_t size) {
    size_t bytes;
    return array_bytes(n, size, &bytes) ? default_alloc(NULL, bytes, QKVI_ALIGNMENT) : NULL;
}
