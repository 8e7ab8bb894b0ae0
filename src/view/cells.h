/** Weights as coloured cells, and their scale of colours. */
#ifndef QKVI_VIEW_CELLS_H
#define QKVI_VIEW_CELLS_H

#include "inspect/colors.h"
#include "view/frame.h"

/** A scale from low to high, for values that are not weights. */
qkvi_scale qkvi_scale_between(double low, double high);

/** The caller's options of a heat map: qkv/picture.h. */
typedef struct qkvi_asked {
    qkv_palette palette;
    qkv_figures figures;
    int64_t size;
    double min, max;
} qkvi_asked;

/**
 * Checks options. kind: 0 weights, 1 values around 0, 2 values from low to high. ARGUMENT, LIMIT.
 */
qkv_status qkvi_asked_check(const qkvi_asked *asked, int kind, qkv_error *error);
/** Sets palette and ends of a scale by the options. ARGUMENT if min is not below max. */
qkv_status qkvi_asked_scale(const qkvi_asked *asked, qkvi_scale *scale, qkv_error *error);
/** LIMIT if the options ask for figures, and cells are too small for them. */
qkv_status qkvi_asked_room(const qkvi_asked *asked, int64_t n, int cell, int64_t fold,
                           qkv_error *error);

enum {
    QKVI_LEAST_SIZE = 64,
    QKVI_MOST_SIZE = 8192,
    QKVI_FIGURE_CELL = 28 /* pixels: the smallest cell with figures */
};

/** The position of a value on a scale, 0 ... 1 between its ends. */
double qkvi_scale_place(const qkvi_scale *scale, double value);

/** The colour of a value. */
qkvi_rgb qkvi_scale_color(const qkvi_scale *scale, double value, qkv_theme theme);

/**
 * A heat map: a grid of cells of whole pixels, each of which shows the largest of fold x fold
 * weights.
 */
typedef struct qkvi_cells {
    const float *weights; /* [n_rows][n_cols] */
    int64_t n_rows, n_cols;
    int64_t fold; /* 1 unless there are more weights than pixels */
    int cell;     /* pixels a side, with the gap */
    int gap;
    const uint8_t *hidden; /* [n_rows][n_cols]: 1 where there is no weight; NULL: nowhere */
} qkvi_cells;

/**
 * Cells of a heat map whose longer side has about `side` pixels; a cell has `least` to `most`.
 */
qkvi_cells qkvi_cells_fit(const float *weights, int64_t n_rows, int64_t n_cols, int side, int least,
                          int most);

/** Rows and columns of cells, after folding. */
int64_t qkvi_cells_rows(const qkvi_cells *cells);
int64_t qkvi_cells_cols(const qkvi_cells *cells);

/** The weight that a cell shows; NaN if one of its weights is; -INFINITY if all are hidden. */
float qkvi_cells_at(const qkvi_cells *cells, int64_t row, int64_t col);

/**
 * Draws all cells, with their top left corner at (x, y), which are whole: as rectangles, or many
 * cells as an image.
 */
void qkvi_cells_draw(const qkvi_frame *frame, const qkvi_cells *cells, const qkvi_scale *scale,
                     double x, double y);

enum { QKVI_SCALE_WIDTH = 110, QKVI_SCALE_HEIGHT = 420 };

/** Draws the scale as a bar with numbers, in a box QKVI_SCALE_WIDTH wide and `height` high. */
void qkvi_scale_draw(const qkvi_frame *frame, const qkvi_scale *scale, double x, double y,
                     double height);

/** Writes values into cells; with QKV_FIGURES_AUTO only large values, and only into large cells. */
void qkvi_cells_figures(const qkvi_frame *frame, const qkvi_cells *cells, const qkvi_scale *scale,
                        qkv_figures figures, double x, double y);

/**
 * A note for the caption: "Colours run from 0 to 0.8; the largest weight is 0.731." and what else
 * is needed to read the picture. quantity: what colours show; NULL: "weight".
 */
void qkvi_scale_note(char *text, size_t text_bytes, const qkvi_scale *scale, int64_t fold,
                     const char *quantity);

#endif
