/**
 * All heads in one picture: a small map each, a row for each layer, with one common scale.
 *
 *                 head 0    head 1    …
 *     layer 0     map       map                 scale
 *                 label     label
 */
#include <math.h>

#include "core/options.h"
#include "view/cells.h"
#include "view/panels.h"

enum {
    TOTAL_SIDE = 1500, /* of all maps side by side, if they can keep … */
    LEAST_SIDE = 144,  /* … this */
    MOST_SIDE = 300,
    MOST_CELL = 40,
    FIGURE_CELL = 34,
    GUTTER = 30,
    LABEL_BAND = 34, /* below each map */
    SCALE_GAP = 40,
    LEAST_BAR = 160,
    MAX_HEADS = 4096,
    MAX_N = 1 << 20
};

/* The measures shared by all maps. */
struct plan {
    qkvi_cells cells; /* of the first head */
    qkvi_scale scale;
    double left; /* of the layers' names */
    qkvi_panels panels;
};

static qkvi_asked asked_of(const qkv_head_grid *grid) {
    return (qkvi_asked){ grid->palette, grid->figures, grid->size, grid->min, grid->max };
}

/* The longer side of a map: as asked, or what fits; and more if figures need it. */
static qkvi_cells fit(const qkv_head_grid *grid) {
    const int64_t n = grid->n > grid->n_queries ? grid->n : grid->n_queries,
                  share = TOTAL_SIDE / grid->n_heads;
    int64_t side = share < LEAST_SIDE ? LEAST_SIDE : share > MOST_SIDE ? MOST_SIDE : share;
    if (grid->figures == QKV_FIGURES_ON && side < n * FIGURE_CELL &&
        n * FIGURE_CELL <= QKVI_MOST_SIZE)
        side = n * FIGURE_CELL;
    if (grid->size) side = grid->size;
    return qkvi_cells_fit(grid->weights, grid->n_queries, grid->n, (int)side, 1,
                          grid->size ? (int)side : MOST_CELL);
}

static qkv_status plan_all(const qkvi_frame *frame, const qkv_head_grid *grid, struct plan *plan,
                           qkv_error *error) {
    const qkvi_asked asked = asked_of(grid);
    const int64_t n_cells = grid->n_queries * grid->n,
                  n_weights = grid->n_layers * grid->n_heads * n_cells;
    plan->scale = qkvi_scale_of(grid->weights, n_weights, grid->hidden,
                                grid->hidden_of_heads ? n_weights : n_cells);
    QKV_TRY(qkvi_asked_scale(&asked, &plan->scale, error));
    plan->cells = fit(grid);
    QKV_TRY(qkvi_asked_room(&asked, grid->n > grid->n_queries ? grid->n : grid->n_queries,
                            plan->cells.cell, plan->cells.fold, error));
    plan->cells.hidden = grid->hidden;
    plan->left = qkvi_panels_left(frame, grid->n_layers);
    qkvi_panels *const panels = &plan->panels;
    *panels = (qkvi_panels){ .n_layers = grid->n_layers,
                             .n_heads = grid->n_heads,
                             .label_band = LABEL_BAND };
    panels->width = (double)(qkvi_cells_cols(&plan->cells) * plan->cells.cell - plan->cells.gap);
    panels->height = (double)(qkvi_cells_rows(&plan->cells) * plan->cells.cell - plan->cells.gap);
    panels->step_x = panels->width + GUTTER;
    panels->step_y = panels->height + LABEL_BAND + GUTTER / 2.0;
    panels->label_width = panels->step_x - 8;
    return QKV_OK;
}

