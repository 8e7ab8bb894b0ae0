/** Random texts as tools/tokenizer_cases.py and tools/bpe_cases.py draw them, and their hashes. */
#ifndef GOLDEN_RANDOM_TEXT_H
#define GOLDEN_RANDOM_TEXT_H

#include <stdint.h>
#include <string.h>

#include "files/utf8.h"

enum { MAX_TEXT = 12 * 256 };

struct text {
    char bytes[MAX_TEXT];
    size_t n;
};

/** A random number in 0 … n − 1, by Knuth's MMIX generator. */
static inline uint32_t below(uint64_t *state, uint32_t n) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % n);
}

static inline void put(struct text *text, const char *bytes, size_t n) {
    assert_true(text->n + n <= MAX_TEXT);
    memcpy(text->bytes + text->n, bytes, n);
    text->n += n;
}

static inline void put_code(struct text *text, uint32_t code) {
    char bytes[4];
    put(text, bytes, qkvi_utf8_put((int32_t)code, bytes));
}

/** Appends any scalar value. */
static inline void put_any(struct text *text, uint64_t *state) {
    const uint32_t code = below(state, 0x110000 - 0x800);
    put_code(text, code < 0xD800 ? code : code + 0x800);
}

/** FNV-1a, a number at a time; begins with HASH_BEGIN. */
#define HASH_BEGIN 0x811C9DC5u
static inline uint32_t hash(uint32_t so_far, int64_t number) {
    return (so_far ^ (uint32_t)number) * 0x01000193u;
}

#endif
