/*
 * All arrays of statistics of an attention problem (qkv/stats.h), between pages without access and
 * filled with canaries, and checks of what a call wrote.
 */
#ifndef QKV_TESTS_STATS_ARRAYS_H
#define QKV_TESTS_STATS_ARRAYS_H

#include <math.h>
#include <string.h>

#include "check/cases.h"

enum {
    STATS_LARGEST,
    STATS_ENTROPY,
    STATS_EFFECTIVE,
    STATS_DISTANCE,
    STATS_SQUARE,
    STATS_LOGIT_MEAN,
    STATS_LOGIT_VARIANCE,
    STATS_LOGIT_LARGEST,
    STATS_TOP_WEIGHTS,
    STATS_CLASS_MASS,
    STATS_OFFSET_MASS,
    STATS_WEIGHTED,
    STATS_SAME,
    STATS_DUPLICATE,
    STATS_INDUCTION,
    STATS_FLOATS,
    STATS_SEEN = STATS_FLOATS,
    STATS_TOP_KEYS,
    STATS_ARRAYS
};

typedef struct stats_arrays {
    qkv_attention_stats s;
    guarded array[STATS_ARRAYS];
    int64_t per_row[STATS_ARRAYS];
    guarded n_empty, n_nan;
    uint8_t *classes;
    int64_t *offsets;
    float *key_weights;
    int32_t *tokens_q, *tokens_k;
} stats_arrays;

static inline size_t stats_element(int n) {
    return n < STATS_FLOATS ? sizeof(float) : sizeof(int64_t);
}

/* Arrays with random numbers of classes, offsets and keys; the same for the same seed. */
static inline stats_arrays stats_arrays_new(const qkv_attention_desc *d, uint64_t seed,
                                            bool at_end) {
    rng r = { seed };
    stats_arrays x = { 0 };
    int64_t size[4], stride[3];
    qkv_attention_stats *s = &x.s;
    qkv_attention_stats_contiguous(s, d);
    layout_storage(d, 'l', size);
    s->stride[2] = rng_between(&r, 1, 3);
    s->stride[1] = size[2] * s->stride[2];
    s->stride[0] = d->flags & QKV_SET_CU_SEQLENS ? 0 : size[1] * s->stride[1];
    s->top_k = rng_chance(&r, 50) ? rng_between(&r, 1, 8) : rng_between(&r, 9, 64);
    s->n_classes = rng_chance(&r, 60) ? rng_between(&r, 1, 8) : rng_between(&r, 9, 64);
    s->n_offsets = rng_between(&r, 1, 24);
    for (int n = 0; n < STATS_ARRAYS; n++) x.per_row[n] = 1;
    x.per_row[STATS_TOP_KEYS] = x.per_row[STATS_TOP_WEIGHTS] = s->top_k;
    x.per_row[STATS_CLASS_MASS] = s->n_classes;
    x.per_row[STATS_OFFSET_MASS] = s->n_offsets;
    for (int n = 0; n < STATS_ARRAYS; n++) {
        for (int i = 0; i < 3; i++) stride[i] = s->stride[i] * x.per_row[n];
        size[3] = x.per_row[n];
        x.array[n] = guarded_new((size_t)layout_elems(size, stride) * stats_element(n), at_end);
    }
    const size_t heads = (size_t)(d->n_batch * d->n_heads);
    x.n_empty = guarded_new(heads * sizeof(int64_t), at_end);
    x.n_nan = guarded_new(heads * sizeof(int64_t), at_end);
    x.classes = calloc((size_t)(d->n_batch * d->len_k) + 1, 1);
    x.offsets = calloc((size_t)s->n_offsets + 1, sizeof *x.offsets);
    x.key_weights = calloc(heads * (size_t)d->len_k + 1, sizeof *x.key_weights);
    x.tokens_q = calloc((size_t)(d->n_batch * d->len_q) + 1, sizeof *x.tokens_q);
    x.tokens_k = calloc((size_t)(d->n_batch * d->len_k) + 1, sizeof *x.tokens_k);
    if (!x.classes || !x.offsets || !x.key_weights || !x.tokens_q || !x.tokens_k) abort();
    const int64_t n_tokens = rng_between(&r, 1, 40);
    for (size_t n = 0; n < heads * (size_t)d->len_k; n++)
        x.key_weights[n] = (float)rng_between(&r, 0, 1000) / 64;
    for (int64_t n = 0; n < d->n_batch * d->len_q; n++)
        x.tokens_q[n] = (int32_t)rng_between(&r, 0, n_tokens);
    for (int64_t n = 0; n < d->n_batch * d->len_k; n++)
        x.tokens_k[n] = (int32_t)rng_between(&r, 0, n_tokens);
    for (int64_t n = 0; n < d->n_batch * d->len_k; n++)
        x.classes[n] = (uint8_t)rng_between(&r, 0, s->n_classes);
    int64_t at = -rng_between(&r, 0, 2 * d->len_k + 2);
    for (int64_t n = 0; n <= s->n_offsets; n++) {
        x.offsets[n] = at;
        at += rng_chance(&r, 50) ? rng_between(&r, 0, 3) : rng_between(&r, 0, d->len_k / 2 + 1);
    }
    s->largest = x.array[STATS_LARGEST].data;
    s->entropy = x.array[STATS_ENTROPY].data;
    s->effective_keys = x.array[STATS_EFFECTIVE].data;
    s->mean_distance = x.array[STATS_DISTANCE].data;
    s->mean_square_distance = x.array[STATS_SQUARE].data;
    s->logit_mean = x.array[STATS_LOGIT_MEAN].data;
    s->logit_variance = x.array[STATS_LOGIT_VARIANCE].data;
    s->logit_largest = x.array[STATS_LOGIT_LARGEST].data;
    s->n_seen = x.array[STATS_SEEN].data;
    s->top_keys = x.array[STATS_TOP_KEYS].data;
    s->top_weights = x.array[STATS_TOP_WEIGHTS].data;
    s->class_mass = x.array[STATS_CLASS_MASS].data;
    s->offset_mass = x.array[STATS_OFFSET_MASS].data;
    s->classes = x.classes;
    s->classes_stride = d->len_k;
    s->offsets = x.offsets;
    s->key_weights = x.key_weights;
    s->key_weights_stride[0] = d->n_heads * d->len_k;
    s->key_weights_stride[1] = d->len_k;
    s->tokens_q = x.tokens_q, s->tokens_q_stride = d->len_q;
    s->tokens_k = x.tokens_k, s->tokens_k_stride = d->len_k;
    s->weighted_mass = x.array[STATS_WEIGHTED].data;
    s->same_token = x.array[STATS_SAME].data;
    s->duplicate = x.array[STATS_DUPLICATE].data;
    s->induction = x.array[STATS_INDUCTION].data;
    s->n_empty_rows = x.n_empty.data;
    s->n_nan_rows = x.n_nan.data;
    return x;
}

