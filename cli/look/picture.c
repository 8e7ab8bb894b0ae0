/* The pictures of `qkv look`: one head, or all of them; of arrays pooled where they are long. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "look/arrays.h"
#include <qkv/page.h>
#include <qkv/picture.h>

enum { THUMBNAIL = 128 }; /* cells a side, of arrays */

qkv_theme look_theme(const struct look_options *options) {
    return options->common.theme.set ? (qkv_theme)options->common.theme.value : QKV_THEME_LIGHT;
}

/* What is drawn: cells of some heads, and which of them are none. */
struct drawn {
    struct look_tiles tiles;
    int64_t first, n_heads;
    float *cells;
    uint8_t *hidden; /* of one head: all have the same; NULL: all are there */
    char title[LOOK_TITLE], caption[LOOK_CAPTION];
};

static void drawn_free(struct drawn *drawn) {
    free(drawn->cells);
    free(drawn->hidden);
}

static qkv_status drawn_make(const struct look *look, struct drawn *drawn, qkv_error *error) {
    const int64_t n = drawn->tiles.rows * drawn->tiles.cols;
    if (n > 0 && drawn->n_heads > WEIGHTS_LIMIT / n)
        return text_error(error, QKV_ERR_LIMIT,
                          "%" PRId64 " head%s of %" PRId64 " x %" PRId64
                          " weights are more than the limit of %d weights%s",
                          drawn->n_heads, drawn->n_heads == 1 ? "" : "s", look->n_rows,
                          look->n_cols, WEIGHTS_LIMIT,
                          drawn->n_heads == 1 ? "" : ": name one head with --head");
    drawn->cells = malloc((size_t)(drawn->n_heads * n) * sizeof(float) + 1);
    if (!look_info(look)->sees_all) drawn->hidden = malloc((size_t)n + 1);
    if (!drawn->cells || (!look_info(look)->sees_all && !drawn->hidden))
        return text_error(error, QKV_ERR_MEMORY, "out of memory");
    qkv_status status = QKV_OK;
    for (int64_t h = 0; status == QKV_OK && h < drawn->n_heads; h++)
        status = look_cells(look, drawn->first + h, &drawn->tiles, drawn->cells + h * n, error);
    for (int64_t c = 0; drawn->hidden && c < n; c++)
        drawn->hidden[c] = drawn->cells[c] == QKV_CELL_HIDDEN;
    return status;
}

/* Of tiles: the number of the first. */
static char **tile_labels(const struct look *look, bool is_query, int64_t n, int64_t tile) {
    char **labels = calloc((size_t)n + 1, sizeof(char *)), room[LOOK_LABEL];
    for (int64_t i = 0; labels && i < n; i++)
        if (!(labels[i] = strdup(look_tile_label(look, is_query, i * tile, room)))) break;
    return labels;
}

static qkv_status draw_one(const struct look *look, struct drawn *drawn, const char *path,
                           qkv_error *error) {
    const struct look_tiles *tiles = &drawn->tiles;
    const bool pooled = tiles->tile > 1;
    char **rows = pooled ? tile_labels(look, true, tiles->rows, tiles->tile) : NULL,
         **cols = pooled ? tile_labels(look, false, tiles->cols, tiles->tile) : NULL;
    look_title(look, drawn->title);
    look_source(look, true, drawn->caption);
    look_cell_words(look, tiles->tile, drawn->caption);
    const qkv_heatmap map = {
        .struct_size = sizeof map,
        .n_rows = tiles->rows,
        .n_cols = tiles->cols,
        .weights = drawn->cells,
        .hidden = drawn->hidden,
        .row_labels = (const char *const *)(pooled ? rows : look->rows),
        .col_labels = (const char *const *)(pooled ? cols : look->cols),
        .row_axis = look->pair.next ? "read \u2192 predicts" : NULL,
        .col_axis = !look->arrays && look->view.which == QKV_CROSS ? "source" : NULL,
        .title = drawn->title,
        .caption = drawn->caption,
        .theme = look_theme(look->options),
        .quantity = pooled && look->options->pool.set && look->options->pool.value == QKV_TILE_MASS
                        ? "mass of a tile"
                        : NULL,
    };
    const qkv_status status = pooled && (!rows || !cols)
                                  ? text_error(error, QKV_ERR_MEMORY, "out of memory")
                                  : qkv_view_heatmap_write(&map, path, error);
    session_labels_free(rows, rows ? tiles->rows : 0);
    session_labels_free(cols, cols ? tiles->cols : 0);
    return status;
}

static qkv_status draw_all(const struct look *look, struct drawn *drawn, const char *path,
                           qkv_error *error) {
    const qkv_heads_info *info = look_info(look);
    const char **labels = calloc((size_t)drawn->n_heads + 1, sizeof(*labels));
    if (!labels) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    for (int64_t h = 0; h < drawn->n_heads; h++) labels[h] = look_label(look, drawn->first + h);
    if (look->arrays)
        snprintf(drawn->title, sizeof drawn->title, "%" PRId64 " heads",
                 look->arrays->given.n_heads);
    else
        snprintf(drawn->title, sizeof drawn->title, "%" PRId64 " layer%s of %" PRId64 " heads%s",
                 info->n_layers, info->n_layers == 1 ? "" : "s", info->n_heads,
                 attention_heads(look->session, look->view.which));
    look_source(look, false, drawn->caption);
    look_cell_words(look, drawn->tiles.tile, drawn->caption);
    const qkv_head_grid grid = {
        .struct_size = sizeof grid,
        .n_layers = info->n_layers,
        .n_heads = info->n_heads,
        .n = drawn->tiles.cols,
        .n_queries = drawn->tiles.rows,
        .weights = drawn->cells,
        .hidden = drawn->hidden,
        .labels = labels,
        .title = drawn->title,
        .caption = drawn->caption,
        .theme = look_theme(look->options),
    };
    const qkv_status status = qkv_view_grid_write(&grid, path, error);
    free(labels);
    return status;
}

qkv_status look_picture(const struct look *look, const char *path, qkv_error *error) {
    struct drawn drawn = { .cells = NULL };
    drawn.n_heads = look_files_heads(look, &drawn.first);
    const bool one = look->arrays ? drawn.n_heads == 1 : look->given;
    drawn.tiles = look_tiles_of(look, one ? LOOK_MAP : THUMBNAIL);
    qkv_status status = drawn_make(look, &drawn, error);
    if (status == QKV_OK) status = (one ? draw_one : draw_all)(look, &drawn, path, error);
    drawn_free(&drawn);
    return status;
}
