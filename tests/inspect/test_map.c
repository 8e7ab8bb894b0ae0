/*
 * The map of queries and keys: gradient against differences of KL, P and KL as they must be, what a
 * turn of the inputs or another order of the points may change, few and equal points, what is
 * refused and with which words, and the same bits for any number of threads and instruction set.
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
#include "core/rng.h"
#include "inspect/tsne.h"
#include "map_points.h"

enum { DIM = 6, MAX_POINTS = 600 };

static uint64_t seed = 20260714;
static qkv_ctx *ctx;
static float q[MAX_POINTS * DIM], k[MAX_POINTS * DIM];
static double xy[2 * MAX_POINTS], pca[2 * MAX_POINTS], other[2 * MAX_POINTS];
static int32_t agree[MAX_POINTS];
static qkv_map_report report = { .struct_size = sizeof report };
static qkv_error error;

static int set_up(void **state) {
    (void)state;
    map_points_fill(seed, MAX_POINTS * DIM, q, k);
    return qkv_ctx_create(NULL, &ctx, NULL);
}

static int tear_down(void **state) {
    (void)state;
    qkv_ctx_free(ctx);
    return 0;
}

static qkv_map_options options_of(int64_t n_iters, int64_t n_runs) {
    qkv_map_options o = qkv_map_options_init();
    o.n_iters = n_iters;
    o.n_runs = n_runs;
    return o;
}

static qkv_status make(const qkv_map_options *o, int64_t n_queries, int64_t n_keys) {
    report = qkv_map_report_init();
    return qkv_inspect_map(ctx, o, n_queries, n_keys, DIM, q, k, xy, pca, agree, &report, NULL,
                           &error);
}

static void must(qkv_status status) {
    if (status != QKV_OK) fail_msg("%s", error.message);
}

/* ---- KL and gradient ------------------------------------------------------------------------- */

static void begin(int64_t n_queries, int64_t n_keys, double perplexity, qkvi_points *points,
                  qkvi_tsne *tsne, qkvi_tsne_run *run) {
    const qkv_map_options o = qkv_map_options_init();
    must(qkvi_points_make(ctx->kernels, &o, n_queries, n_keys, DIM, q, k, points, &error));
    qkvi_points_finish(points);
    must(qkvi_tsne_make(points, NULL, perplexity, 1e-10, tsne, &error));
    must(qkvi_tsne_run_make(tsne, run, &error));
    qkvi_rng rng = qkvi_rng_make(seed, 2, 0);
    for (int c = 0; c < 2; c++)
        for (int64_t i = 0; i < tsne->n; i++) run->y[c][i] = 3 * qkvi_rng_unit(&rng);
}

static void end(qkvi_points *points, qkvi_tsne *tsne, qkvi_tsne_run *run) {
    qkvi_tsne_run_free(run);
    qkvi_tsne_free(tsne);
    qkvi_points_free(points);
}

static void affinities_are_a_distribution(void **state) {
    (void)state;
    qkvi_points points;
    qkvi_tsne tsne;
    qkvi_tsne_run run;
    begin(20, 17, 7, &points, &tsne, &run);
    double sum = 0;
    for (int64_t i = 0; i < tsne.n; i++) {
        assert_true(tsne.p[i * tsne.room + i] == 0);
        for (int64_t j = 0; j < tsne.room; j++) {
            const double p = tsne.p[i * tsne.room + j];
            sum += p;
            if (j >= tsne.n) assert_true(p == 0);
            if (j < tsne.n) assert_true(p == tsne.p[j * tsne.room + i] && (i == j || p >= 0x1p-52));
        }
    }
    assert_true(fabs(sum - 1) < 1e-13 && fabs(tsne.sum_p - sum) < 1e-14);
    qkvi_tsne_run_measure(&tsne, NULL, &run);
    const double kl = run.kl;
    assert_true(kl > 0);
    for (int64_t i = 0; i < tsne.n; i++) { /* turned and moved */
        const double x = run.y[0][i], y = run.y[1][i];
        run.y[0][i] = 0.6 * x - 0.8 * y + 5;
        run.y[1][i] = 0.8 * x + 0.6 * y - 7;
    }
    qkvi_tsne_run_measure(&tsne, NULL, &run);
    assert_true(fabs(run.kl - kl) < 1e-12);
    /* p = q by construction */
    double all = 0;
    for (int64_t i = 0; i < tsne.n; i++) all += run.force[i].sum_w;
    tsne.p_log_p = tsne.sum_p = 0;
    for (int64_t i = 0; i < tsne.n; i++) {
        for (int64_t j = 0; j < tsne.n; j++) {
            const double dx = run.y[0][i] - run.y[0][j], dy = run.y[1][i] - run.y[1][j];
            const double p = i == j ? 0 : 1 / (1 + dx * dx + dy * dy) / all;
            tsne.p[i * tsne.room + j] = p;
            tsne.sum_p += p;
            if (p > 0) tsne.p_log_p += p * log(p);
        }
    }
    qkvi_tsne_run_measure(&tsne, NULL, &run);
    assert_true(fabs(run.kl) < 1e-13);
    end(&points, &tsne, &run);
}

