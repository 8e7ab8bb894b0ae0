/*
 * The map of many points against scikit-learn's Barnes-Hut t-SNE, stage by stage, on one start
 * (tools/tsne_tree_cases.py, which describes the file): joint affinities of near points, KL and
 * gradient at a given map over all pairs and by groups, KL after 1000 iterations. Its arithmetic is
 * float32.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "attn/ctx.h"
#include "inspect/tsne.h"

enum { MAX_NUMBERS = 1 << 14 };

static float file[MAX_NUMBERS];
static int64_t n_read, n, dim;
static const float *start, *y, *joint; /* [n][2], [n][2], pairs i < j */
static qkv_ctx *ctx;
static qkvi_points points;
static qkvi_tsne tsne;

static const float *take(int64_t count) {
    static int64_t at;
    const float *const numbers = file + at;
    at += count;
    assert_true(at <= n_read);
    return numbers;
}

static int set_up(void **state) {
    (void)state;
    FILE *in = fopen(QKV_TEST_DATA "/golden/tsne_tree_cases.bin", "rb");
    assert_non_null(in);
    n_read = (int64_t)fread(file, sizeof *file, MAX_NUMBERS, in);
    fclose(in);
    print_message("scikit-learn %g\n", (double)take(1)[0] / 100);
    n = (int64_t)take(1)[0];
    dim = (int64_t)take(1)[0];
    const double perplexity = (double)take(1)[0];
    const float *const x = take(n * dim);
    start = take(2 * n);
    y = take(2 * n);
    joint = take(n * (n - 1) / 2);
    const qkv_map_options options = qkv_map_options_init();
    assert_int_equal(qkv_ctx_create(NULL, &ctx, NULL), QKV_OK);
    assert_int_equal(qkvi_points_make(ctx->kernels, &options, n / 2, n - n / 2, dim, x,
                                      x + n / 2 * dim, &points, NULL),
                     QKV_OK);
    qkvi_points_finish(&points);
    return qkvi_tsne_make_sparse(&points, ctx->pool, perplexity, 1e-10, NULL, &tsne, NULL);
}

static int tear_down(void **state) {
    (void)state;
    qkvi_tsne_free(&tsne);
    qkvi_points_free(&points);
    qkv_ctx_free(ctx);
    return 0;
}

static void near(const char *what, int64_t at, double got, double wanted, double bound) {
    if (!(fabs(got - wanted) <= bound))
        fail_msg("%s[%lld] = %.9g, not %.9g within %g", what, (long long)at, got, wanted, bound);
}

/* p_ij of the sparse rows; 0 where there is none. */
static double affinity(int64_t i, int64_t j) {
    for (int64_t l = tsne.sparse.start[i]; l < tsne.sparse.start[i + 1]; l++)
        if (tsne.sparse.to[l] == j) return tsne.sparse.p[l];
    return 0;
}

static void joint_affinities(void **state) {
    (void)state;
    int64_t at = 0, n_near = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = i + 1; j < n; j++, at++) {
            const double p = affinity(i, j);
            near("p_ij", at, p, (double)joint[at], 1e-8 + 2e-5 * p);
            assert_true((p > 0) == (joint[at] > 0)); /* the same pairs */
            n_near += p > 0;
        }
    }
    print_message("%lld of %lld pairs have an affinity\n", (long long)n_near, (long long)at);
}

static qkvi_tsne_run begin(const float *map) {
    qkvi_tsne_run run;
    assert_int_equal(qkvi_tsne_run_make(&tsne, &run, NULL), QKV_OK);
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < 2; c++) run.y[c][i] = (double)map[2 * i + c];
    return run;
}

/* The root of the mean square of what a gradient is off by. */
static double off(const double *ours, const float *theirs, const float *exact) {
    double sum = 0;
    for (int64_t i = 0; i < 2 * n; i++) {
        const double apart = (ours ? ours[i] : (double)theirs[i]) - (double)exact[i];
        sum += apart * apart;
    }
    return sqrt(sum / (2 * (double)n));
}

static void gradients(void **state) {
    (void)state;
    qkvi_tsne_run run = begin(y);
    double *const ours = calloc((size_t)(2 * n), sizeof *ours);
    const float *const kl = take(1), *const exact = take(2 * n), *const kl_by_groups = take(1),
                       *const by_groups = take(2 * n);
    qkvi_tsne_run_measure(&tsne, NULL, &run);
    qkvi_tsne_gradient(&tsne, &run, 1, ours);
    near("kl", 0, run.kl, (double)kl[0], 1e-5 * (double)kl[0]);
    for (int64_t i = 0; i < 2 * n; i++) near("gradient", i, ours[i], (double)exact[i], 1e-7);
    for (int thousandths = 1; thousandths <= 500; thousandths += 499) {
        tsne.theta = thousandths / 1000.0;
        qkvi_tsne_run_forces(&tsne, NULL, &run);
        qkvi_tsne_gradient(&tsne, &run, 1, ours);
        near("kl by groups", thousandths, qkvi_tsne_run_kl(&tsne, NULL, &run),
             (double)kl_by_groups[0], 2e-3 * (double)kl[0]);
        const double our_error = off(ours, NULL, exact), their_error = off(NULL, by_groups, exact);
        print_message("theta %g: gradient off by %.2g, scikit-learn with 0.5 by %.2g\n", tsne.theta,
                      our_error, their_error);
        assert_true(our_error < (thousandths == 1 ? 1e-8 : 2 * their_error));
    }
    free(ours);
    qkvi_tsne_run_free(&run);
}

static void descents(void **state) {
    (void)state;
    qkvi_tsne_run run = begin(start);
    tsne.rate = (double)take(1)[0];
    tsne.theta = 0.5;
    tsne.n_iters = 1000;
    tsne.stop_early = 1;
    while (!run.done) qkvi_tsne_run_advance(&tsne, NULL, 100, &run);
    const double by_groups = qkvi_tsne_run_kl(&tsne, NULL, &run), kl = (double)take(1)[0];
    qkvi_tsne_run_measure(&tsne, NULL, &run);
    print_message("KL %.6f, by groups %.6f, scikit-learn %.6f\n", run.kl, by_groups, kl);
    assert_int_equal(run.n_iters, 1000);
    near("kl after 1000 iterations", 0, run.kl, kl, 1e-2 * kl);
    qkvi_tsne_run_free(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joint_affinities),
        cmocka_unit_test(gradients),
        cmocka_unit_test(descents),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
