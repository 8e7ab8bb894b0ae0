/*
 * The heat map of one head, in the largest form that fits n tokens into the terminal's width:
 *
 *     numbers   a cell of 3 … 9 columns holds its weight in percent; labels staggered or upright
 *     squares   two columns a cell
 *     halves    one column and half a line a cell, so that cells stay square; tokens are numbered
 *     pooled    the same, each cell the largest weight of a tile
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "draw.h"

enum { LONGEST_LABEL = 14, WIDEST_CELL = 6, GAP = 1 };

struct layout {
    int label, cell;
    int longest; /* label, in columns */
    double largest;
};

static double largest_weight(const struct map_view *view, int64_t side) {
    double largest = 0;
    for (int64_t i = 0; i < side * side; i++)
        if (view->weights[i] > largest) largest = view->weights[i];
    return largest > 0 && isfinite(largest) ? largest : 1;
}

static struct layout plan(const struct term *term, const struct map_view *view) {
    struct layout layout = { .largest = largest_weight(view, view->n) };
    for (int64_t i = 0; i < view->n; i++) {
        const int columns = term_columns(view->labels[i]);
        if (columns > layout.longest) layout.longest = columns;
    }
    layout.label = layout.longest < LONGEST_LABEL ? layout.longest : LONGEST_LABEL;
    const int64_t room = (term->width - layout.label - GAP) / view->n;
    layout.cell = room > layout.longest ? layout.longest + 1
                  : room < WIDEST_CELL  ? (int)room
                                        : WIDEST_CELL;
    if (layout.cell > 9) layout.cell = 9;
    if (layout.cell < 4 && room >= 4) layout.cell = 4;
    return layout;
}

static void put_label(struct term *term, const char *label, bool marked, int width, bool right) {
    if (marked) term_style(term, STYLE_BOLD);
    term_put(term, label, width, right);
    if (marked) term_style(term, STYLE_NONE);
}

/* ---- Column labels ------------------------------------------------------------------------- */

/* Every step-th label from `first`, each centred over its column. */
static void header_line(struct term *term, const struct map_view *view, const struct layout *layout,
                        int64_t first, int step) {
    int column = 0;
    for (int64_t j = first; j < view->n; j += step) {
        const int width = term_columns(view->labels[j]);
        int begin = layout->label + GAP + (int)j * layout->cell + (layout->cell - width) / 2;
        if (begin < column) begin = column;
        fprintf(term->out, "%*s", begin - column, "");
        put_label(term, view->labels[j], j == view->mark_col, width, false);
        column = begin + width;
    }
    term_newline(term);
}

/* The bytes of the label's index-th character, counted in characters. */
static const char *character(const char *label, int index, int *bytes) {
    for (;;) {
        utf8proc_int32_t point;
        const utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)label,
                                                    (utf8proc_ssize_t)strlen(label), &point);
        *bytes = n > 0 ? (int)n : *label != '\0';
        if (index-- == 0 || *bytes == 0) return label;
        label += *bytes;
    }
}

static int characters(const char *label) {
    int count = 0;
    for (int bytes = 0;; count++) {
        label = character(label, 0, &bytes);
        if (bytes == 0) return count;
        label += bytes;
    }
}

/* Labels written downwards, their last characters on one line; clipped at LONGEST_LABEL. */
static void header_upright(struct term *term, const struct map_view *view,
                           const struct layout *layout) {
    int tallest = 0;
    for (int64_t j = 0; j < view->n; j++) {
        const int count = characters(view->labels[j]);
        if (count > tallest) tallest = count;
    }
    if (tallest > LONGEST_LABEL) tallest = LONGEST_LABEL;
    for (int line = 0; line < tallest; line++) {
        fprintf(term->out, "%*s", layout->label + GAP, "");
        for (int64_t j = 0; j < view->n; j++) {
            const int count = characters(view->labels[j]);
            const int skipped = tallest - (count < tallest ? count : tallest);
            int bytes = 0;
            const char *text = character(view->labels[j], line - skipped, &bytes);
            char cell[8] = "";
            if (line >= skipped) memcpy(cell, text, (size_t)bytes);
            const int left = (layout->cell - 1) / 2;
            fprintf(term->out, "%*s", left, "");
            put_label(term, cell, j == view->mark_col, layout->cell - left, false);
        }
        term_newline(term);
    }
}

static void header(struct term *term, const struct map_view *view, const struct layout *layout) {
    if (layout->cell > layout->longest) {
        header_line(term, view, layout, 0, 1);
    } else if (2 * layout->cell > layout->longest) {
        header_line(term, view, layout, 0, 2);
        header_line(term, view, layout, 1, 2);
    } else {
        header_upright(term, view, layout);
    }
}

/* ---- Cells --------------------------------------------------------------------------------- */

