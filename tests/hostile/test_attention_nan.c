/*
 * NaN is not swallowed and does not spread (AT13a, AT13d): a row of forward or merge that depends on
 * one is NaN, an empty row is not, and its neighbours keep their bits. What is hidden is in
 * test_attention_hidden.c.
 */
#include <math.h>
#include <string.h>

#include "attention_problem.h"

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
            qkv_ctx_destroy(ctx);
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
            qkv_ctx_destroy(ctx);
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
        lse[1][5] = lse[0][5] = lse[2][5] = -INFINITY; /* nobody saw a key */
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
        qkv_ctx_destroy(ctx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(AT13a_a_query_with_nan),
        cmocka_unit_test(AT13d_a_real_nan_is_not_an_empty_row),
        cmocka_unit_test(AT13_merge_keeps_rows_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
