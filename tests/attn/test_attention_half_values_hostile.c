/*
 * Values at the edges of the types of 16 bits (AT14, AT13): scores of 1e4 by 1e4 and beyond, the
 * greatest and the subnormal numbers, infinities and NaN, in forward, backward (where scores stay
 * below 2^20) and decode. The scalar build against the double oracle within the bounds of
 * docs/numerics.md, every instruction set against the scalar build bit by bit; and scores that
 * overflow a float, which the oracle does not model, against docs/numerics.md.
 */
#include <math.h>
#include <string.h>

#include <qkv/kv.h>

#include "attn/every_isa.h"
#include "check/check.h"
#include "check/host_state.h"
#include "check/outputs.h"

typedef struct kind {
    const char *name;
    qkv_dtype dtype;
    qkv_class arithmetic;
    bool o_f32;
    double greatest, least; /* finite, above 0 */
} kind;

static const kind KINDS[] = {
    { "f16", QKV_F16, QKV_CLASS_F32, false, 65504, 0x1p-24 },
    { "f16, o f32", QKV_F16, QKV_CLASS_F32, true, 65504, 0x1p-24 },
    { "bf16", QKV_BF16, QKV_CLASS_F32, false, 0x1.FEp127, 0x1p-133 },
    { "bf16 dp", QKV_BF16, QKV_CLASS_DP, false, 0x1.FEp127, 0x1p-133 },
    { "bf16 amx", QKV_BF16, QKV_CLASS_AMX, false, 0x1.FEp127, 0x1p-133 },
};
enum { N_KINDS = sizeof KINDS / sizeof *KINDS };

static elem_type element(const kind *t) { return (elem_type)t->dtype; }

/* ---- Cases ----------------------------------------------------------------------------------- */

typedef struct shape {
    int64_t n_batch, n_heads, n_kv_heads, len_q, len_k, dim, dim_v;
} shape;

static const shape SHAPES[] = {
    { 2, 4, 2, 7, 9, 5, 6 },     /* tails of every vector */
    { 2, 4, 2, 11, 14, 32, 64 }, /* the path of short sequences */
    { 1, 2, 1, 5, 300, 16, 20 }, /* more than one block of keys */
    { 1, 1, 1, 1, 1, 1, 1 },
};
enum { N_SHAPES = sizeof SHAPES / sizeof *SHAPES };

static qkv_attention_desc described(const shape *s, const kind *t) {
    qkv_attention_desc d;
    qkv_attention_desc_contiguous(&d, s->n_batch, s->n_heads, s->n_kv_heads, s->len_q, s->len_k,
                                  s->dim, s->dim_v);
    d.dtype = t->dtype;
    d.arithmetic = t->arithmetic;
    if (t->o_f32) d.flags = QKV_SET_O_DTYPE; /* QKV_F32 is 0 */
    return d;
}

/* What is done to a case before it is sealed; n tells variants apart. */
typedef void change(check_case *c, const kind *t, int n);

static bool decode_on(const check_case *c, const check_setup *s, outputs *x, check_report *report) {
    qkv_kv_view view;
    qkv_ctx *const ctx = check_context(s, report);
    qkv_kv_view_contiguous(&view, &c->d, c->d.dtype);
    view.k = c->k.data;
    view.v = c->v.data;
    *x = (outputs){ .o = output_new(&c->d, 'o', c->d.o_stride, c->at_end),
                    .lse = output_new(&c->d, 'l', c->d.lse_stride, c->at_end) };
    const uint64_t saved = host_modes();
    host_modes_set(s->modes);
    const qkv_status status =
        qkv_attention_decode(ctx, &c->d, c->q.data, &view, x->o.data, x->lse.data, NULL);
    const bool ok = check_status(status, "decode", s, ctx, report);
    host_modes_set(saved);
    qkv_ctx_free(ctx);
    return ok;
}

