/*
 * A step of class dp on every instruction set against its definition, written here in doubles and
 * rounded by hand, bit by bit (of NaNs the position): edge values in every place, then random bits.
 * And the panels that steps are fed with.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "check/cases.h"
#include "check/guard.h"
#include "kernels/table.h"

/* ---- The definition -------------------------------------------------------------------------- */

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static double flushed(uint32_t bits) {
    const float x = float_of(bits);
    return fabsf(x) < FLT_MIN ? copysign(0, (double)x) : (double)x;
}

/*
 * x y + c rounded once to 24 bits of any exponent; then what is too large is infinite and what is
 * too small is 0. The product is exact in a double; the sum is rounded to odd there (Boldo and
 * Melquiond 2008), which keeps what the second rounding needs to know.
 */
static float sum_of(uint32_t x, uint32_t y, float c) {
    const double p = flushed(x) * flushed(y), q = flushed(bits_of(c));
    double s = p + q;
    if (!isfinite(s)) return (float)s;
    const double t = s - p, rest = (p - (s - t)) + (q - t);
    int64_t odd;
    memcpy(&odd, &s, sizeof odd);
    if (rest != 0 && !(odd & 1)) { /* s was rounded to even: step to its odd neighbour */
        odd += (rest > 0) == (s > 0) ? 1 : -1;
        memcpy(&s, &odd, sizeof s);
    }
    int exponent;
    const double mantissa = frexp(s, &exponent);
    const double rounded = ldexp((double)(float)mantissa, exponent);
    if (fabs(rounded) < (double)FLT_MIN) return copysignf(0, (float)mantissa);
    return (float)rounded;
}

static float step(float c, uint32_t a, uint32_t b) {
    c = sum_of(a & 0xFFFF0000u, b & 0xFFFF0000u, c);
    return sum_of(a << 16, b << 16, c);
}

/* ---- Comparison ------------------------------------------------------------------------------ */

enum { COLS = 32 };

/* One step of `mr` rows of equal a against 32 columns. */
static void compare(const qkvi_kernels *k, const uint32_t *a, const uint32_t b[COLS],
                    const float *c) {
    _Alignas(64) uint32_t panel[COLS];
    float got[12 * COLS];
    uint16_t rows[2 * 12];
    memcpy(panel, b, sizeof panel);
    memcpy(rows, a, (size_t)k->mr * sizeof *a);
    memcpy(got, c, (size_t)k->mr * COLS * sizeof *got);
    k->gemm->half_tile[QKVI_CLASS_DP](k->mr, COLS, 2, rows, 2, panel, got, COLS);
    for (int e = 0; e < k->mr * COLS; e++) {
        const float want = step(c[e], a[e / COLS], b[e % COLS]);
        if (bits_of(got[e]) == bits_of(want) || (isnan(got[e]) && isnan(want))) continue;
        fail_msg("%s: c %08x a %08x b %08x gives %08x, not %08x", k->name, bits_of(c[e]),
                 a[e / COLS], b[e % COLS], bits_of(got[e]), bits_of(want));
    }
}

/* Zeros, subnormals, the least and largest normal numbers, ties, infinities, NaN. */
static const uint16_t halves[] = { 0x0000, 0x8000, 0x0001, 0x8001, 0x007F, 0x0080, 0x8080, 0x0081,
                                   0x00FF, 0x0100, 0x3F80, 0xBF80, 0x3F81, 0x3F00, 0x7F7F, 0xFF7F,
                                   0x7F80, 0xFF80, 0x7FC0, 0x2000, 0xA000, 0x1F80, 0x2040, 0x3300,
                                   0xB300, 0x0D80, 0x1FF0, 0x9FFF, 0x3380, 0xB381 };
static const uint32_t wholes[] = { 0x00000000, 0x80000000, 0x00000001, 0x007FFFFF, 0x807FFFFF,
                                   0x00800000, 0x80800000, 0x00800001, 0x00FFFFFF, 0x01000000,
                                   0x3F800000, 0x3F800001, 0xBF800000, 0x7F7FFFFF, 0xFF7FFFFF,
                                   0x7F800000, 0xFF800000, 0x7FC00000 };
enum { N_HALVES = sizeof halves / sizeof *halves, N_WHOLES = sizeof wholes / sizeof *wholes };

static uint32_t any_half(rng *r, int kind) {
    const uint32_t bits = (uint32_t)rng_next(r);
    if (kind == 0) return halves[bits % N_HALVES];
    if (kind == 1) return bits & 0xFFFF;
    /* products near 1, or near 2^-126: where sums round, cancel and vanish */
    const uint32_t exponent = kind == 2 ? 0x7C + (bits >> 20) % 8 : 0x39 + (bits >> 20) % 16;
    return (bits & 0x807F) | exponent << 7;
}

