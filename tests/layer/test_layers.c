/*
 * The layers of qkv/layers.h: bits on every instruction set and number of threads, gradients
 * against central differences and against the textbook, both in double; the forms of a call that
 * must have the same bits; and the layers that models run with.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "layer/layers_world.h"

#include "counting_allocator.h"
#include "layer/embed.h"
#include "make_ctx.h"

#define U 0x1p-24

static uint64_t seed = 20261123;
static layers_inputs in;
static layers_outputs out;
static qkv_ctx *ctx; /* the best instruction set, two threads */

static void near(const char *what, int64_t i, double got, double wanted, double bound) {
    if (!(fabs(got - wanted) <= bound))
        fail_msg("%s, seed %llu: [%lld] = %.9g, wanted %.9g within %.3g", what,
                 (unsigned long long)seed, (long long)i, got, wanted, bound);
}

static layers_sizes random_sizes(qkvi_rng *rng) {
    return (layers_sizes){ 1 + qkvi_rng_below(rng, MAX_ROWS), 1 + qkvi_rng_below(rng, MAX_IN),
                           1 + qkvi_rng_below(rng, MAX_OUT), 1 + qkvi_rng_below(rng, MAX_ENTRIES) };
}

static double d(float x) { return (double)x; }

/* ---- Bits ------------------------------------------------------------------------------------ */

static void bits_are_the_same_everywhere(void **state) {
    (void)state;
    static layers_outputs first;
    const int threads[] = { 1, 2, 5 };
    const char *isa;
    qkvi_rng rng = qkvi_rng_make(seed, 1, 0);
    for (int turn = 0; turn < 4; turn++) {
        layers_random(&rng, random_sizes(&rng), &in);
        for (int i = 0; (isa = qkv_isa_name(i)); i++)
            for (int t = 0; t < 3; t++) {
                qkv_ctx *const own = make_ctx(isa, threads[t]);
                layers_run(own, &in, &out);
                qkv_ctx_free(own);
                if (i == 0 && t == 0) first = out;
                if (memcmp(&out, &first, sizeof out) != 0)
                    fail_msg("%s with %d threads has other bits, seed %llu, turn %d", isa,
                             threads[t], (unsigned long long)seed, turn);
            }
    }
}

/* ---- Central differences --------------------------------------------------------------------- */

enum { SMALL = 400 };

/* A loss of some numbers in double: outputs times the gradients that come in, added up. */
typedef double loss_fn(const double *x);

static void check_differences(const char *what, loss_fn *loss, const float *at, int64_t n,
                              const float *gradient) {
    static double x[SMALL];
    const double h = 1e-5;
    for (int64_t i = 0; i < n; i++) x[i] = d(at[i]);
    for (int64_t i = 0; i < n; i++) {
        x[i] = d(at[i]) + h;
        const double above = loss(x);
        x[i] = d(at[i]) - h;
        const double wanted = (above - loss(x)) / (2 * h);
        x[i] = d(at[i]);
        near(what, i, d(gradient[i]), wanted, 2e-5 * (1 + fabs(wanted)));
    }
}

/* Each takes one of its layer's inputs from the argument, and the others from `in`. */
static double linear_sum(const double *x, const double *weight, const double *bias) {
    double sum = 0;
    for (int64_t r = 0; r < in.n.n_rows; r++)
        for (int64_t o = 0; o < in.n.n_out; o++) {
            double y = bias ? bias[o] : d(in.bias[o]);
            for (int64_t i = 0; i < in.n.n_in; i++) {
                const int64_t x_at = r * in.n.n_in + i, w_at = o * in.n.n_in + i;
                y += (x ? x[x_at] : d(in.x[x_at])) * (weight ? weight[w_at] : d(in.weight[w_at]));
            }
            sum += d(in.d_y[r * in.n.n_out + o]) * y;
        }
    return sum;
}
static double linear_of_x(const double *x) { return linear_sum(x, NULL, NULL); }
static double linear_of_weight(const double *w) { return linear_sum(NULL, w, NULL); }
static double linear_of_bias(const double *b) { return linear_sum(NULL, NULL, b); }

