/*
 * What bench/models.py calls of us: a model opened and run on ids that the peers get too, and the
 * peaks beside it. A shared library of the libraries and of bench/suite.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/models_shim.h"
#include <qkv/inspect.h>
#include <qkv/vision.h>

enum { READ_BYTES = 512 << 20 }; /* more than a cache holds */

static struct shim *refuse(struct shim *shim, char *why, size_t why_bytes) {
    if (why_bytes) {
        strncpy(why, shim ? shim->error.message : "no memory", why_bytes - 1);
        why[why_bytes - 1] = 0;
    }
    model_close(shim);
    return NULL;
}

/* With what its matrices are multiplied. */
static enum peak_kind product_of(const qkv_model *model) {
    switch (qkv_model_get_info(model)->weights) {
    case QKV_WEIGHTS_BF16_AMX: return PEAK_AMX;
    case QKV_WEIGHTS_BF16_DP: return PEAK_DP;
    default: return PEAK_FMA;
    }
}

/* NULL, and why. */
struct shim *model_open(const char *folder, int n_threads, int weights, char *why,
                        size_t why_bytes) {
    qkv_model_open_options how = qkv_model_open_options_init();
    qkv_ctx_options options = qkv_ctx_options_init();
    struct shim *shim = calloc(1, sizeof *shim);
    options.n_threads = n_threads;
    if (shim) shim->n_threads = n_threads;
    how.weights = (qkv_model_weights)weights;
    if (!shim || qkv_ctx_create(&options, &shim->ctx, &shim->error) != QKV_OK ||
        qkv_model_open(folder, &how, &shim->model, &shim->error) != QKV_OK ||
        !peak_open(&shim->product, product_of(shim->model), n_threads, 0))
        return refuse(shim, why, why_bytes);
    return shim;
}

void model_close(struct shim *shim) {
    if (!shim) return;
    peak_close(&shim->product);
    peak_close(&shim->read);
    qkv_run_free(shim->run);
    model_end(shim);
    qkv_model_free(shim->model);
    qkv_ctx_free(shim->ctx);
    free(shim);
}

qkv_model *weights_open(const char *folder, int weights) {
    qkv_model_open_options how = qkv_model_open_options_init();
    qkv_model *model;
    how.weights = (qkv_model_weights)weights;
    return qkv_model_open(folder, &how, &model, NULL) == QKV_OK ? model : NULL;
}

void weights_close(qkv_model *model) { qkv_model_free(model); }

/* ids [n_batch][len] as inputs, and a list of them. */
static void list_inputs(int64_t n_batch, int64_t len, int32_t *ids, qkv_encoding *inputs,
                        const qkv_encoding **list) {
    for (int64_t b = 0; b < n_batch; b++) {
        inputs[b] = (qkv_encoding){ .n = len, .ids = ids + b * len };
        list[b] = &inputs[b];
    }
}

/* target_ids NULL: the model reads no targets. NULL: it worked; otherwise why not. */
const char *model_run_pairs(struct shim *shim, int64_t n_batch, int64_t len, int32_t *ids,
                            int64_t target_len, int32_t *target_ids) {
    qkv_encoding *inputs = calloc((size_t)n_batch, 2 * sizeof *inputs);
    const qkv_encoding **list = calloc((size_t)n_batch, 2 * sizeof *list);
    qkv_run_options options = qkv_run_options_init();
    qkv_status status = QKV_ERR_MEMORY;
    qkv_run_free(shim->run);
    shim->run = NULL;
    if (inputs && list) {
        list_inputs(n_batch, len, ids, inputs, list);
        if (target_ids) {
            list_inputs(n_batch, target_len, target_ids, inputs + n_batch, list + n_batch);
            options.targets = list + n_batch;
        }
        status = qkv_model_run(shim->ctx, shim->model, n_batch, list, 0, &options, &shim->run,
                               &shim->error);
    }
    free(inputs);
    free(list);
    return status == QKV_OK ? NULL : shim->error.message;
}

/* Numbers of every head, as `qkv heads` measures them. */
static qkv_status measure_heads(struct shim *shim, const qkv_encoding *tokens) {
    const qkv_token_list list = { NULL, tokens };
    qkv_heads *heads = NULL;
    qkv_status status =
        qkv_heads_open_run(shim->ctx, shim->run, QKV_SELF, 0, &list, NULL, &heads, &shim->error);
    if (status == QKV_OK)
        status =
            qkv_heads_measure(heads, QKV_HEADS_RECEIVED | QKV_HEADS_SHARPEST, NULL, &shim->error);
    qkv_heads_free(heads);
    return status;
}

/*
 * pixels [n_batch][3][side][side]; measured: also the statistics of all heads on the first image.
 * NULL: it worked; otherwise why not.
 */
const char *model_see(struct shim *shim, int64_t n_batch, int64_t side, const float *pixels,
                      int measured) {
    qkv_encoding **inputs = calloc((size_t)n_batch, sizeof(qkv_encoding *));
    qkv_status status = inputs ? QKV_OK : QKV_ERR_MEMORY;
    qkv_run_free(shim->run);
    shim->run = NULL;
    for (int64_t b = 0; b < n_batch && status == QKV_OK; b++)
        status = qkv_image_encode(shim->model, side, side, pixels + b * 3 * side * side, 0,
                                  &inputs[b], &shim->error);
    if (status == QKV_OK)
        status = qkv_model_run(shim->ctx, shim->model, n_batch, (const qkv_encoding *const *)inputs,
                               measured ? QKV_RUN_CAPTURE : 0, NULL, &shim->run, &shim->error);
    if (status == QKV_OK && measured) status = measure_heads(shim, inputs[0]);
    for (int64_t b = 0; inputs && b < n_batch; b++) qkv_encoding_free(inputs[b]);
    free(inputs);
    return status == QKV_OK ? NULL : shim->error.message;
}

/* ids [n_batch][len]. */
const char *model_run(struct shim *shim, int64_t n_batch, int64_t len, int32_t *ids) {
    return model_run_pairs(shim, n_batch, len, ids, 0, NULL);
}

const float *model_target_hidden(const struct shim *shim, int64_t b) {
    return qkv_run_hidden(shim->run, QKV_DECODER, b,
                          qkv_model_get_info(shim->model)->n_decoder_layers);
}

/* [len][hidden] of the last run. */
const float *model_hidden(const struct shim *shim, int64_t b) {
    return qkv_run_hidden(shim->run, QKV_SELF, b, qkv_model_get_info(shim->model)->n_layers);
}

double model_peak(struct shim *shim, int read, double seconds) {
    if (read && !shim->read.memory &&
        !peak_open(&shim->read, PEAK_READ, shim->n_threads, READ_BYTES))
        return 0;
    return peak_measure(read ? &shim->read : &shim->product, seconds);
}
