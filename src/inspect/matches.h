/** Which queries have keys that their own token leads to: docs/statistics.md. */
#ifndef QKVI_INSPECT_MATCHES_H
#define QKVI_INSPECT_MATCHES_H

#include "attn/mask.h"

/** A query sees: another place of its token; an earlier one; a key after an earlier one. */
enum { QKVI_HAS_SAME = 1u << 0, QKVI_HAS_DUPLICATE = 1u << 1, QKVI_HAS_INDUCTION = 1u << 2 };

/**
 * Sets bits of matches, [n] zeros, by the tokens ids of as many queries and keys. Query i stands at key
 * i and sees the keys of the rules, as far as they are seen (NULL: all are).
 */
qkv_status qkvi_matches_find(const qkvi_rules *rules, const uint8_t *seen, const int32_t *ids,
                             uint8_t *matches, qkv_error *error);

#endif
