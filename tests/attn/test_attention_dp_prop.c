/*
 * Classes dp and amx have one definition each, the order of docs/numerics.md: written out here in
 * plain C for problems without a mask, and compared bit by bit. Then problems with every feature
 * (check/recipe.h) on every instruction set with 1 to 16 threads against the scalar build, whose
 * bounds `check` has, and values that are special.
 */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attn/every_isa.h"
#include "check/outputs.h"
#include "core/half.h"

enum { CASES = UNDER_SANITIZER ? 50 : 150 };

static qkv_class class; /* that is tested now */

/* ---- Arrays of bf16 -------------------------------------------------------------------------- */

static uint16_t *halves(int64_t n) { return malloc((size_t)n * sizeof(uint16_t) + 1); }

static uint16_t *rounded(rng *r, int64_t n) {
    uint16_t *x = halves(n);
    for (int64_t i = 0; i < n; i++) x[i] = qkvi_bf16_of_f32(rng_normal(r));
    return x;
}

static float flushed(uint16_t x) { return x & 0x7F80 ? qkvi_f32_of_bf16(x) : x >> 15 ? -0.0f : 0; }

static void forward(qkv_ctx *ctx, const qkv_attention_desc *d, const void *q, const void *k,
                    const void *v, void *o, float *lse) {
    if (qkv_attention_forward(ctx, d, q, k, v, o, lse, NULL) != QKV_OK)
        fail_msg("%s", qkv_ctx_message(ctx));
}

static qkv_attention_desc dense(int64_t len_q, int64_t len_k, int64_t dim, int64_t dim_v) {
    qkv_attention_desc d;
    qkv_attention_desc_contiguous(&d, 1, 1, 1, len_q, len_k, dim, dim_v);
    d.dtype = QKV_BF16;
    d.o_dtype = QKV_F32;
    d.flags |= QKV_SET_O_DTYPE;
    d.arithmetic = class;
    return d;
}

/* ---- The order, in plain C ------------------------------------------------------------------- */

static float flush(float x) { return fabsf(x) < FLT_MIN ? copysignf(0, x) : x; }

/* One step; the values here come nowhere near 2^-126, so that flushing after fmaf is exact. */
static float step(float c, const uint16_t a[2], const uint16_t b[2]) {
    c = flush(fmaf(flushed(a[1]), flushed(b[1]), c));
    return flush(fmaf(flushed(a[0]), flushed(b[0]), c));
}

/*
 * The product of n elements, b_step apart in b. Class dp: a step for each pair, an odd n has a zero
 * as its last partner. Class amx: 32 at a time, their even and their odd elements apart.
 */
static float product(int64_t n, const uint16_t *a, const uint16_t *b, int64_t b_step) {
    float c = 0;
    for (int64_t at = 0; class == QKV_CLASS_DP && at < n; at += 2) {
        const bool both = at + 1 < n;
        const uint16_t x[2] = { a[at], both ? a[at + 1] : 0 };
        const uint16_t y[2] = { b[at * b_step], both ? b[(at + 1) * b_step] : 0 };
        c = step(c, x, y);
    }
    for (int64_t at = 0; class == QKV_CLASS_AMX && at < n; at += 32) {
        float sums[2] = { 0, 0 };
        for (int64_t i = at; i < n && i < at + 32; i++)
            sums[i % 2] = flush(fmaf(flushed(a[i]), flushed(b[i * b_step]), sums[i % 2]));
        c = flush(c + flush(sums[0] + sums[1]));
    }
    return c;
}

static float power(float x, const float *terms, int n) {
    if (x < -126) return 0;
    const float whole = nearbyintf(x), f = x - whole;
    float p = terms[0];
    for (int t = 1; t < n; t++) p = fmaf(p, f, terms[t]);
    return ldexpf(p, (int)whole);
}

static float exp2_5(float x) {
    static const float terms[] = { 1.326472731e-03f, 9.671512991e-03f, 5.550733581e-02f,
                                   2.402224243e-01f, 6.931470037e-01f, 1 };
    return power(x, terms, 6);
}

static float exp2_6(float x) {
    static const float terms[] = { 1.534580806e-04f,
                                   1.339993090e-03f,
                                   9.618489072e-03f,
                                   5.550328642e-02f,
                                   2.402264625e-01f,
                                   6.931471825e-01f,
                                   1 };
    return power(x, terms, 7);
}

