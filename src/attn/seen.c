/* See seen.h. */
#include "attn/seen.h"

#include <string.h>

#include "attn/blocks.h"

qkvi_mask qkvi_mask_from(const qkvi_problem *p, int64_t b, int64_t h, int64_t i, int64_t j) {
    qkvi_mask mask = { .row = p->mask_stride[2], .key = p->mask_stride[3] };
    if (p->seg_k) {
        mask.seg_q = p->seg_q + b * p->seg_q_stride + i;
        mask.seg_k = p->seg_k + b * p->seg_k_stride + j;
    }
    if (p->alibi_slopes) {
        mask.slope = p->alibi_slopes[h];
        mask.distance = j - i - qkvi_position(p, b);
    }
    if (p->distance_bias) {
        mask.distance_bias = p->distance_bias + h * p->distance_bias_stride;
        mask.before = p->distance_before;
        mask.n_distances = qkvi_distances(p);
        mask.distance = j - i - qkvi_position(p, b);
    }
    if (p->mask_type == QKV_MASK_NONE) return mask;
    const void *row = qkvi_mask_row(p, b, h, i);
    mask.adds_type = qkvi_adds_type(p);
    if (qkvi_adds(p))
        mask.adds = qkvi_elem(row, mask.adds_type, j * mask.key);
    else if (p->mask_type == QKV_MASK_BITS)
        mask.bits = (const uint8_t *)row + j / 8 * mask.key;
    else
        mask.bools = (const uint8_t *)row + j * mask.key;
    return mask;
}

static uint32_t bits_of(int64_t begin, int64_t end) {
    uint32_t bits = 0;
    for (int64_t j = begin; j < end; j++) bits |= 1u << j;
    return bits;
}

/*
 * Of n <= 32 keys from j on, those that mask and segments let some query of `among` of head h see
 * that position lets see them.
 */
static uint32_t seen_by_rows(const qkvi_problem *p, const qkvi_kernels *kernels,
                             const qkvi_rules *r, int64_t b, int64_t h, qkvi_range among, int64_t j,
                             int n) {
    qkvi_range rows = qkvi_queries_of_block(r, j, j + n);
    rows.begin = qkvi_max_i64(rows.begin, among.begin);
    rows.end = qkvi_min_i64(rows.end, among.end);
    if (rows.begin >= rows.end) return 0;
    const qkvi_mask mask = qkvi_mask_from(p, b, h, rows.begin, j);
    const qkvi_range keys = qkvi_keys_of_block(r, rows.begin, rows.end);
    if (mask.row == 0 && !p->seg_k) /* one row for all queries, who together see an interval */
        return kernels->attend->mask_any(&mask, 1, n, keys.begin - j, keys.end - j);
    const qkvi_range first = qkvi_span_of(r, rows.begin);
    if (qkvi_moves_by_one(r))
        return kernels->attend->mask_any(&mask, rows.end - rows.begin, n, first.begin - j,
                                         first.end - j);
    uint32_t any = 0;
    for (int64_t i = rows.begin; i < rows.end && any != bits_of(0, n); i++) {
        const qkvi_mask row = qkvi_mask_from(p, b, h, i, j);
        const qkvi_range own = qkvi_keys_of(r, i);
        any |= kernels->attend->mask_any(&row, 1, n, own.begin - j, own.end - j);
    }
    return any;
}

/* Adds to see what queries of head h see through the block mask; within: what they may at most. */
static void seen_through_blocks(const qkvi_problem *p, const qkvi_kernels *kernels,
                                const qkvi_rules *r, int64_t b, int64_t h, int64_t key,
                                const uint32_t *within, uint32_t *see) {
    for (int64_t i = 0; i < r->n_queries; i = qkvi_blocks_after(p, i)) {
        const qkvi_range rows = { i, qkvi_min_i64(qkvi_blocks_after(p, i), r->n_queries) };
        uint32_t panels = qkvi_blocks_panels(p, b, h, i, key);
        for (; panels; panels &= panels - 1) {
            const int w = __builtin_ctz(panels);
            const int64_t j = key + 32 * w;
            if (see[w] == within[w]) continue;
            see[w] |= within[w] & seen_by_rows(p, kernels, r, b, h, rows, j,
                                               (int)qkvi_min_i64(32, r->n_keys - j));
        }
    }
}

/* All heads alike: one of them speaks for the others. */
static int64_t heads_to_ask(const qkvi_problem *p) {
    const bool alike = p->mask_stride[1] == 0 && (!p->block_len || p->block_offsets_stride[1] == 0);
    return alike ? qkvi_min_i64(1, p->heads_per_kv) : p->heads_per_kv;
}

void qkvi_seen(const qkvi_problem *p, const qkvi_kernels *kernels, const qkvi_rules *r, int64_t b,
               int64_t g, int64_t key, int64_t n_keys, uint32_t see[QKVI_SEEN_WORDS]) {
    /* Without heads there are no queries, and the mask, without elements, may be NULL. */
    const qkvi_range keys = r->n_queries > 0 && p->heads_per_kv > 0
                                ? qkvi_keys_of_block(r, 0, r->n_queries)
                                : (qkvi_range){ 0, 0 };
    const qkvi_range all = { 0, r->n_queries };
    const int64_t n_heads = heads_to_ask(p), h0 = g * p->heads_per_kv;
    uint32_t within[QKVI_SEEN_WORDS];
    for (int w = 0; w < QKVI_SEEN_WORDS; w++) {
        const int64_t j = key + 32 * w, n = qkvi_min_i64(32, key + n_keys - j);
        within[w] = bits_of(qkvi_max_i64(keys.begin - j, 0), qkvi_min_i64(keys.end - j, n));
        see[w] = qkvi_hides(p) ? 0 : within[w];
        for (int64_t h = 0; qkvi_hides(p) && !p->block_len && h < n_heads && see[w] != within[w];
             h++)
            see[w] |= seen_by_rows(p, kernels, r, b, h0 + h, all, j, (int)n);
    }
    for (int64_t h = 0; p->block_len && h < n_heads; h++)
        if (memcmp(see, within, sizeof within) != 0)
            seen_through_blocks(p, kernels, r, b, h0 + h, key, within, see);
}
