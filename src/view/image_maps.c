/**
 * Maps over an image: see qkv/picture.h. A pixel is
 *
 *     (1 - opacity) image + opacity colour(weight)
 *
 * where a cell lies over the image, both sampled at the middle of the pixel: the image bilinearly,
 * weights too if they are smoothed.
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
    MOST_SIDE = 640,
    GUTTER = 24,
    LABEL_BAND = 32,
    SCALE_GAP = 40,
    LEAST_BAR = 160,
    MAX_MAPS = 4096,
    MAX_SIDE = 4096
};

typedef struct sheet_plan {
    qkvi_scale scale;  /* of all maps */
    int across;        /* maps in a row, with the image */
    int width, height; /* of a map */
    double left;
    qkvi_panels panels;
} sheet_plan;

/* ---- Pixels ---------------------------------------------------------------------------------- */

/* Of n values at 0.5, 1.5, …: the two around x, and how far it is between them. */
static double between(double x, int64_t n, int64_t *low, int64_t *high) {
    const double at = fmin(fmax(x - 0.5, 0), (double)(n - 1));
    *low = (int64_t)at;
    *high = *low + 1 < n ? *low + 1 : *low;
    return at - (double)*low;
}

static double mix(double a, double b, double t) { return a + (b - a) * t; }

/* A channel of the image at (y, x), in its pixels. */
static double sample_image(const qkv_image_maps *maps, double y, double x, int channel) {
    int64_t top, bottom, left, right;
    const double v = between(y, maps->height, &top, &bottom);
    const double u = between(x, maps->width, &left, &right);
    const uint8_t *const rgb = maps->rgb + channel;
    const int64_t row = maps->width * 3;
    return mix(mix(rgb[top * row + left * 3], rgb[top * row + right * 3], u),
               mix(rgb[bottom * row + left * 3], rgb[bottom * row + right * 3], u), v);
}

/* The weight at (y, x), in cells. */
static double sample_cells(const qkv_image_maps *maps, const float *cells, double y, double x) {
    int64_t top, bottom, left, right;
    if (!maps->smooth) return (double)cells[(int64_t)y * maps->columns + (int64_t)x];
    const double v = between(y, maps->rows, &top, &bottom);
    const double u = between(x, maps->columns, &left, &right);
    const float *const above = cells + top * maps->columns, *const below =
                                                                cells + bottom * maps->columns;
    return mix(mix((double)above[left], (double)above[right], u),
               mix((double)below[left], (double)below[right], u), v);
}

/* The pixel at (y, x) of the image, with cells above it unless they are NULL. */
static qkvi_rgb pixel_of(const qkv_image_maps *maps, const float *cells, const qkvi_scale *scale,
                         double y, double x) {
    const double row = y / (double)maps->cell_height, column = x / (double)maps->cell_width;
    const bool is_covered = cells && row < (double)maps->rows && column < (double)maps->columns;
    qkvi_rgb color = { 0 };
    double image[3];
    for (int c = 0; c < 3; c++) image[c] = sample_image(maps, y, x, c);
    if (is_covered)
        color = qkvi_scale_color(scale, sample_cells(maps, cells, row, column), maps->theme);
    const double over[3] = { color.r, color.g, color.b };
    double made[3];
    for (int c = 0; c < 3; c++)
        made[c] = is_covered ? mix(image[c], over[c], maps->opacity) : image[c];
    return (qkvi_rgb){ (uint8_t)lround(made[0]), (uint8_t)lround(made[1]),
                       (uint8_t)lround(made[2]) };
}

