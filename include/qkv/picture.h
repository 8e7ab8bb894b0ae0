/**
 * qkv pictures: heat maps, grids of heads, maps over images, curves, charts and maps of points as
 * PNG, SVG or PDF, by cairo and pango.
 *
 * The following holds for every picture.
 *
 * Text: titles, captions and labels are any bytes. What cannot be shown is escaped: broken UTF-8,
 *     control, invisible and direction-changing characters. NULL is no text. A caption wraps, and
 *     keeps its line breaks. Labels are turned, made smaller, or shortened in the middle until they
 *     fit. Glyphs come from DejaVu Sans, then from any font of the system.
 * File: the ending of `path` decides: .png, .svg or .pdf. The file is written beside `path` and
 *     renamed. So `path` has a whole picture, or what it had before. Title and caption are in the
 *     file. A PNG has iTXt chunks "Title" and "Description", an SVG <title> and <desc>, a PDF Title
 *     and Subject.
 * Size: a PNG has 192 pixels to the inch. SVG and PDF have the same size in inches. Text in them
 *     can be searched and selected. A PDF embeds the glyphs that it shows. An SVG has them as
 *     outlines, with the same text invisible above. Maps of up to 10,000 cells are vectors. Larger
 *     maps, and maps without gaps between cells, are images.
 * Determinism: the same input gives the same bytes on one installation, in any locale and
 *     environment. Another version of cairo, pango or the fonts may give other bytes. A PDF has no
 *     date.
 * Memory: a PNG needs 4 bytes a pixel. No picture has more than 32,767 pixels a side. glib ends the
 *     process if it finds no memory.
 * Return: QKV_OK; QKV_ERR_ARGUMENT for a NULL that is not allowed, an unknown ending or theme, or a
 *     struct_size that is too small; QKV_ERR_VERSION; QKV_ERR_SHAPE; QKV_ERR_LIMIT, also for too
 *     many pixels; QKV_ERR_IO; QKV_ERR_MEMORY.
 */
#ifndef QKV_PICTURE_H
#define QKV_PICTURE_H

#include "qkv/inspect.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum qkv_theme { QKV_THEME_LIGHT, QKV_THEME_DARK } qkv_theme;

/**
 * Computes the colour of a weight t, which is clamped to [0, 1]. NaN is grey. The colour of 0 is
 * near that of the page. From there lightness is monotone, also for readers who do not tell red
 * from green.
 *
 * @param rgb  receives 0 to 255 each.
 */
QKV_API void qkv_picture_color(double t, qkv_theme theme, uint8_t rgb[3]);

/** The colours of a map. Lightness is monotone in each, also without red or without green. */
typedef enum qkv_palette {
    /* Those of qkv_picture_color, which begin near the colour of the page. */
    QKV_PALETTE_QKV = 0,
    /* From violet over green to yellow (van der Walt and Smith, 2015), in both themes. */
    QKV_PALETTE_VIRIDIS = 1,
    /* From blue over grey to yellow (Nunez, Anderton and Renslow, 2018), in both themes. */
    QKV_PALETTE_CIVIDIS = 2,
    /* From near the colour of the page to black, or to white, in even steps of CIE lightness. */
    QKV_PALETTE_GREYS = 3
} qkv_palette;

/** Which cells show their value in figures. */
typedef enum qkv_figures {
    /* Large cells, of at least an eighth of the top; not in a grid, and not with low and high. */
    QKV_FIGURES_AUTO = 0,
    /* All do. Cells are then made large enough: 28 pixels. */
    QKV_FIGURES_ON = 1,
    QKV_FIGURES_OFF = 2
} qkv_figures;

/**
 * One head: rows are queries, columns are keys.
 *
 * Colours run from 0 to a round number that is not below the largest weight. The scale beside the
 * map and a line that is added to the caption give this number. The line also says that weights
 * show mixing, not reasons. Large cells show their weight in figures. Maps of more than 4,096 rows
 * or columns are folded: a cell is then the largest of k x k weights, and the caption says so.
 */
