/*
 * The heat map of one head, in the first of these forms whose columns fit the terminal:
 *
 *     numbers   a cell of 3 … 9 columns holds its weight in percent; labels staggered or upright
 *     squares   two columns a cell
 *     halves    half blocks: one column and half a line a cell; tokens are numbered
 *     pooled    half blocks, each cell the largest weight of a tile
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/draw.h"

enum { LONGEST_LABEL = 14, WIDEST_CELL = 6, GAP = 1 };

struct layout {
    int label, cell; /* columns of a row's label, and of a weight */
    int longest;     /* label of a column, in columns */
    double largest;
};

static double largest_weight(const struct map_view *view, int64_t n_cells) {
    double largest = 0;
    for (int64_t i = 0; i < n_cells; i++)
        if (view->weights[i] > largest) largest = view->weights[i];
    return largest > 0 && isfinite(largest) ? largest : 1;
}

static int longest_label(char *const *labels, int64_t n) {
    int longest = 0;
    for (int64_t i = 0; i < n; i++) {
        const int columns = term_columns(labels[i]);
        if (columns > longest) longest = columns;
    }
    return longest;
}

static struct layout plan(const struct term *term, const struct map_view *view) {
    struct layout layout = { .largest = largest_weight(view, view->n_rows * view->n_cols),
                             .longest = longest_label(view->col_labels, view->n_cols) };
    const int longest_row = longest_label(view->row_labels, view->n_rows);
    const int longest_shown = LONGEST_LABEL * (view->names_a_row > 1 ? view->names_a_row : 1);
    layout.label = longest_row < longest_shown ? longest_row : longest_shown;
    const int64_t room = (term->width - layout.label - GAP) / view->n_cols;
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
    for (int64_t j = first; j < view->n_cols; j += step) {
        const int width = term_columns(view->col_labels[j]);
        int begin = layout->label + GAP + (int)j * layout->cell + (layout->cell - width) / 2;
        if (begin < column) begin = column;
        fprintf(term->out, "%*s", begin - column, "");
        put_label(term, view->col_labels[j], j == view->mark_col, width, false);
        column = begin + width;
    }
    term_newline(term);
}

/* The label behind its first n characters; it is UTF-8, as escaped texts are. */
static const char *skip_characters(const char *label, int n) {
    for (; n > 0 && *label; n--)
        for (label++; (*label & 0xC0) == 0x80;) label++;
    return label;
}

static int characters(const char *label) {
    int count = 0;
    for (; *label; label++) count += (*label & 0xC0) != 0x80;
    return count;
}

