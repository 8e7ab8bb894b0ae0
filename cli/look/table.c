/*
 * The weights of `qkv look` as tables: .npy and .csv, in which a weight has the 9 significant
 * digits that give its float back. A key that a query does not see has none: NaN, an empty field,
 * or no line.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/csv.h"
#include "look/look.h"

static qkv_status read_block(const struct look *look, int64_t limit, const char *advice,
                             struct look_block *block, qkv_error *error) {
    const int64_t most = look->options->pool.set ? LOOK_MAP : INT64_MAX;
    return look_block_read(look, most, limit, advice, block, error);
}

qkv_status look_npy(const struct look *look, const char *path, qkv_error *error) {
    struct look_block block = look_block_of(look);
    qkv_status status = read_block(look, WEIGHTS_LIMIT, "", &block, error);
    const int64_t n = block.tiles.rows, m = block.tiles.cols, n_all = block.n_heads * n * m;
    for (int64_t c = 0; status == QKV_OK && c < n_all; c++)
        if (block.cells[c] == QKV_CELL_HIDDEN) block.cells[c] = NAN;
    qkv_array array = { .type = QKV_ARRAY_F32,
                        .rank = block.one      ? 2
                                : look->arrays ? 3
                                               : 4,
                        .n_elems = n_all,
                        .data = block.cells };
    const int64_t shape[] = { look_info(look)->n_layers, look_info(look)->n_heads, n, m };
    memcpy(array.shape, shape + 4 - array.rank, (size_t)array.rank * sizeof *shape);
    if (status == QKV_OK && look_writes()) status = qkv_array_write(path, &array, error);
    free(block.cells);
    return status;
}

/* ---- CSV ------------------------------------------------------------------------------------- */

/* A token as JSON has it; what is no token of a text by name; a tile by the number of its first. */
static void put_token(struct csv *csv, const struct look *look, const struct look_block *block,
                      const qkv_token_list *list, char *const *names, int64_t i) {
    const int64_t tile = block->tiles.tile;
    if (tile > 1)
        csv_put(csv, "%s%" PRId64, names == look->rows && !look->arrays->self ? "q" : "", i * tile);
    else if (look->windows || look->arrays || names == look->text.pair.names)
        csv_field(csv, names[i], strlen(names[i]));
    else
        csv_token(csv, list->tokenizer, list->tokens->ids[i]);
}

static void put_one_head(struct csv *csv, const struct look *look, const struct look_block *block) {
    const struct attention_view *view = &look->text.view;
    const float *cell = block->cells;
    csv_put(csv, "query");
    for (int64_t j = 0; j < block->tiles.cols; j++) {
        csv_put(csv, ",");
        put_token(csv, look, block, &view->keys, look->cols, j);
    }
    csv_put(csv, "\n");
    for (int64_t i = 0; i < block->tiles.rows; i++) {
        put_token(csv, look, block, &view->queries, look->rows, i);
        for (int64_t j = 0; j < block->tiles.cols; j++, cell++) {
            csv_put(csv, ",");
            if (*cell != QKV_CELL_HIDDEN) csv_put(csv, "%.9g", (double)*cell);
        }
        csv_put(csv, "\n");
    }
}

static void put_all_heads(struct csv *csv, const struct look *look,
                          const struct look_block *block) {
    const struct look_tiles *t = &block->tiles;
    const float *cell = block->cells;
    csv_put(csv, "%shead,query,key,weight\n", look->arrays ? "" : "layer,");
    for (int64_t h = 0; h < block->n_heads; h++) {
        int64_t layer, head;
        look_place(look, block->first + h, &layer, &head);
        for (int64_t i = 0; i < t->rows; i++)
            for (int64_t j = 0; j < t->cols; j++, cell++) {
                if (*cell == QKV_CELL_HIDDEN) continue;
                if (!look->arrays) csv_put(csv, "%" PRId64 ",", layer);
                csv_put(csv, "%" PRId64 ",%" PRId64 ",%" PRId64 ",%.9g\n", head, i * t->tile,
                        j * t->tile, (double)*cell);
            }
    }
}

qkv_status look_csv(const struct look *look, const char *path, qkv_error *error) {
    struct look_block block = look_block_of(look);
    struct csv csv;
    qkv_status status = read_block(look, CSV_LIMIT, "; .npy holds more", &block, error);
    if (status == QKV_OK && look_writes()) {
        csv_open(&csv);
        (block.one ? put_one_head : put_all_heads)(&csv, look, &block);
        status = csv_write(&csv, path, error);
    }
    free(block.cells);
    return status;
}