/* Decode has no class dp or amx. */
static void decode_everywhere(const check_case *c, int n, check_report *report) {
    outputs scalar, other;
    const check_setup first = { "scalar", 1, host_modes_of(0) };
    if (c->d.arithmetic != QKV_CLASS_F32 || !decode_on(c, &first, &scalar, report)) return;
    compare_forward(c, &scalar, report);
    for (int i = 0; qkv_isa_name(i); i++) {
        const check_setup s = { qkv_isa_name(i), 1 + (n + i) % 4,
                                host_modes_of((n + i) % HOST_MODES) };
        if (decode_on(c, &s, &other, report)) compare_bits(c, &other, &scalar, &s, report);
        outputs_free(&other);
    }
    outputs_free(&scalar);
}

static void everywhere(const char *what, change *make, int n_variants) {
    const check_options options = { .isa = NULL };
    for (int s = 0; s < N_SHAPES; s++)
        for (int t = 0; t < N_KINDS; t++)
            for (int n = 0; n < n_variants; n++) {
                if (UNDER_SANITIZER && (s + t + n) % 5 != 0) continue;
                const qkv_attention_desc d = described(&SHAPES[s], &KINDS[t]);
                check_report report = { 0 };
                check_case c;
                case_dense(&c, &d, (uint64_t)(n + 1), (s + t + n) % 2);
                make(&c, &KINDS[t], n);
                case_seal(&c);
                check_case_everywhere(&options, &c, (uint64_t)n, &report);
                decode_everywhere(&c, n, &report);
                case_free(&c);
                if (report.failures)
                    fail_msg("%s, %s, shape %d, variant %d: %s", KINDS[t].name, what, s, n,
                             report.message);
            }
}

#define EVERYWHERE(make, n_variants) everywhere(#make, (make), n_variants)

static int64_t length(const guarded *g, elem_type type) {
    return (int64_t)(g->bytes / element_bytes(type));
}

/* x times factor, where that is beyond the type its greatest number. */
static void times(const guarded *g, const kind *t, double factor) {
    for (int64_t e = 0; e < length(g, element(t)); e++) {
        const double x = element_get(g->data, element(t), e) * factor;
        element_set(g->data, element(t), e, fmax(fmin(x, t->greatest), -t->greatest));
    }
}

static void fill(const guarded *g, const kind *t, double x) {
    for (int64_t e = 0; e < length(g, element(t)); e++) element_set(g->data, element(t), e, x);
}

/* ---- Finite values --------------------------------------------------------------------------- */

/* 1e4 by 1e4, and beyond: 65504 by 65504, which overflows an f16; in bf16 1e15 by 1e15. */
static void large_scores(check_case *c, const kind *t, int n) {
    const double beyond = t->dtype == QKV_F16 ? 1e6 : 1e15, size = n % 2 ? beyond : 1e4;
    c->forward_only = true;
    times(&c->q, t, size);
    times(&c->k, t, size);
    if (n / 2 == 1) c->d.flags |= QKV_SET_CAUSAL;
    if (n / 2 == 2) c->d.flags |= QKV_SET_SOFTCAP;
    c->d.softcap = 3;
}

static void equal_large_scores(check_case *c, const kind *t, int n) {
    c->forward_only = true;
    fill(&c->q, t, n & 1 ? -1e4 : 1e4);
    fill(&c->k, t, n & 2 ? 6e4 : 1e4);
}

static void one_dominates(check_case *c, const kind *t, int n) {
    const int64_t j = n % 2 ? c->d.len_k - 1 : 0;
    fill(&c->q, t, 1);
    for (int64_t e = 0; e < c->d.head_dim; e++)
        element_set(c->k.data, element(t), j * c->d.head_dim + e, n < 2 ? 1e4 : -1e4);
}

/* The greatest values: o has them, and their means. bf16: 2^8 300 times that is a float. */
static void large_values(check_case *c, const kind *t, int n) {
    fill(&c->v, t, t->dtype == QKV_F16 ? (n ? -65504 : 65504) : n ? -0x1p107 : 0x1p107);
}

