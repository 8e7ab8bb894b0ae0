/**
 * The map of a head's queries and keys: from the caller's arrays to points, affinities, the best of
 * several runs (map_runs.c), and its quality (map_quality.c).
 */
#include <math.h>

#include "attn/ctx.h"
#include "core/ints.h"
#include "core/options.h"
#include "files/base.h"
#include "inspect/map.h"
#include "inspect/points.h"

/* ---- Balance --------------------------------------------------------------------------------- */

/*
 * The scale between queries and keys that AttentionViz chooses (Yeh et al. 2023): scores do not
 * change if queries are multiplied by c and keys divided by it, distances do. Of seven c the one is
 * taken with which the correlation of q.k and distance is closest to -1, pairs weighted
 *
 *     w = max(0, t - d)^2,   t: the distance that 0.5 % of the pairs are below,
 *
 * so that what is near counts. Of few pairs, t is that of the 30th. Pairs are those of some
 * queries, evenly spread, with all keys: 2^18 at most, or those of one query.
 */

enum { MOST_PAIRS = 1 << 18, LEAST_NEAR = 30, N_SCALES = 7 };

/* Of equal ones the first is taken. */
static const double scales[N_SCALES] = { 1, 1.25, 0.8, 2.5, 0.4, 5, 0.2 };

struct pairs {
    int64_t n_queries, n_sample, n_keys;
    double *scores, *distances, *sorted; /* [n_sample][n_keys] */
};

static void find_scores(int64_t head_dim, const float *q, const float *k, struct pairs *pairs) {
    for (int64_t s = 0; s < pairs->n_sample; s++) {
        const float *const query = q + s * pairs->n_queries / pairs->n_sample * head_dim;
        for (int64_t j = 0; j < pairs->n_keys; j++) {
            double sum = 0;
            for (int64_t c = 0; c < head_dim; c++)
                sum += (double)query[c] * (double)k[j * head_dim + c];
            pairs->scores[s * pairs->n_keys + j] = sum;
        }
    }
}

static void find_distances(const qkvi_points *points, struct pairs *pairs) {
    for (int64_t s = 0; s < pairs->n_sample; s++) {
        const int64_t i = s * pairs->n_queries / pairs->n_sample;
        double *const row = pairs->distances + s * pairs->n_keys - points->n_queries;
        for (int64_t block = 0; block < points->n; block += QKVI_POINTS_BLOCK) {
            double d[QKVI_POINTS_BLOCK];
            const int64_t end = qkvi_min_i64(block + QKVI_POINTS_BLOCK, points->n);
            if (end <= points->n_queries) continue;
            qkvi_points_block_distances(points, i, block, d);
            for (int64_t j = qkvi_max_i64(block, points->n_queries); j < end; j++)
                row[j] = d[j - block];
        }
    }
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double threshold(struct pairs *pairs) {
    const int64_t n = pairs->n_sample * pairs->n_keys;
    for (int64_t i = 0; i < n; i++) pairs->sorted[i] = pairs->distances[i];
    qsort(pairs->sorted, (size_t)n, sizeof *pairs->sorted, ascending);
    return pairs->sorted[qkvi_min_i64(n, qkvi_max_i64(LEAST_NEAR, n / 200)) - 1];
}

/* Pearson's, weighted; 0 where one of the two does not vary. */
static double correlation(struct pairs *pairs) {
    const int64_t n = pairs->n_sample * pairs->n_keys;
    const double t = threshold(pairs);
    double all = 0, mean[2] = { 0 }, both = 0, squares[2] = { 0 };
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < n; i++) {
            const double nearer = fmax(0, t - pairs->distances[i]), w = nearer * nearer;
            const double a = pairs->scores[i] - mean[0], b = pairs->distances[i] - mean[1];
            if (pass == 0) {
                all += w;
                squares[0] += w * a;
                squares[1] += w * b;
            } else {
                both += w * a * b;
                squares[0] += w * a * a;
                squares[1] += w * b * b;
            }
        }
        if (!(all > 0)) return 0;
        if (pass == 1) break;
        for (int c = 0; c < 2; c++) {
            mean[c] = squares[c] / all;
            squares[c] = 0;
        }
    }
    return squares[0] > 0 && squares[1] > 0 ? both / sqrt(squares[0] * squares[1]) : 0;
}

