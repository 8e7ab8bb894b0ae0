/*
 * Options of cases: numbers, positions, lengths; segments, block masks, ALiBi, distance bias,
 * sinks, dropout.
 */
#include <math.h>

#include "check/cases.h"

static void add_numbers(rng *r, check_case *c, const recipe *x) {
    static const float scales[] = { 0, 1, -0.5f, 0.3f, 2, 1e-20f, -0.125f };
    qkv_attention_desc *const d = &c->d;
    if (recipe_has(x, FEATURE_SCALE)) {
        d->flags |= QKV_SET_SCALE;
        d->scale = scales[rng_between(r, 0, 6)];
    }
    if (recipe_has(x, FEATURE_SOFTCAP)) {
        d->flags |= QKV_SET_SOFTCAP;
        d->softcap = rng_chance(r, 50) ? 20.0f : 0.5f + fabsf(rng_normal(r));
    }
    if (recipe_has(x, FEATURE_DROPOUT)) {
        static const float shares[] = { 0, 1, 0.1f, 0.5f, 0.25f, 0.9f, 0x1p-32f };
        d->flags |= QKV_SET_DROPOUT;
        d->dropout = shares[rng_chance(r, 70) ? rng_between(r, 2, 4) : rng_between(r, 0, 6)];
        d->dropout_seed = rng_next(r);
    }
}

static void add_positions(rng *r, check_case *c, const recipe *x) {
    qkv_attention_desc *const d = &c->d;
    if (recipe_has(x, FEATURE_CAUSAL)) d->flags |= QKV_SET_CAUSAL;
    if (recipe_has(x, FEATURE_PREFIX)) d->flags |= QKV_SET_PREFIX_LEN;
    if (recipe_has(x, FEATURE_WINDOW)) {
        d->flags |= QKV_SET_WINDOW;
        d->window_left = rng_chance(r, 30) ? -1 : rng_between(r, 0, d->len_k / 2 + 1);
        d->window_right = rng_chance(r, 30) ? -1 : rng_between(r, 0, d->len_k / 2 + 1);
    }
    if (recipe_has(x, FEATURE_OFFSET)) {
        d->flags |= QKV_SET_Q_OFFSET;
        d->q_offset = rng_chance(r, 50) ? d->len_k - d->len_q : rng_between(r, -20, 20);
        if (rng_chance(r, 50)) d->q_offsets = c->q_offsets;
    }
    if (recipe_has(x, FEATURE_CHUNK)) {
        d->flags |= QKV_SET_CHUNK;
        d->chunk = rng_chance(r, 30) ? rng_between(r, 1, 4) : rng_between(r, 1, d->len_k + 2);
    }
}

void case_options(rng *r, check_case *c, const recipe *x) {
    qkv_attention_desc *const d = &c->d;
    add_numbers(r, c, x);
    add_positions(r, c, x);
    if (recipe_has(x, FEATURE_KV_LEN)) d->flags |= QKV_SET_KV_LEN;
    if (recipe_has(x, FEATURE_Q_LEN)) d->flags |= QKV_SET_Q_LEN;
    for (int64_t b = 0; b < d->n_batch; b++) {
        c->q_offsets[b] = rng_between(r, -30, 30);
        c->kv_len[b] = rng_chance(r, 15) ? 0 : rng_between(r, 0, layout_rows(d, 'k', b));
        c->q_len[b] = rng_between(r, 0, layout_rows(d, 'q', b));
        c->prefix_len[b] = rng_between(r, 0, d->len_k);
    }
    d->kv_len = c->kv_len;
    d->q_len = c->q_len;
    d->prefix_len = c->prefix_len;
}

/* ---- Arrays of rules ------------------------------------------------------------------------- */

static guarded segments_new(rng *r, const check_case *c, int64_t len, int64_t *stride) {
    const int64_t rows = rng_chance(r, 30) ? 1 : c->d.n_batch;
    *stride = rows == 1 ? 0 : len + rng_between(r, 0, 3);
    guarded g =
        guarded_new(len ? (size_t)((rows - 1) * *stride + len) * sizeof(int32_t) : 0, c->at_end);
    const bool sorted = rng_chance(r, 60);
    for (int64_t b = 0; len && b < rows; b++) {
        int32_t id = -1;
        for (int64_t i = 0; i < len; i++) {
            if (sorted)
                id += rng_chance(r, 5);
            else
                id = (int32_t)rng_between(r, 0, 2);
            ((int32_t *)g.data)[b * *stride + i] = id;
        }
    }
    return g;
}

static guarded per_head(rng *r, const check_case *c, float size) {
    guarded g = guarded_new((size_t)c->d.n_heads * sizeof(float), c->at_end);
    for (int64_t h = 0; h < c->d.n_heads; h++)
        ((float *)g.data)[h] = rng_chance(r, 20) ? 0 : size * rng_normal(r);
    return g;
}

