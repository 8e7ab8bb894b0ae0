/*
 * Weights of a dump: all of a head, or pooled into tiles at any length.
 *
 *     p_ij = exp(s_ij - lse_i),  s_ij = scale q_i . k_j
 *     tile of keys b:  lse_ib = ln sum over j in b of exp(s_ij),  so  sum_j p_ij = exp(lse_ib - lse_i)
 *                      and  max_j p_ij = (largest weight among the keys of b) exp(lse_ib - lse_i)
 *
 * A tile of keys is a batch of the forward pass, at its speed and with its threads. A piece of queries
 * and a group of tiles at a time: memory does not grow with the lengths.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dump.h"
#include "term.h"
#include <qkv/stats.h>

enum { GROUP = 16, PIECE = 4096 }; /* tiles of keys, queries */

/* ---- All weights --------------------------------------------------------------------------------- */

/* A whole row is its own softmax, so that scores may be as large as they are. */
static void weigh_row(const struct dump *dump, const float *keys, const float *q, float lse,
                      int64_t i, float *row) {
    const struct dump_mask *mask = &dump->mask;
    const int64_t n = dump->n_keys;
    memset(row, 0, (size_t)n * sizeof *row);
    if (lse == -INFINITY) return;
    for (int64_t c = 0; c < dump->head_dim; c++) {
        const float *restrict key = keys + c * n;
        float *restrict score = row;
        for (int64_t j = 0; j < n; j++) score[j] += q[c] * key[j];
    }
    const int64_t first = mask->from && i + mask->first > 0 ? i + mask->first : 0,
                  end = mask->to && i + mask->last + 1 < n ? i + mask->last + 1 : n;
    const float scale = (float)dump->scale;
    float largest = -INFINITY;
    double sum = 0;
    for (int64_t j = first; j < end; j++)
        if ((row[j] *= scale) > largest) largest = row[j];
    for (int64_t j = first; j < end; j++) sum += (double)(row[j] = expf(row[j] - largest));
    for (int64_t j = 0; j < n; j++)
        row[j] = j >= first && j < end ? (float)((double)row[j] / sum) : 0;
}

qkv_status dump_weights(const struct dump *dump, int64_t shown, float *weights, qkv_error *error) {
    const int64_t n = dump->n_keys, d = dump->head_dim;
    const float *q = dump_queries(dump, shown), *k = dump_keys(dump, shown);
    float *keys = malloc((size_t)(n * d) * sizeof(float)); /* [head_dim][n_keys] */
    if (!keys) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    for (int64_t j = 0; j < n; j++)
        for (int64_t c = 0; c < d; c++) keys[c * n + j] = k[j * d + c];
    for (int64_t i = 0; i < dump->n_queries && !cli_cancelled; i++)
        weigh_row(dump, keys, q + i * d, dump->heads[shown].lse[i], i, weights + i * n);
    free(keys);
    return cli_cancelled ? text_error(error, QKV_ERR_CANCELLED, "nothing was written") : QKV_OK;
}

/* ---- Tiles --------------------------------------------------------------------------------------- */

struct dump_tiles dump_tiles_of(const struct dump *dump, int64_t most) {
    const int64_t n = dump->n_queries > dump->n_keys ? dump->n_queries : dump->n_keys;
    const int64_t tile = 1 + (n - 1) / most;
    return (struct dump_tiles){ tile, (dump->n_queries + tile - 1) / tile,
                                (dump->n_keys + tile - 1) / tile };
}

/* What a call leaves: [GROUP][PIECE] each. */
struct part {
    float *lse, *largest, *o;
};

/* Queries from i0 on and tiles from b0 on, as batches that share their queries. */
static qkv_status run_part(const struct dump *dump, int64_t shown, const struct dump_tiles *tiles,
                           int64_t i0, int64_t n_rows, int64_t b0, int64_t n_tiles,
                           const struct part *part) {
    static const float no_value;
    const int64_t tile = tiles->tile, d = dump->head_dim;
    int64_t lengths[GROUP], offsets[GROUP];
    for (int64_t b = 0; b < n_tiles; b++) {
        const int64_t first = (b0 + b) * tile, left = dump->n_keys - first;
        lengths[b] = left < tile ? left : tile;
        offsets[b] = dump->q_offset + i0 - first;
    }
    qkv_attention_desc desc;
    qkv_attention_stats stats;
    qkv_attention_desc_contiguous(&desc, n_tiles, 1, 1, n_rows, tile, d, 1);
    desc.flags = QKV_SET_SCALE | QKV_SET_STATS | QKV_SET_Q_OFFSET | QKV_SET_KV_LEN;
    if (dump->causal) desc.flags |= QKV_SET_CAUSAL;
    if (dump->window) desc.flags |= QKV_SET_WINDOW;
    desc.q_stride[0] = 0;
    memset(desc.v_stride, 0, sizeof desc.v_stride);
    desc.scale = (float)dump->scale;
    desc.window_left = dump->window_left;
    desc.window_right = dump->window_right;
    desc.q_offsets = offsets;
    desc.kv_len = lengths;
    qkv_attention_stats_contiguous(&stats, &desc);
    stats.largest = part->largest;
    desc.stats = &stats;
    return qkv_attention_forward(dump->ctx, &desc, dump_queries(dump, shown) + i0 * d,
                                 dump_keys(dump, shown) + b0 * tile * d, &no_value, part->o,
                                 part->lse, NULL);
}

