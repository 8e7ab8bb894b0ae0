/* What is seen of heads as a JSON object: numbers of all heads, and weights of one. */
#include <stdlib.h>

#include "common/head_json.h"
#include "sinks/sinks.h"

/* Of heads in a list: queries that count for nothing, and the largest weight. */
static qkv_status add_rows(const struct seen *seen, int64_t index, json_t *object,
                           qkv_error *error) {
    qkv_sharpest found = qkv_sharpest_init();
    const qkv_status status = seen_largest(seen, index, &found, error);
    if (status != QKV_OK) return status;
    if (seen->names[index].layer < 0) json_object_del(object, "layer");
    json_set(object, "n_empty_rows:i n_nan_rows:i largest:o",
             qkv_heads_empty_rows(seen->heads, index), qkv_heads_nan_rows(seen->heads, index),
             found.key < 0 ? json_null()
                           : json_set(NULL, "query:i key:i weight:n", found.query, found.key,
                                      (double)found.weight));
    return QKV_OK;
}

static qkv_status add_heads(const struct seen *seen, json_t *object, qkv_error *error) {
    json_t *const heads = json_array();
    qkv_status status = QKV_OK;
    json_set(object, "heads:o", heads);
    for (int64_t i = 0; i < seen->n_heads && status == QKV_OK; i++) {
        json_t *const head = head_json(seen->names[i].layer, seen->names[i].head, seen->labels[i],
                                       seen_numbers(seen, i));
        json_array_append_new(heads, head);
        if (!seen->in_layers) status = add_rows(seen, i, head, error);
    }
    return status;
}

static qkv_status add_weights(const struct seen *seen, json_t *object, qkv_error *error) {
    struct tiles each;
    float *const weights = head_cells(seen, INT64_MAX, &each, error), *cell = weights;
    if (!weights) return error->status;
    json_t *const rows = json_array();
    for (int64_t i = 0; i < each.rows; i++) {
        json_t *row = json_array();
        for (int64_t j = 0; j < each.cols; j++, cell++)
            json_array_append_new(row, *cell == QKV_CELL_HIDDEN ? json_null()
                                                                : json_number((double)*cell));
        json_array_append_new(rows, row);
    }
    free(weights);
    if (seen->in_layers) json_set(object, "layer:i head:i", seen->choice.layer, seen->choice.head);
    json_set(object, "weights:o", rows);
    return QKV_OK;
}

qkv_status seen_json(const struct seen *seen, json_t **json, qkv_error *error) {
    json_t *const object = json_object();
    if (!object) return text_no_memory(error);
    if (seen->add_json) seen->add_json(seen, false, object);
    qkv_status status = add_heads(seen, object, error);
    if (seen->add_json) seen->add_json(seen, true, object);
    if (status == QKV_OK && seen->has_weights) status = add_weights(seen, object, error);
    if (status == QKV_OK)
        *json = object;
    else
        json_decref(object);
    return status;
}

qkv_status seen_json_write(const struct seen *seen, const char *path, qkv_error *error) {
    json_t *object = NULL;
    const qkv_status status = seen_json(seen, &object, error);
    if (status == QKV_OK && !is_first_rank()) json_decref(object);
    return status == QKV_OK && is_first_rank() ? json_write_file(path, object, error) : status;
}