static void gradient_is_that_of_kl(void **state) {
    (void)state;
    qkvi_points points;
    qkvi_tsne tsne;
    qkvi_tsne_run run;
    double gradient[2 * 40];
    begin(11, 10, 4, &points, &tsne, &run);
    qkvi_tsne_run_measure(&tsne, NULL, &run);
    qkvi_tsne_gradient(&tsne, &run, 1, gradient);
    for (int64_t i = 0; i < 2 * tsne.n; i++) {
        double *const at = &run.y[i % 2][i / 2], was = *at, step = 1e-4;
        *at = was + step;
        qkvi_tsne_run_measure(&tsne, NULL, &run);
        const double above = run.kl;
        *at = was - step;
        qkvi_tsne_run_measure(&tsne, NULL, &run);
        const double slope = (above - run.kl) / (2 * step);
        *at = was;
        if (!(fabs(slope - gradient[i]) < 1e-8))
            fail_msg("gradient %lld: %.10g, KL says %.10g", (long long)i, gradient[i], slope);
    }
    end(&points, &tsne, &run);
}

/*
 * In the second phase, the mean of 50 iterations is below that of the 50 before, if steps are short
 * enough not to swing.
 */
static void kl_falls(void **state) {
    (void)state;
    qkvi_points points;
    qkvi_tsne tsne;
    qkvi_tsne_run run;
    begin(60, 60, 10, &points, &tsne, &run);
    tsne.n_iters = 1000;
    tsne.rate = 10;
    qkvi_tsne_run_advance(&tsne, NULL, 300, &run);
    double before = INFINITY;
    for (int block = 0; block < 8; block++) {
        double mean = 0;
        for (int i = 0; i < 50; i++) {
            qkvi_tsne_run_advance(&tsne, NULL, 1, &run);
            qkvi_tsne_run_measure(&tsne, NULL, &run);
            mean += run.kl / 50;
        }
        if (!(mean < before + 1e-9)) fail_msg("block %d: %.9g after %.9g", block, mean, before);
        before = mean;
    }
    end(&points, &tsne, &run);
}

/* ---- Distances ------------------------------------------------------------------------------- */

static void distances(qkv_map_metric metric, int64_t n_queries, int64_t n_keys, double balance,
                      double *d) {
    qkv_map_options o = qkv_map_options_init();
    qkvi_points points;
    o.metric = metric;
    o.balance = balance;
    must(qkvi_points_make(ctx->kernels, &o, n_queries, n_keys, DIM, q, k, &points, &error));
    qkvi_points_finish(&points);
    for (int64_t i = 0; i < points.n; i++) qkvi_points_distances(&points, i, d + i * points.room);
    qkvi_points_free(&points);
}

static double dot(const float *a, const float *b) {
    double sum = 0;
    for (int c = 0; c < DIM; c++) sum += (double)a[c] * (double)b[c];
    return sum;
}

