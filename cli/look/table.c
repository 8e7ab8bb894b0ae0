/*
 * The weights of `qkv look` as tables: .npy and .csv, in which a weight has the 9 significant digits
 * that give its float back. A key that a query does not see has none: NaN, an empty field, or no line.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/csv.h"
#include "look/arrays.h"
#include "qkv/files.h"

/* What a file holds of each head. */
struct table {
    struct look_tiles tiles;
    int64_t first, n_heads;
    float *cells; /* [n_heads][rows][cols] */
};

static qkv_status too_large(const struct look *look, const struct table *table, int64_t limit,
                            const char *advice, qkv_error *error) {
    char what[160];
    snprintf(what, sizeof what,
             "%" PRId64 " head%s of %" PRId64 " x %" PRId64
             " weights are more than the limit of %" PRId64,
             table->n_heads, table->n_heads == 1 ? "" : "s", look->n_rows, look->n_cols, limit);
    if (!look->arrays)
        return text_error(error, QKV_ERR_LIMIT, "%s weights%s%s", what,
                          table->n_heads == 1 ? "" : ": name one head with --head", advice);
    return text_error(error, QKV_ERR_LIMIT,
                      "%s: -o FILE.html has every weight at any length, FILE.png a pooled map, "
                      "--pool its cells, FILE.json statistics%s",
                      what, table->n_heads == 1 ? "" : "; --head names one head");
}

static qkv_status table_make(const struct look *look, int64_t limit, const char *advice,
                             struct table *table, qkv_error *error) {
    table->tiles = look_tiles_of(look, look->options->pool.set ? LOOK_MAP : INT64_MAX);
    table->n_heads = look_files_heads(look, &table->first);
    const int64_t n = table->tiles.rows, m = table->tiles.cols;
    if (n > 0 && m > 0 && table->n_heads > limit / n / m)
        return too_large(look, table, limit, advice, error);
    table->cells = malloc((size_t)(table->n_heads * n * m) * sizeof(float) + 1);
    if (!table->cells) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    qkv_status status = QKV_OK;
    for (int64_t h = 0; status == QKV_OK && h < table->n_heads; h++)
        status = look_cells(look, table->first + h, &table->tiles, table->cells + h * n * m, error);
    return status;
}

qkv_status look_npy(const struct look *look, const char *path, qkv_error *error) {
    struct table table = { .cells = NULL };
    qkv_status status = table_make(look, WEIGHTS_LIMIT, "", &table, error);
    const int64_t n = table.tiles.rows, m = table.tiles.cols, n_all = table.n_heads * n * m;
    const bool one = look->arrays ? table.n_heads == 1 : look->given;
    for (int64_t c = 0; status == QKV_OK && c < n_all; c++)
        if (table.cells[c] == QKV_CELL_HIDDEN) table.cells[c] = NAN;
    qkv_array array = { .type = QKV_ARRAY_F32,
                        .rank = one            ? 2
                                : look->arrays ? 3
                                               : 4,
                        .n_elems = n_all,
                        .data = table.cells };
    const int64_t shape[] = { look_info(look)->n_layers, look_info(look)->n_heads, n, m };
    memcpy(array.shape, shape + 4 - array.rank, (size_t)array.rank * sizeof *shape);
    if (status == QKV_OK) status = qkv_array_write(path, &array, error);
    free(table.cells);
    return status;
}

/* ---- CSV ------------------------------------------------------------------------------------- */

/* A token as JSON has it; what is no token of a text by name; a tile by the number of its first. */
static void put_token(struct csv *csv, const struct look *look, const struct table *table,
                      const qkv_token_list *list, char *const *names, int64_t i) {
    char number[LOOK_LABEL];
    const char *name = names[i];
    if (table->tiles.tile > 1)
        name = look_tile_label(look, names == look->rows, i * table->tiles.tile, number);
    if (look->windows || look->arrays || names == look->pair.names)
        csv_field(csv, name, strlen(name));
    else
        csv_token(csv, list->tokenizer, list->tokens->ids[i]);
}

static void put_one_head(struct csv *csv, const struct look *look, const struct table *table) {
    const int64_t m = table->tiles.cols;
    csv_put(csv, "query");
    for (int64_t j = 0; j < m; j++) {
        csv_put(csv, ",");
        put_token(csv, look, table, &look->view.keys, look->cols, j);
    }
    csv_put(csv, "\n");
    for (int64_t i = 0; i < table->tiles.rows; i++) {
        put_token(csv, look, table, &look->view.queries, look->rows, i);
        for (int64_t j = 0; j < m; j++) {
            const float cell = table->cells[i * m + j];
            csv_put(csv, ",");
            if (cell != QKV_CELL_HIDDEN) csv_put(csv, "%.9g", (double)cell);
        }
        csv_put(csv, "\n");
    }
}

static void put_all_heads(struct csv *csv, const struct look *look, const struct table *table) {
    const struct look_tiles *t = &table->tiles;
    const float *cell = table->cells;
    csv_put(csv, "%shead,query,key,weight\n", look->arrays ? "" : "layer,");
    for (int64_t h = 0; h < table->n_heads; h++) {
        int64_t layer, head;
        look_place(look, table->first + h, &layer, &head);
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
    struct table table = { .cells = NULL };
    struct csv csv;
    qkv_status status = table_make(look, CSV_LIMIT, "; .npy holds more", &table, error);
    if (status == QKV_OK) {
        csv_open(&csv);
        if (look->arrays ? table.n_heads == 1 : look->given)
            put_one_head(&csv, look, &table);
        else
            put_all_heads(&csv, look, &table);
        status = csv_write(&csv, path, error);
    }
    free(table.cells);
    return status;
}
