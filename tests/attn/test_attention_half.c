/*
 * bf16 and f16: every value, and every boundary of rounding, against arithmetic in double that
 * knows nothing of encodings but sign, exponent and fraction; then the same values through
 * load_rows and store_rows of every instruction set, on arrays that end at a page without access.
 */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check/cases.h"
#include "check/guard.h"
#include "core/half.h"
#include "kernels/table.h"

typedef struct format {
    const char *name;
    qkv_dtype type;
    int fraction_bits, bias;
    uint16_t infinity;
    float (*to_f32)(uint16_t);
    uint16_t (*of_f32)(float);
} format;

static const format FORMATS[] = {
    { "bf16", QKV_BF16, 7, 127, 0x7F80, qkvi_f32_of_bf16, qkvi_bf16_of_f32 },
    { "f16", QKV_F16, 10, 15, 0x7C00, qkvi_f32_of_f16, qkvi_f16_of_f32 },
};
enum { N_FORMATS = 2, N_VALUES = 65536 };

/* What the encoding of a finite number means; one past the greatest: what would come next. */
static double meaning(const format *f, uint32_t magnitude) {
    const int exponent = (int)(magnitude >> f->fraction_bits);
    const int fraction = (int)(magnitude & ((1u << f->fraction_bits) - 1));
    const int one = exponent ? 1 << f->fraction_bits : 0;
    return ldexp(one + fraction, (exponent ? exponent : 1) - f->bias - f->fraction_bits);
}

static void every_value_is_exact(void **state) {
    (void)state;
    for (const format *f = FORMATS; f < FORMATS + N_FORMATS; f++)
        for (uint32_t x = 0; x < N_VALUES; x++) {
            const uint32_t magnitude = x & 0x7FFF;
            const float value = f->to_f32((uint16_t)x);
            if (magnitude > f->infinity) {
                assert_true(isnan(value));
                assert_true(isnan(f->to_f32(f->of_f32(value))));
                assert_int_equal(f->of_f32(value) >> 15, x >> 15);
                continue;
            }
            const double size = magnitude == f->infinity ? INFINITY : meaning(f, magnitude);
            assert_true((double)value == (x >> 15 ? -size : size));
            assert_int_equal(signbit(value) != 0, x >> 15);
            assert_int_equal(f->of_f32(value), x);
        }
}

static void a_nan_becomes_quiet(void **state) {
    (void)state;
    for (const format *f = FORMATS; f < FORMATS + N_FORMATS; f++) {
        const uint32_t quiet = 1u << (f->fraction_bits - 1);
        for (uint32_t bits = 0x7F800001u; bits < 0x80000000u; bits = bits * 2 - 0x7F800000u + 7)
            for (uint32_t sign = 0; sign < 2; sign++) {
                const uint16_t x = f->of_f32(qkvi_float_of_bits(bits | sign << 31));
                assert_true((x & 0x7FFF) > f->infinity);
                assert_true(x & quiet);
                assert_int_equal(x >> 15, sign);
            }
    }
}

/* Between neighbours: the middle goes to the even one, its own neighbours to the nearer one. */
static void every_boundary_is_rounded_to_nearest_even(void **state) {
    (void)state;
    for (const format *f = FORMATS; f < FORMATS + N_FORMATS; f++)
        for (uint32_t x = 0; x < f->infinity; x++) {
            const float middle = (float)((meaning(f, x) + meaning(f, x + 1)) / 2);
            assert_true((double)middle == (meaning(f, x) + meaning(f, x + 1)) / 2);
            const uint32_t even = x % 2 ? x + 1 : x;
            for (uint32_t sign = 0; sign < 2; sign++) {
                const float s = sign ? -1 : 1;
                assert_int_equal(f->of_f32(s * middle), even | sign << 15);
                assert_int_equal(f->of_f32(s * nextafterf(middle, 0)), x | sign << 15);
                assert_int_equal(f->of_f32(s * nextafterf(middle, INFINITY)), (x + 1) | sign << 15);
            }
        }
}

static void others_go_to_the_nearest(void **state) {
    (void)state;
    rng r = { 20261121 };
    for (int n = 0; n < 300000; n++) {
        const float value = qkvi_float_of_bits((uint32_t)rng_next(&r));
        if (!isfinite(value)) continue;
        for (const format *f = FORMATS; f < FORMATS + N_FORMATS; f++) {
            const uint32_t x = f->of_f32(value) & 0x7FFF;
            const double size = fabs((double)value), low = x ? meaning(f, x - 1) : -1;
            if (x < f->infinity) assert_true(size - low >= meaning(f, x) - size);
            if (x < f->infinity)
                assert_true(meaning(f, x + 1) - size >= fabs(size - meaning(f, x)));
            if (x == f->infinity) assert_true(size - low >= meaning(f, x) - size);
        }
    }
}