typedef struct qkv_heatmap {
    size_t struct_size;
    /* 1 to 2^20. */
    int64_t n_rows, n_cols;
    /* [n_rows][n_cols] */
    const float *weights;
    /* NULL, or [n_rows] and [n_cols]. Entries may be NULL. */
    const char *const *row_labels;
    const char *const *col_labels;
    const char *title;
    /* What a cell means, and of which model, layer and head. */
    const char *caption;
    qkv_theme theme;
    /* What colours show, for the line about them. NULL: "weight". */
    const char *quantity;
    /*
     * Both 0: cells are weights. Otherwise cells are any values, and colours run from low to high;
     * values beyond have the colours of the ends. No cell shows figures then, and the line about
     * weights is left out.
     */
    double low, high;
    /* What goes down and across. NULL: "query" and "key". */
    const char *row_axis, *col_axis;
    /*
     * NULL, or [n_rows][n_cols]: 1 where the query does not see the key. There no cell is drawn,
     * and the weight is ignored.
     */
    const uint8_t *hidden;
    /*
     * 1: cells are values around 0, such as effects. Colours run from -top to top, a round number,
     * from ochre over the colour of the page to blue, and large cells show figures. low and high
     * must be 0.
     */
    int is_signed;
    /* Of values around 0 only QKV_PALETTE_QKV. */
    qkv_palette palette;
    qkv_figures figures;
    /* The longer side of all cells together, in pixels, or little less: 64 to 8192. 0: chosen. */
    int64_t size;
    /*
     * Where colours of weights begin and end. max = 0: at a round number, as above. Otherwise
     * weights beyond have the colours of the ends, and the line about colours says so. Of values
     * around 0, min is 0 or -max.
     */
    double min, max;
} qkv_heatmap;

/** Draws one head to `path`. */
QKV_API QKV_NODISCARD qkv_status qkv_picture_heatmap_write(const qkv_heatmap *map, const char *path,
                                                           qkv_error *error);

/** All heads at once, layers down and heads across, with one scale. */
typedef struct qkv_head_grid {
    size_t struct_size;
    int64_t n_layers, n_heads, n;
    /* [n_layers][n_heads][n_queries][n] */
    const float *weights;
    /* NULL, or [n_layers * n_heads]: a label below each map. Entries may be NULL. */
    const char *const *labels;
    const char *title, *caption;
    qkv_theme theme;
    /* 0: n. */
    int64_t n_queries;
    /* NULL, or as in qkv_heatmap: [n_queries][n] for all heads, or see hidden_of_heads. */
    const uint8_t *hidden;
    /* As in qkv_heatmap. size is that of one head. */
    qkv_palette palette;
    qkv_figures figures;
    int64_t size;
    double min, max;
    /* 1: hidden is [n_layers][n_heads][n_queries][n], since heads see different keys. */
    int hidden_of_heads;
    /* As in qkv_heatmap. */
    const char *quantity;
} qkv_head_grid;

/** Draws all heads to `path`. */
QKV_API QKV_NODISCARD qkv_status qkv_picture_grid_write(const qkv_head_grid *grid, const char *path,
                                                        qkv_error *error);

/**
 * Maps over an image, such as what each head looks at: layers down and heads across, or one map
 * with the image beside it.
 *
 * A map has [rows][columns] cells, each over cell_height x cell_width pixels of the image, from its
 * top left corner. Over them lies the colour of the weight, with `opacity`; the rest of the image
 * is as it is. Colours run from 0 to a round number that is not below the largest weight of all
 * maps. A line that is added to the caption says this, the opacity, and whether cells are smoothed.
 */
