/*
 * Every layer of qkv/layers.h on one set of random arrays: sizes, inputs, and the outputs of a
 * context. The tests have the references in double.
 */
#ifndef QKV_TESTS_LAYERS_WORLD_H
#define QKV_TESTS_LAYERS_WORLD_H

#include <string.h>

#include "core/rng.h"
#include "qkv/layers.h"

enum { MAX_ROWS = 150, MAX_IN = 70, MAX_OUT = 300, MAX_ENTRIES = 20, N_CLASSES_OF_ARITHMETIC = 3 };
enum { N_ACTIVATIONS = 6, OF_X = MAX_ROWS * MAX_IN, OF_Y = MAX_ROWS * MAX_OUT };
enum { OF_WEIGHT = MAX_IN * MAX_OUT, OF_TABLE = MAX_ENTRIES * MAX_IN };

typedef struct layers_sizes {
    int64_t n_rows, n_in, n_out, n_entries;
} layers_sizes;

typedef struct layers_inputs {
    layers_sizes n;
    float x[OF_X], weight[OF_WEIGHT], bias[MAX_OUT], d_y[OF_Y];
    float gamma[MAX_IN], beta[MAX_IN], d_norm[OF_X], table[OF_TABLE];
    int32_t ids[MAX_ROWS], targets[MAX_ROWS]; /* of the n_out columns of y, as classes */
    float eps, scale;
    double smoothing;
} layers_inputs;

typedef struct linear_outputs {
    float y[OF_Y], d_x[OF_X], d_x_sum[OF_X], d_weight[OF_WEIGHT], d_bias[MAX_OUT];
} linear_outputs;

typedef struct layers_outputs {
    linear_outputs linear[N_CLASSES_OF_ARITHMETIC];
    float act[N_ACTIVATIONS][OF_X], d_act[N_ACTIVATIONS][OF_X];
    float norm[OF_X], stats[2 * MAX_ROWS], d_norm[OF_X], d_gamma[MAX_IN], d_beta[MAX_IN];
    float sum[OF_X], dropped[OF_X];
    float gathered[OF_X], d_table[OF_TABLE];
    float d_logits[OF_Y];
    double loss;
    int64_t n_right;
    float param[OF_WEIGHT], m[OF_WEIGHT], v[OF_WEIGHT], param_bias[MAX_OUT], m_bias[MAX_OUT],
        v_bias[MAX_OUT];
    double norms[3];
} layers_outputs;

static const qkv_class layers_classes[N_CLASSES_OF_ARITHMETIC] = { QKV_CLASS_F32, QKV_CLASS_DP,
                                                                   QKV_CLASS_AMX };

static inline void layers_fill(qkvi_rng *rng, int64_t n, float scale, float *x) {
    for (int64_t i = 0; i < n; i++) x[i] = scale * (2 * qkvi_rng_unit(rng) - 1);
}

static inline void layers_random(qkvi_rng *rng, layers_sizes n, layers_inputs *in) {
    memset(in, 0, sizeof *in);
    in->n = n;
    layers_fill(rng, n.n_rows * n.n_in, 2, in->x);
    layers_fill(rng, n.n_out * n.n_in, 1, in->weight);
    layers_fill(rng, n.n_out, 1, in->bias);
    layers_fill(rng, n.n_rows * n.n_out, 1, in->d_y);
    layers_fill(rng, n.n_in, 1, in->gamma);
    layers_fill(rng, n.n_in, 1, in->beta);
    layers_fill(rng, n.n_rows * n.n_in, 1, in->d_norm);
    layers_fill(rng, n.n_entries * n.n_in, 1, in->table);
    for (int64_t r = 0; r < n.n_rows; r++) {
        in->ids[r] = (int32_t)qkvi_rng_below(rng, (uint32_t)n.n_entries);
        in->targets[r] = (int32_t)qkvi_rng_below(rng, (uint32_t)n.n_out + 1) - 1;
    }
    in->eps = 1e-3f;
    in->scale = 1.5f;
    in->smoothing = qkvi_rng_below(rng, 2) ? 0.1 : 0;
}

static inline void layers_must(const qkv_ctx *ctx, qkv_status status) {
    if (status != QKV_OK) fail_msg("%s", qkv_ctx_message(ctx));
}

