/*
 * qkvi_fmaf: against a table of corner cases, against fused multiply-add in integers of 128 bits,
 * and against fmaf of the C library where that is known to be right. Both the function that
 * computes it and what this processor and compiler use in its place.
 *
 * Arguments: [cases of each kind [seed]].
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "core/fma.h"
#include "core/rng.h"

static uint64_t n_cases = 500000, seed;

/* ---- The reference --------------------------------------------------------------------------- */

typedef __int128 wide;

/* x = the integer that is returned, times 2^*exponent. */
static wide parts_of(float x, int *exponent) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int field = (int)(bits >> 23 & 0xFF);
    const wide fraction = bits & 0x7FFFFF;
    *exponent = (field > 0 ? field : 1) - 150;
    const wide magnitude = field > 0 ? fraction + 0x800000 : fraction;
    return bits >> 31 ? -magnitude : magnitude;
}

/* n 2^exponent to the nearest float, ties to even, beyond the greatest to infinity. */
static float float_of(wide n, int exponent) {
    const bool negative = n < 0;
    unsigned __int128 rest = negative ? -(unsigned __int128)n : (unsigned __int128)n;
    int n_bits = 0;
    while (n_bits < 128 && rest >> n_bits) n_bits++;
    int unit = exponent + n_bits - 24; /* of the last place */
    if (unit < -149) unit = -149;
    uint64_t kept;
    const int away = unit - exponent;
    if (away <= 0)
        kept = (uint64_t)rest << -away;
    else if (away > n_bits + 1)
        kept = 0;
    else {
        kept = away < 128 ? (uint64_t)(rest >> away) : 0;
        const unsigned __int128 lost = rest - ((unsigned __int128)kept << away);
        const unsigned __int128 half = (unsigned __int128)1 << (away - 1);
        kept += lost > half || (lost == half && kept % 2 == 1);
    }
    const float x = (float)ldexp((double)kept, unit); /* kept <= 2^24: exact, or infinity */
    return negative ? -x : x;
}

/* Of finite numbers. The sign of a sum of 0 is a matter of the table below. */
static float reference(float a, float b, float c) {
    int e_a, e_b, e;
    const wide product = parts_of(a, &e_a) * parts_of(b, &e_b);
    wide high = parts_of(c, &e), low = product;
    int d = e - (e_a + e_b);
    if (d < 0) {
        low = high;
        high = product;
        e = e_a + e_b;
        d = -d;
    }
    /* Both have at most 48 bits. Further apart than 75, only the sign of the lower one matters. */
    if (high == 0) return float_of(low, e - d);
    if (d > 75) {
        low = (low > 0) - (low < 0);
        d = 75;
    }
    return float_of(high * ((wide)1 << d) + low, e - d);
}

/* ---- Comparison ------------------------------------------------------------------------------ */

static bool same(float x, float y) { return isnan(x) ? isnan(y) : memcmp(&x, &y, sizeof x) == 0; }

static void expect(const char *what, float a, float b, float c, float got, float want) {
    if (!same(got, want))
        fail_msg("seed %llu: %s of %a, %a, %a is %a instead of %a", (unsigned long long)seed, what,
                 (double)a, (double)b, (double)c, (double)got, (double)want);
}

