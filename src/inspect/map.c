/**
 * The map of a head's queries and keys: from the caller's arrays to points, affinities, the best of
 * several runs (map_runs.c) and figures of what it is worth.
 */
#include <math.h>

#include "attn/ctx.h"
#include "core/options.h"
#include "inspect/balance.h"
#include "inspect/map_options.h"
#include "inspect/map_quality.h"
#include "inspect/map_runs.h"

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
        QKV_TRY(qkvi_balance_choose(ctx->kernels, o, map->n_queries, map->n_keys, map->head_dim,
                                    map->q, map->k, &o->balance, error));
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
