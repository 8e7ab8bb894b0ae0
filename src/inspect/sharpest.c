/**
 * Where, among all heads, one token looks most sharply at another.
 *
 * Weights are computed anew, some rows of a head at a time, and no more than those that are asked for.
 * They are compared as floats, as qkv_run_weights gives them, and the first of equal ones wins:
 * layers, heads, queries and keys are visited in ascending order.
 */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/status.h"
#include "model/run_impl.h"
#include "qkv/inspect.h"

/* NULL marks all. */
static int is_marked(const uint8_t *marks, int64_t i) { return !marks || marks[i]; }

/* Rows of weights that are looked at together. */
enum { ROWS = 32 };

/* Of row i. A NaN is never larger. */
static void search_row(const float *weights, int64_t n, int64_t i, const uint8_t *to, int64_t layer,
                       int64_t head, qkv_sharpest *best) {
    for (int64_t j = 0; j < n; j++) {
        const float weight = weights[j];
        if (i == j || !is_marked(to, j) || (best->key >= 0 && !(weight > best->weight)) ||
            !(weight >= 0))
            continue;
        *best = (qkv_sharpest){ layer, head, i, j, weight };
    }
}

/* Blocks from one marked row to another, so that one [MASK] costs one row of a head. */
static qkv_status search_head(const qkv_run *run, int64_t b, int64_t n, int64_t layer, int64_t head,
                              const uint8_t *from, const uint8_t *to, float *weights,
                              qkv_sharpest *best, qkv_error *error) {
    for (int64_t first = 0; first < n;) {
        int64_t rows = 0;
        while (first < n && !is_marked(from, first)) first++;
        while (rows < ROWS && first + rows < n && is_marked(from, first + rows)) rows++;
        if (rows == 0) break;
        QKV_TRY(qkvi_run_weight_rows(run, QKV_SELF, b, layer, head, first, rows, weights, error));
        for (int64_t i = 0; i < rows; i++)
            search_row(weights + i * n, n, first + i, to, layer, head, best);
        first += rows;
    }
    return QKV_OK;
}

static qkv_status search(const qkv_model *model, const qkv_run *run, int64_t b, int64_t n,
                         const uint8_t *heads, const uint8_t *from, const uint8_t *to,
                         float *weights, qkv_sharpest *best, qkv_error *error) {
    const qkv_model_info *const info = qkv_model_get_info(model);
    for (int64_t h = 0; h < info->n_layers * info->n_heads; h++)
        if (is_marked(heads, h))
            QKV_TRY(search_head(run, b, n, h / info->n_heads, h % info->n_heads, from, to, weights,
                                best, error));
    return QKV_OK;
}

qkv_status qkv_inspect_sharpest(const qkv_model *model, const qkv_run *run, int64_t b,
                                const uint8_t *heads, const uint8_t *from, const uint8_t *to,
                                qkv_sharpest *sharpest, qkv_error *error) {
    qkv_capture capture;
    if (!model || !run || !sharpest)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              !model ? "model"
                              : !run ? "run"
                                     : "sharpest");
    *sharpest = (qkv_sharpest){ 0, 0, -1, -1, 0 };
    QKV_TRY(qkv_run_capture(run, b, 0, &capture, error));
    float *const weights = qkvi_malloc_array((size_t)capture.n, ROWS * sizeof *weights);
    if (!weights) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for rows of weights");
    const qkv_status status =
        search(model, run, b, capture.n, heads, from, to, weights, sharpest, error);
    free(weights);
    return status;
}
