/**
 * The map of a head's queries and keys: from the caller's arrays to the best of several runs.
 *
 * Few points: each run is a task, so that threads share the runs. Many points: one run after the
 * other, and threads share the rows of each. Between bouts of iterations the caller's thread looks at
 * the cancel flag and tells how far the runs are.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/ctx.h"
#include "core/alloc.h"
#include "core/ints.h"
#include "core/options.h"
#include "inspect/map_options.h"
#include "inspect/map_quality.h"
#include "inspect/tsne.h"

enum {
    BOUT_PAIRS = 1 << 23, /* pairs between two looks at the cancel flag: milliseconds */
    BOUT_ITERS = 50
};

static const double tolerance = 1e-10; /* of an entropy */

/* A call of qkv_inspect_map. */
struct map {
    qkv_map_options options; /* complete */
    const qkv_call_options *call;
    int64_t n_queries, n_keys, n, head_dim;
    const float *q, *k;
    qkvi_pool *pool;
    qkvi_points points;
    double *pca; /* [n][2] */
    double explained[2];
    qkvi_tsne tsne;
    qkvi_tsne_run *runs;
    int64_t n_begun;
    double *xy;
};

/* ---- Runs ------------------------------------------------------------------------------------ */

static void begin_run(const struct map *map, int64_t index, qkvi_tsne_run *run) {
    const qkv_map_options *const o = &map->options;
    if (index > 0 || (!o->start && o->init == QKV_MAP_INIT_RANDOM)) {
        qkvi_tsne_run_draw(&map->tsne, o->seed, index, 3, run);
        return;
    }
    double squares = 0;
    for (int64_t i = 0; i < map->n; i++) squares += map->pca[2 * i] * map->pca[2 * i];
    const double scale = squares > 0 ? 1e-4 / sqrt(squares / (double)map->n) : 0;
    for (int64_t i = 0; i < map->n; i++)
        for (int c = 0; c < 2; c++)
            run->y[c][i] = o->start ? o->start[2 * i + c] : scale * map->pca[2 * i + c];
    /* points on a line would never leave it */
    if (!o->start && map->explained[0] > 0 && map->explained[1] == 0)
        qkvi_tsne_run_draw(&map->tsne, o->seed, index, 2, run);
}

static int cancelled(const struct map *map) {
    return map->call && map->call->cancel && __atomic_load_n(map->call->cancel, __ATOMIC_RELAXED);
}

static void tell(const struct map *map) {
    if (!map->call || !map->call->progress) return;
    int64_t done = 0;
    for (int64_t i = 0; i < map->n_begun; i++)
        done += map->runs[i].done ? map->options.n_iters : map->runs[i].n_iters;
    map->call->progress(map->call->progress_user, done, map->options.n_runs * map->options.n_iters);
}

/* A bout: some iterations of runs[first] and those after it, a task for each. */
struct bout {
    const struct map *map;
    int64_t first, n_iters;
};

static void advance_one(void *argument, int index) {
    const struct bout *const bout = argument;
    qkvi_tsne_run_advance(&bout->map->tsne, NULL, bout->n_iters,
                          &bout->map->runs[bout->first + index]);
}

static int all_done(const struct map *map, int64_t first, int64_t n) {
    for (int64_t i = first; i < first + n; i++)
        if (!map->runs[i].done) return 0;
    return 1;
}

/* n runs side by side, or one, to their ends or until cancelled. */
static void make_runs(struct map *map, int64_t first, int64_t n) {
    const int64_t iters = qkvi_max_i64(1, BOUT_PAIRS / (map->n * map->n * BOUT_ITERS)) * BOUT_ITERS;
    struct bout bout = { map, first, iters };
    while (!all_done(map, first, n) && !cancelled(map)) {
        if (n > 1)
            qkvi_pool_run(map->pool, (int)n, advance_one, &bout);
        else
            qkvi_tsne_run_advance(&map->tsne, map->pool, iters, &map->runs[first]);
        tell(map);
    }
}

static qkv_status descend(struct map *map, qkv_error *error) {
    const int64_t n_runs = map->options.n_runs;
    const int64_t at_once =
        map->n <= QKVI_MAP_FEW_POINTS ? 4 * (int64_t)qkvi_pool_threads(map->pool) : 1;
    map->runs = qkvi_calloc_array((size_t)n_runs, sizeof *map->runs);
    if (!map->runs)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld runs", (long long)n_runs);
    for (int64_t first = 0; first < n_runs && !(first > 0 && cancelled(map)); first += at_once) {
        const int64_t n = qkvi_min_i64(at_once, n_runs - first);
        for (int64_t i = first; i < first + n; i++) {
            QKV_TRY(qkvi_tsne_run_make(&map->tsne, &map->runs[i], error));
            begin_run(map, i, &map->runs[i]);
        }
        map->n_begun = first + n;
        make_runs(map, first, n);
    }
    for (int64_t i = 0; i < map->n_begun; i++)
        qkvi_tsne_run_measure(&map->tsne, map->pool, &map->runs[i]);
    return QKV_OK;
}

