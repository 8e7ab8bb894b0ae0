/*
 * Statistics of the cases of `qkv bench`: of rows, in a forward pass (qkv/stats.h), and of columns,
 * in a pass over columns (qkv/columns.h). Sizes are those of a forward case without statistics.
 * Classes of keys are random, which costs most; bins of offsets are powers of two.
 */
#include <stdlib.h>

#include "core/os.h"
#include "suite/suite.h"

enum { TOP = 8, CLASSES = 8, BINS = 20, TILES = 64 };

/* Bytes, none too few, of what a row or a key gets, of a head's map, and of what is not by rows. */
enum {
    ROW_BYTES = 256,
    KEY_BYTES = 32,
    DIAGONAL_BYTES = 12,
    MAP_BYTES = 1 << 16,
    REST_BYTES = 4096
};

/* Takes n elements off a piece of memory. */
static void *cut(char **next, int64_t n, size_t element) {
    void *at = *next;
    *next += ((size_t)n * element + 63) / 64 * 64;
    return at;
}

static float *floats(char **next, int64_t n) { return cut(next, n, sizeof(float)); }
static int64_t *integers(char **next, int64_t n) { return cut(next, n, sizeof(int64_t)); }

static char *take(struct bench *bench, int64_t bytes) {
    return bench->rule = qkvi_os_aligned(64, (size_t)(bytes + 63) / 64 * 64);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static void ask_keys(qkv_attention_stats *s, int64_t n, int64_t len_k, char **next) {
    uint8_t *classes = cut(next, len_k, 1);
    uint32_t state = 1;
    for (int64_t j = 0; j < len_k; j++)
        classes[j] = (uint8_t)((uint64_t)bench_random(&state) * CLASSES >> 24);
    s->mean_distance = floats(next, n);
    s->top_k = TOP;
    s->top_keys = integers(next, n * TOP);
    s->top_weights = floats(next, n * TOP);
    s->n_classes = CLASSES;
    s->classes = classes;
    s->class_mass = floats(next, n * CLASSES);
}

static void ask_rest(qkv_attention_stats *s, int64_t n, char **next) {
    int64_t *offsets = integers(next, BINS + 1);
    for (int b = 0; b <= BINS; b++) {
        const int far = b - BINS / 2;
        offsets[b] = far < 0 ? -(INT64_C(1) << -far) : far > 0 ? INT64_C(1) << far : 0;
    }
    s->mean_square_distance = floats(next, n);
    s->logit_mean = floats(next, n);
    s->logit_variance = floats(next, n);
    s->logit_largest = floats(next, n);
    s->n_seen = integers(next, n);
    s->n_offsets = BINS;
    s->offsets = offsets;
    s->offset_mass = floats(next, n * BINS);
}

static bool ask_rows(struct bench *bench, bool keys, bool rest) {
    qkv_attention_desc *d = &bench->desc;
    qkv_attention_stats *s = &bench->stats;
    const int64_t n = d->n_batch * d->n_heads * d->len_q;
    char *next = take(bench, n * ROW_BYTES + d->len_k + REST_BYTES);
    if (!next) return false;
    qkv_attention_stats_contiguous(s, d);
    s->largest = floats(&next, n);
    s->entropy = floats(&next, n);
    s->effective_keys = floats(&next, n);
    if (keys) ask_keys(s, n, d->len_k, &next);
    if (rest) ask_rest(s, n, &next);
    d->stats = s;
    d->flags |= QKV_SET_STATS;
    return true;
}

bool bench_rows_spread(struct bench *bench) { return ask_rows(bench, false, false); }
bool bench_rows_keys(struct bench *bench) { return ask_rows(bench, true, false); }
bool bench_rows_all(struct bench *bench) { return ask_rows(bench, true, true); }

/* ---- Columns --------------------------------------------------------------------------------- */

static bool ask_columns(struct bench *bench, bool rest) {
    const qkv_attention_desc *d = &bench->desc;
    qkv_attention_columns *c = &bench->columns;
    const int64_t heads = d->n_batch * d->n_heads, n = heads * d->len_k;
    char *next = take(bench, n * KEY_BYTES + heads * (d->len_q + d->len_k) * DIAGONAL_BYTES +
                                 heads * MAP_BYTES + REST_BYTES);
    if (!next) return false;
    qkv_attention_columns_contiguous(c, d);
    c->received = floats(&next, n);
    if (!rest) return true;
    c->n_queries = integers(&next, n);
    c->largest = floats(&next, n);
    c->largest_query = integers(&next, n);
    c->entropy = floats(&next, n);
    c->diagonal = floats(&next, heads * c->n_diagonals);
    c->diagonal_rows = integers(&next, heads * c->n_diagonals);
    c->n_tiles_q = c->n_tiles_k = TILES;
    c->tile_mass = floats(&next, heads * TILES * TILES);
    c->tile_peak = floats(&next, heads * TILES * TILES);
    c->tile_rows = integers(&next, heads * TILES);
    return true;
}

bool bench_columns_received(struct bench *bench) { return ask_columns(bench, false); }
bool bench_columns_all(struct bench *bench) { return ask_columns(bench, true); }
