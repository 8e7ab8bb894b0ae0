/*
 * qkvi_number_f64 and _f32 against strtod and strtof of the C library: texts of every shape, ties
 * and their neighbours, subnormal numbers, overflow; and texts that are no numbers.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "core/rng.h"
#include "files/number.h"

static uint64_t seed;

static void check(const char *text) {
    double wide = NAN;
    float narrow = NAN;
    if (!qkvi_number_f64(text, strlen(text), false, &wide) ||
        !qkvi_number_f32(text, strlen(text), &narrow))
        fail_msg("seed %llu: '%s' is no number", (unsigned long long)seed, text);
    double odd = NAN;
    assert_true(qkvi_number_f64(text, strlen(text), true, &odd));
    const double wide_right = strtod(text, NULL); /* no test of these programs sets a locale */
    const float narrow_right = strtof(text, NULL);
    if (memcmp(&wide, &wide_right, sizeof wide) != 0)
        fail_msg("seed %llu: '%s' is %a instead of %a", (unsigned long long)seed, text, wide,
                 wide_right);
    if (memcmp(&narrow, &narrow_right, sizeof narrow) != 0)
        fail_msg("seed %llu: '%s' is %a instead of %a as a float", (unsigned long long)seed, text,
                 (double)narrow, (double)narrow_right);
    const float by_odd = (float)odd;
    if (memcmp(&by_odd, &narrow_right, sizeof by_odd) != 0)
        fail_msg("seed %llu: '%s' is %a by the odd double %a instead of %a",
                 (unsigned long long)seed, text, (double)by_odd, odd, (double)narrow_right);
}

static void corner_cases(void **state) {
    (void)state;
    static const char *const texts[] = {
        "0",
        "-0",
        "+0",
        "0.0",
        "-.0",
        "5.",
        ".5",
        "1e0",
        "1E+05",
        "1e-05",
        "007.2500",
        "1e999999999999",
        "-1e-999999999999",
        "0e999999999",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.797693134862315807e308",
        "1.797693134862315808e308",
        "1.7976931348623159e308",
        "4.9406564584124654e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "2.2250738585072011e-308",
        "2.2250738585072014e-308",
        "3.4028234663852886e38",
        "3.4028235677973366e38",
        "3.4028235677973365e38",
        "3.4028235677973367e38",
        "1.4012984643248171e-45",
        "7.006492321624085e-46",
        "7.006492321624086e-46",
        "9007199254740993",
        "9007199254740993.00000000000000000000000000001",
        "9007199254740992.5",
        "16777217",
        "16777217.0000000000000000000000000000000000000001",
        "16777216.99999999999999999",
        "1.00000005960464477539062500000000000000000000",
        "1.000000059604644775390625e0",
        "1.00000005960464477539062500000000000000000001",
        "18446744073709551615",
        "18446744073709551616",
        "9999999999999999999e19",
        "9999999999999999999e-19",
        "9999999999999999999e20",
        "12345678901234567890123456789012345678901234567890e-320",
        "0.00000000000000000000000000000000000000000000000000000000001",
        "100000000000000000000000000000000000000000000000000000000000",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) check(texts[i]);
}

static void refused(void **state) {
    (void)state;
    static const char *const texts[] = {
        "",      "+",
        "-",     ".",
        "+.",    "e5",
        ".e5",   "1e",
        "1e+",   "1.2.3",
        "1,5",   " 1",
        "1 ",    "0x10",
        "inf",   "nan",
        "1e5.0", "--1",
        "1-",    "1e5e5",
        "1_000", "1000000000000000000000000000000000000000000000000000000000000000", /* 64 digits */
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        double wide = 3;
        float narrow = 3;
        assert_false(qkvi_number_f64(texts[i], strlen(texts[i]), false, &wide));
        assert_false(qkvi_number_f32(texts[i], strlen(texts[i]), &narrow));
        assert_true(wide == 3 && narrow == 3);
    }
    double value;
    assert_true(qkvi_number_f64("12345", 3, false, &value) && value == 123); /* no NUL is needed */
}

static void random_texts(void **state) {
    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    qkvi_rng rng = qkvi_rng_make(seed, 0, 0);
    char text[QKVI_NUMBER_BYTES];
    for (int i = 0; i < 15000; i++) {
        /* any digits and exponent */
        int n = 0;
        const int n_digits = 1 + (int)qkvi_rng_below(&rng, 40);
        const int point = (int)qkvi_rng_below(&rng, 60);
        for (int j = 0; j < n_digits; j++) {
            if (j == point) text[n++] = '.';
            text[n++] = (char)('0' + qkvi_rng_below(&rng, qkvi_rng_below(&rng, 4) ? 10 : 1));
        }
        snprintf(text + n, sizeof text - (size_t)n, "e%d", (int)qkvi_rng_below(&rng, 720) - 380);
        check(text);
        /* what programs write */
        const uint64_t bits = (uint64_t)qkvi_rng_u32(&rng) << 32 | qkvi_rng_u32(&rng);
        double x;
        memcpy(&x, &bits, sizeof x);
        if (isfinite(x)) {
            snprintf(text, sizeof text, "%.17g", x);
            check(text);
        }
        float y;
        memcpy(&y, &bits, sizeof y);
        if (!isfinite(y)) continue;
        snprintf(text, sizeof text, "%.9g", (double)y);
        check(text);
        /* halfway between two floats, to the digits that fit */
        snprintf(text, sizeof text, "%.40e", ((double)y + (double)nextafterf(y, INFINITY)) / 2);
        check(text);
    }
}

int main(int argc, char **argv) {
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t)time(NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corner_cases),
        cmocka_unit_test(refused),
        cmocka_unit_test(random_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
