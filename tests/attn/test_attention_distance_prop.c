/*
 * A distance bias is an additive mask whose elements are its own: the same bits, forward, backward
 * and in weights, whatever else is set. Its gradient is that of the mask, summed in the order of
 * docs/numerics.md, and the slope of the forward pass. Every instruction set in turn.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attn/every_isa.h"
#include "qkv/columns.h"

enum { B = 2, H = 4, G = 2, D = 16 };

static uint64_t seed = 20261128;

/* A problem with a bias, and the same with a mask in its place. */
typedef struct twins {
    problem p, masked;
    float *bias, *mask, *d_bias, *d_mask;
    int64_t n_distances, offset;
} twins;

static int64_t element_of(const twins *t, int64_t i, int64_t j) {
    const int64_t at = t->p.d.distance_before + j - i - t->offset;
    return at < 0 ? 0 : at >= t->n_distances ? t->n_distances - 1 : at;
}

static void options(rng *r, qkv_attention_desc *d, int turn) {
    d->flags = QKV_SET_Q_OFFSET;
    d->q_offset = turn % 3 ? rng_between(r, -40, 60) : 0;
    if (turn % 2) d->flags |= QKV_SET_CAUSAL;
    if (turn % 3 == 2) d->flags |= QKV_SET_SOFTCAP;
    if (turn % 5 == 3) d->flags |= QKV_SET_DROPOUT;
    if (turn % 4 == 1) d->flags |= QKV_SET_SCALE;
    d->softcap = 3;
    d->dropout = 0.25f;
    d->dropout_seed = rng_next(r);
    d->scale = 1;
}

static void make_mask(twins *t) {
    const qkv_attention_desc *const d = &t->p.d;
    float *next = t->mask = floats(B * H * d->len_q * d->len_k);
    for (int64_t row = 0; row < B * H * d->len_q; row++)
        for (int64_t j = 0; j < d->len_k; j++)
            *next++ = t->bias[row / d->len_q % H * d->distance_bias_stride +
                              element_of(t, row % d->len_q, j)];
}

static twins twins_new(rng *r, int turn, int64_t len_q, int64_t len_k) {
    twins t = { .p = problem_new(r, B, H, G, len_q, len_k, D, D + 3) };
    qkv_attention_desc *const d = &t.p.d;
    options(r, d, turn);
    d->distance_before = rng_between(r, 0, turn % 3 ? 20 : len_q + 5);
    d->distance_after = rng_between(r, 0, turn % 3 ? 20 : len_k + 5);
    t.n_distances = d->distance_before + 1 + d->distance_after;
    d->distance_bias_stride = turn % 4 == 3 ? 0 : t.n_distances;
    t.offset = d->q_offset;
    t.bias = normals(r, H * t.n_distances);
    t.d_bias = floats(H * t.n_distances);
    t.d_mask = floats(B * H * len_q * len_k);
    make_mask(&t);
    t.masked = t.p;
    d->flags |= QKV_SET_DISTANCE_BIAS;
    d->distance_bias = t.bias;
    const int64_t stride[4] = { H * len_q * len_k, len_q * len_k, len_k, 1 };
    t.masked.d.flags |= QKV_SET_MASK;
    t.masked.d.mask = t.mask;
    t.masked.d.mask_type = QKV_MASK_F32;
    memcpy(t.masked.d.mask_stride, stride, sizeof stride);
    t.masked.o = floats(n_o(&t.p));
    t.masked.lse = floats(rows_q(&t.p));
    t.masked.d_q = floats(n_q(&t.p));
    t.masked.d_k = floats(n_k(&t.p));
    t.masked.d_v = floats(n_v(&t.p));
    return t;
}

static void twins_free(twins *t) {
    float *const own[] = { t->masked.o, t->masked.lse, t->masked.d_q, t->masked.d_k, t->masked.d_v,
                           t->bias,     t->mask,       t->d_bias,     t->d_mask };
    for (size_t n = 0; n < sizeof own / sizeof *own; n++) free(own[n]);
    problem_free(&t->p);
}

static void run_both(twins *t, const char *on, int n_threads) {
    qkv_ctx *const ctx = context_on(on, n_threads);
    qkv_attention_grads g = grads_of(&t->p), of_mask = grads_of(&t->masked);
    problem_run(ctx, &t->p);
    problem_run(ctx, &t->masked);
    g.d_distance_bias = t->d_bias;
    of_mask.d_mask = t->d_mask;
    if (qkv_attention_backward(ctx, &t->p.d, t->p.q, t->p.k, t->p.v, t->p.o, t->p.lse, &g, NULL) !=
            QKV_OK ||
        qkv_attention_backward(ctx, &t->masked.d, t->p.q, t->p.k, t->p.v, t->masked.o,
                               t->masked.lse, &of_mask, NULL) != QKV_OK)
        fail_msg("%s", qkv_ctx_message(ctx));
    qkv_ctx_free(ctx);
}

