/* See rules.h. */
#include "check/rules.h"

#include <math.h>

#include "check/elements.h"
#include "check/layout.h"

double rule_scale(const qkv_attention_desc *d) {
    if (d->flags & QKV_SET_SCALE) return (double)d->scale;
    return d->head_dim ? 1 / sqrt((double)d->head_dim) : 1;
}

static int64_t position_of(const qkv_attention_desc *d, int64_t b, int64_t i) {
    if (!(d->flags & QKV_SET_Q_OFFSET)) return i;
    return i + (d->q_offsets ? d->q_offsets[b] : d->q_offset);
}

double rule_distance(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t i, int64_t j) {
    if (!(d->flags & QKV_SET_ALIBI)) return 0;
    return (double)d->alibi_slopes[h] * (double)(j - position_of(d, b, i));
}

int64_t rule_distance_element(const qkv_attention_desc *d, int64_t b, int64_t i, int64_t j) {
    const int64_t at = d->distance_before + j - position_of(d, b, i);
    const int64_t last = d->distance_before + d->distance_after;
    return at < 0 ? 0 : at > last ? last : at;
}

double rule_distance_bias(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t i, int64_t j) {
    if (!(d->flags & QKV_SET_DISTANCE_BIAS)) return 0;
    const float *const row = d->distance_bias + h * d->distance_bias_stride;
    return (double)row[rule_distance_element(d, b, i, j)];
}

double rule_sink(const qkv_attention_desc *d, int64_t h) {
    return d->flags & QKV_SET_SINKS ? (double)d->sinks[h] : -INFINITY;
}

/* ---- Masks ----------------------------------------------------------------------------------- */

static elem_type mask_element(const qkv_attention_desc *d) {
    return d->mask_type == QKV_MASK_BF16  ? ELEMENT_BF16
           : d->mask_type == QKV_MASK_F16 ? ELEMENT_F16
                                          : ELEMENT_F32;
}

bool rule_adds(const qkv_attention_desc *d) {
    return d->flags & QKV_SET_MASK && d->mask_type != QKV_MASK_BOOL &&
           d->mask_type != QKV_MASK_BITS;
}

static int64_t mask_row(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t i) {
    return b * d->mask_stride[0] + h * d->mask_stride[1] + i * d->mask_stride[2];
}

double rule_bias(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t i, int64_t j) {
    if (!rule_adds(d)) return 0;
    const int64_t key = d->mask_len_k == 1 ? 0 : j;
    return element_get(d->mask, mask_element(d), mask_row(d, b, h, i) + key * d->mask_stride[3]);
}

static bool mask_shows(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t i, int64_t j) {
    if (d->mask_len_k > 1 && j >= d->mask_len_k) return false;
    if (rule_adds(d)) return !(rule_bias(d, b, h, i, j) == -INFINITY);
    const unsigned char *const row = (const unsigned char *)d->mask + mask_row(d, b, h, i);
    const int64_t key = d->mask_len_k == 1 ? 0 : j;
    if (d->mask_type == QKV_MASK_BITS) return row[key / 8] >> key % 8 & 1;
    return row[key * d->mask_stride[3]] != 0;
}

/* Is the key's block in the list of the query's? */
static bool block_shows(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t i, int64_t j) {
    const int64_t *const offsets = d->block_offsets + b * d->block_offsets_stride[0] +
                                   h * d->block_offsets_stride[1] + i / d->block_len;
    for (int64_t n = offsets[0]; n < offsets[1]; n++)
        if (d->block_index[n] == j / d->block_len) return true;
    return false;
}

/* ---- Positions ------------------------------------------------------------------------------- */

static bool position_shows(const qkv_attention_desc *d, int64_t b, int64_t i, int64_t j) {
    const int64_t position = position_of(d, b, i);
    const bool in_prefix = d->flags & QKV_SET_PREFIX_LEN && j < d->prefix_len[b];
    if ((d->flags & QKV_SET_CAUSAL) && j > position && !in_prefix) return false;
    if (d->flags & QKV_SET_CHUNK) {
        const double chunk = (double)d->chunk;
        if (floor((double)position / chunk) != floor((double)j / chunk)) return false;
    }
    if (d->flags & QKV_SET_WINDOW) {
        if (d->window_left >= 0 && position - j > d->window_left) return false;
        if (d->window_right >= 0 && j - position > d->window_right) return false;
    }
    return j < layout_keys(d, b);
}

bool rule_sees(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t i, int64_t j) {
    if (!position_shows(d, b, i, j)) return false;
    if (d->flags & QKV_SET_SEGMENTS &&
        d->seg_q[b * d->seg_q_stride + i] != d->seg_k[b * d->seg_k_stride + j])
        return false;
    if (d->flags & QKV_SET_BLOCK_MASK && !block_shows(d, b, h, i, j)) return false;
    return !(d->flags & QKV_SET_MASK) || mask_shows(d, b, h, i, j);
}
