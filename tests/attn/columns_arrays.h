/*
 * All arrays of a pass over columns (qkv/columns.h), between pages without access and filled with
 * canaries, and checks of what a call wrote.
 */
#ifndef QKV_TESTS_COLUMNS_ARRAYS_H
#define QKV_TESTS_COLUMNS_ARRAYS_H

#include <stdlib.h>
#include <string.h>

#include <qkv/columns.h>

#include "check/cases.h"

enum {
    COLUMNS_RECEIVED, /* of keys */
    COLUMNS_LARGEST,
    COLUMNS_ENTROPY,
    COLUMNS_QUERIES,
    COLUMNS_LARGEST_QUERY,
    COLUMNS_OF_HEAD,
    COLUMNS_DIAGONAL = COLUMNS_OF_HEAD,
    COLUMNS_MASS,
    COLUMNS_PEAK,
    COLUMNS_DIAGONAL_ROWS,
    COLUMNS_TILE_ROWS,
    COLUMNS_CELLS,
    COLUMNS_TINY,
    COLUMNS_EMPTY,
    COLUMNS_NAN,
    COLUMNS_ARRAYS
};

typedef struct columns_arrays {
    qkv_attention_columns c;
    guarded array[COLUMNS_ARRAYS];
    float *weights; /* NULL: none */
    bool at_end;
} columns_arrays;

static inline size_t columns_element(int n) {
    return n <= COLUMNS_ENTROPY || (n >= COLUMNS_DIAGONAL && n <= COLUMNS_PEAK) ? sizeof(float)
                                                                                : sizeof(int64_t);
}

/* Numbers of a head. */
static inline int64_t columns_per_head(const qkv_attention_columns *c, int n) {
    switch (n) {
    case COLUMNS_DIAGONAL:
    case COLUMNS_DIAGONAL_ROWS: return c->n_diagonals;
    case COLUMNS_MASS:
    case COLUMNS_PEAK: return c->n_tiles_q * c->n_tiles_k;
    case COLUMNS_TILE_ROWS: return c->n_tiles_q;
    default: return 1;
    }
}

/* Random numbers of tiles and diagonals; in half of the cases weights of rows. */
static inline void columns_choose(const qkv_attention_desc *d, rng *r, columns_arrays *x) {
    qkv_attention_columns *c = &x->c;
    c->stride[2] = rng_between(r, 1, 3);
    if (rng_chance(r, 50)) { /* some of the diagonals, or beyond them */
        c->first_diagonal += rng_between(r, -20, d->len_k + 20);
        c->n_diagonals = rng_between(r, 0, d->len_q + 20);
    }
    c->n_tiles_q = rng_chance(r, 80) ? rng_between(r, 1, 40) : rng_between(r, 41, 300);
    c->n_tiles_k = rng_chance(r, 80) ? rng_between(r, 1, 40) : rng_between(r, 41, 300);
    c->tiny = rng_chance(r, 20) ? 0 : 0.01f;
    if (rng_chance(r, 50)) return;
    int64_t size[4];
    layout_storage(d, 'l', size);
    c->row_weights_stride[2] = rng_between(r, 0, 2);
    c->row_weights_stride[1] = rng_chance(r, 50) ? 0 : size[2] * c->row_weights_stride[2];
    c->row_weights_stride[0] =
        d->flags & QKV_SET_CU_SEQLENS ? 0 : size[1] * c->row_weights_stride[1];
    const int64_t n = layout_elems(size, c->row_weights_stride);
    x->weights = calloc((size_t)n + 1, sizeof *x->weights);
    if (!x->weights) abort();
    for (int64_t i = 0; i < n; i++) x->weights[i] = rng_normal(r);
    c->row_weights = x->weights;
}

