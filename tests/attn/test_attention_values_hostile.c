/*
 * Shapes, rules and values at their edges (AT02, AT10, AT11, AT12, AT14, AT15, AT16): forward and
 * backward (where scores stay below 2^20) against the double oracle within the bounds of
 * docs/numerics.md, and every instruction set against the scalar build bit by bit, with any
 * floating-point mode of the caller (AT21) and on arrays that end at a page without access, then on
 * arrays that begin after one (AT08).
 */
#include <float.h>
#include <inttypes.h>
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

typedef struct shape {
    int64_t n_batch, n_heads, n_kv_heads, len_q, len_k, dim, dim_v;
} shape;

static const shape SMALL = { 2, 4, 2, 7, 9, 5, 6 };
static const shape SHORT = { 2, 4, 2, 11, 14, 32, 64 };  /* the path of short sequences */
static const shape BLOCKS = { 1, 2, 1, 5, 300, 16, 20 }; /* more than one block of keys */

/* What is done to a case before it is sealed; n tells variants apart. */
typedef void change(check_case *c, int n);

static void everywhere(shape s, const char *what, change *make, int n) {
    const check_options options = { .isa = NULL };
    qkv_attention_desc d;
    qkv_attention_desc_contiguous(&d, s.n_batch, s.n_heads, s.n_kv_heads, s.len_q, s.len_k, s.dim,
                                  s.dim_v);
    for (int at_end = 0; at_end <= 1; at_end++) {
        check_report report = { 0 };
        check_case c;
        case_dense(&c, &d, (uint64_t)(n + 1), at_end);
        if (make) make(&c, n);
        case_seal(&c);
        check_case_everywhere(&options, &c, (uint64_t)(2 * n + at_end), &report);
        case_free(&c);
        if (report.failures) fail_msg("%s, variant %d: %s", what, n, report.message);
    }
}

#define EVERYWHERE(shape, make, n) everywhere(shape, #make, (make), n)

static void fill(const guarded *g, float value) {
    float *const x = g->data;
    for (size_t e = 0; e < g->bytes / sizeof *x; e++) x[e] = value;
}

static void times(const guarded *g, float factor) {
    float *const x = g->data;
    for (size_t e = 0; e < g->bytes / sizeof *x; e++) x[e] *= factor;
}

/* ---- AT02: zero sizes ------------------------------------------------------------------------ */

static void AT02_every_combination_of_zeros(void **state) {
    (void)state;
    for (int zero = 0; zero < 128; zero++) {
        shape s = SMALL;
        if (zero & 1) s.n_batch = 0;
        if (zero & 2) s.n_heads = 0;
        if (zero & 4) s.len_q = 0;
        if (zero & 8) s.len_k = 0;
        if (zero & 16) s.dim = 0;
        if (zero & 32) s.dim_v = 0;
        if (zero & 64) s.n_heads = s.n_kv_heads = 0;
        everywhere(s, "zeros", NULL, zero);
    }
}

/* ---- AT10: dimensions ------------------------------------------------------------------------ */

static void AT10_other_dimensions_for_values(void **state) {
    (void)state;
    static const int64_t dims[] = { 1, 2, 15, 16, 17, 31, 33, 64, 100 };
    enum { N = sizeof dims / sizeof *dims };
    for (int n = 0; n < N; n++)
        for (int m = 0; m < N; m++) {
            const shape s = { 1, 2, 1, 13, 35, dims[n], dims[m] };
            everywhere(s, "dimensions", NULL, n * N + m);
        }
}

static void AT10_the_largest_dimension(void **state) {
    (void)state;
    everywhere((shape){ 1, 1, 1, 1, 2, 65536, 1 }, "head_dim 65536", NULL, 0);
    everywhere((shape){ 1, 1, 1, 2, 1, 1, 65536 }, "head_dim_v 65536", NULL, 0);
}

/* ---- AT11: scales ---------------------------------------------------------------------------- */

static const float SCALES[] = { 0,      -0.0f,         1,       -1,       1e-30f, FLT_MIN,
                                1e-38f, FLT_TRUE_MIN,  -1e-44f, -0.37f,   1e4f,   -1e4f,
                                1e30f,  -FLT_TRUE_MIN, FLT_MAX, -FLT_MAX, 3e37f };

