/* Attention weights as characters: the heat map of one head, and the grid of all heads. */
#ifndef QKV_CLI_COMMON_DRAW_H
#define QKV_CLI_COMMON_DRAW_H

#include "common/term.h"

/* In the place of a weight: the query does not see the key, and there is no cell. */
#define MAP_HIDDEN (-1.0f)

/*
 * weights [n_rows][n_cols], rows are queries, columns keys; labels are escaped. mark_row and
 * mark_col are set in bold; -1: none.
 */
struct map_view {
    int64_t n_rows, n_cols;
    const float *weights;
    char *const *row_labels, *const *col_labels;
    int64_t mark_row, mark_col;
    int names_a_row; /* 0 or 1; 2: labels of rows are twice as wide */
};

/*
 * Draws as much as fits: numbers in cells, else squares, else half blocks, else pooled half
 * blocks.
 */
void draw_heatmap(struct term *term, const struct map_view *view);

/* A map that is pooled already: weights are [rows][cols], of tiles; the labels are not read. */
void draw_pooled(struct term *term, const struct map_view *view, int rows, int cols);
/* How many cells a side it may have. */
int64_t heatmap_side(const struct term *term);

/* All heads as thumbnails of rows × cols cells: cells is [n_layers][n_heads][rows][cols]. */
struct grid_view {
    int64_t n_layers, n_heads;
    int rows, cols;
    const float *cells;
    const char *const *labels; /* [n_layers * n_heads], "" for none */
    int64_t chosen_layer, chosen_head;
};

/* The side of a thumbnail that suits the terminal's width, at most n. */
int grid_side(const struct term *term, int64_t n_heads, int64_t n);
void draw_grid(struct term *term, const struct grid_view *view);

/* Largest weight of each of rows × cols tiles of an n_rows × n_cols map. */
void pool_map(const float *weights, int64_t n_rows, int64_t n_cols, int rows, int cols,
              float *cells);

/*
 * One line of text of a picture in half blocks: rows 2 line and 2 line + 1 of cells
 * [rows][columns].
 */
void draw_halves(struct term *term, const float *cells, int rows, int columns, int line,
                 double largest);

#endif