static inline void stats_arrays_free(stats_arrays *x) {
    for (int n = 0; n < STATS_ARRAYS; n++) guarded_free(&x->array[n]);
    guarded_free(&x->n_empty);
    guarded_free(&x->n_nan);
    free(x->classes);
    free(x->offsets);
    free(x->key_weights);
    free(x->tokens_q);
    free(x->tokens_k);
}

/* The numbers of a row. */
static inline const void *stats_at(const qkv_attention_desc *d, const stats_arrays *x, int n,
                                   int64_t b, int64_t h, int64_t i) {
    const int64_t at = layout_place(d, 'l', x->s.stride, b, h, i) * x->per_row[n];
    return (const char *)x->array[n].data + (size_t)at * stats_element(n);
}

static inline float stats_float(const qkv_attention_desc *d, const stats_arrays *x, int n,
                                int64_t b, int64_t h, int64_t i) {
    return *(const float *)stats_at(d, x, n, b, h, i);
}

/* Do elements have the same bits, where any NaN equals any other? */
static inline bool same_elements(const guarded *x, const guarded *y, elem_type type) {
    for (size_t n = 0; n < x->bytes / element_bytes(type); n++) {
        const double p = element_get(x->data, type, (int64_t)n);
        const double q = element_get(y->data, type, (int64_t)n);
        if (memcmp(&p, &q, sizeof p) != 0 && !(isnan(p) && isnan(q))) return false;
    }
    return true;
}

/* Compares the bits of all arrays, with gaps, in the same way: -1, or the array that differs. */
static inline int stats_difference(const stats_arrays *x, const stats_arrays *y) {
    for (int n = 0; n < STATS_ARRAYS; n++) {
        const size_t bytes = x->array[n].bytes;
        if (n >= STATS_FLOATS) {
            if (memcmp(x->array[n].data, y->array[n].data, bytes) != 0) return n;
            continue;
        }
        const float *p = x->array[n].data, *q = y->array[n].data;
        for (size_t at = 0; at < bytes / sizeof *p; at++)
            if (memcmp(p + at, q + at, sizeof *p) != 0 && !(isnan(p[at]) && isnan(q[at]))) return n;
    }
    const bool same = memcmp(x->n_empty.data, y->n_empty.data, x->n_empty.bytes) == 0 &&
                      memcmp(x->n_nan.data, y->n_nan.data, x->n_nan.bytes) == 0;
    return same ? -1 : STATS_ARRAYS;
}

/* Is everything but rows that count unwritten? */
static inline bool stats_intact(const qkv_attention_desc *d, const stats_arrays *x) {
    int64_t size[4];
    layout_shape(d, 'l', size);
    for (int n = 0; n < STATS_ARRAYS; n++) {
        const size_t bytes = x->array[n].bytes, own = stats_element(n) * (size_t)x->per_row[n];
        unsigned char *const rest = malloc(bytes + 1);
        if (!rest) abort();
        memcpy(rest, x->array[n].data, bytes);
        for (int64_t b = 0; b < size[0]; b++)
            for (int64_t h = 0; h < size[1]; h++)
                for (int64_t i = 0; i < layout_queries(d, b); i++)
                    memset(rest + ((const char *)stats_at(d, x, n, b, h, i) -
                                   (const char *)x->array[n].data),
                           CANARY_BYTE, own);
        bool intact = guarded_intact(&x->array[n]);
        for (size_t at = 0; at < bytes; at++) intact &= rest[at] == CANARY_BYTE;
        free(rest);
        if (!intact) return false;
    }
    return guarded_intact(&x->n_empty) && guarded_intact(&x->n_nan);
}

#endif
