/**
 * Weights of heads: rectangles, maps of tiles, and numbers at each position. They come from calls
 * of qkv/columns.h or qkv/stats.h, or of a mean from its stored weights.
 */
#include <math.h>

#include "core/ints.h"
#include "core/options.h"
#include "inspect/heads_impl.h"
#include "inspect/rows.h"
#include "qkv/columns.h"
#include "qkv/stats.h"

/* ---- One head -------------------------------------------------------------------------------- */

/* Of arrays: those of all heads up to this one are there. */
static qkv_status make_lse(qkv_heads *heads, int64_t index, qkv_error *error) {
    while (heads->n_lse <= index) {
        const qkvi_head_source *const source = &heads->sources[heads->n_lse];
        qkv_attention_desc desc;
        qkvi_heads_describe(heads, heads->n_lse, 1, &desc);
        const qkv_head_view view = { .desc = &desc, .q = source->q, .k = source->k };
        const qkvi_share share = qkvi_heads_share(heads, heads->n_lse, &view, NULL);
        QKV_TRY(qkvi_share_forward(&share, QKV_OK, source->lse, NULL, error));
        heads->n_lse++;
    }
    return QKV_OK;
}

/* Of pieces q and k are this rank's rows. */
static qkv_status view_of(qkv_heads *heads, int64_t index, qkv_head_view *view, qkv_error *error) {
    if (heads->mean || heads->given)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "%s no queries and keys",
                              heads->mean ? "a mean has" : "statistics of rows have");
    QKV_TRY(make_lse(heads, index, error));
    const qkvi_head_source *const source = &heads->sources[index];
    qkvi_heads_describe(heads, index, 1, &heads->descs[index]);
    *view = (qkv_head_view){
        .desc = &heads->descs[index], .q = source->q, .k = source->k, .lse = source->lse
    };
    return QKV_OK;
}

/* Rows of pieces to where all rows of the head have room; of whole arrays they are there. */
static qkv_status bring(qkv_heads *heads, qkv_status status, qkvi_range queries, qkvi_range keys,
                        qkv_head_view *view, qkv_error *error) {
    qkvi_head_pieces *const pieces = qkvi_heads_pieces(heads);
    if (!pieces) return status;
    const float *const own[] = { view->q, view->k };
    const qkvi_range wanted[] = { queries, keys };
    const int64_t room[] = { heads->info.n_queries, heads->info.n_keys };
    QKV_TRY(qkvi_head_pieces_bring(pieces, status, own, wanted, room, error));
    view->q = pieces->rows[0];
    view->k = pieces->rows[1];
    return QKV_OK;
}

static void drop(qkv_heads *heads) {
    if (heads->pieces.peers) qkvi_head_pieces_drop(&heads->pieces);
}

/* The first rank keeps all rows of a head that is asked for, and a head of keys once. */
static qkv_status keep_whole(qkv_heads *heads, int64_t index, qkv_head_view *view,
                             qkv_error *error) {
    float **const whole[] = { &heads->whole[0][index], &heads->whole[1][heads->sources[index].kv] };
    const bool first = heads->peers.rank == 0;
    const qkvi_range queries = { 0, first && !*whole[0] ? heads->info.n_queries : 0 },
                     keys = { 0, first && !*whole[1] ? heads->info.n_keys : 0 };
    QKV_TRY(bring(heads, QKV_OK, queries, keys, view, error));
    for (int side = 0; side < 2; side++) {
        if (!first || *whole[side]) continue;
        *whole[side] = heads->pieces.rows[side];
        heads->pieces.rows[side] = NULL;
    }
    drop(heads);
    view->q = *whole[0];
    view->k = *whole[1];
    return QKV_OK;
}

qkv_status qkv_heads_view(qkv_heads *heads, int64_t index, qkv_head_view *view, qkv_error *error) {
    QKV_TRY(qkvi_heads_check(heads, index, error));
    if (!view) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "view is NULL");
    qkv_head_view made = qkv_head_view_init();
    QKV_TRY(qkvi_options_read(&made, sizeof made, view, "qkv_head_view", error));
    QKV_TRY(view_of(heads, index, &made, error));
    if (heads->pieces.peers) QKV_TRY(keep_whole(heads, index, &made, error));
    qkvi_options_write(view, &made, sizeof made);
    return QKV_OK;
}

