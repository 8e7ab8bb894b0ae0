/*
 * Maps of many points: the nearest and their affinities against a search by hand, the tree's own
 * rules, forces by groups against those over all pairs, places that are equal, in a line, far or no
 * numbers, and whole maps: the same bits for any number of threads and instruction set, limits,
 * cancelling.
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
#include "sanitizers.h"

enum { DIM = 5, N = 700, LARGE = 4200 };

static uint64_t seed = 20261122;
static qkv_ctx *ctx;
static float q[LARGE * DIM], k[LARGE * DIM];
static double x[LARGE], y[LARGE], xy[4 * LARGE], other[4 * LARGE];
static qkv_map_report report = { .struct_size = sizeof report };
static qkv_error error;

static int set_up(void **state) {
    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    map_points_fill(seed, LARGE * DIM, q, k);
    return qkv_ctx_create(NULL, &ctx, NULL);
}

static int tear_down(void **state) {
    (void)state;
    qkv_ctx_free(ctx);
    return 0;
}

static void must(qkv_status status) {
    if (status != QKV_OK) fail_msg("%s", error.message);
}

/* ---- The nearest ----------------------------------------------------------------------------- */

struct pair {
    double d;
    int64_t j;
};

static int by_distance(const void *a, const void *b) {
    const struct pair *const s = a, *const t = b;
    return s->d != t->d ? (s->d > t->d) - (s->d < t->d) : (s->j > t->j) - (s->j < t->j);
}

/* Row i of conditional affinities to the k nearest, in double, by libm: p [n], 0 elsewhere. */
static void conditional_row(const qkvi_points *points, int64_t i, int64_t n_near, double perplexity,
                            double *p) {
    struct pair pairs[140];
    double d[144];
    int64_t n = 0;
    qkvi_points_distances(points, i, d);
    for (int64_t j = 0; j < points->n; j++)
        if (j != i) pairs[n++] = (struct pair){ d[j], j };
    qsort(pairs, (size_t)n, sizeof *pairs, by_distance);
    double low = 0, high = INFINITY, beta = 1, sum = 0;
    for (int step = 0; step < 300; step++) {
        double heat = 0;
        sum = 0;
        for (int64_t l = 0; l < n_near; l++) {
            const double above = pairs[l].d - pairs[0].d, e = exp(-beta * above);
            sum += e;
            heat += e * above;
        }
        if (log(sum) + beta * heat / sum > log(perplexity))
            low = beta;
        else
            high = beta;
        beta = isfinite(high) ? (low + high) / 2 : 2 * beta;
    }
    for (int64_t j = 0; j < points->n; j++) p[j] = 0;
    for (int64_t l = 0; l < n_near; l++)
        p[pairs[l].j] = exp(-beta * (pairs[l].d - pairs[0].d)) / sum;
}

static void begin_points(qkv_map_metric metric, int64_t n_queries, int64_t n_keys,
                         qkvi_points *points) {
    qkv_map_options o = qkv_map_options_init();
    o.metric = metric;
    must(qkvi_points_make(ctx->kernels, &o, n_queries, n_keys, DIM, q, k, points, &error));
    qkvi_points_finish(points);
}

/* Blocks, tiles and eights that are whole and that are not; each point alone as the reference. */
static void affinities_of_the_nearest(void **state) {
    (void)state;
    static const int64_t counts[][2] = { { 64, 64 }, { 50, 83 }, { 0, 20 }, { 130, 1 }, { 4, 0 } };
    static double reference[140][140];
    for (int round = 0; round < 20; round++) {
        const int64_t n_queries = counts[round / 4][0], n_keys = counts[round / 4][1];
        const int64_t n = n_queries + n_keys;
        const double perplexity = n < 5 ? 1.5 : 4.4;
        const int64_t n_near = n < 5 ? n - 1 : 14;
        qkvi_points points;
        qkvi_tsne tsne;
        begin_points((qkv_map_metric)(round % 4), n_queries, n_keys, &points);
        must(qkvi_tsne_make_sparse(&points, ctx->pool, perplexity, 1e-12, NULL, &tsne, &error));
        for (int64_t i = 0; i < n; i++)
            conditional_row(&points, i, n_near, perplexity, reference[i]);
        double sum = 0;
        for (int64_t i = 0; i < n; i++) {
            int64_t l = tsne.sparse.start[i];
            const int64_t end = tsne.sparse.start[i + 1];
            assert_true(l % 8 == 0 && end % 8 == 0);
            for (int64_t j = 0; j < n; j++) {
                const double wanted = (reference[i][j] + reference[j][i]) / (2 * (double)n);
                if (wanted == 0) continue;
                assert_true(l < end && tsne.sparse.to[l] == j); /* ascending, none left out */
                if (!(fabs(tsne.sparse.p[l] - wanted) <= 1e-11 * wanted + 1e-13))
                    fail_msg("round %d, p[%lld][%lld] = %.15g, not %.15g", round, (long long)i,
                             (long long)j, tsne.sparse.p[l], wanted);
                sum += tsne.sparse.p[l++];
            }
            for (; l < end; l++) assert_true(tsne.sparse.p[l] == 0 && tsne.sparse.to[l] == i);
        }
        assert_true(fabs(sum - 1) < 1e-12 && fabs(tsne.sum_p - sum) < 1e-14);
        qkvi_tsne_free(&tsne);
        qkvi_points_free(&points);
    }
}

