/*
 * Properties of the graph of decoders and pairs on random networks of several kinds:
 *
 *   - a batch gives every sequence the bits of a run of its own, in whatever order it comes;
 *   - copies of a batch in one batch have its rows;
 *   - losses and gradients have the same bits for any threads and every instruction set, in f32
 *     and in each class of bf16, where they are near those of f32;
 *   - the gradient is the derivative, with dropout and label smoothing, too;
 *   - a causal stack does not see what follows; cross-attention sees its own source only;
 *   - decoding with kept keys and values gives what a run over the whole sequence gives, in slots
 *     that are reordered, for prompts in one piece and in several; 500 tokens written greedily are
 *     those that runs would write, near ties apart.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/arch/decoder.h"
#include "model/arch/net_pass.h"
#include "random_net.h"

enum { N_SEQUENCES = 14, LONGEST = 17, N_REPEATED = 24 };

static uint64_t seed = 4711;

typedef struct batch_arrays {
    int64_t lengths[N_SEQUENCES], decoder_lengths[N_SEQUENCES];
    int32_t ids[N_SEQUENCES * LONGEST], decoder_ids[N_SEQUENCES * LONGEST];
    int64_t targets[N_SEQUENCES * LONGEST];
    int32_t target_ids[N_SEQUENCES * LONGEST];
    qkvi_net_batch view;
} batch_arrays;

static int64_t random_sequences(qkvi_rng *rng, int64_t n_words, int64_t *lengths, int32_t *ids) {
    int64_t n = 0;
    for (int b = 0; b < N_SEQUENCES; b++) {
        lengths[b] = 1 + qkvi_rng_below(rng, b % 3 ? 4 : LONGEST); /* equal ones among them */
        for (int64_t i = 0; i < lengths[b]; i++)
            ids[n++] = (int32_t)qkvi_rng_below(rng, (uint32_t)n_words);
    }
    return n;
}

static void make_batch(const random_net *r, uint64_t index, batch_arrays *a) {
    qkvi_rng rng = qkvi_rng_make(seed, 22, index);
    const bool pairs = r->net.n_stacks == 2;
    const int64_t n_words = qkvi_net_last(&r->net)->vocab_size;
    int64_t n = random_sequences(&rng, r->net.stacks[0].vocab_size, a->lengths, a->ids),
            n_targets = 0;
    if (pairs) n = random_sequences(&rng, n_words, a->decoder_lengths, a->decoder_ids);
    for (int64_t t = 0; t < n; t++) {
        if (qkvi_rng_below(&rng, 5) == 0) continue;
        a->targets[n_targets] = t;
        a->target_ids[n_targets++] = (int32_t)qkvi_rng_below(&rng, (uint32_t)n_words);
    }
    a->view = (qkvi_net_batch){ .n_sequences = N_SEQUENCES,
                                .lengths = a->lengths,
                                .ids = a->ids,
                                .decoder_lengths = pairs ? a->decoder_lengths : NULL,
                                .decoder_ids = a->decoder_ids,
                                .n_targets = n_targets,
                                .target_tokens = a->targets,
                                .target_ids = a->target_ids };
}

static qkv_ctx *make_ctx(const char *isa, int n_threads) {
    qkv_ctx *ctx = NULL;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.n_threads = n_threads;
    options.isa = isa;
    if (qkv_ctx_create(&options, &ctx, NULL) != QKV_OK) return NULL;
    return ctx;
}

static qkvi_net_losses loss_of(qkv_ctx *ctx, random_net *r, random_net *g, const batch_arrays *a) {
    qkvi_net_pass *pass;
    qkvi_net_losses losses;
    qkv_error error;
    assert_int_equal(qkvi_net_pass_create(&pass, NULL), QKV_OK);
    if (qkvi_net_loss(ctx, &r->net, &a->view, pass, g ? &g->net : NULL, &losses, &error) != QKV_OK)
        fail_msg("%s", error.message);
    qkvi_net_pass_free(pass);
    return losses;
}

/* ---- Batches --------------------------------------------------------------------------------- */

static void expect_same_rows(const char *what, const float *x, const float *y, int64_t n) {
    if (memcmp(x, y, (size_t)n * sizeof *x) != 0)
        fail_msg("seed %llu: %s", (unsigned long long)seed, what);
}