/* ---- Vectors --------------------------------------------------------------------------------- */

static bool same_float(float x, float y) {
    return memcmp(&x, &y, sizeof x) == 0 || (isnan(x) && isnan(y));
}

/* All values as rows of every length up to 40, flush with a page without access. */
static void rows_of(const qkvi_kernels *k, const format *f, int64_t dim, bool at_end) {
    const int64_t n = N_VALUES / dim, gap = dim % 3;
    const size_t elems = (size_t)((n - 1) * (dim + gap) + dim);
    guarded from = guarded_new(elems * sizeof(uint16_t), at_end);
    guarded to = guarded_new(elems * sizeof(uint16_t), at_end);
    guarded floats = guarded_new((size_t)(n * dim) * sizeof(float), at_end);
    uint16_t *x = from.data, *z = to.data;
    float *y = floats.data;
    for (int64_t i = 0; i < n * dim; i++) x[i / dim * (dim + gap) + i % dim] = (uint16_t)i;
    guarded_read_only(&from);
    k->rows->load[f->type](x, dim + gap, n, dim, y, dim);
    for (int64_t i = 0; i < n * dim; i++)
        if (!same_float(y[i], f->to_f32((uint16_t)i)))
            fail_msg("%s, %s, 0x%x, rows of %" PRId64, k->name, f->name, (unsigned)i, dim);
    k->rows->store[f->type](y, dim, n, dim, 1, z, dim + gap);
    for (int64_t i = 0; i < n * dim; i++) {
        const uint16_t got = z[i / dim * (dim + gap) + i % dim], want = f->of_f32(y[i]);
        if (got != want && !((want & 0x7FFF) > f->infinity && (got & 0x7FFF) > f->infinity))
            fail_msg("%s, %s, 0x%x becomes 0x%x", k->name, f->name, (unsigned)i, got);
    }
    for (int64_t i = 0; i + 1 < n; i++)
        for (int64_t c = 0; c < gap; c++) assert_int_equal(z[i * (dim + gap) + dim + c], 0xFFFF);
    assert_true(guarded_intact(&to) && guarded_intact(&floats));
    guarded_free(&from);
    guarded_free(&to);
    guarded_free(&floats);
}

static void vectors_convert_alike(void **state) {
    (void)state;
    const qkvi_kernels *k;
    for (int isa = 0; (k = qkvi_kernels_at(isa)); isa++)
        for (const format *f = FORMATS; f < FORMATS + N_FORMATS; f++)
            for (int64_t dim = 1; dim <= 40; dim++) rows_of(k, f, dim, dim % 2);
}

/* Each boundary and its neighbours, times a factor that must come before the rounding. */
static void vectors_round_alike(void **state) {
    (void)state;
    const qkvi_kernels *k;
    for (int isa = 0; (k = qkvi_kernels_at(isa)); isa++)
        for (const format *f = FORMATS; f < FORMATS + N_FORMATS; f++)
            for (uint32_t x = 0; x < f->infinity; x++) {
                const float middle = (float)((meaning(f, x) + meaning(f, x + 1)) / 2);
                const float in[6] = {
                    middle,  nextafterf(middle, 0),  nextafterf(middle, INFINITY),
                    -middle, -nextafterf(middle, 0), -nextafterf(middle, INFINITY)
                };
                uint16_t out[6];
                const float factor = x % 2 ? 1 : 3;
                k->rows->store[f->type](in, 6, 1, 6, factor, out, 6);
                for (int n = 0; n < 6; n++)
                    if (out[n] != f->of_f32(in[n] * factor))
                        fail_msg("%s, %s: %.9g becomes 0x%x", k->name, f->name,
                                 (double)(in[n] * factor), out[n]);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_is_exact),
        cmocka_unit_test(a_nan_becomes_quiet),
        cmocka_unit_test(every_boundary_is_rounded_to_nearest_even),
        cmocka_unit_test(others_go_to_the_nearest),
        cmocka_unit_test(vectors_convert_alike),
        cmocka_unit_test(vectors_round_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