/* If all are near, affinities, KL and forces are those of all pairs. */
static void all_near(void **state) {
    (void)state;
    enum { FEW = 90 };
    qkvi_points points;
    qkvi_tsne dense, sparse;
    qkvi_tsne_run by_pairs, by_tree;
    double gradients[2][2 * FEW];
    begin_points(QKV_MAP_EUCLIDEAN, FEW / 2, FEW / 2, &points);
    must(qkvi_tsne_make(&points, NULL, 30, 1e-10, &dense, &error));
    must(qkvi_tsne_make_sparse(&points, NULL, 30, 1e-10, NULL, &sparse, &error));
    must(qkvi_tsne_run_make(&dense, &by_pairs, &error));
    must(qkvi_tsne_run_make(&sparse, &by_tree, &error));
    qkvi_rng rng = qkvi_rng_make(seed, 2, 0);
    for (int64_t i = 0; i < FEW; i++)
        for (int c = 0; c < 2; c++)
            by_pairs.y[c][i] = by_tree.y[c][i] = 9 * (double)qkvi_rng_unit(&rng);
    sparse.theta = 1e-9;
    qkvi_tsne_run_forces(&dense, NULL, &by_pairs);
    qkvi_tsne_run_forces(&sparse, NULL, &by_tree);
    qkvi_tsne_gradient(&dense, &by_pairs, 12, gradients[0]);
    qkvi_tsne_gradient(&sparse, &by_tree, 12, gradients[1]);
    for (int64_t i = 0; i < 2 * FEW; i++)
        assert_true(fabs(gradients[0][i] - gradients[1][i]) < 1e-13);
    const double kl = qkvi_tsne_run_kl(&sparse, NULL, &by_tree);
    assert_true(fabs(qkvi_tsne_run_kl(&dense, NULL, &by_pairs) - kl) < 1e-12);
    qkvi_tsne_run_measure(&sparse, NULL, &by_tree);
    assert_true(fabs(by_tree.kl - kl) < 1e-12);
    qkvi_tsne_run_free(&by_pairs);
    qkvi_tsne_run_free(&by_tree);
    qkvi_tsne_free(&dense);
    qkvi_tsne_free(&sparse);
    qkvi_points_free(&points);
}

/* ---- The tree -------------------------------------------------------------------------------- */

enum { PLACES = 9 };

/* Places of N points, of many kinds. */
static void put(int kind) {
    qkvi_rng rng = qkvi_rng_make(seed, 3, (uint64_t)kind);
    for (int i = 0; i < N; i++) {
        const double u = (double)qkvi_rng_unit(&rng), v = (double)qkvi_rng_unit(&rng);
        const double scale[PLACES] = { 1, 1e-4, 1e6, 1, 1, 0, 1, 1e-160, 1 };
        x[i] = scale[kind] * u;
        y[i] = scale[kind] * v;
        if (kind == 3) x[i] = -2;                  /* a line */
        if (kind == 4) x[i] = i % 7, y[i] = i % 5; /* 35 places, 20 points each */
        if (kind == 6) x[i] = i % 2 ? u * 1e-9 : 1, y[i] = i % 2 ? v * 1e-9 : i; /* tiny cells */
        if (kind == 8) x[i] = ldexp(1, -i % 60), y[i] = -x[i]; /* a point in each level */
    }
}