static void metrics(void **state) {
    (void)state;
    enum { N = 10, ROOM = 24 }; /* 20 points */
    static double d[3][2 * N * ROOM];
    for (int metric = 0; metric < 3; metric++)
        distances((qkv_map_metric)metric, N, N, 0, d[metric]);
    for (int i = 0; i < 2 * N; i++) {
        const float *const a = i < N ? q + i * DIM : k + (i - N) * DIM;
        for (int j = 0; j < 2 * N; j++) {
            const float *const b = j < N ? q + j * DIM : k + (j - N) * DIM;
            const double cosine = i == j ? 1 : dot(a, b) / sqrt(dot(a, a) * dot(b, b));
            const double apart[3] = { (1 - cosine) * (1 - cosine), 1 - cosine,
                                      dot(a, a) + dot(b, b) - 2 * dot(a, b) };
            for (int m = 0; m < 3; m++)
                if (!(fabs(d[m][i * ROOM + j] - apart[m]) < 1e-12))
                    fail_msg("metric %d, D[%d][%d] = %.15g, not %.15g", m, i, j, d[m][i * ROOM + j],
                             apart[m]);
        }
    }
}

/* A nearer key never has a smaller score, exactly; the rest is a distance in one more dimension. */
static void inner_orders_keys_by_score(void **state) {
    (void)state;
    enum { N = 40, ROOM = 80 };
    static double d[2 * N * ROOM];
    distances(QKV_MAP_INNER, N, N, 0, d);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (int l = 0; l < N; l++)
                if (d[i * ROOM + N + j] < d[i * ROOM + N + l])
                    assert_true(dot(q + i * DIM, k + j * DIM) > dot(q + i * DIM, k + l * DIM));
    for (int i = 0; i < 2 * N; i++)
        for (int j = 0; j < 2 * N; j++)
            assert_true(fabs(d[i * ROOM + j] - d[j * ROOM + i]) < 1e-12 && d[i * ROOM + j] >= 0);
}

/* Scores move by one number for a query (center_keys) or not at all (balance). */
static void scores_keep_their_order(void **state) {
    (void)state;
    enum { N = 12 };
    qkv_map_options o = qkv_map_options_init();
    qkvi_points points;
    o.metric = QKV_MAP_EUCLIDEAN;
    o.center_keys = 1;
    o.balance = 2.5;
    must(qkvi_points_make(ctx->kernels, &o, N, N, DIM, q, k, &points, &error));
    for (int i = 0; i < N; i++) {
        double moved = NAN;
        for (int j = 0; j < N; j++) {
            double score = 0;
            for (int c = 0; c < DIM; c++)
                score += points.rows[i * DIM + c] * points.rows[(N + j) * DIM + c];
            score -= dot(q + i * DIM, k + j * DIM);
            if (j == 0) moved = score;
            assert_true(fabs(score - moved) < 1e-12);
        }
    }
    qkvi_points_free(&points);
}

/* ---- Balance --------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/*
 * The correlation of q.k and 1 - cos for q c and k / c + shift, near pairs weighted, from the
 * words.
 */
static double follows(int n_queries, int n_keys, double scale) {
    static double d[40 * 40], sorted[40 * 40], score[40 * 40];
    double shift[DIM] = { 0 };
    for (int c = 0; c < DIM; c++) {
        for (int i = 0; i < n_queries; i++) shift[c] += scale * (double)q[i * DIM + c] / n_queries;
        for (int j = 0; j < n_keys; j++) shift[c] -= (double)k[j * DIM + c] / scale / n_keys;
    }
    const int n = n_queries * n_keys;
    for (int p = 0; p < n; p++) {
        double both = 0, q2 = 0, k2 = 0;
        score[p] = 0;
        for (int c = 0; c < DIM; c++) {
            const double a = (double)q[p / n_keys * DIM + c], b = (double)k[p % n_keys * DIM + c];
            const double x = a * scale, y = b / scale + shift[c];
            both += x * y, q2 += x * x, k2 += y * y;
            score[p] += a * b;
        }
        d[p] = sorted[p] = 1 - both / sqrt(q2 * k2);
    }
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    const double t = sorted[n < 30 ? n - 1 : 29]; /* 0.5 % are fewer */
    double w = 0, a = 0, b = 0, ab = 0, aa = 0, bb = 0;
    for (int p = 0; p < n; p++) {
        const double near = d[p] < t ? (t - d[p]) * (t - d[p]) : 0;
        w += near, a += near * score[p], b += near * d[p];
        ab += near * score[p] * d[p], aa += near * score[p] * score[p], bb += near * d[p] * d[p];
    }
    return (ab - a * b / w) / sqrt((aa - a * a / w) * (bb - b * b / w));
}

