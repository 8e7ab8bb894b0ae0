/*
 * Layers over blocks of rows, each on every instruction set and several numbers of threads:
 * embeddings with scaled words, positions of Marian against transformers, dropout against Philox
 * and its definition, cross entropy with smoothed labels against double precision.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attn/ctx.h"
#include "core/rng.h"
#include "kernels/table.h"
#include "layer/dropout.h"
#include "layer/embed.h"
#include "layer/loss.h"

#define EPS 0x1p-24

enum { MAX_CONTEXTS = 16 };

static uint64_t seed = 20261122;
static qkv_ctx *contexts[MAX_CONTEXTS]; /* the first is scalar, with one thread */
static int n_contexts;

static void fill(qkvi_rng *rng, int64_t n, float scale, float *x) {
    for (int64_t i = 0; i < n; i++) x[i] = scale * (2 * qkvi_rng_unit(rng) - 1);
}

static void near(const char *what, int64_t i, double got, double wanted, double bound) {
    if (!(fabs(got - wanted) <= bound))
        fail_msg("%s, seed %llu: [%lld] = %.9g, wanted %.9g within %.3g", what,
                 (unsigned long long)seed, (long long)i, got, wanted, bound);
}

/* ---- Embeddings ------------------------------------------------------------------------------ */

enum { N_ROWS = 200, DIM = 37, N_WORDS = 11, N_TYPES = 2, N_PLACES = 50 };

typedef struct tables {
    float word[N_WORDS * DIM], type[N_TYPES * DIM], position[N_PLACES * DIM];
} tables;

static int32_t ids[N_ROWS], types[N_ROWS], places[N_ROWS];
static const qkvi_embed_rows rows = { ids, types, places };

/* Rows that learn nothing as embeddings; -1: all do. */
typedef struct left_out {
    int32_t word, place;
} left_out;

static qkvi_embed embed_of(tables *t, float word_scale, left_out padding) {
    return (qkvi_embed){ .hidden = DIM,
                         .n_words = N_WORDS,
                         .n_types = N_TYPES,
                         .n_positions = N_PLACES,
                         .word_scale = word_scale,
                         .word = t->word,
                         .type = t->type,
                         .position = t->position,
                         .padding = padding.word,
                         .padding_place = padding.place };
}

static void check_sum(const tables *t, double scale, const float *s) {
    for (int64_t i = 0; i < N_ROWS * DIM; i++) {
        const int64_t r = i / DIM, c = i % DIM;
        const double word = scale * (double)t->word[ids[r] * DIM + c];
        const double type = (double)t->type[types[r] * DIM + c];
        const double position = (double)t->position[places[r] * DIM + c];
        near("embedding", i, (double)s[i], word + type + position,
             2 * EPS * (fabs(word) + fabs(type) + fabs(position)));
    }
}

/* d starts as 1 where words are, whose gradient is added. */
static void check_gradient(const tables *d, double scale, left_out padding, const float *d_s) {
    for (int64_t id = 0; id < N_WORDS; id++)
        for (int64_t c = 0; c < DIM; c++) {
            double sum = 0, size = 1;
            for (int64_t r = 0; r < N_ROWS; r++) {
                if (ids[r] != id || id == padding.word) continue;
                sum += scale * (double)d_s[r * DIM + c];
                size += scale * fabs((double)d_s[r * DIM + c]);
            }
            near("gradient of a word", id * DIM + c, (double)d->word[id * DIM + c], 1 + sum,
                 70 * EPS * size);
        }
    for (int64_t p = 0; p < N_PLACES; p++)
        for (int64_t c = 0; c < DIM; c++) {
            double sum = 0;
            for (int64_t r = 0; r < N_ROWS; r++)
                sum += places[r] == p && p != padding.place ? (double)d_s[r * DIM + c] : 0;
            near("gradient of a position", p * DIM + c, (double)d->position[p * DIM + c], sum,
                 70 * EPS * N_ROWS);
        }
}

