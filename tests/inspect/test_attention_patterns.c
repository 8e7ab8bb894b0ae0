/*
 * Divergence of heads and rollout (qkv/patterns.h) against the whole matrix of weights in double,
 * as a textbook has it; and what they refuse.
 */
#include <math.h>

#include "attn/attention_problem.h"
#include "attn/attention_reference.h"
#include "qkv/patterns.h"

/* ---- The whole matrix ------------------------------------------------------------------------ */

/* A problem after forward, and p of all its heads: [b][h][i][j]. */
typedef struct whole {
    problem p;
    double *w;
    qkv_ctx *ctx;
} whole;

static double *row_of(const whole *x, int64_t b, int64_t h, int64_t i) {
    const qkv_attention_desc *d = &x->p.d;
    return x->w + ((b * d->n_heads + h) * d->len_q + i) * d->len_k;
}

/* flags and numbers of the descriptor are set. */
static void whole_run(whole *x, int n_threads) {
    const qkv_attention_desc *d = &x->p.d;
    reference_pair *pair = calloc((size_t)d->len_k + 1, sizeof *pair);
    x->ctx = context_on(NULL, n_threads);
    x->w = doubles(rows_q(&x->p) * d->len_k);
    assert_non_null(pair);
    if (qkv_attention_forward(x->ctx, d, x->p.q, x->p.k, x->p.v, x->p.o, x->p.lse, NULL) != QKV_OK)
        fail_msg("%s", qkv_ctx_message(x->ctx));
    for (int64_t b = 0; b < d->n_batch; b++)
        for (int64_t h = 0; h < d->n_heads; h++)
            for (int64_t i = 0; i < d->len_q; i++) {
                reference_scores(&x->p, b, h, i, pair);
                const double lse = reference_weights(d, pair);
                for (int64_t j = 0; j < d->len_k; j++)
                    row_of(x, b, h, i)[j] = lse > -INFINITY ? pair[j].p : 0;
            }
    free(pair);
}

static whole whole_new(uint64_t seed, int64_t n_batch, int64_t n_heads, int64_t n_kv_heads,
                       int64_t len_q, int64_t len_k) {
    rng r = { seed };
    whole x = { .p = problem_new(&r, n_batch, n_heads, n_kv_heads, len_q, len_k, 16, 8) };
    for (int64_t n = 0; n < n_q(&x.p); n++) x.p.q[n] *= 3; /* some sharp rows */
    return x;
}

static void whole_free(whole *x) {
    problem_free(&x->p);
    free(x->w);
    qkv_ctx_free(x->ctx);
}

static qkv_head_view view_of(const whole *x, int64_t b, int64_t h) {
    return (qkv_head_view){ sizeof(qkv_head_view), &x->p.d, x->p.q, x->p.k, x->p.lse, b, h };
}

static void near(double is, double want, double bound) {
    if (!(fabs(is - want) <= bound)) fail_msg("%.12g instead of %.12g", is, want);
}

static double sum_of(const double *w, int64_t n) {
    double sum = 0;
    for (int64_t j = 0; j < n; j++) sum += w[j];
    return sum;
}

/* ---- Divergence ------------------------------------------------------------------------------ */

/* By the definition, with both Kullback-Leibler divergences. */
static double textbook_divergence(const double *p, const double *g, int64_t n, double s) {
    double sum = 0;
    for (int64_t j = 0; j < n; j++) {
        const double x = (1 - s) * p[j] + s / (double)n, y = (1 - s) * g[j] + s / (double)n;
        const double m = (x + y) / 2;
        if (x > 0) sum += 0.5 * x * log(x / m);
        if (y > 0) sum += 0.5 * y * log(y / m);
    }
    return sum;
}