static inline void layers_linear(qkv_ctx *ctx, const layers_inputs *in, qkv_class arithmetic,
                                 linear_outputs *out) {
    qkv_linear_desc d = qkv_linear_desc_init(in->n.n_rows, in->n.n_in, in->n.n_out);
    d.arithmetic = arithmetic;
    layers_must(ctx, qkv_linear_forward(ctx, &d, in->x, in->weight, in->bias, out->y));
    layers_must(ctx, qkv_linear_backward(ctx, &d, in->x, in->weight, in->d_y, out->d_x,
                                         out->d_weight, out->d_bias));
    d.add_d_x = 1;
    memcpy(out->d_x_sum, in->x, sizeof in->x);
    layers_must(ctx,
                qkv_linear_backward(ctx, &d, NULL, in->weight, in->d_y, out->d_x_sum, NULL, NULL));
}

static inline void layers_elementwise(qkv_ctx *ctx, const layers_inputs *in, layers_outputs *out) {
    const int64_t n_rows = in->n.n_rows, n = in->n.n_in;
    for (int a = 0; a < N_ACTIVATIONS; a++) {
        const qkv_activation act = (qkv_activation)a;
        layers_must(ctx, qkv_activation_forward(ctx, act, n_rows, n, in->x, out->act[a]));
        layers_must(ctx,
                    qkv_activation_backward(ctx, act, n_rows, n, in->x, in->d_norm, out->d_act[a]));
    }
    memcpy(out->sum, in->d_norm, sizeof in->d_norm);
    layers_must(ctx, qkv_rows_add(ctx, n_rows, n, in->x, out->sum));
    memcpy(out->dropped, in->x, sizeof in->x);
    layers_must(ctx, qkv_dropout(ctx, n_rows, n, 0.3f, 7, 11, out->dropped));
}

static inline void layers_rest(qkv_ctx *ctx, const layers_inputs *in, layers_outputs *out) {
    const int64_t n_rows = in->n.n_rows, n = in->n.n_in;
    layers_must(ctx, qkv_layer_norm_forward(ctx, n_rows, n, in->eps, in->x, in->gamma, in->beta,
                                            out->norm, out->stats));
    layers_must(ctx, qkv_layer_norm_backward(ctx, n_rows, n, in->x, out->stats, in->gamma,
                                             in->d_norm, out->d_norm, out->d_gamma, out->d_beta));
    qkv_embedding_desc e = qkv_embedding_desc_init(n_rows, in->n.n_entries, n, in->ids);
    e.scale = in->scale;
    for (int64_t i = 0; i < n_rows * n; i++) out->gathered[i] = 5; /* what was there is gone */
    for (int64_t i = 0; i < in->n.n_entries * n; i++) out->d_table[i] = 5;
    layers_must(ctx, qkv_embedding_forward(ctx, &e, in->table, out->gathered));
    layers_must(ctx, qkv_embedding_backward(ctx, &e, in->d_norm, out->d_table));
    layers_must(ctx, qkv_cross_entropy(ctx, n_rows, in->n.n_out, in->targets, in->smoothing,
                                       in->d_y, out->d_logits, &out->loss, &out->n_right));
}

/* Three steps on weight and bias with the linear layer's gradients; the second is clipped. */
static inline void layers_adamw(qkv_ctx *ctx, const layers_inputs *in, layers_outputs *out) {
    const linear_outputs *const g = &out->linear[0];
    const qkv_adamw_array arrays[] = {
        { in->n.n_in * in->n.n_out, g->d_weight, out->param, out->m, out->v, 1 },
        { in->n.n_out, g->d_bias, out->param_bias, out->m_bias, out->v_bias, 0 },
    };
    memcpy(out->param, in->weight, sizeof in->weight);
    memcpy(out->param_bias, in->bias, sizeof in->bias);
    for (int step = 1; step <= 3; step++) {
        qkv_adamw_options o = qkv_adamw_options_init(0.01);
        o.clip = step == 2 ? 0.5 : 0;
        layers_must(
            ctx, qkv_adamw_step(ctx, &o, step, 2, arrays, sizeof *arrays, &out->norms[step - 1]));
    }
}

/* All of them; what is beyond the sizes is 0. */
static inline void layers_run(qkv_ctx *ctx, const layers_inputs *in, layers_outputs *out) {
    memset(out, 0, sizeof *out);
    for (int c = 0; c < N_CLASSES_OF_ARITHMETIC; c++)
        layers_linear(ctx, in, layers_classes[c], &out->linear[c]);
    layers_elementwise(ctx, in, out);
    layers_rest(ctx, in, out);
    layers_adamw(ctx, in, out);
}

#endif
