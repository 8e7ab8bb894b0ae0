/**
 * The largest weights of heads. Weights are computed some rows of a head at a time, only of the
 * queries that count. Layers, heads, queries and keys are visited in ascending order, and of equal
 * weights the first one wins. If all queries and keys count, the largest weight is known from
 * measuring the heads.
 */

#include "attn/ctx.h"
#include "core/ints.h"
#include "core/options.h"
#include "inspect/heads_impl.h"

/* NULL marks all. */
static int is_marked(const uint8_t *marks, int64_t i) { return !marks || marks[i]; }

enum {
    CELLS = 1 << 18, /* of rows of weights that are looked at together: they stay in the cache */
    ROWS = 32,       /* of which there are so many at least */
    PARTS = 16,      /* that threads share */
    PARALLEL_FROM = 1 << 15 /* cells: fewer are searched sooner than a thread wakes */
};

/* What is looked for, and where. */
struct search {
    qkv_heads *heads;
    const uint8_t *from, *to;
    int64_t at_once;
    float *weights; /* [at_once][n_keys] */
};

static qkv_sharpest place(const qkv_heads *heads, int64_t index, int64_t i, int64_t j,
                          float weight) {
    return (qkv_sharpest){ .layer = index / heads->info.n_heads,
                           .head = index % heads->info.n_heads,
                           .query = i,
                           .key = j,
                           .weight = weight };
}

/*
 * Whether some weight of a row may be larger, which most rows are refused by. Numbers from 0 on
 * have the order of their bits, which compilers know to compare in vectors; a NaN may be.
 */
static bool may_be_larger(const float *weights, qkvi_range keys, const qkv_sharpest *best) {
    int32_t most = -1, least;
    memcpy(&least, &best->weight, sizeof least);
    for (int64_t j = keys.begin; j < keys.end; j++) {
        int32_t bits;
        memcpy(&bits, &weights[j], sizeof bits);
        most = bits > most ? bits : most;
    }
    return best->key < 0 || most > least;
}

/* Of query i. A NaN is never larger, and a key that the query does not see is none of its. */
static void search_row(const struct search *s, const float *weights, int64_t index, int64_t i,
                       qkv_sharpest *best) {
    const qkv_heads *const heads = s->heads;
    const int64_t itself = heads->info.one_text ? i + heads->info.q_offset : -1;
    const qkvi_range keys = qkvi_keys_of(qkvi_heads_rules(heads, index), i);
    if (!may_be_larger(weights, keys, best)) return;
    for (int64_t j = keys.begin; j < keys.end; j++) {
        const float weight = weights[j];
        if (j == itself || qkvi_heads_hide(heads, index, i, j) || !is_marked(s->to, j) ||
            (best->key >= 0 && !(weight > best->weight)) || !(weight >= 0))
            continue;
        *best = place(heads, index, i, j, weight);
    }
}

/* Rows of a head whose weights are there, in parts. */
struct block {
    const struct search *search;
    int64_t index, first, n;
    qkv_sharpest best[PARTS]; /* at first what was found before */
};

static void search_part(void *argument, int part) {
    struct block *const block = argument;
    const struct search *const s = block->search;
    const int64_t end = (part + 1) * block->n / PARTS;
    for (int64_t i = part * block->n / PARTS; i < end; i++)
        search_row(s, s->weights + i * s->heads->info.n_keys, block->index, block->first + i,
                   &block->best[part]);
}

/* A part is taken if it has a larger weight than those before it. */
static void search_block(const struct search *s, int64_t index, int64_t first, int64_t n,
                         qkv_sharpest *best) {
    struct block block = { .search = s, .index = index, .first = first, .n = n };
    const bool few = n * s->heads->info.n_keys < PARALLEL_FROM;
    for (int part = 0; part < PARTS; part++) block.best[part] = *best;
    qkvi_pool_run(few ? NULL : s->heads->ctx->pool, PARTS, search_part, &block);
    for (int part = 0; part < PARTS; part++) {
        const qkv_sharpest *const found = &block.best[part];
        if (found->key >= 0 && (best->key < 0 || found->weight > best->weight)) *best = *found;
    }
}

