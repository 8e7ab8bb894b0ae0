/*
 * Properties of BERT's passes on random models and batches:
 *
 *   - a batch gives every sequence the bits of a run of its own, in whatever order it comes;
 *   - losses and gradients have the same bits for any number of threads and every instruction set;
 *   - both also where weights are so small that products vanish, and zeros have signs;
 *   - sinusoidal positions are the formula, and a model with them equals one that has learned them;
 *   - the gradient is the derivative: along random directions, against differences of the loss;
 *   - what does not fit is refused, with a message.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/rng.h"
#include "make_ctx.h"
#include "model/arch/net.h"

enum { N_SEQUENCES = 40, LONGEST = 19, N_WORDS = 75 };

static uint64_t seed = 4711;
static uint32_t
    smaller; /* not 0: each parameter's weights are smaller by a power of 2 below 2^smaller */

/* ---- Random models and batches --------------------------------------------------------------- */

static const qkv_model_info small_model = { .architecture = "bert",
                                            .n_layers = 2,
                                            .n_heads = 3,
                                            .hidden = 60,
                                            .embedding_size = 60,
                                            .head_dim = 20,
                                            .intermediate = 272,
                                            .vocab_size = N_WORDS,
                                            .max_len = LONGEST,
                                            .n_types = 2,
                                            .layer_norm_eps = 1e-12,
                                            .has_mlm = 1,
                                            .has_nsp = 1,
                                            .has_pooler = 1 };

typedef struct setup {
    qkv_model_info info;
    qkvi_param_table table;
    float *weights, *gradients;
    qkvi_net *params, *grads;
    qkvi_net_pass *pass;
    int64_t lengths[N_SEQUENCES], targets[N_SEQUENCES * LONGEST];
    int32_t ids[N_SEQUENCES * LONGEST], target_ids[N_SEQUENCES * LONGEST], labels[N_SEQUENCES];
    uint8_t types[N_SEQUENCES * LONGEST];
    qkvi_net_batch batch;
} setup;

static float noise(qkvi_rng *rng) {
    return (qkvi_rng_unit(rng) + qkvi_rng_unit(rng) + qkvi_rng_unit(rng) - 1.5f) * 2;
}

/* Norms near 1, biases small, matrices large enough for sharp heads. */
static void random_weights(setup *s, qkvi_rng *rng) {
    for (int64_t r = 0; r < s->table.n_rows; r++) {
        const qkvi_param *row = &s->table.rows[r];
        const int norm = strstr(row->name, "LayerNorm.weight") != NULL;
        const float scale = row->rank == 1 ? 0.2f : 1.5f / sqrtf((float)row->shape[1]);
        const float by = smaller ? ldexpf(1, -(int)qkvi_rng_below(rng, smaller)) : 1;
        for (size_t i = 0; i < row->n_elems; i++)
            s->weights[row->offset + i] = ((norm ? 1.0f : 0.0f) + scale * noise(rng)) * by;
    }
}

static void random_batch(setup *s, qkvi_rng *rng) {
    int64_t n = 0, n_targets = 0;
    for (int b = 0; b < N_SEQUENCES; b++) {
        s->lengths[b] = 1 + qkvi_rng_below(rng, LONGEST);
        s->labels[b] = (int32_t)qkvi_rng_below(rng, 3) - 1;
        for (int64_t i = 0; i < s->lengths[b]; i++, n++) {
            s->ids[n] = (int32_t)qkvi_rng_below(rng, N_WORDS);
            s->types[n] = i > s->lengths[b] / 2;
            if (qkvi_rng_below(rng, 4)) continue;
            s->targets[n_targets] = n;
            s->target_ids[n_targets++] = (int32_t)qkvi_rng_below(rng, N_WORDS);
        }
    }
    s->batch = (qkvi_net_batch){ .n_sequences = N_SEQUENCES,
                                 .lengths = s->lengths,
                                 .ids = s->ids,
                                 .types = s->types,
                                 .n_targets = n_targets,
                                 .target_tokens = s->targets,
                                 .target_ids = s->target_ids,
                                 .labels = s->labels };
}