static void heads_are_as_far_apart_as_by_definition(void **state) {
    (void)state;
    const double smoothing[] = { 0, 0.001, 0.5, 1 };
    whole x = whole_new(3, 2, 4, 2, 150, 1300);
    x.p.d.flags = QKV_SET_CAUSAL | QKV_SET_Q_OFFSET;
    x.p.d.q_offset = -5; /* five rows see nothing */
    whole_run(&x, 3);
    for (int n = 0; n < 4; n++) {
        const qkv_head_view a = view_of(&x, 1, 2), b = view_of(&x, 0, n);
        qkv_divergence got = qkv_divergence_init();
        double rows[150], sum = 0;
        assert_int_equal(
            qkv_inspect_divergence(x.ctx, &a, &b, smoothing[n], rows, &got, NULL, NULL), QKV_OK);
        for (int i = 0; i < 150; i++) {
            assert_int_equal(isnan(rows[i]) != 0, i < 5);
            if (i < 5) continue;
            const double want =
                textbook_divergence(row_of(&x, 1, 2, i), row_of(&x, 0, n, i), 1300, smoothing[n]);
            near(rows[i], want, 1e-5);
            sum += want;
        }
        near(got.sum, sum, 1e-4);
        near(got.mean, got.sum / 145, 1e-12);
        assert_int_equal(got.n_rows, 145);
        assert_int_equal(got.n_left_out, 5);
        if (smoothing[n] == 1) near(got.sum, 0, 1e-9);
    }
    const qkv_head_view a = view_of(&x, 0, 1);
    qkv_divergence same = qkv_divergence_init();
    assert_int_equal(qkv_inspect_divergence(x.ctx, &a, &a, 0, NULL, &same, NULL, NULL), QKV_OK);
    assert_true(same.sum == 0);
    whole_free(&x);
}

/* One head looks at itself only, the other at the token before: ln 2 each. */
static void heads_without_a_key_in_common_are_ln_2_apart(void **state) {
    (void)state;
    whole x = whole_new(4, 1, 1, 1, 40, 40), y = whole_new(4, 1, 1, 1, 40, 40);
    x.p.d.flags = y.p.d.flags = QKV_SET_WINDOW | QKV_SET_Q_OFFSET;
    x.p.d.window_left = x.p.d.window_right = 0;
    y.p.d.window_left = y.p.d.window_right = 0;
    y.p.d.q_offset = -1;
    whole_run(&x, 1);
    whole_run(&y, 1);
    const qkv_head_view a = view_of(&x, 0, 0), b = view_of(&y, 0, 0);
    qkv_divergence got = qkv_divergence_init();
    assert_int_equal(qkv_inspect_divergence(x.ctx, &a, &b, 0, NULL, &got, NULL, NULL), QKV_OK);
    assert_int_equal(got.n_rows, 39);
    near(got.mean, log(2), 1e-12);
    whole_free(&x);
    whole_free(&y);
}

/* Weights that keys have among themselves: a sink changes nothing. */
static void a_sink_is_no_key(void **state) {
    (void)state;
    const float sinks[2] = { 1, 3 };
    whole x = whole_new(5, 1, 2, 2, 60, 70), y = whole_new(5, 1, 2, 2, 60, 70);
    whole_run(&x, 2);
    y.p.d.flags = QKV_SET_SINKS;
    y.p.d.sinks = sinks;
    whole_run(&y, 2);
    const qkv_head_view a[] = { view_of(&x, 0, 0), view_of(&x, 0, 1) };
    const qkv_head_view b[] = { view_of(&y, 0, 0), view_of(&y, 0, 1) };
    qkv_divergence without = qkv_divergence_init(), with = qkv_divergence_init();
    assert_int_equal(qkv_inspect_divergence(x.ctx, &a[0], &a[1], 0, NULL, &without, NULL, NULL),
                     QKV_OK);
    assert_int_equal(qkv_inspect_divergence(x.ctx, &b[0], &b[1], 0, NULL, &with, NULL, NULL),
                     QKV_OK);
    near(with.sum, without.sum, 1e-4);
    whole_free(&x);
    whole_free(&y);
}

/* ---- Rollout --------------------------------------------------------------------------------- */

