/*
 * Arrays that end at, or begin after, a page without access (check/system.h), in pages that are
 * otherwise filled with canaries: reads and writes outside of them are found.
 */
#ifndef QKV_TESTS_GUARD_H
#define QKV_TESTS_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct guarded {
    void *data; /* [bytes]; never NULL, even if bytes is 0 */
    size_t bytes;
    void *map;
    size_t map_bytes;
} guarded;

enum { CANARY_BYTE = 0xFF }; /* four of them are a NaN, so that reading them is noticed, too */

/* An array at the end of its pages, adjacent to the guard page, or at their beginning. */
guarded guarded_new(size_t bytes, bool at_end);
void guarded_free(guarded *g);
/* Makes the array read-only: a write crashes. */
void guarded_read_only(const guarded *g);
/* Are the bytes of the mapping around the array still canaries? */
bool guarded_intact(const guarded *g);
/* The index of the first float that is -0; -1: none is. */
int64_t first_negative_zero(const guarded *g);

#endif