static void with_scale(check_case *c, int n) {
    c->d.flags |= QKV_SET_SCALE;
    c->d.scale = SCALES[n];
    c->forward_only = fabsf(SCALES[n]) > 1e4f;
}

static void with_scale_and_cap(check_case *c, int n) {
    with_scale(c, n);
    c->d.flags |= QKV_SET_SOFTCAP;
    c->d.softcap = 3;
}

static void AT11_any_finite_scale(void **state) {
    (void)state;
    for (int n = 0; n < (int)(sizeof SCALES / sizeof *SCALES); n++) {
        EVERYWHERE(SMALL, with_scale, n);
        EVERYWHERE(BLOCKS, with_scale, n);
        EVERYWHERE(SHORT, with_scale, n);
        EVERYWHERE(SMALL, with_scale_and_cap, n);
    }
}

/* The scale is set, and is 0: a uniform mean of the values. Without the flag it is the default. */
static void AT11_zero_is_not_the_default(void **state) {
    (void)state;
    enum { L = 5, D = 4 };
    float q[D] = { 3, -2, 1, 4 }, k[L * D], v[L], o[2], lse[2];
    qkv_ctx *ctx = NULL;
    qkv_attention_desc d;
    for (int e = 0; e < L * D; e++) k[e] = (float)(e % 7) - 3;
    for (int j = 0; j < L; j++) v[j] = (float)(1 << j);
    qkv_attention_desc_contiguous(&d, 1, 1, 1, 1, L, D, 1);
    assert_int_equal(qkv_ctx_create(NULL, &ctx, NULL), QKV_OK);
    d.scale = 0;
    assert_int_equal(qkv_attention_forward(ctx, &d, q, k, v, &o[0], &lse[0], NULL), QKV_OK);
    d.flags |= QKV_SET_SCALE;
    assert_int_equal(qkv_attention_forward(ctx, &d, q, k, v, &o[1], &lse[1], NULL), QKV_OK);
    assert_true(fabsf(o[0] - 6.2f) > 1);
    assert_true(fabsf(o[1] - 6.2f) < 1e-5f && fabs((double)lse[1] - log(L)) < 1e-6);
    qkv_ctx_free(ctx);
}

/* ---- AT12: masks ----------------------------------------------------------------------------- */

/*
 * Which axes of a mask repeat: bit n of `repeat` is axis n. Its elements are value(index), laid in
 * guarded memory of the case.
 */
static void make_mask(check_case *c, qkv_mask_type type, int repeat, float (*value)(int64_t, int),
                      int n) {
    int64_t size[4] = { c->d.n_batch, c->d.n_heads, c->d.len_q, c->d.len_k }, step = 1;
    for (int axis = 3; axis >= 0; axis--) {
        if (repeat >> axis & 1) size[axis] = 1;
        c->d.mask_stride[axis] = repeat >> axis & 1 ? 0 : step;
        step *= size[axis];
    }
    if (repeat >> 3 & 1) c->d.mask_len_k = 1;
    c->mask = guarded_new((size_t)step * (type == QKV_MASK_F32 ? sizeof(float) : 1), c->at_end);
    for (int64_t e = 0; e < step; e++)
        if (type == QKV_MASK_F32)
            ((float *)c->mask.data)[e] = value(e, n);
        else
            ((unsigned char *)c->mask.data)[e] = (unsigned char)value(e, n);
    c->d.flags |= QKV_SET_MASK;
    c->d.mask_type = type;
    c->d.mask = c->mask.data;
}

static float any_byte(int64_t e, int n) { return (float)((e * 37 + n) % 256); }
static float one_byte(int64_t e, int n) { return e % 3 ? (float)n : 0; }

static void with_bytes(check_case *c, int n) { make_mask(c, QKV_MASK_BOOL, n, any_byte, n); }
static void with_byte(check_case *c, int n) { make_mask(c, QKV_MASK_BOOL, 0, one_byte, n); }

static void AT12a_bytes_of_boolean_masks(void **state) {
    (void)state;
    for (int repeat = 0; repeat < 16; repeat++) EVERYWHERE(SMALL, with_bytes, repeat);
    EVERYWHERE(BLOCKS, with_bytes, 0);
    for (int bit = 0; bit < 8; bit++) EVERYWHERE(SMALL, with_byte, 1 << bit);
    EVERYWHERE(SMALL, with_byte, 255);
}

