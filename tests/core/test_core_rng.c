/* Philox against the published vectors; streams; the bounded and the unit draw. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/rng.h"

/* Random123's kat_vectors, the lines "philox4x32 10". */
static void published_vectors(void **state) {
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], expected[4];
    } cases[] = {
        { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
          { 0xffffffff, 0xffffffff },
          { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
          { 0xa4093822, 0x299f31d0 },
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t out[4];
        qkvi_philox(cases[i].key, cases[i].counter, out);
        assert_memory_equal(out, cases[i].expected, sizeof out);
        memcpy(out, cases[i].counter, sizeof out);
        qkvi_philox(cases[i].key, out, out);
        assert_memory_equal(out, cases[i].expected, sizeof out);
    }
}

static void a_stream_is_its_blocks_in_order(void **state) {
    (void)state;
    qkvi_rng rng = qkvi_rng_make(0x0123456789ABCDEF, 7, 0xFEDCBA9876543210);
    const uint32_t key[2] = { 0x89ABCDEF, 0x01234567 };
    for (uint32_t block = 0; block < 3; block++) {
        const uint32_t counter[4] = { block, 7, 0x76543210, 0xFEDCBA98 };
        uint32_t expected[4];
        qkvi_philox(key, counter, expected);
        for (int i = 0; i < 4; i++) assert_int_equal(qkvi_rng_u32(&rng), expected[i]);
    }
}

static void below_is_in_range_and_even(void **state) {
    (void)state;
    qkvi_rng rng = qkvi_rng_make(1, 0, 0);
    for (uint32_t n = 1; n < 200; n += 7)
        for (int i = 0; i < 100; i++) assert_true(qkvi_rng_below(&rng, n) < n);
    enum { ROUNDS = 90000 };
    /* n = 3 * 2^30: without rejection the multiples of 3 are twice as likely as others */
    int thirds[3] = { 0 };
    for (int i = 0; i < ROUNDS; i++) thirds[qkvi_rng_below(&rng, 3221225472u) % 3]++;
    for (int i = 0; i < 3; i++) assert_in_range(thirds[i], ROUNDS / 3 - 900, ROUNDS / 3 + 900);
}

static void unit_is_in_range_and_even(void **state) {
    (void)state;
    qkvi_rng rng = qkvi_rng_make(2, 0, 0);
    double sum = 0;
    enum { ROUNDS = 100000 };
    for (int i = 0; i < ROUNDS; i++) {
        const float u = qkvi_rng_unit(&rng);
        assert_true(u >= 0 && u < 1);
        sum += (double)u;
    }
    assert_true(sum / ROUNDS > 0.495 && sum / ROUNDS < 0.505); /* five standard deviations */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors),
        cmocka_unit_test(a_stream_is_its_blocks_in_order),
        cmocka_unit_test(below_is_in_range_and_even),
        cmocka_unit_test(unit_is_in_range_and_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
