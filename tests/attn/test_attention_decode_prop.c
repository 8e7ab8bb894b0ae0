/*
 * qkv_attention_decode: within forward's bound of the double oracle for every pair of rules; the
 * same bits on every instruction set, for any number of threads, batch, number of queries, and
 * wherever keys lie; and 2,000 steps of one token against the causal forward pass.
 */
#include <stdio.h>

#include "attn/decode_case.h"
#include "core/half.h"

static uint64_t seed = 20261201;

typedef struct results {
    float *o, *lse;
} results;

static results results_of(const problem *p) {
    return (results){ floats(n_o(p)), floats(rows_q(p)) };
}

static void results_free(results *x) {
    free(x->o);
    free(x->lse);
}

static results run_on(const char *name, int n_threads, const decode_case *c, bool paged) {
    results x = results_of(&c->p);
    const qkv_kv_view view = decode_view(c, paged);
    qkv_ctx *ctx = context_on(name, n_threads);
    decode_or_fail(ctx, &c->p.d, c->p.q, &view, x.o, x.lse);
    qkv_ctx_free(ctx);
    return x;
}

static double share_of(const char *what, int64_t row, double x, double exact, double bound) {
    if (isnan(exact) && isnan(x)) return 0;
    if (x == exact) return 0;
    const double share = fabs(x - exact) / bound;
    if (!(share <= 1))
        fail_msg("%s of row %lld: %.9g, not %.9g; bound %.3g", what, (long long)row, x, exact,
                 bound);
    return share;
}

/* The largest share of the bound that results use. */
static double check_bounds(const problem *p, const results *x) {
    const oracle_inputs in = { .q = p->q, .k = p->k, .v = p->v };
    oracle_forward exact = oracle_forward_new(&p->d);
    double most = 0;
    oracle_forward_run(&p->d, &in, &exact);
    for (int64_t row = 0; row < rows_q(p); row++) {
        const double lse =
            share_of("lse", row, (double)x->lse[row], exact.lse[row], exact.lse_bound[row]);
        most = lse > most ? lse : most;
        for (int64_t e = row * p->d.head_dim_v; e < (row + 1) * p->d.head_dim_v; e++) {
            const double o = share_of("o", row, (double)x->o[e], exact.o[e], exact.o_bound[row]);
            most = o > most ? o : most;
        }
    }
    oracle_forward_free(&exact);
    return most;
}

static void compare(const problem *p, const char *what, const results *x, results y) {
    isa = what;
    same_bits("o", x->o, y.o, n_o(p));
    same_bits("lse", x->lse, y.lse, rows_q(p));
    results_free(&y);
}

/* One sequence of the case alone gives the rows that it has among others. */
static void compare_alone(const decode_case *c, const results *x, int64_t b) {
    problem one = c->p;
    qkv_attention_desc *d = &one.d;
    qkv_kv_view view = decode_view(c, false);
    results y = results_of(&one);
    d->n_batch = 1;
    one.q += b * d->q_stride[0];
    view.k = c->p.k + b * view.k_stride[0];
    view.v = c->p.v + b * view.v_stride[0];
    if (d->q_offsets) d->q_offsets += b;
    if (d->kv_len) d->kv_len += b;
    if (d->prefix_len) d->prefix_len += b;
    if (d->seg_q) d->seg_q += b * d->seg_q_stride;
    if (d->seg_k) d->seg_k += b * d->seg_k_stride;
    if (d->mask)
        d->mask =
            (const char *)d->mask + b * d->mask_stride[0] * (d->mask_type == QKV_MASK_F32 ? 4 : 1);
    qkv_ctx *ctx = context_on(NULL, 3);
    decode_or_fail(ctx, d, one.q, &view, y.o, y.lse);
    qkv_ctx_free(ctx);
    isa = "alone";
    same_bits("o", x->o + b * d->o_stride[0], y.o, n_o(&one));
    same_bits("lse", x->lse + b * d->lse_stride[0], y.lse, rows_q(&one));
    results_free(&y);
}