static double norm_sum(const double *x, const double *gamma, const double *beta) {
    const int64_t n = in.n.n_in;
    double sum = 0;
    for (int64_t r = 0; r < in.n.n_rows; r++) {
        double mean = 0, square = 0;
        for (int64_t j = 0; j < n; j++) mean += x[r * n + j] / (double)n;
        for (int64_t j = 0; j < n; j++) square += pow(x[r * n + j] - mean, 2) / (double)n;
        for (int64_t j = 0; j < n; j++) {
            const double z = (x[r * n + j] - mean) / sqrt(square + d(in.eps));
            sum += d(in.d_norm[r * n + j]) *
                   (z * (gamma ? gamma[j] : d(in.gamma[j])) + (beta ? beta[j] : d(in.beta[j])));
        }
    }
    return sum;
}
static double norm_of_x(const double *x) { return norm_sum(x, NULL, NULL); }
static const double *x_in_double(void) {
    static double x[SMALL];
    for (int64_t i = 0; i < in.n.n_rows * in.n.n_in; i++) x[i] = d(in.x[i]);
    return x;
}
static double norm_of_gamma(const double *gamma) { return norm_sum(x_in_double(), gamma, NULL); }
static double norm_of_beta(const double *beta) { return norm_sum(x_in_double(), NULL, beta); }

static int activation; /* of act_of_x */

static double act(double x) {
    switch ((qkv_activation)activation) {
    case QKV_ACTIVATION_GELU: return 0.5 * x * (1 + erf(x * sqrt(0.5)));
    case QKV_ACTIVATION_GELU_TANH:
        return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case QKV_ACTIVATION_RELU: return x > 0 ? x : 0;
    case QKV_ACTIVATION_SILU: return x / (1 + exp(-x));
    case QKV_ACTIVATION_QUICK_GELU: return x / (1 + exp(-1.702 * x));
    default: return tanh(x);
    }
}
static double act_of_x(const double *x) {
    double sum = 0;
    for (int64_t i = 0; i < in.n.n_rows * in.n.n_in; i++) sum += d(in.d_norm[i]) * act(x[i]);
    return sum;
}

static double embedding_of_table(const double *table) {
    const int64_t n = in.n.n_in;
    double sum = 0;
    for (int64_t i = 0; i < in.n.n_rows * n; i++)
        sum += d(in.d_norm[i]) * d(in.scale) * table[in.ids[i / n] * n + i % n];
    return sum;
}

/* The mean loss of logits. */
static double mean_loss(const double *x) {
    const int64_t n = in.n.n_out;
    double sum = 0, n_targets = 0;
    for (int64_t r = 0; r < in.n.n_rows; r++, x += n) {
        double total = 0, mean = 0;
        if (in.targets[r] < 0) continue;
        for (int64_t j = 0; j < n; j++) total += exp(x[j]), mean += x[j] / (double)n;
        sum += log(total) - (1 - in.smoothing) * x[in.targets[r]] - in.smoothing * mean;
        n_targets++;
    }
    return n_targets > 0 ? sum / n_targets : 0;
}