static void number_cell(struct term *term, double weight, double t, int width) {
    char text[16] = "";
    const int percent = (int)(weight * 100 + 0.5);
    if (isnan(weight))
        snprintf(text, sizeof text, "nan");
    else if (percent > 0)
        snprintf(text, sizeof text, "%d", percent);
    if (term->depth == TERM_PLAIN && width > 3) {
        fputs(term_mark(term, t), term->out);
        width--;
    }
    const int after = (width - (int)strlen(text)) / 2 < 1 ? 0 : (width - 2) / 2;
    term_weight_bg(term, t);
    if (*text) term_readable_on(term, t);
    fprintf(term->out, "%*s%*s", width - after, text, after, "");
}

static void square_cell(struct term *term, double t, int width) {
    term_weight_bg(term, t);
    for (int i = 0; i < width; i++)
        fputs(term->depth == TERM_PLAIN ? term_mark(term, t) : " ", term->out);
}

static void draw_cells(struct term *term, const struct map_view *view,
                       const struct layout *layout) {
    header(term, view, layout);
    for (int64_t i = 0; i < view->n; i++) {
        put_label(term, view->labels[i], i == view->mark_row, layout->label, true);
        fputc(' ', term->out);
        for (int64_t j = 0; j < view->n; j++) {
            const double weight = view->weights[i * view->n + j], t = weight / layout->largest;
            if (layout->cell >= 3)
                number_cell(term, weight, t, layout->cell);
            else
                square_cell(term, t, layout->cell);
        }
        term_newline(term);
    }
}

/* ---- Half blocks --------------------------------------------------------------------------- */

/* Numbers of columns, at every tenth. */
static void ruler(struct term *term, int64_t n, int side, int indent) {
    fprintf(term->out, "%*s", indent, "");
    for (int x = 0; x < side; x += 10)
        fprintf(term->out, "%-10lld", (long long)((x * n + side - 1) / side));
    term_newline(term);
}

static void numbered_label(struct term *term, const struct map_view *view, int side, int row,
                           int width, bool right) {
    char text[96] = "";
    const bool pooled = side < view->n;
    const int64_t i = ((int64_t)row * view->n + side - 1) / side;
    if (row < side && i < view->n)
        snprintf(text, sizeof text, right ? "%.60s %lld" : "%2$lld %1$.60s",
                 pooled ? "" : view->labels[i], (long long)i);
    put_label(term, text, !pooled && i == view->mark_row, width, right);
}

/* Labels of even rows on the left, of odd rows on the right, `width` columns each. */
static void draw_rows_of_halves(struct term *term, const struct map_view *view,
                                const struct layout *layout, int width, int side,
                                const float *cells) {
    ruler(term, view->n, side, width + GAP);
    for (int line = 0; line < (side + 1) / 2; line++) {
        numbered_label(term, view, side, 2 * line, width, true);
        fputc(' ', term->out);
        draw_halves(term, cells, side, side, line, layout->largest);
        fputc(' ', term->out);
        numbered_label(term, view, side, 2 * line + 1, width, false);
        term_newline(term);
    }
    if (side < view->n) {
        char note[96];
        const long long tile = (view->n + side - 1) / side;
        snprintf(note, sizeof note,
                 "Pooled: a cell is the largest weight of a tile of %lld x %lld.", tile, tile);
        term_wrap(term, note);
    }
}

enum { NUMBER_WIDTH = 6 }; /* columns of a number beside a pooled map */

int64_t heatmap_side(const struct term *term) {
    const int64_t room = term->width - 2 * (NUMBER_WIDTH + GAP);
    return room < 8 ? 8 : room;
}

/* One cell a token if they fit beside the labels; else tiles of whole tokens, numbered only. */
static void draw_small(struct term *term, const struct map_view *view,
                       const struct layout *layout) {
    int width = layout->label + 4;
    int64_t side = view->n;
    if (side > term->width - 2 * (width + GAP)) {
        const int64_t room = heatmap_side(term), tile = (view->n + room - 1) / room;
        width = NUMBER_WIDTH;
        side = (view->n + tile - 1) / tile;
    }
    float *cells = malloc((size_t)(side * side) * sizeof(*cells));
    if (!cells) return;
    pool_map(view->weights, view->n, (int)side, cells);
    draw_rows_of_halves(term, view, layout, width, (int)side, cells);
    free(cells);
}

static void draw_scale(struct term *term, double largest) {
    enum { CELLS = 24 };
    fprintf(term->out, "0 ");
    for (int i = 0; i < CELLS; i++) square_cell(term, (i + 0.5) / CELLS, 1);
    term_reset(term);
    fprintf(term->out, " %.0f %%", largest * 100);
    term_newline(term);
}

void draw_heatmap(struct term *term, const struct map_view *view) {
    if (view->n <= 0) return;
    const struct layout layout = plan(term, view);
    if (layout.cell >= 2)
        draw_cells(term, view, &layout);
    else
        draw_small(term, view, &layout);
    draw_scale(term, layout.largest);
}

void draw_pooled(struct term *term, const struct map_view *view, int side) {
    const struct layout layout = { .largest = largest_weight(view, side) };
    draw_rows_of_halves(term, view, &layout, NUMBER_WIDTH, side, view->weights);
    draw_scale(term, layout.largest);
}