/* Of a node and those below it: the point after its last one, and how many nodes. */
static void check_node(const qkvi_tsne_tree *tree, int64_t at, double side2, double open2) {
    const qkvi_tsne_node *const node = tree->nodes + at;
    double mean[2] = { 0 }, low[2] = { INFINITY, INFINITY }, high[2] = { -INFINITY, -INFINITY };
    assert_true(node->first < node->end && node->n == node->end - node->first);
    for (int64_t i = node->first; i < node->end; i++) {
        const double place[2] = { tree->x[i], tree->y[i] };
        for (int c = 0; c < 2; c++) {
            mean[c] += place[c] / node->n;
            low[c] = fmin(low[c], place[c]);
            high[c] = fmax(high[c], place[c]);
        }
    }
    assert_true(fabs(mean[0] - node->x) <= 1e-12 * (fabs(low[0]) + fabs(high[0])));
    assert_true(fabs(mean[1] - node->y) <= 1e-12 * (fabs(low[1]) + fabs(high[1])));
    const double span = fmax(high[0] - low[0], high[1] - low[1]);
    assert_true(node->near2 <= side2 && span * span * open2 <= node->near2 * (1 + 1e-6));
    if (node->kind != QKVI_TSNE_INNER) {
        assert_true(node->next == at + 1);
        assert_true((node->kind == QKVI_TSNE_FEW) == (node->n <= 8));
        return;
    }
    int64_t child = at + 1, first = node->first, n_children = 0;
    for (; child < node->next; child = tree->nodes[child].next, n_children++) {
        assert_true(tree->nodes[child].first == first);
        first = tree->nodes[child].end;
        check_node(tree, child, node->near2, open2);
    }
    assert_true(child == node->next && first == node->end && n_children >= 2 && n_children <= 4);
}

static void trees(void **state) {
    (void)state;
    for (int kind = 0; kind < PLACES; kind++) {
        for (int64_t n = 1; n <= N; n = n < 20 ? n + 1 : n * 3 / 2 + 1) {
            qkvi_tsne_forest forest;
            int seen[N] = { 0 };
            put(kind);
            must(qkvi_tsne_forest_make(n, &forest, &error));
            for (int again = 0; again < 2; again++) {
                qkvi_tsne_forest_grow(&forest, again ? 1 : 0.5, x, y);
                assert_true(forest.tree.n_nodes < 2 * n && forest.nodes[0].end == n);
                assert_true(forest.nodes[0].next == forest.tree.n_nodes);
                check_node(&forest.tree, 0, INFINITY, again ? 2 : 4);
            }
            for (int64_t at = 0; at < n; at++) {
                const int64_t i = qkvi_tsne_forest_point(&forest, at);
                assert_true(i < n && !seen[i]++);
                assert_true(forest.x[at] == x[i] && forest.y[at] == y[i]);
            }
            qkvi_tsne_forest_free(&forest);
        }
    }
}

/* ---- Forces ---------------------------------------------------------------------------------- */

/* repel[0], repel[1] and sum_w of each of n points, from the definition. */
static void over_pairs(int64_t n, double (*force)[3]) {
    for (int64_t i = 0; i < n; i++) {
        memset(force[i], 0, sizeof force[i]);
        for (int64_t j = 0; j < n; j++) {
            const double dx = x[i] - x[j], dy = y[i] - y[j], w = 1 / (1 + dx * dx + dy * dy);
            if (j == i) continue;
            force[i][0] += w * w * dx;
            force[i][1] += w * w * dy;
            force[i][2] += w;
        }
    }
}

static void by_tree(const qkvi_kernels *kernels, int64_t n, double theta, double (*force)[3]) {
    qkvi_tsne_forest forest;
    must(qkvi_tsne_forest_make(n, &forest, &error));
    qkvi_tsne_forest_grow(&forest, theta, x, y);
    for (int64_t at = 0; at < n; at += 8) {
        qkvi_tsne_force eight[8];
        kernels->tsne->push(&forest.tree, at, eight);
        for (int64_t l = 0; l < 8 && at + l < n; l++) {
            const int64_t i = qkvi_tsne_forest_point(&forest, at + l);
            force[i][0] = eight[l].repel[0];
            force[i][1] = eight[l].repel[1];
            force[i][2] = eight[l].sum_w;
        }
    }
    qkvi_tsne_forest_free(&forest);
}

/*
 * How far forces are from those over pairs: the largest, as a part of the largest; of sum_w, of
 * each.
 */