/* 32 partial sums of up to 256 weights, and their tree. */
static float sum_of(const float *p, int n) {
    float sum[32] = { 0 };
    for (int j = 0; j < n; j++) sum[j % 32] += p[j];
    for (int w = 16; w; w /= 2)
        for (int e = 0; e < w; e++) sum[e] += sum[e + w];
    return sum[0];
}

/* 16 partial sums of pairs of rounded weights, and their tree. */
static float sum_of_rounded(const float *p, int n) {
    static const uint16_t ones[2] = { 0x3F80, 0x3F80 };
    float sum[16] = { 0 };
    for (int j = 0; j < n; j += 2) {
        const uint16_t a[2] = { qkvi_bf16_of_f32(p[j]),
                                j + 1 < n ? qkvi_bf16_of_f32(p[j + 1]) : 0 };
        sum[j / 2 % 16] = step(sum[j / 2 % 16], a, ones);
    }
    for (int w = 8; w; w /= 2)
        for (int e = 0; e < w; e++) sum[e] += sum[e + w];
    return sum[0];
}

typedef struct row {
    float m, l, l_rounded, *o;
} row;

/* Keys from key0 on: at most 256. */
static void add_block(const qkv_attention_desc *d, float scale, const uint16_t *q,
                      const uint16_t *k, const uint16_t *v, int64_t key0, row *r) {
    const int n = d->len_k - key0 < 256 ? (int)(d->len_k - key0) : 256;
    const float c0 = fabsf(scale) * 1.44269504f;
    float s[256], p[256], top = -INFINITY;
    uint16_t half[256], signed_q[256];
    for (int64_t c = 0; c < d->head_dim; c++)
        signed_q[c] = (uint16_t)(scale < 0 ? q[c] ^ 0x8000 : q[c]);
    for (int j = 0; j < n; j++) {
        s[j] = product(d->head_dim, signed_q, k + (key0 + j) * d->head_dim, 1);
        if (s[j] > top) top = s[j];
    }
    const float u = top * c0, before = r->m;
    float alpha = 1;
    if (u > before + 8) {
        r->m = u;
        alpha = before == -INFINITY ? 0 : exp2_6(before - u);
    }
    for (int j = 0; j < n; j++) p[j] = exp2_5(fmaf(s[j], c0, -r->m));
    r->l = fmaf(r->l, alpha, sum_of(p, n));
    r->l_rounded = fmaf(r->l_rounded, alpha, sum_of_rounded(p, n));
    for (int j = 0; j < n; j++) half[j] = qkvi_bf16_of_f32(p[j]);
    for (int64_t c = 0; c < d->head_dim_v; c++) {
        const float sum = product(n, half, v + key0 * d->head_dim_v + c, d->head_dim_v);
        r->o[c] = fmaf(r->o[c], alpha, sum);
    }
}

static void the_order_is_the_written_one(void) {
    static const struct {
        int64_t len_q, len_k, dim, dim_v;
        float scale;
    } shapes[] = { { 3, 1, 1, 1, 1 },          { 20, 33, 7, 5, -0.5f }, { 5, 300, 64, 64, 0.125f },
                   { 37, 771, 33, 70, 3 },     { 97, 40, 128, 32, 1 },  { 13, 513, 2, 31, -20 },
                   { 1, 2000, 100, 3, 0.25f }, { 30, 256, 65, 128, 1 } };
    for (size_t n = 0; n < sizeof shapes / sizeof *shapes; n++) {
        rng r = { n + 1 };
        qkv_attention_desc d =
            dense(shapes[n].len_q, shapes[n].len_k, shapes[n].dim, shapes[n].dim_v);
        d.flags |= QKV_SET_SCALE;
        d.scale = shapes[n].scale;
        uint16_t *q = rounded(&r, d.len_q * d.head_dim), *k = rounded(&r, d.len_k * d.head_dim);
        uint16_t *v = rounded(&r, d.len_k * d.head_dim_v);
        float *o = floats(d.len_q * d.head_dim_v), *want = floats(d.len_q * d.head_dim_v);
        float *lse = floats(d.len_q), *l = floats(d.len_q), ln2 = 0.693147181f;
        qkv_ctx *ctx = context_on(isa, 1 + (int)n % 4);
        forward(ctx, &d, q, k, v, o, lse);
        for (int64_t i = 0; i < d.len_q; i++) {
            row at = { -INFINITY, 0, 0, want + i * d.head_dim_v };
            memset(at.o, 0, (size_t)d.head_dim_v * sizeof *at.o);
            for (int64_t key0 = 0; key0 < d.len_k; key0 += 256)
                add_block(&d, d.scale, q + i * d.head_dim, k, v, key0, &at);
            for (int64_t c = 0; c < d.head_dim_v; c++) at.o[c] = at.o[c] / at.l_rounded + 0;
            /* log2 is ours, and has its own tests: what went into it is l */
            l[i] = at.m + log2f(at.l);
            assert_true(fabsf(lse[i] - l[i] * ln2) <= 4e-7f * fmaxf(fabsf(l[i]), 1));
        }
        same_bits("o", o, want, d.len_q * d.head_dim_v);
        qkv_ctx_free(ctx);
        free(q), free(k), free(v), free(o), free(want), free(lse), free(l);
    }
}

