/*
 * Memory that notices: an array that ends at, or begins after, a page without access, in a mapping
 * full of canaries.
 */
#ifndef QKV_TESTS_GUARD_H
#define QKV_TESTS_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct guarded {
    void *data; /* of `bytes`; never NULL, also when there are none */
    size_t bytes;
    void *map;
    size_t map_bytes;
} guarded;

enum { CANARY_BYTE = 0xFF }; /* four of them are a NaN, so that reading one shows, too */

/*
 * At the end of its pages (flush with the guard page) or at their beginning. Filled with canaries.
 */
guarded guarded_new(size_t bytes, bool at_end);
void guarded_free(guarded *g);
/* From now on a write is a crash. */
void guarded_read_only(const guarded *g);
/* Are the bytes of the mapping around the array still canaries? */
bool guarded_intact(const guarded *g);
/* Of floats: the first that is -0; -1: none is. */
int64_t first_negative_zero(const guarded *g);

#endif