static void add_part(const struct dump *dump, int64_t shown, enum dump_pooling pooling,
                     const struct dump_tiles *tiles, int64_t i0, int64_t n_rows, int64_t b0,
                     int64_t n_tiles, const struct part *part, float *cells) {
    const float *lse = dump->heads[shown].lse + i0;
    for (int64_t b = 0; b < n_tiles; b++) {
        for (int64_t i = 0; i < n_rows; i++) {
            const int64_t at = b * n_rows + i;
            if (lse[i] == -INFINITY || part->lse[at] == -INFINITY) continue;
            const float mass = expf(part->lse[at] - lse[i]);
            const float value = pooling == POOL_PEAK ? mass * part->largest[at] : mass;
            float *cell = &cells[(i0 + i) / tiles->tile * tiles->cols + b0 + b];
            if (pooling == POOL_MASS)
                *cell += value;
            else if (value > *cell || isnan(value))
                *cell = isnan(*cell) ? *cell : value;
        }
    }
}

/* Sums over queries become means over those that see a key. */
static void divide(const struct dump *dump, int64_t shown, const struct dump_tiles *tiles,
                   float *cells) {
    for (int64_t a = 0; a < tiles->rows; a++) {
        int64_t n = 0;
        for (int64_t i = a * tiles->tile; i < (a + 1) * tiles->tile && i < dump->n_queries; i++)
            n += dump->heads[shown].lse[i] != -INFINITY;
        for (int64_t b = 0; n > 0 && b < tiles->cols; b++) cells[a * tiles->cols + b] /= (float)n;
    }
}

/* Does none of n_rows queries from i0 on see one of n_keys keys from j0 on? */
static bool hidden(const struct dump_mask *mask, int64_t i0, int64_t n_rows, int64_t j0,
                   int64_t n_keys) {
    const int64_t least = j0 - (i0 + n_rows - 1), most = j0 + n_keys - 1 - i0; /* of j - i */
    return (mask->to && least > mask->last) || (mask->from && most < mask->first) ||
           (mask->to && mask->from && mask->first > mask->last);
}

static int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }

bool dump_hides(const struct dump *dump, const struct dump_tiles *tiles, int64_t row, int64_t col) {
    const int64_t i0 = row * tiles->tile, j0 = col * tiles->tile;
    return hidden(&dump->mask, i0, least_of(tiles->tile, dump->n_queries - i0), j0,
                  least_of(tiles->tile, dump->n_keys - j0));
}

void dump_hide(const struct dump *dump, const struct dump_tiles *tiles, float none, float *cells) {
    for (int64_t i = 0; i < tiles->rows; i++)
        for (int64_t j = 0; j < tiles->cols; j++)
            if (dump_hides(dump, tiles, i, j)) cells[i * tiles->cols + j] = none;
}

static qkv_status pool(const struct dump *dump, int64_t shown, enum dump_pooling pooling,
                       const struct dump_tiles *tiles, const struct part *part, float *cells,
                       qkv_error *error) {
    struct progress progress;
    progress_begin(&progress, dump->options->common.quiet);
    qkv_status status = QKV_OK;
    for (int64_t b = 0; status == QKV_OK && b < tiles->cols; b += GROUP) {
        const int64_t n_tiles = tiles->cols - b < GROUP ? tiles->cols - b : GROUP;
        for (int64_t i = 0; status == QKV_OK && i < dump->n_queries; i += PIECE) {
            const int64_t n_rows = dump->n_queries - i < PIECE ? dump->n_queries - i : PIECE;
            if (hidden(&dump->mask, i, n_rows, b * tiles->tile, n_tiles * tiles->tile)) continue;
            status = cli_cancelled ? QKV_ERR_CANCELLED
                                   : run_part(dump, shown, tiles, i, n_rows, b, n_tiles, part);
            if (status == QKV_OK)
                add_part(dump, shown, pooling, tiles, i, n_rows, b, n_tiles, part, cells);
        }
        progress_bar(&progress, "pooled map", b + n_tiles, tiles->cols);
    }
    progress_end(&progress);
    if (status == QKV_OK && pooling == POOL_MASS) divide(dump, shown, tiles, cells);
    if (status == QKV_OK) return QKV_OK;
    return text_error(error, status, "%s",
                      cli_cancelled ? "nothing was written" : qkv_ctx_message(dump->ctx));
}

qkv_status dump_pool(const struct dump *dump, int64_t shown, enum dump_pooling pooling,
                     const struct dump_tiles *tiles, float *cells, qkv_error *error) {
    const size_t n = (size_t)GROUP * PIECE;
    const struct part part = { malloc(n * sizeof(float)), malloc(n * sizeof(float)),
                               malloc(n * sizeof(float)) };
    memset(cells, 0, (size_t)(tiles->rows * tiles->cols) * sizeof *cells);
    const qkv_status status = part.lse && part.largest && part.o
                                  ? pool(dump, shown, pooling, tiles, &part, cells, error)
                                  : text_error(error, QKV_ERR_MEMORY, "out of memory");
    free(part.lse);
    free(part.largest);
    free(part.o);
    return status;
}

enum dump_pooling dump_pooling_of(const struct dump *dump) {
    return dump->options->pool.set ? (enum dump_pooling)dump->options->pool.value : POOL_PEAK;
}

qkv_status dump_cells(const struct dump *dump, int64_t shown, const struct dump_tiles *tiles,
                      float *cells, qkv_error *error) {
    return tiles->tile == 1 ? dump_weights(dump, shown, cells, error)
                            : dump_pool(dump, shown, dump_pooling_of(dump), tiles, cells, error);
}