static double check_rules(rng *r, int a, int b, int64_t most) {
    decode_case c = decode_case_new(r, a, b, most);
    decode_case_rules(&c, r, a, b);
    results x = run_on("scalar", 1, &c, false);
    const double share = check_bounds(&c.p, &x);
    for (int n = 0; qkv_isa_name(n); n++) {
        compare(&c.p, qkv_isa_name(n), &x,
                run_on(qkv_isa_name(n), (int)rng_between(r, 1, 16), &c, false));
        compare(&c.p, "pages", &x, run_on(qkv_isa_name(n), (int)rng_between(r, 1, 16), &c, true));
    }
    compare_alone(&c, &x, rng_between(r, 0, DECODE_BATCH - 1));
    results_free(&x);
    decode_case_free(&c);
    return share;
}

static void pairs_of_rules(void **state) {
    (void)state;
    double most = 0;
    int pairs = 0;
    for (int a = 0; a < RULES; a++)
        for (int b = a; b < RULES; b++) {
            const bool masks = a >= RULE_BOOL && b <= RULE_ADDED && a != b; /* one mask at a time */
            if (masks) continue;
            rng r = { seed + (uint64_t)(RULES * a + b) };
            if (UNDER_SANITIZER && (a + b) % 4) continue;
            for (int turn = 0; turn < 2; turn++) {
                const double share = check_rules(&r, a, b, turn ? 2600 : 300);
                if (share > most) most = share;
            }
            pairs++;
        }
    printf("%d pairs of rules (%s ... %s), largest share of the bound %.3f\n", pairs, rule_names[0],
           rule_names[RULES - 1], most);
}

/* Shapes at the edges of rows, tiles, groups, blocks and splits. */
static void shapes(void **state) {
    (void)state;
    static const int64_t lens[] = { 1, 15, 16, 17, 511, 512, 513, 1023, 1024, 1025, 2049 };
    static const int64_t groups[] = { 1, 2, 3, 4, 5, 7, 8, 33 };
    rng r = { seed + 1000 };
    for (size_t n = 0; n < sizeof lens / sizeof *lens; n++) {
        const int64_t group = groups[n % 8], dim = n % 3 ? 32 : 65;
        decode_case c = { .p = problem_new(&r, DECODE_BATCH, group, 1, 1 + (int64_t)n % 3, lens[n],
                                           dim, 16 * (int64_t)(n % 7)) };
        decode_case_page(&c, &r);
        results x = run_on("scalar", 1, &c, false);
        check_bounds(&c.p, &x);
        for (int t = 1; t <= 16; t += 3)
            for (int m = 0; qkv_isa_name(m); m++)
                compare(&c.p, qkv_isa_name(m), &x, run_on(qkv_isa_name(m), t, &c, t % 2));
        results_free(&x);
        decode_case_free(&c);
    }
}