static qkv_status draw_maps(const qkvi_frame *frame, const qkv_head_grid *grid,
                            const struct plan *plan, double x, double y, qkv_error *error) {
    for (int64_t i = 0; i < grid->n_layers * grid->n_heads; i++) {
        const double left = x + (double)(i % grid->n_heads) * plan->panels.step_x;
        const double top = y + (double)(i / grid->n_heads) * plan->panels.step_y;
        qkvi_cells cells = plan->cells;
        cells.weights = grid->weights + i * grid->n_queries * grid->n;
        if (grid->hidden && grid->hidden_of_heads) cells.hidden += i * grid->n_queries * grid->n;
        qkvi_cells_draw(frame, &cells, &plan->scale, left, top);
        if (grid->figures == QKV_FIGURES_ON)
            qkvi_cells_figures(frame, &cells, &plan->scale, grid->figures, left, top);
        QKV_TRY(qkvi_panels_label(frame, &plan->panels, grid->labels ? grid->labels[i] : NULL, left,
                                  top, error));
    }
    return QKV_OK;
}

static qkv_status draw(qkvi_frame *frame, const qkv_head_grid *grid, qkv_error *error) {
    struct plan plan;
    char note[400];
    QKV_TRY(plan_all(frame, grid, &plan, error));
    qkvi_scale_note(note, sizeof note, &plan.scale, plan.cells.fold, grid->quantity);
    const double width = (double)grid->n_heads * plan.panels.step_x - GUTTER;
    const double bar = fmax(plan.panels.height, LEAST_BAR);
    const double height =
        fmax((double)grid->n_layers * plan.panels.step_y - GUTTER / 2.0, bar + 10);
    QKV_TRY(qkvi_frame_begin(frame, grid->title, grid->caption, note,
                             plan.left + width + SCALE_GAP + QKVI_SCALE_WIDTH,
                             QKVI_PANELS_HEAD_BAND + height, error));
    const double x = ceil(frame->x + plan.left), y = ceil(frame->y + QKVI_PANELS_HEAD_BAND);
    qkvi_panels_names(frame, &plan.panels, x, y);
    QKV_TRY(draw_maps(frame, grid, &plan, x, y, error));
    qkvi_scale_draw(frame, &plan.scale, x + width + SCALE_GAP, y, bar);
    return qkvi_frame_save(frame, error);
}

static qkv_status check(const qkv_head_grid *grid, const char *path, qkv_error *error) {
    int64_t n_weights = 0;
    if (path == NULL || grid->weights == NULL)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", path ? "weights" : "path");
    if (grid->n_layers < 1 || grid->n_heads < 1 || grid->n_layers > MAX_HEADS ||
        grid->n_heads > MAX_HEADS || grid->n < 1 || grid->n > MAX_N)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "n_layers = %lld, n_heads = %lld, n = %lld: must be 1 to %d, %d, %d",
                              (long long)grid->n_layers, (long long)grid->n_heads,
                              (long long)grid->n, MAX_HEADS, MAX_HEADS, MAX_N);
    if (grid->n_queries < 1 || grid->n_queries > MAX_N)
        return qkvi_error_set(error, QKV_ERR_SHAPE, "n_queries = %lld: must be 0, or 1 to %d",
                              (long long)grid->n_queries, MAX_N);
    if (!qkvi_mul_i64(grid->n_layers * grid->n_heads, grid->n_queries * grid->n, &n_weights))
        return qkvi_error_set(error, QKV_ERR_SHAPE, "n_layers * n_heads * n * n is above 2^63 - 1");
    const qkvi_asked asked = asked_of(grid);
    return qkvi_asked_check(&asked, 0, error);
}

qkv_status qkv_picture_grid_write(const qkv_head_grid *given, const char *path, qkv_error *error) {
    qkv_head_grid grid = { 0 };
    if (given == NULL) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "grid is NULL");
    QKV_TRY(qkvi_options_read(&grid, sizeof grid, given, "qkv_head_grid", error));
    if (grid.n_queries == 0) grid.n_queries = grid.n;
    QKV_TRY(check(&grid, path, error));
    qkvi_frame frame;
    qkv_status status = qkvi_frame_open(&frame, path, grid.theme, error);
    if (status == QKV_OK) status = draw(&frame, &grid, error);
    qkvi_frame_close(&frame);
    return status;
}