static qkv_status choose(const qkvi_kernels *kernels, const qkv_map_options *options,
                         int64_t head_dim, const float *q, const float *k, struct pairs *pairs,
                         double *balance, qkv_error *error) {
    double best = 0;
    find_scores(head_dim, q, k, pairs);
    for (int c = 0; c < N_SCALES; c++) {
        qkv_map_options with = *options;
        qkvi_points points;
        with.balance = scales[c];
        with.center_keys = 1;
        const qkv_status status = qkvi_points_make(kernels, &with, pairs->n_queries, pairs->n_keys,
                                                   head_dim, q, k, &points, error);
        if (status == QKV_OK) {
            qkvi_points_finish(&points);
            find_distances(&points, pairs);
        }
        qkvi_points_free(&points);
        QKV_TRY(status);
        const double follows = correlation(pairs);
        if (c > 0 && !(follows < best)) continue;
        best = follows;
        *balance = scales[c];
    }
    return QKV_OK;
}

/*
 * One of 0.2, 0.4, 0.8, 1, 1.25, 2.5 and 5, for queries times it and keys divided by it, keys then
 * centred: that with which near pairs of query and key have the scores that their distances
 * promise. 1 where nothing can be said. options has the metric. MEMORY, and what qkvi_points_make
 * refuses.
 */
static qkv_status balance_choose(const qkvi_kernels *kernels, const qkv_map_options *options,
                                 int64_t n_queries, int64_t n_keys, int64_t head_dim,
                                 const float *q, const float *k, double *balance,
                                 qkv_error *error) {
    *balance = 1;
    if (n_queries == 0 || n_keys == 0) return QKV_OK;
    const int64_t n_sample = qkvi_min_i64(n_queries, qkvi_max_i64(1, MOST_PAIRS / n_keys));
    double *const block = qkvi_malloc_array((size_t)(n_sample * n_keys), 3 * sizeof *block);
    if (!block)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld pairs of query and key",
                              (long long)(n_sample * n_keys));
    struct pairs pairs = {
        n_queries, n_sample, n_keys, block, block + n_sample * n_keys, block + 2 * n_sample * n_keys
    };
    const qkv_status status = choose(kernels, options, head_dim, q, k, &pairs, balance, error);
    free(block);
    return status;
}

static const double tolerance = 1e-10; /* of an entropy */

static int go_on(void *user) {
    qkvi_map_tell(user);
    return !qkvi_map_cancelled(user);
}

static qkv_status make_affinities(struct qkvi_map *map, qkv_error *error) {
    const qkv_map_options *const o = &map->options;
    const qkvi_tsne_watch watch = { go_on, map };
    if (o->method == QKV_MAP_EXACT)
        return qkvi_tsne_make(&map->points, map->pool, o->perplexity, tolerance, &map->tsne, error);
    return qkvi_tsne_make_sparse(&map->points, map->pool, o->perplexity, tolerance, &watch,
                                 &map->tsne, error);
}

static void show_components(struct qkvi_map *map, int32_t *agree) {
    memcpy(map->xy, map->pca, 2 * (size_t)map->n * sizeof *map->xy);
    if (agree) memset(agree, 0, (size_t)map->n_queries * sizeof *agree);
}

static qkv_status embed(struct qkvi_map *map, int32_t *agree, qkv_map_report *report,
                        qkv_error *error) {
    const qkv_status status = make_affinities(map, error);
    if (status == QKV_ERR_CANCELLED) { /* before there is anything to descend */
        show_components(map, agree);
        return QKV_OK;
    }
    QKV_TRY(status);
    map->tsne.theta = map->options.theta;
    map->tsne.n_iters = map->options.n_iters;
    map->tsne.stop_early = !map->options.no_early_stop;
    QKV_TRY(qkvi_map_descend(map, error));
    return qkvi_map_keep_best(map, agree, report, error);
}

