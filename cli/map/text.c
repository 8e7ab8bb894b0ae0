/*
 * A map as characters, which are twice as high as wide: a mark for each point and, where there is
 * room, its label beside it. Points of the lines are placed first; where a query and a key share a
 * cell, it shows the query.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "map/map.h"

enum { FREE = -1, TAKEN = -2, MOST_ROWS = 40, MOST_COLUMNS = 120, LABEL_COLUMNS = 16 };

/* A cell holds the point whose mark it is, or `TAKEN` by a label, or nothing. */
struct field {
    int columns, rows;
    int64_t *cells;  /* [rows][columns]: point, TAKEN or FREE */
    int64_t *labels; /* [rows][columns]: the point whose label begins here, or FREE */
};

static bool is_marked(const struct map *map, int64_t i) {
    if (i == map->query) return true;
    for (int64_t l = 0; l < map->n_lines; l++)
        if (i == map->n_queries + map->keys[l]) return true;
    return false;
}

/* The least and the largest coordinate, and what a column is worth: half a row. */
struct scale {
    double left, top, width, height, column;
};

static struct scale scale_of(const struct map *map, int columns) {
    double low[2] = { INFINITY, INFINITY }, high[2] = { -INFINITY, -INFINITY };
    for (int64_t i = 0; i < 2 * (map->n_queries + map->n_keys); i++) {
        low[i % 2] = fmin(low[i % 2], map->xy[i]);
        high[i % 2] = fmax(high[i % 2], map->xy[i]);
    }
    struct scale scale = { low[0], high[1], high[0] - low[0], high[1] - low[1], 0 };
    const int inner = columns - 1 - LABEL_COLUMNS; /* room for labels on the right */
    scale.column = fmax(scale.width / inner, scale.height / (2 * (MOST_ROWS - 1)));
    if (scale.column == 0) scale.column = 1;
    return scale;
}

static void put_marks(const struct map *map, const struct scale *scale, struct field *field,
                      int64_t *places) {
    const int64_t n = map->n_queries + map->n_keys;
    for (int64_t i = 0; i < n; i++) {
        const int row = (int)((scale->top - map->xy[2 * i + 1]) / (2 * scale->column) + 0.5);
        const int column = (int)((map->xy[2 * i] - scale->left) / scale->column + 0.5);
        places[i] = (int64_t)row * field->columns + column;
    }
    for (int pass = 0; pass < 3; pass++) { /* keys, queries above them, then those of the lines */
        for (int64_t i = 0; i < n; i++) {
            const int rank = is_marked(map, i) ? 2 : i < map->n_queries ? 1 : 0;
            if (rank == pass) field->cells[places[i]] = i;
        }
    }
}

/* Whether the `width` cells from a column on are free, in the row of a place. */
static bool fits(const struct field *field, int64_t place, int64_t column, int64_t width) {
    const int64_t *row = field->cells + (place - place % field->columns);
    if (column < 0 || column + width > field->columns) return false;
    for (int64_t c = column; c < column + width; c++)
        if (row[c] != FREE) return false;
    return true;
}

static int label_width(const struct map *map, int64_t i) {
    const int columns = term_columns(map->labels[i]);
    return columns < LABEL_COLUMNS ? columns : LABEL_COLUMNS;
}

/* To the right of a mark, else to its left, else nowhere. */
static void put_label(const struct map *map, struct field *field, int64_t place, int64_t i) {
    const int width = label_width(map, i);
    const int64_t column = place % field->columns;
    if (field->cells[place] != i || width == 0) return;
    const bool right = fits(field, place, column + 1, width);
    if (!right && !fits(field, place, column - width, width)) return;
    const int64_t begin = right ? place + 1 : place - width;
    for (int c = 0; c < width; c++) field->cells[begin + c] = TAKEN;
    field->labels[begin] = i;
}

static void put_labels(const struct map *map, struct field *field, const int64_t *places) {
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < map->n_queries + map->n_keys; i++)
            if (is_marked(map, i) == (pass == 0)) put_label(map, field, places[i], i);
}

static void put_sign(struct term *term, bool is_key) {
    term_weight_fg(term, is_key ? 0.95 : 0.55);
    fputs(term->unicode ? (is_key ? "▲" : "●") : (is_key ? "^" : "o"), term->out);
    term_style(term, STYLE_NONE);
}

/* What a cell has, and how many columns that takes. */
static int draw_cell(struct term *term, const struct map *map, const struct field *field,
                     int64_t place) {
    const bool is_label = field->labels[place] >= 0;
    const int64_t i = is_label ? field->labels[place] : field->cells[place];
    if (i < 0) {
        fputc(' ', term->out);
        return 1;
    }
    if (is_marked(map, i)) term_style(term, STYLE_BOLD);
    if (!is_label) {
        put_sign(term, i >= map->n_queries);
        return 1;
    }
    term_put(term, map->labels[i], label_width(map, i), false);
    if (is_marked(map, i)) term_style(term, STYLE_NONE);
    return label_width(map, i);
}

static void draw(struct term *term, const struct map *map, const struct field *field) {
    for (int row = 0; row < field->rows; row++) {
        const int64_t begin = (int64_t)row * field->columns;
        int end = field->columns;
        while (end > 0 && field->cells[begin + end - 1] == FREE) end--;
        for (int column = 0; column < end;) column += draw_cell(term, map, field, begin + column);
        term_newline(term);
    }
}

static qkv_status draw_field(struct term *term, const struct map *map, qkv_error *error) {
    struct field field = { .columns = term->width < MOST_COLUMNS ? term->width : MOST_COLUMNS };
    if (field.columns < 2 * LABEL_COLUMNS) field.columns = 2 * LABEL_COLUMNS;
    const struct scale scale = scale_of(map, field.columns);
    field.rows = 1 + (int)(scale.height / (2 * scale.column) + 0.5);
    const size_t n = (size_t)field.columns * (size_t)field.rows;
    field.cells = malloc(n * sizeof(*field.cells));
    field.labels = malloc(n * sizeof(*field.labels));
    int64_t *places = malloc((size_t)(map->n_queries + map->n_keys) * sizeof(*places));
    const bool made = field.cells && field.labels && places;
    for (size_t i = 0; made && i < n; i++) field.cells[i] = field.labels[i] = FREE;
    if (made) {
        put_marks(map, &scale, &field, places);
        put_labels(map, &field, places);
        draw(term, map, &field);
    }
    free(field.cells);
    free(field.labels);
    free(places);
    return made ? QKV_OK : text_no_memory(error);
}

static void put_legend(struct term *term, const struct map *map, bool is_key) {
    const char *name = map_point_name(map, is_key);
    char *const spelt = term->unicode ? NULL : term_spell_out(name);
    put_sign(term, is_key);
    fprintf(term->out, " %s%s", spelt ? spelt : name, is_key ? "\n" : "  ");
    free(spelt);
}

qkv_status map_print(const struct map *map, qkv_error *error) {
    struct term term;
    struct caption title = { "" }, caption = { "" };
    term_init(&term, stdout, &map->options->common);
    map_title(map, &title);
    term_styled(&term, STYLE_BOLD, title.text);
    fputs("\n\n", term.out);
    const qkv_status status = draw_field(&term, map, error);
    if (status != QKV_OK) return status;
    fputc('\n', term.out);
    put_legend(&term, map, false);
    put_legend(&term, map, true);
    map_caption(map, &caption);
    char *const spelt = term.unicode ? NULL : term_spell_out(caption.text);
    term_wrap_styled(&term, STYLE_DIM, spelt ? spelt : caption.text);
    free(spelt);
    return QKV_OK;
}