/* A panel of the picture; cells NULL: the image alone. */
static qkv_status draw_panel(const qkvi_frame *frame, const qkv_image_maps *maps,
                             const sheet_plan *plan, const float *cells, double x, double y,
                             qkv_error *error) {
    const int64_t n = maps->rows * maps->columns;
    qkvi_scale scale = cells && maps->own_scale ? qkvi_scale_of(cells, n, NULL, 0) : plan->scale;
    scale.palette = (int)maps->palette;
    if (maps->own_scale && scale.largest > 0) scale.top = scale.largest;
    cairo_surface_t *const panel =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, plan->width, plan->height);
    if (cairo_surface_status(panel) != CAIRO_STATUS_SUCCESS) {
        cairo_surface_destroy(panel);
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a map");
    }
    cairo_surface_flush(panel);
    for (int r = 0; r < plan->height; r++) {
        uint32_t *const line =
            (uint32_t *)(void *)(cairo_image_surface_get_data(panel) +
                                 (ptrdiff_t)r * cairo_image_surface_get_stride(panel));
        for (int c = 0; c < plan->width; c++) {
            const qkvi_rgb p =
                pixel_of(maps, cells, &scale, (r + 0.5) * (double)maps->height / plan->height,
                         (c + 0.5) * (double)maps->width / plan->width);
            line[c] = (uint32_t)p.r << 16 | (uint32_t)p.g << 8 | p.b;
        }
    }
    cairo_surface_mark_dirty(panel);
    qkvi_frame_paint(frame, panel, x, y);
    return QKV_OK;
}

/* ---- The picture ----------------------------------------------------------------------------- */

/* One map has the image beside it, and maps over several images have labels for names. */
static bool is_one(const qkv_image_maps *maps) { return maps->n_layers * maps->n_heads == 1; }
static bool is_named(const qkv_image_maps *maps) { return !is_one(maps) && !maps->images; }

static qkv_status plan_all(const qkvi_frame *frame, const qkv_image_maps *maps, sheet_plan *plan,
                           qkv_error *error) {
    const int64_t n = maps->n_layers * maps->n_heads * maps->rows * maps->columns,
                  longest = maps->height > maps->width ? maps->height : maps->width;
    const qkvi_asked asked = { maps->palette, QKV_FIGURES_OFF, maps->size, maps->min, maps->max };
    plan->across = is_one(maps) ? 2 : (int)maps->n_heads;
    plan->scale = qkvi_scale_of(maps->weights, n, NULL, 0);
    QKV_TRY(qkvi_asked_scale(&asked, &plan->scale, error));
    const int share = TOTAL_SIDE / plan->across;
    const double side = maps->size ? (double)maps->size : fmax(LEAST_SIDE, fmin(share, MOST_SIDE));
    plan->width = (int)fmax(1, round(side * (double)maps->width / (double)longest));
    plan->height = (int)fmax(1, round(side * (double)maps->height / (double)longest));
    plan->left = is_named(maps) ? qkvi_panels_left(frame, maps->n_layers) : 0;
    plan->panels =
        (qkvi_panels){ .n_layers = maps->n_layers,
                       .n_heads = maps->n_heads,
                       .width = plan->width,
                       .height = plan->height,
                       .step_x = plan->width + GUTTER,
                       .step_y = plan->height + GUTTER / 2.0 + (maps->labels ? LABEL_BAND : 0),
                       .label_band = LABEL_BAND,
                       .label_width = plan->width + GUTTER - 8 };
    return QKV_OK;
}

static qkv_status draw_maps(const qkvi_frame *frame, const qkv_image_maps *maps,
                            const sheet_plan *plan, double x, double y, qkv_error *error) {
    const qkvi_panels *const panels = &plan->panels;
    if (is_one(maps)) QKV_TRY(draw_panel(frame, maps, plan, NULL, x, y, error));
    qkv_image_maps under = *maps;
    for (int64_t i = 0; i < maps->n_layers * maps->n_heads; i++) {
        if (maps->images) under.rgb = maps->images[i];
        const double left = x + (double)(is_one(maps) ? 1 : i % maps->n_heads) * panels->step_x,
                     top = y + (double)(i / maps->n_heads) * panels->step_y;
        QKV_TRY(draw_panel(frame, &under, plan, maps->weights + i * maps->rows * maps->columns,
                           left, top, error));
        if (maps->labels)
            QKV_TRY(qkvi_panels_label(frame, panels, maps->labels[i], left, top, error));
    }
    return QKV_OK;
}

/* How to read the colours. */
static void make_note(const qkv_image_maps *maps, const sheet_plan *plan, char *note,
                      size_t bytes) {
    char scale[300];
    qkvi_scale_note(scale, sizeof scale, &plan->scale, 1, maps->quantity);
    if (maps->own_scale)
        snprintf(scale, sizeof scale,
                 "Colours of each map run from 0 to its own largest %s. Weights show mixing, not "
                 "reasons.",
                 maps->quantity ? maps->quantity : "weight");
    snprintf(note, bytes, "Over the image with an opacity of %.3g; %s. %s", maps->opacity,
             maps->smooth ? "between the middles of patches values are interpolated"
                          : "a cell is a patch",
             scale);
}