static setup *make_setup(const qkv_model_info *info, uint64_t index) {
    setup *s = calloc(1, sizeof *s);
    qkvi_rng rng = qkvi_rng_make(seed, 8, index);
    s->info = *info;
    assert_int_equal(qkvi_net_table(info, &s->table, NULL), QKV_OK);
    s->weights = qkvi_params_arena(&s->table);
    s->gradients = qkvi_params_arena(&s->table);
    random_weights(s, &rng);
    random_batch(s, &rng);
    assert_int_equal(qkvi_net_bind(info, &s->table, s->weights,
                                   QKVI_NET_FORWARD | QKVI_NET_BACKWARD, &s->params, NULL),
                     QKV_OK);
    assert_int_equal(qkvi_net_bind(info, &s->table, s->gradients, 0, &s->grads, NULL), QKV_OK);
    assert_int_equal(qkvi_net_pass_create(&s->pass, NULL), QKV_OK);
    qkvi_net_pack(NULL, s->params);
    return s;
}

static void free_setup(setup *s) {
    qkvi_net_pass_free(s->pass);
    qkvi_net_free(s->params);
    qkvi_net_free(s->grads);
    free(s->weights);
    free(s->gradients);
    qkvi_params_free(&s->table);
    free(s);
}

static qkvi_net_losses compute(setup *s, qkv_ctx *ctx, int with_grads) {
    qkvi_net_losses losses;
    qkv_error error;
    if (qkvi_net_loss(ctx, s->params, &s->batch, s->pass, with_grads ? s->grads : NULL, &losses,
                      &error) != QKV_OK)
        fail_msg("seed %llu: %s", (unsigned long long)seed, error.message);
    return losses;
}

/* ---- Same bits ------------------------------------------------------------------------------- */

static void expect_batch_of_single_runs(uint64_t index) {
    setup *s = make_setup(&small_model, index);
    qkv_ctx *ctx = make_ctx(NULL, 2);
    qkvi_net_pass *single;
    const size_t row = (size_t)s->info.hidden * sizeof(float);
    const uint32_t flags = QKV_RUN_CAPTURE | QKV_RUN_HIDDEN;
    assert_int_equal(qkvi_net_pass_create(&single, NULL), QKV_OK);
    assert_int_equal(qkvi_net_forward(ctx, s->params, &s->batch, flags, s->pass, NULL), QKV_OK);
    for (int64_t b = 0, token = 0; b < N_SEQUENCES; token += s->lengths[b++]) {
        const qkvi_net_batch one = { .n_sequences = 1,
                                     .lengths = s->lengths + b,
                                     .ids = s->ids + token,
                                     .types = s->types + token };
        const int64_t at = qkvi_stack_row(qkvi_net_stack(s->pass, 0), b), hidden = s->info.hidden;
        const size_t n = (size_t)s->lengths[b];
        assert_int_equal(qkvi_net_forward(ctx, s->params, &one, flags, single, NULL), QKV_OK);
        for (int64_t l = 0; l <= s->info.n_layers; l++)
            assert_memory_equal(qkvi_stack_hidden(qkvi_net_stack(s->pass, 0), l) + at * hidden,
                                qkvi_stack_hidden(qkvi_net_stack(single, 0), l), n * row);
        for (int64_t l = 0; l < s->info.n_layers; l++) {
            assert_memory_equal(
                qkvi_stack_captured(qkvi_net_stack(s->pass, 0), l, false)->q + at * hidden,
                qkvi_stack_captured(qkvi_net_stack(single, 0), l, false)->q, n * row);
            assert_memory_equal(
                qkvi_stack_captured(qkvi_net_stack(s->pass, 0), l, false)->k + at * hidden,
                qkvi_stack_captured(qkvi_net_stack(single, 0), l, false)->k, n * row);
            assert_memory_equal(qkvi_stack_captured(qkvi_net_stack(s->pass, 0), l, false)->lse +
                                    at * s->info.n_heads,
                                qkvi_stack_captured(qkvi_net_stack(single, 0), l, false)->lse,
                                n * (size_t)s->info.n_heads * sizeof(float));
        }
    }
    qkvi_net_pass_free(single);
    qkv_ctx_free(ctx);
    free_setup(s);
}

