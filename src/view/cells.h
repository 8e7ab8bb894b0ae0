/** Weights as coloured cells, and the scale that says which colour is which weight. */
#ifndef QKVI_VIEW_CELLS_H
#define QKVI_VIEW_CELLS_H

#include "view/frame.h"

/** Colours run from 0 to top, a round number not below the largest weight. */
typedef struct qkvi_scale {
    double top, largest; /* largest: of the finite weights */
    int n_steps;         /* of the ticks, from 0 to top */
    int decimals;        /* of a tick's number */
    int has_nan;
} qkvi_scale;

qkvi_scale qkvi_scale_of(const float *weights, int64_t n);

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

/** The weight that a cell shows; NaN if any under it is. */
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
 * "Colours run from 0 to 0.8; the largest weight is 0.731." and what else must be known to read the
 * picture.
 */
void qkvi_scale_note(char *text, size_t text_bytes, const qkvi_scale *scale, int64_t fold);

#endif