/* What stands for all heads at a cell; a row that sees nothing is that of I. */
static double fused_of(const whole *x, qkv_rollout_heads heads, int64_t b, int64_t i, int64_t j) {
    double mean = 0, most = 0, least = 1;
    for (int64_t h = 0; h < x->p.d.n_heads; h++) {
        const double *const w = row_of(x, b, h, i);
        const double a = sum_of(w, x->p.d.len_k) > 0 ? w[j] : i == j;
        mean += a / (double)x->p.d.n_heads;
        most = fmax(most, a);
        least = fmin(least, a);
    }
    return heads == QKV_ROLLOUT_MAX ? most : heads == QKV_ROLLOUT_MIN ? least : mean;
}

/* x D (F + I), with D so that rows sum to 1. */
static void textbook_step(const whole *x, qkv_rollout_heads heads, int64_t b, const float *given,
                          double *y) {
    const int64_t n = x->p.d.len_q;
    double *const row = doubles(n);
    for (int64_t j = 0; j < n; j++) y[j] = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) row[j] = fused_of(x, heads, b, i, j) + (i == j);
        const double sum = sum_of(row, n);
        for (int64_t j = 0; j < n; j++) y[j] += (double)given[i] * row[j] / sum;
    }
    free(row);
}

static void a_step_is_a_product(void **state) {
    (void)state;
    enum { LEN = 130 };
    whole x = whole_new(6, 2, 4, 2, LEN, LEN);
    float given[2 * LEN], got[2 * LEN], alone[2 * LEN];
    double want[LEN];
    x.p.d.flags = QKV_SET_CAUSAL | QKV_SET_WINDOW | QKV_SET_SEGMENTS;
    x.p.d.window_left = 20, x.p.d.window_right = -1;
    int32_t seg[LEN], other[LEN]; /* rows 3, 13, ... see nothing */
    for (int i = 0; i < LEN; i++) seg[i] = 0, other[i] = i % 10 == 3;
    x.p.d.seg_q = other, x.p.d.seg_k = seg;
    whole_run(&x, 3);
    qkv_ctx *const one = context_on(NULL, 1);
    for (int i = 0; i < 2 * LEN; i++) given[i] = (float)((i * 7) % 13) - 4;
    for (int heads = QKV_ROLLOUT_MEAN; heads <= QKV_ROLLOUT_MIN; heads++) {
        const qkv_rollout_heads kind = (qkv_rollout_heads)heads;
        assert_int_equal(
            qkv_inspect_rollout_step(x.ctx, &x.p.d, x.p.q, x.p.k, x.p.lse, kind, given, got, NULL),
            QKV_OK);
        for (int64_t b = 0; b < 2; b++) {
            textbook_step(&x, kind, b, given + b * LEN, want);
            for (int64_t j = 0; j < LEN; j++) near((double)got[b * LEN + j], want[j], 2e-5);
        }
        memcpy(alone, given, sizeof given); /* in place, by one thread: the same bits */
        assert_int_equal(
            qkv_inspect_rollout_step(one, &x.p.d, x.p.q, x.p.k, x.p.lse, kind, alone, alone, NULL),
            QKV_OK);
        assert_memory_equal(got, alone, sizeof got);
    }
    qkv_ctx_free(one);
    whole_free(&x);
}

