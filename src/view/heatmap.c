/**
 * The heat map of one head.
 *
 *                      column labels, horizontal or rotated by 45 degrees
 *     row labels       cells                                              scale
 *
 * Labels always fit: column labels are horizontal if all of them fit their cells, else rotated;
 * their size shrinks with cells; long ones have an ellipsis in the middle; and if cells are lower
 * than a line of text, only every n-th row and column has a label.
 */
#include <math.h>

#include "core/options.h"
#include "view/cells.h"
#include "view/palette.h"

enum {
    SIDE = 1056,      /* of the cells of a short sentence; longer ones grow … */
    LONG_SIDE = 2800, /* … to this, by cells of LEAST_READABLE … */
    HUGE_SIDE = 8192, /* … and then to this, by cells of 2 pixels */
    LEAST_READABLE = 28,
    MAX_CELL = 96,
    MAX_LABEL = 330, /* pixels of a label's width */
    LABEL_GAP = 16,
    SCALE_GAP = 48,
    MAX_N = 1 << 20
};

static const double quarter_turn = -0.78539816339744831; /* 45 degrees up */

/* Where everything goes, in pixels from the corner of the content. */
struct plan {
    qkvi_cells cells;
    qkvi_scale scale;
    char **rows, **cols; /* labels as shown, one per weight row and column; NULL: none */
    qkvi_line row_style, col_style;
    int64_t stride; /* every stride-th cell is named */
    double left, top, width, height, overhang;
};

static void free_labels(char **labels, int64_t n) {
    for (int64_t i = 0; labels && i < n; i++) free(labels[i]);
    free(labels);
}

static qkv_status show_labels(const char *const *labels, int64_t n, char ***shown) {
    *shown = NULL;
    if (labels == NULL) return QKV_OK;
    *shown = qkvi_calloc_array((size_t)n, sizeof **shown);
    for (int64_t i = 0; *shown && i < n; i++) {
        (*shown)[i] = qkvi_shown(labels[i]);
        if ((*shown)[i] == NULL) return QKV_ERR_MEMORY;
    }
    return *shown ? QKV_OK : QKV_ERR_MEMORY;
}

static int holds_values(const qkv_heatmap *map) { return map->low != 0 || map->high != 0; }

static qkvi_asked asked_of(const qkv_heatmap *map) {
    return (qkvi_asked){ map->palette, map->figures, map->size, map->min, map->max };
}

static int64_t longer_side(const qkv_heatmap *map) {
    return map->n_rows > map->n_cols ? map->n_rows : map->n_cols;
}

static qkvi_cells fit(const qkv_heatmap *map) {
    const int64_t n = longer_side(map), with_figures = n * QKVI_FIGURE_CELL;
    if (map->size)
        return qkvi_cells_fit(map->weights, map->n_rows, map->n_cols, (int)map->size, 1,
                              (int)map->size);
    if (map->figures == QKV_FIGURES_ON && with_figures > LONG_SIDE &&
        with_figures <= QKVI_MOST_SIZE)
        return qkvi_cells_fit(map->weights, map->n_rows, map->n_cols, (int)with_figures, 1,
                              QKVI_FIGURE_CELL);
    if (n * LEAST_READABLE <= LONG_SIDE) {
        const int side = n * LEAST_READABLE > SIDE ? (int)n * LEAST_READABLE : SIDE;
        return qkvi_cells_fit(map->weights, map->n_rows, map->n_cols, side, 1, MAX_CELL);
    }
    const int side = n * 2 > LONG_SIDE ? HUGE_SIDE : LONG_SIDE;
    return qkvi_cells_fit(map->weights, map->n_rows, map->n_cols, side, 2,
                          side == HUGE_SIDE ? 2 : LEAST_READABLE);
}

static double widest(const qkvi_frame *frame, char *const *labels, int64_t n, int64_t stride,
                     const qkvi_line *style) {
    double width = 0;
    for (int64_t i = 0; labels && i < n; i += stride)
        width = fmax(width, qkvi_line_width(&frame->type, labels[i], style));
    return fmin(ceil(width), MAX_LABEL);
}

