/*
 * Workspace: one block that grows between calls, cut into aligned pieces.
 *
 * A function that lays out a workspace runs twice over the same code: once on an empty cutter, to
 * learn the size, and once on the block. So the size that is queried and the size that is used
 * cannot differ.
 *
 *     qkvi_cutter cutter = { 0 };
 *     lay_out(&cutter, …);              every piece is NULL, cutter.used_bytes is the answer
 *     cutter = qkvi_cutter_on(block);
 *     lay_out(&cutter, …);                              pieces point into the block
 */
#ifndef QKVI_CORE_ARENA_H
#define QKVI_CORE_ARENA_H

#include "core/alloc.h"

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

typedef struct qkvi_arena {
    void *block;
    size_t block_bytes;
} qkvi_arena;

/*
 * A block of at least bytes, aligned to QKVI_ALIGNMENT, with contents undefined; NULL when there is
 * no memory, and the arena is then empty. The block before it is gone if it was smaller: pointers
 * into it do not survive a call.
 */
void *qkvi_arena_reserve(qkvi_arena *arena, const qkv_allocator *allocator, size_t bytes);
void qkvi_arena_release(qkvi_arena *arena, const qkv_allocator *allocator);

typedef struct qkvi_cutter {
    char *block; /* NULL: measure only */
    size_t used_bytes;
    bool overflow; /* some size did not fit size_t; used_bytes means nothing then */
} qkvi_cutter;

static inline qkvi_cutter qkvi_cutter_on(void *block) { return (qkvi_cutter){ block, 0, false }; }

/* The next n elements of size bytes, aligned to QKVI_ALIGNMENT; NULL when only measuring. */
void *qkvi_cut(qkvi_cutter *cutter, int64_t n, size_t size);

#pragma GCC visibility pop

#endif