static double off(int64_t n, double (*got)[3], double (*wanted)[3], double *of_w) {
    double largest = 1e-300, apart = 0;
    *of_w = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int c = 0; c < 2; c++) {
            largest = fmax(largest, fabs(wanted[i][c]));
            apart = fmax(apart, fabs(got[i][c] - wanted[i][c]));
        }
        *of_w = fmax(*of_w, fabs(got[i][2] - wanted[i][2]) / fmax(wanted[i][2], 1e-300));
    }
    return apart / largest;
}

static void forces(void **state) {
    (void)state;
    static double wanted[N][3], got[N][3], first[N][3];
    static const double thetas[] = { 1e-9, 0.2, 0.5, 1 };
    static const double bounds[] = { 1e-7, 0.02, 0.1, 0.4 };
    double worst[4] = { 0 }, of_w;
    for (int kind = 0; kind < PLACES; kind++) {
        for (int64_t n = 1; n <= N; n = n < 20 ? n + 1 : n * 3 / 2 + 1) {
            put(kind);
            if (kind == 0) /* as wide as a map is */
                for (int64_t i = 0; i < n; i++) x[i] *= 60, y[i] *= 60;
            over_pairs(n, wanted);
            for (int t = 0; t < 4; t++) {
                by_tree(qkvi_kernels_at(0), n, thetas[t], first);
                const double apart = off(n, first, wanted, &of_w);
                worst[t] = fmax(worst[t], fmax(apart, of_w));
                if (!(apart <= bounds[t] && of_w <= bounds[t]))
                    fail_msg("places %d, %lld points, theta %g: off by %.3g, w by %.3g", kind,
                             (long long)n, thetas[t], apart, of_w);
                for (int isa = 1; qkvi_kernels_at(isa); isa++) {
                    by_tree(qkvi_kernels_at(isa), n, thetas[t], got);
                    if (memcmp(got, first, (size_t)n * sizeof *got) != 0)
                        fail_msg("%s: other bits", qkvi_kernels_at(isa)->name);
                }
            }
        }
    }
    for (int t = 0; t < 4; t++) print_message("theta %g: off by %.2g\n", thetas[t], worst[t]);
}

/* What is no number goes somewhere, and the walk ends. */
static void places_that_are_none(void **state) {
    (void)state;
    static double got[N][3];
    for (int kind = 0; kind < 4; kind++) {
        put(0);
        for (int i = 0; i < N; i += 3) {
            x[i] = kind == 0 ? NAN : kind == 1 ? INFINITY : kind == 2 ? -1e308 : 1e308;
            y[i] = kind == 0 ? NAN : -x[i];
        }
        for (int isa = 0; qkvi_kernels_at(isa); isa++) by_tree(qkvi_kernels_at(isa), N, 0.5, got);
    }
}

/* ---- Sparse rows ----------------------------------------------------------------------------- */

static void rows(void **state) {
    (void)state;
    for (int round = 0; round < 200; round++) {
        qkvi_rng rng = qkvi_rng_make(seed, 4, (uint64_t)round);
        const int64_t n = 8 * (round % 20), i = round % N;
        int32_t to[160];
        double p[160], sums[3] = { 0 }, sizes[3] = { 1e-300, 1e-300, 1e-300 };
        put(0);
        for (int64_t j = 0; j < n; j++) {
            to[j] = (int32_t)qkvi_rng_below(&rng, N);
            p[j] = j % 5 ? (double)qkvi_rng_unit(&rng) : 0;
            const double dx = x[i] - x[to[j]], dy = y[i] - y[to[j]], d = 1 + dx * dx + dy * dy;
            const double terms[3] = { p[j] / d * dx, p[j] / d * dy, p[j] * log(d) };
            for (int t = 0; t < 3; t++) sums[t] += terms[t], sizes[t] += fabs(terms[t]) + p[j];
        }
        static double pairs[2 * N];
        double first[3];
        for (int j = 0; j < N; j++) pairs[2 * j] = x[j], pairs[2 * j + 1] = y[j];
        for (int isa = 0; qkvi_kernels_at(isa); isa++) {
            const qkvi_tsne_kernels *const tsne = qkvi_kernels_at(isa)->tsne;
            double got[3];
            tsne->pull(n, i, p, to, pairs, got);
            got[2] = tsne->pull_cost(n, i, p, to, pairs);
            if (isa == 0) memcpy(first, got, sizeof first);
            assert_memory_equal(got, first, sizeof first);
            for (int t = 0; t < 3; t++) assert_true(fabs(got[t] - sums[t]) <= 1e-14 * sizes[t]);
        }
    }
}