static void compare_single(const qkvi_stack_pass *all, const qkvi_stack_pass *one, int64_t b,
                           int64_t len, const char *name) {
    const int64_t at = qkvi_stack_row(all, b);
    for (int64_t l = 0; l <= NET_LAYERS; l++)
        expect_same_rows(name, qkvi_stack_hidden(all, l) + at * NET_HIDDEN,
                         qkvi_stack_hidden(one, l), len * NET_HIDDEN);
    for (int cross = 0; cross < 2; cross++)
        for (int64_t l = 0; l < NET_LAYERS; l++) {
            const qkvi_mha_acts *x = qkvi_stack_captured(all, l, cross);
            const qkvi_mha_acts *y = qkvi_stack_captured(one, l, cross);
            if (!x) continue;
            expect_same_rows(name, x->q + at * NET_HIDDEN, y->q, len * NET_HIDDEN);
            expect_same_rows(name, x->lse + at * NET_HEADS, y->lse, len * NET_HEADS);
        }
}

static void test_batch_equals_single_runs(void **state) {
    (void)state;
    qkv_ctx *ctx = make_ctx(NULL, 2);
    for (int k = 0; k < N_NET_KINDS; k++) {
        random_net *r = make_net(&net_kinds[k], seed, false);
        static batch_arrays a;
        qkvi_net_pass *all, *one;
        make_batch(r, (uint64_t)k, &a);
        assert_int_equal(qkvi_net_pass_create(&all, NULL), QKV_OK);
        assert_int_equal(qkvi_net_pass_create(&one, NULL), QKV_OK);
        const unsigned flags = QKV_RUN_CAPTURE | QKV_RUN_HIDDEN;
        assert_int_equal(qkvi_net_forward(ctx, &r->net, &a.view, flags, all, NULL), QKV_OK);
        for (int64_t b = 0, at = 0, to = 0; b < N_SEQUENCES; b++) {
            qkvi_net_batch single = a.view;
            single.n_sequences = 1;
            single.lengths += b;
            single.ids += at;
            if (single.decoder_lengths) single.decoder_lengths += b, single.decoder_ids += to;
            assert_int_equal(qkvi_net_forward(ctx, &r->net, &single, flags, one, NULL), QKV_OK);
            compare_single(qkvi_net_stack(all, 0), qkvi_net_stack(one, 0), b, a.lengths[b],
                           net_kinds[k].name);
            if (r->net.n_stacks == 2)
                compare_single(qkvi_net_stack(all, 1), qkvi_net_stack(one, 1), b,
                               a.decoder_lengths[b], net_kinds[k].name);
            at += a.lengths[b];
            if (single.decoder_lengths) to += a.decoder_lengths[b];
        }
        qkvi_net_pass_free(all);
        qkvi_net_pass_free(one);
        free_net(r);
    }
    qkv_ctx_free(ctx);
}

static void *repeat(const void *from, int64_t n, size_t bytes) {
    char *const to = malloc(N_REPEATED * (size_t)n * bytes);
    assert_non_null(to);
    for (size_t i = 0; i < N_REPEATED; i++)
        memcpy(to + i * (size_t)n * bytes, from, (size_t)n * bytes);
    return to;
}

/* Copies of a batch beside each other. */
static qkvi_net_batch repeat_batch(const qkvi_net_batch *batch, int64_t n_rows,
                                   int64_t n_decoder_rows) {
    qkvi_net_batch all = { .n_sequences = N_REPEATED * batch->n_sequences };
    all.lengths = repeat(batch->lengths, batch->n_sequences, sizeof *all.lengths);
    all.ids = repeat(batch->ids, n_rows, sizeof *all.ids);
    if (!batch->decoder_lengths) return all;
    all.decoder_lengths =
        repeat(batch->decoder_lengths, batch->n_sequences, sizeof *all.decoder_lengths);
    all.decoder_ids = repeat(batch->decoder_ids, n_decoder_rows, sizeof *all.decoder_ids);
    return all;
}

static void free_batch(const qkvi_net_batch *batch) {
    free((void *)batch->lengths);
    free((void *)batch->ids);
    free((void *)batch->decoder_lengths);
    free((void *)batch->decoder_ids);
}

static void compare_repeated(const qkvi_stack_pass *all, const qkvi_stack_pass *once,
                             const int64_t *lengths, const char *name) {
    for (int64_t b = 0; b < N_REPEATED * N_SEQUENCES; b++)
        for (int64_t l = 0; l <= NET_LAYERS; l++)
            expect_same_rows(name, qkvi_stack_hidden(all, l) + qkvi_stack_row(all, b) * NET_HIDDEN,
                             qkvi_stack_hidden(once, l) +
                                 qkvi_stack_row(once, b % N_SEQUENCES) * NET_HIDDEN,
                             lengths[b % N_SEQUENCES] * NET_HIDDEN);
}