/* ---- Accuracy -------------------------------------------------------------------------------- */

/*
 * A row by the naive algorithm in bf16: scores and sums in f32, weights rounded to bf16, divided by
 * their sum before that or after. And exactly, in double.
 */
static void naive_row(const qkv_attention_desc *d, const uint16_t *q, const uint16_t *k,
                      const uint16_t *v, float *before, float *after, double *exact) {
    const float scale = d->flags & QKV_SET_SCALE ? d->scale : 1 / sqrtf((float)d->head_dim);
    float *s = floats(d->len_k), top = -INFINITY, l = 0;
    double *t = malloc((size_t)d->len_k * sizeof *t), top_exact = -INFINITY, l_exact = 0;
    for (int64_t j = 0; j < d->len_k; j++) {
        s[j] = 0, t[j] = 0;
        for (int64_t c = 0; c < d->head_dim; c++) {
            const float x = flushed(q[c]), y = flushed(k[j * d->head_dim + c]);
            s[j] += x * y;
            t[j] += (double)x * (double)y;
        }
        s[j] *= scale, t[j] *= (double)scale;
        top = fmaxf(top, s[j]), top_exact = fmax(top_exact, t[j]);
    }
    for (int64_t j = 0; j < d->len_k; j++) {
        l += s[j] = expf(s[j] - top);
        l_exact += t[j] = exp(t[j] - top_exact);
    }
    for (int64_t c = 0; c < d->head_dim_v; c++) {
        before[c] = after[c] = 0, exact[c] = 0;
        for (int64_t j = 0; j < d->len_k; j++) {
            const float y = flushed(v[j * d->head_dim_v + c]);
            before[c] += qkvi_f32_of_bf16(qkvi_bf16_of_f32(s[j] / l)) * y;
            after[c] += qkvi_f32_of_bf16(qkvi_bf16_of_f32(s[j])) * y;
            exact[c] += t[j] * (double)y;
        }
        after[c] /= l, exact[c] /= l_exact;
    }
    free(s), free(t);
}

/*
 * The largest error is at most twice the naive algorithm's, and a unit in the last place of o
 * (2^-7 of it in bf16).
 */