/* Losses and gradients of one context against those of another. */
static void expect_same_training(setup *s, const char *isa, int n_threads, const float *gradients,
                                 const qkvi_net_losses *losses) {
    qkv_ctx *ctx = make_ctx(isa, n_threads);
    const qkvi_net_losses got = compute(s, ctx, 1);
    assert_memory_equal(&got, losses, sizeof got);
    for (int64_t r = 0; r < s->table.n_rows; r++) {
        const qkvi_param *row = &s->table.rows[r];
        if (memcmp(gradients + row->offset, s->gradients + row->offset,
                   row->n_elems * sizeof(float)) != 0)
            fail_msg("seed %llu: gradient of %s differs on %s with %d threads",
                     (unsigned long long)seed, row->name, qkv_ctx_isa(ctx), n_threads);
    }
    qkv_ctx_free(ctx);
}

static void test_batch_equals_single_runs(void **state) {
    (void)state;
    expect_batch_of_single_runs(0);
}

static void expect_training_everywhere(uint64_t index) {
    setup *s = make_setup(&small_model, index);
    qkv_ctx *ctx = make_ctx(qkv_isa_name(0), 1);
    float *gradients = qkvi_params_arena(&s->table);
    const qkvi_net_losses losses = compute(s, ctx, 1);
    memcpy(gradients, s->gradients, s->table.n_elems * sizeof *gradients);
    for (int n_threads = 2; n_threads <= 16; n_threads += n_threads > 3 ? 6 : 1)
        expect_same_training(s, NULL, n_threads, gradients, &losses);
    for (int i = 0; qkv_isa_name(i); i++)
        expect_same_training(s, qkv_isa_name(i), 2, gradients, &losses);
    free(gradients);
    qkv_ctx_free(ctx);
    free_setup(s);
}

static void test_training_has_the_same_bits_everywhere(void **state) {
    (void)state;
    expect_training_everywhere(1);
}

static void test_vanishing_products_keep_their_bits(void **state) {
    (void)state;
    for (smaller = 20; smaller <= 140; smaller += 40) {
        expect_batch_of_single_runs(100 + smaller);
        expect_training_everywhere(200 + smaller);
    }
    smaller = 0;
}

/* ---- Positions ------------------------------------------------------------------------------- */

static void test_sinusoids_are_the_formula(void **state) {
    (void)state;
    enum { N_POSITIONS = 600, HIDDEN = 45 };
    float *table = malloc(N_POSITIONS * HIDDEN * sizeof *table);
    qkvi_sinusoids(N_POSITIONS, HIDDEN, table);
    for (int p = 0; p < N_POSITIONS; p++) {
        for (int c = 0; c < HIDDEN; c++) {
            const double angle = p * pow(10000, -(c - c % 2) / (double)HIDDEN);
            const double wanted = c % 2 ? cos(angle) : sin(angle);
            if (!(fabs((double)table[p * HIDDEN + c] - wanted) <= 0x1p-25 + 1e-12))
                fail_msg("position %d, channel %d: %.9g, wanted %.9g", p, c,
                         (double)table[p * HIDDEN + c], wanted);
        }
    }
    free(table);
}