/* ---- Results --------------------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static qkv_status find_median(const struct map *map, double *median, qkv_error *error) {
    const int64_t n = map->n_begun;
    double *const kl = qkvi_malloc_array((size_t)n, sizeof *kl);
    if (!kl) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld KL", (long long)n);
    for (int64_t i = 0; i < n; i++) kl[i] = map->runs[i].kl;
    qsort(kl, (size_t)n, sizeof *kl, compare_numbers);
    *median = (kl[(n - 1) / 2] + kl[n / 2]) / 2;
    free(kl);
    return QKV_OK;
}

static void count_agreement(const struct map *map, int32_t *agree) {
    for (int64_t i = 0; i < map->n_queries; i++) {
        const int64_t key =
            qkvi_map_nearest_key(map->xy, map->xy + 1, 2, map->n_queries, map->n, i);
        agree[i] = 0;
        for (int64_t r = 0; r < map->n_begun; r++) {
            double *const *const y = map->runs[r].y;
            agree[i] +=
                key >= 0 && qkvi_map_nearest_key(y[0], y[1], 1, map->n_queries, map->n, i) == key;
        }
    }
}

/* The best run becomes the map. */
static qkv_status keep_best(struct map *map, int32_t *agree, qkv_map_report *report,
                            qkv_error *error) {
    int64_t best = 0;
    for (int64_t i = 1; i < map->n_begun; i++)
        if (map->runs[i].kl < map->runs[best].kl) best = i;
    const qkvi_tsne_run *const run = &map->runs[best];
    for (int64_t i = 0; i < map->n; i++)
        for (int c = 0; c < 2; c++) map->xy[2 * i + c] = run->y[c][i];
    if (agree) count_agreement(map, agree);
    report->kl = run->kl;
    report->gradient_norm = run->gradient_norm;
    report->n_iters = run->n_iters;
    report->n_runs = map->n_begun;
    report->run = best;
    return find_median(map, &report->median_kl, error);
}

static qkv_status embed(struct map *map, int32_t *agree, qkv_map_report *report, qkv_error *error) {
    const qkv_map_options *const o = &map->options;
    QKV_TRY(qkvi_tsne_make(&map->points, map->pool, o->perplexity, tolerance, &map->tsne, error));
    map->tsne.n_iters = o->n_iters;
    map->tsne.stop_early = !o->no_early_stop;
    QKV_TRY(descend(map, error));
    return keep_best(map, agree, report, error);
}

static qkv_status make(struct map *map, qkv_ctx *ctx, double *pca, int32_t *agree,
                       qkv_map_report *report, qkv_error *error) {
    const qkv_map_options *const o = &map->options;
    const size_t pca_bytes = 2 * (size_t)map->n * sizeof(double);
    map->pca = qkvi_malloc_array(pca_bytes, 1);
    if (!map->pca)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld points",
                              (long long)map->n);
    QKV_TRY(qkvi_points_make(ctx->kernels, o, map->n_queries, map->n_keys, map->head_dim, map->q,
                             map->k, &map->points, error));
    QKV_TRY(qkvi_points_pca(&map->points, map->pca, map->explained, error));
    qkvi_points_finish(&map->points);
    *report = (qkv_map_report){ .perplexity = o->perplexity,
                                .kl = NAN,
                                .median_kl = NAN,
                                .n_zero = map->points.n_zero,
                                .explained = { map->explained[0], map->explained[1] } };
    if (o->pca_only)
        memcpy(map->xy, map->pca, pca_bytes);
    else
        QKV_TRY(embed(map, agree, report, error));
    if (o->pca_only && agree) memset(agree, 0, (size_t)map->n_queries * sizeof *agree);
    if (pca) memcpy(pca, map->pca, pca_bytes);
    QKV_TRY(qkvi_map_quality(&map->points, map->pool, map->xy, map->head_dim, map->q, map->k,
                             report, error));
    if (!cancelled(map)) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_CANCELLED, "cancelled after %lld iterations of run %lld",
                          (long long)report->n_iters, (long long)report->run);
}

static void map_free(struct map *map) {
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
    struct map map = { .n_queries = n_queries,
                       .n_keys = n_keys,
                       .n = n_queries + n_keys,
                       .head_dim = head_dim,
                       .q = q,
                       .k = k,
                       .xy = xy };
    qkv_map_options given = QKV_MAP_OPTIONS_INIT;
    qkv_call_options call_options;
    qkv_map_report ours;
    QKV_TRY(qkvi_options_read(&map.options, sizeof given, options ? options : &given,
                              "qkv_map_options", error));
    if (call)
        QKV_TRY(
            qkvi_options_read(&call_options, sizeof call_options, call, "qkv_call_options", error));
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
    status = make(&map, ctx, pca, agree, report ? report : &ours, error);
    map_free(&map);
    return qkvi_ctx_end(ctx, status);
}
