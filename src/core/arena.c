/*
 * The arena of a context, and the cutting of a workspace. See arena.h for the way they are used.
 */
#include "core/arena.h"

void *qkvi_arena_reserve(qkvi_arena *arena, const qkv_allocator *allocator, size_t bytes) {
    if (bytes == 0) bytes = 1;
    if (bytes <= arena->block_bytes) return arena->block;
    qkvi_arena_release(arena, allocator);
    arena->block = qkvi_alloc(allocator, bytes);
    arena->block_bytes = arena->block ? bytes : 0;
    return arena->block;
}

void qkvi_arena_release(qkvi_arena *arena, const qkv_allocator *allocator) {
    qkvi_release(allocator, arena->block, arena->block_bytes);
    *arena = (qkvi_arena){ 0 };
}

void *qkvi_cut(qkvi_cutter *cutter, int64_t n, size_t size) {
    size_t bytes, end;
    if (!qkvi_bytes_of(n, size, &bytes) || !qkvi_align_size(bytes, &bytes) ||
        !qkvi_add_size(cutter->used_bytes, bytes, &end)) {
        cutter->overflow = true;
        return NULL;
    }
    char *piece = cutter->block ? cutter->block + cutter->used_bytes : NULL;
    cutter->used_bytes = end;
    return piece;
}
