/*
 * One vector: pooling (model.h has the formulas), and what the modules behind it make of that
 * (config/recipe.h). Sums are in double; an activation or a layer norm works on floats.
 */
#include <math.h>

#include "core/fpstate.h"
#include "layer/act.h"
#include "layer/layernorm.h"
#include "model/arch/net.h"
#include "model/model_impl.h"

/* ---- Pooling --------------------------------------------------------------------------------- */

/* All but the largest are a sum of rows with weights, divided by their divisor. */
static double weight_of(qkv_pooling pooling, int64_t i, int64_t first, int64_t n) {
    switch (pooling) {
    case QKV_POOLING_CLS: return i == first;
    case QKV_POOLING_LAST: return i == n - 1;
    case QKV_POOLING_WEIGHTED_MEAN: return (double)(i + 1);
    default: return 1;
    }
}

/* Of tokens first + 1 … n, counted from 1. */
static double divisor_of(qkv_pooling pooling, double first, double n) {
    switch (pooling) {
    case QKV_POOLING_CLS:
    case QKV_POOLING_LAST: return 1;
    case QKV_POOLING_WEIGHTED_MEAN: return (n * (n + 1) - first * (first + 1)) / 2;
    case QKV_POOLING_MEAN_SQRT_LEN: return sqrt(n - first);
    default: return n - first;
    }
}

static void sum_rows(qkv_pooling pooling, int64_t first, int64_t n, int64_t dim,
                     const float *hidden, double *x) {
    const double divisor = divisor_of(pooling, (double)first, (double)n);
    for (int64_t c = 0; c < dim; c++) x[c] = 0;
    for (int64_t i = first; i < n; i++) {
        const double weight = weight_of(pooling, i, first, n);
        for (int64_t c = 0; weight > 0 && c < dim; c++)
            x[c] += weight * (double)hidden[i * dim + c];
    }
    for (int64_t c = 0; c < dim; c++) x[c] /= divisor;
}

static void largest(int64_t first, int64_t n, int64_t dim, const float *hidden, double *x) {
    for (int64_t c = 0; c < dim; c++) x[c] = (double)hidden[first * dim + c];
    for (int64_t i = first + 1; i < n; i++)
        for (int64_t c = 0; c < dim; c++) {
            const double value = (double)hidden[i * dim + c];
            if (!(value <= x[c])) x[c] = value;
        }
}

/*
 * Where nothing is left, the reference has the first token, or what its sums and maxima begin with.
 */
static void pool_nothing(qkv_pooling pooling, int64_t dim, const float *hidden, double *x) {
    for (int64_t c = 0; c < dim; c++)
        x[c] = pooling == QKV_POOLING_CLS   ? (double)hidden[c]
               : pooling == QKV_POOLING_MAX ? -(double)INFINITY
                                            : 0;
}

static void pool(const qkvi_embedding *e, int64_t n, const float *hidden) {
    const int64_t dim = e->model->info.pooled_dim;
    for (int p = 0; p < e->n_poolings; p++) {
        const qkv_pooling pooling = e->poolings[p];
        double *const x = e->x + p * dim;
        if (e->n_out >= n)
            pool_nothing(pooling, dim, hidden, x);
        else if (pooling == QKV_POOLING_MAX)
            largest(e->n_out, n, dim, hidden, x);
        else
            sum_rows(pooling, e->n_out, n, dim, hidden, x);
    }
}

/* ---- Modules --------------------------------------------------------------------------------- */

static void normalize(int64_t n, double *x) {
    double square = 0;
    for (int64_t c = 0; c < n; c++) square += x[c] * x[c];
    const double length = fmax(sqrt(square), 1e-12);
    for (int64_t c = 0; c < n; c++) x[c] /= length;
}

