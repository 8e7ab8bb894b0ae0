/*
 * Dropout at positions beyond 2^32, whose counters no array in memory reaches: the forward kernel
 * of every instruction set on one block of keys, with such positions as arguments.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attn/dropout.h"
#include "check/philox.h"
#include "kernels/table.h"

enum { ROWS = 20, KEYS = QKVI_KEY_BLOCK };

static qkvi_attend_scratch scratch;
static _Alignas(64) float values[KEYS * KEYS]; /* [panel][key][32 channels]: a channel each */
static _Alignas(64) float sums[ROWS * (KEYS + 16)], o[ROWS * KEYS];

static void run(const qkvi_kernels *kernels, const qkvi_dropout *dropout) {
    static const bool finite[1] = { true };
    static const float nothing[64];
    const qkvi_attend a = { .head_dim_v = KEYS,
                            .n_queries = ROWS,
                            .q = nothing,
                            .k = nothing,
                            .v = values,
                            .v_finite = finite,
                            .scratch = &scratch,
                            .o_sum = sums,
                            .o_sum_row = KEYS + 16,
                            .dropout = dropout,
                            .scale = 1,
                            .o = o,
                            .o_row = KEYS };
    for (int i = 0; i < ROWS; i++) {
        scratch.begin[i] = 0;
        scratch.end[i] = KEYS;
    }
    kernels->attend->block(&a);
}

static void high_halves_of_counters(void **state) {
    static const struct {
        int64_t b, h, n_heads, row, col;
    } at[] = {
        { 3, 5, 7, 0, 0 },
        { 3, 5, 7, ((int64_t)1 << 40) - 8, 256 },
        { ((int64_t)1 << 44) + 12345, 1, 3, 1000, 0 },
        { 0, 0, 1, 17, ((int64_t)1 << 34) - 256 },
        { 0, 0, 1, ((int64_t)5 << 32) - 3, ((int64_t)77 << 34) + 512 },
    };
    qkv_attention_desc wanted = { .flags = QKV_SET_DROPOUT,
                                  .dropout = 0.25f,
                                  .dropout_seed = 0x0123456789ABCDEF };
    (void)state;
    for (int n = 0; n < KEYS; n++) values[n / 32 * 32 * KEYS + n * 32 + n % 32] = 1;
    for (size_t n = 0; n < sizeof at / sizeof *at; n++) {
        const qkvi_problem p = { .n_heads = at[n].n_heads,
                                 .has_dropout = true,
                                 .dropout = wanted.dropout,
                                 .dropout_last = (1u << 30) - 1,
                                 .dropout_seed = wanted.dropout_seed };
        qkvi_dropout d;
        wanted.n_heads = at[n].n_heads;
        const qkvi_dropout *dropout =
            qkvi_dropout_from(&p, at[n].b, at[n].h, at[n].row, at[n].col, &d);
        for (int k = 0; qkvi_kernels_at(k); k++) {
            run(qkvi_kernels_at(k), dropout);
            for (int i = 0; i < ROWS; i++)
                for (int j = 0; j < KEYS; j++) {
                    const bool want =
                        dropout_factor(&wanted, at[n].b, at[n].h, at[n].row + i, at[n].col + j) > 0;
                    if ((o[i * KEYS + j] != 0) != want)
                        fail_msg("%s: place %d, row %d, key %d", qkvi_kernels_at(k)->name, (int)n,
                                 i, j);
                }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(high_halves_of_counters) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