static float any_float(rng *r, int kind) {
    const uint32_t bits = (uint32_t)rng_next(r);
    if (kind == 0) return float_of(wholes[bits % N_WHOLES]);
    if (kind == 1) return float_of(bits);
    const uint32_t exponent = kind == 2 ? 0x7C + (bits >> 24) % 8 : (bits >> 24) % 6;
    return float_of((bits & 0x807FFFFF) | exponent << 23);
}

static void a_step_is_its_definition(void **state) {
    (void)state;
    enum { ROUNDS = 6000 };
    const uint64_t seed = 20;
    const qkvi_kernels *k;
    printf("seed %llu\n", (unsigned long long)seed);
    for (int n = 0; (k = qkvi_kernels_at(n)); n++) {
        rng r = { seed };
        for (int round = 0; round < ROUNDS; round++) {
            uint32_t a[12], b[COLS];
            float c[12 * COLS];
            const int kind = round % 4;
            for (int e = 0; e < 12; e++) a[e] = any_half(&r, kind) | any_half(&r, kind) << 16;
            for (int e = 0; e < COLS; e++) b[e] = any_half(&r, kind) | any_half(&r, kind) << 16;
            for (int e = 0; e < 12 * COLS; e++) c[e] = any_float(&r, kind);
            compare(k, a, b, c);
        }
    }
}

/* Every edge value against every other, with every edge value of the sum. */
static void edges_meet(void **state) {
    (void)state;
    const qkvi_kernels *k;
    for (int n = 0; (k = qkvi_kernels_at(n)); n++)
        for (int whole = 0; whole < N_WHOLES; whole++)
            for (int first = 0; first < N_HALVES; first++) {
                uint32_t a[12], b[COLS];
                float c[12 * COLS];
                for (int e = 0; e < 12; e++)
                    a[e] = halves[first] | (uint32_t)halves[(first + 5 * e) % N_HALVES] << 16;
                for (int e = 0; e < COLS; e++)
                    b[e] = halves[e % N_HALVES] | (uint32_t)halves[(e + first) % N_HALVES] << 16;
                for (int e = 0; e < 12 * COLS; e++) c[e] = float_of(wholes[whole]);
                compare(k, a, b, c);
            }
}

/*
 * Sums just below 2^-126, which fma alone would round up to it: 2^-126 less a quarter to three
 * quarters of 2^-149.
 */
static void a_sum_is_small_after_rounding(void **state) {
    (void)state;
    const qkvi_kernels *k;
    for (int n = 0; (k = qkvi_kernels_at(n)); n++) {
        uint32_t a[12], b[COLS];
        float c[12 * COLS];
        for (int e = 0; e < 12; e++) a[e] = 0x8000u | (uint32_t)(0x3F80 - 0x80 * 75 + e) << 16;
        for (int e = 0; e < COLS; e++)
            b[e] = (uint32_t)(0x3F80 - 0x80 * (76 - e / 16) + 8 * (e % 16)) << 16;
        for (int e = 0; e < 12 * COLS; e++) c[e] = FLT_MIN;
        for (int e = 0; e < 12; e++) a[e] |= 0x80000000u;
        compare(k, a, b, c);
        for (int e = 0; e < 12; e++) a[e] ^= 0x80000000u;
        for (int e = 0; e < 12 * COLS; e++) c[e] = -FLT_MIN;
        compare(k, a, b, c);
    }
}

/* Rows, columns and depths of every size, on arrays that are read and written nowhere else. */
static void tiles_have_every_size(void **state) {
    (void)state;
    const qkvi_kernels *k;
    for (int n = 0; (k = qkvi_kernels_at(n)); n++) {
        rng r = { 21 };
        for (int rows = 1; rows <= k->mr; rows++)
            for (int cols = 1; cols <= COLS; cols++) {
                const int depth = (int)rng_between(&r, 0, 9), pairs = (depth + 1) / 2;
                guarded ga = guarded_new((size_t)(rows * depth) * 2, true);
                guarded gb = guarded_new((size_t)pairs * COLS * 4, false);
                guarded gc = guarded_new((size_t)(rows * cols) * 4, true);
                uint16_t *a = (uint16_t *)ga.data;
                uint32_t *b = (uint32_t *)gb.data;
                float *c = gc.data, want[12 * COLS];
                for (int e = 0; e < rows * depth; e++) a[e] = (uint16_t)any_half(&r, 2);
                for (int e = 0; e < pairs * COLS; e++)
                    b[e] = any_half(&r, 2) | (e / COLS < depth / 2 ? any_half(&r, 2) << 16 : 0);
                for (int e = 0; e < rows * cols; e++) want[e] = c[e] = any_float(&r, 2);
                for (int e = 0; e < rows * cols; e++)
                    for (int d = 0; d < depth; d += 2) {
                        const uint16_t *at = a + e / cols * depth + d;
                        const uint32_t pair = at[0] | (d + 1 < depth ? (uint32_t)at[1] << 16 : 0);
                        want[e] = step(want[e], pair, b[COLS * (d / 2) + e % cols]);
                    }
                k->gemm->half_tile[QKVI_CLASS_DP](rows, cols, depth, a, depth, b, c, cols);
                assert_memory_equal(c, want, (size_t)(rows * cols) * sizeof *c);
                guarded_free(&ga);
                guarded_free(&gb);
                guarded_free(&gc);
            }
    }
}

