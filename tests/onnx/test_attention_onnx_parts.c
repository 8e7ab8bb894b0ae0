/* Parts of src/onnx: exp and tanh in double, elements of every type. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "check/chance.h"
#include "check/elements.h"
#include "onnx/exp.h"
#include "onnx/types.h"

/* In units in the last place of the exact result. */
static double units(double got, long double exact) {
    const double near = (double)exact;
    if (got == near) return 0;
    return (double)(fabsl((long double)got - exact) / (long double)element_ulp(ELEMENT_F64, near));
}

static void exp_is_within_2_units(void **state) {
    rng r = { 1 };
    double worst = 0;
    (void)state;
    for (int n = 0; n < 200000; n++) {
        const double width = n % 2 ? 1 : 700, x = (double)rng_normal(&r) * width / 6;
        worst = fmax(worst, units(qkvi_onnx_exp(x), expl((long double)x)));
    }
    for (double x = -745.1; x < -700; x += 0.01) /* below the normal numbers */
        worst = fmax(worst, units(qkvi_onnx_exp(x), expl((long double)x)));
    print_message("exp: %.3f units\n", worst);
    assert_true(worst < 2);
}

static void tanh_is_within_3_units(void **state) {
    rng r = { 2 };
    double worst = 0;
    (void)state;
    for (int n = 0; n < 200000; n++) {
        const double x = ldexp((double)rng_normal(&r), (int)rng_between(&r, -40, 3));
        worst = fmax(worst, units(qkvi_onnx_tanh(x), tanhl((long double)x)));
    }
    print_message("tanh: %.3f units\n", worst);
    assert_true(worst < 3);
}

static void ends_of_exp_and_tanh(void **state) {
    (void)state;
    assert_true(qkvi_onnx_exp(0) == 1 && qkvi_onnx_exp(-0.0) == 1);
    assert_true(qkvi_onnx_exp(-INFINITY) == 0 && qkvi_onnx_exp(INFINITY) == INFINITY);
    assert_true(qkvi_onnx_exp(-1e300) == 0 && qkvi_onnx_exp(1e300) == INFINITY);
    assert_true(qkvi_onnx_exp(709.78) < INFINITY && qkvi_onnx_exp(709.79) == INFINITY);
    assert_true(qkvi_onnx_exp(-745.13) > 0 && qkvi_onnx_exp(-745.14) == 0);
    assert_true(isnan(qkvi_onnx_exp(NAN)) && isnan(qkvi_onnx_tanh(NAN)));
    assert_true(qkvi_onnx_tanh(INFINITY) == 1 && qkvi_onnx_tanh(-INFINITY) == -1);
    assert_true(qkvi_onnx_tanh(22) == 1 && qkvi_onnx_tanh(-21.99) >= -1);
    assert_true(qkvi_onnx_tanh(0) == 0 && signbit(qkvi_onnx_tanh(-0.0)));
    assert_true(qkvi_onnx_tanh(0x1p-1074) == 0x1p-1074);
}

/* Numbers at, beside and between numbers of 16 bits, by a definition of its own. */
static void numbers_are_rounded_once(void **state) {
    static const struct {
        qkv_onnx_type type;
        elem_type elem;
    } types[] = { { QKV_ONNX_FLOAT16, ELEMENT_F16 },
                  { QKV_ONNX_BFLOAT16, ELEMENT_BF16 },
                  { QKV_ONNX_FLOAT, ELEMENT_F32 } };
    rng r = { 3 };
    (void)state;
    for (int t = 0; t < 3; t++)
        for (int n = 0; n < 200000; n++) {
            double x = element_rounded(
                types[t].elem, ldexp((double)rng_normal(&r), (int)rng_between(&r, -150, 130)));
            if (isinf(x)) x = 65000;
            const double step = element_ulp(types[t].elem, x);
            x += step * (double)rng_between(&r, 0, 4) / 4; /* ties among them */
            if (n % 2) x += ldexp(step, -(int)rng_between(&r, 20, 28)) * (n % 4 < 2 ? 1 : -1);
            uint32_t got = 0, want = 0;
            qkvi_onnx_store(types[t].type, &got, 0, 1, &x);
            element_set(&want, types[t].elem, 0, x);
            if (got != want)
                fail_msg("%a in type %d is %x, not %x", x, (int)types[t].type, got, want);
            double back = 0;
            qkvi_onnx_load(types[t].type, &want, 0, 1, &back);
            assert_true(back == element_get(&want, types[t].elem, 0));
        }
    const double special[] = { INFINITY, -INFINITY, 1e300, -1e300, 1e-300, -0.0 };
    for (int n = 0; n < 6; n++) {
        uint16_t got = 0, want = 0;
        qkvi_onnx_store(QKV_ONNX_FLOAT16, &got, 0, 1, &special[n]);
        element_set(&want, ELEMENT_F16, 0, special[n]);
        assert_int_equal(got, want);
    }
    const double nan = NAN;
    uint16_t stored = 0;
    qkvi_onnx_store(QKV_ONNX_BFLOAT16, &stored, 0, 1, &nan);
    assert_true(isnan(element_get(&stored, ELEMENT_BF16, 0)));
}

static void integers_are_read(void **state) {
    const uint8_t bytes[] = { 0x80, 0xFF, 0x01, 0, 0, 0, 0, 0x80 };
    const struct {
        qkv_onnx_type type;
        double value;
    } list[] = { { QKV_ONNX_UINT8, 128 },
                 { QKV_ONNX_INT8, -128 },
                 { QKV_ONNX_BOOL, 1 },
                 { QKV_ONNX_UINT16, 65408 },
                 { QKV_ONNX_INT16, -128 },
                 { QKV_ONNX_UINT32, 130944 },
                 { QKV_ONNX_INT32, 130944 },
                 { QKV_ONNX_UINT64, 0x1p63 + 130944 },
                 { QKV_ONNX_INT64, -0x1p63 + 130944 } };
    _Alignas(8) uint8_t data[8];
    (void)state;
    memcpy(data, bytes, sizeof data);
    for (size_t n = 0; n < sizeof list / sizeof *list; n++) {
        double got = 0;
        qkvi_onnx_load(list[n].type, data, 0, 1, &got);
        assert_true(got == list[n].value);
        assert_string_not_equal(qkvi_onnx_type_of(list[n].type)->name, "");
    }
    assert_null(qkvi_onnx_type_of(8));
    assert_null(qkvi_onnx_type_of(0));
    assert_null(qkvi_onnx_type_of(-1));
    assert_null(qkvi_onnx_type_of(INT64_MAX));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_within_2_units), cmocka_unit_test(tanh_is_within_3_units),
        cmocka_unit_test(ends_of_exp_and_tanh),  cmocka_unit_test(numbers_are_rounded_once),
        cmocka_unit_test(integers_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