/* Two sequences one after the other, and each alone: the same bits. */
static void packed_sequences_roll_alone(void **state) {
    (void)state;
    enum { LEN = 100, FIRST = 37, HEADS = 2, DIM = 16 };
    const int64_t cu[] = { 0, FIRST, LEN };
    whole x = whole_new(8, 1, HEADS, HEADS, LEN, LEN);
    float given[LEN], got[LEN], alone[LEN];
    x.p.d.n_batch = 2;
    x.p.d.q_stride[0] = x.p.d.k_stride[0] = x.p.d.v_stride[0] = 0;
    x.p.d.o_stride[0] = x.p.d.lse_stride[0] = 0;
    x.p.d.flags = QKV_SET_CU_SEQLENS | QKV_SET_CAUSAL;
    x.p.d.cu_seqlens_q = x.p.d.cu_seqlens_k = cu;
    x.ctx = context_on(NULL, 2);
    if (qkv_attention_forward(x.ctx, &x.p.d, x.p.q, x.p.k, x.p.v, x.p.o, x.p.lse, NULL) != QKV_OK)
        fail_msg("%s", qkv_ctx_message(x.ctx));
    for (int i = 0; i < LEN; i++) given[i] = (float)(i % 5) - 1;
    for (int heads = QKV_ROLLOUT_MEAN; heads <= QKV_ROLLOUT_MIN; heads++) {
        const qkv_rollout_heads kind = (qkv_rollout_heads)heads;
        assert_int_equal(
            qkv_inspect_rollout_step(x.ctx, &x.p.d, x.p.q, x.p.k, x.p.lse, kind, given, got, NULL),
            QKV_OK);
        for (int b = 0; b < 2; b++) {
            qkv_attention_desc d;
            qkv_attention_desc_contiguous(&d, 1, HEADS, HEADS, cu[b + 1] - cu[b], cu[b + 1] - cu[b],
                                          DIM, 8);
            d.q_stride[1] = d.k_stride[1] = LEN * DIM;
            d.lse_stride[1] = LEN;
            d.flags = QKV_SET_CAUSAL;
            assert_int_equal(qkv_inspect_rollout_step(x.ctx, &d, x.p.q + cu[b] * DIM,
                                                      x.p.k + cu[b] * DIM, x.p.lse + cu[b], kind,
                                                      given + cu[b], alone + cu[b], NULL),
                             QKV_OK);
        }
        assert_memory_equal(got, alone, sizeof got);
    }
    whole_free(&x);
}

static void rollout_of_a_model(void **state) {
    (void)state;
    static const char text[] = "The man was watching the dog when it left.";
    qkv_ctx *ctx = context_on(NULL, 2);
    qkv_model *model;
    qkv_encoding *input;
    qkv_run *run;
    assert_int_equal(qkv_model_open(QKV_TEST_DATA "/golden/bert_old", NULL, &model, NULL), QKV_OK);
    assert_int_equal(qkv_tokenizer_encode(qkv_model_tokenizer(model, QKV_SOURCE), text,
                                          strlen(text), NULL, 0, &input, NULL),
                     QKV_OK);
    assert_int_equal(qkv_model_run(ctx, model, 1, (const qkv_encoding *const *)&input,
                                   QKV_RUN_CAPTURE, NULL, &run, NULL),
                     QKV_OK);
    const qkv_model_info *info = qkv_model_get_info(model);
    const int64_t n = input->n;
    double *x = doubles(n), *y = doubles(n);
    float *w = floats(n * n), *got = floats(n);
    x[2] = 1;
    for (int64_t layer = info->n_layers - 1; layer >= 0; layer--) {
        for (int64_t j = 0; j < n; j++) y[j] = x[j] / 2;
        for (int64_t h = 0; h < info->n_heads; h++) {
            assert_int_equal(qkv_run_weights(run, QKV_SELF, 0, layer, h, w, NULL), QKV_OK);
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < n; j++)
                    y[j] += x[i] * (double)w[i * n + j] / (double)(2 * info->n_heads);
        }
        memcpy(x, y, (size_t)n * sizeof *x);
    }
    assert_int_equal(qkv_inspect_rollout(ctx, model, run, 0, 2, 3, QKV_ROLLOUT_MEAN, got, NULL),
                     QKV_OK);
    double sum = 0;
    for (int64_t j = 0; j < n; j++) {
        near((double)got[j], x[j], 1e-6);
        sum += (double)got[j];
    }
    near(sum, 1, 1e-6);
    float *const mean = calloc((size_t)n, sizeof *mean), *const one =
                                                             calloc((size_t)n, sizeof *one);
    assert_true(mean && one);
    assert_int_equal(qkv_inspect_rollout(ctx, model, run, 0, 1, 4, QKV_ROLLOUT_MEAN, mean, NULL),
                     QKV_OK);
    for (int64_t i = 1; i < 4; i++) {
        assert_int_equal(
            qkv_inspect_rollout(ctx, model, run, 0, i, i + 1, QKV_ROLLOUT_MEAN, one, NULL), QKV_OK);
        for (int64_t j = 0; j < n; j++) mean[j] -= one[j] / 3;
    }
    for (int64_t j = 0; j < n; j++) near((double)mean[j], 0, 1e-6);
    free(mean);
    free(one);
    qkv_error error;
    assert_int_equal(
        qkv_inspect_rollout(ctx, model, run, 0, n, n + 1, QKV_ROLLOUT_MEAN, got, &error),
        QKV_ERR_ARGUMENT);
    free(x);
    free(y);
    free(w);
    free(got);
    qkv_run_free(run);
    qkv_encoding_free(input);
    qkv_model_free(model);
    qkv_ctx_free(ctx);
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static void refused(qkv_status got, qkv_status want, const qkv_error *error, const char *text) {
    assert_string_equal(error->message, text);
    assert_int_equal(got, want);
}