static void errors_are_those_of_the_naive_algorithm(void) {
    rng r = { 0xACC };
    double share = 0;
    for (int n = 0; n < 40; n++) {
        if (!takes_turn(isa_at, n)) continue;
        const bool o_floats = n % 2;
        qkv_attention_desc d = dense(rng_between(&r, 1, 20), rng_between(&r, 1, n % 4 ? 80 : 900),
                                     rng_between(&r, 1, 130), rng_between(&r, 1, 70));
        if (!o_floats) d.o_dtype = QKV_BF16;
        if (n % 3 == 0) { /* from nearly equal weights to one that is nearly all */
            d.flags |= QKV_SET_SCALE;
            d.scale = ldexpf(1, (int)rng_between(&r, -8, 3));
        }
        const int64_t n_o = d.len_q * d.head_dim_v;
        uint16_t *q = rounded(&r, d.len_q * d.head_dim), *k = rounded(&r, d.len_k * d.head_dim);
        uint16_t *v = rounded(&r, d.len_k * d.head_dim_v), *half = halves(n_o);
        float *o = floats(n_o), *before = floats(n_o), *after = floats(n_o);
        double *exact = malloc((size_t)n_o * sizeof *exact), ours = 0, naive = 0, top = 0;
        qkv_ctx *ctx = context_on(isa, 1);
        forward(ctx, &d, q, k, v, o_floats ? (void *)o : half, NULL);
        for (int64_t i = 0; i < d.len_q; i++)
            naive_row(&d, q + i * d.head_dim, k, v, before + i * d.head_dim_v,
                      after + i * d.head_dim_v, exact + i * d.head_dim_v);
        for (int64_t e = 0; e < n_o; e++) {
            if (!o_floats) {
                o[e] = qkvi_f32_of_bf16(half[e]);
                before[e] = qkvi_f32_of_bf16(qkvi_bf16_of_f32(before[e]));
                after[e] = qkvi_f32_of_bf16(qkvi_bf16_of_f32(after[e]));
            }
            ours = fmax(ours, fabs((double)o[e] - exact[e]));
            naive = fmax(
                naive, fmax(fabs((double)before[e] - exact[e]), fabs((double)after[e] - exact[e])));
            top = fmax(top, fabs(exact[e]));
        }
        const double bound = 2 * naive + top * (o_floats ? 0x1p-23 : 0x1p-7);
        share = fmax(share, ours / bound);
        if (ours > bound) fail_msg("%s, problem %d: error %.3g, bound %.3g", isa, n, ours, bound);
        qkv_ctx_free(ctx);
        free(q), free(k), free(v), free(half), free(o), free(before), free(after), free(exact);
    }
    if (strcmp(isa, "scalar") == 0) printf("largest share of the bound: %.2f\n", share);
}

/*
 * One key of weight 1, and pairs whose weights lie on either side of the middle between two numbers
 * of bf16, with values that cancel: nearly 2^-8 of the largest value is left, which is the bound.
 */
static void the_bound_is_reached(void) {
    enum { N_PAIRS = 63, KEYS = 1 + 2 * N_PAIRS };
    qkv_attention_desc d = dense(1, KEYS, 2, 1);
    d.flags |= QKV_SET_SCALE;
    d.scale = logf(2) - logf(1 + 0x1p-8f);
    const uint16_t one = qkvi_bf16_of_f32(1), minus_one = one | 0x8000;
    const uint16_t q[2] = { one, qkvi_bf16_of_f32(0x1p-12f) };
    uint16_t k[KEYS][2] = { { 0, 0 } }, v[KEYS] = { 0 };
    for (int j = 1; j < KEYS; j++) {
        k[j][0] = minus_one;
        k[j][1] = v[j] = j % 2 ? one : minus_one;
    }
    float o = 0, before, after;
    double exact;
    naive_row(&d, q, *k, v, &before, &after, &exact);
    qkv_ctx *ctx = context_on(isa, 1);
    forward(ctx, &d, q, k, v, &o, NULL);
    qkv_ctx_free(ctx);
    const double error = fabs((double)o - exact);
    if (error < 0.9 * 0x1p-8 || error > 0x1p-8) fail_msg("%s: error %.9g", isa, error);
}

/* ---- Random problems ------------------------------------------------------------------------- */

static outputs outputs_of(const check_case *c, const char *on, int n_threads) {
    outputs x = outputs_new(c);
    qkv_ctx *ctx = context_on(on, n_threads);
    forward(ctx, &c->d, c->q.data, c->k.data, c->v.data, x.o.data, x.lse.data);
    qkv_ctx_free(ctx);
    return x;
}

/* NaNs by position. */
static void same_elements(const check_case *c, const outputs *x, const outputs *y, int n) {
    const elem_type type = outputs_element(&c->d, n);
    const guarded *a = outputs_at(x, n), *b = outputs_at(y, n);
    if (memcmp(a->data, b->data, a->bytes) == 0) return;
    for (size_t i = 0; i < a->bytes / element_bytes(type); i++) {
        const double p = element_get(a->data, type, (int64_t)i);
        const double q = element_get(b->data, type, (int64_t)i);
        if ((p != q || signbit(p) != signbit(q)) && !(isnan(p) && isnan(q)))
            fail_msg("%s, output %d[%zu]: %.9g, and %.9g on scalar\n%s", isa, n, i, p, q, c->text);
    }
}