/* ---- Maps ------------------------------------------------------------------------------------ */

static qkv_map_options options_of(int64_t n_iters, int64_t n_runs) {
    qkv_map_options o = qkv_map_options_init();
    o.n_iters = n_iters;
    o.n_runs = n_runs;
    o.method = QKV_MAP_BARNES_HUT;
    return o;
}

static qkv_status make(const qkv_map_options *o, int64_t n_queries, int64_t n_keys) {
    report = qkv_map_report_init();
    return qkv_inspect_map(ctx, o, n_queries, n_keys, DIM, q, k, xy, NULL, NULL, &report, NULL,
                           &error);
}

/* From one start with short steps both methods come to about the same KL. */
static void methods_agree(void **state) {
    (void)state;
    if (UNDER_TSAN) skip(); /* a minute, of numbers of calls that others make */
    qkv_map_options o = options_of(750, 1);
    o.metric = QKV_MAP_EUCLIDEAN;
    must(make(&o, 150, 150));
    assert_true(report.method == QKV_MAP_BARNES_HUT && report.theta == 0.5);
    const double kl = report.kl, trust = report.trust;
    o.method = QKV_MAP_EXACT;
    must(make(&o, 150, 150));
    assert_true(report.method == QKV_MAP_EXACT && report.theta == 0);
    print_message("KL %.4f by groups, %.4f over all pairs\n", kl, report.kl);
    assert_true(fabs(kl - report.kl) < 0.1 * report.kl && fabs(trust - report.trust) < 0.02);
}

static void same_bits(void **state) {
    (void)state;
    for (int few = 0; few < 2; few++) {
        const qkv_map_options o = options_of(few ? 300 : 30, few ? 5 : 2);
        const int64_t n = few ? 40 : 330;
        qkv_map_report first = qkv_map_report_init();
        must(make(&o, n, n));
        memcpy(other, xy, sizeof other);
        first = report;
        for (int isa = 0; qkv_isa_name(isa); isa++) {
            for (int threads = 1; threads <= 8; threads += 3) {
                qkv_ctx_options context = qkv_ctx_options_init();
                qkv_ctx *const kept = ctx;
                context.n_threads = threads;
                context.isa = qkv_isa_name(isa);
                must(qkv_ctx_create(&context, &ctx, &error));
                must(make(&o, n, n));
                if (memcmp(xy, other, (size_t)(4 * n) * sizeof *xy) != 0 ||
                    memcmp(&report, &first, sizeof report) != 0)
                    fail_msg("%s, %d threads: other bits", context.isa, threads);
                qkv_ctx_free(ctx);
                ctx = kept;
            }
        }
    }
}

static void few_and_equal_points(void **state) {
    (void)state;
    const qkv_map_options o = options_of(300, 2);
    for (int64_t n_queries = 0; n_queries <= 3; n_queries++) {
        for (int64_t n_keys = n_queries == 0; n_keys <= 3; n_keys++) {
            must(make(&o, n_queries, n_keys));
            for (int64_t i = 0; i < 2 * (n_queries + n_keys); i++) assert_true(isfinite(xy[i]));
            assert_true(isfinite(report.kl) && report.kl > -1e-12);
        }
    }
    float kept[2][60 * DIM];
    memcpy(kept[0], q, sizeof kept[0]);
    memcpy(kept[1], k, sizeof kept[1]);
    for (int i = 0; i < 60 * DIM; i++) q[i] = k[i] = 1; /* all the same */
    must(make(&o, 60, 60));
    for (int i = 0; i < 240; i++) assert_true(isfinite(xy[i]));
    for (int i = 0; i < 60 * DIM; i++) q[i] = 0; /* half of them without a direction */
    must(make(&o, 60, 60));
    assert_int_equal(report.n_zero, 60);
    for (int i = 0; i < 240; i++) assert_true(isfinite(xy[i]));
    qkv_map_options with = o; /* all begin at one place: nothing tells them apart, so they stay */
    memset(other, 0, sizeof other);
    with.start = other;
    with.n_runs = 1;
    must(make(&with, 60, 60));
    for (int i = 0; i < 240; i++) assert_true(xy[i] == 0);
    memcpy(q, kept[0], sizeof kept[0]);
    memcpy(k, kept[1], sizeof kept[1]);
}