static qkv_status weights_of(qkv_heads *heads, int64_t index, int64_t i0, int64_t i1, int64_t j0,
                             int64_t j1, float *weights, int64_t row, const qkv_call_options *call,
                             qkv_error *error) {
    const float *const mean = qkvi_heads_mean_weights(heads, index);
    qkv_head_view v = qkv_head_view_init();
    if (heads->mean && !mean)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "the mean has no weights");
    for (int64_t i = i0; mean && i < i1; i++)
        memcpy(weights + (i - i0) * row, mean + i * heads->info.n_keys + j0,
               (size_t)(j1 - j0) * sizeof *weights);
    if (mean) return QKV_OK;
    QKV_TRY(view_of(heads, index, &v, error));
    QKV_TRY(bring(heads, QKV_OK, (qkvi_range){ i0, i1 }, (qkvi_range){ 0, heads->info.n_keys }, &v,
                  error)); /* a row is normalised over all its keys */
    const int64_t columns = qkvi_max_i64(j1 - j0, 1),
                  step = qkvi_max_i64(QKV_WEIGHTS_MAX_CELLS / columns, 1);
    qkv_status status = QKV_OK;
    for (int64_t i = i0; status == QKV_OK && i < i1; i += step)
        status = qkvi_ctx_told(heads->ctx,
                               qkv_attention_weights(heads->ctx, v.desc, v.q, v.k, v.lse, 0, 0, i,
                                                     qkvi_min_i64(i + step, i1), j0, j1,
                                                     weights + (i - i0) * row, row, call),
                               error);
    drop(heads);
    return status;
}

qkv_status qkv_heads_weights(qkv_heads *heads, int64_t index, int64_t i0, int64_t i1, int64_t j0,
                             int64_t j1, float *weights, int64_t row, qkv_error *error) {
    QKV_TRY(qkvi_heads_check(heads, index, error));
    if (!weights) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "weights is NULL");
    const qkv_heads_info *const info = &heads->info;
    if (i0 < 0 || i0 > i1 || i1 > info->n_queries || j0 < 0 || j0 > j1 || j1 > info->n_keys ||
        row < j1 - j0)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "queries %lld to %lld and keys %lld to %lld are no rectangle of "
                              "%lld x %lld, or do not fit rows of %lld",
                              (long long)i0, (long long)i1, (long long)j0, (long long)j1,
                              (long long)info->n_queries, (long long)info->n_keys, (long long)row);
    return weights_of(heads, index, i0, i1, j0, j1, weights, row, NULL, error);
}

/* ---- Maps of tiles --------------------------------------------------------------------------- */

/* A map over whole tiles: what the last ones lack is hidden. */
struct padded {
    int64_t n_queries, n_keys;
    float *q, *k, *lse, *added;
    uint8_t *seen;
    qkv_attention_desc desc;
};

static void padded_free(struct padded *p) {
    free(p->q);
    free(p->k);
    free(p->lse);
    free(p->added);
    free(p->seen);
}

static float *extended(const float *from, int64_t n, int64_t whole, int64_t width, float rest) {
    float *const copy = qkvi_malloc_array((size_t)whole, (size_t)width * sizeof *copy);
    if (!copy) return NULL;
    memcpy(copy, from, (size_t)(n * width) * sizeof *copy);
    for (int64_t i = n * width; i < whole * width; i++) copy[i] = rest;
    return copy;
}