typedef struct qkv_image_maps {
    size_t struct_size;
    /* [height][width][3]: red, green and blue; 1 to 4096 a side. */
    const uint8_t *rgb;
    int64_t height, width;
    /* Cells of a map, which must lie in the image. */
    int64_t rows, columns, cell_height, cell_width;
    /* [n_layers][n_heads][rows][columns]; 1 to 4096 maps. NaN is grey. */
    int64_t n_layers, n_heads;
    const float *weights;
    /* NULL, or [n_layers * n_heads]: a label below each map. Entries may be NULL. */
    const char *const *labels;
    const char *title, *caption;
    qkv_theme theme;
    /* Opacity of the colours, above 0 and at most 1. 0 means 0.5. */
    double opacity;
    /* 1: weights are interpolated between the middles of cells (bilinear). 0: cells are crisp. */
    int smooth;
    /* 1: the colours of each map end at its own largest weight. */
    int own_scale;
    /* As in qkv_heatmap. size is that of one map. min and max only without own_scale. */
    qkv_palette palette;
    int64_t size;
    double min, max;
    /* What colours show. NULL: "weight". */
    const char *quantity;
    /*
     * NULL, or [n_layers * n_heads]: images under the maps, each like rgb, in place of it. Then
     * only labels name the maps.
     */
    const uint8_t *const *images;
} qkv_image_maps;

/** Draws maps over an image to `path`. */
QKV_API QKV_NODISCARD qkv_status qkv_picture_image_write(const qkv_image_maps *maps,
                                                         const char *path, qkv_error *error);

/** A curve, such as the loss of a training run. A point that is not finite leaves a gap. */
typedef struct qkv_curve {
    size_t struct_size;
    int64_t n;
    /* [n]; x ascends. */
    const double *x, *y;
    const char *x_label, *y_label, *title, *caption;
    qkv_theme theme;
} qkv_curve;

/** Draws a curve to `path`. */
QKV_API QKV_NODISCARD qkv_status qkv_picture_curve_write(const qkv_curve *curve, const char *path,
                                                         qkv_error *error);

/** How a series of a chart is drawn. */
typedef enum qkv_series_style {
    QKV_SERIES_LINE = 0,
    /* A line, filled down to 0. */
    QKV_SERIES_AREA = 1,
    /* Bars from 0. Where they would be thinner than two pixels, a bar is the largest of several. */
    QKV_SERIES_BARS = 2
} qkv_series_style;

typedef struct qkv_series {
    /* NULL, or the name in the legend. */
    const char *name;
    /* [n]. A value that is not finite is a gap. */
    const double *y;
    qkv_series_style style;
} qkv_series;

/** One field of a chart, with its own y axis. */
typedef struct qkv_panel {
    const char *y_label;
    /* 1: powers of ten. Values that are not above 0 are gaps, and a note says so. */
    int log_y;
    /* 1: the axis begins at 0. With areas and bars it always does. */
    int from_zero;
    /* 1 to 4. */
    int64_t n_series;
    const qkv_series *series;
} qkv_panel;

/**
 * Numbers over positions, distances or anything else: up to four panels on one x axis.
 *
 * Series of a panel differ in colour and dashes and, where points are few, in marks. So they can be
 * told apart in grey and with any colour vision. The four colours are from Okabe and Ito (2008) and
 * Tol (2018), with a contrast of at least 3 to the page. If there are several series, a legend
 * names them.
 *
 * With labels, each position has its label below, if there is room for all (64), and a number
 * otherwise. More than 1,280 points share pixels. Lines and areas are then a mean over four pixels,
 * with a band from the smallest to the largest value, and the caption says so.
 *
 * Path: may also end in .csv. The file is then a table with a column for x, one for labels and one
 *     for each series, by name.
 * Points: 1 to 2^20; 2^22 numbers in all.
 */
typedef struct qkv_chart {
    size_t struct_size;
    int64_t n;
    /* [n], never falling, finite. NULL: 0, 1, ... */
    const double *x;
    /* NULL, or [n]. Entries may be NULL. Only if x is NULL. */
    const char *const *labels;
    const char *x_label;
    /* 1: values of x that are not above 0 have no place, and a note says so. */
    int log_x;
    /* 1 to 4, one below the other. */
    int64_t n_panels;
    const qkv_panel *panels;
    /* sizeof(qkv_panel) and sizeof(qkv_series). */
    size_t panel_bytes, series_bytes;
    const char *title, *caption;
    qkv_theme theme;
} qkv_chart;