/* Labels written downwards, their last characters on one line; clipped at LONGEST_LABEL. */
static void header_upright(struct term *term, const struct map_view *view,
                           const struct layout *layout) {
    int tallest = 0;
    for (int64_t j = 0; j < view->n_cols; j++) {
        const int count = characters(view->col_labels[j]);
        if (count > tallest) tallest = count;
    }
    if (tallest > LONGEST_LABEL) tallest = LONGEST_LABEL;
    for (int line = 0; line < tallest; line++) {
        fprintf(term->out, "%*s", layout->label + GAP, "");
        for (int64_t j = 0; j < view->n_cols; j++) {
            const int count = characters(view->col_labels[j]);
            const int skipped = tallest - (count < tallest ? count : tallest);
            const char *const text = skip_characters(view->col_labels[j], line - skipped);
            char cell[8] = "";
            if (line >= skipped)
                snprintf(cell, sizeof cell, "%.*s", (int)(skip_characters(text, 1) - text), text);
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

static void no_cell(struct term *term, int width) {
    term_reset(term);
    fprintf(term->out, "%*s", width, "");
}

static void draw_cells(struct term *term, const struct map_view *view,
                       const struct layout *layout) {
    header(term, view, layout);
    for (int64_t i = 0; i < view->n_rows; i++) {
        put_label(term, view->row_labels[i], i == view->mark_row, layout->label, true);
        fputc(' ', term->out);
        for (int64_t j = 0; j < view->n_cols; j++) {
            const float shown = view->weights[i * view->n_cols + j];
            const double weight = (double)shown, t = weight / layout->largest;
            if (shown == MAP_HIDDEN)
                no_cell(term, layout->cell);
            else if (layout->cell >= 3)
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

/* A picture of halves: cells [rows][cols], of tiles if they are fewer than the weights. */
struct halves {
    const struct map_view *view;
    const float *cells;
    int rows, cols;
    int label; /* columns of a label */
};

static bool is_pooled(const struct halves *h) {
    return h->rows < h->view->n_rows || h->cols < h->view->n_cols;
}

static void numbered_label(struct term *term, const struct halves *h, int row, int width,
                           bool right) {
    char text[96] = "";
    const struct map_view *view = h->view;
    const bool pooled = is_pooled(h);
    const int64_t i = ((int64_t)row * view->n_rows + h->rows - 1) / h->rows;
    if (row < h->rows && i < view->n_rows)
        snprintf(text, sizeof text, right ? "%.60s %lld" : "%2$lld %1$.60s",
                 pooled ? "" : view->row_labels[i], (long long)i);
    put_label(term, text, !pooled && i == view->mark_row, width, right);
}

/* Labels of even rows on the left, of odd rows on the right. */
static void draw_rows_of_halves(struct term *term, const struct halves *h, double largest) {
    const struct map_view *view = h->view;
    ruler(term, view->n_cols, h->cols, h->label + GAP);
    for (int line = 0; line < (h->rows + 1) / 2; line++) {
        numbered_label(term, h, 2 * line, h->label, true);
        fputc(' ', term->out);
        draw_halves(term, h->cells, h->rows, h->cols, line, largest);
        fputc(' ', term->out);
        numbered_label(term, h, 2 * line + 1, h->label, false);
        term_newline(term);
    }
    if (is_pooled(h)) {
        char note[96];
        snprintf(note, sizeof note,
                 "Pooled: a cell is the largest weight of a tile of %lld x %lld.",
                 (long long)((view->n_rows + h->rows - 1) / h->rows),
                 (long long)((view->n_cols + h->cols - 1) / h->cols));
        term_wrap(term, note);
    }
}

enum { NUMBER_WIDTH = 6 }; /* columns of a number beside a pooled map */

int64_t heatmap_side(const struct term *term) {
    const int64_t room = term->width - 2 * (NUMBER_WIDTH + GAP);
    return room < 8 ? 8 : room;
}

/* More rows than a picture of so many keys should have lines. */
static bool is_tall(const struct term *term, const struct map_view *view) {
    return view->n_rows > view->n_cols && view->n_rows > heatmap_side(term);
}

/* How many tiles there are of `n`, each of as many as are needed for `room` of them. */
static int tiles_of(int64_t n, int64_t room) {
    const int64_t tile = (n + room - 1) / room;
    return (int)((n + tile - 1) / tile);
}

/* One cell a token if they fit beside the labels; else tiles of whole tokens, numbered only. */
static void draw_small(struct term *term, const struct map_view *view,
                       const struct layout *layout) {
    struct halves h = { .view = view, .label = layout->label + 4 };
    const bool fits = view->n_cols <= term->width - 2 * (h.label + GAP) && !is_tall(term, view);
    const int64_t room = heatmap_side(term);
    if (!fits) h.label = NUMBER_WIDTH;
    h.rows = fits ? (int)view->n_rows : tiles_of(view->n_rows, room);
    h.cols = fits ? (int)view->n_cols : tiles_of(view->n_cols, room);
    float *cells = malloc((size_t)h.rows * (size_t)h.cols * sizeof(*cells));
    if (!cells) return;
    pool_map(view->weights, view->n_rows, view->n_cols, h.rows, h.cols, cells);
    h.cells = cells;
    draw_rows_of_halves(term, &h, layout->largest);
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
    if (view->n_rows <= 0 || view->n_cols <= 0) return;
    const struct layout layout = plan(term, view);
    if (layout.cell >= 2 && !is_tall(term, view))
        draw_cells(term, view, &layout);
    else
        draw_small(term, view, &layout);
    draw_scale(term, layout.largest);
}

void draw_pooled(struct term *term, const struct map_view *view, int rows, int cols) {
    const double largest = largest_weight(view, (int64_t)rows * cols);
    const struct halves h = { view, view->weights, rows, cols, NUMBER_WIDTH };
    draw_rows_of_halves(term, &h, largest);
    draw_scale(term, largest);
}
