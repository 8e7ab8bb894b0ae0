/*
 * `qkv attend --stats F`: requests the statistics of each head, of queries (qkv/stats.h) and of
 * keys (qkv/columns.h), and allocates their arrays; stats_json.c writes them.
 */
#include <stdlib.h>
#include <string.h>

#include "attend/attend.h"

enum { MAP_SIDE = 32 };

#define ARRAY(name, group, field, ...)                                                             \
    { name, group, offsetof(struct attend_stats, field), __VA_ARGS__ }
#define NUMBER(field) ARRAY(#field, OF_ROWS, rows.field, false, false)
const struct attend_array attend_arrays[ATTEND_ARRAYS] = {
    NUMBER(entropy),
    NUMBER(largest),
    NUMBER(effective_keys),
    NUMBER(mean_distance),
    NUMBER(mean_square_distance),
    NUMBER(logit_mean),
    NUMBER(logit_variance),
    NUMBER(logit_largest),
    ARRAY("n_seen", OF_ROWS, rows.n_seen, true, false),
    ARRAY("top_keys", OF_ROWS, rows.top_keys, true, true),
    ARRAY("top_weights", OF_ROWS, rows.top_weights, false, true),
    ARRAY("received", OF_KEYS, columns.received, false, false),
    ARRAY("n_queries", OF_KEYS, columns.n_queries, true, false),
    ARRAY("largest", OF_KEYS, columns.largest, false, false),
    ARRAY("largest_query", OF_KEYS, columns.largest_query, true, false),
    ARRAY("entropy", OF_KEYS, columns.entropy, false, false),
    ARRAY("weights", OF_DIAGONAL, columns.diagonal, false, false),
    ARRAY("mass", OF_MAP, columns.tile_mass, false, false),
    ARRAY("peak", OF_MAP, columns.tile_peak, false, false),
};

/* Bins of key - query: …, -3…-2, -1, 0, 1, 2…3, 4…7, …: as many as the lengths ask for. */
static int64_t make_bounds(int64_t reach, int64_t *bounds) {
    int64_t n = 0, widest = 1;
    while (widest < reach && widest < INT64_C(1) << 30) widest *= 2;
    for (int64_t from = widest; from >= 1; from /= 2) bounds[n++] = 1 - 2 * from;
    bounds[n++] = 0;
    for (int64_t from = 1; from <= 2 * widest; from *= 2) bounds[n++] = from;
    return n - 1;
}

static void *allocate(struct attend_stats *s, int64_t n, size_t element) {
    void *array = n > INT64_MAX / 64 ? NULL : calloc((size_t)n + 1, element);
    s->made &= array != NULL;
    return s->arrays[s->n_arrays++] = array;
}

/* The arrays of a group, of n rows. */
static void allocate_group(struct attend_stats *s, enum attend_group group, int64_t n) {
    for (const struct attend_array *a = attend_arrays; a < attend_arrays + ATTEND_ARRAYS; a++) {
        const int64_t width = a->is_top ? s->rows.top_k : 1;
        if (a->group != group || width == 0) continue;
        void *const array = allocate(s, n * width, a->is_integer ? sizeof(int64_t) : sizeof(float));
        memcpy((char *)s + a->offset, &array, sizeof array);
    }
}

static void ask_rows(struct attend_stats *s, const qkv_attention_desc *d) {
    qkv_attention_stats *r = &s->rows;
    const int64_t n = s->n_batch * s->n_heads * s->rows_q;
    qkv_attention_stats_contiguous(r, d);
    memcpy(r->stride, d->lse_stride, sizeof r->stride); /* packed sequences: as lse */
    r->top_k = d->len_k < 8 ? d->len_k : 8;
    allocate_group(s, OF_ROWS, n);
    r->n_offsets = make_bounds(d->len_q > d->len_k ? d->len_q : d->len_k, s->bounds);
    r->offsets = s->bounds;
    r->offset_mass = allocate(s, n * r->n_offsets, sizeof(float));
    r->n_empty_rows = allocate(s, d->n_batch * d->n_heads, sizeof(int64_t));
    r->n_nan_rows = allocate(s, d->n_batch * d->n_heads, sizeof(int64_t));
}

static void ask_columns(struct attend_stats *s, const qkv_attention_desc *d) {
    qkv_attention_columns *c = &s->columns;
    qkv_attention_columns_contiguous(c, d);
    c->stride[0] = d->flags & QKV_SET_CU_SEQLENS ? 0 : s->n_heads * s->rows_k;
    c->stride[1] = s->rows_k;
    allocate_group(s, OF_KEYS, s->n_batch * s->n_heads * s->rows_k);
}

/* Where one line of offsets fits all batches. */
static void ask_diagonals(struct attend_stats *s, const qkv_attention_desc *d) {
    qkv_attention_columns *c = &s->columns;
    bool fits = !(d->flags & QKV_SET_CU_SEQLENS);
    for (int64_t b = 1; d->q_offsets && b < d->n_batch; b++)
        fits &= d->q_offsets[b] == d->q_offsets[0];
    if (!fits) {
        c->n_diagonals = 0;
        return;
    }
    if (d->q_offsets && d->n_batch > 0) c->first_diagonal = d->q_offsets[0] - d->len_k + 1;
    allocate_group(s, OF_DIAGONAL, d->n_batch * d->n_heads * c->n_diagonals);
}

static void ask_map(struct attend_stats *s, const qkv_attention_desc *d) {
    qkv_attention_columns *c = &s->columns;
    if (d->flags & QKV_SET_CU_SEQLENS || d->len_q == 0 || d->len_k == 0) return;
    c->n_tiles_q = d->len_q < MAP_SIDE ? d->len_q : MAP_SIDE;
    c->n_tiles_k = d->len_k < MAP_SIDE ? d->len_k : MAP_SIDE;
    allocate_group(s, OF_MAP, d->n_batch * d->n_heads * c->n_tiles_q * c->n_tiles_k);
}

int attend_stats_ask(const struct attend_problem *problem, struct attend_stats *s) {
    const qkv_attention_desc *d = &problem->desc;
    s->made = true;
    s->n_batch = attend_size(problem->q, 0);
    s->n_heads = d->n_heads;
    s->rows_q = attend_size(problem->q, 2);
    s->rows_k = attend_size(problem->k, 2);
    ask_rows(s, d);
    ask_columns(s, d);
    ask_diagonals(s, d);
    ask_map(s, d);
    return s->made ? EXIT_OK : cli_fail("out of memory");
}

void attend_stats_free(struct attend_stats *s) {
    for (int i = 0; i < s->n_arrays; i++) free(s->arrays[i]);
    free(s->json);
}
