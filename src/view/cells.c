/**
 * Cells and scale.
 *
 * Cells are at whole pixels and drawn without smoothing; the gap between them has the colour of the
 * page. A map with more weights than pixels is pooled by maximum, so that single large weights stay
 * visible.
 */
#include "view/cells.h"

#include <math.h>

#include "core/ints.h"
#include "view/palette.h"

enum { LARGE = 64 }; /* pixels of a cell that has figures without being asked for them */

qkvi_scale qkvi_scale_between(double low, double high) {
    return (qkvi_scale){ .low = low, .top = high, .largest = high, .n_steps = 4, .decimals = 1 };
}

double qkvi_scale_place(const qkvi_scale *scale, double value) {
    return (value - scale->low) / (scale->top - scale->low);
}

qkvi_rgb qkvi_scale_color(const qkvi_scale *scale, double value, qkv_theme theme) {
    if (scale->is_signed) return qkvi_signed_color(value / scale->top, theme);
    const double t = qkvi_scale_place(scale, value);
    return scale->palette == QKV_PALETTE_QKV
               ? qkvi_weight_color(t, theme)
               : qkvi_palette_color(t, (qkv_palette)scale->palette, theme);
}

qkvi_cells qkvi_cells_fit(const float *weights, int64_t n_rows, int64_t n_cols, int side, int least,
                          int most) {
    qkvi_cells cells = { weights, n_rows, n_cols, 1, most, 0, NULL };
    const int64_t n = n_rows > n_cols ? n_rows : n_cols;
    cells.fold = qkvi_ceil_div(n * least, side > least ? side : least);
    if (cells.fold < 1) cells.fold = 1;
    const int64_t fitting = side / qkvi_ceil_div(n, cells.fold);
    if (fitting < most) cells.cell = fitting > least ? (int)fitting : least;
    cells.gap = cells.cell >= 24 ? 2 : cells.cell >= 14 ? 1 : 0;
    return cells;
}

int64_t qkvi_cells_rows(const qkvi_cells *cells) {
    return qkvi_ceil_div(cells->n_rows, cells->fold);
}
int64_t qkvi_cells_cols(const qkvi_cells *cells) {
    return qkvi_ceil_div(cells->n_cols, cells->fold);
}

float qkvi_cells_at(const qkvi_cells *cells, int64_t row, int64_t col) {
    const int64_t i0 = row * cells->fold, j0 = col * cells->fold;
    float largest = -INFINITY;
    for (int64_t i = i0; i < i0 + cells->fold && i < cells->n_rows; i++) {
        for (int64_t j = j0; j < j0 + cells->fold && j < cells->n_cols; j++) {
            const float weight = cells->weights[i * cells->n_cols + j];
            if (cells->hidden && cells->hidden[i * cells->n_cols + j]) continue;
            if (isnan(weight)) return weight;
            if (weight > largest) largest = weight;
        }
    }
    return largest;
}

/* In a vector picture cells without gaps would show seams, and very many would be slow. */
static int better_as_image(const qkvi_frame *frame, const qkvi_cells *cells) {
    enum { MOST_RECTANGLES = 10000 };
    return frame->format != QKVI_PNG &&
           (cells->gap == 0 || qkvi_cells_rows(cells) * qkvi_cells_cols(cells) > MOST_RECTANGLES);
}

/* An image of the cells, on the page's colour; NULL if they are rectangles. */
static cairo_surface_t *make_image(const qkvi_frame *frame, const qkvi_cells *cells) {
    if (!better_as_image(frame, cells)) return NULL;
    const int width = (int)qkvi_cells_cols(cells) * cells->cell - cells->gap;
    const int height = (int)qkvi_cells_rows(cells) * cells->cell - cells->gap;
    cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
    qkvi_image_fill(image, frame->palette->page, 0, 0, width, height);
    return image;
}

void qkvi_cells_draw(const qkvi_frame *frame, const qkvi_cells *cells, const qkvi_scale *scale,
                     double x, double y) {
    const int64_t rows = qkvi_cells_rows(cells), cols = qkvi_cells_cols(cells);
    const int side = cells->cell - cells->gap;
    cairo_surface_t *image = make_image(frame, cells);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) {
            const float weight = qkvi_cells_at(cells, i, j);
            if (cells->hidden && weight == -INFINITY) continue; /* the page */
            const qkvi_rgb color = qkvi_scale_color(scale, (double)weight, frame->theme);
            const double left = (double)(j * cells->cell), top = (double)(i * cells->cell);
            if (image)
                qkvi_image_fill(image, color, left, top, side, side);
            else
                qkvi_frame_fill(frame, color, x + left, y + top, side, side);
        }
    }
    if (image) qkvi_frame_paint(frame, image, x, y);
}