static void gradients_are_central_differences(void **state) {
    (void)state;
    qkvi_rng rng = qkvi_rng_make(seed, 2, 0);
    for (int turn = 0; turn < 6; turn++) {
        const layers_sizes n = { 2 + qkvi_rng_below(&rng, 8), 2 + qkvi_rng_below(&rng, 10),
                                 2 + qkvi_rng_below(&rng, 10), 1 + qkvi_rng_below(&rng, 6) };
        const int64_t n_x = n.n_rows * n.n_in;
        layers_random(&rng, n, &in);
        layers_run(ctx, &in, &out);
        const linear_outputs *const l = &out.linear[0];
        check_differences("d_x", linear_of_x, in.x, n_x, l->d_x);
        check_differences("d_weight", linear_of_weight, in.weight, n.n_in * n.n_out, l->d_weight);
        check_differences("d_bias", linear_of_bias, in.bias, n.n_out, l->d_bias);
        check_differences("norm, d_x", norm_of_x, in.x, n_x, out.d_norm);
        check_differences("d_gamma", norm_of_gamma, in.gamma, n.n_in, out.d_gamma);
        check_differences("d_beta", norm_of_beta, in.beta, n.n_in, out.d_beta);
        for (activation = 0; activation < N_ACTIVATIONS; activation++)
            check_differences("activation", act_of_x, in.x, n_x, out.d_act[activation]);
        check_differences("d_table", embedding_of_table, in.table, n.n_entries * n.n_in,
                          out.d_table);
        check_differences("d_logits", mean_loss, in.d_y, n.n_rows * n.n_out, out.d_logits);
    }
}

/* ---- The textbook, in double ----------------------------------------------------------------- */

/* An element of a product, start + sum of a[c * a_step] b[c * b_step], within `units` of |sum|. */
static void check_product(const char *what, int64_t at, float got, int64_t n, const float *a,
                          int64_t a_step, const float *b, int64_t b_step, double start,
                          double units) {
    double sum = start, size = fabs(start);
    for (int64_t c = 0; c < n; c++) {
        const double term = d(a[c * a_step]) * d(b[c * b_step]);
        sum += term, size += fabs(term);
    }
    near(what, at, d(got), sum, units * U * size);
}

/* Units of the header's bound of n terms; in bf16 2^-7 is added for rounded factors. */
static double units_of(int64_t n, qkv_class arithmetic) {
    const double f32 = fmin((double)n, 256) + (double)n / 256 + 2;
    return arithmetic == QKV_CLASS_F32 ? f32 : (double)n + 2 + 0x1.1p-7 / U;
}

static void check_linear(qkv_class arithmetic, const linear_outputs *l) {
    const int64_t n_rows = in.n.n_rows, n_in = in.n.n_in, n_out = in.n.n_out;
    for (int64_t i = 0; i < n_rows * n_out; i++)
        check_product("y", i, l->y[i], n_in, in.x + i / n_out * n_in, 1,
                      in.weight + i % n_out * n_in, 1, d(in.bias[i % n_out]),
                      units_of(n_in, arithmetic));
    for (int64_t i = 0; i < n_rows * n_in; i++) {
        const float *const d_y = in.d_y + i / n_in * n_out, *const w = in.weight + i % n_in;
        const double units = units_of(n_out, arithmetic);
        check_product("d_x", i, l->d_x[i], n_out, d_y, 1, w, n_in, 0, units);
        check_product("d_x, added", i, l->d_x_sum[i], n_out, d_y, 1, w, n_in, d(in.x[i]), units);
    }
    for (int64_t i = 0; i < n_out * n_in; i++)
        check_product("d_weight", i, l->d_weight[i], n_rows, in.d_y + i / n_in, n_out,
                      in.x + i % n_in, n_in, 0, units_of(n_rows, arithmetic));
    const float one = 1;
    for (int64_t o = 0; o < n_out; o++)
        check_product("d_bias", o, l->d_bias[o], n_rows, in.d_y + o, n_out, &one, 0, 0,
                      65 + (double)n_rows / 64);
}

