/* Pictures of one head, or of all; pooled where they are long. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/rows.h"
#include "sinks/sinks.h"

/* What is drawn: cells of heads, and which of them are none. */
struct drawn {
    struct tiles tiles;
    float *cells;
    uint8_t *hidden; /* as cells; NULL: all are there */
    struct caption title, caption;
};

static qkv_status make(const struct seen *seen, struct drawn *drawn, qkv_error *error) {
    const qkv_status status = file_cells(seen, seen->one ? MAP_SIDE : THUMBNAIL_SIDE, WEIGHTS_LIMIT,
                                         NULL, &drawn->tiles, &drawn->cells, error);
    if (status != QKV_OK || seen->info->sees_all) return status;
    const int64_t n = seen->n_file * drawn->tiles.rows * drawn->tiles.cols;
    drawn->hidden = malloc((size_t)n + 1);
    if (!drawn->hidden) return text_no_memory(error);
    for (int64_t c = 0; c < n; c++) drawn->hidden[c] = drawn->cells[c] == QKV_CELL_HIDDEN;
    return QKV_OK;
}

static void make_caption(const struct seen *seen, struct drawn *drawn) {
    struct caption *const caption = &drawn->caption;
    caption_add(caption, "%s", seen->about[seen->one].text);
    seen_cell(seen, drawn->tiles.tile, caption);
    caption_add_texts(caption, seen->said);
    if (seen->target) caption_add(caption, ", target: \u201c%.200s\u201d", seen->target);
}

static qkv_status draw_one(const struct seen *seen, struct drawn *drawn, const char *path,
                           qkv_error *error) {
    const struct tiles *tiles = &drawn->tiles;
    const bool pooled = tiles->tile > 1, mass = seen->sink->pool.value == QKV_TILE_MASS;
    char **rows = pooled ? rows_labels(seen->queries.sign, tiles->rows, tiles->tile) : NULL,
         **cols = pooled ? rows_labels(seen->keys.sign, tiles->cols, tiles->tile) : NULL;
    seen_title(seen, &drawn->title);
    const qkv_heatmap map = {
        .struct_size = sizeof map,
        .n_rows = tiles->rows,
        .n_cols = tiles->cols,
        .weights = drawn->cells,
        .hidden = drawn->hidden,
        .row_labels = (const char *const *)(pooled ? rows : seen->queries.names),
        .col_labels = (const char *const *)(pooled ? cols : seen->keys.names),
        .row_axis = seen->queries.axis,
        .col_axis = seen->keys.axis,
        .title = drawn->title.text,
        .caption = drawn->caption.text,
        .theme = (qkv_theme)seen->common->theme.value,
        .quantity = pooled && mass ? "mass of a tile" : NULL,
    };
    const qkv_status status = pooled && (!rows || !cols)
                                  ? text_no_memory(error)
                                  : picture_heatmap(&seen->sink->picture, map, path, error);
    session_labels_free(rows, tiles->rows);
    session_labels_free(cols, tiles->cols);
    return status;
}

static qkv_status draw_all(const struct seen *seen, struct drawn *drawn, const char *path,
                           qkv_error *error) {
    const qkv_head_grid grid = {
        .struct_size = sizeof grid,
        .n_layers = seen->info->n_layers,
        .n_heads = seen->info->n_heads,
        .n = drawn->tiles.cols,
        .n_queries = drawn->tiles.rows,
        .weights = drawn->cells,
        .hidden = drawn->hidden,
        .labels = seen->labels + seen->first,
        .title = seen->all,
        .caption = drawn->caption.text,
        .theme = (qkv_theme)seen->common->theme.value,
        .hidden_of_heads = 1,
    };
    return picture_grid(&seen->sink->picture, grid, path, error);
}

qkv_status seen_picture(const struct seen *seen, const char *path, qkv_error *error) {
    if (seen->draw) return seen->draw(seen, path, error);
    struct drawn drawn = { .cells = NULL };
    qkv_status status = make(seen, &drawn, error);
    if (status == QKV_OK && is_first_rank()) {
        make_caption(seen, &drawn);
        status = (seen->one ? draw_one : draw_all)(seen, &drawn, path, error);
    }
    free(drawn.cells);
    free(drawn.hidden);
    return status;
}
