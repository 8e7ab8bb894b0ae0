/*
 * Pictures: the heat map of one head or of all, pooled where a side is long; charts of one head,
 * position by position (qkv_heads_position).
 */
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
    const bool pool = tiles->tile > 1, mass = seen->sink->pool.value == QKV_TILE_MASS;
    char **rows = pool ? rows_labels(seen->queries.sign, tiles->rows, tiles->tile) : NULL,
         **cols = pool ? rows_labels(seen->keys.sign, tiles->cols, tiles->tile) : NULL;
    seen_title(seen, &drawn->title);
    const qkv_heatmap map = {
        .struct_size = sizeof map,
        .n_rows = tiles->rows,
        .n_cols = tiles->cols,
        .weights = drawn->cells,
        .hidden = drawn->hidden,
        .row_labels = (const char *const *)(pool ? rows : seen->queries.names),
        .col_labels = (const char *const *)(pool ? cols : seen->keys.names),
        .row_axis = seen->queries.axis,
        .col_axis = seen->keys.axis,
        .title = drawn->title.text,
        .caption = drawn->caption.text,
        .theme = (qkv_theme)seen->common->theme.value,
        .quantity = pool && mass     ? "mass of a tile"
                    : seen->quantity ? seen->quantity->title
                                     : NULL,
    };
    const qkv_status status = pool && (!rows || !cols)
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
        .quantity = seen->quantity ? seen->quantity->title : NULL,
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

/* ---- Charts ---------------------------------------------------------------------------------- */

static const struct plot {
    const char *title;
    qkv_status (*write)(const qkv_head_profile *profile, const char *path, qkv_error *error);
} plots[] = {
    [PLOT_QUERIES] = { "entropy and largest weight of each query", qkv_picture_queries_write },
    [PLOT_RECEIVED] = { "attention that each key receives", qkv_picture_received_write },
    [PLOT_OFFSETS] = { "mean weight by distance", qkv_picture_offsets_write },
};

/* Where the numbers are from, and queries that take no part. */
static void describe_chart(const struct seen *seen, enum plot_kind plot, struct caption *caption) {
    const int64_t n_empty = qkv_heads_empty_rows(seen->heads, seen->head),
                  n_nan = qkv_heads_nan_rows(seen->heads, seen->head);
    const char *fate = plot == PLOT_QUERIES ? "Gaps" : "Left out";
    caption_add(caption, "%s", seen->about[1].text);
    if (seen->is_mean && plot == PLOT_QUERIES)
        caption_add(caption, " Entropies are those of the means.");
    if (n_empty > 0)
        caption_add(caption, " %s: queries that see no key (%" PRId64 ").", fate, n_empty);
    if (n_nan > 0)
        caption_add(caption, " %s: queries whose weights are no numbers (%" PRId64 ").", fate,
                    n_nan);
    if (!seen->is_mean) caption_add_texts(caption, seen->said);
}

static const char *const *names_of(const struct seen_side *side) {
    return side->numbered ? NULL : (const char *const *)side->names;
}

static qkv_status draw_chart(const struct seen *seen, double *numbers, const char *path,
                             qkv_error *error) {
    const enum plot_kind plot = (enum plot_kind)seen->sink->plot.value;
    struct caption title = { "" }, caption = { "" };
    qkv_heads_profile made = qkv_heads_profile_init();
    if (plot == PLOT_QUERIES) made.entropy = numbers;
    if (plot == PLOT_QUERIES) made.largest = numbers + seen->queries.n;
    if (plot == PLOT_RECEIVED) made.received = numbers;
    if (plot == PLOT_OFFSETS) made.by_offset = numbers;
    qkv_call_options call = qkv_call_options_init();
    call.cancel = &cli_cancelled;
    qkv_status status = qkv_heads_position(seen->heads, seen->head, &made, &call, error);
    caption_add(&title, "%s: %s", seen->name, plots[plot].title);
    describe_chart(seen, plot, &caption);
    const qkv_head_profile profile = { .struct_size = sizeof profile,
                                       .n_queries = seen->queries.n,
                                       .n_keys = seen->keys.n,
                                       .entropy = made.entropy,
                                       .largest = made.largest,
                                       .received = made.received,
                                       .by_offset = made.by_offset,
                                       .queries = names_of(&seen->queries),
                                       .keys = names_of(&seen->keys),
                                       .title = picture_title(&seen->sink->picture, title.text),
                                       .caption = caption.text,
                                       .theme = (qkv_theme)seen->common->theme.value,
                                       .causal = seen->info->causal };
    if (status == QKV_OK && is_first_rank()) status = plots[plot].write(&profile, path, error);
    return status;
}

qkv_status seen_chart(const struct seen *seen, const char *path, qkv_error *error) {
    double *numbers = malloc((size_t)(2 * (seen->queries.n + seen->keys.n)) * sizeof *numbers + 1);
    const qkv_status status =
        numbers ? draw_chart(seen, numbers, path, error) : text_no_memory(error);
    free(numbers);
    return status;
}
