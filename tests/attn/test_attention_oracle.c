/*
 * The oracle's own parts: numbers of 16 bits against the conversions of the compiler, Philox
 * against the vectors that its authors publish, and dropout's threshold.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "check/chance.h"
#include "check/elements.h"
#include "check/philox.h"

/* Every number of 16 bits survives; NaN stays NaN with its sign. */
static void test_every_number(void **state) {
    static const elem_type types[] = { ELEMENT_BF16, ELEMENT_F16 };
    (void)state;
    for (int t = 0; t < 2; t++)
        for (uint32_t bits = 0; bits < 65536; bits++) {
            const double x = element_of_bits(types[t], (uint16_t)bits);
            uint16_t back;
            element_set(&back, types[t], 0, x);
            if (isnan(x))
                assert_true(isnan(element_of_bits(types[t], back)) && back >> 15 == bits >> 15);
            else
                assert_int_equal(back, bits);
        }
}

static void test_known_numbers(void **state) {
    (void)state;
    assert_true(element_of_bits(ELEMENT_F16, 0x3C00) == 1);
    assert_true(element_of_bits(ELEMENT_F16, 0x7BFF) == 65504);
    assert_true(element_of_bits(ELEMENT_F16, 0x0001) == 0x1p-24);
    assert_true(element_of_bits(ELEMENT_F16, 0xFC00) == -INFINITY);
    assert_true(element_of_bits(ELEMENT_BF16, 0x3F80) == 1);
    assert_true(element_of_bits(ELEMENT_BF16, 0xC049) == -3.140625);
    assert_true(element_rounded(ELEMENT_F16, 65519.99) == 65504);
    assert_true(element_rounded(ELEMENT_F16, 65520) == INFINITY);
    assert_true(element_rounded(ELEMENT_F16, 1 + 0x1p-11) == 1);
    assert_true(element_rounded(ELEMENT_F16, 1 + 3 * 0x1p-11) == 1 + 2 * 0x1p-10);
    assert_true(element_rounded(ELEMENT_F16, 0x1p-25) == 0);
    assert_true(element_rounded(ELEMENT_BF16, 1 + 0x1.1p-8) == 1 + 0x1p-7);
}

/* bf16 is the upper half of a float, rounded by adding to the lower half. */
static void test_bf16_of_floats(void **state) {
    (void)state;
    rng r = { 7 };
    for (int n = 0; n < 100000; n++) {
        uint32_t bits = (uint32_t)rng_next(&r);
        float x;
        memcpy(&x, &bits, sizeof x);
        if (isnan(x)) continue;
        bits += 0x7FFF + (bits >> 16 & 1);
        assert_true(element_rounded(ELEMENT_BF16, (double)x) ==
                    element_of_bits(ELEMENT_BF16, (uint16_t)(bits >> 16)));
    }
}

static void test_nans(void **state) {
    static const elem_type types[] = { ELEMENT_F32, ELEMENT_BF16, ELEMENT_F16 };
    (void)state;
    rng r = { 8 };
    for (int n = 0; n < 3000; n++) {
        uint32_t place = 0;
        element_set_nan(&place, types[n % 3], 0, n < 3 ? 0 : rng_next(&r));
        assert_true(isnan(element_get(&place, types[n % 3], 0)));
    }
}

/* kat_vectors of Random123. */
static void test_philox(void **state) {
    static const struct {
        uint32_t counter[4], key[2], word[4];
    } vectors[] = {
        { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
          { 0xffffffff, 0xffffffff },
          { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
          { 0xa4093822, 0x299f31d0 },
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    (void)state;
    for (size_t n = 0; n < sizeof vectors / sizeof *vectors; n++) {
        uint32_t word[4];
        philox4x32_10(vectors[n].counter, vectors[n].key, word);
        assert_memory_equal(word, vectors[n].word, sizeof word);
    }
}

/* 0 keeps everything, 1 nothing, a quarter drops about a quarter. */
static void test_dropout(void **state) {
    static const float shares[] = { 0, 1, 0.25f };
    (void)state;
    for (int n = 0; n < 3; n++) {
        const qkv_attention_desc d = {
            .flags = QKV_SET_DROPOUT, .n_heads = 3, .dropout = shares[n], .dropout_seed = 42
        };
        int kept = 0;
        for (int j = 0; j < 4000; j++) {
            const double factor = dropout_factor(&d, 1, 2, 5, j);
            assert_true(factor == 0 || factor == 1 / (1 - (double)shares[n]));
            kept += factor != 0;
        }
        assert_in_range(kept, n == 0 ? 4000 : n == 1 ? 0 : 2900, n == 0 ? 4000 : n == 1 ? 0 : 3100);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_number),   cmocka_unit_test(test_known_numbers),
        cmocka_unit_test(test_bf16_of_floats), cmocka_unit_test(test_nans),
        cmocka_unit_test(test_philox),         cmocka_unit_test(test_dropout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
