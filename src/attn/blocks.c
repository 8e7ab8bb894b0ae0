/* See blocks.h. */
#include "attn/blocks.h"

#include <inttypes.h>

/* ---- Lists ----------------------------------------------------------------------------------- */

/* The rest of a list from the first entry on that is not below block. */
static qkvi_block_list list_from(qkvi_block_list list, int64_t block) {
    int64_t low = 0, high = list.end - list.at;
    while (low < high) {
        const int64_t n = low + (high - low) / 2;
        if (list.at[n] < block)
            low = n + 1;
        else
            high = n;
    }
    return (qkvi_block_list){ list.at + low, list.end };
}

uint32_t qkvi_blocks_panels(const qkvi_problem *p, int64_t b, int64_t h, int64_t i, int64_t key) {
    qkvi_block_list list = list_from(qkvi_blocks_of(p, b, h, i), key / p->block_len);
    return qkvi_block_panels(&list, p->block_len, key);
}

int64_t qkvi_blocks_before(const qkvi_problem *p, int64_t b, int64_t h, int64_t i0, int64_t i1,
                           int64_t step) {
    const int64_t key = step * QKVI_KEY_BLOCK;
    int64_t last = -1;
    for (int64_t i = i0; i < i1 && last < step - 1; i = qkvi_blocks_after(p, i)) {
        const qkvi_block_list list = qkvi_blocks_of(p, b, h, i);
        const qkvi_block_list rest = list_from(list, key / p->block_len);
        if (rest.at < rest.end && *rest.at * p->block_len < key) return step - 1;
        if (rest.at > list.at)
            last = qkvi_max_i64(last, ((rest.at[-1] + 1) * p->block_len - 1) / QKVI_KEY_BLOCK);
    }
    return last;
}

int64_t qkvi_blocks_from(const qkvi_problem *p, int64_t b, int64_t h, int64_t i0, int64_t i1,
                         int64_t step) {
    const int64_t key = step * QKVI_KEY_BLOCK;
    int64_t first = -1;
    for (int64_t i = i0; i < i1 && first != step; i = qkvi_blocks_after(p, i)) {
        const qkvi_block_list rest = list_from(qkvi_blocks_of(p, b, h, i), key / p->block_len);
        if (rest.at == rest.end) continue;
        const int64_t at = qkvi_max_i64(step, *rest.at * p->block_len / QKVI_KEY_BLOCK);
        if (first < 0 || at < first) first = at;
    }
    return first;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static qkv_status check_offsets(const qkvi_problem *p, int64_t all_q, int64_t b, int64_t h,
                                int64_t *most, qkv_error *e) {
    const int64_t n_rows = qkvi_ceil_div(all_q, p->block_len);
    const int64_t *row =
        p->block_offsets + b * p->block_offsets_stride[0] + h * p->block_offsets_stride[1];
    if (row[0] < 0)
        return qkvi_error_set(
            e, QKV_ERR_SHAPE,
            "block_offsets[%" PRId64 "][%" PRId64 "][0] = %" PRId64 " is negative", b, h, row[0]);
    for (int64_t r = 0; r < n_rows; r++)
        if (row[r + 1] < row[r])
            return qkvi_error_set(e, QKV_ERR_SHAPE,
                                  "block_offsets[%" PRId64 "][%" PRId64 "][%" PRId64 "] = %" PRId64
                                  " is less than the %" PRId64 " before it",
                                  b, h, r + 1, row[r + 1], row[r]);
    *most = qkvi_max_i64(*most, row[n_rows]);
    return QKV_OK;
}

static qkv_status check_lists(const qkvi_problem *p, int64_t all_q, int64_t b, int64_t h,
                              qkv_error *e) {
    const int64_t n_keys = qkvi_ceil_div(p->len_k, p->block_len);
    for (int64_t i = 0; i < all_q; i += p->block_len) {
        const qkvi_block_list list = qkvi_blocks_of(p, b, h, i);
        int64_t before = -1;
        for (const int32_t *at = list.at; at < list.end; before = *at++) {
            if (*at > before && *at < n_keys) continue;
            const int64_t n = at - p->block_index;
            if (*at < 0 || *at >= n_keys)
                return qkvi_error_set(e, QKV_ERR_SHAPE,
                                      "block_index[%" PRId64 "] = %" PRId32
                                      " is not in [0, %" PRId64 ")",
                                      n, *at, n_keys);
            return qkvi_error_set(e, QKV_ERR_SHAPE,
                                  "block_index[%" PRId64 "] = %" PRId32
                                  " is not greater than the %" PRId64 " before it",
                                  n, *at, before);
        }
    }
    return QKV_OK;
}

qkv_status qkvi_blocks_check(const qkvi_problem *p, int64_t all_q, qkvi_arrays *all, qkv_error *e) {
    /* Batches and heads that repeat are looked at once; batches without a head may be 2^48. */
    const int64_t all_batches = p->n_heads ? p->n_batch : 0;
    const int64_t n_batch = p->block_offsets_stride[0] ? all_batches : qkvi_min_i64(1, all_batches);
    const int64_t n_heads = p->block_offsets_stride[1] ? p->n_heads : qkvi_min_i64(1, p->n_heads);
    int64_t most = 0;
    if (!p->block_len) return QKV_OK;
    for (int64_t b = 0; b < n_batch; b++)
        for (int64_t h = 0; h < n_heads; h++) QKV_TRY(check_offsets(p, all_q, b, h, &most, e));
    const int64_t size[4] = { 1, 1, 1, most }, stride[3] = { 0 };
    qkvi_arrays_add(all, "block_index", p->block_index, size, stride, false)->elem_bytes =
        sizeof *p->block_index;
    QKV_TRY(qkvi_arrays_check(all, true, e));
    for (int64_t b = 0; b < n_batch; b++)
        for (int64_t h = 0; h < n_heads; h++) QKV_TRY(check_lists(p, all_q, b, h, e));
    return QKV_OK;
}