/* A window over a ring: what the same window sees of the whole sequence. */
static void rings(void **state) {
    (void)state;
    rng r = { seed + 2000 };
    for (int turn = 0; turn < 6; turn++) {
        const int64_t len = rng_between(&r, 200, 1500), n_q = rng_between(&r, 1, 4);
        decode_case c = { .p = problem_new(&r, 1, 4, 2, n_q, len, 32, 48) };
        qkv_attention_desc *d = &c.p.d;
        d->flags = QKV_SET_CAUSAL | QKV_SET_WINDOW | QKV_SET_Q_OFFSET;
        d->q_offset = len - n_q;
        d->window_left = rng_between(&r, 0, 150);
        d->window_right = -1;
        decode_case_page(&c, &r);
        results x = run_on(NULL, 2, &c, false);
        qkv_kv_view view = decode_view(&c, false);
        view.ring_len = 16 * ((d->window_left + n_q + 15) / 16);
        float *k = floats(2 * view.ring_len * 32), *v = floats(2 * view.ring_len * 48);
        for (int g = 0; g < 2; g++)
            for (int64_t j = 0; j < len; j++) {
                const int64_t to = g * view.ring_len + j % view.ring_len, from = g * len + j;
                memcpy(k + to * 32, c.p.k + from * 32, 32 * sizeof *k);
                memcpy(v + to * 48, c.p.v + from * 48, 48 * sizeof *v);
            }
        view.k = k;
        view.v = v;
        view.k_stride[0] = view.v_stride[0] = 0;
        view.k_stride[1] = view.ring_len * 32;
        view.v_stride[1] = view.ring_len * 48;
        results y = results_of(&c.p);
        qkv_ctx *ctx = context_on(NULL, 3);
        decode_or_fail(ctx, d, c.p.q, &view, y.o, y.lse);
        compare(&c.p, "ring", &x, y);
        d->window_left = view.ring_len; /* one more than the ring has */
        assert_int_equal(qkv_attention_decode(ctx, d, c.p.q, &view, x.o, x.lse, NULL),
                         QKV_ERR_SHAPE);
        qkv_ctx_free(ctx);
        free(k);
        free(v);
        results_free(&x);
        decode_case_free(&c);
    }
}

/* Many rows at once are what they are one by one; hidden NaN and unreadable keys do not matter. */
static void queries_are_alone(void **state) {
    (void)state;
    rng r = { seed + 3000 };
    decode_case c = { .p = problem_new(&r, 1, 6, 2, 40, 1300, 24, 40) };
    qkv_attention_desc *d = &c.p.d;
    decode_case_page(&c, &r);
    d->flags = QKV_SET_CAUSAL | QKV_SET_Q_OFFSET;
    d->q_offset = 1210;
    for (int64_t j = 1250; j < 1300; j++) /* no query sees it */
        for (int g = 0; g < 2; g++) c.p.k[(g * 1300 + j) * 24] = c.p.v[(g * 1300 + j) * 40] = NAN;
    results x = run_on(NULL, 3, &c, false);
    const qkv_kv_view view = decode_view(&c, false);
    qkv_ctx *ctx = context_on(NULL, 2);
    for (int64_t i = 0; i < 40; i++) {
        float o[6 * 40], lse[6];
        qkv_attention_desc one = *d;
        one.len_q = 1;
        one.q_offset += i;
        one.o_stride[1] = 40;
        one.lse_stride[1] = 1;
        decode_or_fail(ctx, &one, c.p.q + i * 24, &view, o, lse);
        isa = "query alone";
        for (int h = 0; h < 6; h++) {
            assert_true(lse[h] == lse[h]);
            same_bits("o", x.o + (h * 40 + i) * 40, o + h * 40, 40);
            same_bits("lse", x.lse + h * 40 + i, lse + h, 1);
        }
    }
    qkv_ctx_free(ctx);
    results_free(&x);
    decode_case_free(&c);
}

/* ---- Types ----------------------------------------------------------------------------------- */

static const int type_bytes[] = { 4, 2, 2, 1 };

/* x in a type, with scales of rows for int8; x becomes exactly what is stored. */
static void *stored_as(qkv_dtype type, rng *r, float *x, int64_t rows, int64_t dim, float *scale) {
    char *y = malloc((size_t)(rows * dim * type_bytes[type]) + 1);
    assert_non_null(y);
    for (int64_t row = 0; row < rows; row++) {
        scale[row] = ldexpf(1, (int)rng_between(r, -8, -3)); /* products with it are exact */
        for (int64_t e = row * dim; e < (row + 1) * dim; e++) {
            uint16_t half = 0;
            if (type == QKV_BF16) half = qkvi_bf16_of_f32(x[e]), x[e] = qkvi_f32_of_bf16(half);
            if (type == QKV_F16) half = qkvi_f16_of_f32(x[e]), x[e] = qkvi_f32_of_f16(half);
            if (type == QKV_BF16 || type == QKV_F16) memcpy(y + 2 * e, &half, sizeof half);
            if (type == QKV_F32) memcpy(y + 4 * e, &x[e], sizeof *x);
            if (type != QKV_I8) continue;
            const signed char byte = (signed char)rng_between(r, -128, 127);
            memcpy(y + e, &byte, 1);
            x[e] = (float)byte * scale[row];
        }
    }
    return y;
}