static void balance_is_the_best_of_seven(void **state) {
    (void)state;
    static const double scales[] = { 0.2, 0.4, 0.8, 1, 1.25, 2.5, 5 };
    qkv_map_options o = options_of(1, 1);
    float kept[2][40 * DIM];
    memcpy(kept[0], q, sizeof kept[0]);
    memcpy(kept[1], k, sizeof kept[1]);
    o.metric = QKV_MAP_COSINE_PLAIN;
    o.auto_balance = 1;
    int chosen[7] = { 0 };
    for (int round = 0; round < 12; round++) {
        const int n_queries = 5 + 3 * round, n_keys = 40 - 2 * round;
        const double lean = ldexp(1, round - 6);
        for (int i = 0; i < 40 * DIM; i++) {
            q[i] = (float)(lean * (double)kept[0][i]);
            k[i] = (float)((double)kept[1][i] / lean);
        }
        must(make(&o, n_queries, n_keys));
        int best = 3;
        for (int c = 0; c < 7; c++)
            if (follows(n_queries, n_keys, scales[c]) <
                follows(n_queries, n_keys, scales[best]) - 1e-12)
                best = c;
        if (report.balance != scales[best])
            fail_msg("round %d: %g (%.9g), not %g (%.9g)", round, report.balance,
                     follows(n_queries, n_keys, report.balance), scales[best],
                     follows(n_queries, n_keys, scales[best]));
        chosen[best]++;
        memcpy(other, xy, sizeof other); /* the same map as with that number */
        qkv_map_options by_hand = options_of(1, 1);
        by_hand.metric = o.metric;
        by_hand.balance = scales[best];
        by_hand.center_keys = 1;
        must(make(&by_hand, n_queries, n_keys));
        assert_memory_equal(xy, other, (size_t)(2 * (n_queries + n_keys)) * sizeof *xy);
    }
    assert_true(chosen[0] > 0 && chosen[6] > 0); /* it follows the lean */
    memcpy(q, kept[0], sizeof kept[0]);
    memcpy(k, kept[1], sizeof kept[1]);
    must(make(&o, 5, 0));
    assert_true(report.balance == 1);
}

/* ---- Invariances ----------------------------------------------------------------------------- */

static void turned_inputs_have_the_same_kl(void **state) {
    (void)state;
    enum { N = 15 };
    const qkv_map_options o = options_of(1000, 8);
    float kept[2][N * DIM];
    must(make(&o, N, N));
    const double kl = report.kl, trust = report.trust, recall = report.recall;
    memcpy(kept[0], q, sizeof kept[0]);
    memcpy(kept[1], k, sizeof kept[1]);
    for (int i = 0; i < N; i++) { /* channels change places, and signs: exact */
        for (int c = 0; c < DIM; c++) {
            q[i * DIM + c] = (c % 2 ? -1.0f : 1.0f) * kept[0][i * DIM + (c + 2) % DIM];
            k[i * DIM + c] = (c % 2 ? -1.0f : 1.0f) * kept[1][i * DIM + (c + 2) % DIM];
        }
    }
    must(make(&o, N, N));
    memcpy(q, kept[0], sizeof kept[0]);
    memcpy(k, kept[1], sizeof kept[1]);
    /*
     * sums over channels are rounded otherwise, so runs may end elsewhere: random starts are the
     * same
     */
    assert_true(fabs(report.kl - kl) < 0.05 * kl);
    assert_true(fabs(report.trust - trust) < 0.1 && fabs(report.recall - recall) < 0.3);
}

