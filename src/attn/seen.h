/*
 * Which keys are seen by any query. Others are never read: they may be missing, or hold anything.
 */
#ifndef QKVI_ATTN_SEEN_H
#define QKVI_ATTN_SEEN_H

#include "attn/mask.h"
#include "kernels/table.h"

enum { QKVI_SEEN_WORDS = QKVI_KEY_BLOCK / 32 };

/*
 * see: a bit for each of the keys [key, key + n_keys), n_keys <= 256: does some query of some head
 * that shares key/value head g see it? Bits beyond n_keys are clear. Reads the explicit mask up to
 * the first query that sees a key.
 */
void qkvi_seen(const qkvi_problem *problem, const qkvi_kernels *kernels, const qkvi_rules *rules,
               int64_t b, int64_t g, int64_t key, int64_t n_keys, uint32_t see[QKVI_SEEN_WORDS]);

/* Keys of the block before number n are not there: no query sees them. */
static inline void qkvi_seen_from(uint32_t see[QKVI_SEEN_WORDS], int64_t n) {
    for (int word = 0; word < QKVI_SEEN_WORDS && 32 * word < n; word++)
        see[word] &= 32 * word + 32 <= n ? 0 : UINT32_MAX << n % 32;
}

/* Whether anything but positions hides keys. */
static inline bool qkvi_hides(const qkvi_problem *p) {
    return p->mask_type || p->seg_k || p->block_len;
}

/* Words of `see` from `from` on that show a key: [*begin, *end), the next of such; false: none. */
static inline bool qkvi_seen_next(const uint32_t see[QKVI_SEEN_WORDS], int from, int *begin,
                                  int *end) {
    while (from < QKVI_SEEN_WORDS && see[from] == 0) from++;
    *begin = *end = from;
    while (*end < QKVI_SEEN_WORDS && see[*end] != 0) ++*end;
    return *begin < *end;
}

/* Mask, segments, ALiBi and distance bias from query i and key j on. */
qkvi_mask qkvi_mask_from(const qkvi_problem *problem, int64_t b, int64_t h, int64_t i, int64_t j);

#endif
