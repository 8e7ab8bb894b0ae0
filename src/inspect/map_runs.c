/**
 * The runs of a map, and the best of them.
 *
 * With few points each run is a task, and threads share the runs. With many points runs come one
 * after the other, and threads share the rows of each. After every few iterations the caller's
 * thread checks the cancel flag and reports progress.
 */
#include <math.h>

#include "core/cancel.h"
#include "core/ints.h"
#include "files/base.h"
#include "inspect/map.h"

/* ---- Options --------------------------------------------------------------------------------- */

/* Options of a map: what may be asked for, and what is meant where nothing is. */

enum {
    RUNS = 32,           /* of few points */
    MOST_NEAR = 200,     /* perplexity by Barnes and Hut: memory grows with it */
    MANY_ITERS = 100000, /* above, there is one run */
    DEFAULT_ITERS = 1000
};

static double default_perplexity(int64_t n) {
    const double third = (double)(n - 1) / 3;
    return fmax(1, fmin(n <= 60 ? 5 : 30, third));
}

static qkv_map_method method_of(const qkv_map_options *o, int64_t n) {
    if (o->method != QKV_MAP_AUTO) return o->method;
    return n <= QKV_MAP_MAX_EXACT_POINTS ? QKV_MAP_EXACT : QKV_MAP_BARNES_HUT;
}

qkv_status qkvi_map_check_options(const qkv_map_options *o, int64_t n, qkv_error *error) {
    if ((unsigned)o->metric > QKV_MAP_INNER)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "metric = %d is not in 0 ... 3",
                              (int)o->metric);
    if ((unsigned)o->init > QKV_MAP_INIT_RANDOM)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "init = %d is neither 0 nor 1",
                              (int)o->init);
    if (o->perplexity != 0 && !(o->perplexity >= 1 && o->perplexity < (double)n))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "perplexity = %g is not at least 1 and less than the %lld points",
                              o->perplexity, (long long)n);
    if ((unsigned)o->method > QKV_MAP_BARNES_HUT)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "method = %d is not in 0 ... 2",
                              (int)o->method);
    if (o->theta != 0 && !(o->theta > 0 && o->theta <= 1))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "theta = %g is not in 0 ... 1", o->theta);
    if (o->method == QKV_MAP_EXACT && n > QKV_MAP_MAX_EXACT_POINTS)
        return qkvi_error_set(error, QKV_ERR_LIMIT,
                              "n_queries + n_keys = %lld is above the limit of %d of the exact "
                              "method",
                              (long long)n, QKV_MAP_MAX_EXACT_POINTS);
    if (method_of(o, n) == QKV_MAP_BARNES_HUT && o->perplexity > MOST_NEAR)
        return qkvi_error_set(error, QKV_ERR_LIMIT,
                              "perplexity = %g is above the limit of %d of Barnes and Hut's method",
                              o->perplexity, MOST_NEAR);
    if (o->n_iters < 0)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "n_iters = %lld is negative",
                              (long long)o->n_iters);
    if (o->n_runs < 0 || o->n_runs > QKV_MAP_MAX_RUNS)
        return qkvi_error_set(error, o->n_runs < 0 ? QKV_ERR_ARGUMENT : QKV_ERR_LIMIT,
                              "n_runs = %lld is not in 0 ... %d", (long long)o->n_runs,
                              QKV_MAP_MAX_RUNS);
    if (o->balance != 0 && !(o->balance >= 1e-6 && o->balance <= 1e6))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "balance = %g is not in 1e-6 ... 1e6",
                              o->balance);
    if (o->balance != 0 && o->auto_balance)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "balance = %g together with auto_balance",
                              o->balance);
    for (int64_t i = 0; o->start && i < 2 * n; i++)
        if (!(fabs(o->start[i]) <= 1e6))
            return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                                  "start[%lld][%lld] = %g is not within 1e6", (long long)(i / 2),
                                  (long long)(i % 2), o->start[i]);
    return QKV_OK;
}

static qkv_status check_size(const char *name, int64_t size, int64_t least, int64_t most,
                             qkv_error *error) {
    if (size < least)
        return qkvi_error_set(error, QKV_ERR_SHAPE, "%s = %lld is less than %lld", name,
                              (long long)size, (long long)least);
    if (size > most)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "%s = %lld is above the limit of %lld", name,
                              (long long)size, (long long)most);
    return QKV_OK;
}

qkv_status qkvi_map_check_shape(int64_t n_queries, int64_t n_keys, int64_t head_dim,
                                qkv_error *error) {
    QKV_TRY(check_size("n_queries", n_queries, 0, QKV_MAP_MAX_POINTS, error));
    QKV_TRY(check_size("n_keys", n_keys, 0, QKV_MAP_MAX_POINTS, error));
    QKV_TRY(check_size("n_queries + n_keys", n_queries + n_keys, 1, QKV_MAP_MAX_POINTS, error));
    return check_size("head_dim", head_dim, 1, QKV_MAP_MAX_HEAD_DIM, error);
}

