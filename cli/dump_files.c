/*
 * The weights of a dump as .npy and .csv: all of them, up to a limit, or with --pool those of tiles. A
 * key that a query does not see has none: NaN, an empty field, or no line, as in look_table.c.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "csv.h"
#include "dump.h"

/* What a file holds of each head: [rows][cols], from the first key and query of each tile. */
struct table {
    struct dump_tiles tiles;
    float *cells; /* [n_shown][rows][cols] */
};

static qkv_status too_large(const struct dump *dump, int64_t limit, qkv_error *error) {
    return text_error(
        error, QKV_ERR_LIMIT,
        "%" PRId64 " head%s of %" PRId64 " x %" PRId64
        " weights are more than the limit of %" PRId64
        ": -o FILE.html has every weight at any length, FILE.png a pooled map, --pool "
        "its cells, FILE.json statistics%s",
        dump->n_shown, dump->n_shown == 1 ? "" : "s", dump->n_queries, dump->n_keys, limit,
        dump->n_shown == 1 ? "" : "; --head names one head");
}

static qkv_status table_make(const struct dump *dump, int64_t limit, struct table *table,
                             qkv_error *error) {
    table->tiles = dump_tiles_of(dump, dump->options->pool.set ? DUMP_MAP : INT64_MAX);
    const int64_t n = table->tiles.rows, m = table->tiles.cols;
    if (dump->n_shown > limit / n / m) return too_large(dump, limit, error);
    table->cells = malloc((size_t)(dump->n_shown * n * m) * sizeof(float));
    if (!table->cells) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    qkv_status status = QKV_OK;
    for (int64_t h = 0; status == QKV_OK && h < dump->n_shown; h++) {
        status = dump_cells(dump, h, &table->tiles, table->cells + h * n * m, error);
        dump_hide(dump, &table->tiles, NAN, table->cells + h * n * m);
    }
    return status;
}

qkv_status dump_npy(struct dump *dump, const char *path, qkv_error *error) {
    struct table table = { .cells = NULL };
    qkv_status status = table_make(dump, WEIGHTS_LIMIT, &table, error);
    const int64_t n = table.tiles.rows, m = table.tiles.cols;
    const bool one = dump->n_shown == 1;
    const qkv_array array = { .type = QKV_ARRAY_F32,
                              .rank = one ? 2 : 3,
                              .shape = { one ? n : dump->n_shown, one ? m : n, m },
                              .n_elems = dump->n_shown * n * m,
                              .data = table.cells };
    if (status == QKV_OK) status = qkv_array_write(path, &array, error);
    free(table.cells);
    return status;
}

/* A line for each query, tokens (of tiles: their numbers) as first line and column. */
static void put_one_head(struct csv *csv, const struct dump *dump, const struct table *table) {
    const int64_t tile = table->tiles.tile, m = table->tiles.cols;
    char room[DUMP_LABEL];
    csv_put(csv, "query");
    for (int64_t j = 0; j < m; j++) {
        const char *label = dump_key_label(dump, j * tile, tile, room);
        csv_put(csv, ",");
        csv_field(csv, label, strlen(label));
    }
    csv_put(csv, "\n");
    for (int64_t i = 0; i < table->tiles.rows; i++) {
        const char *label = dump_query_label(dump, i * tile, tile, room);
        csv_field(csv, label, strlen(label));
        for (int64_t j = 0; j < m; j++) {
            csv_put(csv, ",");
            if (!dump_hides(dump, &table->tiles, i, j))
                csv_put(csv, "%.9g", (double)table->cells[i * m + j]);
        }
        csv_put(csv, "\n");
    }
}

static void put_all_heads(struct csv *csv, const struct dump *dump, const struct table *table) {
    const struct dump_tiles *t = &table->tiles;
    const float *cell = table->cells;
    csv_put(csv, "head,query,key,weight\n");
    for (int64_t h = 0; h < dump->n_shown; h++)
        for (int64_t i = 0; i < t->rows; i++)
            for (int64_t j = 0; j < t->cols; j++, cell++)
                if (!dump_hides(dump, t, i, j))
                    csv_put(csv, "%" PRId64 ",%" PRId64 ",%" PRId64 ",%.9g\n", dump->names[h],
                            i * t->tile, j * t->tile, (double)*cell);
}

qkv_status dump_csv(struct dump *dump, const char *path, qkv_error *error) {
    struct table table = { .cells = NULL };
    struct csv csv;
    qkv_status status = table_make(dump, CSV_LIMIT, &table, error);
    if (status == QKV_OK) {
        csv_open(&csv);
        if (dump->n_shown == 1)
            put_one_head(&csv, dump, &table);
        else
            put_all_heads(&csv, dump, &table);
        status = csv_write(&csv, path, error);
    }
    free(table.cells);
    return status;
}
