/**
 * qkv pictures: heat maps, grids of heads, curves and maps of points as PNG, SVG or PDF, by cairo
 * and pango; and a page for a browser.
 *
 * What pictures do:
 *   Text    Titles, captions and labels are any bytes; what cannot be shown (broken UTF-8, control,
 *           invisible and direction-changing characters) is shown escaped. NULL is no text. A
 *           caption wraps, its line breaks stay. Labels always fit: turned, smaller, or without
 *           their middle. Glyphs come from DejaVu Sans, then from whatever the system has.
 *   File    Its ending decides: .png, .svg or .pdf. Written beside path and renamed, so path holds
 *           a whole picture or what it held before. Title and caption are in it: a PNG has iTXt
 *           chunks "Title" and "Description", an SVG <title> and <desc>, a PDF Title and Subject.
 *   Size    A PNG has 192 pixels to the inch; SVG and PDF have the same size in inches. Text in
 *           them can be searched and selected: a PDF embeds the glyphs that it shows, an SVG has
 *           them as outlines, with the same text unseen above. Maps of up to 10,000 cells are
 *           vectors, larger ones and those without gaps between cells are images.
 *   Bytes   The same input gives the same bytes on one installation, whatever locale and
 *           environment; another version of cairo, pango or the fonts may give others. A PDF
 *           holds no date.
 *   Memory  4 bytes a pixel of a PNG; no picture has more than 32,767 pixels a side
 *           (QKV_ERR_LIMIT). glib ends the process if it finds no memory.
 *   Return  QKV_OK; QKV_ERR_ARGUMENT for a NULL that must not be, an unknown ending or theme or a
 *           struct_size that is too small; QKV_ERR_VERSION; QKV_ERR_SHAPE; QKV_ERR_LIMIT; QKV_ERR_IO;
 *           QKV_ERR_MEMORY.
 */
#ifndef QKV_VIEW_H
#define QKV_VIEW_H

#include "qkv/inspect.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum qkv_theme { QKV_THEME_LIGHT, QKV_THEME_DARK } qkv_theme;

/**
 * Colour of a weight t in [0, 1] (clamped; NaN: grey): near the page at 0, and from there monotone
 * in lightness, also for those who do not tell red from green. rgb in 0 … 255.
 */
QKV_API void qkv_view_color(double t, qkv_theme theme, uint8_t rgb[3]);

/**
 * One head: rows are queries, columns are keys.
 *
 * Colours run from 0 to a round number not below the largest weight; the scale beside the map and a
 * line that is added to the caption say which, and that weights show mixing, not reasons. Large
 * cells show their weight in figures. Maps of more than 4,096 rows or columns are folded: a cell is
 * then the largest of k x k weights, which the caption says, too.
 */
typedef struct qkv_heatmap {
    size_t struct_size;
    int64_t n_rows, n_cols;        /* 1 ... 2^20 */
    const float *weights;          /* [n_rows][n_cols] */
    const char *const *row_labels; /* nullable, as are its entries */
    const char *const *col_labels;
    const char *title;
    const char *caption; /* what a cell means, from which model, layer and head */
    qkv_theme theme;
} qkv_heatmap;

QKV_API QKV_NODISCARD qkv_status qkv_view_heatmap_write(const qkv_heatmap *map, const char *path,
                                                        qkv_error *error);

/** All heads at once, layers down and heads across, on one scale. */
typedef struct qkv_head_grid {
    size_t struct_size;
    int64_t n_layers, n_heads, n;
    const float *weights;      /* [n_layers][n_heads][n][n] */
    const char *const *labels; /* [n_layers * n_heads], below each map; nullable, entries too */
    const char *title, *caption;
    qkv_theme theme;
} qkv_head_grid;

QKV_API QKV_NODISCARD qkv_status qkv_view_grid_write(const qkv_head_grid *grid, const char *path,
                                                     qkv_error *error);

/** A curve, such as the loss of a training run. A point that is not finite leaves a gap. */
typedef struct qkv_curve {
    size_t struct_size;
    int64_t n;
    const double *x, *y; /* [n], x ascending */
    const char *x_label, *y_label, *title, *caption;
    qkv_theme theme;
} qkv_curve;

QKV_API QKV_NODISCARD qkv_status qkv_view_curve_write(const qkv_curve *curve, const char *path,
                                                      qkv_error *error);