/* More rows than the feed-forward part of a run takes at once. */
static void test_repeated_batches_repeat_their_rows(void **state) {
    (void)state;
    qkv_ctx *ctx = make_ctx(NULL, 2);
    for (int k = 0; k < N_NET_KINDS; k++) {
        random_net *r = make_net(&net_kinds[k], seed, false);
        static batch_arrays a;
        qkvi_net_pass *once, *all;
        make_batch(r, (uint64_t)k, &a);
        assert_int_equal(qkvi_net_pass_create(&once, NULL), QKV_OK);
        assert_int_equal(qkvi_net_pass_create(&all, NULL), QKV_OK);
        assert_int_equal(qkvi_net_forward(ctx, &r->net, &a.view, QKV_RUN_HIDDEN, once, NULL),
                         QKV_OK);
        const bool pairs = r->net.n_stacks == 2;
        const qkvi_net_batch many = repeat_batch(&a.view, qkvi_net_stack(once, 0)->rows.n_rows,
                                                 pairs ? qkvi_net_stack(once, 1)->rows.n_rows : 0);
        assert_int_equal(qkvi_net_forward(ctx, &r->net, &many, QKV_RUN_HIDDEN, all, NULL), QKV_OK);
        assert_true(qkvi_net_stack(all, 0)->rows.n_rows >
                    2 * qkvi_net_stack(all, 0)->acts[0].n_feed);
        for (int s = 0; s < r->net.n_stacks; s++)
            compare_repeated(qkvi_net_stack(all, s), qkvi_net_stack(once, s),
                             s ? a.decoder_lengths : a.lengths, net_kinds[k].name);
        free_batch(&many);
        qkvi_net_pass_free(once);
        qkvi_net_pass_free(all);
        free_net(r);
    }
    qkv_ctx_free(ctx);
}

static void check_same_training(qkv_model_weights compute) {
    static const struct {
        const char *isa;
        int n_threads;
    } turns[] = { { "scalar", 1 }, { NULL, 2 }, { NULL, 1 }, { NULL, 7 }, { "avx2", 3 } };
    for (int k = 0; k < N_NET_KINDS; k++) {
        random_net *r = make_net_in(compute, &net_kinds[k], seed, false), *first = NULL;
        static batch_arrays a;
        qkvi_net_losses known = { 0 };
        make_batch(r, 50 + (uint64_t)k, &a);
        a.view.dropout = 0.2f, a.view.dropout_seed = 8, a.view.label_smoothing = 0.1;
        for (size_t t = 0; t < sizeof turns / sizeof *turns; t++) {
            qkv_ctx *ctx = make_ctx(turns[t].isa, turns[t].n_threads);
            if (!ctx) continue;
            random_net *g = make_net(&net_kinds[k], seed, true);
            const qkvi_net_losses losses = loss_of(ctx, r, g, &a);
            if (!first) {
                first = g, known = losses;
            } else {
                assert_memory_equal(&losses, &known, sizeof known);
                expect_same_rows(net_kinds[k].name, g->arena, first->arena, (int64_t)g->used);
                free_net(g);
            }
            qkv_ctx_free(ctx);
        }
        free_net(first);
        free_net(r);
    }
}

static void test_training_has_the_same_bits_everywhere(void **state) {
    (void)state;
    check_same_training(QKV_WEIGHTS_F32);
    check_same_training(QKV_WEIGHTS_BF16_DP);
    check_same_training(QKV_WEIGHTS_BF16_AMX);
}

/* Of what a piece of the gradient is in f32, and how far that in bf16 is from it. */
static void compare_gradients(const random_net *exact, const random_net *rounded,
                              const char *name) {
    enum { PIECE = 1920 };
    double all = 0;
    assert_int_equal(exact->used, rounded->used);
    for (size_t i = 0; i < exact->used; i++) all += (double)exact->arena[i] * exact->arena[i];
    for (size_t at = 0; at < exact->used; at += PIECE) {
        double size = 0, apart = 0;
        for (size_t i = at; i < at + PIECE && i < exact->used; i++) {
            const double d = (double)exact->arena[i] - (double)rounded->arena[i];
            size += (double)exact->arena[i] * (double)exact->arena[i];
            apart += d * d;
        }
        /*
         * A product is 2^-8 away at most and a third of that mostly; a dozen of them follow each
         * other.
         */
        if (!(sqrt(apart) <= 0.04 * sqrt(size) + 0.002 * sqrt(all)))
            fail_msg("seed %llu: %s: floats from %zu: %g, and %g apart", (unsigned long long)seed,
                     name, at, sqrt(size), sqrt(apart));
    }
}

