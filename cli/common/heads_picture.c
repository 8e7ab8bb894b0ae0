/* A picture of one number for each head: see heads_picture.h. */
#include "common/heads_picture.h"

#include "common/job.h"
#include "common/rows.h"
#include "common/session.h"

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