static void plan_labels(const qkvi_frame *frame, const qkv_heatmap *map, struct plan *plan) {
    const int cell = plan->cells.cell;
    const double grown = fmax(1, (double)map->size / SIDE);
    const double size = fmin(25 * grown, fmax(15, floor(cell * 0.62)));
    const int64_t step = cell >= 20 ? 1 : (20 + cell - 1) / cell;
    plan->stride = step * plan->cells.fold;
    plan->row_style = (qkvi_line){
        .size = size, .max_width = MAX_LABEL, .color = frame->palette->text, .align = 1
    };
    plan->col_style = plan->row_style;
    plan->left = widest(frame, plan->rows, map->n_rows, plan->stride, &plan->row_style) + LABEL_GAP;
    const double wide = widest(frame, plan->cols, map->n_cols, plan->stride, &plan->col_style);
    if (wide <= cell - 10) {
        plan->col_style.align = 0.5;
        plan->top = size + LABEL_GAP;
    } else {
        plan->col_style.align = 0;
        plan->col_style.turn = quarter_turn;
        plan->top = ceil((wide + size) * M_SQRT1_2) + LABEL_GAP;
        plan->overhang = fmax(0, wide * M_SQRT1_2 - cell / 2.0);
    }
    if (plan->cols == NULL) plan->top = 0;
    if (plan->rows == NULL) plan->left = 0;
}

static qkv_status plan_all(const qkvi_frame *frame, const qkv_heatmap *map, struct plan *plan,
                           qkv_error *error) {
    const qkvi_asked asked = asked_of(map);
    plan->cells = fit(map);
    QKV_TRY(qkvi_asked_room(&asked, longer_side(map), plan->cells.cell, plan->cells.fold, error));
    plan->cells.hidden = map->hidden;
    plan->scale = map->is_signed      ? qkvi_scale_signed(map->weights, map->n_rows * map->n_cols)
                  : holds_values(map) ? qkvi_scale_between(map->low, map->high)
                                      : qkvi_scale_of(map->weights, map->n_rows * map->n_cols,
                                                      map->hidden, map->n_rows * map->n_cols);
    QKV_TRY(qkvi_asked_scale(&asked, &plan->scale, error));
    plan_labels(frame, map, plan);
    plan->width = (double)(qkvi_cells_cols(&plan->cells) * plan->cells.cell);
    plan->height = (double)(qkvi_cells_rows(&plan->cells) * plan->cells.cell);
    return QKV_OK;
}

static void draw_labels(const qkvi_frame *frame, const struct plan *plan, double x, double y) {
    const qkvi_cells *cells = &plan->cells;
    const double half = (cells->cell - cells->gap) / 2.0;
    for (int64_t i = 0; plan->rows && i < cells->n_rows; i += plan->stride) {
        const double at = y + (double)(i / cells->fold * cells->cell) + half;
        qkvi_line_draw(&frame->type, frame->cr, plan->rows[i], &plan->row_style, x - LABEL_GAP, at);
    }
    const double lift =
        plan->col_style.turn != 0 ? LABEL_GAP - 4 : LABEL_GAP / 2.0 + plan->col_style.size / 2;
    for (int64_t j = 0; plan->cols && j < cells->n_cols; j += plan->stride) {
        const double at = x + (double)(j / cells->fold * cells->cell) + half;
        qkvi_line_draw(&frame->type, frame->cr, plan->cols[j], &plan->col_style, at, y - lift);
    }
}

/* Which way to read: in the corner between the labels. */
static qkv_status draw_directions(const qkvi_frame *frame, const qkv_heatmap *map,
                                  const struct plan *plan, double x, double y) {
    const qkvi_line style = { .size = 17, .color = frame->palette->faint, .align = 1 };
    char text[2][80];
    if (plan->rows == NULL || plan->cols == NULL || plan->top < 60 || plan->left < 110)
        return QKV_OK;
    char *across = qkvi_shown(map->col_axis ? map->col_axis : "key");
    char *down = qkvi_shown(map->row_axis ? map->row_axis : "query");
    if (across && down) {
        snprintf(text[0], sizeof text[0], "%.60s \xE2\x86\x92", across);
        snprintf(text[1], sizeof text[1], "%.60s \xE2\x86\x93", down);
        qkvi_line_draw(&frame->type, frame->cr, text[0], &style, x - LABEL_GAP, y - 44);
        qkvi_line_draw(&frame->type, frame->cr, text[1], &style, x - LABEL_GAP, y - 18);
    }
    const int done = across && down;
    free(across);
    free(down);
    return done ? QKV_OK : QKV_ERR_MEMORY;
}