/* Bit a of n / 2: which of q, k, v and d_o are subnormal, all or each other one. */
static void subnormal_values(check_case *c, const kind *t, int n) {
    const guarded *const arrays[] = { &c->q, &c->k, &c->v, &c->d_o };
    for (int a = 0; a < 4; a++) {
        const elem_type type = a == 3 ? element_of_o(&c->d) : element(t);
        for (int64_t e = 0; n / 2 >> a & 1 && e < length(arrays[a], type); e += 1 + n % 2)
            element_set(arrays[a]->data, type, e, (double)(e % 7 - 3) * t->least);
    }
}

static void AT14_scores_and_values(void **state) {
    (void)state;
    EVERYWHERE(large_scores, 6);
    EVERYWHERE(equal_large_scores, 4);
    EVERYWHERE(one_dominates, 4);
    EVERYWHERE(large_values, 2);
}

static void AT14_subnormal_numbers(void **state) {
    (void)state;
    EVERYWHERE(subnormal_values, 32);
}

/* ---- Values that are not finite -------------------------------------------------------------- */

/* One element of q, k, v or d_o, which every row of the head, or its own, depends on. */
static void one_not_finite(check_case *c, const kind *t, int n) {
    static const double values[] = { NAN, INFINITY, -INFINITY };
    const guarded *const arrays[] = { &c->q, &c->k, &c->v, &c->d_o };
    const guarded *const g = arrays[n / 3];
    const elem_type type = n / 3 == 3 ? element_of_o(&c->d) : element(t);
    element_set(g->data, type, length(g, type) / 2, values[n % 3]);
    c->visible_nan = true;
}

static void AT13_values_that_are_not_finite(void **state) {
    (void)state;
    EVERYWHERE(one_not_finite, 12);
}

/* ---- Scores that overflow a float ------------------------------------------------------------ */

/* Two queries, keys in threes with the values 1, 2, 4: all are vectors of one number and zeros. */
typedef struct overflow {
    uint16_t q[2 * 16], k[300 * 16], v[300];
    float sink;
    qkv_attention_desc d;
    double big; /* whose square times the scale is no float */
} overflow;

static void overflow_keys(overflow *x, const kind *t, const double k[3]) {
    static const double values[3] = { 1, 2, 4 };
    for (int64_t j = 0; j < x->d.len_k; j++) {
        element_set(x->k, element(t), j * x->d.head_dim, k[j % 3]);
        element_set(x->v, element(t), j, values[j % 3]);
    }
}

/* The first query scores `k` times something large, the second one 0 with every key. */
static void overflow_make(overflow *x, const kind *t, int64_t len_k, int64_t dim) {
    const bool f16 = t->dtype == QKV_F16;
    const shape s = { 1, 1, 1, 2, len_k, dim, 1 };
    memset(x, 0, sizeof *x);
    x->d = described(&s, t);
    x->d.flags |= QKV_SET_SCALE;
    x->d.scale = f16 ? 1e30f : 1;
    x->d.sinks = &x->sink;
    x->big = f16 ? 6e4 : 1e20;
    element_set(x->q, element(t), 0, x->big);
}

typedef struct row {
    double o, lse;
} row;

static bool close_to(double x, double want) {
    return isnan(want) ? isnan(x) : x == want || fabs(x - want) <= fabs(want) * 0x1p-7;
}