/* Another order of points: the same conditional and joint affinities, and the same KL of a map. */
static void order_of_points_is_free(void **state) {
    (void)state;
    qkvi_points a, b;
    qkvi_tsne tsne_a, tsne_b;
    qkvi_tsne_run run_a, run_b;
    enum { N = 23 };
    float kept[N * DIM];
    begin(N, 0, 5, &a, &tsne_a, &run_a);
    memcpy(kept, q, sizeof kept);
    for (int i = 0; i < N; i++) memcpy(q + i * DIM, kept + (i * 5 % N) * DIM, DIM * sizeof *q);
    begin(N, 0, 5, &b, &tsne_b, &run_b);
    memcpy(q, kept, sizeof kept);
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++)
            assert_true(fabs(tsne_b.p[i * tsne_b.room + j] -
                             tsne_a.p[(i * 5 % N) * tsne_a.room + j * 5 % N]) < 1e-15);
        for (int c = 0; c < 2; c++) run_b.y[c][i] = run_a.y[c][i * 5 % N];
    }
    qkvi_tsne_run_measure(&tsne_a, NULL, &run_a);
    qkvi_tsne_run_measure(&tsne_b, NULL, &run_b);
    assert_true(fabs(run_a.kl - run_b.kl) < 1e-13);
    end(&a, &tsne_a, &run_a);
    end(&b, &tsne_b, &run_b);
}

static void same_bits(void **state) {
    (void)state;
    static const struct {
        int64_t n_queries, n_keys, n_iters, n_runs;
    } cases[] = { { 11, 11, 400, 9 }, { 300, 290, 60, 2 } };
    for (int i = 0; i < 2; i++) {
        const qkv_map_options o = options_of(cases[i].n_iters, cases[i].n_runs);
        const int64_t n = cases[i].n_queries + cases[i].n_keys;
        qkv_map_report first = qkv_map_report_init();
        must(make(&o, cases[i].n_queries, cases[i].n_keys));
        memcpy(other, xy, sizeof other);
        first = report;
        assert_true(report.kl <= report.median_kl);
        for (int isa = 0; qkv_isa_name(isa); isa++) {
            for (int threads = 1; threads <= 8; threads += i ? 3 : 1) {
                qkv_ctx_options context = qkv_ctx_options_init();
                qkv_ctx *const kept = ctx;
                context.n_threads = threads;
                context.isa = qkv_isa_name(isa);
                must(qkv_ctx_create(&context, &ctx, &error));
                must(make(&o, cases[i].n_queries, cases[i].n_keys));
                if (memcmp(xy, other, (size_t)(2 * n) * sizeof *xy) != 0 ||
                    memcmp(&report, &first, sizeof report) != 0)
                    fail_msg("%s, %d threads: other bits", context.isa, threads);
                qkv_ctx_free(ctx);
                ctx = kept;
            }
        }
    }
}

/* ---- Few points, equal points ---------------------------------------------------------------- */

static void all_finite(int64_t n) {
    for (int64_t i = 0; i < 2 * n; i++) assert_true(isfinite(xy[i]) && isfinite(pca[i]));
    assert_true(isfinite(report.kl) && report.kl > -1e-12);
}

static void few_points(void **state) {
    (void)state;
    const qkv_map_options o = options_of(0, 0);
    for (int64_t n_queries = 0; n_queries <= 5; n_queries++) {
        for (int64_t n_keys = n_queries == 0; n_keys <= 5; n_keys++) {
            must(make(&o, n_queries, n_keys));
            all_finite(n_queries + n_keys);
            assert_int_equal(report.n_runs, 32);
            assert_true(isnan(report.trust) == (n_queries + n_keys < 3));
            assert_true(isnan(report.recall) == (n_queries == 0 || n_keys == 0));
        }
    }
    must(make(&o, 1, 0));
    assert_true(xy[0] == 0 && xy[1] == 0 && report.kl == 0);
    must(make(&o, 1, 1));
    assert_true(fabs(report.kl) < 1e-12 && report.recall == 1 && agree[0] == 32);
}

static void equal_points(void **state) {
    (void)state;
    const qkv_map_options o = options_of(500, 4);
    float kept[2][12 * DIM];
    memcpy(kept[0], q, sizeof kept[0]);
    memcpy(kept[1], k, sizeof kept[1]);
    for (int i = 0; i < 12 * DIM; i++) q[i] = k[i] = (float)(1 + i % DIM);
    for (int metric = 0; metric < 4; metric++) {
        qkv_map_options with = o;
        with.metric = (qkv_map_metric)metric;
        must(make(&with, 12, 12));
        all_finite(24);
        assert_true(report.explained[0] == 0 && report.n_zero == 0);
        assert_true(fabs(report.kl) < 1e-6); /* an even P, and all points at one place */
    }
    memset(k, 0, 12 * DIM * sizeof *k); /* no direction */
    must(make(&o, 12, 12));
    all_finite(24);
    assert_int_equal(report.n_zero, 12);
    for (int i = 0; i < 12 * DIM; i++) q[i] = (float)(i / DIM); /* on a line: it is left */
    must(make(&o, 12, 0));
    all_finite(12);
    memcpy(q, kept[0], sizeof kept[0]);
    memcpy(k, kept[1], sizeof kept[1]);
    memcpy(q + DIM, q, DIM * sizeof *q); /* one point twice */
    must(make(&o, 12, 12));
    all_finite(24);
    memcpy(q, kept[0], sizeof kept[0]);
}