static const float ADDENDS[] = { -INFINITY, -3e38f, -FLT_MAX, INFINITY, NAN,  -NAN,
                                 -0.0f,     1e-40f, -1e9f,    -10000,   1e9f, FLT_MAX };
enum { N_ADDENDS = sizeof ADDENDS / sizeof *ADDENDS };

/* One of the values now and then; everywhere; one here and -inf elsewhere. */
static float some_addends(int64_t e, int n) { return e % 5 == 2 ? ADDENDS[n] : (float)(e % 3); }
static float only_addends(int64_t e, int n) { return (void)e, ADDENDS[n]; }
static float addends_and_holes(int64_t e, int n) { return e % 4 ? -INFINITY : ADDENDS[n]; }
static float mixed_addends(int64_t e, int n) { return ADDENDS[(e * 5 + n) % N_ADDENDS]; }

static void with_some_addends(check_case *c, int n) {
    make_mask(c, QKV_MASK_F32, n / N_ADDENDS, some_addends, n % N_ADDENDS);
}
static void with_only_addends(check_case *c, int n) {
    make_mask(c, QKV_MASK_F32, 0, only_addends, n);
}
static void with_addends_and_holes(check_case *c, int n) {
    make_mask(c, QKV_MASK_F32, 0, addends_and_holes, n);
}
static void with_mixed_addends(check_case *c, int n) {
    make_mask(c, QKV_MASK_F32, n % 16, mixed_addends, n);
}
static void with_addends_and_cap(check_case *c, int n) {
    with_some_addends(c, n);
    c->d.flags |= QKV_SET_SOFTCAP | QKV_SET_CAUSAL;
    c->d.softcap = 2;
}

static void AT12b_values_of_additive_masks(void **state) {
    (void)state;
    for (int n = 0; n < 16 * N_ADDENDS; n += 5) EVERYWHERE(SMALL, with_some_addends, n);
    for (int n = 0; n < N_ADDENDS; n++) {
        EVERYWHERE(BLOCKS, with_some_addends, n);
        EVERYWHERE(SMALL, with_only_addends, n);
        EVERYWHERE(BLOCKS, with_only_addends, n);
        EVERYWHERE(SMALL, with_addends_and_holes, n);
        EVERYWHERE(SMALL, with_addends_and_cap, n);
    }
    for (int n = 0; n < 16; n++) EVERYWHERE(SMALL, with_mixed_addends, n);
}

/* ---- AT14: values at the edges of f32 -------------------------------------------------------- */

static void large_scores(check_case *c, int n) { /* 1e4 by 1e4, and beyond */
    const float size = n % 4 == 0 ? 1e4f : n % 4 == 1 ? 1e6f : n % 4 == 2 ? 1e10f : 1e15f;
    c->forward_only = true;
    times(&c->q, size);
    times(&c->k, size);
    if (n >= 4) c->d.flags |= QKV_SET_CAUSAL;
}

static void equal_large_scores(check_case *c, int n) {
    static const float q[] = { 1e4f, 1e4f, -1e4f, 1e15f, -1e15f }, k[] = { 1e4f, -1e4f };
    c->forward_only = true;
    fill(&c->q, q[n / 2]);
    fill(&c->k, k[n % 2]);
}

static void small_values(check_case *c, int n) {
    const guarded *const arrays[] = { &c->q, &c->k, &c->v, &c->d_o, &c->d_lse };
    static const float sizes[] = { 1e-20f, 1e-38f, 1e-42f, FLT_TRUE_MIN };
    for (int a = 0; a < 5; a++)
        if (n / 4 >> a & 1) times(arrays[a], sizes[n % 4]);
}

static void zeros_of_both_signs(check_case *c, int n) {
    const guarded *const arrays[] = { &c->q, &c->k, &c->v, &c->d_o };
    for (int a = 0; a < 4; a++) {
        const int kind = n >> 2 * a & 3;
        if (kind) fill(arrays[a], kind == 1 ? 0.0f : -0.0f);
        for (size_t e = 0; kind == 3 && e < arrays[a]->bytes / sizeof(float); e += 2)
            ((float *)arrays[a]->data)[e] = 0;
    }
}

