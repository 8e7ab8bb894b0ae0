/* Numbers of heads, as they are written: see head_numbers.h. */
#include "common/head_numbers.h"

#include <math.h>

#include "common/job.h"
#include "common/rows.h"
#include "common/session.h"
#include <qkv/heads.h>

json_t *head_json(int64_t layer, int64_t head, const char *label, const double *numbers) {
    const qkv_head_number *number;
    json_t *object = json_set(NULL, "layer:i head:i label:t", layer, head, label);
    for (int i = 0; (number = qkv_head_number_at(i)); i++) {
        const double value = numbers[i];
        if (!number->title || number->needs & QKV_NEEDS_PROBES) continue;
        json_object_set_new(object, number->name,
                            number->kind == QKV_NUMBER_PLACE && !isnan(value)
                                ? json_integer((json_int_t)value)
                                : json_number(value));
    }
    return object;
}

qkv_status heads_picture(const struct picture_options *picture, qkv_heatmap map, int64_t n_layers,
                         int64_t n_heads, const float *cells, const char *path, qkv_error *error) {
    char **const layers = rows_labels("layer ", n_layers, 1),
                 **const heads = rows_labels("head ", n_heads, 1);
    map.n_rows = n_layers;
    map.n_cols = n_heads;
    map.weights = cells;
    map.row_labels = (const char *const *)layers;
    map.col_labels = (const char *const *)heads;
    map.row_axis = "layer";
    map.col_axis = "head";
    const qkv_status status = cells && layers && heads ? picture_heatmap(picture, map, path, error)
                                                       : text_no_memory(error);
    session_labels_free(layers, n_layers);
    session_labels_free(heads, n_heads);
    return status;
}