static void components_are_principal(void **state) {
    (void)state;
    qkv_map_options o = options_of(1, 1);
    o.pca_only = 1;
    must(make(&o, 50, 50));
    assert_memory_equal(xy, pca, 200 * sizeof *xy);
    assert_true(isnan(report.kl) && report.explained[0] >= report.explained[1]);
    double sums[3] = { 0 }, variance = 0, mean[DIM] = { 0 };
    for (int i = 0; i < 100; i++)
        for (int c = 0; c < DIM; c++)
            mean[c] += (double)(i < 50 ? q[i * DIM + c] : k[(i - 50) * DIM + c]) / 100;
    for (int i = 0; i < 100; i++) {
        for (int c = 0; c < DIM; c++) {
            const double x = (double)(i < 50 ? q[i * DIM + c] : k[(i - 50) * DIM + c]) - mean[c];
            variance += x * x;
        }
        sums[0] += pca[2 * i] * pca[2 * i];
        sums[1] += pca[2 * i + 1] * pca[2 * i + 1];
        sums[2] += pca[2 * i] * pca[2 * i + 1];
    }
    assert_true(fabs(sums[0] / variance - report.explained[0]) < 1e-12);
    assert_true(fabs(sums[1] / variance - report.explained[1]) < 1e-12);
    assert_true(fabs(sums[2]) < 1e-9 * variance); /* uncorrelated */
}

/* ---- Refusals, cancelling -------------------------------------------------------------------- */

static void refused(qkv_status got, qkv_status wanted, const char *words) {
    if (got != wanted || !strstr(error.message, words))
        fail_msg("%s: '%s', not '%s'", qkv_status_name(got), error.message, words);
}

static void refusals(void **state) {
    (void)state;
    qkv_map_options o = options_of(10, 1);
    float *const was = &q[3 * DIM + 5], kept = *was;
    *was = NAN;
    refused(make(&o, 11, 11), QKV_ERR_ARGUMENT, "q[3][5] = nan is not finite");
    *was = kept;
    k[1] = INFINITY;
    refused(make(&o, 11, 11), QKV_ERR_ARGUMENT, "k[0][1] = inf is not finite");
    k[1] = 0.5f;
    o.perplexity = 22;
    refused(make(&o, 11, 11), QKV_ERR_ARGUMENT,
            "perplexity = 22 is not at least 1 and less than the 22 points");
    o.perplexity = NAN;
    refused(make(&o, 11, 11), QKV_ERR_ARGUMENT, "perplexity = nan");
    o.perplexity = 0.5;
    refused(make(&o, 11, 11), QKV_ERR_ARGUMENT, "perplexity = 0.5");
    o.perplexity = 0;
    o.metric = (qkv_map_metric)4;
    refused(make(&o, 11, 11), QKV_ERR_ARGUMENT, "metric = 4");
    o.metric = QKV_MAP_COSINE;
    o.n_iters = -1;
    refused(make(&o, 11, 11), QKV_ERR_ARGUMENT, "n_iters = -1");
    o.n_iters = 1;
    o.n_runs = QKV_MAP_MAX_RUNS + 1;
    refused(make(&o, 11, 11), QKV_ERR_LIMIT, "n_runs = 10001");
    o.n_runs = 1;
    o.balance = INFINITY;
    refused(make(&o, 11, 11), QKV_ERR_ARGUMENT, "balance = inf");
    o.balance = 2;
    o.auto_balance = 1;
    refused(make(&o, 11, 11), QKV_ERR_ARGUMENT, "balance = 2 together with auto_balance");
    o.auto_balance = 0;
    o.balance = 0;
    refused(make(&o, 0, 0), QKV_ERR_SHAPE, "n_queries + n_keys = 0");
    refused(make(&o, -1, 3), QKV_ERR_SHAPE, "n_queries = -1");
    refused(make(&o, 2, INT64_MAX), QKV_ERR_LIMIT, "n_keys = 9223372036854775807");
    refused(make(&o, 65000, 537), QKV_ERR_LIMIT,
            "n_queries + n_keys = 65537 is above the limit of 65536");
    other[5] = NAN;
    o.start = other;
    refused(make(&o, 11, 11), QKV_ERR_ARGUMENT, "start[2][1] = nan");
    o.start = NULL;
    refused(qkv_inspect_map(ctx, &o, 1, 1, 513, q, k, xy, NULL, NULL, NULL, NULL, &error),
            QKV_ERR_LIMIT, "head_dim = 513");
    refused(qkv_inspect_map(ctx, &o, 1, 1, DIM, NULL, k, xy, NULL, NULL, NULL, NULL, &error),
            QKV_ERR_ARGUMENT, "q is NULL");
    refused(qkv_inspect_map(NULL, &o, 1, 1, DIM, q, k, xy, NULL, NULL, NULL, NULL, &error),
            QKV_ERR_ARGUMENT, "ctx is NULL");
    o.struct_size = 3;
    refused(make(&o, 11, 11), QKV_ERR_ARGUMENT, "qkv_map_options.struct_size = 3");
}