static inline void columns_connect(columns_arrays *x) {
    qkv_attention_columns *c = &x->c;
    c->received = x->array[COLUMNS_RECEIVED].data;
    c->largest = x->array[COLUMNS_LARGEST].data;
    c->entropy = x->array[COLUMNS_ENTROPY].data;
    c->n_queries = x->array[COLUMNS_QUERIES].data;
    c->largest_query = x->array[COLUMNS_LARGEST_QUERY].data;
    c->diagonal = x->array[COLUMNS_DIAGONAL].data;
    c->diagonal_rows = x->array[COLUMNS_DIAGONAL_ROWS].data;
    c->tile_mass = x->array[COLUMNS_MASS].data;
    c->tile_peak = x->array[COLUMNS_PEAK].data;
    c->tile_rows = x->array[COLUMNS_TILE_ROWS].data;
    c->n_cells = x->array[COLUMNS_CELLS].data;
    c->n_tiny = x->array[COLUMNS_TINY].data;
    c->n_empty_rows = x->array[COLUMNS_EMPTY].data;
    c->n_nan_rows = x->array[COLUMNS_NAN].data;
}

/* Arrays for the numbers that c has. */
static inline void columns_arrays_fit(const qkv_attention_desc *d, columns_arrays *x) {
    const bool at_end = x->at_end;
    int64_t size[4];
    layout_storage(d, 'k', size);
    size[1] = d->n_heads, size[3] = 1;
    for (int n = 0; n < COLUMNS_ARRAYS; n++) {
        const int64_t elems = n < COLUMNS_OF_HEAD
                                  ? layout_elems(size, x->c.stride)
                                  : d->n_batch * d->n_heads * columns_per_head(&x->c, n);
        if (x->array[n].map) guarded_free(&x->array[n]);
        x->array[n] = guarded_new((size_t)elems * columns_element(n), at_end);
    }
    columns_connect(x);
}

/* All arrays, with random numbers of elements; the same for the same seed. */
static inline columns_arrays columns_arrays_new(const qkv_attention_desc *d, uint64_t seed,
                                                bool at_end) {
    rng r = { seed };
    columns_arrays x = { .at_end = at_end };
    int64_t size[4];
    qkv_attention_columns_contiguous(&x.c, d);
    columns_choose(d, &r, &x);
    layout_storage(d, 'k', size);
    x.c.stride[1] = size[2] * x.c.stride[2];
    x.c.stride[0] = d->flags & QKV_SET_CU_SEQLENS ? 0 : d->n_heads * x.c.stride[1];
    columns_arrays_fit(d, &x);
    return x;
}

static inline void columns_arrays_free(columns_arrays *x) {
    for (int n = 0; n < COLUMNS_ARRAYS; n++) guarded_free(&x->array[n]);
    free(x->weights);
}

/* The index of key j in arrays of keys. */
static inline int64_t columns_key(const qkv_attention_desc *d, const columns_arrays *x, int64_t b,
                                  int64_t h, int64_t j) {
    return layout_place(d, 'k', x->c.stride, b, h, j);
}

/* The first array whose bits differ; -1: none. */
static inline int columns_difference(const columns_arrays *x, const columns_arrays *y) {
    for (int n = 0; n < COLUMNS_ARRAYS; n++)
        if (memcmp(x->array[n].data, y->array[n].data, x->array[n].bytes) != 0) return n;
    return -1;
}

/* Are gaps between keys, and bytes around the arrays, unwritten? */
static inline bool columns_intact(const qkv_attention_desc *d, const columns_arrays *x) {
    bool intact = true;
    for (int n = 0; n < COLUMNS_ARRAYS; n++) intact &= guarded_intact(&x->array[n]);
    for (int n = 0; n < COLUMNS_OF_HEAD; n++) {
        const size_t bytes = x->array[n].bytes, own = columns_element(n);
        unsigned char *const rest = malloc(bytes + 1);
        if (!rest) abort();
        memcpy(rest, x->array[n].data, bytes);
        for (int64_t b = 0; b < d->n_batch; b++)
            for (int64_t h = 0; h < d->n_heads; h++)
                for (int64_t j = 0; j < layout_rows(d, 'k', b); j++)
                    memset(rest + (size_t)columns_key(d, x, b, h, j) * own, CANARY_BYTE, own);
        for (size_t at = 0; at < bytes; at++) intact &= rest[at] == CANARY_BYTE;
        free(rest);
    }
    return intact;
}

#endif
