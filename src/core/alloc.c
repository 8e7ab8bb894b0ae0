/*
 * The default allocator, and arrays with checked sizes.
 */
#include "core/alloc.h"

#include <stdlib.h>

#include "core/os.h"

/*
 * Packed K and V are walked in steps of many pages: with pages of 2 MiB, where the system allows
 * them, L = 4,096 and D = 128 gain 0.6 % of the peak (Zen 5).
 */
enum { HUGE_PAGE = 2 << 20, WORTH_HUGE_PAGES = 4 << 20 };

static void *default_alloc(void *user, size_t bytes, size_t alignment) {
    (void)user;
    size_t rounded;
    const bool huge = bytes >= WORTH_HUGE_PAGES;
    if (huge && alignment < HUGE_PAGE) alignment = HUGE_PAGE;
    if (!qkvi_add_size(bytes, alignment - 1, &rounded)) return NULL;
    void *const memory = qkvi_os_aligned(alignment, rounded & ~(alignment - 1));
    if (huge && memory) qkvi_os_prefer_large_pages(memory, bytes / HUGE_PAGE * HUGE_PAGE);
    return memory;
}

static void default_release(void *user, void *pointer, size_t bytes) {
    (void)user;
    (void)bytes;
    qkvi_os_aligned_free(pointer);
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

void qkvi_aligned_free(void *pointer) { qkvi_os_aligned_free(pointer); }