/* A few distances, or more than there are; a row for each head, or one for all. */
static void add_distances(rng *r, check_case *c) {
    qkv_attention_desc *const d = &c->d;
    const float size = rng_chance(r, 10) ? 20 : 1.5f;
    const int64_t most = d->len_q + d->len_k + 4;
    d->flags |= QKV_SET_DISTANCE_BIAS;
    d->distance_before = rng_between(r, 0, rng_chance(r, 40) ? 3 : most);
    d->distance_after = rng_between(r, 0, rng_chance(r, 40) ? 3 : most);
    const int64_t n = d->distance_before + 1 + d->distance_after;
    d->distance_bias_stride = rng_chance(r, 20) ? 0 : n + rng_between(r, 0, 2);
    c->d_distance_stride =
        rng_chance(r, d->distance_bias_stride ? 10 : 70) ? 0 : n + rng_between(r, 0, 2);
    c->wants_d_distance = rng_chance(r, 70);
    const int64_t elems = d->n_heads ? (d->n_heads - 1) * d->distance_bias_stride + n : 0;
    c->distances = guarded_new((size_t)elems * sizeof(float), c->at_end);
    for (int64_t e = 0; e < elems; e++) ((float *)c->distances.data)[e] = size * rng_normal(r);
    d->distance_bias = c->distances.data;
}

/* Lists of random blocks, or all, or none, one list after another. */
static void block_lists(rng *r, check_case *c, int64_t n_lists, int64_t step) {
    qkv_attention_desc *const d = &c->d;
    const int64_t rows = (d->len_q + d->block_len - 1) / d->block_len;
    const int64_t keys = (d->len_k + d->block_len - 1) / d->block_len;
    const int percent = rng_chance(r, 20) ? 100 : rng_chance(r, 15) ? 0 : 60;
    int64_t at = 0;
    c->block_offsets = guarded_new(
        (size_t)(n_lists ? (n_lists - 1) * step + rows + 1 : 0) * sizeof(int64_t), c->at_end);
    guarded all = guarded_new((size_t)(n_lists * rows * keys) * sizeof(int32_t), false);
    for (int64_t n = 0; n < n_lists; n++) {
        int64_t *const offsets = (int64_t *)c->block_offsets.data + n * step;
        for (int64_t i = 0; i < rows; i++) {
            offsets[i] = at;
            for (int64_t j = 0; j < keys; j++)
                if (rng_chance(r, percent)) ((int32_t *)all.data)[at++] = (int32_t)j;
        }
        offsets[rows] = at;
    }
    c->block_index = guarded_new((size_t)at * sizeof(int32_t), c->at_end);
    for (int64_t n = 0; n < at; n++) ((int32_t *)c->block_index.data)[n] = ((int32_t *)all.data)[n];
    guarded_free(&all);
    d->block_offsets = c->block_offsets.data;
    d->block_index = c->block_index.data;
}

static void add_block_mask(rng *r, check_case *c) {
    qkv_attention_desc *const d = &c->d;
    d->flags |= QKV_SET_BLOCK_MASK;
    d->block_len = 32 * rng_between(r, 1, 4);
    const int64_t step =
        (d->len_q + d->block_len - 1) / d->block_len + 1 + (rng_chance(r, 30) ? 2 : 0);
    const bool of_heads = rng_chance(r, 50), of_batches = rng_chance(r, 50);
    d->block_offsets_stride[1] = of_heads ? step : 0;
    d->block_offsets_stride[0] = of_batches ? (of_heads ? d->n_heads : 1) * step : 0;
    block_lists(r, c, (of_batches ? d->n_batch : 1) * (of_heads ? d->n_heads : 1), step);
}

void case_modifiers(rng *r, check_case *c, const recipe *x) {
    qkv_attention_desc *const d = &c->d;
    if (recipe_has(x, FEATURE_SEGMENTS)) {
        d->flags |= QKV_SET_SEGMENTS;
        c->seg_q = segments_new(r, c, d->len_q, &d->seg_q_stride);
        c->seg_k = segments_new(r, c, d->len_k, &d->seg_k_stride);
        d->seg_q = c->seg_q.data;
        d->seg_k = c->seg_k.data;
    }
    if (recipe_has(x, FEATURE_BLOCK_MASK)) add_block_mask(r, c);
    if (recipe_has(x, FEATURE_ALIBI)) {
        d->flags |= QKV_SET_ALIBI;
        c->slopes = per_head(r, c, 0.3f);
        d->alibi_slopes = c->slopes.data;
    }
    if (recipe_has(x, FEATURE_DISTANCE)) add_distances(r, c);
    if (recipe_has(x, FEATURE_SINKS)) {
        d->flags |= QKV_SET_SINKS;
        c->sinks = per_head(r, c, rng_chance(r, 20) ? 50 : 2);
        if (d->n_heads && rng_chance(r, 10)) ((float *)c->sinks.data)[0] = -INFINITY;
        d->sinks = c->sinks.data;
    }
}