static qkv_status make(struct qkvi_map *map, qkv_ctx *ctx, double *pca, int32_t *agree,
                       qkv_map_report *report, qkv_error *error) {
    qkv_map_options *const o = &map->options;
    const size_t pca_bytes = 2 * (size_t)map->n * sizeof(double);
    map->pca = qkvi_malloc_array(pca_bytes, 1);
    if (!map->pca)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld points",
                              (long long)map->n);
    if (o->auto_balance)
        QKV_TRY(balance_choose(ctx->kernels, o, map->n_queries, map->n_keys, map->head_dim, map->q,
                               map->k, &o->balance, error));
    QKV_TRY(qkvi_points_make(ctx->kernels, o, map->n_queries, map->n_keys, map->head_dim, map->q,
                             map->k, &map->points, error));
    QKV_TRY(qkvi_points_pca(&map->points, map->pca, map->explained, error));
    qkvi_points_finish(&map->points);
    *report = (qkv_map_report){ .perplexity = o->perplexity,
                                .kl = NAN,
                                .median_kl = NAN,
                                .method = o->method,
                                .theta = o->method == QKV_MAP_EXACT ? 0 : o->theta,
                                .balance = o->balance > 0 ? o->balance : 1,
                                .n_zero = map->points.n_zero,
                                .explained = { map->explained[0], map->explained[1] } };
    if (o->pca_only)
        show_components(map, agree);
    else
        QKV_TRY(embed(map, agree, report, error));
    if (pca) memcpy(pca, map->pca, pca_bytes);
    QKV_TRY(qkvi_map_quality(&map->points, map->pool, map->xy, map->head_dim, map->q, map->k,
                             report, error));
    if (!qkvi_map_cancelled(map)) return QKV_OK;
    if (!o->pca_only && report->n_runs == 0)
        return qkvi_error_set(error, QKV_ERR_CANCELLED, "cancelled before the first run");
    return qkvi_error_set(error, QKV_ERR_CANCELLED, "cancelled after %lld iterations of run %lld",
                          (long long)report->n_iters, (long long)report->run);
}

static void map_free(struct qkvi_map *map) {
    for (int64_t i = 0; map->runs && i < map->options.n_runs; i++)
        qkvi_tsne_run_free(&map->runs[i]);
    free(map->runs);
    free(map->pca);
    qkvi_tsne_free(&map->tsne);
    qkvi_points_free(&map->points);
}

qkv_status qkv_inspect_map(qkv_ctx *ctx, const qkv_map_options *options, int64_t n_queries,
                           int64_t n_keys, int64_t head_dim, const float *q, const float *k,
                           double *xy, double *pca, int32_t *agree, qkv_map_report *report,
                           const qkv_call_options *call, qkv_error *error) {
    QKV_TRY(qkvi_map_check_shape(n_queries, n_keys, head_dim, error));
    struct qkvi_map map = { .n_queries = n_queries,
                            .n_keys = n_keys,
                            .n = n_queries + n_keys,
                            .head_dim = head_dim,
                            .q = q,
                            .k = k,
                            .xy = xy };
    qkv_map_options given = qkv_map_options_init();
    qkv_call_options call_options = qkv_call_options_init();
    qkv_map_report ours = qkv_map_report_init();
    QKV_TRY(qkvi_options_read(&map.options, sizeof given, options ? options : &given,
                              "qkv_map_options", error));
    if (call)
        QKV_TRY(
            qkvi_options_read(&call_options, sizeof call_options, call, "qkv_call_options", error));
    if (report) QKV_TRY(qkvi_options_read(&ours, sizeof ours, report, "qkv_map_report", error));
    map.call = call ? &call_options : NULL;
    if (!ctx || (!q && n_queries > 0) || (!k && n_keys > 0) || !xy)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              !ctx                  ? "ctx"
                              : !q && n_queries > 0 ? "q"
                              : !k && n_keys > 0    ? "k"
                                                    : "xy");
    QKV_TRY(qkvi_map_check_options(&map.options, map.n, error));
    qkvi_map_complete_options(&map.options, map.n);
    qkv_status status = qkvi_ctx_begin(ctx);
    if (status != QKV_OK) return qkvi_error_set(error, status, "ctx is inside another call");
    map.pool = ctx->pool;
    status = make(&map, ctx, pca, agree, &ours, error);
    if (report && (status == QKV_OK || status == QKV_ERR_CANCELLED))
        qkvi_options_write(report, &ours, sizeof ours);
    map_free(&map);
    return qkvi_ctx_end(ctx, status);
}
