/*
 * The map against scikit-learn's exact t-SNE, stage by stage, on one start (tools/tsne_cases.py,
 * which describes the file): conditional and joint affinities, KL and gradient at a given map, the
 * map after 1000 iterations. And against the values of a toy of six points, computed in double with
 * entropies within 1e-12.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attn/ctx.h"
#include "inspect/tsne.h"

enum { MAX_NUMBERS = 1 << 14 };

static double file[MAX_NUMBERS];
static int64_t n_read, n, dim;
static double perplexity;
static const double *x, *start, *y; /* [n][dim], [n][2] */
static qkv_ctx *ctx;

static const double *take(int64_t count) {
    static int64_t at;
    const double *const numbers = file + at;
    at += count;
    assert_true(at <= n_read);
    return numbers;
}

static int set_up(void **state) {
    (void)state;
    FILE *in = fopen(QKV_TEST_DATA "/golden/tsne_cases.bin", "rb");
    assert_non_null(in);
    n_read = (int64_t)fread(file, sizeof *file, MAX_NUMBERS, in);
    fclose(in);
    print_message("scikit-learn %g\n", take(1)[0] / 100);
    n = (int64_t)take(1)[0];
    dim = (int64_t)take(1)[0];
    perplexity = take(1)[0];
    x = take(n * dim);
    start = take(2 * n);
    y = take(2 * n);
    assert_int_equal(qkv_ctx_create(NULL, &ctx, NULL), QKV_OK);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    qkv_ctx_free(ctx);
    return 0;
}

static void make(qkv_map_metric metric, int64_t n_points, int64_t n_dim, const double *rows,
                 double perp, double tolerance, qkvi_points *points, qkvi_tsne *tsne) {
    qkv_map_options options = qkv_map_options_init();
    options.metric = metric;
    float *const floats = calloc((size_t)(n_points * n_dim), sizeof *floats);
    assert_non_null(floats);
    for (int64_t i = 0; i < n_points * n_dim; i++) floats[i] = (float)rows[i];
    assert_int_equal(
        qkvi_points_make(ctx->kernels, &options, n_points, 0, n_dim, floats, NULL, points, NULL),
        QKV_OK);
    for (int64_t i = 0; i < n_points * n_dim; i++) points->rows[i] = rows[i]; /* not rounded */
    free(floats);
    qkvi_points_finish(points);
    assert_int_equal(qkvi_tsne_make(points, ctx->pool, perp, tolerance, tsne, NULL), QKV_OK);
}

/* A run at a map [n][2]. */
static qkvi_tsne_run begin(const qkvi_tsne *tsne, const double *map) {
    qkvi_tsne_run run;
    assert_int_equal(qkvi_tsne_run_make(tsne, &run, NULL), QKV_OK);
    for (int64_t i = 0; i < tsne->n; i++)
        for (int c = 0; c < 2; c++) run.y[c][i] = map[2 * i + c];
    return run;
}

static void near(const char *what, int64_t at, double got, double wanted, double bound) {
    if (!(fabs(got - wanted) <= bound))
        fail_msg("%s[%lld] = %.12g, not %.12g within %g", what, (long long)at, got, wanted, bound);
}

static void check_affinities(const qkvi_points *points, const qkvi_tsne *tsne,
                             const double *conditional, const double *joint) {
    double d[32], p[32];
    for (int64_t i = 0; i < n; i++) {
        qkvi_points_distances(points, i, d);
        ctx->kernels->tsne->affinities(n, i, d, log(perplexity), 1e-10, p);
        for (int64_t j = 0; j < n; j++) {
            near("p_j|i", i * n + j, p[j], conditional[i * n + j], 1e-5);
            near("p_ij", i * n + j, tsne->p[i * tsne->room + j], joint[i * n + j], 1e-6);
        }
    }
}

static void check_gradient(const qkvi_tsne *tsne, double kl, const double *gradient) {
    qkvi_tsne_run run = begin(tsne, y);
    double ours[64];
    qkvi_tsne_run_measure(tsne, NULL, &run);
    qkvi_tsne_gradient(tsne, &run, 1, ours);
    near("kl", 0, run.kl, kl, 1e-5 * kl);
    for (int64_t i = 0; i < 2 * n; i++) near("gradient", i, ours[i], gradient[i], 1e-6);
    qkvi_tsne_run_free(&run);
}