static void check_norm(void) {
    const int64_t n = in.n.n_in, n_rows = in.n.n_rows;
    for (int64_t r = 0; r < n_rows; r++) {
        const float *const x = in.x + r * n;
        double mean = 0, square = 0, top = 0;
        for (int64_t j = 0; j < n; j++) mean += d(x[j]) / (double)n, top = fmax(top, fabs(d(x[j])));
        for (int64_t j = 0; j < n; j++) square += pow(d(x[j]) - mean, 2) / (double)n;
        const double rstd = 1 / sqrt(square + d(in.eps)), unit = 24 * U * (1 + top * rstd);
        for (int64_t j = 0; j < n; j++) {
            const double z = (d(x[j]) - mean) * rstd, gamma = d(in.gamma[j]), beta = d(in.beta[j]);
            near("layer norm", r * n + j, d(out.norm[r * n + j]), z * gamma + beta,
                 unit * (1 + fabs(z)) * fabs(gamma) + 2 * U * fabs(beta));
        }
    }
    for (int64_t j = 0; j < n; j++) {
        double gamma = 0, beta = 0, size = 0;
        for (int64_t r = 0; r < n_rows; r++) {
            const double d_y = d(in.d_norm[r * n + j]);
            const double z = (d(in.x[r * n + j]) - d(out.stats[2 * r])) * d(out.stats[2 * r + 1]);
            gamma += d_y * z, beta += d_y, size += fabs(d_y) * (1 + fabs(z));
        }
        const double bound = (70 + (double)n_rows / 64) * U * size;
        near("d_gamma", j, d(out.d_gamma[j]), gamma, bound);
        near("d_beta", j, d(out.d_beta[j]), beta, bound);
    }
}

static void check_embedding(void) {
    const int64_t n = in.n.n_in;
    for (int64_t i = 0; i < in.n.n_rows * n; i++)
        assert_true(out.gathered[i] == in.scale * in.table[in.ids[i / n] * n + i % n]);
    for (int64_t i = 0; i < in.n.n_entries * n; i++) {
        double sum = 0, size = 0, m = 0;
        for (int64_t r = 0; r < in.n.n_rows; r++) {
            const double d_y = in.ids[r] == i / n ? d(in.d_norm[r * n + i % n]) : 0;
            sum += d(in.scale) * d_y, size += d(in.scale) * fabs(d_y), m += in.ids[r] == i / n;
        }
        near("d_table", i, d(out.d_table[i]), sum, (67 + m / 32) * U * size);
    }
}

static void check_loss(void) {
    static double x[OF_Y];
    const int64_t n = in.n.n_out;
    int64_t n_targets = 0, n_right = 0;
    const double bound = (16 + 8 * 1 + (double)n / 32) * U; /* logits are at most 1 */
    for (int64_t i = 0; i < in.n.n_rows * n; i++) x[i] = d(in.d_y[i]);
    near("loss", 0, out.loss, mean_loss(x), bound);
    for (int64_t r = 0; r < in.n.n_rows; r++) n_targets += in.targets[r] >= 0;
    for (int64_t r = 0; r < in.n.n_rows; r++) {
        double total = 0, top = -INFINITY;
        for (int64_t j = 0; j < n; j++) total += exp(x[r * n + j]), top = fmax(top, x[r * n + j]);
        n_right += in.targets[r] >= 0 && x[r * n + in.targets[r]] == top;
        for (int64_t j = 0; j < n; j++) {
            const double on = j == in.targets[r] ? 1 - in.smoothing : 0;
            const double p = exp(x[r * n + j]) / total - on - in.smoothing / (double)n;
            const double wanted = in.targets[r] < 0 ? 0 : p / (double)n_targets;
            near("d_logits", r * n + j, d(out.d_logits[r * n + j]), wanted,
                 bound / (double)(n_targets ? n_targets : 1));
        }
    }
    assert_int_equal(out.n_right, n_right);
}

/* The formula of the paper, one parameter at a time. */
static void check_parameter(const char *what, int64_t i, float start, float gradient, double norm,
                            double decay, float got) {
    double p = d(start), m = 0, v = 0;
    for (int step = 1; step <= 3; step++) {
        const double g = d(gradient) * (step == 2 && norm > 0.5 ? 0.5 / norm : 1);
        m = 0.9 * m + (1 - 0.9) * g;
        v = 0.999 * v + (1 - 0.999) * g * g;
        const double m_hat = m / (1 - pow(0.9, step)), v_hat = v / (1 - pow(0.999, step));
        p = p - 0.01 * decay * p - 0.01 * m_hat / (sqrt(v_hat) + 1e-8);
    }
    near(what, i, d(got), p, 3 * U * (4 * fabs(p) + 40 * 0.03) + 1e-5 * (fabs(d(gradient)) < 1e-5));
}