static void all_equal(check_case *c, int n) {
    static const float values[] = { 0, 1, -1, 0.1f, 1e4f, 1e-30f };
    c->forward_only = values[n] > 100;
    fill(&c->q, values[n]);
    fill(&c->k, values[n]);
    fill(&c->v, n % 2 ? values[n] : 7);
}

static void one_dominates(check_case *c, int n) {
    const int64_t j = n == 0 ? 0 : n == 1 ? c->d.len_k - 1 : c->d.len_k / 2;
    float *const k = (float *)c->k.data + j * c->d.head_dim;
    fill(&c->q, 1);
    for (int64_t d = 0; d < c->d.head_dim; d++) k[d] = n == 3 ? -1e4f : 1e4f;
}

static void large_values(check_case *c, int n) { /* as large as docs/numerics.md allows */
    times(&c->v, n ? -0x1p107f : 0x1p107f);      /* 2^8 513 6 times that is a float */
}

static void AT14_scores_and_values(void **state) {
    (void)state;
    static const shape shapes[] = { { 2, 4, 2, 7, 9, 5, 6 },    { 1, 2, 1, 5, 300, 16, 20 },
                                    { 1, 2, 2, 5, 40, 1, 1 },   { 1, 2, 2, 3, 1, 8, 8 },
                                    { 1, 1, 1, 1, 1, 1, 1 },    { 1, 2, 1, 130, 70, 64, 64 },
                                    { 2, 1, 1, 1, 513, 3, 40 }, { 2, 4, 2, 11, 14, 32, 64 },
                                    { 1, 1, 1, 1, 1, 16, 32 } };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        for (int n = 0; n < 8; n++) EVERYWHERE(shapes[s], large_scores, n);
        for (int n = 0; n < 10; n++) EVERYWHERE(shapes[s], equal_large_scores, n);
        for (int n = 0; n < 6; n++) EVERYWHERE(shapes[s], all_equal, n);
        for (int n = 0; n < 4; n++) EVERYWHERE(shapes[s], one_dominates, n);
        for (int n = 0; n < 2; n++) EVERYWHERE(shapes[s], large_values, n);
    }
}

static void AT14_denormals_and_zeros(void **state) {
    (void)state;
    for (int n = 0; n < 4 * 32; n += 3) EVERYWHERE(SMALL, small_values, n);
    for (int n = 0; n < 256; n += 3) EVERYWHERE(SMALL, zeros_of_both_signs, n);
    for (int n = 0; n < 256; n += 17) EVERYWHERE(BLOCKS, zeros_of_both_signs, n);
    for (int n = 0; n < 256; n += 5) EVERYWHERE(SHORT, zeros_of_both_signs, n);
    for (int n = 0; n < 4 * 32; n += 3) EVERYWHERE(SHORT, small_values, n);
}

/* Every score is far below any sentinel that an implementation might take for minus infinity. */
static void low_scores(check_case *c, int n) {
    static const float lows[] = { -1e4f, -1.1e4f, -1e9f, -1e30f, -2.3e38f };
    c->d.flags |= QKV_SET_SCALE;
    c->d.scale = 1;
    c->forward_only = n >= 2;
    fill(&c->q, 1);
    fill(&c->k, lows[n] / (float)c->d.head_dim);
}

static void AT14_no_sentinel(void **state) {
    (void)state;
    for (int n = 0; n < 5; n++) {
        EVERYWHERE(SMALL, low_scores, n);
        EVERYWHERE(BLOCKS, low_scores, n);
        EVERYWHERE(SHORT, low_scores, n);
    }
}

/* ---- AT15, AT16: places ---------------------------------------------------------------------- */

static const int64_t FAR = (int64_t)1 << 48;

static void causal_from(check_case *c, int n) {
    const int64_t offsets[] = {
        0, c->d.len_k - c->d.len_q, 1, -1, -4, c->d.len_k, -c->d.len_q, 3, FAR, -FAR
    };
    c->d.flags |= QKV_SET_CAUSAL | (n < 10 ? QKV_SET_Q_OFFSET : 0);
    c->d.q_offset = n < 10 ? offsets[n] : 12345; /* without the flag it is not looked at */
}

static void causal_per_batch(check_case *c, int n) {
    c->d.flags |= QKV_SET_CAUSAL | QKV_SET_Q_OFFSET;
    c->d.q_offset = 12345;
    c->q_offsets[0] = n - 8;
    c->q_offsets[1] = n % 2 ? FAR : c->d.len_k - c->d.len_q;
    c->d.q_offsets = c->q_offsets;
}