/* 1 - the square of the correlation that two maps have after the best turn and scale. */
static double procrustes(const qkvi_tsne_run *run, const double *map) {
    double mean[4] = { 0 }, m[4] = { 0 }, a2 = 0, b2 = 0;
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < 2; c++) {
            mean[c] += run->y[c][i] / (double)n;
            mean[2 + c] += map[2 * i + c] / (double)n;
        }
    for (int64_t i = 0; i < n; i++) {
        const double a[2] = { run->y[0][i] - mean[0], run->y[1][i] - mean[1] };
        const double b[2] = { map[2 * i] - mean[2], map[2 * i + 1] - mean[3] };
        for (int c = 0; c < 4; c++) m[c] += a[c / 2] * b[c % 2];
        a2 += a[0] * a[0] + a[1] * a[1];
        b2 += b[0] * b[0] + b[1] * b[1];
    }
    /* the singular values of a 2 x 2 matrix: (s + t)^2 = |m|^2 + 2 |det m| */
    const double sum2 =
        m[0] * m[0] + m[1] * m[1] + m[2] * m[2] + m[3] * m[3] + 2 * fabs(m[0] * m[3] - m[1] * m[2]);
    return 1 - sum2 / (a2 * b2);
}

static void check_descent(qkvi_tsne *tsne, double rate, double kl, const double *map) {
    qkvi_tsne_run run = begin(tsne, start);
    tsne->rate = rate;
    tsne->n_iters = 1000;
    tsne->stop_early = 1;
    while (!run.done) qkvi_tsne_run_advance(tsne, NULL, 100, &run);
    qkvi_tsne_run_measure(tsne, NULL, &run);
    assert_int_equal(run.n_iters, 1000);
    near("kl after 1000 iterations", 0, run.kl, kl, 1e-3 * kl);
    assert_true(procrustes(&run, map) < 1e-2);
    print_message("KL %.9f, scikit-learn %.9f, procrustes %.2g\n", run.kl, kl,
                  procrustes(&run, map));
    qkvi_tsne_run_free(&run);
}

static void scikit_learn(void **state) {
    (void)state;
    static const qkv_map_metric metrics[] = { QKV_MAP_COSINE, QKV_MAP_EUCLIDEAN };
    for (int i = 0; i < 2; i++) {
        qkvi_points points;
        qkvi_tsne tsne;
        make(metrics[i], n, dim, x, perplexity, 1e-10, &points, &tsne);
        const double *const conditional = take(n * n), *const joint = take(n * n);
        check_affinities(&points, &tsne, conditional, joint);
        const double kl = take(1)[0];
        check_gradient(&tsne, kl, take(2 * n));
        const double *const end = take(2);
        check_descent(&tsne, end[0], end[1], take(2 * n));
        qkvi_tsne_free(&tsne);
        qkvi_points_free(&points);
    }
}

static void toy(void **state) {
    (void)state;
    static const struct {
        qkv_map_metric metric;
        double p01, p25, beta0, kl;
    } values[] = { { QKV_MAP_COSINE, 0.0138808206, 0.0371146607, 2.70816184, 0.8723208228 },
                   { QKV_MAP_COSINE_PLAIN, 0.0115905686, 0.0331759300, 2.95790983, 0.8990639925 } };
    double rows[6 * 4], map[6 * 2], d[8], p[8];
    for (int i = 0; i < 6; i++) {
        for (int k = 0; k < 4; k++) rows[4 * i + k] = sin(1.7 * i + 0.9 * k * k);
        map[2 * i] = cos(i);
        map[2 * i + 1] = sin(2 * i);
    }
    for (int m = 0; m < 2; m++) {
        qkvi_points points;
        qkvi_tsne tsne;
        make(values[m].metric, 6, 4, rows, 2, 1e-12, &points, &tsne);
        near("p_01", m, tsne.p[1], values[m].p01, 1e-10);
        near("p_25", m, tsne.p[2 * tsne.room + 5], values[m].p25, 1e-10);
        qkvi_points_distances(&points, 0, d);
        near("beta_0", m, ctx->kernels->tsne->affinities(6, 0, d, log(2), 1e-12, p),
             values[m].beta0, 1e-8);
        qkvi_tsne_run run = begin(&tsne, map);
        qkvi_tsne_run_measure(&tsne, NULL, &run);
        near("kl", m, run.kl, values[m].kl, 1e-9);
        qkvi_tsne_run_free(&run);
        qkvi_tsne_free(&tsne);
        qkvi_points_free(&points);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scikit_learn),
        cmocka_unit_test(toy),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
