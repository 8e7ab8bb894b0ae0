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

/* All weights of a short dump, tiles of a long one. */
static qkv_status draw_map(const struct dump *dump, struct term *term, qkv_error *error) {
    const bool exact = dump->n_keys <= DUMP_MAP;
    const struct dump_tiles tiles = dump_tiles_of(dump, exact ? DUMP_MAP : heatmap_side(term));
    const struct dump_head *head = &dump->heads[dump->chosen];
    float *cells = malloc((size_t)(tiles.rows * tiles.cols) * sizeof *cells);
    if (!cells) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    const qkv_status status = exact
                                  ? dump_weights(dump, dump->chosen, cells, error)
                                  : dump_pool(dump, dump->chosen, POOL_PEAK, &tiles, cells, error);
    const struct map_view view = { tiles.tile * tiles.cols, cells, dump->labels, head->query,
                                   head->key };
    if (status == QKV_OK && exact) draw_heatmap(term, &view);
    if (status == QKV_OK && !exact) draw_pooled(term, &view, (int)tiles.rows);
    free(cells);
    return status;
}

qkv_status dump_print(const struct dump *dump, qkv_error *error) {
    struct term term;
    char title[DUMP_TITLE], caption[DUMP_CAPTION];
    const bool square = dump->n_queries == dump->n_keys;
    term_init(&term, stdout, &dump->options->common);
    print_heads(dump, &term);
    dump_title(dump, dump->chosen, title);
    term_style(&term, STYLE_BOLD);
    fputs(title, term.out);
    term_style(&term, STYLE_NONE);
    term_newline(&term);
    const qkv_status status = square ? draw_map(dump, &term, error) : QKV_OK;
    if (status != QKV_OK) return status;
    dump_describe(dump, caption);
    text_append(caption, DUMP_CAPTION,
                square ? " A cell is the weight, in percent, with which the row's token (query) "
                         "looks at the column's token (key)."
                       : " The terminal draws as many queries as keys: -o FILE.png draws these.");
    term_style(&term, STYLE_DIM);
    term_wrap(&term, caption);
    term_style(&term, STYLE_NONE);
    return QKV_OK;
}
