/* Names, captions and cells of heads: see seen.h. */
#include "sinks/seen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

qkv_status seen_heads(struct seen *seen, qkv_heads *heads, qkv_error *error) {
    seen->heads = heads;
    seen->info = qkv_heads_get_info(heads);
    const int64_t across = seen->info->n_heads, n = seen->info->n_layers * across;
    seen->n_heads = n;
    seen->names = calloc((size_t)n + 1, sizeof *seen->names);
    seen->labels = calloc((size_t)n + 1, sizeof *seen->labels);
    if (!seen->names || !seen->labels) return text_no_memory(error);
    for (int64_t i = 0; i < n; i++) {
        seen->names[i] = (struct head_name){ i / across, i % across };
        seen->labels[i] = qkv_heads_label(seen_numbers(seen, i));
    }
    return QKV_OK;
}

void seen_free(struct seen *seen) {
    free(seen->names);
    free(seen->labels);
    free(seen->order);
}

/* ---- Words ----------------------------------------------------------------------------------- */

void seen_title(const struct seen *seen, struct caption *title) {
    const qkv_heads_choice *choice = &seen->choice;
    caption_add(title, "%s", seen->name);
    if (choice->key >= 0)
        caption_add(title, ": %.60s %s %.60s, %.2f", seen->queries.names[choice->query],
                    seen_verb(seen), seen->keys.names[choice->key], (double)choice->weight);
}

void seen_cell(const struct seen *seen, int64_t tile, struct caption *caption) {
    const bool mass = seen->sink->pool.value == QKV_TILE_MASS;
    if (tile > 1)
        caption_add(caption,
                    " Pooled: a cell stands for a tile of %" PRId64 " queries (rows) and %" PRId64
                    " keys (columns), numbered by its first, and is %s",
                    tile, tile,
                    mass ? "the weight on its keys, mean over its queries (mass); rows sum to 1."
                         : "the largest weight in it (peak).");
    else if (seen->quantity)
        caption_add(caption, "%s %s", seen->queries.note, seen->quantity->cell);
    else
        caption_add(caption,
                    "%s A cell is the weight with which the row's token (query) looks at the "
                    "column's token%s (key); rows sum to 1.",
                    seen->queries.note, seen->keys.note);
    if (!seen->info->sees_all)
        caption_add(caption, " Keys that a query does not see have no cell.");
}

/* ---- Cells ----------------------------------------------------------------------------------- */

struct tiles tiles_of(const struct seen *seen, int64_t most) {
    const int64_t n_rows = seen->queries.n, n_cols = seen->keys.n,
                  n = n_rows > n_cols ? n_rows : n_cols,
                  tile = seen->pools ? 1 + (n - 1) / most : 1;
    return (struct tiles){ tile, (n_rows + tile - 1) / tile, (n_cols + tile - 1) / tile };
}

/* Weights become what their cells are. */
static void multiply(const struct seen *seen, int64_t index, float *cells) {
    const float *const factors = seen->quantity->factors + index * seen->keys.n;
    for (int64_t i = 0; i < seen->queries.n; i++, cells += seen->keys.n)
        for (int64_t j = 0; j < seen->keys.n; j++)
            if (cells[j] != QKV_CELL_HIDDEN) cells[j] *= factors[j];
}

qkv_status seen_cells(const struct seen *seen, int64_t index, const struct tiles *tiles,
                      float *cells, qkv_error *error) {
    const struct seen_quantity *const quantity = seen->quantity;
    if (quantity && quantity->map) {
        memcpy(cells, quantity->map, (size_t)(seen->queries.n * seen->keys.n) * sizeof *cells);
        return QKV_OK;
    }
    struct progress progress;
    qkv_call_options call =
        progress_call(&progress, "pooled map", seen->common->quiet || !is_first_rank());
    if (!seen->pools) call.cancel = NULL;
    if (tiles->tile == 1) call.progress = NULL;
    const qkv_status status =
        qkv_heads_cells(seen->heads, index, tiles->tile, (qkv_tile_kind)seen->sink->pool.value,
                        cells, &call, error);
    progress_end(&progress);
    if (status == QKV_OK && quantity) multiply(seen, index, cells);
    return status == QKV_ERR_CANCELLED ? text_error(error, status, "nothing was written") : status;
}

float *head_cells(const struct seen *seen, int64_t most, struct tiles *tiles, qkv_error *error) {
    *tiles = tiles_of(seen, most);
    float *cells = malloc((size_t)(tiles->rows * tiles->cols) * sizeof *cells + 1);
    if (!cells) text_no_memory(error);
    if (cells && seen_cells(seen, seen->head, tiles, cells, error) == QKV_OK) return cells;
    free(cells);
    return NULL;
}

static qkv_status too_large(const struct seen *seen, int64_t limit, const char *advice,
                            qkv_error *error) {
    const bool one = seen->n_file == 1;
    char what[160];
    snprintf(what, sizeof what,
             "%" PRId64 " head%s of %" PRId64 " x %" PRId64
             " weights are more than the limit of %" PRId64,
             seen->n_file, one ? "" : "s", seen->queries.n, seen->keys.n, limit);
    if (!seen->advice || !advice)
        return text_error(error, QKV_ERR_LIMIT, "%s weights%s%s", what,
                          one ? "" : ": name one head with --head", advice ? advice : "");
    return text_error(error, QKV_ERR_LIMIT, "%s: %s%s", what, seen->advice,
                      one ? "" : "; --head names one head");
}

qkv_status file_cells(const struct seen *seen, int64_t most, int64_t limit, const char *advice,
                      struct tiles *tiles, float **cells, qkv_error *error) {
    *tiles = tiles_of(seen, most);
    const int64_t n = tiles->rows * tiles->cols;
    if (n > 0 && seen->n_file > limit / n) return too_large(seen, limit, advice, error);
    *cells = malloc((size_t)(seen->n_file * n) * sizeof **cells + 1);
    qkv_status status = *cells ? QKV_OK : text_no_memory(error);
    for (int64_t h = 0; status == QKV_OK && h < seen->n_file; h++)
        status = seen_cells(seen, seen->first + h, tiles, *cells + h * n, error);
    return status;
}

qkv_status seen_largest(const struct seen *seen, int64_t index, qkv_sharpest *found,
                        qkv_error *error) {
    uint8_t *only = calloc((size_t)seen->n_heads, 1);
    if (!only) return text_no_memory(error);
    only[index] = 1;
    const qkv_status status = qkv_heads_sharpest(seen->heads, only, NULL, NULL, found, error);
    free(only);
    return status;
}