/* A stored type gives the bits of the floats that it stands for, and q and o theirs. */
static void types_are_their_floats(void **state) {
    (void)state;
    static const int rules[] = { RULE_CAUSAL, RULE_BOOL, RULE_ALIBI, RULE_KV_LEN, RULE_WINDOW };
    for (int turn = 0; turn < 20; turn++) {
        rng r = { seed + 5000 + (uint64_t)turn };
        const qkv_dtype type = (qkv_dtype)(turn % 4), own = (qkv_dtype)(turn / 2 % 3);
        decode_case c = decode_case_new(&r, RULE_GQA, RULE_DV, 1100);
        qkv_attention_desc *d = &c.p.d;
        decode_case_rule(&c, &r, rules[turn % 5]);
        float *scales = floats(2 * rows_k(&c.p)), *unused = floats(rows_q(&c.p));
        void *k = stored_as(type, &r, c.p.k, rows_k(&c.p), d->head_dim, scales);
        void *v = stored_as(type, &r, c.p.v, rows_k(&c.p), d->head_dim_v, scales + rows_k(&c.p));
        void *q = stored_as(own, &r, c.p.q, rows_q(&c.p), d->head_dim, unused);
        results x = run_on("scalar", 1, &c, false);
        qkv_kv_view view;
        qkv_kv_view_contiguous(&view, d, type);
        view.k = k;
        view.v = v;
        view.k_scale = scales;
        view.v_scale = scales + rows_k(&c.p);
        d->dtype = own;
        for (int n = 0; qkv_isa_name(n); n++)
            for (int to_own = 0; to_own < 2; to_own++) {
                float *lse = floats(rows_q(&c.p)), *o = floats(n_o(&c.p));
                qkv_ctx *ctx = context_on(qkv_isa_name(n), 1 + turn % 4);
                d->flags &= ~(uint32_t)QKV_SET_O_DTYPE;
                if (!to_own) d->flags |= QKV_SET_O_DTYPE;
                d->o_dtype = QKV_F32;
                if (qkv_attention_decode(ctx, d, q, &view, o, lse, NULL) != QKV_OK)
                    fail_msg("%s", qkv_ctx_message(ctx));
                qkv_ctx_free(ctx);
                isa = qkv_isa_name(n);
                same_bits("lse", x.lse, lse, rows_q(&c.p));
                if (!to_own || own == QKV_F32) same_bits("o", x.o, o, n_o(&c.p));
                for (int64_t e = 0; to_own && own != QKV_F32 && e < n_o(&c.p); e++) {
                    uint16_t half;
                    memcpy(&half, (char *)o + 2 * e, sizeof half);
                    assert_int_equal(half, own == QKV_BF16 ? qkvi_bf16_of_f32(x.o[e])
                                                           : qkvi_f16_of_f32(x.o[e]));
                }
                free(lse);
                free(o);
            }
        void *const own_arrays[] = { k, v, q, scales, unused };
        for (int n = 0; n < 5; n++) free(own_arrays[n]);
        results_free(&x);
        decode_case_free(&c);
    }
}