static void embeddings_scale_words(void **state) {
    (void)state;
    static tables t, d, first;
    static float s[N_ROWS * DIM], first_s[N_ROWS * DIM], d_s[N_ROWS * DIM];
    static int32_t scratch[N_ROWS + N_PLACES];
    qkvi_rng rng = qkvi_rng_make(seed, 1, 0);
    fill(&rng, sizeof t / sizeof(float), 1, (float *)&t);
    fill(&rng, N_ROWS * DIM, 1, d_s);
    for (int r = 0; r < N_ROWS; r++) {
        ids[r] = (int32_t)(qkvi_rng_below(&rng, 3) ? qkvi_rng_below(&rng, N_WORDS) : 4);
        types[r] = (int32_t)qkvi_rng_below(&rng, N_TYPES);
        places[r] = (int32_t)qkvi_rng_below(&rng, N_PLACES);
    }
    const float scales[] = { 1, sqrtf(512), 0.3f };
    const left_out paddings[] = { { -1, -1 }, { 4, 7 }, { N_WORDS - 1, -1 } };
    for (int turn = 0; turn < 3; turn++)
        for (int k = 0; k < n_contexts; k++) {
            const qkvi_embed layer = embed_of(&t, scales[turn], paddings[turn]);
            const qkvi_embed grads = embed_of(&d, scales[turn], paddings[turn]);
            for (int i = 0; i < N_WORDS * DIM; i++) d.word[i] = 1;
            assert_true(qkvi_embed_scratch_elems(&layer, N_ROWS) <= N_ROWS + N_PLACES);
            qkvi_embed_forward(contexts[k], &layer, N_ROWS, &rows, s);
            qkvi_embed_backward(contexts[k], &grads, N_ROWS, &rows, d_s, scratch);
            if (k == 0) {
                check_sum(&t, (double)scales[turn], s);
                check_gradient(&d, (double)scales[turn], paddings[turn], d_s);
                memcpy(first_s, s, sizeof s);
                first = d;
            }
            assert_memory_equal(s, first_s, sizeof s);
            assert_memory_equal(&d, &first, sizeof d);
        }
}

/* The bits of transformers; see tools/marian_positions.py. */
static void positions_are_those_of_marian(void **state) {
    (void)state;
    enum { MAX = 4096 };
    static float wanted[MAX], table[MAX];
    int32_t size[2];
    int n_tables = 0;
    FILE *in = fopen(QKV_TEST_DATA "/golden/marian_positions.bin", "rb");
    assert_non_null(in);
    while (fread(size, sizeof size, 1, in) == 1) {
        const size_t n = (size_t)size[0] * (size_t)size[1];
        assert_true(n <= MAX);
        assert_int_equal(fread(wanted, sizeof *wanted, n, in), n);
        qkvi_sinusoids_half(size[0], size[1], table);
        for (size_t i = 0; i < n; i++)
            if (!(table[i] == wanted[i]))
                fail_msg("%d x %d: [%zu] = %.9g is not %.9g", size[0], size[1], i, (double)table[i],
                         (double)wanted[i]);
        n_tables++;
    }
    fclose(in);
    assert_int_equal(n_tables, 6);
}

/* ---- Dropout --------------------------------------------------------------------------------- */

/* Whether element c of a row is kept, from docs/numerics.md. */
static bool is_kept(double rate, uint64_t from, int64_t site, int64_t row, int64_t c) {
    const uint32_t key[2] = { (uint32_t)from, (uint32_t)(from >> 32) };
    const uint32_t high = (uint32_t)(site >> 32) | 0x80000000u;
    uint32_t word[4] = { (uint32_t)(c / 4), (uint32_t)row, (uint32_t)site, high };
    qkvi_philox(key, word, word);
    return (double)word[c % 4] >= floor(rate * 0x1p32);
}

