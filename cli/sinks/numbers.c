/*
 * Heads as numbers: a JSON object with the numbers of all heads and the weights of the shown one;
 * weights as .npy and .csv. In text a weight has 9 significant digits, which give its float back.
 * Where a query does not see a key there is null, NaN, an empty field, or no line.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/head_numbers.h"
#include "common/tokens.h"
#include "sinks/sinks.h"
#include <qkv/files.h>

/* ---- JSON ------------------------------------------------------------------------------------ */

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
    if (seen->in_layers && !(seen->quantity && seen->quantity->map))
        json_set(object, "layer:i head:i", seen->choice.layer, seen->choice.head);
    if (seen->quantity)
        json_object_set_new(object, seen->quantity->name, rows);
    else
        json_set(object, "weights:o", rows);
    return QKV_OK;
}

qkv_status seen_json(const struct seen *seen, json_t **json, qkv_error *error) {
    json_t *const object = json_object();
    if (!object) return text_no_memory(error);
    seen->add_json(seen, false, object);
    qkv_status status = seen->own_object ? QKV_OK : add_heads(seen, object, error);
    seen->add_json(seen, true, object);
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

/* ---- .npy ------------------------------------------------------------------------------------ */

static qkv_status read_cells(const struct seen *seen, int64_t limit, const char *advice,
                             struct tiles *tiles, float **cells, qkv_error *error) {
    const int64_t most = seen->sink->pool.set ? MAP_SIDE : INT64_MAX;
    return file_cells(seen, most, limit, advice, tiles, cells, error);
}

qkv_status seen_npy(const struct seen *seen, const char *path, qkv_error *error) {
    struct tiles tiles;
    float *cells = NULL;
    qkv_status status = read_cells(seen, WEIGHTS_LIMIT, "", &tiles, &cells, error);
    const int64_t n = tiles.rows, m = tiles.cols, n_all = seen->n_file * n * m;
    for (int64_t c = 0; status == QKV_OK && c < n_all; c++)
        if (cells[c] == QKV_CELL_HIDDEN) cells[c] = NAN;
    qkv_array array = { .type = QKV_ARRAY_F32,
                        .rank = seen->one         ? 2
                                : seen->in_layers ? 4
                                                  : 3,
                        .n_elems = n_all,
                        .data = cells };
    const int64_t shape[] = { seen->info->n_layers, seen->info->n_heads, n, m };
    memcpy(array.shape, shape + 4 - array.rank, (size_t)array.rank * sizeof *shape);
    if (status == QKV_OK && is_first_rank()) status = qkv_array_write(path, &array, error);
    free(cells);
    return status;
}

/* ---- CSV ------------------------------------------------------------------------------------- */

/* A token as JSON has it; what is no token of a text by name; a tile by the number of its first. */
static void put_token(struct csv *csv, const struct seen_side *side, int64_t tile, int64_t i) {
    if (tile > 1)
        csv_put(csv, "%s%" PRId64, side->sign, i * tile);
    else if (side->tokens)
        csv_token(csv, side->tokens->tokenizer, side->tokens->tokens->ids[i]);
    else
        csv_field(csv, side->names[i], strlen(side->names[i]));
}

static void put_one_head(struct csv *csv, const struct seen *seen, const struct tiles *tiles,
                         const float *cell) {
    csv_put(csv, "query");
    for (int64_t j = 0; j < tiles->cols; j++) {
        csv_put(csv, ",");
        put_token(csv, &seen->keys, tiles->tile, j);
    }
    csv_put(csv, "\n");
    for (int64_t i = 0; i < tiles->rows; i++) {
        put_token(csv, &seen->queries, tiles->tile, i);
        for (int64_t j = 0; j < tiles->cols; j++, cell++) {
            csv_put(csv, ",");
            if (*cell != QKV_CELL_HIDDEN) csv_put(csv, "%.9g", (double)*cell);
        }
        csv_put(csv, "\n");
    }
}

static void put_all_heads(struct csv *csv, const struct seen *seen, const struct tiles *tiles,
                          const float *cell) {
    csv_put(csv, "%shead,query,key,%s\n", seen->in_layers ? "layer," : "",
            seen->quantity ? seen->quantity->one : "weight");
    for (int64_t h = 0; h < seen->n_file; h++) {
        const struct head_name *const name = &seen->names[seen->first + h];
        for (int64_t i = 0; i < tiles->rows; i++)
            for (int64_t j = 0; j < tiles->cols; j++, cell++) {
                if (*cell == QKV_CELL_HIDDEN) continue;
                if (seen->in_layers) csv_put(csv, "%" PRId64 ",", name->layer);
                csv_put(csv, "%" PRId64 ",%" PRId64 ",%" PRId64 ",%.9g\n", name->head,
                        i * tiles->tile, j * tiles->tile, (double)*cell);
            }
    }
}

qkv_status seen_csv(const struct seen *seen, const char *path, qkv_error *error) {
    struct tiles tiles;
    float *cells = NULL;
    struct csv csv;
    qkv_status status = read_cells(seen, CSV_LIMIT, "; .npy holds more", &tiles, &cells, error);
    if (status == QKV_OK && is_first_rank()) {
        csv_open(&csv);
        (seen->one ? put_one_head : put_all_heads)(&csv, seen, &tiles, cells);
        status = csv_write(&csv, path, error);
    }
    free(cells);
    return status;
}