/* One token after the other against the causal forward pass over all of them. */
static void steps_are_the_causal_pass(void **state) {
    (void)state;
    enum { STEPS = 2000, H = 4, G = 2, D = 64 };
    const int64_t n = UNDER_SANITIZER ? 600 : STEPS;
    rng r = { seed + 4000 };
    problem p = problem_new(&r, 1, H, G, n, n, D, D);
    oracle_inputs in = { .q = p.q, .k = p.k, .v = p.v };
    oracle_forward exact = oracle_forward_new(&p.d);
    double most = 0, apart = 0;
    qkv_ctx *ctx = context_on(NULL, 2);
    p.d.flags = QKV_SET_CAUSAL;
    assert_int_equal(qkv_attention_forward(ctx, &p.d, p.q, p.k, p.v, p.o, p.lse, NULL), QKV_OK);
    oracle_forward_run(&p.d, &in, &exact);
    qkv_kv_view view;
    qkv_kv_view_contiguous(&view, &p.d, QKV_F32);
    view.k = p.k;
    view.v = p.v;
    for (int64_t i = 0; i < n; i++) {
        const int64_t len = i + 1;
        float o[H * D], lse[H];
        qkv_attention_desc d = p.d;
        d.flags = QKV_SET_KV_LEN;
        d.kv_len = &len;
        d.len_q = 1;
        d.o_stride[1] = D;
        d.lse_stride[1] = 1;
        decode_or_fail(ctx, &d, p.q + i * D, &view, o, lse);
        for (int h = 0; h < H; h++) {
            const int64_t row = h * n + i;
            double share =
                share_of("lse", row, (double)lse[h], exact.lse[row], exact.lse_bound[row]);
            most = share > most ? share : most;
            for (int c = 0; c < D; c++) {
                const double x = (double)o[h * D + c], bound = exact.o_bound[row];
                share = share_of("o", row, x, exact.o[row * D + c], bound);
                most = share > most ? share : most;
                share = share_of("o", row, x, (double)p.o[row * D + c], bound);
                apart = share > apart ? share : apart;
            }
        }
    }
    printf("%lld steps: %.4f of the bound from the exact result, %.4f of it from forward's\n",
           (long long)n, most, apart);
    oracle_forward_free(&exact);
    qkv_ctx_free(ctx);
    problem_free(&p);
}

/* A row without a key: lse is the sink itself, as in forward, whatever the sink is. */
static void sink_of_no_key(void **state) {
    static const float sinks[] = { -61.9228134f, 100.1f, 3e38f, INFINITY, NAN, -INFINITY };
    enum { H = sizeof sinks / sizeof *sinks, D = 3, L = 5 };
    (void)state;
    for (int n = 0; qkv_isa_name(n); n++) {
        rng r = { seed + 5000 };
        const int64_t none = 0;
        problem p = problem_new(&r, 1, H, H, 1, L, D, D);
        qkv_ctx *ctx = context_on(qkv_isa_name(n), 1);
        results x = results_of(&p);
        qkv_kv_view view;
        p.d.flags = QKV_SET_KV_LEN | QKV_SET_SINKS;
        p.d.kv_len = &none;
        p.d.sinks = sinks;
        qkv_kv_view_contiguous(&view, &p.d, QKV_F32);
        view.k = p.k;
        view.v = p.v;
        decode_or_fail(ctx, &p.d, p.q, &view, x.o, x.lse);
        assert_int_equal(qkv_attention_forward(ctx, &p.d, p.q, p.k, p.v, p.o, p.lse, NULL), QKV_OK);
        assert_memory_equal(x.o, p.o, sizeof(float) * H * D);
        for (int h = 0; h < H; h++) {
            assert_true(x.lse[h] == sinks[h] || (isnan(x.lse[h]) && isnan(sinks[h])));
            assert_true(p.lse[h] == sinks[h] || (isnan(p.lse[h]) && isnan(sinks[h])));
        }
        qkv_ctx_free(ctx);
        results_free(&x);
        problem_free(&p);
    }
}

int main(int argc, char **argv) {
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    printf("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_of_rules),
        cmocka_unit_test(shapes),
        cmocka_unit_test(rings),
        cmocka_unit_test(queries_are_alone),
        cmocka_unit_test(types_are_their_floats),
        cmocka_unit_test(steps_are_the_causal_pass),
        cmocka_unit_test(sink_of_no_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
