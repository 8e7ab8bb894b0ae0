/*
 * Pictures of a dump: one head, cell by cell up to DUMP_MAP tokens, pooled above; or all heads, pooled to
 * thumbnails.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dump.h"

enum { THUMBNAIL = 128 }; /* cells a side */

/* Arrays and, in one more sentence, what a cell is. */
static void make_caption(const struct dump *dump, const struct dump_tiles *tiles, char *caption) {
    const int64_t tile = tiles->tile;
    dump_describe(dump, caption);
    if (tile == 1) {
        text_append(
            caption, DUMP_CAPTION,
            " A cell is the weight with which the row's token (query) looks at the column's "
            "token (key); rows sum to 1.");
    } else {
        text_append(caption, DUMP_CAPTION,
                    " Pooled: a cell stands for a tile of %" PRId64 " queries (rows) and %" PRId64
                    " keys (columns), numbered by its first, and is ",
                    tile, tile);
        text_append(caption, DUMP_CAPTION,
                    dump_pooling_of(dump) == POOL_PEAK
                        ? "the largest weight in it (peak)."
                        : "the weight on its keys, mean over its queries (mass); rows sum to 1.");
    }
    if (dump_masks(dump)) text_append(caption, DUMP_CAPTION, DUMP_NO_CELL);
}

/* [rows][cols] 1 for cells that are none; NULL with status QKV_OK: all are. */
static qkv_status make_hidden(const struct dump *dump, const struct dump_tiles *tiles,
                              uint8_t **hidden, qkv_error *error) {
    const int64_t n = tiles->rows * tiles->cols;
    *hidden = NULL;
    if (!dump_masks(dump)) return QKV_OK;
    *hidden = malloc((size_t)n);
    if (!*hidden) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    for (int64_t i = 0; i < n; i++)
        (*hidden)[i] = dump_hides(dump, tiles, i / tiles->cols, i % tiles->cols);
    return QKV_OK;
}

static char **make_labels(const struct dump *dump, int64_t n, int64_t tile, dump_label *label_of) {
    char **labels = calloc((size_t)n + 1, sizeof(char *)), room[DUMP_LABEL];
    for (int64_t i = 0; labels && i < n; i++)
        if (!(labels[i] = strdup(label_of(dump, i * tile, tile, room)))) break;
    return labels;
}

static qkv_status one_head(const struct dump *dump, const char *path, qkv_error *error) {
    const struct dump_tiles tiles = dump_tiles_of(dump, DUMP_MAP);
    char title[DUMP_TITLE], caption[DUMP_CAPTION];
    float *cells = malloc((size_t)(tiles.rows * tiles.cols) * sizeof *cells);
    uint8_t *hidden = NULL;
    char **rows = make_labels(dump, tiles.rows, tiles.tile, dump_query_label),
         **cols = make_labels(dump, tiles.cols, tiles.tile, dump_key_label);
    qkv_status status = cells && rows && cols ? dump_cells(dump, dump->chosen, &tiles, cells, error)
                                              : text_error(error, QKV_ERR_MEMORY, "out of memory");
    if (status == QKV_OK) status = make_hidden(dump, &tiles, &hidden, error);
    dump_title(dump, dump->chosen, title);
    make_caption(dump, &tiles, caption);
    const qkv_heatmap map = {
        .struct_size = sizeof map,
        .n_rows = tiles.rows,
        .n_cols = tiles.cols,
        .weights = cells,
        .hidden = hidden,
        .row_labels = (const char *const *)rows,
        .col_labels = (const char *const *)cols,
        .title = title,
        .caption = caption,
        .theme = look_theme(dump->options),
        .quantity = tiles.tile > 1 && dump_pooling_of(dump) == POOL_MASS ? "mass of a tile" : NULL,
    };
    if (status == QKV_OK) status = qkv_view_heatmap_write(&map, path, error);
    session_labels_free(rows, tiles.rows);
    session_labels_free(cols, tiles.cols);
    free(hidden);
    free(cells);
    return status;
}

static qkv_status all_heads(const struct dump *dump, const char *path, qkv_error *error) {
    const struct dump_tiles tiles = dump_tiles_of(dump, THUMBNAIL);
    const int64_t n_cells = tiles.rows * tiles.cols;
    char title[DUMP_TITLE], caption[DUMP_CAPTION];
    float *cells = calloc((size_t)(dump->n_shown * n_cells), sizeof *cells);
    const char **labels = calloc((size_t)dump->n_shown, sizeof *labels);
    uint8_t *hidden = NULL;
    qkv_status status =
        cells && labels ? QKV_OK : text_error(error, QKV_ERR_MEMORY, "out of memory");
    for (int64_t h = 0; status == QKV_OK && h < dump->n_shown; h++) {
        labels[h] = dump->heads[h].stats.label;
        status = dump_cells(dump, h, &tiles, cells + h * n_cells, error);
    }
    if (status == QKV_OK) status = make_hidden(dump, &tiles, &hidden, error);
    snprintf(title, sizeof title, "%" PRId64 " heads", dump->n_heads);
    make_caption(dump, &tiles, caption);
    const qkv_head_grid grid = {
        .struct_size = sizeof grid,
        .n_layers = 1,
        .n_heads = dump->n_shown,
        .n = tiles.cols,
        .n_queries = tiles.rows,
        .weights = cells,
        .hidden = hidden,
        .labels = labels,
        .title = title,
        .caption = caption,
        .theme = look_theme(dump->options),
    };
    if (status == QKV_OK) status = qkv_view_grid_write(&grid, path, error);
    free(cells);
    free(hidden);
    free(labels);
    return status;
}

qkv_status dump_picture(struct dump *dump, const char *path, qkv_error *error) {
    return (dump->n_shown == 1 ? one_head : all_heads)(dump, path, error);
}
