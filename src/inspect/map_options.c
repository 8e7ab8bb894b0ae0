/** Options of a map: what may be asked for, and what is meant where nothing is. */
#include "inspect/map.h"

#include <math.h>

#include "model/base.h"

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