static qkv_status draw(qkvi_frame *frame, const qkv_image_maps *maps, qkv_error *error) {
    sheet_plan plan;
    char note[500];
    QKV_TRY(plan_all(frame, maps, &plan, error));
    make_note(maps, &plan, note, sizeof note);
    const double width = plan.across * plan.panels.step_x - GUTTER,
                 bar = fmax(plan.height, LEAST_BAR),
                 height = fmax((double)maps->n_layers * plan.panels.step_y, bar + 10),
                 band = is_named(maps) ? QKVI_PANELS_HEAD_BAND : 0,
                 scale = maps->own_scale ? 0 : SCALE_GAP + QKVI_SCALE_WIDTH;
    QKV_TRY(qkvi_frame_begin(frame, maps->title, maps->caption, note, plan.left + width + scale,
                             band + height, error));
    const double x = ceil(frame->x + plan.left), y = ceil(frame->y + band);
    if (is_named(maps)) qkvi_panels_names(frame, &plan.panels, x, y);
    QKV_TRY(draw_maps(frame, maps, &plan, x, y, error));
    if (!maps->own_scale) qkvi_scale_draw(frame, &plan.scale, x + width + SCALE_GAP, y, bar);
    return qkvi_frame_save(frame, error);
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static qkv_status check_range(const char *name, int64_t value, int64_t most, qkv_error *error) {
    if (value >= 1 && value <= most) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_SHAPE, "%s = %lld: must be 1 to %lld", name,
                          (long long)value, (long long)most);
}

static qkv_status check_sizes(const qkv_image_maps *maps, qkv_error *error) {
    QKV_TRY(check_range("height", maps->height, MAX_SIDE, error));
    QKV_TRY(check_range("width", maps->width, MAX_SIDE, error));
    QKV_TRY(check_range("cell_height", maps->cell_height, maps->height, error));
    QKV_TRY(check_range("cell_width", maps->cell_width, maps->width, error));
    QKV_TRY(check_range("rows", maps->rows, maps->height / maps->cell_height, error));
    QKV_TRY(check_range("columns", maps->columns, maps->width / maps->cell_width, error));
    QKV_TRY(check_range("n_layers", maps->n_layers, MAX_MAPS, error));
    return check_range("n_heads", maps->n_heads, MAX_MAPS / maps->n_layers, error);
}

static qkv_status check(const qkv_image_maps *maps, const char *path, qkv_error *error) {
    const qkvi_asked asked = { maps->palette, QKV_FIGURES_OFF, maps->size, maps->min, maps->max };
    if (!path || !maps->rgb || !maps->weights)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              !path        ? "path"
                              : !maps->rgb ? "rgb"
                                           : "weights");
    QKV_TRY(check_sizes(maps, error));
    for (int64_t i = 0; maps->images && i < maps->n_layers * maps->n_heads; i++)
        if (!maps->images[i])
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "images[%lld] is NULL", (long long)i);
    if (!(maps->opacity > 0 && maps->opacity <= 1))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "opacity = %g: must be 0 to 1",
                              maps->opacity);
    if (maps->own_scale && (maps->min != 0 || maps->max != 0))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "min = %g, max = %g: both must be 0 with own_scale", maps->min,
                              maps->max);
    return qkvi_asked_check(&asked, 0, error);
}

qkv_status qkv_picture_image_write(const qkv_image_maps *given, const char *path,
                                   qkv_error *error) {
    qkv_image_maps maps = { 0 };
    if (!given) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "maps is NULL");
    QKV_TRY(qkvi_options_read(&maps, sizeof maps, given, "qkv_image_maps", error));
    if (maps.opacity == 0) maps.opacity = 0.5;
    QKV_TRY(check(&maps, path, error));
    qkvi_frame frame;
    qkv_status status = qkvi_frame_open(&frame, path, maps.theme, error);
    if (status == QKV_OK) status = draw(&frame, &maps, error);
    qkvi_frame_close(&frame);
    return status;
}