static void test_sinusoidal_model_equals_learned_one(void **state) {
    (void)state;
    qkv_model_info info = small_model;
    setup *learned = make_setup(&info, 2);
    info.sinusoidal_positions = 1;
    setup *fixed = make_setup(&info, 2);
    qkv_ctx *ctx = make_ctx(NULL, 2);
    qkvi_sinusoids(info.max_len, info.hidden, learned->params->stacks[0].embed.position);
    for (int64_t r = 0; r < fixed->table.n_rows; r++) { /* all but positions, which it lacks */
        const qkvi_param *row = &fixed->table.rows[r];
        const qkvi_param *same = qkvi_params_find(&learned->table, row->name);
        memcpy(fixed->weights + row->offset, learned->weights + same->offset,
               row->n_elems * sizeof(float));
    }
    qkvi_net_pack(ctx, fixed->params);
    fixed->batch = learned->batch;
    const qkvi_net_losses a = compute(learned, ctx, 1), b = compute(fixed, ctx, 1);
    assert_memory_equal(&a, &b, sizeof a);
    for (int64_t r = 0; r < fixed->table.n_rows; r++) {
        const qkvi_param *row = &fixed->table.rows[r];
        const qkvi_param *same = qkvi_params_find(&learned->table, row->name);
        assert_memory_equal(fixed->gradients + row->offset, learned->gradients + same->offset,
                            row->n_elems * sizeof(float));
    }
    qkv_ctx_free(ctx);
    free_setup(learned);
    free_setup(fixed);
}

/* ---- Derivatives ----------------------------------------------------------------------------- */

/* Loss at weights + step * direction. */
static double loss_along(setup *s, qkv_ctx *ctx, const float *origin, const float *direction,
                         float step) {
    for (size_t i = 0; i < s->table.n_elems; i++) s->weights[i] = origin[i] + step * direction[i];
    qkvi_net_pack(ctx, s->params);
    const qkvi_net_losses losses = compute(s, ctx, 0);
    return losses.mlm + losses.nsp;
}

/*
 * One direction per tensor, so that a wrong gradient cannot hide among others. Four-point
 * differences; the tolerance is that of their rounding: losses are means of floats, good to about
 * 1e-7.
 */
