/*
 * Sentences: at most 16 queries and keys take a kernel of their own, and an explicit mask that
 * hides nothing takes them back to the general one. Both must give the same bits, whatever the
 * lengths, rules, types and values, and neither may read a key beyond a batch's length.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check/check.h"

enum { B = 2, H = 2, MOST = 16, MOST_DIM = 96, N = B * H * MOST * MOST_DIM };

typedef struct arrays {
    float q[N], k[N], v[N], o[N], lse[B * H * MOST];
} arrays;

static uint64_t seed = 20261121;

static void fill(rng *r, float *x, float scale) {
    for (int64_t i = 0; i < N; i++) x[i] = scale * rng_normal(r);
}

/* One element in forty is a value that arithmetic does not like. */
static void spoil(rng *r, float *x) {
    static const float values[] = { NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-42f, -0.0f };
    for (int64_t i = 0; i < N; i++)
        if (rng_chance(r, 40)) x[i] = values[rng_between(r, 0, 6)];
}

static void choose_rules(rng *r, qkv_attention_desc *d, int64_t kv_len[B]) {
    for (int b = 0; b < B; b++) kv_len[b] = rng_between(r, 0, d->len_k);
    if (rng_chance(r, 50)) d->flags |= QKV_SET_CAUSAL;
    if (rng_chance(r, 30)) {
        d->flags |= QKV_SET_Q_OFFSET;
        d->q_offset = rng_between(r, -4, 8);
    }
    if (rng_chance(r, 30)) {
        d->flags |= QKV_SET_WINDOW;
        d->window_left = rng_between(r, -1, 6);
        d->window_right = rng_between(r, -1, 6);
    }
    if (rng_chance(r, 30)) {
        d->flags |= QKV_SET_KV_LEN;
        d->kv_len = kv_len;
    }
    if (rng_chance(r, 20)) {
        d->flags |= QKV_SET_SCALE;
        d->scale = rng_chance(r, 50) ? -0.3f : 1000;
    }
}

/* The types, and the numbers as those. */
static void choose_types(rng *r, qkv_attention_desc *d, arrays *a) {
    float *const x[] = { a->q, a->k, a->v };
    d->dtype = (qkv_dtype)rng_between(r, QKV_F32, QKV_F16);
    if (d->dtype == QKV_BF16 && rng_chance(r, 70))
        d->arithmetic = rng_chance(r, 70) ? QKV_CLASS_DP : QKV_CLASS_AMX;
    if (d->dtype == QKV_F32) return;
    if (rng_chance(r, 50)) d->flags |= QKV_SET_O_DTYPE; /* f32 */
    for (int n = 0; n < 3; n++) /* in place: element i is written where i / 2 was read */
        for (int64_t i = 0; i < N; i++) element_set(x[n], (elem_type)d->dtype, i, (double)x[n][i]);
}

static void forward(qkv_ctx *ctx, const qkv_attention_desc *d, arrays *a) {
    memset(a->o, 0x55, sizeof a->o);
    memset(a->lse, 0x55, sizeof a->lse);
    if (qkv_attention_forward(ctx, d, a->q, a->k, a->v, a->o, a->lse, NULL) != QKV_OK)
        fail_msg("%s", qkv_ctx_message(ctx));
}

static void one_case(rng *r, qkv_ctx *ctx, arrays *a, arrays *other) {
    static const unsigned char everything = 1;
    const int64_t dim = 16 * rng_between(r, 1, 6), dim_v = 32 * rng_between(r, 1, 3);
    int64_t kv_len[B];
    qkv_attention_desc d;
    qkv_attention_desc_contiguous(&d, B, H, rng_chance(r, 50) ? H : 1, rng_between(r, 1, MOST),
                                  rng_between(r, 1, MOST), dim, dim_v);
    choose_rules(r, &d, kv_len);
    const float scale = rng_chance(r, 20) ? 30 : 1;
    fill(r, a->q, scale);
    fill(r, a->k, scale);
    fill(r, a->v, scale);
    if (rng_chance(r, 20)) spoil(r, rng_chance(r, 50) ? a->v : rng_chance(r, 50) ? a->q : a->k);
    choose_types(r, &d, a);
    *other = *a;
    forward(ctx, &d, a);
    d.flags |= QKV_SET_MASK;
    d.mask_type = QKV_MASK_BOOL;
    d.mask = &everything;
    memset(d.mask_stride, 0, sizeof d.mask_stride);
    forward(ctx, &d, other);
    const int64_t o_at =
        first_difference_of(element_of_o(&d), a->o, other->o, (size_t)(B * H * d.len_q * dim_v));
    const int64_t lse_at = first_difference(a->lse, other->lse, (size_t)(B * H * d.len_q));
    if (o_at >= 0 || lse_at >= 0)
        fail_msg("%s, %s, class %d: o differs at %lld, lse at %lld", qkv_ctx_isa(ctx),
                 element_name((elem_type)d.dtype), (int)d.arithmetic, (long long)o_at,
                 (long long)lse_at);
}

static void same_bits_as_the_general_path(void **state) {
    arrays *a = malloc(sizeof *a), *other = malloc(sizeof *other);
    (void)state;
    assert_non_null(a);
    assert_non_null(other);
    for (int n = 0; qkv_isa_name(n); n++) {
        rng r = { seed };
        qkv_ctx *ctx = NULL;
        qkv_ctx_options options = qkv_ctx_options_init();
        options.isa = qkv_isa_name(n);
        assert_int_equal(qkv_ctx_create(&options, &ctx, NULL), QKV_OK);
        for (int turn = 0; turn < 1000; turn++) one_case(&r, ctx, a, other);
        qkv_ctx_free(ctx);
    }
    free(a);
    free(other);
}

int main(int argc, char **argv) {
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    printf("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = { cmocka_unit_test(same_bits_as_the_general_path) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