static void AT15_alignment_is_explicit(void **state) {
    (void)state;
    static const shape shapes[] = { { 2, 2, 1, 5, 12, 4, 4 },    { 2, 2, 1, 12, 5, 4, 4 },
                                    { 2, 2, 1, 9, 9, 4, 4 },     { 2, 1, 1, 1, 9, 4, 4 },
                                    { 2, 1, 1, 200, 300, 4, 4 }, { 2, 1, 1, 300, 130, 4, 4 },
                                    { 2, 2, 1, 16, 16, 16, 32 }, { 2, 2, 1, 5, 13, 16, 32 },
                                    { 2, 2, 1, 13, 5, 16, 32 } };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        for (int n = 0; n <= 10; n++) EVERYWHERE(shapes[s], causal_from, n);
        for (int n = 0; n < 16; n += s == 4 || s == 5 ? 5 : 1)
            EVERYWHERE(shapes[s], causal_per_batch, n);
    }
}

static const int64_t WIDTHS[] = { 0, 1, 4, 8, 9, 10, 300, INT64_MAX, -1 };
enum { N_WIDTHS = sizeof WIDTHS / sizeof *WIDTHS };

static void with_window(check_case *c, int n) {
    c->d.flags |= QKV_SET_WINDOW;
    c->d.window_left = WIDTHS[n % N_WIDTHS];
    c->d.window_right = WIDTHS[n / N_WIDTHS];
}

static void with_window_and_more(check_case *c, int n) {
    with_window(c, n);
    c->d.flags |= QKV_SET_Q_OFFSET | (n % 2 ? QKV_SET_CAUSAL : 0);
    c->d.q_offset = n % 3 == 0 ? -5 : n % 3 == 1 ? c->d.len_k - c->d.len_q : 4;
}

static void AT16_windows_of_any_width(void **state) {
    (void)state;
    for (int n = 0; n < N_WIDTHS * N_WIDTHS; n++) {
        EVERYWHERE(SMALL, n % 2 ? with_window : with_window_and_more, n);
        EVERYWHERE(SHORT, n % 2 ? with_window_and_more : with_window, n);
        if (n % 4 == 0) EVERYWHERE(((shape){ 1, 1, 1, 140, 300, 4, 4 }), with_window_and_more, n);
    }
}

/* A window of 0 on both sides: every query sees the key of its own position alone, so o is v. */
static void AT16_window_0_is_the_own_position(void **state) {
    (void)state;
    enum { L = 40, D = 3 };
    float x[L * D], o[L * D], lse[L];
    rng r = { 4 };
    qkv_attention_desc d;
    qkv_attention_desc_contiguous(&d, 1, 1, 1, L, L, D, D);
    for (int e = 0; e < L * D; e++) x[e] = rng_normal(&r);
    d.flags = QKV_SET_WINDOW;
    for (int n = 0; qkv_isa_name(n); n++) {
        qkv_ctx_options options = qkv_ctx_options_init();
        qkv_ctx *ctx = NULL;
        options.isa = qkv_isa_name(n);
        assert_int_equal(qkv_ctx_create(&options, &ctx, NULL), QKV_OK);
        assert_int_equal(qkv_attention_forward(ctx, &d, x, x, x, o, lse, NULL), QKV_OK);
        assert_memory_equal(o, x, sizeof x);
        qkv_ctx_free(ctx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(AT02_every_combination_of_zeros),
        cmocka_unit_test(AT10_other_dimensions_for_values),
        cmocka_unit_test(AT10_the_largest_dimension),
        cmocka_unit_test(AT11_any_finite_scale),
        cmocka_unit_test(AT11_zero_is_not_the_default),
        cmocka_unit_test(AT12a_bytes_of_boolean_masks),
        cmocka_unit_test(AT12b_values_of_additive_masks),
        cmocka_unit_test(AT14_scores_and_values),
        cmocka_unit_test(AT14_denormals_and_zeros),
        cmocka_unit_test(AT14_no_sentinel),
        cmocka_unit_test(AT15_alignment_is_explicit),
        cmocka_unit_test(AT16_windows_of_any_width),
        cmocka_unit_test(AT16_window_0_is_the_own_position),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