static void test_gradient_is_the_derivative(void **state) {
    (void)state;
    setup *s = make_setup(&small_model, 3);
    qkv_ctx *ctx = make_ctx(NULL, 2);
    qkvi_rng rng = qkvi_rng_make(seed, 9, 0);
    float *origin = qkvi_params_arena(&s->table), *direction = qkvi_params_arena(&s->table);
    compute(s, ctx, 1);
    memcpy(origin, s->weights, s->table.n_elems * sizeof *origin);
    for (int64_t r = 0; r < s->table.n_rows; r++) {
        const qkvi_param *row = &s->table.rows[r];
        double slope = 0, size = 0;
        memset(direction, 0, s->table.n_elems * sizeof *direction);
        for (size_t i = 0; i < row->n_elems; i++) { /* towards the gradient, more or less */
            const double g = (double)s->gradients[row->offset + i];
            size += g * g;
        }
        for (size_t i = 0; i < row->n_elems; i++) {
            const float g = s->gradients[row->offset + i], unit = (float)sqrt(size) + 1e-20f;
            direction[row->offset + i] = 0.5f * g / unit + 0.05f * noise(&rng);
            slope += (double)g * (double)direction[row->offset + i];
        }
        const float h = 0.01f;
        const double near =
            loss_along(s, ctx, origin, direction, h) - loss_along(s, ctx, origin, direction, -h);
        const double far = loss_along(s, ctx, origin, direction, 2 * h) -
                           loss_along(s, ctx, origin, direction, -2 * h);
        const double measured = (8 * near - far) / (12 * (double)h);
        if (!(fabs(measured - slope) <= 0.01 * fabs(slope) + 1e-4))
            fail_msg("seed %llu: %s: the loss changes by %g, its gradient says %g",
                     (unsigned long long)seed, row->name, measured, slope);
    }
    free(origin);
    free(direction);
    qkv_ctx_free(ctx);
    free_setup(s);
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static void expect_refusal(setup *s, qkv_ctx *ctx, qkv_status wanted, const char *text) {
    qkvi_net_losses losses;
    qkv_error error = { 0 };
    assert_int_equal(qkvi_net_loss(ctx, s->params, &s->batch, s->pass, s->grads, &losses, &error),
                     wanted);
    if (!strstr(error.message, text)) fail_msg("'%s' lacks '%s'", error.message, text);
}

static void test_bad_batches_are_refused(void **state) {
    (void)state;
    setup *s = make_setup(&small_model, 4);
    qkv_ctx *ctx = make_ctx(NULL, 1);
    const qkvi_net_batch good = s->batch;
    const int64_t length = s->lengths[3], target = s->targets[1];

    s->lengths[3] = LONGEST + 1;
    expect_refusal(s, ctx, QKV_ERR_SHAPE, "input 3 has 20 tokens; the model takes 1 to 19");
    s->lengths[3] = 0;
    expect_refusal(s, ctx, QKV_ERR_SHAPE, "input 3 has 0 tokens");
    s->lengths[3] = length;
    s->batch.n_sequences = 0;
    expect_refusal(s, ctx, QKV_ERR_SHAPE, "a batch of 0 inputs");
    s->batch = good;
    s->ids[5] = N_WORDS;
    expect_refusal(s, ctx, QKV_ERR_ARGUMENT, "token 5 has the id 75; the model has ids 0 to 74");
    s->ids[5] = -1;
    expect_refusal(s, ctx, QKV_ERR_ARGUMENT, "token 5 has the id -1");
    s->ids[5] = 0;
    s->types[6] = 2;
    expect_refusal(s, ctx, QKV_ERR_ARGUMENT, "token 6 has the type 2");
    s->types[6] = 0;
    s->targets[1] = s->targets[0];
    expect_refusal(s, ctx, QKV_ERR_ARGUMENT, "target_tokens[1] = ");
    s->targets[1] = target;
    s->target_ids[2] = N_WORDS;
    expect_refusal(s, ctx, QKV_ERR_ARGUMENT, "target_ids[2] = 75");
    s->target_ids[2] = 0;
    s->labels[0] = 2;
    expect_refusal(s, ctx, QKV_ERR_ARGUMENT, "labels[0] = 2");
    s->labels[0] = 0;
    compute(s, ctx, 1);
    qkv_ctx_free(ctx);
    free_setup(s);
}

static void test_missing_heads_are_refused(void **state) {
    (void)state;
    qkv_model_info info = small_model;
    info.has_mlm = info.has_nsp = info.has_pooler = 0;
    setup *s = make_setup(&info, 5);
    qkv_ctx *ctx = make_ctx(NULL, 1);
    expect_refusal(s, ctx, QKV_ERR_UNSUPPORTED, "no MLM head");
    s->batch.n_targets = 0;
    expect_refusal(s, ctx, QKV_ERR_UNSUPPORTED, "no NSP head");
    s->batch.labels = NULL;
    compute(s, ctx, 1); /* no loss at all: every gradient is 0 */
    for (size_t i = 0; i < s->table.n_elems; i++) assert_true(s->gradients[i] == 0);
    qkv_ctx_free(ctx);
    free_setup(s);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch_equals_single_runs),
        cmocka_unit_test(test_training_has_the_same_bits_everywhere),
        cmocka_unit_test(test_vanishing_products_keep_their_bits),
        cmocka_unit_test(test_sinusoids_are_the_formula),
        cmocka_unit_test(test_sinusoidal_model_equals_learned_one),
        cmocka_unit_test(test_gradient_is_the_derivative),
        cmocka_unit_test(test_bad_batches_are_refused),
        cmocka_unit_test(test_missing_heads_are_refused),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    print_message("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests_name("bert", tests, NULL, NULL);
}
