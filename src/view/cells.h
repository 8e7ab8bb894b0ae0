/** Weights as coloured cells, and the scale that says which colour is which weight. */
#ifndef QKVI_VIEW_CELLS_H
#define QKVI_VIEW_CELLS_H

#include "inspect/colors.h"
#include "view/frame.h"

/** From low to high, for values that are no weights. */
qkvi_scale qkvi_scale_between(double low, double high);

/** What a caller asks of a map: qkv/picture.h. */
typedef struct qkvi_asked {
    qkv_palette palette;
    qkv_figures figures;
    int64_t size;
    double min, max;
} qkvi_asked;

/** kind: 0 weights, 1 values around 0, 2 values between low and high. ARGUMENT, LIMIT. */
qkv_status qkvi_asked_check(const qkvi_asked *asked, int kind, qkv_error *error);
/** A scale with the palette and the ends that are asked for. ARGUMENT: it ends before it begins. */
qkv_status qkvi_asked_scale(const qkvi_asked *asked, qkvi_scale *scale, qkv_error *error);
/** LIMIT if cells that must show figures have no room for them. */
qkv_status qkvi_asked_room(const qkvi_asked *asked, int64_t n, int cell, int64_t fold,
                           qkv_error *error);

enum {
    QKVI_LEAST_SIZE = 64,
    QKVI_MOST_SIZE = 8192,
    QKVI_FIGURE_CELL = 28 /* pixels of the least cell with figures */
};

/** Where on the scale a value lies, 0 ... 1 between its ends. */
double qkvi_scale_place(const qkvi_scale *scale, double value);

/** The colour of a value. */
qkvi_rgb qkvi_scale_color(const qkvi_scale *scale, double value, qkv_theme theme);

/**
 * A map of weights that fits: side by side cells of whole pixels, each the largest of fold x fold
 * weights.
 */
typedef struct qkvi_cells {
    const float *weights; /* [n_rows][n_cols] */
    int64_t n_rows, n_cols;
    int64_t fold; /* 1 unless there are more weights than pixels */
    int cell;     /* pixels a side, the gap included */
    int gap;
    const uint8_t *hidden; /* [n_rows][n_cols] 1: no weight; NULL: all are */
} qkvi_cells;

/**
 * Cells for a map whose longer side should have about `side` pixels, each at least `least`, at most
 * `most`.
 */
qkvi_cells qkvi_cells_fit(const float *weights, int64_t n_rows, int64_t n_cols, int side, int least,
                          int most);

/** Rows and columns of cells, after folding. */
int64_t qkvi_cells_rows(const qkvi_cells *cells);
int64_t qkvi_cells_cols(const qkvi_cells *cells);

/** The weight that a cell shows; NaN if any under it is; -INFINITY: all under it are hidden. */
float qkvi_cells_at(const qkvi_cells *cells, int64_t row, int64_t col);

/**
 * Draws all cells with their top left corner at (x, y), whole pixels: as rectangles, or as an image
 * where that is better.
 */
void qkvi_cells_draw(const qkvi_frame *frame, const qkvi_cells *cells, const qkvi_scale *scale,
                     double x, double y);

enum { QKVI_SCALE_WIDTH = 110, QKVI_SCALE_HEIGHT = 420 };

/** The scale as a bar with numbers, in a box of those sides or lower. */
void qkvi_scale_draw(const qkvi_frame *frame, const qkvi_scale *scale, double x, double y,
                     double height);

/**
 * Writes values into cells: with QKV_FIGURES_AUTO those that matter, if cells are large.
 */
void qkvi_cells_figures(const qkvi_frame *frame, const qkvi_cells *cells, const qkvi_scale *scale,
                        qkv_figures figures, double x, double y);

/**
 * "Colours run from 0 to 0.8; the largest weight is 0.731." and what else must be known to read the
 * picture. quantity: what colours show; NULL: "weight".
 */
void qkvi_scale_note(char *text, size_t text_bytes, const qkvi_scale *scale, int64_t fold,
                     const char *quantity);

#endif