/* Blocks from one marked row to another, so that one [MASK] costs one row of a head. */
static qkv_status search_head(const struct search *s, int64_t index, qkv_sharpest *best,
                              qkv_error *error) {
    const int64_t n = s->heads->info.n_queries, n_keys = s->heads->info.n_keys;
    for (int64_t first = 0; first < n;) {
        int64_t rows = 0;
        while (first < n && !is_marked(s->from, first)) first++;
        while (rows < s->at_once && first + rows < n && is_marked(s->from, first + rows)) rows++;
        if (rows == 0) break;
        QKV_TRY(qkv_heads_weights(s->heads, index, first, first + rows, 0, n_keys, s->weights,
                                  n_keys, error));
        search_block(s, index, first, rows, best);
        first += rows;
    }
    return QKV_OK;
}

static qkv_status search_all(const struct search *s, const uint8_t *of, qkv_sharpest *best,
                             qkv_error *error) {
    for (int64_t h = 0; h < s->heads->n_all; h++)
        if (is_marked(of, h)) QKV_TRY(search_head(s, h, best, error));
    return QKV_OK;
}

/* Of what was measured. */
static qkv_status take_peaks(qkv_heads *heads, const uint8_t *of, qkv_sharpest *best,
                             qkv_error *error) {
    for (int64_t h = 0; h < heads->n_all; h++) {
        const qkvi_head_peak *const peak = &heads->peaks[h];
        float weight;
        if (!is_marked(of, h) || peak->query < 0) continue;
        QKV_TRY(qkv_heads_weights(heads, h, peak->query, peak->query + 1, peak->key, peak->key + 1,
                                  &weight, 1, error));
        if (best->key < 0 || weight > best->weight)
            *best = place(heads, h, peak->query, peak->key, weight);
    }
    return QKV_OK;
}

static qkv_status find(qkv_heads *heads, const uint8_t *of, const uint8_t *from, const uint8_t *to,
                       qkv_sharpest *best, qkv_error *error) {
    if (heads->peaks && !from && !to) return take_peaks(heads, of, best, error);
    const int64_t n_keys = heads->info.n_keys, few = CELLS / qkvi_max_i64(n_keys, 1);
    const int64_t at_once = qkvi_min_i64(heads->info.n_queries, qkvi_max_i64(few, ROWS));
    float *const weights = qkvi_malloc_array((size_t)n_keys, (size_t)at_once * sizeof *weights);
    if (!weights) return qkvi_no_memory(error, "rows of weights");
    const struct search search = { heads, from, to, at_once, weights };
    const qkv_status status = search_all(&search, of, best, error);
    free(weights);
    return status;
}

qkv_status qkv_heads_sharpest(qkv_heads *heads, const uint8_t *of, const uint8_t *from,
                              const uint8_t *to, qkv_sharpest *sharpest, qkv_error *error) {
    if (!heads || !sharpest)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", heads ? "sharpest" : "heads");
    qkv_sharpest best = qkv_sharpest_init();
    QKV_TRY(qkvi_options_read(&best, sizeof best, sharpest, "qkv_sharpest", error));
    best = (qkv_sharpest){ .query = -1, .key = -1 };
    QKV_TRY(find(heads, of, from, to, &best, error));
    qkvi_options_write(sharpest, &best, sizeof best);
    return QKV_OK;
}

qkv_status qkv_heads_look(qkv_heads *heads, int64_t index, int64_t query, int64_t *key,
                          float *weight, qkv_error *error) {
    QKV_TRY(qkvi_heads_check(heads, index, error));
    if (!key || !weight)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", key ? "weight" : "key");
    const int64_t n_keys = heads->info.n_keys;
    float *const row = qkvi_malloc_array((size_t)n_keys, sizeof *row);
    if (!row) return qkvi_no_memory(error, "a row of weights");
    const qkv_status status =
        qkv_heads_weights(heads, index, query, query + 1, 0, n_keys, row, n_keys, error);
    *key = -1;
    *weight = 0;
    for (int64_t j = 0; status == QKV_OK && j < n_keys; j++) {
        if (!qkv_head_sees(heads, index, query, j) || !(row[j] > *weight)) continue;
        *key = j;
        *weight = row[j];
    }
    free(row);
    return status;
}