/** One head of a page. */
typedef struct qkv_page_head {
    int64_t layer, head;         /* from 0 */
    const float *q, *k, *lse;    /* [n][head_dim], [n][head_dim], [n]: as qkv_capture has them */
    const qkv_head_stats *stats; /* nullable */
    const double *map, *pca;     /* [2 n][2]: places of queries, then of keys; both or neither */
    const char *map_note;        /* how map was made and what it is worth, or why there is none */
} qkv_page_head;

enum {
    QKV_PAGE_CAUSAL = 1u << 0, /* query i sees keys j <= i */
    QKV_PAGE_WINDOW = 1u << 1  /* -window_left <= j - i <= window_right; -1: any */
};

/**
 * Heads of one text as a page for a browser: one .html file that needs no network and holds q, k and
 * lse, from which its script computes any weight, p_ij = exp(scale q_i . k_j - lse_i), and shows it.
 *
 *   Shapes    n tokens, each a query and a key; head_dim is the same for all heads.
 *   Size      about 4/3 (8 or 4) n head_dim bytes a head, with a map 22 n more, and 0.1 MB: never n x n.
 *   Accuracy  q and k are written as f32 up to 64 tokens and wherever f16 would move a weight by more
 *             than 1e-3, as f16 otherwise. All rows are measured up to 2,048 tokens, 512 above.
 *   Limit     Heads are taken in the order given until the file would pass limit_bytes (0: no limit);
 *             the first is always in it, and is the one that is shown first.
 *   Special   A row with lse = -INFINITY sees no key: its weights are 0. NaN stays NaN and is drawn so.
 *             Places on maps must be finite.
 *   Time      n x n x head_dim multiplications a head (512 x n x head_dim above 2,048 tokens), one thread.
 *   Memory    the file, up to twice while it grows, and 8 n head_dim bytes.
 * Text, file, bytes and return are as for pictures; docs/page.md has the format.
 */
typedef struct qkv_page {
    size_t struct_size;
    int64_t n, head_dim; /* 1 ... 2^20, 1 ... 2^12 */
    float scale;
    uint32_t flags;                    /* QKV_PAGE_... */
    int64_t window_left, window_right; /* with QKV_PAGE_WINDOW */
    int64_t query;                     /* selected first; -1: the first that is not special */
    const char *const *tokens;         /* [n] */
    const uint8_t *special;            /* [n]: 1 for special tokens; nullable */
    const uint8_t *segments;           /* [n]: 0 and 1 for the texts of a pair; nullable */
    const int32_t *words;              /* [n]: tokens of one word have one number; nullable */
    int64_t n_heads;                   /* 1 ... 2^16 */
    const qkv_page_head *heads;
    const char *title, *caption; /* what was run, on which model */
    int64_t limit_bytes;
} qkv_page;

/** What became of it. */
typedef struct qkv_page_result {
    int64_t n_bytes, n_heads, n_f16; /* of the file; heads in it; those whose q and k are f16 */
    double max_error;                /* by which a weight moved in those, at most */
} qkv_page_result;

/** result is nullable, and written on success only. */
QKV_API QKV_NODISCARD qkv_status qkv_view_page_write(const qkv_page *page, const char *path,
                                                     qkv_page_result *result, qkv_error *error);

/**
 * Points in the plane: queries are discs, keys triangles, one scale for both axes.
 *
 * Each point has its label beside it where one finds room, without touching points, lines or other
 * labels; points that lines lead to come first. Labels that find none are left out, and a line that
 * is added to the caption says how many, and what span the picture shows. Lines lead from the point
 * `from` to keys and are as wide as their weights.
 */
typedef struct qkv_point_map {
    size_t struct_size;
    int64_t n_queries, n_keys; /* together 1 ... 2^16 */
    const double *xy;          /* [n_queries + n_keys][2], queries first; finite */
    const char *const *labels; /* [n_queries + n_keys]; nullable, as are its entries */
    int64_t n_lines;           /* 0 ... 64 */
    int64_t from;              /* a query: where lines begin, and drawn larger */
    const int64_t *to;         /* [n_lines]: keys */
    const double *weights;     /* [n_lines]: 0 ... 1 */
    const char *title, *caption;
    qkv_theme theme;
} qkv_point_map;

QKV_API QKV_NODISCARD qkv_status qkv_view_points_write(const qkv_point_map *map, const char *path,
                                                       qkv_error *error);

#ifdef __cplusplus
}
#endif
#endif
