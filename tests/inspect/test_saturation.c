/*
 * Saturation of softmax: results equal those of the textbook's formula with the same random
 * numbers, which have the moments of normal ones; and known limits of the measure.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attn/ctx.h"
#include "inspect/normal.h"
#include "qkv/inspect.h"

static qkv_ctx *ctx;

static int set_up(void **state) {
    (void)state;
    return qkv_ctx_create(NULL, &ctx, NULL) == QKV_OK ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    qkv_ctx_free(ctx);
    return 0;
}

static void near(const char *what, double value, double wanted, double bound) {
    if (!(fabs(value - wanted) <= bound * fmax(1, fabs(wanted))))
        fail_msg("%s: %.9g is not %.9g", what, value, wanted);
}

/* The Jacobian of softmax, written out. */
static double jacobian_norm(int64_t n, const double *w) {
    double squares = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            const double element = w[i] * ((i == j) - w[j]);
            squares += element * element;
        }
    return sqrt(squares);
}

static qkv_saturation textbook(const qkv_saturation *like, uint64_t seed) {
    const int64_t d = like->head_dim, n = like->n_draws * like->n_queries, m = like->n_keys;
    const int64_t n_numbers = (n + like->n_draws * m) * d;
    qkvi_rng rng = qkvi_rng_make(seed, 0x73617401, (uint64_t)d);
    float *const x = malloc((size_t)(n_numbers + 1) * sizeof *x);
    double *const w = malloc((size_t)m * sizeof *w);
    for (int64_t i = 0; i < n_numbers; i += 2) {
        double normal[2];
        qkvi_two_normals(ctx->kernels, &rng, normal);
        x[i] = (float)normal[0];
        x[i + 1] = (float)normal[1];
    }
    qkv_saturation r = { .head_dim = d };
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        double largest = -INFINITY, total = 0;
        for (int64_t j = 0; j < m; j++) {
            const float *q = x + i * d, *k = x + (n + i / like->n_queries * m + j) * d;
            double s = 0;
            for (int64_t c = 0; c < d; c++) s += (double)q[c] * (double)k[c];
            w[j] = s * like->scale;
            sum += w[j];
            squares += w[j] * w[j];
            largest = fmax(largest, w[j]);
        }
        for (int64_t j = 0; j < m; j++) total += w[j] = exp(w[j] - largest);
        double entropy = 0;
        for (int64_t j = 0; j < m; j++) {
            w[j] /= total;
            if (w[j] > 0) entropy -= w[j] * log(w[j]);
        }
        r.entropy += entropy / (double)n;
        r.largest += 1 / total / (double)n;
        r.gradient += jacobian_norm(m, w) / (double)n;
    }
    r.score_variance = squares / (double)(n * m) - sum / (double)(n * m) * sum / (double)(n * m);
    free(x);
    free(w);
    return r;
}

static void test_textbook(void **state) {
    (void)state;
    static const int64_t cases[][4] = {
        { 1, 3, 5, 7 }, { 4, 2, 9, 16 }, { 64, 2, 7, 33 }, { 300, 1, 4, 20 }
    };
    for (size_t t = 0; t < sizeof cases / sizeof *cases; t++) {
        qkv_saturation rows[2];
        const int64_t *c = cases[t];
        assert_int_equal(
            qkv_inspect_saturation(ctx, c[0], c[1], c[2], c[3], t, rows, sizeof *rows, NULL),
            QKV_OK);
        assert_true(rows[0].scale == 1);
        near("scale", rows[1].scale, 1 / sqrt((double)c[0]), 1e-15);
        for (int i = 0; i < 2; i++) {
            const qkv_saturation wanted = textbook(&rows[i], t);
            near("variance", rows[i].score_variance, wanted.score_variance, 1e-5);
            near("entropy", rows[i].entropy, wanted.entropy, 2e-5);
            near("largest", rows[i].largest, wanted.largest, 1e-5);
            near("gradient", rows[i].gradient, wanted.gradient, 1e-5);
        }
    }
}

/* One key: all weight on it, no entropy, no gradient. */
static void test_one_key(void **state) {
    (void)state;
    qkv_saturation rows[2];
    assert_int_equal(qkv_inspect_saturation(ctx, 8, 1, 4, 1, 0, rows, sizeof *rows, NULL), QKV_OK);
    assert_true(rows[0].largest == 1 && rows[0].entropy == 0 && rows[0].gradient == 0);
}

/*
 * The variance of q.k is d, and the gradient goes to 0 as it grows; divided by sqrt(d) neither
 * does.
 */
static void test_growth(void **state) {
    (void)state;
    double before = 1;
    for (int64_t d = 16; d <= 4096; d *= 4) {
        qkv_saturation rows[2];
        assert_int_equal(qkv_inspect_saturation(ctx, d, 16, 32, 64, 5, rows, sizeof *rows, NULL),
                         QKV_OK);
        near("variance", rows[0].score_variance / (double)d, 1, 0.1);
        near("scaled variance", rows[1].score_variance, 1, 0.1);
        near("scaled gradient", rows[1].gradient, 0.183, 0.01);
        assert_true(rows[0].gradient < before);
        before = rows[0].gradient;
    }
}

static void test_same_bits(void **state) {
    (void)state;
    qkv_saturation a[2], b[2];
    qkv_ctx_options options = qkv_ctx_options_init();
    assert_int_equal(qkv_inspect_saturation(ctx, 64, 2, 8, 16, 1, a, sizeof *a, NULL), QKV_OK);
    for (int i = 0; qkv_isa_name(i); i++) {
        qkv_ctx *other;
        options.isa = qkv_isa_name(i);
        options.n_threads = 1 + i;
        assert_int_equal(qkv_ctx_create(&options, &other, NULL), QKV_OK);
        assert_int_equal(qkv_inspect_saturation(other, 64, 2, 8, 16, 1, b, sizeof *b, NULL),
                         QKV_OK);
        assert_memory_equal(a, b, sizeof a);
        qkv_ctx_free(other);
    }
}

static void test_refusals(void **state) {
    (void)state;
    static const int64_t cases[][4] = {
        { 0, 1, 1, 1 }, { (1 << 16) + 1, 1, 1, 1 }, { 1, 0, 1, 1 },
        { 1, 1, 0, 1 }, { 1, 1, 1, (1 << 12) + 1 }, { -1, 1, 1, 1 }
    };
    qkv_saturation rows[2];
    qkv_error error;
    for (size_t t = 0; t < sizeof cases / sizeof *cases; t++) {
        const int64_t *c = cases[t];
        assert_int_equal(
            qkv_inspect_saturation(ctx, c[0], c[1], c[2], c[3], 0, rows, sizeof *rows, &error),
            QKV_ERR_ARGUMENT);
        assert_non_null(strstr(error.message, "is not between 1 and"));
    }
    assert_int_equal(qkv_inspect_saturation(NULL, 1, 1, 1, 1, 0, rows, sizeof *rows, &error),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_inspect_saturation(ctx, 1, 1, 1, 1, 0, NULL, sizeof *rows, &error),
                     QKV_ERR_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_textbook), cmocka_unit_test(test_one_key),
        cmocka_unit_test(test_growth),   cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