/*
 * With every option: the bits of the scalar build for any number of threads. `check` has the
 * bounds.
 */
static void random_problems_keep_their_bits(void) {
    rng r = { 0xD9 };
    if (strcmp(isa, "scalar") == 0) printf("seed %" PRIu64 "\n", r.state);
    for (int n = 0; n < CASES; n++) {
        if (!takes_turn(isa_at, n)) continue;
        check_case c;
        recipe x = recipe_random(&r);
        for (x.type = 0; check_types[x.type].arithmetic != class;) x.type++;
        x.o_f32 = n % 3 != 0;
        case_make_of(&c, &x, rng_next(&r));
        outputs want = outputs_of(&c, "scalar", 1);
        outputs got = outputs_of(&c, isa, (int)rng_between(&r, 1, 16));
        for (int output = 0; output < 2; output++) same_elements(&c, &got, &want, output);
        const char *const spoilt = outputs_spoilt(&c, &got);
        if (spoilt) fail_msg("%s was written outside of its rows\n%s", spoilt, c.text);
        outputs_free(&got);
        outputs_free(&want);
        case_free(&c);
    }
}

/* ---- Values that are special ----------------------------------------------------------------- */

enum { LEN = 300, DIM = 33, DIM_V = 40 };

typedef struct arrays {
    qkv_attention_desc d;
    uint16_t *q, *k, *v;
    float *o, *lse;
} arrays;

static arrays arrays_new(uint64_t seed) {
    rng r = { seed };
    arrays x = { dense(LEN, LEN, DIM, DIM_V), rounded(&r, LEN * DIM), rounded(&r, LEN * DIM),
                 rounded(&r, LEN * DIM_V),    floats(LEN * DIM_V),    floats(LEN) };
    return x;
}

static void arrays_free(arrays *x) { free(x->q), free(x->k), free(x->v), free(x->o), free(x->lse); }

static void arrays_run(arrays *x) {
    qkv_ctx *ctx = context_on(isa, 3);
    forward(ctx, &x->d, x->q, x->k, x->v, x->o, x->lse);
    qkv_ctx_free(ctx);
}

static void same_results(const arrays *x, const arrays *y, int64_t rows) {
    same_bits("o", x->o, y->o, rows * DIM_V);
    same_bits("lse", x->lse, y->lse, rows);
}

/* A row with one visible key has its v, whatever the score: also the first of a causal block. */
static void one_key_gives_its_value(void) {
    arrays x = arrays_new(1);
    x.d.flags |= QKV_SET_CAUSAL | QKV_SET_WINDOW;
    x.d.window_left = 0;
    arrays_run(&x);
    for (int64_t e = 0; e < LEN * DIM_V; e++) assert_true(x.o[e] == qkvi_f32_of_bf16(x.v[e]));
    arrays_free(&x);
}

static void subnormal_inputs_are_zeros(void) {
    arrays x = arrays_new(2), y = arrays_new(2);
    uint16_t *const xs[] = { x.q, x.k, x.v }, *const ys[] = { y.q, y.k, y.v };
    for (int a = 0; a < 3; a++)
        for (int64_t e = a; e < LEN * DIM; e += 7) {
            xs[a][e] = (uint16_t)((e % 2 ? 0x8000 : 0) | (1 + e % 0x7F));
            ys[a][e] = xs[a][e] & 0x8000;
        }
    arrays_run(&x);
    arrays_run(&y);
    same_results(&x, &y, LEN);
    arrays_free(&x);
    arrays_free(&y);
}