static void what_is_wrong_is_refused_by_name(void **state) {
    (void)state;
    whole x = whole_new(2, 1, 2, 2, 20, 30), y = whole_new(2, 1, 1, 1, 20, 31);
    qkv_error e;
    qkv_divergence d = qkv_divergence_init();
    float v[30] = { 0 };
    const int raised = 1;
    qkv_call_options call = qkv_call_options_init();
    call.cancel = &raised;
    whole_run(&x, 1);
    whole_run(&y, 1);
    qkv_head_view a = view_of(&x, 0, 0), b = view_of(&y, 0, 0);
    refused(qkv_inspect_divergence(NULL, &a, &a, 0, NULL, &d, NULL, &e), QKV_ERR_ARGUMENT, &e,
            "ctx is NULL");
    refused(qkv_inspect_divergence(x.ctx, &a, NULL, 0, NULL, &d, NULL, &e), QKV_ERR_ARGUMENT, &e,
            "y is NULL");
    refused(qkv_inspect_divergence(x.ctx, &a, &a, NAN, NULL, &d, NULL, &e), QKV_ERR_ARGUMENT, &e,
            "smoothing = nan is not in [0, 1]");
    refused(qkv_inspect_divergence(x.ctx, &a, &b, 0, NULL, &d, NULL, &e), QKV_ERR_SHAPE, &e,
            "x has 20 queries and 30 keys, y has 20 and 31");
    refused(qkv_inspect_divergence(x.ctx, &a, &a, 0, NULL, &d, &call, &e), QKV_ERR_CANCELLED, &e,
            "cancelled by the caller's flag");
    a.b = 1;
    refused(qkv_inspect_divergence(x.ctx, &a, &a, 0, NULL, &d, NULL, &e), QKV_ERR_ARGUMENT, &e,
            "b = 1 is not in [0, 1)");
    a.b = 0, a.h = 2;
    refused(qkv_inspect_divergence(x.ctx, &a, &a, 0, NULL, &d, NULL, &e), QKV_ERR_ARGUMENT, &e,
            "h = 2 is not in [0, 2)");
    a.desc = NULL;
    refused(qkv_inspect_divergence(x.ctx, &a, &a, 0, NULL, &d, NULL, &e), QKV_ERR_ARGUMENT, &e,
            "x.desc is NULL");
    refused(
        qkv_inspect_rollout_step(x.ctx, &x.p.d, x.p.q, x.p.k, x.p.lse, QKV_ROLLOUT_MEAN, v, v, &e),
        QKV_ERR_SHAPE, &e,
        "batch 0 has 20 queries from position 0 on and 30 keys; rollout needs a key at the "
        "place of each query");
    refused(qkv_inspect_rollout_step(x.ctx, &x.p.d, x.p.q, x.p.k, x.p.lse, (qkv_rollout_heads)3, v,
                                     v, &e),
            QKV_ERR_ARGUMENT, &e, "heads = 3 is none of QKV_ROLLOUT_MEAN, _MAX, _MIN");
    whole_free(&x);
    whole_free(&y);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_are_as_far_apart_as_by_definition),
        cmocka_unit_test(heads_without_a_key_in_common_are_ln_2_apart),
        cmocka_unit_test(a_sink_is_no_key),
        cmocka_unit_test(a_step_is_a_product),
        cmocka_unit_test(packed_sequences_roll_alone),
        cmocka_unit_test(rollout_of_a_model),
        cmocka_unit_test(what_is_wrong_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