static void test_gradients_in_bf16_are_near(void **state) {
    (void)state;
    qkv_ctx *ctx = make_ctx(NULL, 2);
    for (int k = 0; k < N_NET_KINDS; k++) {
        random_net *r = make_net(&net_kinds[k], seed, false),
                   *g = make_net(&net_kinds[k], seed, true);
        static batch_arrays a;
        make_batch(r, 70 + (uint64_t)k, &a);
        a.view.label_smoothing = 0.1;
        const double loss = loss_of(ctx, r, g, &a).lm;
        for (int compute = QKV_WEIGHTS_BF16_DP; compute <= QKV_WEIGHTS_BF16_AMX; compute++) {
            random_net *half = make_net_in((qkv_model_weights)compute, &net_kinds[k], seed, false);
            random_net *d = make_net(&net_kinds[k], seed, true);
            const double near = loss_of(ctx, half, d, &a).lm;
            assert_true(near != loss && fabs(near - loss) <= 0.005 * loss);
            compare_gradients(g, d, net_kinds[k].name);
            free_net(half);
            free_net(d);
        }
        free_net(r);
        free_net(g);
    }
    qkv_ctx_free(ctx);
}

/* ---- Derivatives ----------------------------------------------------------------------------- */

static double loss_along(qkv_ctx *ctx, random_net *r, const float *origin, const float *direction,
                         float step, const batch_arrays *a) {
    for (size_t i = 0; i < r->used; i++) r->arena[i] = origin[i] + step * direction[i];
    qkvi_net_pack(ctx, &r->net);
    return loss_of(ctx, r, NULL, a).lm;
}

/* Pieces of the arena one by one, towards the gradient with some noise, so that neither a wrong one
 * nor one that is missing can hide. */
static void check_derivative(qkv_ctx *ctx, random_net *r, const batch_arrays *a,
                             const net_kind *kind) {
    enum { PIECE = 1920 };
    qkvi_rng rng = qkvi_rng_make(seed, 24, 0);
    random_net *g = make_net(kind, seed, true);
    float *origin = malloc(r->used * sizeof(float)), *direction = calloc(r->used, sizeof(float));
    loss_of(ctx, r, g, a);
    memcpy(origin, r->arena, r->used * sizeof(float));
    for (size_t at = 0; at < g->used; at += PIECE) {
        const size_t n = g->used - at < PIECE ? g->used - at : PIECE;
        double slope = 0, size = 0;
        memset(direction, 0, r->used * sizeof(float));
        for (size_t i = at; i < at + n; i++) size += (double)g->arena[i] * (double)g->arena[i];
        for (size_t i = at; i < at + n; i++) {
            direction[i] = 0.5f * g->arena[i] / ((float)sqrt(size) + 1e-20f) +
                           0.02f * (qkvi_rng_unit(&rng) - 0.5f);
            slope += (double)g->arena[i] * (double)direction[i];
        }
        const float h = 0.01f;
        const double near = loss_along(ctx, r, origin, direction, h, a) -
                            loss_along(ctx, r, origin, direction, -h, a);
        const double far = loss_along(ctx, r, origin, direction, 2 * h, a) -
                           loss_along(ctx, r, origin, direction, -2 * h, a);
        const double measured = (8 * near - far) / (12 * (double)h);
        if (!(fabs(measured - slope) <= 0.01 * fabs(slope) + 1e-4))
            fail_msg(
                "seed %llu: %s: floats %zu to %zu: the loss changes by %g, its gradient says %g",
                (unsigned long long)seed, kind->name, at, at + n, measured, slope);
    }
    memcpy(r->arena, origin, r->used * sizeof(float));
    free(origin);
    free(direction);
    free_net(g);
}