static void check_adamw(void) {
    const linear_outputs *const g = &out.linear[0];
    const int64_t n = in.n.n_in * in.n.n_out;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += d(g->d_weight[i]) * d(g->d_weight[i]);
    for (int64_t o = 0; o < in.n.n_out; o++) sum += d(g->d_bias[o]) * d(g->d_bias[o]);
    for (int step = 0; step < 3; step++)
        near("norm", step, out.norms[step], sqrt(sum), 1e-6 * sqrt(sum));
    for (int64_t i = 0; i < n; i++)
        check_parameter("weight", i, in.weight[i], g->d_weight[i], sqrt(sum), 0.01, out.param[i]);
    for (int64_t o = 0; o < in.n.n_out; o++)
        check_parameter("bias", o, in.bias[o], g->d_bias[o], sqrt(sum), 0, out.param_bias[o]);
}

static void everything_is_the_textbook(void **state) {
    (void)state;
    qkvi_rng rng = qkvi_rng_make(seed, 3, 0);
    for (int turn = 0; turn < 4; turn++) {
        layers_random(&rng, random_sizes(&rng), &in);
        layers_run(ctx, &in, &out);
        for (int c = 0; c < N_CLASSES_OF_ARITHMETIC; c++)
            check_linear(layers_classes[c], &out.linear[c]);
        check_norm();
        check_embedding();
        check_loss();
        check_adamw();
        for (int64_t i = 0; i < in.n.n_rows * in.n.n_in; i++)
            assert_true(out.sum[i] == in.d_norm[i] + in.x[i]);
    }
}

/* ---- Forms of a call with the same bits ------------------------------------------------------ */

static void *packed_for(const qkv_linear_desc *desc, qkv_pass pass) {
    size_t bytes;
    layers_must(ctx, qkv_linear_packed_bytes(ctx, desc, pass, &bytes));
    void *const packed = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(packed);
    layers_must(ctx, qkv_linear_pack(ctx, desc, pass, in.weight, packed, bytes));
    return packed;
}

static void packed_weights_have_the_same_bits(void **state) {
    (void)state;
    static linear_outputs got;
    qkvi_rng rng = qkvi_rng_make(seed, 4, 0);
    for (int turn = 0; turn < 3; turn++) {
        layers_random(&rng, random_sizes(&rng), &in);
        layers_run(ctx, &in, &out);
        for (int c = 0; c < N_CLASSES_OF_ARITHMETIC; c++) {
            qkv_linear_desc desc = qkv_linear_desc_init(in.n.n_rows, in.n.n_in, in.n.n_out);
            desc.arithmetic = layers_classes[c];
            void *const forward = packed_for(&desc, QKV_PASS_FORWARD);
            void *const backward = packed_for(&desc, QKV_PASS_BACKWARD);
            desc.packed_forward = forward, desc.packed_backward = backward;
            got = out.linear[c];
            memset(got.y, 0, sizeof got.y);
            memset(got.d_x, 0, sizeof got.d_x);
            memset(got.d_bias, 0, sizeof got.d_bias);
            layers_must(ctx, qkv_linear_forward(ctx, &desc, in.x, NULL, in.bias, got.y));
            layers_must(ctx, qkv_linear_backward(ctx, &desc, in.x, NULL, in.d_y, got.d_x, NULL,
                                                 got.d_bias));
            assert_memory_equal(&got, &out.linear[c], sizeof got);
            free(forward);
            free(backward);
        }
    }
}