void qkvi_map_complete_options(qkv_map_options *o, int64_t n) {
    if (o->perplexity == 0) o->perplexity = default_perplexity(n);
    o->method = n < 2 ? QKV_MAP_EXACT : method_of(o, n);
    if (o->theta == 0) o->theta = 0.5;
    if (o->auto_balance) o->center_keys = 1;
    if (o->n_iters == 0) o->n_iters = DEFAULT_ITERS;
    if (o->n_runs == 0) o->n_runs = n <= QKVI_MAP_FEW_POINTS && o->n_iters <= MANY_ITERS ? RUNS : 1;
}

enum {
    BOUT_PAIRS = 1 << 23, /* pairs between two looks at the cancel flag: milliseconds */
    BOUT_ITERS = 50,
    PAIRS_OF_POINT = 500 /* by Barnes and Hut, about */
};

/* ---- Runs ------------------------------------------------------------------------------------ */

static void begin_run(const struct qkvi_map *map, int64_t index, qkvi_tsne_run *run) {
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

int qkvi_map_cancelled(const struct qkvi_map *map) {
    return map->call && qkvi_is_raised(map->call->cancel);
}

void qkvi_map_tell(const struct qkvi_map *map) {
    if (!map->call || !map->call->progress) return;
    int64_t done = 0;
    for (int64_t i = 0; i < map->n_begun; i++)
        done += map->runs[i].done ? map->options.n_iters : map->runs[i].n_iters;
    map->call->progress(map->call->progress_user, done, map->options.n_runs * map->options.n_iters);
}

/* A bout: some iterations of runs[first] and those after it, a task for each. */
struct bout {
    const struct qkvi_map *map;
    int64_t first, n_iters;
};

static void advance_one(void *argument, int index) {
    const struct bout *const bout = argument;
    qkvi_tsne_run_advance(&bout->map->tsne, NULL, bout->n_iters,
                          &bout->map->runs[bout->first + index]);
}

static int all_done(const struct qkvi_map *map, int64_t first, int64_t n) {
    for (int64_t i = first; i < first + n; i++)
        if (!map->runs[i].done) return 0;
    return 1;
}

static int64_t iters_of_bout(const struct qkvi_map *map) {
    if (map->options.method == QKV_MAP_BARNES_HUT)
        return qkvi_max_i64(1, BOUT_PAIRS / (map->n * PAIRS_OF_POINT));
    return qkvi_max_i64(1, BOUT_PAIRS / (map->n * map->n * BOUT_ITERS)) * BOUT_ITERS;
}

/* n runs side by side, or one, to their ends or until cancelled. */
static void make_runs(struct qkvi_map *map, int64_t first, int64_t n) {
    const int64_t iters = iters_of_bout(map);
    struct bout bout = { map, first, iters };
    while (!all_done(map, first, n) && !qkvi_map_cancelled(map)) {
        if (n > 1)
            qkvi_pool_run(map->pool, (int)n, advance_one, &bout);
        else
            qkvi_tsne_run_advance(&map->tsne, map->pool, iters, &map->runs[first]);
        qkvi_map_tell(map);
    }
}

qkv_status qkvi_map_descend(struct qkvi_map *map, qkv_error *error) {
    const int64_t n_runs = map->options.n_runs;
    const int64_t at_once =
        map->n <= QKVI_MAP_FEW_POINTS ? 4 * (int64_t)qkvi_pool_threads(map->pool) : 1;
    map->runs = qkvi_calloc_array((size_t)n_runs, sizeof *map->runs);
    if (!map->runs)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld runs", (long long)n_runs);
    for (int64_t first = 0; first < n_runs && !(first > 0 && qkvi_map_cancelled(map));
         first += at_once) {
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

static qkv_status find_median(const struct qkvi_map *map, double *median, qkv_error *error) {
    const int64_t n = map->n_begun;
    double *const kl = qkvi_malloc_array((size_t)n, sizeof *kl);
    if (!kl) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld KL", (long long)n);
    for (int64_t i = 0; i < n; i++) kl[i] = map->runs[i].kl;
    qsort(kl, (size_t)n, sizeof *kl, compare_numbers);
    *median = (kl[(n - 1) / 2] + kl[n / 2]) / 2;
    free(kl);
    return QKV_OK;
}

static void count_agreement(const struct qkvi_map *map, int32_t *agree) {
    if (map->n_begun == 1) { /* it agrees with itself */
        for (int64_t i = 0; i < map->n_queries; i++) agree[i] = map->n_keys > 0;
        return;
    }
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
qkv_status qkvi_map_keep_best(struct qkvi_map *map, int32_t *agree, qkv_map_report *report,
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