static void test_gradient_is_the_derivative(void **state) {
    (void)state;
    qkv_ctx *ctx = make_ctx(NULL, 2);
    for (int k = 0; k < N_NET_KINDS; k++) {
        random_net *r = make_net(&net_kinds[k], seed, false);
        static batch_arrays a;
        make_batch(r, 100 + (uint64_t)k, &a);
        check_derivative(ctx, r, &a, &net_kinds[k]);
        a.view.dropout = 0.15f, a.view.dropout_seed = 9, a.view.label_smoothing = 0.2;
        check_derivative(ctx, r, &a, &net_kinds[k]);
        free_net(r);
    }
    qkv_ctx_free(ctx);
}

/* ---- Decoding -------------------------------------------------------------------------------- */

/* Logits of the last token of a sequence, by a run over all of it. */
static void run_logits(qkv_ctx *ctx, random_net *r, int64_t n_source, const int32_t *source,
                       int64_t n, const int32_t *ids, float *logits) {
    qkvi_net_pass *pass;
    const bool pairs = r->net.n_stacks == 2;
    const qkvi_net_batch batch = { .n_sequences = 1,
                                   .lengths = pairs ? &n_source : &n,
                                   .ids = pairs ? source : ids,
                                   .decoder_lengths = pairs ? &n : NULL,
                                   .decoder_ids = ids };
    assert_int_equal(qkvi_net_pass_create(&pass, NULL), QKV_OK);
    assert_int_equal(qkvi_net_forward(ctx, &r->net, &batch, 0, pass, NULL), QKV_OK);
    const float *hidden = qkvi_stack_hidden(qkvi_net_stack(pass, pairs), NET_LAYERS);
    assert_int_equal(qkvi_net_lm(ctx, &r->net, 1, hidden + (n - 1) * NET_HIDDEN, logits, NULL),
                     QKV_OK);
    qkvi_net_pass_free(pass);
}

static void expect_near(const net_kind *kind, const float *x, const float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(x[i] - y[i]) <= 2e-5f * (1 + fabsf(y[i]))))
            fail_msg("seed %llu: %s: logit %d is %g, a run has %g", (unsigned long long)seed,
                     kind->name, (int)i, (double)x[i], (double)y[i]);
}

enum { N_SLOTS = 3, N_STEPS = 70 }; /* across the border of a page of 64 */

/* Three slots with a prompt each, random steps and reorderings; texts are kept beside. */
static void check_decoding(qkv_ctx *ctx, random_net *r, const net_kind *kind, uint64_t index) {
    qkvi_rng rng = qkvi_rng_make(seed, 23, index);
    const bool pairs = r->net.n_stacks == 2;
    const int64_t n_source = pairs ? 7 : 0, n_words = qkvi_net_last(&r->net)->vocab_size;
    static int32_t text[N_SLOTS][NET_MAX_LEN], old[N_SLOTS][NET_MAX_LEN];
    int32_t source[7];
    float logits[N_SLOTS * NET_WORDS], whole[NET_WORDS];
    qkvi_decoder *d;
    qkvi_net_pass *encoder;
    const float *hidden = NULL;
    for (int i = 0; i < 7; i++) source[i] = (int32_t)qkvi_rng_below(&rng, NET_WORDS);
    assert_int_equal(qkvi_net_pass_create(&encoder, NULL), QKV_OK);
    if (pairs) {
        const qkvi_net_batch batch = { .n_sequences = 1, .lengths = &n_source, .ids = source };
        assert_int_equal(qkvi_net_forward(ctx, &r->net, &batch, 0, encoder, NULL), QKV_OK);
        hidden = qkvi_stack_hidden(qkvi_net_stack(encoder, 0), NET_LAYERS);
    }
    assert_int_equal(
        qkvi_decoder_make(ctx, &r->net, N_SLOTS, NET_MAX_LEN, n_source, hidden, &d, NULL), QKV_OK);
    int64_t len[N_SLOTS];
    for (int s = 0; s < N_SLOTS; s++) { /* prompts of one piece and of two */
        const int64_t first = 1 + s, second = s == 2 ? 4 : 0;
        len[s] = first + second;
        for (int64_t i = 0; i < len[s]; i++)
            text[s][i] = (int32_t)qkvi_rng_below(&rng, (uint32_t)n_words);
        assert_int_equal(qkvi_decoder_prompt(ctx, d, s, first, text[s], logits, NULL), QKV_OK);
        if (second)
            assert_int_equal(qkvi_decoder_prompt(ctx, d, s, second, text[s] + first, logits, NULL),
                             QKV_OK);
        run_logits(ctx, r, n_source, source, len[s], text[s], whole);
        expect_near(kind, logits, whole, n_words);
    }
    for (int step = 0; step < N_STEPS; step++) {
        if (step % 5 == 2) {
            int32_t from[N_SLOTS];
            int64_t old_len[N_SLOTS];
            for (int s = 0; s < N_SLOTS; s++) from[s] = (int32_t)qkvi_rng_below(&rng, N_SLOTS);
            memcpy(old, text, sizeof text);
            memcpy(old_len, len, sizeof len);
            for (int s = 0; s < N_SLOTS; s++) {
                memcpy(text[s], old[from[s]], sizeof *text);
                len[s] = old_len[from[s]];
            }
            assert_int_equal(qkvi_decoder_reorder(ctx, d, N_SLOTS, from, NULL), QKV_OK);
        }
        int32_t ids[N_SLOTS];
        for (int s = 0; s < N_SLOTS; s++)
            text[s][len[s]++] = ids[s] = (int32_t)qkvi_rng_below(&rng, (uint32_t)n_words);
        assert_int_equal(qkvi_decoder_step(ctx, d, N_SLOTS, ids, logits, NULL), QKV_OK);
        for (int s = 0; s < N_SLOTS && step % 7 == 0; s++) {
            assert_int_equal(qkvi_decoder_len(d, s), len[s]);
            run_logits(ctx, r, n_source, source, len[s], text[s], whole);
            expect_near(kind, logits + s * n_words, whole, n_words);
        }
    }
    qkvi_decoder_free(d);
    qkvi_net_pass_free(encoder);
}

