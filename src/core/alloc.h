/*
 * Memory: products that cannot wrap, the context's allocator, and plain arrays for code that has no
 * context.
 *
 * Every allocation of a context goes through its qkv_allocator, which is always complete here:
 * qkvi_allocator_resolve has replaced the two NULLs of the default. Arrays of qkvi_malloc_array and
 * its sisters come from malloc; release with free. Aligned ones are released by
 * qkvi_aligned_free, because free of Windows does not take them.
 */
#ifndef QKVI_CORE_ALLOC_H
#define QKVI_CORE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <qkv/qkv.h>

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

enum { QKVI_ALIGNMENT = 64 }; /* a cache line, and the widest vector */

/*
 * Each is true, with the result stored, if the result fits; false, with *out unspecified,
 * otherwise.
 */
static inline bool qkvi_mul_i64(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool qkvi_add_i64(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_add_overflow(a, b, out);
}
static inline bool qkvi_mul_size(size_t a, size_t b, size_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool qkvi_add_size(size_t a, size_t b, size_t *out) {
    return !__builtin_add_overflow(a, b, out);
}
/* n elements of size bytes, in bytes; false for n < 0 too. */
static inline bool qkvi_bytes_of(int64_t n, size_t size, size_t *bytes) {
    return !__builtin_mul_overflow(n, size, bytes);
}
/* Rounds up to a multiple of QKVI_ALIGNMENT. */
static inline bool qkvi_align_size(size_t bytes, size_t *out) {
    if (!qkvi_add_size(bytes, QKVI_ALIGNMENT - 1, out)) return false;
    *out -= *out % QKVI_ALIGNMENT;
    return true;
}

/* The allocator itself, or that of qkvi_aligned_array if both functions are NULL. */
qkv_allocator qkvi_allocator_resolve(qkv_allocator allocator);

/* bytes > 0 of memory, aligned to QKVI_ALIGNMENT; NULL when there is none. */
void *qkvi_alloc(const qkv_allocator *allocator, size_t bytes);
/* NULL is allowed. bytes is what qkvi_alloc was given. */
void qkvi_release(const qkv_allocator *allocator, void *pointer, size_t bytes);

/*
 * n elements of size bytes, or NULL when memory or size_t is too small; never NULL merely because n
 * is 0.
 */
void *qkvi_malloc_array(size_t n, size_t size);
void *qkvi_calloc_array(size_t n, size_t size);
void *qkvi_realloc_array(void *pointer, size_t n, size_t size);
/* The same, aligned to QKVI_ALIGNMENT; release with qkvi_aligned_free, which takes NULL too. */
void *qkvi_aligned_array(size_t n, size_t size);
void qkvi_aligned_free(void *pointer);

#pragma GCC visibility pop

#endif