/* Forward and decode: o and lse of both queries. */
static void overflow_is(const overflow *x, const kind *t, const char *what, row first, row second) {
    const elem_type type = element_of_o(&x->d);
    const row want[2] = { first, second };
    for (int pass = 0; pass < 2; pass++) {
        qkv_ctx *const ctx = context_on(isa, 2);
        qkv_kv_view view;
        float o[2], lse[2]; /* of 16 bits: the first half of o */
        qkv_kv_view_contiguous(&view, &x->d, x->d.dtype);
        view.k = x->k;
        view.v = x->v;
        const qkv_status status =
            pass ? qkv_attention_decode(ctx, &x->d, x->q, &view, o, lse, NULL)
                 : qkv_attention_forward(ctx, &x->d, x->q, x->k, x->v, o, lse, NULL);
        assert_int_equal(status, QKV_OK);
        for (int i = 0; i < 2; i++)
            if (!close_to(element_get(o, type, i), want[i].o) ||
                !close_to((double)lse[i], want[i].lse))
                fail_msg("%s, %s, %s, %s, len_k %d: row %d is %g, lse %g", isa, t->name,
                         pass ? "decode" : "forward", what, (int)x->d.len_k, i,
                         element_get(o, type, i), (double)lse[i]);
        qkv_ctx_free(ctx);
    }
}

static void AT14_scores_that_overflow(void) {
    static const int64_t lengths[] = { 3, 300 };
    static const row nan = { NAN, NAN };
    for (int t = 0; t < N_KINDS; t++)
        for (int n = 0; n < 4; n++) {
            static overflow x;
            const kind *const of = &KINDS[t];
            const int64_t len_k = lengths[n / 2];
            const row mean = { 7.0 / 3, log((double)len_k) };
            overflow_make(&x, of, len_k, n % 2 ? 16 : 1);
            const double greatest = 2 * x.big * (double)x.d.scale;
            overflow_keys(&x, of, (double[]){ 1, -x.big, 2 });
            overflow_is(&x, of, "a score of -inf", (row){ 4, greatest }, mean);
            overflow_keys(&x, of, (double[]){ 1, x.big, 2 });
            overflow_is(&x, of, "a score of +inf", nan, mean);
            overflow_keys(&x, of, (double[]){ -x.big, -x.big, -x.big });
            overflow_is(&x, of, "scores of -inf alone", nan, mean);
            x.d.flags |= QKV_SET_SINKS;
            x.sink = -1e38f;
            overflow_is(&x, of, "scores of -inf and a sink", (row){ 0, -1e38 }, mean);
        }
}

/* 100 queries on one key: d_v is their sum, beyond the type; d_q and d_k are exactly 0. */
static void AT14_gradients_that_overflow(void) {
    enum { LQ = 100 };
    for (int t = 0; t < N_KINDS; t++) {
        const kind *const of = &KINDS[t];
        const shape s = { 1, 1, 1, LQ, 1, 1, 1 };
        uint16_t q[LQ], k[1], v[1], d_q[LQ], d_k[1], d_v[1];
        float o[LQ], lse[LQ], d_o[LQ];
        const qkv_attention_desc d = described(&s, of);
        qkv_attention_grads g;
        element_set(k, element(of), 0, 1);
        element_set(v, element(of), 0, 1);
        for (int i = 0; i < LQ; i++) {
            element_set(q, element(of), i, 1);
            element_set(d_o, element_of_o(&d), i, of->greatest);
        }
        qkv_attention_grads_contiguous(&g, &d);
        g.d_o = d_o, g.d_q = d_q, g.d_k = d_k, g.d_v = d_v;
        qkv_ctx *const ctx = context_on(isa, 1);
        assert_int_equal(qkv_attention_forward(ctx, &d, q, k, v, o, lse, NULL), QKV_OK);
        assert_int_equal(qkv_attention_backward(ctx, &d, q, k, v, o, lse, &g, NULL), QKV_OK);
        assert_true(element_get(d_v, element(of), 0) == INFINITY);
        assert_true(element_get(d_k, element(of), 0) == 0);
        for (int i = 0; i < LQ; i++) assert_true(element_get(d_q, element(of), i) == 0);
        qkv_ctx_free(ctx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(AT14_scores_and_values),
        cmocka_unit_test(AT14_subnormal_numbers),
        cmocka_unit_test(AT13_values_that_are_not_finite),
        PROPERTY(AT14_scores_that_overflow),
        PROPERTY(AT14_gradients_that_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
