/*
 * The cache of keys and values: random walks beside a plain model (fuzz/kv_walk.h), and 2,000 steps
 * of a token each, appended and attended to, against the causal pass in double.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <qkv/kv.h>

#include "attn/attention_problem.h"
#include "fuzz/kv_walk.h"

static uint64_t seed = 20261202;

static void walks(void **state) {
    (void)state;
    static uint8_t bytes[400];
    int accepted = 0, lively = 0;
    for (int turn = 0; turn < (UNDER_SANITIZER ? 150 : 600); turn++) {
        rng r = { seed + (uint64_t)turn };
        for (size_t n = 0; n < sizeof bytes; n++) bytes[n] = (uint8_t)rng_next(&r);
        bytes[0] %= 4; /* mostly legal sizes */
        bytes[1] = (uint8_t)(bytes[1] % 4 + 1);
        bytes[2] = (uint8_t)(bytes[2] % 2 + 1);
        bytes[5] = (uint8_t)(bytes[5] % 2 * 2);
        bytes[6] = (uint8_t)(bytes[6] % 13 + 1);
        bytes[8] = (uint8_t)(bytes[8] % 8 == 0);
        if (turn % 4) bytes[7] = 0;
        const int n = kv_walk(bytes, sizeof bytes);
        accepted += n;
        lively += n > 8;
    }
    printf("%d steps accepted, in %d lively walks\n", accepted, lively);
    assert_true(lively > 100);
}

enum { STEPS = 2000, H = 4, G = 2, D = 64 };

/* What the cache made of k and v, as floats, for the oracle. */
static void read_back(const qkv_kv_view *view, int64_t n, float *k, float *v) {
    for (int64_t g = 0; g < G; g++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t c = 0; c < D; c++) {
                const int64_t page = view->pages[j / view->page_len], at = j % view->page_len;
                const int64_t e =
                    page * view->k_stride[0] + g * view->k_stride[1] + at * view->k_stride[2] + c;
                const int64_t row = page * view->k_scale_stride[0] + g * view->k_scale_stride[1] +
                                    at * view->k_scale_stride[2];
                const int64_t to = (g * n + j) * D + c;
                if (view->dtype == QKV_F32) {
                    k[to] = ((const float *)view->k)[e];
                    v[to] = ((const float *)view->v)[e];
                } else {
                    k[to] = (float)((const int8_t *)view->k)[e] * view->k_scale[row];
                    v[to] = (float)((const int8_t *)view->v)[e] * view->v_scale[row];
                }
            }
}

static double steps(qkv_dtype type) {
    const int64_t n = UNDER_SANITIZER ? 300 : STEPS;
    rng r = { seed + 5000 };
    problem p = problem_new(&r, 1, H, G, n, n, D, D);
    qkv_ctx *ctx = context_on(NULL, 2);
    qkv_kv_cache_options options = qkv_kv_cache_options_init();
    qkv_kv_cache *cache = NULL;
    const int64_t *len = NULL;
    qkv_kv_view view;
    double most = 0;
    options.dtype = type;
    options.n_sequences = 1;
    options.n_kv_heads = G;
    options.head_dim = options.head_dim_v = D;
    options.n_pages = (n + 63) / 64;
    assert_int_equal(qkv_kv_cache_create(ctx, &options, &cache), QKV_OK);
    assert_int_equal(qkv_kv_cache_view(ctx, cache, 0, 1, &view, &len), QKV_OK);
    for (int64_t i = 0; i < n; i++) {
        const int64_t stride[2] = { n * D, D };
        qkv_attention_desc d = p.d;
        float o[H * D], lse[H];
        assert_int_equal(qkv_kv_cache_append(ctx, cache, 0, 1, QKV_F32, p.k + i * D, stride,
                                             p.v + i * D, stride),
                         QKV_OK);
        d.flags = QKV_SET_KV_LEN;
        d.kv_len = len;
        d.len_q = 1;
        d.o_stride[1] = D;
        d.lse_stride[1] = 1;
        if (qkv_attention_decode(ctx, &d, p.q + i * D, &view, o, lse, NULL) != QKV_OK)
            fail_msg("%s", qkv_ctx_message(ctx));
        for (int h = 0; h < H; h++) {
            p.lse[h * n + i] = lse[h];
            memcpy(p.o + (h * n + i) * D, o + h * D, sizeof o / H);
        }
    }
    oracle_forward exact = oracle_forward_new(&p.d);
    const oracle_inputs in = { .q = p.q, .k = p.k, .v = p.v };
    read_back(&view, n, p.k, p.v);
    p.d.flags = QKV_SET_CAUSAL;
    oracle_forward_run(&p.d, &in, &exact);
    for (int64_t row = 0; row < H * n; row++) {
        most = fmax(most, fabs((double)p.lse[row] - exact.lse[row]) / exact.lse_bound[row]);
        for (int64_t e = row * D; e < (row + 1) * D; e++)
            most = fmax(most, fabs((double)p.o[e] - exact.o[e]) / exact.o_bound[row]);
    }
    oracle_forward_free(&exact);
    qkv_kv_cache_free(cache);
    qkv_ctx_free(ctx);
    problem_free(&p);
    assert_true(most <= 1);
    return most;
}

static void steps_of_floats(void **state) {
    (void)state;
    printf("f32: %.4f of the bound\n", steps(QKV_F32));
}

/* Against the int8 values themselves. */
static void steps_of_int8(void **state) {
    (void)state;
    printf("int8: %.4f of the bound\n", steps(QKV_I8));
}

int main(int argc, char **argv) {
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    printf("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walks),
        cmocka_unit_test(steps_of_floats),
        cmocka_unit_test(steps_of_int8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
