/** qkv pictures: heat maps, grids of heads and curves as PNG, by cairo and pango. The same input
 * gives the same bytes. */
#ifndef QKV_VIEW_H
#define QKV_VIEW_H

#include "qkv/qkv.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum qkv_theme { QKV_THEME_LIGHT, QKV_THEME_DARK } qkv_theme;

/** Colour of a weight t in [0, 1] (clamped; NaN: grey), colour-blind safe, monotone in
 * lightness. rgb in 0 … 255. */
QKV_API void qkv_view_color(double t, qkv_theme theme, uint8_t rgb[3]);

/** One head: rows are queries, columns are keys. Labels are UTF-8, any bytes are shown escaped. */
typedef struct qkv_heatmap {
    size_t struct_size;
    int64_t n_rows, n_cols;
    const float *weights; /* [n_rows][n_cols] */
    const char *const *row_labels;
    const char *const *col_labels;
    const char *title,
        *caption; /* the caption says what a cell means, from which model, layer and head */
    qkv_theme theme;
} qkv_heatmap;

QKV_API QKV_NODISCARD qkv_status qkv_view_heatmap_png(const qkv_heatmap *map, const char *path,
                                                      qkv_error *error);

/** All heads at once: weights is [n_layers][n_heads][n][n], labels [n_layers * n_heads]
 * (nullable entries). */
typedef struct qkv_head_grid {
    size_t struct_size;
    int64_t n_layers, n_heads, n;
    const float *weights;
    const char *const *labels;
    const char *title, *caption;
    qkv_theme theme;
} qkv_head_grid;

QKV_API QKV_NODISCARD qkv_status qkv_view_grid_png(const qkv_head_grid *grid, const char *path,
                                                   qkv_error *error);

/** A curve, such as the loss of a training run: n points, x ascending. */
typedef struct qkv_curve {
    size_t struct_size;
    int64_t n;
    const double *x, *y;
    const char *x_label, *y_label, *title, *caption;
    qkv_theme theme;
} qkv_curve;

QKV_API QKV_NODISCARD qkv_status qkv_view_curve_png(const qkv_curve *curve, const char *path,
                                                    qkv_error *error);

#ifdef __cplusplus
}
#endif
#endif