/* ---- Packing --------------------------------------------------------------------------------- */

/* Rows that no query sees hold NaN and must not be read. Returns which are seen; NULL: all. */
static const uint32_t *some(rng *r, uint16_t *x, int64_t n, int64_t stride, int64_t dim,
                            uint32_t words[8]) {
    if (rng_chance(r, 50)) return NULL;
    for (int w = 0; w < 8; w++) words[w] = (uint32_t)rng_next(r);
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; !(words[i / 32] >> i % 32 & 1) && c < dim; c++)
            x[i * stride + c] = 0x7FC0;
    return words;
}

static uint32_t element(const uint16_t *x, int64_t n, int64_t stride, int64_t dim,
                        const uint32_t *see, int64_t i, int64_t c) {
    const bool there = i < n && c < dim && (!see || see[i / 32] >> i % 32 & 1);
    return there ? x[i * stride + c] : 0;
}

/* Every word of the panels by their definition, and rows read exactly. */
static void panels_are_their_definition(void **state) {
    (void)state;
    const qkvi_kernels *k;
    for (int t = 0; (k = qkvi_kernels_at(t)); t++) {
        rng r = { 22 };
        for (int round = 0; round < 300; round++) {
            const int64_t n = rng_between(&r, 1, 200), dim = rng_between(&r, 1, 130);
            const int64_t stride = dim + rng_between(&r, 0, 3), depth = (dim + 1) / 2;
            const int64_t elems = (n - 1) * stride + dim, strips = (dim + 31) / 32;
            guarded gx = guarded_new((size_t)elems * 2, round % 2);
            guarded gk = guarded_new((size_t)((n + 31) / 32 * depth * 32) * 4, true);
            guarded gv = guarded_new((size_t)(strips * 128 * 32) * 4, true);
            uint16_t *x = (uint16_t *)gx.data;
            for (int64_t e = 0; e < elems; e++) x[e] = (uint16_t)any_half(&r, 2);
            uint32_t words[8], *keys = gk.data, *values = gv.data;
            const uint32_t *see = some(&r, x, n, stride, dim, words);
            const bool finite = k->rows->pack_channel_pairs(x, stride, n, dim, 256, see, gv.data);
            assert_true(finite);
            k->rows->pack_key_pairs(x, stride, n, dim, (dim + 1) / 2, see, gk.data);
            for (int64_t j = 0; j < (n + 31) / 32 * 32; j++)
                for (int64_t c = 0; c < dim; c += 2) {
                    const uint32_t want = element(x, n, stride, dim, see, j, c) |
                                          element(x, n, stride, dim, see, j, c + 1) << 16;
                    assert_int_equal(keys[(j / 32 * depth + c / 2) * 32 + j % 32], want);
                }
            for (int64_t j = 0; j < n; j += 2)
                for (int64_t c = 0; c < strips * 32; c++) {
                    const uint32_t want = element(x, n, stride, dim, see, j, c) |
                                          element(x, n, stride, dim, see, j + 1, c) << 16;
                    assert_int_equal(values[(c / 32 * 128 + j / 2) * 32 + c % 32], want);
                }
            const int64_t row = rng_between(&r, 0, n - 1);
            if (!see || see[row / 32] >> row % 32 & 1) {
                x[row * stride + dim - 1] = 0xFF80;
                assert_false(k->rows->pack_channel_pairs(x, stride, n, dim, 256, see, gv.data));
            }
            guarded_free(&gx), guarded_free(&gk), guarded_free(&gv);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_its_definition),      cmocka_unit_test(edges_meet),
        cmocka_unit_test(a_sum_is_small_after_rounding), cmocka_unit_test(tiles_have_every_size),
        cmocka_unit_test(panels_are_their_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
