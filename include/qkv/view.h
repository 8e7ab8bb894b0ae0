/**
 * qkv pictures: heat maps, grids of heads, curves, charts and maps of points as PNG, SVG or PDF, by
 * cairo and pango; and a page for a browser.
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
    const char *quantity; /* what colours show, in the line about them; NULL: "weight" */
    /*
     * Both 0: weights. Otherwise cells hold any values, colours run from low to high (values beyond
     * them have the colours at the ends), no cell shows figures and the line about weights is left out.
     */
    double low, high;
    const char *row_axis, *col_axis; /* what goes down and across; NULL: "query" and "key" */
    const uint8_t
        *hidden; /* [n_rows][n_cols] 1: the query does not see the key: no cell is drawn, and
                              the weight is not looked at; nullable */
} qkv_heatmap;

QKV_API QKV_NODISCARD qkv_status qkv_view_heatmap_write(const qkv_heatmap *map, const char *path,
                                                        qkv_error *error);

/** All heads at once, layers down and heads across, on one scale. */
typedef struct qkv_head_grid {
    size_t struct_size;
    int64_t n_layers, n_heads, n;
    const float *weights;      /* [n_layers][n_heads][n_queries][n] */
    const char *const *labels; /* [n_layers * n_heads], below each map; nullable, entries too */
    const char *title, *caption;
    qkv_theme theme;
    int64_t n_queries;     /* 0: n */
    const uint8_t *hidden; /* [n_queries][n] of all heads, as in qkv_heatmap; nullable */
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

/** How a series of a chart is drawn. */
typedef enum qkv_series_style {
    QKV_SERIES_LINE = 0,
    QKV_SERIES_AREA = 1, /* a line, filled down to 0 */
    QKV_SERIES_BARS =
        2 /* from 0; where they would be thinner than two pixels the largest of several */
} qkv_series_style;

typedef struct qkv_series {
    const char *name; /* in the legend; nullable */
    const double *y;  /* [n]; one that is not finite is a gap */
    qkv_series_style style;
} qkv_series;

/** One field of a chart, with a y axis of its own. */
typedef struct qkv_panel {
    const char *y_label;
    int log_y;        /* powers of ten; what is not above 0 is a gap, and a note says so */
    int from_zero;    /* the axis begins at 0; areas and bars need no asking */
    int64_t n_series; /* 1 ... 4 */
    const qkv_series *series;
} qkv_panel;

/**
 * Numbers over positions, distances or anything else: up to four panels on one x axis.
 *
 * Series of a panel differ in colour, in dashes and, where points are few, in marks, so they can be told
 * apart in grey and by everybody; colours are four of Okabe and Ito (2008) and Tol (2018), with a contrast
 * of at least 3 to the page. A legend names them where there are several. With labels each position has
 * its own below, as long as there is room for all (64), numbers otherwise. Of more than 1,280 points, which
 * share pixels, lines and areas are a mean over four pixels and a band from the smallest to the largest,
 * and the caption says so.
 *   Path    also .csv: a table with a column for x, one for labels and one for each series, by name.
 *   Points  1 ... 2^20; 2^22 numbers in all.
 * Text, file, bytes and return are as for pictures.
 */
typedef struct qkv_chart {
    size_t struct_size;
    int64_t n;
    const double *x;           /* [n], never falling, finite; NULL: 0, 1, ... */
    const char *const *labels; /* [n]; nullable, as are its entries; only without x */
    const char *x_label;
    int log_x;        /* what is not above 0 has no place, and a note says so */
    int64_t n_panels; /* 1 ... 4, one below the other */
    const qkv_panel *panels;
    const char *title, *caption;
    qkv_theme theme;
} qkv_chart;

QKV_API QKV_NODISCARD qkv_status qkv_view_chart_write(const qkv_chart *chart, const char *path,
                                                      qkv_error *error);

/** What one head does, position by position (qkv_inspect_profile), as charts. */
typedef struct qkv_head_profile {
    size_t struct_size;
    int64_t n_queries, n_keys;
    const double *entropy,
        *largest;            /* [n_queries]: of each query's weights, in nats; the largest */
    const double *received;  /* [n_keys]: weight over all queries */
    const double *by_offset; /* [n_queries + n_keys - 1]: mean weight of key i + d for query i, from
                                        d = -(n_queries - 1) on */
    const char *const *queries; /* [n_queries]: tokens; nullable, as are their entries */
    const char *const *keys;    /* [n_keys] */
    const char *title, *caption;
    qkv_theme theme;
    int causal; /* 1: queries see keys up to their place only, as the caption of received then says */
} qkv_head_profile;

/**
 * queries: entropy and largest weight over the queries, in two panels. received: a bar for each key.
 * offsets: the diagonal profile, on a logarithmic axis; a picture leaves out zeros at both ends. Each
 * reads only its own arrays and adds to the caption what they are; the first column of offsets as a
 * table is called offset. n_queries and n_keys are 1 ... 2^19.
 * Paths, bytes and return are as for charts.
 */
QKV_API QKV_NODISCARD qkv_status qkv_view_queries_write(const qkv_head_profile *profile,
                                                        const char *path, qkv_error *error);
QKV_API QKV_NODISCARD qkv_status qkv_view_received_write(const qkv_head_profile *profile,
                                                         const char *path, qkv_error *error);
QKV_API QKV_NODISCARD qkv_status qkv_view_offsets_write(const qkv_head_profile *profile,
                                                        const char *path, qkv_error *error);

/** One head of a page. */
typedef struct qkv_page_head {
    int64_t layer, head; /* from 0 */
    const float *q, *k,
        *lse; /* [n_queries][head_dim], [n][head_dim], [n_queries]: as qkv_capture */
    const qkv_head_stats *stats; /* nullable */
    const double *map, *pca; /* [n_queries + n][2]: places of queries, of keys; both or neither */
    const char *map_note;    /* how map was made and what it is worth, or why there is none */
    int64_t run;             /* which of the page's texts, from 0 */
    /* Of long texts, where only some queries are looked at otherwise; each nullable: */
    const float *received; /* [n]: sums over all queries of their weights on a key */
    const float *distance; /* [n_queries]: sums over keys of p |i + q_offset - j| of each query */
    const float *peaks;    /* [ceil(n_queries / tile)][side]: the largest weight of each tile */
    int64_t side;          /* of peaks: 1 ... 1024, ceil(n / tile) */
    int64_t tile;          /* queries and keys of a tile; 0: ceil(n / side) */
    /* How a score is made, beside what the page says of all heads: */
    double alibi;      /* adds alibi (j - i - q_offset) to a score; 0: none */
    const float *sink; /* [1]: a score of no key, in lse only; nullable */
    const uint8_t
        *mask;   /* [n_queries][ceil(n / 8)]: bit j % 8 of byte j / 8, 1: query i may see key
                            j; nullable */
    float scale; /* of this head's scores, in place of the page's; 0: the page's */
} qkv_page_head;

/** One text of several, as those of qkv_page. */
typedef struct qkv_page_run {
    const char *name;          /* by which it is chosen */
    const char *const *tokens; /* [n], and so on: nullable ones, too */
    const uint8_t *special, *segments;
    const int32_t *words;
} qkv_page_run;

enum {
    QKV_PAGE_CAUSAL = 1u << 0,   /* query i sees keys j <= i + q_offset */
    QKV_PAGE_WINDOW = 1u << 1,   /* -window_left <= j - i - q_offset <= window_right; -1: any */
    QKV_PAGE_TWO_TEXTS = 1u << 2 /* with `queries`: they have no places among keys, as in
                                    cross-attention, so nothing is said about distances; alone */
};

/**
 * Heads of one text as a page for a browser: one .html file that needs no network and holds q, k and
 * lse, from which its script computes any weight and shows it:
 *
 *     s_ij = softcap(scale q_i . k_j) + alibi (j - i - q_offset)        softcap(x) = c tanh(x / c)
 *     p_ij = exp(s_ij - lse_i)    for the keys that query i may see, which are those with
 *            j <= i + q_offset (causal), -window_left <= j - i - q_offset <= window_right (window),
 *            not dropped, and with a bit in the head's mask; all others have 0
 *
 *   Shapes    n tokens, each a query and a key, or (queries) n keys and n_queries others that look at
 *             them; head_dim is the same for all heads.
 *   Size      about 4/3 (8 or 4) n head_dim bytes a head, with a map 22 n more, with a mask n n_queries
 *             / 6, and 0.1 MB: never a number for each weight.
 *   Accuracy  q and k are written as f32 up to 64 tokens and wherever f16 would move a weight by more
 *             than 1e-3, as f16 otherwise. All rows are measured up to 2,048 x 2,048 weights, 512 above.
 *   Limit     Heads are taken in the order given until the file would pass limit_bytes (0: no limit);
 *             the first is always in it, and is the one that is shown first.
 *   Special   A row with lse = -INFINITY sees no key: its weights are 0. NaN stays NaN and is drawn so.
 *             Places on maps must be finite.
 *   Refused   Masks that are added (a bias other than ALiBi), chunks, prefixes and block masks as such:
 *             the last three as bits of a mask. Queries of their own together with runs.
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
    const uint8_t *dropped; /* [n]: 1 for tokens that no query sees as a key; nullable */
    const char *modified;   /* a badge, where this is not what a model computed; nullable */
    int64_t
        n_runs; /* texts of n tokens each, of which a reader chooses one: 0 ... 2^16; 0: tokens, special, … */
    const qkv_page_run *runs; /* [n_runs]: in place of tokens, special, segments and words */
    /* Cross-attention: other queries than keys, of which the fields above are; their tokens and so on. */
    int64_t n_queries;           /* 0: n */
    const qkv_page_run *queries; /* [1], of n_queries tokens; NULL: those of keys */
    int64_t q_offset; /* place of query 0 among the keys: of masks, ALiBi and distances */
    double softcap;   /* 0: none */
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
    const char *query_name, *key_name; /* in the legend; NULL: "query" and "key" */
} qkv_point_map;

QKV_API QKV_NODISCARD qkv_status qkv_view_points_write(const qkv_point_map *map, const char *path,
                                                       qkv_error *error);

#ifdef __cplusplus
}
#endif
#endif
