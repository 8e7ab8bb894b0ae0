/*
 * Dropout: the words are Philox's, a weight is kept or not whoever computes it, what is left has
 * the right mean, and results are those of explicit weights in double. Every instruction set in
 * turn.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attention_reference.h"
#include "core/rng.h"
#include "every_isa.h"

enum { B = 2, H = 4, G = 2 };

static uint64_t seed = 20261121;

static void drop(problem *p, float share, uint64_t dropout_seed) {
    p->d.flags |= QKV_SET_DROPOUT;
    p->d.dropout = share;
    p->d.dropout_seed = dropout_seed;
}

static void forward_on(const char *name, int n_threads, problem *p) {
    qkv_ctx *ctx = context_on(name, n_threads);
    if (qkv_attention_forward(ctx, &p->d, p->q, p->k, p->v, p->o, p->lse, NULL) != QKV_OK)
        fail_msg("%s", qkv_ctx_message(ctx));
    qkv_ctx_destroy(ctx);
}

/* Known answers of Random123 (kat_vectors, philox 4x32 10), for the reference and for core/rng.h. */
static void words_are_philox(void **state) {
    static const uint32_t input[3][6] = {
        { 0, 0, 0, 0, 0, 0 },
        { ~0u, ~0u, ~0u, ~0u, ~0u, ~0u },
        { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0 },
    };
    static const uint32_t answer[3][4] = { { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 },
                                           { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd },
                                           { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } };
    (void)state;
    for (int n = 0; n < 3; n++) {
        uint32_t word[4];
        reference_philox(input[n] + 4, input[n], word);
        assert_memory_equal(word, answer[n], sizeof word);
        qkvi_philox(input[n] + 4, input[n], word);
        assert_memory_equal(word, answer[n], sizeof word);
    }
}

/* Equal scores and a value of its own channel for each key: o shows which weights were kept. */
static void weights_kept_are_the_function(void) {
    rng r = { seed };
    for (int turn = 0; turn < 16; turn++) {
        const int64_t len_q = rng_between(&r, 1, 120), len_k = rng_between(&r, 1, 600);
        problem p = problem_new(&r, B, H, G, len_q, len_k, 8, len_k);
        memset(p.q, 0, (size_t)n_q(&p) * sizeof *p.q);
        memset(p.v, 0, (size_t)n_v(&p) * sizeof *p.v);
        for (int64_t row = 0; row < rows_k(&p); row++) p.v[row * len_k + row % len_k] = 1;
        const float shares[] = { 0.1f, 0.5f, 0.999f, 0.25f };
        drop(&p, shares[turn % 4], rng_next(&r));
        if (turn % 3 == 1) p.d.flags |= QKV_SET_CAUSAL;
        forward_on(isa, 2, &p);
        for (int64_t b = 0; b < B; b++)
            for (int64_t h = 0; h < H; h++)
                for (int64_t i = 0; i < len_q; i++)
                    for (int64_t j = 0; j < len_k; j++) {
                        const bool in =
                            oracle_sees(&p.d, b, h, i, j) && reference_keeps(&p.d, b, h, i, j);
                        const float x = p.o[((b * H + h) * len_q + i) * len_k + j];
                        if (in ? !(x > 0) : x != 0)
                            fail_msg("%s: o[%d][%d][%d], channel %d, is %g", isa, (int)b, (int)h,
                                     (int)i, (int)j, (double)x);
                    }
        problem_free(&p);
    }
}

/* What else may be set beside dropout. */
static void options(rng *r, problem *p, int turn, float **mask) {
    *mask = NULL;
    if (turn % 2) p->d.flags |= QKV_SET_CAUSAL;
    if (turn % 3 == 1) {
        p->d.flags |= QKV_SET_SOFTCAP;
        p->d.softcap = 2.5f;
    }
    if (turn % 4 >= 2) {
        const int64_t stride[4] = { 0, p->d.len_q * p->d.len_k, p->d.len_k, 1 };
        *mask = normals(r, H * p->d.len_q * p->d.len_k);
        for (int64_t n = 0; n < p->d.len_q * p->d.len_k; n += 5) (*mask)[n] = -INFINITY;
        p->d.flags |= QKV_SET_MASK;
        p->d.mask_type = QKV_MASK_F32;
        p->d.mask = *mask;
        memcpy(p->d.mask_stride, stride, sizeof stride);
    }
}

static void forward_is_explicit_weights(void) {
    static const float shares[] = { 0.1f, 0.5f, 0.75f, 0.03f, 0.9375f };
    rng r = { seed + 1 };
    for (int turn = 0; turn < 12; turn++) {
        float *mask;
        problem p = problem_new(&r, B, H, G, rng_between(&r, 1, 130), rng_between(&r, 1, 600), 24,
                                rng_between(&r, 1, 70));
        options(&r, &p, turn, &mask);
        drop(&p, shares[turn % 5], rng_next(&r));
        reference x = reference_new(&p);
        reference_run(&p, NULL, &x);
        forward_on(isa, 2, &p);
        for (int64_t e = 0; e < n_o(&p); e++) {
            const int64_t row = e / p.d.head_dim_v;
            if (!(fabs((double)p.o[e] - x.o[e]) <= x.o_bound[row]))
                fail_msg("%s, turn %d: o[%lld] = %.9g is not %.9g", isa, turn, (long long)e,
                         (double)p.o[e], x.o[e]);
        }
        reference_free(&x);
        free(mask);
        problem_free(&p);
    }
}

int main(int argc, char **argv) {
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    printf("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_philox),
        PROPERTY(weights_kept_are_the_function),
        PROPERTY(forward_is_explicit_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