/* Above 4096 points the method is this one by itself, and figures are those of a sample. */
static void many_points(void **state) {
    (void)state;
    qkv_map_options o = options_of(2, 1);
    o.method = QKV_MAP_AUTO;
    must(make(&o, LARGE, 3));
    assert_true(report.method == QKV_MAP_BARNES_HUT && report.n_runs == 1);
    assert_int_equal(report.n_measured, 4096 * 4096 / (LARGE + 3));
    assert_int_equal(report.n_measured_queries, LARGE);
    assert_true(report.trust > 0 && report.trust <= 1 && report.recall >= 0 && report.recall <= 1);
    must(make(&o, 3000, 3000));
    assert_int_equal(report.n_measured_queries, 2048 * 2048 / 3000);
    o.pca_only = 1;
    must(make(&o, LARGE, LARGE));
    assert_true(isnan(report.kl) && report.explained[0] > 0);
    o.pca_only = 0;
    must(make(&o, 48, 48));
    assert_true(report.method == QKV_MAP_EXACT && report.n_measured == 96);
}

/* Cancelled at any of the first looks: components if there is no map yet, else the best so far. */
static int cancel_after, told, cancel;
static void tell(void *user, int64_t done, int64_t total) {
    (void)user;
    assert_true(done >= 0 && done <= total);
    if (++told == cancel_after) __atomic_store_n(&cancel, 1, __ATOMIC_RELAXED);
}

static void cancelled_maps(void **state) {
    (void)state;
    static double pca[4 * LARGE];
    qkv_map_options o = options_of(100000, 1);
    qkv_call_options call = qkv_call_options_init();
    call.cancel = &cancel;
    call.progress = tell;
    int n_components = 0, n_maps = 0;
    for (cancel_after = 1; cancel_after <= 16; cancel_after *= 2) {
        cancel = told = 0;
        assert_int_equal(qkv_inspect_map(ctx, &o, LARGE, LARGE, DIM, q, k, xy, pca, NULL, &report,
                                         &call, &error),
                         QKV_ERR_CANCELLED);
        for (int i = 0; i < 4 * LARGE; i++) assert_true(isfinite(xy[i]));
        assert_true(report.trust > 0);
        if (report.n_runs == 0) {
            assert_memory_equal(xy, pca, sizeof pca);
            assert_true(isnan(report.kl) && strstr(error.message, "before the first run"));
            n_components++;
        } else {
            assert_true(report.kl > 0 && report.n_iters > 0);
            n_maps++;
        }
    }
    print_message("%d components, %d maps\n", n_components, n_maps);
    assert_true(n_components > 0 && n_maps > 0);
}

static void refused(qkv_status got, qkv_status wanted, const char *words) {
    if (got != wanted || !strstr(error.message, words))
        fail_msg("%s: '%s', not '%s'", qkv_status_name(got), error.message, words);
}

static void refusals(void **state) {
    (void)state;
    qkv_map_options o = options_of(10, 1);
    o.theta = 1.25;
    refused(make(&o, 11, 11), QKV_ERR_ARGUMENT, "theta = 1.25 is not in 0 ... 1");
    o.theta = -1;
    refused(make(&o, 11, 11), QKV_ERR_ARGUMENT, "theta = -1");
    o.theta = NAN;
    refused(make(&o, 11, 11), QKV_ERR_ARGUMENT, "theta = nan");
    o.theta = 0;
    o.method = (qkv_map_method)3;
    refused(make(&o, 11, 11), QKV_ERR_ARGUMENT, "method = 3 is not in 0 ... 2");
    o.method = QKV_MAP_BARNES_HUT;
    o.perplexity = 201;
    refused(make(&o, 400, 11), QKV_ERR_LIMIT, "perplexity = 201 is above the limit of 200");
    o.perplexity = 0;
    o.method = QKV_MAP_EXACT;
    refused(make(&o, 4000, 97), QKV_ERR_LIMIT,
            "n_queries + n_keys = 4097 is above the limit of 4096");
    o.method = QKV_MAP_AUTO;
    refused(make(&o, 65000, 537), QKV_ERR_LIMIT,
            "n_queries + n_keys = 65537 is above the limit of 65536");
}

int main(int argc, char **argv) {
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(affinities_of_the_nearest),
        cmocka_unit_test(all_near),
        cmocka_unit_test(trees),
        cmocka_unit_test(forces),
        cmocka_unit_test(places_that_are_none),
        cmocka_unit_test(rows),
        cmocka_unit_test(methods_agree),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(few_and_equal_points),
        cmocka_unit_test(many_points),
        cmocka_unit_test(cancelled_maps),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
