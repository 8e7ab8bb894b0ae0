/*
 * NaN is not swallowed and does not spread (AT13a, AT13d, AT13e): a row of forward or merge that
 * depends on one is NaN, an empty row is not, and its neighbours keep their bits. What is hidden is
 * in test_attention_hidden_hostile.c.
 */
#include <math.h>
#include <string.h>

#include <qkv/kv.h>

#include "attn/attention_problem.h"

static const char *isa;

static void all_nan(const char *name, const float *x, int64_t n) {
    for (int64_t c = 0; c < n; c++)
        if (!isnan(x[c])) fail_msg("%s: a NaN was swallowed in %s: %g", isa, name, (double)x[c]);
}

/* AT13a: NaN in the row of Q that has it, in all its channels, and in no other. */
static void AT13a_a_query_with_nan(void **state) {
    (void)state;
    enum { LQ = 100, LK = 270, D = 8, ROWS = 2 * 2 * LQ };
    for (int n = 0; (isa = qkv_isa_name(n)); n++)
        for (int row = 0; row < ROWS; row += 57) {
            rng r = { 8 };
            problem p = problem_new(&r, 2, 2, 1, LQ, LK, D, D);
            qkv_ctx *ctx = context_on(isa, 2);
            p.q[row * D + row % D] = NAN;
            problem_run(ctx, &p);
            for (int i = 0; i < ROWS; i++)
                for (int c = 0; c < D; c++) {
                    assert_int_equal(isnan(p.o[i * D + c]) != 0, i == row);
                    assert_int_equal(isnan(p.d_q[i * D + c]) != 0, i == row);
                    assert_int_equal(isnan(p.lse[i]) != 0, i == row);
                }
            for (int e = 0; e < 2 * LK * D; e++) /* keys of the other batch */
                assert_int_equal(isnan(p.d_k[e]) != 0, e / (LK * D) == row / (2 * LQ));
            qkv_ctx_free(ctx);
            problem_free(&p);
        }
}

/*
 * A row whose only visible key is NaN, or scores -inf or +inf, is NaN and not an empty row; a row
 * with nothing to see is empty, whatever lies there.
 */
static void AT13d_a_real_nan_is_not_an_empty_row(void **state) {
    (void)state;
    enum { L = 6 };
    static const float scores[] = { NAN, INFINITY, -INFINITY, 1e38f, -1e38f };
    for (int n = 0; (isa = qkv_isa_name(n)); n++)
        for (int s = 0; s < 5; s++) {
            float q[L], k[L], v[L], o[L], lse[L], d_o[L], d_q[L], d_k[L], d_v[L];
            qkv_attention_desc d;
            qkv_attention_grads g;
            qkv_ctx *ctx = context_on(isa, 1);
            for (int j = 0; j < L; j++) k[j] = 0, q[j] = v[j] = d_o[j] = 1;
            for (int i = 0; i < L; i++) q[i] = 100; /* 1e38 overflows to an infinity */
            k[3] = scores[s];
            v[4] = NAN;
            qkv_attention_desc_contiguous(&d, 1, 1, 1, L, L, 1, 1);
            d.flags = QKV_SET_WINDOW | QKV_SET_Q_OFFSET; /* the own position alone */
            d.q_offset = 3;
            qkv_attention_grads_contiguous(&g, &d);
            g.d_o = d_o, g.d_q = d_q, g.d_k = d_k, g.d_v = d_v;
            assert_int_equal(qkv_attention_forward(ctx, &d, q, k, v, o, lse, NULL), QKV_OK);
            assert_int_equal(qkv_attention_backward(ctx, &d, q, k, v, o, lse, &g, NULL), QKV_OK);
            assert_true(isnan(o[0]) && isnan(lse[0]) && isnan(d_q[0])); /* sees key 3 alone */
            assert_true(isnan(o[1]) && lse[1] == 0);                    /* key 4: v is NaN */
            assert_true(o[2] == 1 && lse[2] == 0);
            for (int i = 3; i < L; i++)
                assert_true(o[i] == 0 && lse[i] == -INFINITY && d_q[i] == 0);
            qkv_ctx_free(ctx);
        }
}

/* ---- Beside a sink --------------------------------------------------------------------------- */

enum { SINK_ROWS = 3, SINK_KEYS = 1400, SINK_DIM = 2 };

/*
 * Rows whose scores are -inf, 0 and hidden, of a type and class, with a sink; channel 1 of v has
 * one NaN.
 */
typedef struct beside_sink {
    const kind_of_type *of;
    qkv_attention_desc d;
    char q[4 * SINK_ROWS], k[4 * SINK_KEYS], v[4 * SINK_KEYS * SINK_DIM];
    uint8_t mask[SINK_ROWS];
    float sink, o[SINK_ROWS * SINK_DIM], lse[SINK_ROWS];
} beside_sink;

