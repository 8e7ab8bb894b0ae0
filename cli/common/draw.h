/* Attention weights as characters: the heat map of one head, and the grid of all heads. */
#ifndef QKV_CLI_COMMON_DRAW_H
#define QKV_CLI_COMMON_DRAW_H

#include "common/term.h"

/* In place of a weight: the query does not see the key, and no cell is drawn. */
#define MAP_HIDDEN (-1.0f)

/*
 * weights [n_rows][n_cols]: a row for each query, a column for each key; labels are escaped. The
 * labels of row mark_row and column mark_col are bold; -1: none.
 */
struct map_view {
    int64_t n_rows, n_cols;
    const float *weights;
    char *const *row_labels, *const *col_labels;
    int64_t mark_row, mark_col;
    int names_a_row; /* 2: a label of a row has two names and gets twice the width; else 0 or 1 */
};

/* Draws the largest form that fits the width of the terminal (draw_map.c has the forms). */
void draw_heatmap(struct term *term, const struct map_view *view);

/* Draws a map of tiles: weights are [rows][cols], labels are not read. */
void draw_pooled(struct term *term, const struct map_view *view, int rows, int cols);
/* The most rows and columns of such a map. */
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

/* Draws line `line` of a picture in half blocks: rows 2 * line and 2 * line + 1 of the cells. */
void draw_halves(struct term *term, const float *cells, int rows, int columns, int line,
                 double largest);

#endif