/* Keys that a row may not see: not numbers in K, in V, in both halves of a pair and in one. */
static void hidden_keys_may_hold_anything(void) {
    static const uint16_t bad[] = { 0x7F80, 0xFF80, 0x7FC0, 0x7F7F };
    for (int64_t from = 1; from < LEN; from += 37) {
        arrays x = arrays_new(3), y = arrays_new(3);
        x.d.flags |= QKV_SET_CAUSAL;
        y.d.flags |= QKV_SET_CAUSAL;
        for (int64_t e = from * DIM; e < LEN * DIM; e++) x.k[e] = bad[e % 4];
        for (int64_t e = from * DIM_V; e < LEN * DIM_V; e++) x.v[e] = bad[(e + from) % 4];
        arrays_run(&x);
        arrays_run(&y);
        same_results(&x, &y, from);
        for (int64_t e = from * DIM_V; e < LEN * DIM_V; e++) assert_true(isnan(x.o[e] - x.o[e]));
        arrays_free(&x);
        arrays_free(&y);
    }
}

/* Without a bound of its own: equal scores, one that dominates, scores that overflow. */
static void extreme_scores_mean_what_they_say(void) {
    arrays x = arrays_new(4);
    memset(x.k, 0, LEN * DIM * sizeof *x.k); /* all weights equal: o is the mean */
    arrays_run(&x);
    for (int64_t c = 0; c < DIM_V; c++) {
        double mean = 0;
        for (int64_t j = 0; j < LEN; j++)
            mean += (double)qkvi_f32_of_bf16(x.v[j * DIM_V + c]) / LEN;
        assert_true(fabs((double)x.o[c] - mean) < 1e-6);
    }
    for (int64_t e = 0; e < LEN * DIM; e++) x.q[e] = 0x7F00; /* 2^127 */
    x.k[7 * DIM] = 0x4080;                                   /* 4 2^127: +inf at key 7 */
    arrays_run(&x);
    for (int64_t e = 0; e < LEN * DIM_V; e++) assert_true(isnan(x.o[e]));
    x.k[7 * DIM] = 0xC080; /* -inf: weight 0 */
    arrays_run(&x);
    for (int64_t c = 0; c < DIM_V; c++) {
        double mean = 0;
        for (int64_t j = 0; j < LEN; j++)
            mean += j == 7 ? 0 : (double)qkvi_f32_of_bf16(x.v[j * DIM_V + c]) / (LEN - 1);
        assert_true(fabs((double)x.o[c] - mean) < 1e-6);
    }
    x.k[7 * DIM] = 0x3F00; /* 2^126 / sqrt(33): all of the weight */
    arrays_run(&x);
    for (int64_t e = 0; e < LEN * DIM_V; e++)
        assert_true(x.o[e] == qkvi_f32_of_bf16(x.v[7 * DIM_V + e % DIM_V]));
    arrays_free(&x);
}

/* Zeros of either sign are zeros, and a 0 in o is +0. */
static void zeros_have_no_sign(void) {
    arrays x = arrays_new(5), y = arrays_new(5);
    for (int64_t e = 0; e < LEN * DIM; e += 3) x.q[e] = 0x8000, y.q[e] = 0;
    for (int64_t e = 0; e < LEN * DIM; e += 5) x.k[e] = 0, y.k[e] = 0x8000;
    for (int64_t e = 0; e < LEN * DIM_V; e++)
        if (e % DIM_V % 4 == 0) x.v[e] = 0x8000, y.v[e] = 0;
    arrays_run(&x);
    arrays_run(&y);
    same_results(&x, &y, LEN);
    for (int64_t e = 0; e < LEN * DIM_V; e += 4) assert_true(x.o[e] == 0 && !signbit(x.o[e]));
    arrays_free(&x);
    arrays_free(&y);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROPERTY(the_order_is_the_written_one),
        PROPERTY(errors_are_those_of_the_naive_algorithm),
        PROPERTY(the_bound_is_reached),
        PROPERTY(one_key_gives_its_value),
        PROPERTY(subnormal_inputs_are_zeros),
        PROPERTY(hidden_keys_may_hold_anything),
        PROPERTY(extreme_scores_mean_what_they_say),
        PROPERTY(zeros_have_no_sign),
        PROPERTY(random_problems_keep_their_bits),
    };
    int n_failed = 0;
    for (class = QKV_CLASS_DP; class <= QKV_CLASS_AMX; class ++) {
        printf("class %s\n", class == QKV_CLASS_DP ? "dp" : "amx");
        n_failed += cmocka_run_group_tests(tests, NULL, NULL);
    }
    return n_failed;
}