static void beside_sink_make(beside_sink *x, const kind_of_type *of, int64_t n_keys, float sink,
                             int64_t nan_at) {
    const elem_type type = of->type;
    *x = (beside_sink){ .of = of, .sink = sink, .mask = { 1, 1, 0 } };
    qkv_attention_desc_contiguous(&x->d, 1, 1, 1, SINK_ROWS, n_keys, 1, SINK_DIM);
    x->d.dtype = (qkv_dtype)type;
    x->d.arithmetic = of->arithmetic;
    x->d.flags = QKV_SET_SINKS | QKV_SET_SCALE | QKV_SET_MASK | QKV_SET_O_DTYPE;
    x->d.sinks = &x->sink;
    x->d.scale = 1e38f;
    x->d.mask = x->mask;
    x->d.mask_type = QKV_MASK_BOOL;
    x->d.mask_stride[2] = x->d.mask_len_k = 1;
    x->d.o_dtype = QKV_F32;
    for (int64_t j = 0; j < n_keys; j++) {
        element_set(x->k, type, j, -1000);
        element_set(x->v, type, 2 * j, (double)(j % 7 - 3));
        element_set(x->v, type, 2 * j + 1, j == nan_at ? (double)NAN : 1);
    }
    element_set(x->q, type, 0, 1);
    element_set(x->q, type, 2, 1);
}

/* -0 is not 0 here. */
static bool is_zero(float x) { return x == 0 && !signbit(x); }

static void beside_sink_is_right(const beside_sink *x, const char *what) {
    const bool good = x->sink < INFINITY && !isnan(x->sink);
    const bool first = good ? is_zero(x->o[0]) && isnan(x->o[1]) && x->lse[0] == x->sink
                            : isnan(x->o[0]) && isnan(x->o[1]) && isnan(x->lse[0]);
    /* A sink beyond 2.3e38 is infinite in log2 units, beside scores that are not. */
    const bool second = isnan(x->o[3]) && isnan(x->o[2]) == !(x->sink < 2e38f);
    const bool third =
        is_zero(x->o[4]) && is_zero(x->o[5]) && memcmp(&x->lse[2], &x->sink, sizeof x->sink) == 0;
    if (!first || !second || !third)
        fail_msg("%s, %s, %s, sink %g, %d keys: o %g %g, %g %g, %g %g; lse %g %g %g", isa, what,
                 x->of->name, (double)x->sink, (int)x->d.len_k, (double)x->o[0], (double)x->o[1],
                 (double)x->o[2], (double)x->o[3], (double)x->o[4], (double)x->o[5],
                 (double)x->lse[0], (double)x->lse[1], (double)x->lse[2]);
}

static void beside_sink_runs(qkv_ctx *ctx, beside_sink *x) {
    float entropy[SINK_ROWS];
    qkv_attention_stats stats;
    qkv_kv_view view;
    for (int n = 0; n < 3; n++) {
        qkv_attention_desc d = x->d;
        qkv_attention_stats_contiguous(&stats, &d);
        stats.entropy = entropy;
        d.stats = &stats;
        if (n == 1) d.flags |= QKV_SET_STATS;
        qkv_kv_view_contiguous(&view, &d, d.dtype);
        view.k = x->k, view.v = x->v;
        memset(x->o, 0x55, sizeof x->o);
        const qkv_status status =
            n == 2 ? qkv_attention_decode(ctx, &d, x->q, &view, x->o, x->lse, NULL)
                   : qkv_attention_forward(ctx, &d, x->q, x->k, x->v, x->o, x->lse, NULL);
        if (status != QKV_OK) fail_msg("%s", qkv_ctx_message(ctx));
        beside_sink_is_right(x, n == 2 ? "decode" : n ? "forward with statistics" : "forward");
    }
}

/*
 * With a sink, keys at -inf have the weight 0, and 0 NaN is NaN: in the channel that has it alone.
 */
static void AT13e_a_sink_does_not_hide_a_nan(void **state) {
    (void)state;
    static const float sinks[] = { 0.5f, -3e38f, 3e38f, INFINITY, NAN };
    static const int64_t lengths[] = { 1, 5, 300, SINK_KEYS };
    static beside_sink x;
    for (int n = 0; (isa = qkv_isa_name(n)); n++) {
        qkv_ctx *ctx = context_on(isa, 3);
        for (int t = 0; t < TYPES * 5 * 4; t++) {
            const int64_t n_keys = lengths[t / 5 % 4];
            beside_sink_make(&x, &check_types[t / 20], n_keys, sinks[t % 5], n_keys * (t % 3) / 3);
            beside_sink_runs(ctx, &x);
        }
        qkv_ctx_free(ctx);
    }
}