static void test_decoding_equals_runs(void **state) {
    (void)state;
    qkv_ctx *ctx = make_ctx(NULL, 2);
    for (int k = 0; k < N_NET_KINDS; k++) {
        random_net *r = make_net(&net_kinds[k], seed, false);
        for (uint64_t turn = 0; turn < 3; turn++) check_decoding(ctx, r, &net_kinds[k], turn);
        free_net(r);
    }
    qkv_ctx_free(ctx);
}

enum { N_WRITTEN = 500 };

/* The logits of every token of one sequence. */
static float *all_logits(qkv_ctx *ctx, random_net *r, int64_t n, const int32_t *ids) {
    const int64_t n_words = qkvi_net_last(&r->net)->vocab_size;
    const qkvi_net_batch batch = { .n_sequences = 1, .lengths = &n, .ids = ids };
    float *logits = malloc((size_t)(n * n_words) * sizeof *logits);
    qkvi_net_pass *pass;
    assert_int_equal(qkvi_net_pass_create(&pass, NULL), QKV_OK);
    assert_int_equal(qkvi_net_forward(ctx, &r->net, &batch, 0, pass, NULL), QKV_OK);
    const float *hidden = qkvi_stack_hidden(qkvi_net_stack(pass, 0), NET_LAYERS);
    assert_int_equal(qkvi_net_lm(ctx, &r->net, n, hidden, logits, NULL), QKV_OK);
    qkvi_net_pass_free(pass);
    return logits;
}

