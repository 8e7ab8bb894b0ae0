/**
 * A table of counts; see counter.h. The hash is FNV-1a with a final mix (Murmur3's), so that low
 * bits are good.
 */
#include "text/counter.h"

static uint32_t hash_of(const void *key, size_t n_bytes) {
    const unsigned char *bytes = key;
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < n_bytes; i++) hash = (hash ^ bytes[i]) * 16777619u;
    hash = (hash ^ (hash >> 16)) * 0x85EBCA6Bu;
    hash = (hash ^ (hash >> 13)) * 0xC2B2AE35u;
    return hash ^ (hash >> 16);
}

/* The slot of a key, or the free one where it belongs. */
static size_t slot_of(const qkvi_counter *counter, const void *key, size_t n_bytes, uint32_t hash) {
    size_t slot = hash & (counter->n_slots - 1);
    for (; counter->slots[slot]; slot = (slot + 1) & (counter->n_slots - 1)) {
        const qkvi_count *entry = &counter->entries[counter->slots[slot] - 1];
        if (entry->hash == hash && entry->n_bytes == n_bytes &&
            memcmp(counter->keys + entry->offset, key, n_bytes) == 0)
            break;
    }
    return slot;
}

static qkv_status grow_slots(qkvi_counter *counter) {
    const size_t n_slots = counter->n_slots ? 2 * counter->n_slots : 256;
    uint32_t *slots = qkvi_calloc_array(n_slots, sizeof *slots);
    if (slots == NULL) return QKV_ERR_MEMORY;
    for (size_t i = 0; i < counter->n; i++) {
        size_t slot = counter->entries[i].hash & (n_slots - 1);
        while (slots[slot]) slot = (slot + 1) & (n_slots - 1);
        slots[slot] = (uint32_t)i + 1;
    }
    free(counter->slots);
    counter->slots = slots;
    counter->n_slots = n_slots;
    return QKV_OK;
}

static qkv_status reserve(qkvi_counter *counter, size_t n_bytes) {
    if (counter->n == INT32_MAX) return QKV_ERR_LIMIT;
    if (2 * (counter->n + 1) > counter->n_slots) QKV_TRY(grow_slots(counter));
    QKV_TRY(qkvi_reserve(&counter->entries, &counter->capacity, counter->n + 1,
                         sizeof *counter->entries));
    return qkvi_reserve(&counter->keys, &counter->keys_capacity, counter->keys_bytes + n_bytes, 1);
}

qkv_status qkvi_counter_add(qkvi_counter *counter, const void *key, size_t n_bytes, int64_t count,
                            size_t *entry) {
    const uint32_t hash = hash_of(key, n_bytes);
    QKV_TRY(reserve(counter, n_bytes));
    const size_t slot = slot_of(counter, key, n_bytes, hash);
    if (counter->slots[slot] == 0) {
        memcpy(counter->keys + counter->keys_bytes, key, n_bytes);
        counter->entries[counter->n] =
            (qkvi_count){ counter->keys_bytes, (uint32_t)n_bytes, hash, 0 };
        counter->keys_bytes += n_bytes;
        counter->slots[slot] = (uint32_t)++counter->n;
    }
    const size_t at = counter->slots[slot] - 1;
    if (__builtin_add_overflow(counter->entries[at].count, count, &counter->entries[at].count))
        counter->entries[at].count = INT64_MAX; /* as good as any count beyond it */
    if (entry) *entry = at;
    return QKV_OK;
}

const qkvi_count *qkvi_counter_find(const qkvi_counter *counter, const void *key, size_t n_bytes) {
    if (counter->n == 0) return NULL;
    const size_t slot = slot_of(counter, key, n_bytes, hash_of(key, n_bytes));
    return counter->slots[slot] ? &counter->entries[counter->slots[slot] - 1] : NULL;
}

void qkvi_counter_free(qkvi_counter *counter) {
    free(counter->entries);
    free(counter->slots);
    free(counter->keys);
    *counter = (qkvi_counter){ 0 };
}
