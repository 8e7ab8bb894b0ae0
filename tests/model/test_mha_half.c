/*
 * Multi-head attention in bf16 (model/layer/block.h), each class: q, k and v are those of the
 * linear layers rounded to bf16, word by word; o is that of a textbook in double on them, but for
 * weights rounded by 2^-8 of themselves and sums in f32; and all has the same bits on every
 * instruction set and for one to three threads.
 *
 * Usage: unit_mha_half [SEED]
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "core/cpu.h"
#include "core/half.h"
#include "core/rng.h"
#include "make_ctx.h"
#include "model/layer/block.h"

static uint64_t seed = 47;

enum { N_GROUPS = 2, MOST_ROWS = 120, MOST_HIDDEN = 96, MOST = MOST_ROWS * MOST_HIDDEN };

/* Sequences of one length, then of another. */
typedef struct shape {
    int64_t n_heads, head_dim, n[N_GROUPS], len[N_GROUPS];
    bool causal;
} shape;

static const shape shapes[] = {
    { 1, 32, { 1, 0 }, { 1, 1 }, false },   { 2, 48, { 2, 1 }, { 9, 40 }, false },
    { 3, 32, { 1, 3 }, { 100, 5 }, true },  { 4, 20, { 3, 1 }, { 17, 33 }, false },
    { 1, 96, { 1, 1 }, { 65, 16 }, false },
};

static float x[MOST];
static float floats[4][MOST]; /* q, k, v, o */
static uint16_t halves[3][MOST];
static float lse[MOST];

static float draw(qkvi_rng *rng) { return qkvi_rng_unit(rng) * 2 - 1; }

static qkvi_linear make_linear(qkvi_rng *rng, int64_t n, qkv_class class) {
    float *const w = qkvi_aligned_array((size_t)(n * n), sizeof *w);
    qkvi_linear layer = { .n_in = n,
                          .n_out = n,
                          .weight = w,
                          .bias = qkvi_aligned_array((size_t)n, sizeof(float)),
                          .half = qkvi_aligned_array(qkvi_bf16_packed_words(n, n), 4),
                          .half_class = class };
    assert_true(w && layer.bias && layer.half);
    for (int64_t i = 0; i < n * n; i++) w[i] = draw(rng) * 0.3f;
    for (int64_t i = 0; i < n; i++) layer.bias[i] = draw(rng);
    qkvi_linear_pack(NULL, &layer);
    free(w);
    layer.weight = NULL;
    return layer;
}

static qkvi_groups make_groups(const shape *s, qkvi_sequence_group list[N_GROUPS]) {
    qkvi_groups groups = { .list = list, .change = { .causal = s->causal } };
    for (int g = 0; g < N_GROUPS && s->n[g] > 0; g++) {
        list[g] =
            (qkvi_sequence_group){ groups.n_rows, s->n[g], s->len[g], groups.n_rows, s->len[g] };
        groups.n_rows += s->n[g] * s->len[g];
        groups.n_groups++;
    }
    groups.n_keys = groups.n_rows;
    assert_true(groups.n_rows <= MOST_ROWS && s->n_heads * s->head_dim <= MOST_HIDDEN);
    return groups;
}

/* Row i of head h among the keys from `first` to `end`. */
static void check_row(const qkvi_mha *layer, int64_t h, int64_t i, int64_t first, int64_t end) {
    double weights[MOST_ROWS], sum = 0, top = -INFINITY;
    const int64_t hidden = layer->hidden, at = h * layer->head_dim;
    for (int64_t j = first; j < end; j++) {
        weights[j] = 0;
        for (int64_t c = at; c < at + layer->head_dim; c++)
            weights[j] += (double)qkvi_f32_of_bf16(halves[0][i * hidden + c]) *
                          (double)qkvi_f32_of_bf16(halves[1][j * hidden + c]);
        weights[j] /= sqrt((double)layer->head_dim);
        top = fmax(top, weights[j]);
    }
    for (int64_t j = first; j < end; j++) sum += weights[j] = exp(weights[j] - top);
    for (int64_t c = at; c < at + layer->head_dim; c++) {
        double o = 0, most = 0;
        for (int64_t j = first; j < end; j++) {
            const double v = (double)qkvi_f32_of_bf16(halves[2][j * hidden + c]);
            o += weights[j] / sum * v;
            most = fmax(most, fabs(v));
        }
        const double error = fabs((double)floats[3][i * hidden + c] - o);
        if (!(error <= (0x1p-9 + 1e-5) * most))
            fail_msg("o[%d][%d]: off by %g of %g", (int)i, (int)c, error, most);
    }
}