static void dropout_is_its_function(void **state) {
    (void)state;
    enum { MAX = 130 * 101 };
    static float x[MAX], y[MAX];
    qkvi_rng rng = qkvi_rng_make(seed, 2, 0);
    const float rates[] = { 0.1f, 0.5f, 0.999f, 1, 0.25f, 0x1p-33f, 0 };
    for (int turn = 0; turn < 28; turn++) {
        const int64_t n_rows = 1 + qkvi_rng_below(&rng, 130), n = 1 + qkvi_rng_below(&rng, 101);
        const float rate = rates[turn % 7];
        const uint64_t from = (uint64_t)qkvi_rng_u32(&rng) << 32 | qkvi_rng_u32(&rng);
        const uint32_t site = turn % 2 ? qkvi_rng_below(&rng, 40) : 3u << 30 | 7;
        fill(&rng, n_rows * n, 2, x);
        for (int k = 0; k < n_contexts; k++) {
            memcpy(y, x, sizeof x);
            if (rate > 0.4f) y[0] = is_kept((double)rate, from, site, 0, 0) ? x[0] : NAN;
            qkvi_dropout_rows(contexts[k], &(qkvi_row_dropout){ rate, from, site }, n_rows, n, y);
            for (int64_t i = 0; i < n_rows * n; i++) {
                const bool kept = is_kept((double)rate, from, site, i / n, i % n);
                const float wanted = kept ? x[i] * (1 / (1 - rate)) : 0;
                if (!(y[i] == wanted))
                    fail_msg("rate %g, %lld rows of %lld: [%lld] = %g, not %g", (double)rate,
                             (long long)n_rows, (long long)n, (long long)i, (double)y[i],
                             (double)wanted);
            }
        }
    }
}

/* The share that is left, within 5 deviations; places do not follow each other. */
static void dropout_keeps_its_share(void **state) {
    (void)state;
    enum { ROWS = 200, N = 500 };
    static float x[ROWS * N], before[ROWS * N];
    const float rates[] = { 0.1f, 0.3f, 0.9f };
    for (int turn = 0; turn < 3; turn++) {
        const double keep = 1 - (double)rates[turn], n = ROWS * N;
        for (uint32_t site = 0; site < 4; site++) {
            double kept = 0, both = 0;
            for (int i = 0; i < ROWS * N; i++) x[i] = 1;
            qkvi_dropout_rows(contexts[0], &(qkvi_row_dropout){ rates[turn], seed, site }, ROWS, N,
                              x);
            for (int i = 0; i < ROWS * N; i++) {
                kept += x[i] > 0;
                both += site > 0 && x[i] > 0 && before[i] > 0;
            }
            near("kept", site, kept, n * keep, 5 * sqrt(n * keep * (1 - keep)));
            const double pair = keep * keep;
            if (site > 0) near("both", site, both, n * pair, 5 * sqrt(n * pair * (1 - pair)));
            memcpy(before, x, sizeof x);
        }
    }
}

/* Bits that stay what they are: elements 0 … 15 of rows 0 … 3, seed 1, site 0, rate 1/2. */
static void dropout_bits_are_known(void **state) {
    (void)state;
    static const uint32_t known[4] = { 0x06cd, 0x3468, 0x0949, 0x8090 };
    float x[4 * 16];
    for (int i = 0; i < 64; i++) x[i] = 1;
    qkvi_dropout_rows(contexts[0], &(qkvi_row_dropout){ 0.5f, 1, 0 }, 4, 16, x);
    for (int r = 0; r < 4; r++) {
        uint32_t bits = 0;
        for (int c = 0; c < 16; c++) bits |= (uint32_t)(x[16 * r + c] > 0) << c;
        if (bits != known[r]) fail_msg("row %d: 0x%04x, not 0x%04x", r, bits, known[r]);
    }
}

/* ---- Cross entropy --------------------------------------------------------------------------- */

enum { CLASSES = 83, LOSS_ROWS = 150 };

/* Loss and gradient of one row as torch.nn.CrossEntropyLoss(label_smoothing) defines them. */
static double textbook(const float *x, int32_t target, double smoothing, double d[CLASSES]) {
    double top = -INFINITY, total = 0, loss = 0;
    for (int j = 0; j < CLASSES; j++) top = fmax(top, (double)x[j]);
    for (int j = 0; j < CLASSES; j++) total += exp((double)x[j] - top);
    for (int j = 0; j < CLASSES; j++) {
        const double log_p = (double)x[j] - top - log(total);
        const double share = (j == target ? 1 - smoothing : 0) + smoothing / CLASSES;
        loss -= share * log_p;
        d[j] = exp(log_p) - share;
    }
    return loss;
}

