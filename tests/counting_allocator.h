/*
 * An allocator that counts blocks and bytes, and fails on request. At the end of a test n_alive and
 * bytes_alive must be 0; bytes_alive also shows a release with another size than that of the
 * allocation. For the caller's thread only, like every allocator of a context.
 */
#ifndef QKV_TESTS_COUNTING_ALLOCATOR_H
#define QKV_TESTS_COUNTING_ALLOCATOR_H

#include <stdint.h>
#include <stdlib.h>

#include "qkv/qkv.h"

typedef struct counting_allocator {
    int64_t n_calls, fail_at; /* the fail_at-th call of alloc fails; 0: none */
    int64_t n_alive;
    size_t bytes_alive;
} counting_allocator;

static inline void *counting_alloc(void *user, size_t bytes, size_t alignment) {
    counting_allocator *counter = user;
    if (++counter->n_calls == counter->fail_at) return NULL;
    if (alignment == 0 || alignment & (alignment - 1)) abort(); /* must be a power of two */
    counter->n_alive++;
    counter->bytes_alive += bytes;
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static inline void counting_release(void *user, void *pointer, size_t bytes) {
    counting_allocator *counter = user;
    if (!pointer) abort(); /* the library must not release NULL */
    counter->n_alive--;
    counter->bytes_alive -= bytes;
    free(pointer);
}

static inline qkv_allocator counting_allocator_of(counting_allocator *counter) {
    return (qkv_allocator){ counting_alloc, counting_release, counter };
}

#endif
