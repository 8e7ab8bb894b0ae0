/* The pictures of `qkv look`: one head, or all of them; of arrays pooled where they are long. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/rows.h"
#include "look/look.h"

/* What is drawn: cells of some heads, and which of them are none. */
struct drawn {
    struct look_block block;
    uint8_t *hidden; /* as block.cells; NULL: all are there */
    struct caption title, caption;
};

static qkv_status make(const struct look *look, struct drawn *drawn, qkv_error *error) {
    struct look_block *block = &drawn->block;
    const qkv_status status = look_block_read(look, block->one ? LOOK_MAP : LOOK_THUMBNAIL,
                                              WEIGHTS_LIMIT, NULL, block, error);
    if (status != QKV_OK || look_info(look)->sees_all) return status;
    const int64_t n = (block->one ? 1 : block->n_heads) * block->tiles.rows * block->tiles.cols;
    drawn->hidden = malloc((size_t)n + 1);
    if (!drawn->hidden) return text_no_memory(error);
    for (int64_t c = 0; c < n; c++) drawn->hidden[c] = block->cells[c] == QKV_CELL_HIDDEN;
    return QKV_OK;
}

/* Of tiles: the number of the first. */
static char **tile_labels(const struct look *look, bool is_query, const struct look_tiles *tiles) {
    return rows_labels(is_query && !look->arrays->self ? "q" : "",
                       is_query ? tiles->rows : tiles->cols, tiles->tile);
}

/* What the picture is of: of an encoder-decoder the target, too. */
static void add_said(const struct look *look, struct caption *caption) {
    caption_add_texts(caption, look->said);
    if (look->text.pair.target)
        caption_add(caption, ", target: \u201c%.200s\u201d", look->text.pair.target);
}

static qkv_status draw_one(const struct look *look, struct drawn *drawn, const char *path,
                           qkv_error *error) {
    const struct look_tiles *tiles = &drawn->block.tiles;
    const bool pooled = tiles->tile > 1, mass = look->options->pool.value == QKV_TILE_MASS;
    char **rows = pooled ? tile_labels(look, true, tiles) : NULL,
         **cols = pooled ? tile_labels(look, false, tiles) : NULL;
    look_title(look, &drawn->title);
    look_source(look, true, &drawn->caption);
    look_cell_words(look, tiles->tile, &drawn->caption);
    add_said(look, &drawn->caption);
    const qkv_heatmap map = {
        .struct_size = sizeof map,
        .n_rows = tiles->rows,
        .n_cols = tiles->cols,
        .weights = drawn->block.cells,
        .hidden = drawn->hidden,
        .row_labels = (const char *const *)(pooled ? rows : look->rows),
        .col_labels = (const char *const *)(pooled ? cols : look->cols),
        .row_axis = look->text.pair.next ? "read \u2192 predicts" : NULL,
        .col_axis = !look->arrays && look->text.view.which == QKV_CROSS ? "source" : NULL,
        .title = drawn->title.text,
        .caption = drawn->caption.text,
        .theme = (qkv_theme)look->options->common.theme.value,
        .quantity = pooled && mass ? "mass of a tile" : NULL,
    };
    const qkv_status status = pooled && (!rows || !cols)
                                  ? text_no_memory(error)
                                  : picture_heatmap(&look->options->picture, map, path, error);
    session_labels_free(rows, tiles->rows);
    session_labels_free(cols, tiles->cols);
    return status;
}

static qkv_status draw_all(const struct look *look, struct drawn *drawn, const char *path,
                           qkv_error *error) {
    const qkv_heads_info *info = look_info(look);
    const struct look_block *block = &drawn->block;
    const char **labels = calloc((size_t)block->n_heads + 1, sizeof(*labels));
    if (!labels) return text_no_memory(error);
    for (int64_t h = 0; h < block->n_heads; h++) labels[h] = look_label(look, block->first + h);
    if (look->arrays)
        caption_add(&drawn->title, "%" PRId64 " heads", look->arrays->given.n_heads);
    else
        caption_add(&drawn->title, "%" PRId64 " layer%s of %" PRId64 " heads%s", info->n_layers,
                    info->n_layers == 1 ? "" : "s", info->n_heads,
                    attention_heads(look->text.session, look->text.view.which));
    look_source(look, false, &drawn->caption);
    look_cell_words(look, block->tiles.tile, &drawn->caption);
    add_said(look, &drawn->caption);
    const qkv_head_grid grid = {
        .struct_size = sizeof grid,
        .n_layers = info->n_layers,
        .n_heads = info->n_heads,
        .n = block->tiles.cols,
        .n_queries = block->tiles.rows,
        .weights = block->cells,
        .hidden = drawn->hidden,
        .labels = labels,
        .title = drawn->title.text,
        .caption = drawn->caption.text,
        .theme = (qkv_theme)look->options->common.theme.value,
        .hidden_of_heads = 1,
    };
    const qkv_status status = picture_grid(&look->options->picture, grid, path, error);
    free(labels);
    return status;
}

qkv_status look_picture(const struct look *look, const char *path, qkv_error *error) {
    struct drawn drawn = { .block = look_block_of(look) };
    qkv_status status = make(look, &drawn, error);
    if (status == QKV_OK && look_writes())
        status = (drawn.block.one ? draw_one : draw_all)(look, &drawn, path, error);
    free(drawn.block.cells);
    free(drawn.hidden);
    return status;
}