static int32_t likeliest(const float *logits, int64_t n) {
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

static void test_a_long_text_is_that_of_runs(void **state) {
    (void)state;
    qkv_ctx *ctx = make_ctx(NULL, 2);
    random_net *r = make_net(&net_kinds[0], seed, false);
    const int64_t n_words = qkvi_net_last(&r->net)->vocab_size;
    int32_t ids[N_WRITTEN + 1] = { 3 };
    float logits[NET_WORDS];
    qkvi_decoder *d;
    int n_ties = 0;
    assert_int_equal(qkvi_decoder_make(ctx, &r->net, 1, N_WRITTEN + 1, 0, NULL, &d, NULL), QKV_OK);
    for (int64_t i = 0; i < N_WRITTEN; i++) {
        assert_int_equal(qkvi_decoder_step(ctx, d, 1, ids + i, logits, NULL), QKV_OK);
        ids[i + 1] = likeliest(logits, n_words);
    }
    float *whole = all_logits(ctx, r, N_WRITTEN, ids);
    for (int64_t i = 0; i < N_WRITTEN; i++) {
        const float *row = whole + i * n_words;
        const int32_t best = likeliest(row, n_words);
        if (best == ids[i + 1]) continue;
        if (!(row[best] - row[ids[i + 1]] < 1e-4f))
            fail_msg("seed %llu: token %d is %d, a run writes %d", (unsigned long long)seed, (int)i,
                     ids[i + 1], best);
        n_ties++;
    }
    print_message("%d near ties in %d tokens\n", n_ties, N_WRITTEN);
    qkvi_decoder_free(d);
    free(whole);
    free_net(r);
    qkv_ctx_free(ctx);
}

/* ---- What is seen ---------------------------------------------------------------------------- */

static void test_nothing_that_follows_is_seen(void **state) {
    (void)state;
    qkv_ctx *ctx = make_ctx(NULL, 1);
    for (int k = 0; k < N_NET_KINDS; k++) {
        random_net *r = make_net(&net_kinds[k], seed, false);
        int32_t source[4] = { 1, 2, 3, 4 }, ids[9] = { 5, 6, 7, 8, 9, 10, 11, 12, 13 };
        float part[NET_WORDS], same[NET_WORDS], other[NET_WORDS];
        run_logits(ctx, r, 4, source, 6, ids, part);
        ids[7] = 0;
        run_logits(ctx, r, 4, source, 6, ids, same);
        source[3] = 9;
        if (r->net.n_stacks == 1) ids[2] = 9;
        run_logits(ctx, r, 4, source, 6, ids, other);
        const int64_t n_words = qkvi_net_last(&r->net)->vocab_size;
        assert_memory_equal(part, same, (size_t)n_words * sizeof *part);
        assert_memory_not_equal(part, other, (size_t)n_words * sizeof *part);
        free_net(r);
    }
    qkv_ctx_free(ctx);
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static void test_bad_calls_are_refused(void **state) {
    (void)state;
    qkv_ctx *ctx = make_ctx(NULL, 1);
    random_net *r = make_net(&net_kinds[0], seed, false),
               *pairs = make_net(&net_kinds[1], seed, false);
    float logits[NET_WORDS];
    const int32_t ids[2] = { 1, NET_WORDS }, slots[1] = { 1 };
    qkvi_decoder *d;
    qkv_error error;
    assert_int_equal(qkvi_decoder_make(ctx, &r->net, 1, NET_MAX_LEN + 1, 0, NULL, &d, &error),
                     QKV_ERR_SHAPE);
    assert_null(d);
    assert_int_equal(qkvi_decoder_make(ctx, &r->net, 0, 5, 0, NULL, &d, NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(qkvi_decoder_make(ctx, &r->net, 1, 5, 3, logits, &d, NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(qkvi_decoder_make(ctx, &pairs->net, 1, 5, 0, NULL, &d, NULL),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(qkvi_decoder_make(ctx, &r->net, 1, 2, 0, NULL, &d, NULL), QKV_OK);
    assert_int_equal(qkvi_decoder_prompt(ctx, d, 0, 2, ids, logits, &error), QKV_ERR_ARGUMENT);
    assert_string_equal(error.message, "the token 41 is none of 0 to 40");
    assert_int_equal(qkvi_decoder_prompt(ctx, d, 1, 1, ids, logits, NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(qkvi_decoder_reorder(ctx, d, 1, slots, NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(qkvi_decoder_step(ctx, d, 2, ids, logits, NULL), QKV_ERR_ARGUMENT);
    for (int i = 0; i < 2; i++)
        assert_int_equal(qkvi_decoder_step(ctx, d, 1, ids, logits, NULL), QKV_OK);
    assert_int_equal(qkvi_decoder_step(ctx, d, 1, ids, logits, &error), QKV_ERR_SHAPE);
    assert_string_equal(error.message, "a sequence of more than 2 tokens");
    assert_int_equal(qkvi_decoder_len(d, 0), 2);
    qkvi_decoder_free(d);
    free_net(r);
    free_net(pairs);
    qkv_ctx_free(ctx);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch_equals_single_runs),
        cmocka_unit_test(test_repeated_batches_repeat_their_rows),
        cmocka_unit_test(test_training_has_the_same_bits_everywhere),
        cmocka_unit_test(test_gradients_in_bf16_are_near),
        cmocka_unit_test(test_gradient_is_the_derivative),
        cmocka_unit_test(test_nothing_that_follows_is_seen),
        cmocka_unit_test(test_decoding_equals_runs),
        cmocka_unit_test(test_a_long_text_is_that_of_runs),
        cmocka_unit_test(test_bad_calls_are_refused),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    print_message("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests_name("net", tests, NULL, NULL);
}
