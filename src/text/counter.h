/**
 * Counts of byte strings: an open-addressing hash table whose entries stay in the order of their
 * first appearance, so that walking it never depends on the hash.
 */
#ifndef QKVI_TEXT_COUNTER_H
#define QKVI_TEXT_COUNTER_H

#include "files/base.h"

typedef struct qkvi_count {
    size_t offset; /* of the key's bytes */
    uint32_t n_bytes, hash;
    int64_t count;
} qkvi_count;

typedef struct qkvi_counter {
    qkvi_count *entries;
    size_t n, capacity;
    uint32_t *slots; /* entry + 1, 0: free; a power of two, at most half full */
    size_t n_slots;
    char *keys;
    size_t keys_bytes, keys_capacity;
} qkvi_counter;

/**
 * Adds count to that of a key, which starts at 0. *entry receives the index of its entry; entry may
 * be NULL. MEMORY, LIMIT (2^31 keys).
 */
qkv_status qkvi_counter_add(qkvi_counter *counter, const void *key, size_t n_bytes, int64_t count,
                            size_t *entry);

/** The entry of a key, or NULL. */
const qkvi_count *qkvi_counter_find(const qkvi_counter *counter, const void *key, size_t n_bytes);

void qkvi_counter_free(qkvi_counter *counter);

#endif