static void outputs_may_be_inputs_where_it_is_said(void **state) {
    (void)state;
    static float x[OF_X], logits[OF_Y], stats[2 * MAX_ROWS];
    qkvi_rng rng = qkvi_rng_make(seed, 5, 0);
    layers_random(&rng, random_sizes(&rng), &in);
    layers_run(ctx, &in, &out);
    const int64_t n_rows = in.n.n_rows, n = in.n.n_in;
    for (int a = 0; a < N_ACTIVATIONS; a++) {
        memcpy(x, in.x, sizeof x);
        layers_must(ctx, qkv_activation_forward(ctx, (qkv_activation)a, n_rows, n, x, x));
        assert_memory_equal(x, out.act[a], sizeof x);
        memcpy(x, in.d_norm, sizeof x);
        layers_must(ctx, qkv_activation_backward(ctx, (qkv_activation)a, n_rows, n, in.x, x, x));
        assert_memory_equal(x, out.d_act[a], sizeof x);
    }
    memcpy(x, in.x, sizeof x);
    layers_must(ctx,
                qkv_layer_norm_forward(ctx, n_rows, n, in.eps, x, in.gamma, in.beta, x, stats));
    assert_memory_equal(x, out.norm, sizeof x);
    memcpy(x, in.d_norm, sizeof x);
    layers_must(ctx, qkv_layer_norm_backward(ctx, n_rows, n, in.x, stats, in.gamma, x, x,
                                             out.d_gamma, out.d_beta));
    assert_memory_equal(x, out.d_norm, sizeof x);
    double loss;
    memcpy(logits, in.d_y, sizeof logits);
    layers_must(ctx, qkv_cross_entropy(ctx, n_rows, in.n.n_out, in.targets, in.smoothing, logits,
                                       logits, &loss, NULL));
    assert_memory_equal(logits, out.d_logits, sizeof logits);
    layers_must(ctx, qkv_cross_entropy(ctx, n_rows, in.n.n_out, in.targets, in.smoothing, in.d_y,
                                       NULL, &loss, NULL));
    assert_true(loss == out.loss);
}