/* What is added to scores, with keys that no query sees behind the others. */
static qkv_status padded_added(const qkv_heads *heads, const float *added, struct padded *p,
                               qkv_error *error) {
    const int64_t n = heads->info.n_queries, m = heads->info.n_keys;
    int64_t n_cells;
    if (qkvi_mul_i64(p->n_queries, p->n_keys, &n_cells))
        p->added = qkvi_malloc_array((size_t)n_cells, sizeof *p->added);
    if (!p->added) return qkvi_no_memory(error, "weights");
    for (int64_t i = 0; i < p->n_queries; i++)
        for (int64_t j = 0; j < p->n_keys; j++)
            p->added[i * p->n_keys + j] = j >= m ? -INFINITY : i < n ? added[i * m + j] : 0;
    p->desc.mask = p->added;
    p->desc.mask_type = QKV_MASK_F32;
    p->desc.mask_stride[2] = p->n_keys;
    return QKV_OK;
}

/* Which edges are cut, with keys that no query sees behind the others. */
static qkv_status padded_uncut(const qkv_heads *heads, const uint8_t *uncut, struct padded *p,
                               qkv_error *error) {
    const int64_t n = heads->info.n_queries, m = heads->info.n_keys;
    free(p->seen);
    p->seen = qkvi_calloc_array((size_t)p->n_queries, (size_t)p->n_keys);
    if (!p->seen) return qkvi_no_memory(error, "weights");
    for (int64_t i = 0; i < n; i++) memcpy(p->seen + i * p->n_keys, uncut + i * m, (size_t)m);
    p->desc.mask = p->seen;
    p->desc.mask_stride[2] = p->n_keys;
    return QKV_OK;
}

static qkv_status padded_make(const qkv_heads *heads, const qkv_head_view *v, struct padded *p,
                              qkv_error *error) {
    const qkv_heads_info *const info = &heads->info;
    const int64_t n = info->n_queries, m = info->n_keys, d = info->head_dim;
    const bool is_here = !heads->pieces.peers; /* else they come to room with zeros behind them */
    if (is_here) p->q = extended(v->q, n, p->n_queries, d, 0);
    if (is_here) p->k = extended(v->k, m, p->n_keys, d, 0);
    p->lse = extended(v->lse, n, p->n_queries, 1, -INFINITY);
    p->seen = qkvi_calloc_array((size_t)p->n_keys, 1);
    if ((is_here && (!p->q || !p->k)) || !p->lse || !p->seen)
        return qkvi_no_memory(error, "weights");
    for (int64_t j = 0; j < m; j++) p->seen[j] = !heads->seen || heads->seen[j];
    qkv_attention_desc_contiguous(&p->desc, 1, 1, 1, p->n_queries, p->n_keys, d, 0);
    p->desc.scale = v->desc->scale;
    p->desc.softcap = v->desc->softcap;
    p->desc.sinks = v->desc->sinks;
    p->desc.alibi_slopes = v->desc->alibi_slopes;
    p->desc.distance_bias = v->desc->distance_bias;
    p->desc.distance_bias_stride = v->desc->distance_bias_stride;
    p->desc.distance_before = v->desc->distance_before;
    p->desc.distance_after = v->desc->distance_after;
    p->desc.q_offset = v->desc->q_offset;
    p->desc.window_left = v->desc->window_left;
    p->desc.window_right = v->desc->window_right;
    p->desc.flags = v->desc->flags | QKV_SET_MASK;
    p->desc.mask = p->seen;
    p->desc.mask_type = QKV_MASK_BOOL;
    p->desc.mask_stride[3] = 1;
    if (!(v->desc->flags & QKV_SET_MASK)) return QKV_OK;
    if (v->desc->mask_type == QKV_MASK_F32) return padded_added(heads, v->desc->mask, p, error);
    return v->desc->mask_stride[2] > 0 ? padded_uncut(heads, v->desc->mask, p, error) : QKV_OK;
}

