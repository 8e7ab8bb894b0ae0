/* Cells of the maps of `qkv look`: weights of a text one by one, of long arrays in tiles. */
#include <inttypes.h>
#include <stdlib.h>

#include "look/look.h"

struct look_tiles look_tiles_of(const struct look *look, int64_t most) {
    const int64_t n = look->n_rows > look->n_cols ? look->n_rows : look->n_cols,
                  tile = look->arrays ? 1 + (n - 1) / most : 1;
    return (struct look_tiles){ tile, (look->n_rows + tile - 1) / tile,
                                (look->n_cols + tile - 1) / tile };
}

qkv_status look_cells(const struct look *look, int64_t index, const struct look_tiles *tiles,
                      float *cells, qkv_error *error) {
    struct progress progress;
    qkv_call_options call =
        progress_call(&progress, "pooled map", look->options->common.quiet || !look_writes());
    if (!look->arrays) call.cancel = NULL;
    if (tiles->tile == 1) call.progress = NULL;
    const qkv_status status =
        qkv_heads_cells(look->text.heads, index, tiles->tile,
                        (qkv_tile_kind)look->options->pool.value, cells, &call, error);
    progress_end(&progress);
    return status == QKV_ERR_CANCELLED ? text_error(error, status, "nothing was written") : status;
}

float *look_chosen_cells(const struct look *look, int64_t most, struct look_tiles *tiles,
                         qkv_error *error) {
    *tiles = look_tiles_of(look, most);
    float *cells = malloc((size_t)(tiles->rows * tiles->cols) * sizeof *cells + 1);
    if (!cells) text_no_memory(error);
    if (cells && look_cells(look, look_chosen(look), tiles, cells, error) == QKV_OK) return cells;
    free(cells);
    return NULL;
}

struct look_block look_block_of(const struct look *look) {
    const bool named = look->given && !look->arrays;
    struct look_block block = { .first = named ? look_chosen(look) : 0,
                                .n_heads = named ? 1 : look_n_heads(look) };
    block.one = look->arrays ? block.n_heads == 1 : look->given;
    return block;
}

static qkv_status too_large(const struct look *look, const struct look_block *block, int64_t limit,
                            const char *advice, qkv_error *error) {
    const bool one = block->n_heads == 1;
    char what[160];
    snprintf(what, sizeof what,
             "%" PRId64 " head%s of %" PRId64 " x %" PRId64
             " weights are more than the limit of %" PRId64,
             block->n_heads, one ? "" : "s", look->n_rows, look->n_cols, limit);
    if (!look->arrays || !advice)
        return text_error(error, QKV_ERR_LIMIT, "%s weights%s%s", what,
                          one ? "" : ": name one head with --head", advice ? advice : "");
    return text_error(error, QKV_ERR_LIMIT,
                      "%s: -o FILE.html has every weight at any length, FILE.png a pooled map, "
                      "--pool its cells, FILE.json statistics%s",
                      what, one ? "" : "; --head names one head");
}

qkv_status look_block_read(const struct look *look, int64_t most, int64_t limit, const char *advice,
                           struct look_block *block, qkv_error *error) {
    block->tiles = look_tiles_of(look, most);
    const int64_t n = block->tiles.rows * block->tiles.cols;
    if (n > 0 && block->n_heads > limit / n) return too_large(look, block, limit, advice, error);
    block->cells = malloc((size_t)(block->n_heads * n) * sizeof(float) + 1);
    qkv_status status = block->cells ? QKV_OK : text_no_memory(error);
    for (int64_t h = 0; status == QKV_OK && h < block->n_heads; h++)
        status = look_cells(look, block->first + h, &block->tiles, block->cells + h * n, error);
    return status;
}

qkv_status arrays_sharpest(const struct look *look, int64_t index, qkv_sharpest *found,
                           qkv_error *error) {
    uint8_t *only = calloc((size_t)look_n_heads(look), 1);
    if (!only) return text_no_memory(error);
    only[index] = 1;
    const qkv_status status = qkv_heads_sharpest(look->text.heads, only, NULL, NULL, found, error);
    free(only);
    return status;
}