static void weights_are_equal(const twins *t) {
    const qkv_attention_desc *const d = &t->p.d;
    const int64_t n = d->len_q * d->len_k;
    float *const x = floats(n), *const y = floats(n);
    qkv_ctx *const ctx = context_on(isa, 2);
    qkv_attention_desc of[2] = { t->p.d, t->masked.d };
    for (int i = 0; i < 2; i++) of[i].flags &= ~(uint32_t)QKV_SET_DROPOUT;
    for (int i = 0; i < 2; i++)
        if (qkv_attention_weights(ctx, &of[i], t->p.q, t->p.k, t->p.lse, B - 1, H - 1, 0, d->len_q,
                                  0, d->len_k, i ? y : x, d->len_k, NULL) != QKV_OK)
            fail_msg("%s", qkv_ctx_message(ctx));
    same_bits("weights", x, y, n);
    qkv_ctx_free(ctx);
    free(x);
    free(y);
}

/*
 * Blocks of 128 queries and 256 keys; in each a chain over the queries of a diagonal, then over the
 * diagonals of an element.
 */
static void add_block(const twins *t, int64_t row, int64_t i0, int64_t j0, float *to) {
    const int64_t len_q = t->p.d.len_q, len_k = t->p.d.len_k;
    const int64_t i1 = i0 + 128 < len_q ? i0 + 128 : len_q;
    const int64_t j1 = j0 + 256 < len_k ? j0 + 256 : len_k;
    float *const sum = floats(t->n_distances);
    bool *const met = calloc((size_t)t->n_distances, sizeof *met);
    assert_non_null(met);
    for (int64_t apart = j0 - (i1 - 1); apart < j1 - i0; apart++) {
        float chain = 0;
        for (int64_t i = i0; i < i1; i++)
            if (i + apart >= j0 && i + apart < j1)
                chain += t->d_mask[(row * len_q + i) * len_k + i + apart];
        const int64_t at = element_of(t, 0, apart);
        sum[at] = met[at] ? sum[at] + chain : chain;
        met[at] = true;
    }
    for (int64_t e = 0; e < t->n_distances; e++)
        if (met[e]) to[e] += sum[e];
    free(met);
    free(sum);
}

static void sum_in_order(const twins *t, float *want) {
    const qkv_attention_desc *const d = &t->p.d;
    for (int64_t b = 0; b < B; b++)
        for (int64_t h = 0; h < H; h++)
            for (int64_t i = 0; i < d->len_q; i += 128)
                for (int64_t j = 0; j < d->len_k; j += 256)
                    add_block(t, b * H + h, i, j, want + h * d->distance_bias_stride);
}

static void a_bias_is_a_mask(void) {
    rng r = { seed };
    for (int turn = 0; turn < 10; turn++) {
        twins t = twins_new(&r, turn, rng_between(&r, 1, 300), rng_between(&r, 1, 600));
        if (takes_turn(isa_at, turn)) {
            run_both(&t, isa, turn % 4 + 1);
            same_bits("o", t.p.o, t.masked.o, n_o(&t.p));
            same_bits("lse", t.p.lse, t.masked.lse, rows_q(&t.p));
            same_bits("d_q", t.p.d_q, t.masked.d_q, n_q(&t.p));
            same_bits("d_k", t.p.d_k, t.masked.d_k, n_k(&t.p));
            same_bits("d_v", t.p.d_v, t.masked.d_v, n_v(&t.p));
            weights_are_equal(&t);
            float *const want = floats(H * t.n_distances);
            sum_in_order(&t, want);
            same_bits("d_distance_bias", t.d_bias, want,
                      (t.p.d.distance_bias_stride ? H : 1) * t.n_distances);
            free(want);
        }
        twins_free(&t);
    }
}

/* <o, d_o> + <lse, ...>: what moves, where the bias is moved along a direction. */
static double moved(twins *t, const float *from, const float *along, float step) {
    double sum = 0;
    qkv_ctx *const ctx = context_on(NULL, 1);
    for (int64_t e = 0; e < H * t->n_distances; e++) t->bias[e] = from[e] + step * along[e];
    problem_run(ctx, &t->p);
    for (int64_t e = 0; e < n_o(&t->p); e++) sum += (double)t->p.o[e] * (double)t->p.d_o[e];
    qkv_ctx_free(ctx);
    return sum;
}

static void its_gradient_is_the_slope(void **state) {
    rng r = { seed + 1 };
    (void)state;
    for (int turn = 0; turn < 12; turn++) {
        twins t = twins_new(&r, turn, 23, 31);
        const int64_t n = H * t.n_distances, row = t.p.d.distance_bias_stride;
        float *const from = floats(n), *const along = normals(&r, n);
        memcpy(from, t.bias, (size_t)n * sizeof *from);
        run_both(&t, NULL, 2);
        const float step = 0x1p-7f;
        const double seen =
            (moved(&t, from, along, step) - moved(&t, from, along, -step)) / (2 * (double)step);
        double slope = 0;
        for (int64_t e = 0; e < (row ? n : t.n_distances); e++)
            slope += (double)along[e] * (double)t.d_bias[e];
        if (!(fabs(seen - slope) <= 4e-3 * (fabs(slope) + 1)))
            fail_msg("turn %d: %g and %g", turn, seen, slope);
        free(from);
        free(along);
        twins_free(&t);
    }
}

int main(int argc, char **argv) {
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    printf("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        PROPERTY(a_bias_is_a_mask),
        cmocka_unit_test(its_gradient_is_the_slope),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