static qkv_status pool_head(qkv_heads *heads, int64_t index, int64_t tile, int64_t rows,
                            int64_t cols, qkv_tile_kind pooling, float *cells,
                            const qkv_call_options *call, qkv_error *error) {
    qkv_head_view v = qkv_head_view_init();
    struct padded p = { .n_queries = rows * tile, .n_keys = cols * tile };
    QKV_TRY(view_of(heads, index, &v, error));
    const bool is_whole = p.n_queries == heads->info.n_queries && p.n_keys == heads->info.n_keys;
    qkv_status status = is_whole ? QKV_OK : padded_make(heads, &v, &p, error);
    const bool is_here = !heads->pieces.peers;
    const qkv_head_view whole = {
        .desc = &p.desc, .q = is_here ? p.q : v.q, .k = is_here ? p.k : v.k, .lse = p.lse
    };
    const qkv_head_view *const of = is_whole ? &v : &whole;
    const qkvi_share share = qkvi_heads_share(heads, index, of, call);
    status = qkvi_share_tiles(&share, status, of->lse, tile, rows, cols, pooling, cells, error);
    padded_free(&p);
    return status;
}

/* Is there a pair that may be seen among some queries and some keys? */
static int is_hidden(const qkv_heads *heads, int64_t index, int64_t i0, int64_t i1, int64_t j0,
                     int64_t j1) {
    const qkvi_rules *const rules = qkvi_heads_rules(heads, index);
    const qkvi_range keys = qkvi_keys_of_block(rules, i0, i1);
    const int64_t begin = qkvi_max_i64(keys.begin, j0), end = qkvi_min_i64(keys.end, j1);
    for (int64_t j = begin; j < end && !heads->uncut; j++)
        if (!heads->seen || heads->seen[j]) return 0;
    for (int64_t i = i0; i < i1 && heads->uncut; i++)
        for (int64_t j = begin; j < end; j++)
            if (qkv_head_sees(heads, index, i, j)) return 0;
    return 1;
}

static void hide(const qkv_heads *heads, int64_t index, int64_t tile, int64_t rows, int64_t cols,
                 float *cells) {
    if (heads->info.sees_all) return;
    for (int64_t a = 0; a < rows; a++) {
        const int64_t i0 = a * tile, i1 = qkvi_min_i64(i0 + tile, heads->info.n_queries);
        for (int64_t b = 0; b < cols; b++) {
            const int64_t j0 = b * tile, j1 = qkvi_min_i64(j0 + tile, heads->info.n_keys);
            if (is_hidden(heads, index, i0, i1, j0, j1)) cells[a * cols + b] = QKV_CELL_HIDDEN;
        }
    }
}

qkv_status qkv_heads_cells(qkv_heads *heads, int64_t index, int64_t tile, qkv_tile_kind pooling,
                           float *cells, const qkv_call_options *given, qkv_error *error) {
    qkv_call_options call;
    QKV_TRY(qkvi_heads_check(heads, index, error));
    QKV_TRY(qkvi_rows_call(given, &call, error));
    const int64_t n = heads->info.n_queries, m = heads->info.n_keys;
    if (!cells) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "cells is NULL");
    if (tile < 1)
        return qkvi_error_set(error, QKV_ERR_SHAPE, "tile = %lld is below 1", (long long)tile);
    if (tile > 1 && heads->mean)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "a mean is not pooled");
    const int64_t rows = (n - 1) / tile + 1, cols = (m - 1) / tile + 1;
    if (tile == 1)
        QKV_TRY(weights_of(heads, index, 0, n, 0, m, cells, m, &call, error));
    else
        QKV_TRY(pool_head(heads, index, tile, rows, cols, pooling, cells, &call, error));
    hide(heads, index, tile, rows, cols, cells);
    return QKV_OK;
}

/* ---- Position by position -------------------------------------------------------------------- */

/*
 * A query that sees no key has no entropy: NaN, not the 0 of one that looks at a single key. Beside
 * a sink its lse is a number, but it has no effective keys.
 */
