/*
 * FNV-1a of 64 bits, for ranks to compare what they have. It is no cryptographic hash: ranks trust
 * each other.
 */
#ifndef QKV_CLI_COMMON_HASH_H
#define QKV_CLI_COMMON_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START 0xcbf29ce484222325u

static inline uint64_t hash_add(uint64_t hash, const void *bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    return hash;
}

#endif