/* Type, word and position, added in this order, are the embedding of a model. */
static void sums_of_embeddings_are_those_of_models(void **state) {
    (void)state;
    static float position[OF_TABLE], type[2 * MAX_IN], s[OF_X], y[OF_X];
    static int32_t types[MAX_ROWS], places[MAX_ROWS];
    qkvi_rng rng = qkvi_rng_make(seed, 6, 0);
    layers_random(&rng, random_sizes(&rng), &in);
    const int64_t n_rows = in.n.n_rows, n = in.n.n_in;
    layers_fill(&rng, OF_TABLE, 1, position);
    layers_fill(&rng, 2 * n, 1, type);
    for (int64_t r = 0; r < n_rows; r++) types[r] = (int32_t)(r % 2), places[r] = (int32_t)(r % 13);
    const qkvi_embed model = { n,    in.n.n_entries, 2,     MAX_ENTRIES, in.scale, in.table,
                               type, position,       { 0 }, -1,          -1 };
    qkvi_embed_forward(ctx, &model, n_rows, &(qkvi_embed_rows){ in.ids, types, places }, s);
    qkv_embedding_desc word = qkv_embedding_desc_init(n_rows, in.n.n_entries, n, in.ids);
    qkv_embedding_desc of_type = qkv_embedding_desc_init(n_rows, 2, n, types);
    qkv_embedding_desc place = qkv_embedding_desc_init(n_rows, MAX_ENTRIES, n, places);
    word.scale = in.scale, word.add = place.add = 1;
    layers_must(ctx, qkv_embedding_forward(ctx, &of_type, type, y));
    layers_must(ctx, qkv_embedding_forward(ctx, &word, in.table, y));
    layers_must(ctx, qkv_embedding_forward(ctx, &place, position, y));
    assert_memory_equal(y, s, (size_t)(n_rows * n) * sizeof *y);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static int64_t up_to(int64_t n, int64_t step) { return (n + step - 1) / step * step; }
static int64_t piece(int64_t bytes) { return up_to(bytes, 64); }

enum {
    LINEAR_FORWARD,
    LINEAR_BACKWARD,
    NORM_BACKWARD,
    EMBEDDING,
    LOSS,
    LOSS_ALONE,
    ADAMW,
    N_CALLS
};

/* Bytes that the header names for a call. */
static int64_t promised(int call) {
    const int64_t n_rows = in.n.n_rows, n_in = in.n.n_in, n_out = in.n.n_out;
    const int64_t blocks = up_to(n_rows, 64) / 64, wide_in = up_to(n_in, 32);
    switch (call) {
    case LINEAR_FORWARD: return piece(4 * n_in * up_to(n_out, 32));
    case LINEAR_BACKWARD:
        return piece(4 * n_out * wide_in) + piece(4 * n_rows * wide_in) +
               piece(4 * n_out * blocks) + (102 << 10); /* of one thread */
    case NORM_BACKWARD: return piece(8 * n_in * blocks);
    case EMBEDDING: return piece(4 * (in.n.n_entries + n_rows));
    case LOSS: return piece(8 * n_rows);
    case LOSS_ALONE: return piece(8 * n_rows) + piece(4 * n_rows * n_out);
    default: {
        const int64_t chunks = n_in * n_out / 16384 + 1;
        return piece(32) + piece(32 * chunks) + piece(4 * chunks);
    }
    }
}

static qkv_status make_call(qkv_ctx *own, int call) {
    const int64_t n_rows = in.n.n_rows, n = in.n.n_in, n_out = in.n.n_out;
    const qkv_linear_desc l = qkv_linear_desc_init(n_rows, n, n_out);
    linear_outputs *const o = &out.linear[0];
    switch (call) {
    case LINEAR_FORWARD: return qkv_linear_forward(own, &l, in.x, in.weight, in.bias, o->y);
    case LINEAR_BACKWARD:
        return qkv_linear_backward(own, &l, in.x, in.weight, in.d_y, o->d_x, o->d_weight,
                                   o->d_bias);
    case NORM_BACKWARD:
        return qkv_layer_norm_backward(own, n_rows, n, in.x, out.stats, in.gamma, in.d_norm,
                                       out.d_norm, out.d_gamma, out.d_beta);
    case EMBEDDING: {
        const qkv_embedding_desc e = qkv_embedding_desc_init(n_rows, in.n.n_entries, n, in.ids);
        return qkv_embedding_backward(own, &e, in.d_norm, out.d_table);
    }
    case LOSS:
    case LOSS_ALONE:
        return qkv_cross_entropy(own, n_rows, n_out, in.targets, 0, in.d_y,
                                 call == LOSS ? out.d_logits : NULL, &out.loss, NULL);
    default: {
        const qkv_adamw_options options = qkv_adamw_options_init(0.1);
        const qkv_adamw_array array = { n * n_out, in.weight, out.param, out.m, out.v, 1 };
        return qkv_adamw_step(own, &options, 1, 1, &array, sizeof array, NULL);
    }
    }
}

/* And nothing is allocated by the same call made again. */
static void memory_is_what_the_header_says(void **state) {
    (void)state;
    qkvi_rng rng = qkvi_rng_make(seed, 7, 0);
    for (int turn = 0; turn < 4; turn++) {
        layers_random(&rng, random_sizes(&rng), &in);
        for (int call = 0; call < N_CALLS; call++) {
            counting_allocator counter = { 0 };
            qkv_ctx_options options = qkv_ctx_options_init();
            qkv_ctx *own;
            options.n_threads = 1, options.allocator = counting_allocator_of(&counter);
            assert_int_equal(qkv_ctx_create(&options, &own, NULL), QKV_OK);
            const size_t before = counter.bytes_alive;
            layers_must(own, make_call(own, call));
            const int64_t n_calls = counter.n_calls;
            if ((int64_t)(counter.bytes_alive - before) != promised(call))
                fail_msg("call %d takes %zu bytes, not %lld", call, counter.bytes_alive - before,
                         (long long)promised(call));
            layers_must(own, make_call(own, call));
            assert_int_equal(counter.n_calls, n_calls);
            qkv_ctx_free(own);
            assert_int_equal(counter.bytes_alive, 0);
        }
    }
}

/* ---- Edges ----------------------------------------------------------------------------------- */

static void no_rows_give_zero_gradients(void **state) {
    (void)state;
    static float zeros[OF_WEIGHT], d_weight[OF_WEIGHT], more[MAX_IN];
    double loss = 1;
    int64_t n_right = 1;
    for (int c = 0; c < N_CLASSES_OF_ARITHMETIC; c++) {
        qkv_linear_desc desc = qkv_linear_desc_init(0, 5, 3);
        desc.arithmetic = layers_classes[c];
        for (int i = 0; i < 15; i++) d_weight[i] = 1, more[i] = 1;
        layers_must(ctx, qkv_linear_forward(ctx, &desc, NULL, in.weight, NULL, NULL));
        layers_must(ctx,
                    qkv_linear_backward(ctx, &desc, NULL, in.weight, NULL, zeros, d_weight, more));
        assert_memory_equal(d_weight, zeros, 15 * sizeof *zeros);
        assert_memory_equal(more, zeros, 3 * sizeof *zeros);
        layers_must(ctx, qkv_linear_backward(ctx, &desc, NULL, NULL, NULL, NULL, d_weight, NULL));
    }
    for (int i = 0; i < 10; i++) d_weight[i] = 1;
    layers_must(ctx, qkv_layer_norm_backward(ctx, 0, 5, NULL, NULL, zeros + 20, NULL, NULL,
                                             d_weight, d_weight + 5));
    assert_memory_equal(d_weight, zeros, 10 * sizeof *zeros);
    layers_must(ctx, qkv_cross_entropy(ctx, 0, 3, NULL, 0, NULL, NULL, &loss, &n_right));
    assert_true(loss == 0 && n_right == 0);
    const qkv_adamw_options options = qkv_adamw_options_init(0.1);
    layers_must(ctx, qkv_adamw_step(ctx, &options, 1, 0, NULL, sizeof(qkv_adamw_array), &loss));
    assert_true(loss == 0);
}

static void a_gradient_that_is_not_finite_changes_nothing(void **state) {
    (void)state;
    float grad[3] = { 1, NAN, 2 }, param[3] = { 1, 2, 3 }, m[3] = { 4, 5, 6 }, v[3] = { 7, 8, 9 };
    const qkv_adamw_array array = { 3, grad, param, m, v, 1 };
    const qkv_adamw_options options = qkv_adamw_options_init(0.1);
    double norm = 0;
    assert_int_equal(qkv_adamw_step(ctx, &options, 1, 1, &array, sizeof array, &norm),
                     QKV_ERR_ARGUMENT);
    assert_string_equal(qkv_ctx_message(ctx),
                        "the norm of the gradients is not finite: nothing is changed");
    assert_true(isnan(norm));
    for (int i = 0; i < 3; i++) {
        assert_true(param[i] == (float)(1 + i) && m[i] == (float)(4 + i));
        assert_true(v[i] == (float)(7 + i));
    }
}

static int make_context(void **state) {
    (void)state;
    ctx = make_ctx(NULL, 2);
    return 0;
}

static int free_context(void **state) {
    (void)state;
    qkv_ctx_free(ctx);
    return 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_the_same_everywhere),
        cmocka_unit_test(gradients_are_central_differences),
        cmocka_unit_test(everything_is_the_textbook),
        cmocka_unit_test(packed_weights_have_the_same_bits),
        cmocka_unit_test(outputs_may_be_inputs_where_it_is_said),
        cmocka_unit_test(sums_of_embeddings_are_those_of_models),
        cmocka_unit_test(memory_is_what_the_header_says),
        cmocka_unit_test(no_rows_give_zero_gradients),
        cmocka_unit_test(a_gradient_that_is_not_finite_changes_nothing),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    print_message("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, make_context, free_context);
}