static qkv_status by_query(qkv_heads *heads, int64_t index, const qkv_head_view *v,
                           const qkv_heads_profile *profile, const qkv_call_options *call,
                           qkv_error *error) {
    const int64_t n = heads->info.n_queries;
    float *const rows = qkvi_malloc_array((size_t)n, 3 * sizeof *rows);
    const qkvi_share share = qkvi_heads_share(heads, index, v, call);
    qkv_attention_stats stats;
    qkv_status status = rows ? QKV_OK : qkvi_no_memory(error, "weights");
    qkv_attention_stats_contiguous(&stats, v->desc);
    stats.entropy = rows;
    stats.largest = rows ? rows + n : NULL;
    stats.effective_keys = rows ? rows + 2 * n : NULL;
    status = qkvi_share_forward(&share, status, NULL, &stats, error);
    for (int64_t i = 0; status == QKV_OK && i < n; i++) {
        const int empty = rows[2 * n + i] == 0;
        if (profile->entropy) profile->entropy[i] = empty ? NAN : (double)rows[i];
        if (profile->largest) profile->largest[i] = empty ? NAN : (double)rows[n + i];
    }
    free(rows);
    return status;
}

/* On each rank, with all rows. */
static qkv_status pass_whole(qkv_heads *heads, qkv_status status, const qkv_head_view *view,
                             const qkv_attention_columns *columns, const qkv_call_options *call,
                             qkv_error *error) {
    qkv_head_view v = *view;
    QKV_TRY(bring(heads, status, (qkvi_range){ 0, heads->info.n_queries },
                  (qkvi_range){ 0, heads->info.n_keys }, &v, error));
    status = qkvi_ctx_told(
        heads->ctx, qkv_attention_columns_pass(heads->ctx, v.desc, v.q, v.k, v.lse, columns, call),
        error);
    drop(heads);
    return status;
}

/*
 * Diagonals are not shared: their sums go from key to key. They come by delta = i + q_offset - j,
 * from delta = q_offset - (n_keys - 1) on; by_offset has d = j - i ascending: the same ones from
 * the other end.
 */
static qkv_status by_key(qkv_heads *heads, int64_t index, const qkv_head_view *v,
                         const qkv_heads_profile *profile, const qkv_call_options *call,
                         qkv_error *error) {
    const int64_t n_keys = heads->info.n_keys, n_offsets = heads->info.n_queries + n_keys - 1;
    float *const sums = qkvi_malloc_array((size_t)(n_keys + n_offsets), sizeof *sums);
    qkv_attention_columns columns;
    qkv_status status = sums ? QKV_OK : qkvi_no_memory(error, "weights");
    const qkvi_share share = qkvi_heads_share(heads, index, v, call);
    qkv_attention_columns_contiguous(&columns, v->desc);
    if (profile->received) columns.received = sums;
    if (profile->by_offset && sums) columns.diagonal = sums + n_keys;
    if (!profile->by_offset)
        status = qkvi_share_received(&share, status, v->lse, &columns, error);
    else
        status = pass_whole(heads, status, v, &columns, call, error);
    for (int64_t j = 0; status == QKV_OK && profile->received && j < n_keys; j++)
        profile->received[j] = (double)sums[j];
    for (int64_t d = 0; status == QKV_OK && profile->by_offset && d < n_offsets; d++)
        profile->by_offset[d] = (double)sums[n_keys + n_offsets - 1 - d];
    free(sums);
    return status;
}

qkv_status qkv_heads_position(qkv_heads *heads, int64_t index, const qkv_heads_profile *profile,
                              const qkv_call_options *given, qkv_error *error) {
    qkv_call_options call;
    qkv_heads_profile asked = qkv_heads_profile_init();
    qkv_head_view v = qkv_head_view_init();
    QKV_TRY(qkvi_heads_check(heads, index, error));
    if (!profile) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "profile is NULL");
    QKV_TRY(qkvi_options_read(&asked, sizeof asked, profile, "qkv_heads_profile", error));
    QKV_TRY(qkvi_rows_call(given, &call, error));
    const float *const mean = qkvi_heads_mean_weights(heads, index);
    if (mean) {
        qkvi_profile(heads, index, mean, &asked);
        return QKV_OK;
    }
    QKV_TRY(view_of(heads, index, &v, error));
    if (asked.entropy || asked.largest) QKV_TRY(by_query(heads, index, &v, &asked, &call, error));
    if (!asked.received && !asked.by_offset) return QKV_OK;
    return by_key(heads, index, &v, &asked, &call, error);
}