/* What colours mean, which only the picture knows. */
static void make_note(const qkv_heatmap *map, const struct plan *plan, char *note, size_t bytes) {
    char low[32], high[32], folded[80] = "", nan[48] = "";
    const int64_t fold = plan->cells.fold;
    const double ends[2] = { plan->scale.low, plan->scale.top };
    if (!holds_values(map) && !map->is_signed) {
        qkvi_scale_note(note, bytes, &plan->scale, fold, map->quantity);
        return;
    }
    const int decimals = map->is_signed ? plan->scale.decimals : 2;
    qkvi_number(low, sizeof low, ends[0], ends[0] == floor(ends[0]) ? 0 : decimals);
    qkvi_number(high, sizeof high, ends[1], ends[1] == floor(ends[1]) ? 0 : decimals);
    if (fold > 1)
        snprintf(folded, sizeof folded, " A cell shows the largest of %lld \xC3\x97 %lld values.",
                 (long long)fold, (long long)fold);
    if (map->is_signed && plan->scale.has_nan)
        snprintf(nan, sizeof nan, " %s: not a number.", qkvi_palette_nan(QKV_PALETTE_QKV));
    snprintf(note, bytes, "Colours run from %s to %s%s.%s%s", low, high,
             plan->scale.given ? ", and what is beyond has the colour of the end" : "", folded,
             nan);
}

static qkv_status draw(qkvi_frame *frame, const qkv_heatmap *map, struct plan *plan,
                       qkv_error *error) {
    char note[400];
    QKV_TRY(plan_all(frame, map, plan, error));
    make_note(map, plan, note, sizeof note);
    const double scale_height = fmax(plan->height - plan->cells.gap, 160);
    const double right = fmax(plan->overhang, SCALE_GAP + QKVI_SCALE_WIDTH);
    QKV_TRY(qkvi_frame_begin(frame, map->title, map->caption, note,
                             plan->left + plan->width + right,
                             plan->top + fmax(plan->height, scale_height), error));
    const double x = ceil(frame->x + plan->left), y = ceil(frame->y + plan->top);
    qkvi_cells_draw(frame, &plan->cells, &plan->scale, x, y);
    if (!holds_values(map) || map->figures == QKV_FIGURES_ON)
        qkvi_cells_figures(frame, &plan->cells, &plan->scale, map->figures, x, y);
    draw_labels(frame, plan, x, y);
    if (draw_directions(frame, map, plan, x, y) != QKV_OK)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for the names of the axes");
    qkvi_scale_draw(frame, &plan->scale, x + plan->width + SCALE_GAP, y, scale_height);
    return qkvi_frame_save(frame, error);
}

static qkv_status check(const qkv_heatmap *map, const char *path, qkv_error *error) {
    if (path == NULL || map->weights == NULL)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", path ? "weights" : "path");
    if (map->n_rows < 1 || map->n_cols < 1 || map->n_rows > MAX_N || map->n_cols > MAX_N)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "n_rows = %lld, n_cols = %lld: each must be 1 to %d",
                              (long long)map->n_rows, (long long)map->n_cols, MAX_N);
    if (holds_values(map) && map->is_signed)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "low = %g, high = %g: both must be 0 where is_signed is set",
                              map->low, map->high);
    if (holds_values(map) && !(map->low < map->high && fabs(map->low) < 1e9 && map->high < 1e9))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "low = %g, high = %g: low must be below high, both below 1e9",
                              map->low, map->high);
    const qkvi_asked asked = asked_of(map);
    return qkvi_asked_check(&asked, map->is_signed ? 1 : holds_values(map) ? 2 : 0, error);
}

qkv_status qkv_picture_heatmap_write(const qkv_heatmap *given, const char *path, qkv_error *error) {
    qkv_heatmap map = { 0 };
    if (given == NULL) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "map is NULL");
    QKV_TRY(qkvi_options_read(&map, sizeof map, given, "qkv_heatmap", error));
    QKV_TRY(check(&map, path, error));
    struct plan plan = { 0 };
    qkvi_frame frame;
    qkv_status status = qkvi_frame_open(&frame, path, map.theme, error);
    if (status == QKV_OK && (show_labels(map.row_labels, map.n_rows, &plan.rows) != QKV_OK ||
                             show_labels(map.col_labels, map.n_cols, &plan.cols) != QKV_OK))
        status = qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for the labels");
    if (status == QKV_OK) status = draw(&frame, &map, &plan, error);
    free_labels(plan.rows, map.n_rows);
    free_labels(plan.cols, map.n_cols);
    qkvi_frame_close(&frame);
    return status;
}
