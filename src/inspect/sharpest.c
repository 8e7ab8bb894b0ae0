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

/* What is looked for, and where. */
struct search {
    const qkv_run *run;
    qkv_attention_of which;
    int64_t b, n_layers, n_heads;
    const uint8_t *heads, *from, *to;
    float *weights; /* [ROWS][n_keys] */
};

/* Of row i. A NaN is never larger, and a key that the query does not see is none of its. */
static void search_row(const struct search *s, const qkv_capture *capture, const float *weights,
                       int64_t layer, int64_t head, int64_t i, qkv_sharpest *best) {
    const int64_t end = capture->causal ? i + 1 : capture->n_keys;
    for (int64_t j = 0; j < end; j++) {
        const float weight = weights[j];
        const int is_itself = s->which != QKV_CROSS && i == j;
        const int is_seen = !capture->seen || capture->seen[j];
        if (is_itself || !is_seen || !is_marked(s->to, j) ||
            (best->key >= 0 && !(weight > best->weight)) || !(weight >= 0))
            continue;
        *best = (qkv_sharpest){ layer, head, i, j, weight };
    }
}

/* Blocks from one marked row to another, so that one [MASK] costs one row of a head. */
static qkv_status search_head(const struct search *s, const qkv_capture *capture, int64_t layer,
                              int64_t head, qkv_sharpest *best, qkv_error *error) {
    const int64_t n = capture->n;
    for (int64_t first = 0; first < n;) {
        int64_t rows = 0;
        while (first < n && !is_marked(s->from, first)) first++;
        while (rows < ROWS && first + rows < n && is_marked(s->from, first + rows)) rows++;
        if (rows == 0) break;
        QKV_TRY(qkvi_run_weight_rows(s->run, s->which, s->b, layer, head, first, rows, s->weights,
                                     error));
        for (int64_t i = 0; i < rows; i++)
            search_row(s, capture, s->weights + i * capture->n_keys, layer, head, first + i, best);
        first += rows;
    }
    return QKV_OK;
}

static qkv_status search_all(const struct search *s, const qkv_capture *capture, qkv_sharpest *best,
                             qkv_error *error) {
    for (int64_t h = 0; h < s->n_layers * s->n_heads; h++)
        if (is_marked(s->heads, h))
            QKV_TRY(search_head(s, capture, h / s->n_heads, h % s->n_heads, best, error));
    return QKV_OK;
}

qkv_status qkv_inspect_sharpest_of(const qkv_model *model, const qkv_run *run,
                                   qkv_attention_of which, int64_t b, const uint8_t *heads,
                                   const uint8_t *from, const uint8_t *to, qkv_sharpest *sharpest,
                                   qkv_error *error) {
    qkv_capture capture;
    if (!model || !run || !sharpest)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              !model ? "model"
                              : !run ? "run"
                                     : "sharpest");
    *sharpest = (qkv_sharpest){ 0, 0, -1, -1, 0 };
    QKV_TRY(qkv_run_capture_of(run, which, b, 0, &capture, error));
    const qkv_model_info *const info = qkv_model_get_info(model);
    float *const weights = qkvi_malloc_array((size_t)capture.n_keys, ROWS * sizeof *weights);
    if (!weights) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for rows of weights");
    const struct search search = { run,
                                   which,
                                   b,
                                   which == QKV_SELF ? info->n_layers : info->n_decoder_layers,
                                   which == QKV_SELF ? info->n_heads : info->n_decoder_heads,
                                   heads,
                                   from,
                                   to,
                                   weights };
    const qkv_status status = search_all(&search, &capture, sharpest, error);
    free(weights);
    return status;
}

qkv_status qkv_inspect_sharpest(const qkv_model *model, const qkv_run *run, int64_t b,
                                const uint8_t *heads, const uint8_t *from, const uint8_t *to,
                                qkv_sharpest *sharpest, qkv_error *error) {
    return qkv_inspect_sharpest_of(model, run, QKV_SELF, b, heads, from, to, sharpest, error);
}
