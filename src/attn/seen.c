/* See seen.h. */
#include "attn/seen.h"

qkvi_mask qkvi_mask_from(const qkvi_problem *p, int64_t b, int64_t h, int64_t i, int64_t j) {
    qkvi_mask mask = { .row = p->mask_stride[2], .key = p->mask_stride[3] };
    if (p->seg_k) {
        mask.seg_q = p->seg_q + b * p->seg_q_stride + i;
        mask.seg_k = p->seg_k + b * p->seg_k_stride + j;
    }
    if (p->alibi_slopes) {
        mask.slope = p->alibi_slopes[h];
        mask.distance = j - i - (p->q_offsets ? p->q_offsets[b] : p->q_offset);
    }
    if (p->mask_type == QKV_MASK_NONE) return mask;
    const void *row = qkvi_mask_row(p, b, h, i);
    if (p->mask_type == QKV_MASK_F32)
        mask.adds = (const float *)row + j * mask.key;
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
 * Of n <= 32 keys from j on, those that the mask lets some query of head h see that position lets
 * see them.
 */
static uint32_t seen_by_head(const qkvi_problem *p, const qkvi_kernels *kernels,
                             const qkvi_rules *r, int64_t b, int64_t h, int64_t j, int n) {
    const qkvi_range rows = qkvi_queries_of_block(r, j, j + n);
    if (rows.begin == rows.end) return 0;
    const qkvi_mask mask = qkvi_mask_from(p, b, h, rows.begin, j);
    const qkvi_range keys = qkvi_keys_of_block(r, rows.begin, rows.end);
    if (mask.row == 0 && !p->seg_k) /* one row for all queries, who together see an interval */
        return kernels->mask_any(&mask, 1, n, keys.begin - j, keys.end - j);
    const qkvi_range first = qkvi_span_of(r, rows.begin);
    if (!r->chunk && (r->causal_end <= 0 || r->causal_end == QKVI_NO_WINDOW)) /* a key a row */
        return kernels->mask_any(&mask, rows.end - rows.begin, n, first.begin - j, first.end - j);
    uint32_t any = 0;
    for (int64_t i = rows.begin; i < rows.end && any != bits_of(0, n); i++) {
        const qkvi_mask row = qkvi_mask_from(p, b, h, i, j);
        const qkvi_range own = qkvi_keys_of(r, i);
        any |= kernels->mask_any(&row, 1, n, own.begin - j, own.end - j);
    }
    return any;
}

void qkvi_seen(const qkvi_problem *p, const qkvi_kernels *kernels, const qkvi_rules *r, int64_t b,
               int64_t g, int64_t key, int64_t n_keys, uint32_t see[QKVI_SEEN_WORDS]) {
    /* Without heads there are no queries, and the mask, without elements, may be NULL. */
    const qkvi_range keys = r->n_queries > 0 && p->heads_per_kv > 0
                                ? qkvi_keys_of_block(r, 0, r->n_queries)
                                : (qkvi_range){ 0, 0 };
    /* All heads alike: one of them speaks for the others. */
    const int64_t n_heads = p->mask_stride[1] == 0 ? 1 : p->heads_per_kv;
    for (int w = 0; w < QKVI_SEEN_WORDS; w++) {
        const int64_t j = key + 32 * w, n = qkvi_min_i64(32, key + n_keys - j);
        see[w] = 0;
        if (n <= 0) continue;
        const uint32_t within =
            bits_of(qkvi_max_i64(keys.begin - j, 0), qkvi_min_i64(keys.end - j, n));
        if (!qkvi_hides(p)) see[w] = within;
        for (int64_t h = 0; qkvi_hides(p) && h < n_heads && see[w] != within; h++)
            see[w] |= seen_by_head(p, kernels, r, b, g * p->heads_per_kv + h, j, (int)n);
    }
}
