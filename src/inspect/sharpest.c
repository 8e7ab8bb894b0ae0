/**
 * Where, among all heads, one token looks most sharply at another.
 *
 * Weights are compared as floats, as qkv_run_weights gives them, and the first of equal ones wins:
 * layers, heads, queries and keys are visited in ascending order.
 */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/status.h"
#include "qkv/inspect.h"

/* NULL marks all. */
static int is_marked(const uint8_t *marks, int64_t i) { return !marks || marks[i]; }

/* A NaN is never larger. */
static void search_head(const float *weights, int64_t n, const uint8_t *from, const uint8_t *to,
                        int64_t layer, int64_t head, qkv_sharpest *best) {
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; is_marked(from, i) && j < n; j++) {
            const float weight = weights[i * n + j];
            if (i == j || !is_marked(to, j) || (best->key >= 0 && !(weight > best->weight)) ||
                !(weight >= 0))
                continue;
            *best = (qkv_sharpest){ layer, head, i, j, weight };
        }
    }
}

static qkv_status search(const qkv_model *model, const qkv_run *run, int64_t b, int64_t n,
                         const uint8_t *heads, const uint8_t *from, const uint8_t *to,
                         float *weights, qkv_sharpest *best, qkv_error *error) {
    const qkv_model_info *const info = qkv_model_get_info(model);
    for (int64_t h = 0; h < info->n_layers * info->n_heads; h++) {
        if (!is_marked(heads, h)) continue;
        const int64_t layer = h / info->n_heads, head = h % info->n_heads;
        QKV_TRY(qkv_run_weights(run, b, layer, head, weights, error));
        search_head(weights, n, from, to, layer, head, best);
    }
    return QKV_OK;
}

qkv_status qkv_inspect_sharpest(const qkv_model *model, const qkv_run *run, int64_t b,
                                const uint8_t *heads, const uint8_t *from, const uint8_t *to,
                                qkv_sharpest *sharpest, qkv_error *error) {
    qkv_capture capture;
    int64_t n_weights;
    if (!model || !run || !sharpest)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              !model ? "model"
                              : !run ? "run"
                                     : "sharpest");
    *sharpest = (qkv_sharpest){ 0, 0, -1, -1, 0 };
    QKV_TRY(qkv_run_capture(run, b, 0, &capture, error));
    float *const weights = qkvi_mul_i64(capture.n, capture.n, &n_weights)
                               ? qkvi_malloc_array((size_t)n_weights, sizeof *weights)
                               : NULL;
    if (!weights)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld x %lld weights",
                              (long long)capture.n, (long long)capture.n);
    const qkv_status status =
        search(model, run, b, capture.n, heads, from, to, weights, sharpest, error);
    free(weights);
    return status;
}
