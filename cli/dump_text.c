/* A dump on a terminal: a line for each head, and the map of one. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "dump.h"

static void print_heads(const struct dump *dump, struct term *term) {
    fprintf(term->out, "head  entropy  effective  largest  distance   prev   self   next  label\n");
    for (int64_t h = 0; h < dump->n_shown; h++) {
        const struct dump_head *head = &dump->heads[h];
        const qkv_head_stats *s = &head->stats;
        fprintf(term->out, "%4" PRId64 "  %7.2f  %9.1f  %7.3f  %8.1f  %5.3f  %5.3f  %5.3f  %s\n",
                s->head, s->entropy, head->effective_keys, s->confidence, s->mean_distance,
                s->mass_previous, s->mass_self, s->mass_next, s->label);
    }
    term_newline(term);
}

/* The names of all queries, in one block to be freed by free(). */
static char **query_labels(const struct dump *dump) {
    const size_t n = (size_t)dump->n_queries;
    char **labels = malloc(n * (sizeof *labels + DUMP_LABEL));
    char *room = (char *)(labels + n);
    for (size_t i = 0; labels && i < n; i++, room += DUMP_LABEL)
        labels[i] = (char *)(uintptr_t)dump_query_label(dump, (int64_t)i, 1, room);
    return labels;
}

static qkv_status draw_exact(const struct dump *dump, struct term *term, qkv_error *error) {
    const struct dump_head *head = &dump->heads[dump->chosen];
    float *cells = malloc((size_t)(dump->n_queries * dump->n_keys) * sizeof *cells);
    char **labels = query_labels(dump);
    const struct map_view view = { dump->n_queries, dump->n_keys, cells,     labels,
                                   dump->labels,    head->query,  head->key, 1 };
    qkv_status status = cells && labels ? dump_weights(dump, dump->chosen, cells, error)
                                        : text_error(error, QKV_ERR_MEMORY, "out of memory");
    const struct dump_tiles each = dump_tiles_of(dump, INT64_MAX);
    if (status == QKV_OK) dump_hide(dump, &each, MAP_HIDDEN, cells);
    if (status == QKV_OK) draw_heatmap(term, &view);
    free(labels);
    free(cells);
    return status;
}

static qkv_status draw_tiles(const struct dump *dump, struct term *term, qkv_error *error) {
    const struct dump_tiles tiles = dump_tiles_of(dump, heatmap_side(term));
    float *cells = malloc((size_t)(tiles.rows * tiles.cols) * sizeof *cells);
    if (!cells) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    const qkv_status status = dump_pool(dump, dump->chosen, POOL_PEAK, &tiles, cells, error);
    const struct map_view view = { .n_rows = tiles.tile * tiles.rows,
                                   .n_cols = tiles.tile * tiles.cols,
                                   .weights = cells };
    if (status == QKV_OK) dump_hide(dump, &tiles, MAP_HIDDEN, cells);
    if (status == QKV_OK) draw_pooled(term, &view, (int)tiles.rows, (int)tiles.cols);
    free(cells);
    return status;
}

/* All weights of a short dump, tiles of a long one. */
static qkv_status draw_map(const struct dump *dump, struct term *term, qkv_error *error) {
    const bool exact = dump->n_queries <= (int64_t)DUMP_MAP * DUMP_MAP / dump->n_keys;
    return (exact ? draw_exact : draw_tiles)(dump, term, error);
}

qkv_status dump_print(const struct dump *dump, qkv_error *error) {
    struct term term;
    char title[DUMP_TITLE], caption[DUMP_CAPTION];
    term_init(&term, stdout, &dump->options->common);
    print_heads(dump, &term);
    dump_title(dump, dump->chosen, title);
    term_style(&term, STYLE_BOLD);
    term_print(term.out, title);
    term_style(&term, STYLE_NONE);
    term_newline(&term);
    const qkv_status status = draw_map(dump, &term, error);
    if (status != QKV_OK) return status;
    dump_describe(dump, caption);
    text_append(caption, DUMP_CAPTION,
                " A cell is the weight, in percent, with which the row's token (query) looks at "
                "the column's token (key).%s",
                dump_masks(dump) ? DUMP_NO_CELL : "");
    term_style(&term, STYLE_DIM);
    term_wrap(&term, caption);
    term_style(&term, STYLE_NONE);
    return QKV_OK;
}