static void check_attention(const qkvi_mha *layer, const qkvi_groups *groups) {
    for (int64_t g = 0; g < groups->n_groups; g++)
        for (int64_t n = 0; n < groups->list[g].n_sequences; n++)
            for (int64_t i = 0; i < groups->list[g].len; i++)
                for (int64_t h = 0; h < layer->n_heads; h++) {
                    const int64_t len = groups->list[g].len;
                    const int64_t first = groups->list[g].first_row + n * len;
                    check_row(layer, h, first + i, first,
                              groups->change.causal ? first + i + 1 : first + len);
                }
}

/* q, k and v are what the linear layers give in f32, rounded. */
static void check_rounding(qkv_ctx *ctx, const qkvi_mha *layer, int64_t n_rows) {
    const qkvi_linear *const maps[] = { &layer->query, &layer->key, &layer->value };
    static float y[MOST];
    for (int m = 0; m < 3; m++) {
        qkvi_linear_forward(ctx, maps[m], n_rows, x, y);
        for (int64_t e = 0; e < n_rows * layer->hidden; e++)
            if (halves[m][e] != qkvi_bf16_of_f32(y[e]))
                fail_msg("%c[%d]: %04x, not %g rounded", "qkv"[m], (int)e, halves[m][e],
                         (double)y[e]);
    }
}

static void check(const shape *s, qkv_class class, qkvi_rng *rng) {
    static uint16_t first_halves[3][MOST];
    static float first_o[MOST], first_lse[MOST];
    qkvi_sequence_group list[N_GROUPS];
    const int64_t hidden = s->n_heads * s->head_dim;
    const qkvi_mha layer = { .n_heads = s->n_heads,
                             .n_kv_heads = s->n_heads,
                             .head_dim = s->head_dim,
                             .hidden = hidden,
                             .query = make_linear(rng, hidden, class),
                             .key = make_linear(rng, hidden, class),
                             .value = make_linear(rng, hidden, class) };
    const qkvi_groups groups = make_groups(s, list);
    qkvi_mha_acts acts = { .q = floats[0],
                           .o = floats[3],
                           .k = floats[1],
                           .v = floats[2],
                           .half = { halves[0], halves[1], halves[2] },
                           .lse = lse };
    for (int64_t e = 0; e < groups.n_rows * hidden; e++) x[e] = draw(rng) * 2;
    for (int n = 0; qkv_isa_name(n); n++)
        for (int threads = 1; threads <= 3; threads += 2) {
            qkv_ctx *ctx = make_ctx(qkv_isa_name(n), threads);
            memset(halves, 0, sizeof halves);
            memset(lse, 0, sizeof lse);
            memset(floats, 0, sizeof floats);
            assert_int_equal(qkvi_mha_forward(ctx, &layer, &groups, x, NULL, &acts), QKV_OK);
            if (n == 0 && threads == 1) {
                check_rounding(ctx, &layer, groups.n_rows);
                check_attention(&layer, &groups);
                memcpy(first_halves, halves, sizeof halves);
                memcpy(first_o, floats[3], sizeof first_o);
                memcpy(first_lse, lse, sizeof lse);
            }
            assert_memory_equal(halves, first_halves, sizeof halves);
            assert_memory_equal(floats[3], first_o, sizeof first_o);
            assert_memory_equal(lse, first_lse, sizeof lse);
            qkv_ctx_free(ctx);
        }
    const qkvi_linear *const maps[] = { &layer.query, &layer.key, &layer.value };
    for (int m = 0; m < 3; m++) free(maps[m]->bias), free(maps[m]->half);
}

static void attention_in_half(void **state) {
    (void)state;
    qkvi_rng rng = qkvi_rng_make(seed, 1, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    for (size_t n = 0; n < sizeof shapes / sizeof *shapes; n++)
        for (int class = QKV_CLASS_DP; class <= QKV_CLASS_AMX; class ++)
            check(&shapes[n], (qkv_class) class, &rng);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(attention_in_half) };
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