/* Figures of a size that fits a cell; a smaller one where all cells must have some. */
static double figure_size(const qkvi_cells *cells) {
    return cells->cell >= LARGE ? cells->cell / 4.8 : fmin(LARGE / 4.8, cells->cell / 3.3);
}

void qkvi_cells_figures(const qkvi_frame *frame, const qkvi_cells *cells, const qkvi_scale *scale,
                        qkv_figures figures, double x, double y) {
    const double half = (cells->cell - cells->gap) / 2.0;
    const double least = figures == QKV_FIGURES_ON ? 0 : 0.125 * scale->top;
    if (figures == QKV_FIGURES_OFF || cells->fold > 1) return;
    if (figures == QKV_FIGURES_AUTO && cells->cell < LARGE) return;
    for (int64_t i = 0; i < cells->n_rows; i++) {
        for (int64_t j = 0; j < cells->n_cols; j++) {
            const double value = qkvi_cells_at(cells, i, j);
            if (!(fabs(value) >= least) || isinf(value)) continue;
            char number[32];
            qkvi_number(number, sizeof number, value, scale->top < 0.15 ? 3 : 2);
            const qkvi_line style = { .size = figure_size(cells),
                                      .color =
                                          qkvi_ink_on(qkvi_scale_color(scale, value, frame->theme)),
                                      .align = 0.5 };
            qkvi_line_draw(&frame->type, frame->cr, number, &style,
                           x + (double)(j * cells->cell) + half,
                           y + (double)(i * cells->cell) + half);
        }
    }
}

void qkvi_scale_draw(const qkvi_frame *frame, const qkvi_scale *scale, double x, double y,
                     double height) {
    enum { WIDTH = 20, TICK = 6 };
    const double bar = fmin(floor(height), QKVI_SCALE_HEIGHT);
    for (int i = 0; i < (int)bar; i++) {
        const double t = 1 - (i + 0.5) / bar;
        const int overlap = i + 1 < (int)bar; /* of the next strip: no seams in a vector picture */
        const double value = scale->low + t * (scale->top - scale->low);
        qkvi_frame_fill(frame, qkvi_scale_color(scale, value, frame->theme), x, y + i, WIDTH,
                        1 + overlap);
    }
    const qkvi_line style = { .size = 19, .color = frame->palette->faint };
    for (int i = 0; i <= scale->n_steps; i++) {
        char number[32];
        const double t = (double)i / scale->n_steps, at = floor(y + (1 - t) * (bar - 1));
        const double value = scale->low + t * (scale->top - scale->low);
        qkvi_number(number, sizeof number, value, value == 0 ? 0 : scale->decimals);
        qkvi_frame_fill(frame, frame->palette->faint, x + WIDTH + 2, at, TICK, 1);
        qkvi_line_draw(&frame->type, frame->cr, number, &style, x + WIDTH + TICK + 10, at);
    }
}

void qkvi_scale_note(char *text, size_t text_bytes, const qkvi_scale *scale, int64_t fold,
                     const char *quantity) {
    char low[32], top[32], largest[32], folded[96] = "", nan[48] = "";
    qkvi_number(low, sizeof low, scale->low, scale->low == 0 ? 0 : scale->decimals);
    qkvi_number(top, sizeof top, scale->top, scale->top == 1 ? 0 : scale->decimals);
    qkvi_number(largest, sizeof largest, scale->largest, scale->decimals + 2);
    if (scale->has_nan)
        snprintf(nan, sizeof nan, " %s: not a number.",
                 qkvi_palette_nan((qkv_palette)scale->palette));
    if (fold > 1)
        snprintf(folded, sizeof folded, " A cell shows the largest of %lld \xC3\x97 %lld weights.",
                 (long long)fold, (long long)fold);
    snprintf(text, text_bytes,
             "Colours run from %s to %s%s; the largest %.40s is %s.%s%s Weights show mixing, not "
             "reasons.",
             low, top, scale->given ? ", and what is beyond has the colour of the end" : "",
             quantity ? quantity : "weight", largest, folded, nan);
}