/** Draws a chart to `path`. */
QKV_API QKV_NODISCARD qkv_status qkv_picture_chart_write(const qkv_chart *chart, const char *path,
                                                         qkv_error *error);

/**
 * What one head does, position by position (qkv_heads_position), for three charts. Each function
 * reads only the arrays of its chart, and adds to the caption what they are. Paths are those of
 * charts.
 */
typedef struct qkv_head_profile {
    size_t struct_size;
    /* 1 to 2^19. */
    int64_t n_queries, n_keys;
    /* [n_queries]: of each query's weights, the entropy in nats and the largest one. */
    const double *entropy, *largest;
    /* [n_keys]: the weight of each key, summed over all queries. */
    const double *received;
    /*
     * [n_queries + n_keys - 1]: the mean weight of key i + d for query i, in ascending order of d,
     * from d = -(n_queries - 1).
     */
    const double *by_offset;
    /* NULL, or tokens: [n_queries] and [n_keys]. Entries may be NULL. */
    const char *const *queries;
    const char *const *keys;
    const char *title, *caption;
    qkv_theme theme;
    /* 1: queries see keys up to their own place only. The caption of received then says so. */
    int causal;
} qkv_head_profile;

/** Draws entropy and largest weight over the queries, in two panels. */
QKV_API QKV_NODISCARD qkv_status qkv_picture_queries_write(const qkv_head_profile *profile,
                                                           const char *path, qkv_error *error);

/** Draws `received`, with a bar for each key. */
QKV_API QKV_NODISCARD qkv_status qkv_picture_received_write(const qkv_head_profile *profile,
                                                            const char *path, qkv_error *error);

/**
 * Draws by_offset, the diagonal profile, on a logarithmic axis. A picture leaves out zeros at both
 * ends. The first column of a table is called offset.
 */
QKV_API QKV_NODISCARD qkv_status qkv_picture_offsets_write(const qkv_head_profile *profile,
                                                           const char *path, qkv_error *error);

/** Of a map of points: lines of a smaller weight are not drawn. */
#define QKV_LEAST_LINE 0.01

/**
 * Points in the plane: queries are discs, keys are triangles, and both axes have one scale.
 *
 * A point has its label beside it if there is room, so that no label touches points, lines or other
 * labels. Points to which lines go come first. Where there is no room beside a point, and there are
 * at most 256, its label stands farther off, with a thin line between. Labels without room are left
 * out. A line that is added to the caption says how many, and what span the picture shows. Lines go
 * from the point `from` to keys, and are as wide as their weights.
 */
typedef struct qkv_point_map {
    size_t struct_size;
    /* Together 1 to 2^16. */
    int64_t n_queries, n_keys;
    /* [n_queries + n_keys][2], queries first; finite. */
    const double *xy;
    /* NULL, or [n_queries + n_keys]. Entries may be NULL. */
    const char *const *labels;
    /* 0 to 64. */
    int64_t n_lines;
    /* A query. Lines begin there, and it is drawn larger. */
    int64_t from;
    /* [n_lines]: keys. */
    const int64_t *to;
    /* [n_lines]: 0 to 1. Lines are as wide as their weights, from QKV_LEAST_LINE on. */
    const double *weights;
    const char *title, *caption;
    qkv_theme theme;
    /* The names in the legend. NULL: "query" and "key". */
    const char *query_name, *key_name;
    /* The width of the field in pixels: 320 to 8192. 0: 1280. */
    int64_t size;
} qkv_point_map;

/** Draws a map of points to `path`. */
QKV_API QKV_NODISCARD qkv_status qkv_picture_points_write(const qkv_point_map *map,
                                                          const char *path, qkv_error *error);

#ifdef __cplusplus
}
#endif
#endif