/* A start is where the first run begins; a run of one iteration ends one step from it. */
static void starts(void **state) {
    (void)state;
    qkv_map_options o = options_of(1, 1);
    for (int i = 0; i < 44; i++) other[i] = i % 7 + 0.125 * i;
    o.start = other;
    must(make(&o, 11, 11));
    double moved = 0;
    for (int i = 0; i < 44; i++) moved = fmax(moved, fabs(xy[i] - other[i]));
    assert_true(moved > 0 && moved < 50 * 4 * 12);
    assert_int_equal(report.n_iters, 1);
}

static int cancel_after, told;
static int cancel;
static void tell(void *user, int64_t done, int64_t total) {
    (void)user;
    assert_true(done >= 0 && done <= total);
    if (++told == cancel_after) __atomic_store_n(&cancel, 1, __ATOMIC_RELAXED);
}

static void cancelled_maps_are_whole(void **state) {
    (void)state;
    const qkv_map_options o = options_of(100000000, 3);
    qkv_call_options call = qkv_call_options_init();
    call.cancel = &cancel;
    call.progress = tell;
    for (cancel_after = 1; cancel_after <= 3; cancel_after++) {
        qkv_map_options with = o;
        with.no_early_stop = 1;
        cancel = told = 0;
        report = qkv_map_report_init();
        refused(qkv_inspect_map(ctx, &with, 200, 200, DIM, q, k, xy, pca, agree, &report, &call,
                                &error),
                QKV_ERR_CANCELLED, "cancelled after");
        all_finite(400);
        assert_true(report.n_iters > 0 && report.n_runs == 3 && report.trust > 0);
    }
    cancel = 1; /* from the beginning: the starts themselves */
    assert_int_equal(
        qkv_inspect_map(ctx, &o, 20, 20, DIM, q, k, xy, pca, agree, &report, &call, &error),
        QKV_ERR_CANCELLED);
    all_finite(40);
}

int main(int argc, char **argv) {
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(affinities_are_a_distribution),
        cmocka_unit_test(gradient_is_that_of_kl),
        cmocka_unit_test(kl_falls),
        cmocka_unit_test(metrics),
        cmocka_unit_test(inner_orders_keys_by_score),
        cmocka_unit_test(scores_keep_their_order),
        cmocka_unit_test(balance_is_the_best_of_seven),
        cmocka_unit_test(turned_inputs_have_the_same_kl),
        cmocka_unit_test(order_of_points_is_free),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(few_points),
        cmocka_unit_test(equal_points),
        cmocka_unit_test(components_are_principal),
        cmocka_unit_test(refusals),
        cmocka_unit_test(starts),
        cmocka_unit_test(cancelled_maps_are_whole),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