static void check_loss(const float *x, const int32_t *targets, double smoothing, const float *d,
                       const qkvi_cross_entropy *result) {
    double mean = 0, wanted[CLASSES];
    for (int r = 0; r < LOSS_ROWS; r++) {
        if (targets[r] >= 0)
            mean += textbook(x + r * CLASSES, targets[r], smoothing, wanted) / (double)result->n;
        for (int j = 0; j < CLASSES; j++)
            near("gradient", r * CLASSES + j, (double)d[r * CLASSES + j] * (double)result->n,
                 targets[r] >= 0 ? wanted[j] : 0, 60 * EPS);
    }
    near("loss", 0, result->mean, mean, 40 * EPS);
}

static void labels_are_smoothed(void **state) {
    (void)state;
    static float x[LOSS_ROWS * CLASSES], d[LOSS_ROWS * CLASSES], first[LOSS_ROWS * CLASSES];
    static int32_t targets[LOSS_ROWS];
    float scratch[2 * LOSS_ROWS];
    qkvi_rng rng = qkvi_rng_make(seed, 3, 0);
    fill(&rng, LOSS_ROWS * CLASSES, 6, x);
    for (int r = 0; r < LOSS_ROWS; r++) targets[r] = (int32_t)qkvi_rng_below(&rng, CLASSES + 8) - 8;
    const double all[] = { 0, 0.1, 0.5, 1 };
    for (int turn = 0; turn < 4; turn++)
        for (int k = 0; k < n_contexts; k++) {
            static qkvi_cross_entropy kept;
            qkvi_cross_entropy result;
            memcpy(d, x, sizeof x);
            qkvi_cross_entropy_rows(contexts[k], LOSS_ROWS, CLASSES, targets, 0, all[turn], d,
                                    scratch, &result);
            if (k == 0) {
                check_loss(x, targets, all[turn], d, &result);
                memcpy(first, d, sizeof d);
                kept = result;
            }
            assert_memory_equal(d, first, sizeof d);
            assert_true(kept.mean == result.mean && kept.n_right == result.n_right);
        }
}

/* A class that cannot be has no part in a loss without smoothing, and an infinite one with it. */
static void impossible_classes(void **state) {
    (void)state;
    for (int k = 0; k < n_contexts; k++) {
        float x[3] = { 1, -INFINITY, 1 }, smooth[3] = { 1, -INFINITY, 1 }, scratch[2];
        const int32_t target = 2;
        qkvi_cross_entropy result;
        qkvi_cross_entropy_rows(contexts[k], 1, 3, &target, 0, 0, x, scratch, &result);
        near("loss", k, result.mean, log(2), 4 * EPS);
        assert_true(x[0] == 0.5f && x[1] == 0 && x[2] == -0.5f);
        qkvi_cross_entropy_rows(contexts[k], 1, 3, &target, 0, 0.1, smooth, scratch, &result);
        assert_true(result.mean == (double)INFINITY);
    }
}

/* ---- Driver ---------------------------------------------------------------------------------- */

static int make_contexts(void **state) {
    (void)state;
    const char *name;
    for (int isa = 0; (name = qkv_isa_name(isa)) != NULL; isa++)
        for (int n_threads = 1; n_threads <= 3 && n_contexts < MAX_CONTEXTS; n_threads += 2) {
            qkv_ctx_options options = qkv_ctx_options_init();
            options.isa = name;
            options.n_threads = n_threads;
            if (qkv_ctx_create(&options, &contexts[n_contexts++], NULL) != QKV_OK) return -1;
        }
    return n_contexts > 0 ? 0 : -1;
}

static int free_contexts(void **state) {
    (void)state;
    for (int k = 0; k < n_contexts; k++) qkv_ctx_free(contexts[k]);
    return 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(embeddings_scale_words),  cmocka_unit_test(positions_are_those_of_marian),
        cmocka_unit_test(dropout_is_its_function), cmocka_unit_test(dropout_keeps_its_share),
        cmocka_unit_test(dropout_bits_are_known),  cmocka_unit_test(labels_are_smoothed),
        cmocka_unit_test(impossible_classes),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    print_message("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests_name("layers of rows", tests, make_contexts, free_contexts);
}