/* Backward has the NaN from v itself; what hides all keys keeps it out. */
static void AT13e_gradients_beside_a_sink(void **state) {
    (void)state;
    static beside_sink x;
    for (int n = 0; (isa = qkv_isa_name(n)); n++) {
        static float d_o[SINK_ROWS * SINK_DIM], d_q[SINK_ROWS], d_k[SINK_KEYS], d_v[2 * SINK_KEYS];
        float d_sink;
        qkv_attention_grads g;
        qkv_ctx *ctx = context_on(isa, 2);
        beside_sink_make(&x, &check_types[0], 300, 0.5f, 299);
        beside_sink_runs(ctx, &x);
        qkv_attention_grads_contiguous(&g, &x.d);
        for (int e = 0; e < SINK_ROWS * SINK_DIM; e++) d_o[e] = 1;
        g.d_o = d_o, g.d_q = d_q, g.d_k = d_k, g.d_v = d_v, g.d_sinks = &d_sink;
        assert_int_equal(qkv_attention_backward(ctx, &x.d, x.q, x.k, x.v, x.o, x.lse, &g, NULL),
                         QKV_OK);
        assert_true(isnan(d_q[0]) && isnan(d_q[1]) && is_zero(d_q[2]) && isnan(d_sink));
        qkv_ctx_free(ctx);
    }
}

/* ---- Merge ----------------------------------------------------------------------------------- */

/* A part that saw nothing may hold anything; NaN in a row of a part stays in that row. */
static void AT13_merge_keeps_rows_apart(void **state) {
    (void)state;
    enum { ROWS = 9, V = 70, PARTS = 3 };
    static float o[PARTS][ROWS * V], lse[PARTS][ROWS], clean[ROWS * V], clean_lse[ROWS];
    static float dirty[ROWS * V], dirty_lse[ROWS];
    const void *o_parts[PARTS] = { o[0], o[1], o[2] };
    const float *lse_parts[PARTS] = { lse[0], lse[1], lse[2] };
    qkv_attention_desc d;
    qkv_attention_desc_contiguous(&d, 1, 1, 1, ROWS, 1, 1, V);
    for (int n = 0; (isa = qkv_isa_name(n)); n++) {
        rng r = { 3 };
        qkv_ctx *ctx = context_on(isa, 2);
        for (int part = 0; part < PARTS; part++) {
            for (int e = 0; e < ROWS * V; e++) o[part][e] = rng_normal(&r);
            for (int i = 0; i < ROWS; i++) lse[part][i] = rng_normal(&r);
        }
        lse[1][5] = lse[0][5] = lse[2][5] = -INFINITY; /* no query saw a key */
        lse[1][6] = -INFINITY;
        assert_int_equal(qkv_attention_merge(ctx, &d, PARTS, o_parts, lse_parts, clean, clean_lse),
                         QKV_OK);
        for (int c = 0; c < V; c++) {
            o[1][6 * V + c] = o[0][5 * V + c] = NAN; /* in parts without a key: no influence */
            o[2][3 * V + c] = c == 66 ? NAN : o[2][3 * V + c];
        }
        lse[0][1] = NAN;
        lse[2][7] = INFINITY;
        assert_int_equal(qkv_attention_merge(ctx, &d, PARTS, o_parts, lse_parts, dirty, dirty_lse),
                         QKV_OK);
        for (int i = 0; i < ROWS; i++) {
            const bool bad = i == 1 || i == 7;
            if (bad) all_nan("a row of merge", dirty + i * V, V);
            if (bad) all_nan("a row of merge", dirty_lse + i, 1);
            for (int c = 0; c < V && !bad; c++)
                if (i == 3 && c == 66)
                    all_nan("a channel of merge", dirty + i * V + c, 1);
                else
                    assert_memory_equal(dirty + i * V + c, clean + i * V + c, sizeof(float));
            if (!bad) assert_memory_equal(dirty_lse + i, clean_lse + i, sizeof(float));
        }
        assert_true(dirty[5 * V] == 0 && dirty_lse[5] == -INFINITY);
        qkv_ctx_free(ctx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(AT13a_a_query_with_nan),
        cmocka_unit_test(AT13d_a_real_nan_is_not_an_empty_row),
        cmocka_unit_test(AT13e_a_sink_does_not_hide_a_nan),
        cmocka_unit_test(AT13e_gradients_beside_a_sink),
        cmocka_unit_test(AT13_merge_keeps_rows_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