static void check(float a, float b, float c) {
    const float computed = qkvi_fmaf_computed(a, b, c), used = qkvi_fmaf(a, b, c);
    expect("qkvi_fmaf", a, b, c, used, computed);
    expect("rounding to odd", a, b, c, qkvi_fmaf_to_odd(a, b, c), computed);
    if (isfinite(a) && isfinite(b) && isfinite(c)) {
        const float want = reference(a, b, c);
        if (want != 0 || computed != 0) expect("qkvi_fmaf", a, b, c, computed, want);
    }
#if defined(__GLIBC__)
    expect("qkvi_fmaf beside fmaf", a, b, c, computed, fmaf(a, b, c));
#endif
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void corner_cases(void **state) {
    (void)state;
    static const struct {
        float a, b, c, want;
    } cases[] = {
        /* signs of zero */
        { 0, 0, 0, 0 },
        { -0.0f, 1, -0.0f, -0.0f },
        { -0.0f, 1, 0, 0 },
        { 1, 1, -1, 0 },
        { -1, 1, 1, 0 },
        { 0x1p-149f, 0x1p-149f, 0, 0 },
        { 0x1p-149f, -0x1p-149f, 0, -0.0f },
        { 0x1p-149f, -0x1p-149f, 0x1p-149f, 0x1p-149f },
        /* infinities and NaN */
        { INFINITY, 1, 1, INFINITY },
        { INFINITY, 0, 1, NAN },
        { INFINITY, 1, -INFINITY, NAN },
        { 1, 1, -INFINITY, -INFINITY },
        { FLT_MAX, FLT_MAX, -INFINITY, -INFINITY },
        { NAN, 0, INFINITY, NAN },
        { 1, NAN, 1, NAN },
        { 1, 1, NAN, NAN },
        /* overflow: half a unit past FLT_MAX is the first that rounds to infinity */
        { FLT_MAX, 1, 0x1p103f, INFINITY },
        { FLT_MAX, 1, 0x1.fffffep102f, FLT_MAX },
        { FLT_MAX, 2, -FLT_MAX, FLT_MAX },
        { FLT_MAX, FLT_MAX, -FLT_MAX, INFINITY },
        { FLT_MAX, -1, -0x1p103f, -INFINITY },
        /* ties between ordinary floats, and next to them: a double between would round twice */
        { 1, 1, 0x1p-24f, 1 },
        { 1, 0x1.000002p0f, 0x1p-24f, 0x1.000004p0f },
        { 0x1.000002p-24f, 1, 1, 0x1.000002p0f },
        { 0x1p-24f, 0x1.000002p0f, 1, 0x1.000002p0f },
        { 0x1.fffffep-25f, 1, 1, 1 },
        { 0x1p-80f, 0x1p-69f, 0x1.000002p0f, 0x1.000002p0f },
        /* ties between subnormal floats */
        { 0x1p-75f, 0x1p-75f, 0, 0 },
        { 0x1p-75f, 0x1.8p-74f, 0, 0x1p-148f },
        { 0x1.000002p-75f, 0x1p-75f, 0, 0x1p-149f },
        { 0x1.001p-75f, 0x1.ffe002p-76f, 0x1p-127f, 0x1.000004p-127f },
        { 0x1.001p-75f, -0x1.ffe002p-76f, -0x1p-127f, -0x1.000004p-127f },
        { 0x1p-126f, 1, -0x1p-149f, 0x1.fffffcp-127f },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const float a = cases[i].a, b = cases[i].b, c = cases[i].c;
        expect("qkvi_fmaf_computed", a, b, c, qkvi_fmaf_computed(a, b, c), cases[i].want);
        expect("qkvi_fmaf_computed", b, a, c, qkvi_fmaf_computed(b, a, c), cases[i].want);
        check(a, b, c);
    }
}

/* All triples of values at which something changes. */
static void special_values(void **state) {
    (void)state;
    static const float values[] = {
        0,
        0x1p-149f,
        0x1.8p-148f,
        0x1p-127f,
        0x1.fffffcp-127f,
        0x1p-126f,
        0x1p-75f,
        0x1p-74f,
        0x1p-24f,
        0x1p-25f,
        0x1.fffffep-1f,
        1,
        0x1.001p0f,
        0x1.000002p0f,
        3,
        0x1p24f,
        0x1p63f,
        0x1p64f,
        0x1p103f,
        0x1p127f,
        FLT_MAX,
        INFINITY,
        NAN,
    };
    enum { N = sizeof values / sizeof *values };
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (int k = 0; k < N; k++)
                for (int signs = 0; signs < 8; signs++)
                    check(signs & 1 ? -values[i] : values[i], signs & 2 ? -values[j] : values[j],
                          signs & 4 ? -values[k] : values[k]);
}

/* A float with an exponent field from first to last, its last n_zeros bits zeros. */
static float draw(qkvi_rng *rng, uint32_t first, uint32_t last, uint32_t n_zeros) {
    uint32_t bits = qkvi_rng_u32(rng) & 0x807FFFFF;
    bits &= UINT32_MAX << n_zeros;
    bits |= (first + qkvi_rng_below(rng, last - first + 1)) << 23;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float bits_away(float x, int n) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits += (uint32_t)n;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void random_cases(void **state) {
    (void)state;
    print_message("seed %llu, %llu cases of each kind\n", (unsigned long long)seed,
                  (unsigned long long)n_cases);
    qkvi_rng rng = qkvi_rng_make(seed, 0, 0);
    for (uint64_t n = 0; n < n_cases; n++) {
        /* any bits */
        check(draw(&rng, 0, 255, 0), draw(&rng, 0, 255, 0), draw(&rng, 0, 255, 0));
        /* results among the subnormal floats, of operands with few bits: ties */
        const uint32_t zeros = qkvi_rng_below(&rng, 23), e = 20 + qkvi_rng_below(&rng, 80);
        check(draw(&rng, e, e, zeros), draw(&rng, 100 - e, 130 - e, qkvi_rng_below(&rng, 23)),
              draw(&rng, 0, 3, qkvi_rng_below(&rng, 23)));
        /* ties of ordinary floats */
        check(draw(&rng, 120, 134, qkvi_rng_below(&rng, 23)), draw(&rng, 120, 134, zeros),
              draw(&rng, 90, 165, qkvi_rng_below(&rng, 23)));
        /* c is nearly -a b: all leading bits cancel */
        const float a = draw(&rng, 1, 190, 0), b = draw(&rng, 1, 190, 0);
        check(a, b, bits_away(-(a * b), (int)qkvi_rng_below(&rng, 5) - 2));
        /* next to overflow */
        const uint32_t high = 127 + qkvi_rng_below(&rng, 120);
        check(
            draw(&rng, high, high, zeros),
            draw(&rng, 380 - high > 254 ? 254 : 380 - high, 381 - high > 254 ? 254 : 381 - high, 0),
            draw(&rng, 220, 254, zeros));
        /* a product that is half a unit of c, or next to it: (1 + x) (1 - x) misses it by x^2 */
        const float x = draw(&rng, 100, 126, 20), unit = draw(&rng, 0, 254, 0);
        const int scale = ilogbf(unit == 0 ? FLT_MIN : unit) < -126 ? -126 : ilogbf(unit);
        check((1 + x) * 0x1p-12f, ldexpf(1 - x, scale - 12), unit);
    }
}

int main(int argc, char **argv) {
    seed = (uint64_t)time(NULL);
    if (argc > 1) n_cases = strtoull(argv[1], NULL, 10);
    if (argc > 2) seed = strtoull(argv[2], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corner_cases),
        cmocka_unit_test(special_values),
        cmocka_unit_test(random_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