/* f(y), in floats; the logistic function is (1 + tanh(y / 2)) / 2. */
static void activate(const qkvi_embedding *e, qkvi_dense_act act, int64_t n, float *y) {
    static const qkvi_act acts[] = {
        [QKVI_DENSE_RELU] = QKVI_RELU, [QKVI_DENSE_GELU] = QKVI_GELU, [QKVI_DENSE_SILU] = QKVI_SILU
    };
    const int is_sigmoid = act == QKVI_DENSE_SIGMOID;
    if (act == QKVI_DENSE_IDENTITY) return;
    if (act != QKVI_DENSE_TANH && !is_sigmoid) {
        qkvi_act_forward(e->ctx, acts[act], 1, n, y, y);
        return;
    }
    for (int64_t c = 0; is_sigmoid && c < n; c++) y[c] *= 0.5f;
    qkvi_tanh_forward(e->ctx, 1, n, y, y);
    for (int64_t c = 0; is_sigmoid && c < n; c++) y[c] = 0.5f + 0.5f * y[c];
}

static double product(int64_t n, const float *row, const double *x) {
    double sum = 0;
    for (int64_t c = 0; c < n; c++) sum += (double)row[c] * x[c];
    return sum;
}

/* x becomes f(W x + b), with what went in added where that is the rule. */
static void dense(const qkvi_embedding *e, const qkvi_step *step) {
    const int64_t n = step->n_in;
    for (int64_t o = 0; o < step->n_out; o++) {
        const double bias = step->bias ? (double)step->bias[o] : 0;
        e->a[o] = (float)(bias + product(n, step->weight + o * n, e->x));
        if (step->adds_input)
            e->b[o] = (float)(step->residual ? product(n, step->residual + o * n, e->x) : e->x[o]);
    }
    activate(e, step->act, step->n_out, e->a);
    for (int64_t o = 0; o < step->n_out; o++)
        e->x[o] = (double)e->a[o] + (step->adds_input ? (double)e->b[o] : 0);
}

static void layer_norm(const qkvi_embedding *e, const qkvi_step *step) {
    const qkvi_layernorm layer = { step->n_in, step->weight, step->bias, QKVI_LAYER_NORM };
    float stats[2];
    for (int64_t c = 0; c < step->n_in; c++) e->a[c] = (float)e->x[c];
    qkvi_layernorm_forward(e->ctx, &layer, 1e-5f, 1, NULL, e->a, e->b, stats);
    for (int64_t c = 0; c < step->n_in; c++) e->x[c] = (double)e->b[c];
}

void qkvi_embed_vector(const qkvi_embedding *e, int64_t n, const float *hidden, float *vector) {
    pool(e, n, hidden);
    for (int i = 0; i < e->n_steps; i++) {
        const qkvi_step *const step = &e->model->recipe.steps[i];
        switch (step->kind) {
        case QKVI_STEP_DENSE: dense(e, step); break;
        case QKVI_STEP_LAYER_NORM: layer_norm(e, step); break;
        case QKVI_STEP_NORMALIZE: normalize(step->n_in, e->x); break;
        }
    }
    if (e->normalizes) normalize(e->kept, e->x);
    for (int64_t c = 0; c < e->kept; c++) vector[c] = (float)e->x[c];
}

/* ---- Vectors that tokens and places begin with ----------------------------------------------- */

qkv_status qkv_model_word_vector(const qkv_model *model, int32_t id, float *vector,
                                 qkv_error *error) {
    if (!model || !vector)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", model ? "vector" : "model");
    if (id < 0 || id >= model->info.vocab_size)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "id = %d is not between 0 and %lld", (int)id,
                              (long long)model->info.vocab_size - 1);
    const qkvi_weights words = qkvi_embed_words(&model->net->stacks[0].embed);
    qkvi_weight_row(&words, id, vector);
    return QKV_OK;
}

qkv_status qkv_sinusoids(int64_t n_positions, int64_t dim, float *table, qkv_error *error) {
    enum { MAX_POSITIONS = 1 << 20, MAX_DIM = 1 << 16 };
    if (!table) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "table is NULL");
    if (n_positions < 1 || n_positions > MAX_POSITIONS || dim < 1 || dim > MAX_DIM)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "n_positions = %lld is not between 1 and %d, or dim = %lld not "
                              "between 1 and %d",
                              (long long)n_positions, MAX_POSITIONS, (long long)dim, MAX_DIM);
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    qkvi_sinusoids(n_positions, dim, table);
    qkvi_fpstate_leave(saved);
    return QKV_OK;
}
