/*
 * Vectors of sentences: pooling the last hidden states of runs (model.h has the formulas). Inputs are
 * run some at a time, short ones first, so that a run has few lengths; as no result depends on its
 * neighbours in a run, that changes no bit.
 */
#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/fpstate.h"
#include "core/options.h"
#include "model/model_impl.h"

enum { MAX_INPUTS = 256, MAX_TOKENS = 4096 };

typedef struct embedding {
    qkv_ctx *ctx;
    const qkv_model *model;
    qkv_pooling pooling;
    int normalize;
    double *x; /* [hidden] */
} embedding;

/* ---- Pooling --------------------------------------------------------------------------------- */

/* All but the largest are a sum of rows with weights, divided by their divisor. */
static double weight_of(qkv_pooling pooling, int64_t i, int64_t n) {
    switch (pooling) {
    case QKV_POOLING_CLS: return i == 0;
    case QKV_POOLING_LAST: return i == n - 1;
    case QKV_POOLING_WEIGHTED_MEAN: return (double)(i + 1);
    default: return 1;
    }
}

static double divisor_of(qkv_pooling pooling, double n) {
    switch (pooling) {
    case QKV_POOLING_CLS:
    case QKV_POOLING_LAST: return 1;
    case QKV_POOLING_WEIGHTED_MEAN: return n * (n + 1) / 2;
    case QKV_POOLING_MEAN_SQRT_LEN: return sqrt(n);
    default: return n;
    }
}

static void sum_rows(qkv_pooling pooling, int64_t n, int64_t dim, const float *hidden, double *x) {
    const double divisor = divisor_of(pooling, (double)n);
    for (int64_t c = 0; c < dim; c++) x[c] = 0;
    for (int64_t i = 0; i < n; i++) {
        const double weight = weight_of(pooling, i, n);
        for (int64_t c = 0; weight > 0 && c < dim; c++)
            x[c] += weight * (double)hidden[i * dim + c];
    }
    for (int64_t c = 0; c < dim; c++) x[c] /= divisor;
}

static void largest(int64_t n, int64_t dim, const float *hidden, double *x) {
    for (int64_t c = 0; c < dim; c++) x[c] = (double)hidden[c];
    for (int64_t i = 1; i < n; i++)
        for (int64_t c = 0; c < dim; c++) {
            const double value = (double)hidden[i * dim + c];
            if (!(value <= x[c])) x[c] = value;
        }
}

static void pool(const embedding *e, int64_t n, const float *hidden, float *vector) {
    const int64_t dim = e->model->info.hidden;
    double square = 0, length = 1;
    if (e->pooling == QKV_POOLING_MAX)
        largest(n, dim, hidden, e->x);
    else
        sum_rows(e->pooling, n, dim, hidden, e->x);
    for (int64_t c = 0; c < dim; c++) square += e->x[c] * e->x[c];
    if (e->normalize) length = fmax(sqrt(square), 1e-12);
    for (int64_t c = 0; c < dim; c++) vector[c] = (float)(e->x[c] / length);
}

/* ---- Runs ------------------------------------------------------------------------------------ */

/* An input of n tokens, the at-th of the caller's. */
typedef struct place {
    int64_t n, at;
} place;

static int by_length(const void *a, const void *b) {
    const place *const x = a, *const y = b;
    if (x->n != y->n) return x->n < y->n ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

/* How many of the inputs from `first` on are run together: one at least. */
static int64_t take(const place *places, int64_t first, int64_t n_batch,
                    const qkv_encoding *const *inputs, const qkv_encoding **some) {
    int64_t n = 0, n_tokens = 0;
    while (first + n < n_batch && n < MAX_INPUTS) {
        n_tokens += places[first + n].n;
        if (n > 0 && n_tokens > MAX_TOKENS) break;
        some[n] = inputs[places[first + n].at];
        n++;
    }
    return n;
}

static qkv_status embed_all(const embedding *e, int64_t n_batch, const qkv_encoding *const *inputs,
                            const place *places, float *vectors, qkv_error *error) {
    const qkv_encoding *some[MAX_INPUTS];
    const int64_t dim = e->model->info.hidden;
    for (int64_t first = 0, n; first < n_batch; first += n) {
        qkv_run *run;
        n = take(places, first, n_batch, inputs, some);
        QKV_TRY(qkv_model_run(e->ctx, e->model, n, some, 0, &run, error));
        const qkvi_fpstate saved = qkvi_fpstate_enter();
        for (int64_t b = 0; b < n; b++)
            pool(e, some[b]->n, qkv_run_hidden(run, b, e->model->info.n_layers),
                 vectors + places[first + b].at * dim);
        qkvi_fpstate_leave(saved);
        qkv_run_free(run);
    }
    return QKV_OK;
}

static qkv_status read_options(const qkv_model *model, const qkv_embed_options *given, embedding *e,
                               qkv_error *error) {
    qkv_embed_options options = QKV_EMBED_OPTIONS_INIT;
    if (given)
        QKV_TRY(qkvi_options_read(&options, sizeof options, given, "qkv_embed_options", error));
    if (options.pooling < QKV_POOLING_DEFAULT || options.pooling > QKV_POOLING_LAST)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "pooling = %d is none",
                              (int)options.pooling);
    e->pooling = options.pooling != QKV_POOLING_DEFAULT ? options.pooling : model->info.pooling;
    e->normalize = options.normalize != 0 ? options.normalize > 0 : model->info.normalizes;
    return QKV_OK;
}

static qkv_status check(qkv_ctx *ctx, const qkv_model *model, int64_t n_batch,
                        const qkv_encoding *const *inputs, const float *vectors, qkv_error *error) {
    if (!ctx || !model || !inputs || !vectors)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              !ctx      ? "ctx"
                              : !model  ? "model"
                              : !inputs ? "inputs"
                                        : "vectors");
    if (n_batch < 1 || n_batch > INT32_MAX)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "a batch of %lld inputs is not between 1 and 2^31 - 1",
                              (long long)n_batch);
    for (int64_t b = 0; b < n_batch; b++)
        if (!inputs[b])
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "inputs[%lld] is NULL", (long long)b);
    return QKV_OK;
}

qkv_status qkv_model_embed(qkv_ctx *ctx, const qkv_model *model, int64_t n_batch,
                           const qkv_encoding *const *inputs, const qkv_embed_options *options,
                           float *vectors, qkv_error *error) {
    QKV_TRY(check(ctx, model, n_batch, inputs, vectors, error));
    embedding e = { .ctx = ctx, .model = model };
    QKV_TRY(read_options(model, options, &e, error));
    place *const places = qkvi_malloc_array((size_t)n_batch, sizeof *places);
    e.x = qkvi_malloc_array((size_t)model->info.hidden, sizeof *e.x);
    qkv_status status = QKV_OK;
    if (places && e.x) {
        for (int64_t b = 0; b < n_batch; b++) places[b] = (place){ inputs[b]->n, b };
        qsort(places, (size_t)n_batch, sizeof *places, by_length);
        status = embed_all(&e, n_batch, inputs, places, vectors, error);
    } else {
        status = qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for vectors of sentences");
    }
    free(places);
    free(e.x);
    return status;
}
