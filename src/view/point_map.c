/**
 * A map of points: queries as discs, keys as triangles, lines from one query to some keys.
 *
 * Both axes have the same scale and no numbers: only distances of such a map have a meaning.
 * Colours are two of the eight of Okabe and Ito (2008), which colour-blind readers can distinguish;
 * shapes distinguish queries and keys, too.
 */
#include "view/point_map.h"

#include <math.h>

#include "view/frame.h"
#include "view/labels.h"

enum {
    USUAL_WIDTH = 1280,
    LEGEND = 56,
    PAD = 64,          /* between the outermost points and the border: room for labels */
    MAX_LABELS = 4096, /* that are tried: no more find room */
    LABEL_HEIGHT = 20,
    LABEL_WIDTH = 260,
    LABEL_GAP = 6,
    MOST_LED = 256 /* points, of which labels may stand farther off */
};

static const qkvi_rgb colors[2][2] = { { { 0x00, 0x72, 0xB2 }, { 0xD5, 0x5E, 0x00 } },
                                       { { 0x56, 0xB4, 0xE9 }, { 0xE6, 0x9F, 0x00 } } };

/* A label that found room. */
struct label {
    int64_t point;
    char *text;
    qkvi_box box; /* in the field */
    bool led;     /* it stands far off, and a line leads there … */
    double x, y;  /* … from here, at the edge of the mark */
};

/* The map and how it lies on the sheet; lengths are from the corner of the field. */
struct drawing {
    qkvi_frame *frame;
    const qkv_point_map *map;
    double left, top, span_x, span_y; /* of the points, in their own units */
    double width, height, scale;
    double radius; /* of a disc */
    qkvi_raster raster;
    struct label *labels; /* [n_shown], of MAX_LABELS */
    int64_t n_labels, n_tried, n_shown;
    uint8_t *placed; /* [points] 1: its label found room, or there is none */
};

static int64_t n_points(const qkv_point_map *map) { return map->n_queries + map->n_keys; }

static void measure(struct drawing *d) {
    double low[2] = { INFINITY, INFINITY }, high[2] = { -INFINITY, -INFINITY };
    for (int64_t i = 0; i < n_points(d->map); i++) {
        for (int c = 0; c < 2; c++) {
            low[c] = fmin(low[c], d->map->xy[2 * i + c]);
            high[c] = fmax(high[c], d->map->xy[2 * i + c]);
        }
    }
    d->left = low[0];
    d->top = high[1];
    d->span_x = high[0] - low[0];
    d->span_y = high[1] - low[1];
    d->width = d->map->size ? (double)d->map->size : USUAL_WIDTH;
    const double room = d->width - 2 * PAD;
    const double wanted = d->span_x > 0 ? room * d->span_y / d->span_x : d->width;
    d->height = ceil(fmin(d->width, fmax(d->width / 2, wanted + 2 * PAD)));
    const double across = room / d->span_x, down = (d->height - 2 * PAD) / d->span_y;
    d->scale = fmin(across, down); /* infinite if all points are one */
    if (!isfinite(d->scale)) d->scale = 0;
    d->radius = n_points(d->map) <= 100 ? 9 : n_points(d->map) <= 1000 ? 6 : 3.5;
}

static void locate(const struct drawing *d, int64_t i, double *x, double *y) {
    const double *const at = d->map->xy + 2 * i;
    *x = d->width / 2 + d->scale * (at[0] - d->left - d->span_x / 2);
    *y = d->height / 2 + d->scale * (d->top - at[1] - d->span_y / 2);
}

/* That of a query that lines come from is larger. */
static double radius_of(const struct drawing *d, int64_t i) {
    return d->map->n_lines > 0 && i == d->map->from ? 1.5 * d->radius : d->radius;
}

/* A line is as wide as its weight says; one of nearly no weight would look like one of some. */
static int is_drawn(const qkv_point_map *map, int64_t line) {
    return map->weights[line] >= QKV_LEAST_LINE;
}
static double line_width(double weight) { return 0.5 + 9 * weight; }

/* ---- Where labels find room ------------------------------------------------------------------ */

static void take_lines_and_marks(struct drawing *d) {
    double x, y, to_x, to_y;
    for (int64_t i = 0; i < d->map->n_lines; i++) {
        if (!is_drawn(d->map, i)) continue;
        locate(d, d->map->from, &x, &y);
        locate(d, d->map->n_queries + d->map->to[i], &to_x, &to_y);
        qkvi_raster_take_line(&d->raster, x, y, to_x, to_y);
    }
    for (int64_t i = 0; i < n_points(d->map); i++) {
        const double r = radius_of(d, i);
        locate(d, i, &x, &y);
        const qkvi_box box = { x - r, y - r, 2 * r, 2 * r };
        qkvi_raster_take(&d->raster, &box);
    }
}

static qkvi_line label_style(const struct drawing *d, int bold) {
    return (qkvi_line){
        .size = 19, .bold = bold, .max_width = LABEL_WIDTH, .color = d->frame->palette->text
    };
}

static int at_a_line(const qkv_point_map *map, int64_t i) {
    for (int64_t l = 0; l < map->n_lines; l++)
        if (i == map->from || (is_drawn(map, l) && i == map->n_queries + map->to[l])) return 1;
    return 0;
}

/*
 * Of few points, labels that have no room beside them are led to; of many they would be a tangle.
 */
static int may_lead(const struct drawing *d) { return n_points(d->map) <= MOST_LED; }

static int has_label(const struct drawing *d, int64_t i) {
    return d->map->labels && d->map->labels[i] && *d->map->labels[i];
}

/* From the edge of the mark; from farther off where a larger mark lies on it. */
static int lead(struct drawing *d, double x, double y, double gap, struct label *label) {
    for (int i = 0; i < 2; i++)
        if (qkvi_raster_lead(&d->raster, x, y, gap + i * d->radius, &label->box, &label->x,
                             &label->y))
            return 1;
    return 0;
}

/* Beside its point, or with `led` farther off. 0 without memory. */
static int place_label(struct drawing *d, int64_t i, int bold, bool led) {
    if (!has_label(d, i) || d->placed[i]) return 1;
    if (!led && d->n_tried++ >= MAX_LABELS) return 1;
    char *const text = qkvi_shown(d->map->labels[i]);
    if (!text) return 0;
    const qkvi_line style = label_style(d, bold);
    const double width = qkvi_line_width(&d->frame->type, text, &style);
    struct label *const label = &d->labels[d->n_shown];
    *label = (struct label){ .point = i,
                             .text = text,
                             .box = { 0, 0, fmin(width, LABEL_WIDTH), LABEL_HEIGHT },
                             .led = led };
    const double gap = radius_of(d, i) + LABEL_GAP;
    double x, y;
    locate(d, i, &x, &y);
    const int placed =
        led ? lead(d, x, y, gap, label)
            : qkvi_raster_place(&d->raster, x, y, gap, may_lead(d) ? 1 : 2, &label->box);
    d->placed[i] = (uint8_t)placed;
    if (d->placed[i])
        d->n_shown++;
    else
        free(text);
    return 1;
}

/* First those at lines, then the others; then, farther off, those that have found no room. */
static int place_all(struct drawing *d) {
    const int n_passes = may_lead(d) ? 4 : 2;
    for (int pass = 0; pass < n_passes; pass++) {
        const int bold = pass % 2 == 0;
        for (int64_t i = 0; i < n_points(d->map); i++)
            if (at_a_line(d->map, i) == bold && !place_label(d, i, bold, pass >= 2)) return 0;
    }
    return 1;
}

static qkv_status place_labels(struct drawing *d, qkv_error *error) {
    const int made = qkvi_raster_make(&d->raster, d->width, d->height);
    d->labels = qkvi_malloc_array(MAX_LABELS, sizeof *d->labels);
    d->placed = qkvi_calloc_array((size_t)n_points(d->map), 1);
    for (int64_t i = 0; i < n_points(d->map); i++) d->n_labels += has_label(d, i);
    int done = made && d->labels && d->placed;
    if (done) take_lines_and_marks(d);
    if (done) done = place_all(d);
    return done ? QKV_OK : qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for the labels");
}

/* ---- Drawing --------------------------------------------------------------------------------- */

static void set_color(const struct drawing *d, qkvi_rgb color, double opacity) {
    cairo_set_source_rgba(d->frame->cr, color.r / 255.0, color.g / 255.0, color.b / 255.0, opacity);
}

/* Its edge in the colour of the page keeps neighbours apart. */
static void draw_mark(const struct drawing *d, int is_key, double radius, double x, double y) {
    cairo_t *const cr = d->frame->cr;
    cairo_new_path(cr);
    if (is_key) {
        const double r = 1.25 * radius; /* of the circle around it: about as large as a disc */
        cairo_move_to(cr, x, y - r);
        cairo_line_to(cr, x + 0.866 * r, y + 0.5 * r);
        cairo_line_to(cr, x - 0.866 * r, y + 0.5 * r);
    } else {
        cairo_arc(cr, x, y, radius, 0, 2 * M_PI);
    }
    cairo_close_path(cr);
    set_color(d, colors[d->frame->theme][is_key], 1);
    cairo_fill_preserve(cr);
    set_color(d, d->frame->palette->page, 1);
    cairo_set_line_width(cr, 1.5);
    cairo_stroke(cr);
}

static void draw_legend(const struct drawing *d) {
    const qkv_point_map *map = d->map;
    const char *const names[] = { map->query_name ? map->query_name : "query",
                                  map->key_name ? map->key_name : "key" };
    const qkvi_line style = { .size = 20, .color = d->frame->palette->text };
    double x = d->frame->x + 12;
    const double y = d->frame->y + 14;
    for (int is_key = 0; is_key < 2; is_key++) {
        draw_mark(d, is_key, 9, x, y);
        qkvi_line_draw(&d->frame->type, d->frame->cr, names[is_key], &style, x + 20, y);
        x += 60 + qkvi_line_width(&d->frame->type, names[is_key], &style);
    }
}

static void draw_lines(const struct drawing *d, double x0, double y0) {
    double x, y;
    cairo_set_line_cap(d->frame->cr, CAIRO_LINE_CAP_ROUND);
    set_color(d, d->frame->palette->faint, 0.75);
    for (int64_t i = 0; i < d->map->n_lines; i++) {
        if (!is_drawn(d->map, i)) continue;
        locate(d, d->map->from, &x, &y);
        cairo_move_to(d->frame->cr, x0 + x, y0 + y);
        locate(d, d->map->n_queries + d->map->to[i], &x, &y);
        cairo_line_to(d->frame->cr, x0 + x, y0 + y);
        cairo_set_line_width(d->frame->cr, line_width(d->map->weights[i]));
        cairo_stroke(d->frame->cr);
    }
}

/* Keys, then queries above them. */
static void draw_marks(const struct drawing *d, double x0, double y0) {
    double x, y;
    for (int is_key = 1; is_key >= 0; is_key--) {
        const int64_t end = is_key ? n_points(d->map) : d->map->n_queries;
        for (int64_t i = is_key ? d->map->n_queries : 0; i < end; i++) {
            locate(d, i, &x, &y);
            draw_mark(d, is_key, radius_of(d, i), x0 + x, y0 + y);
        }
    }
}

/* Thin lines from marks to labels that stand far off. */
static void draw_leaders(const struct drawing *d, double x0, double y0) {
    cairo_t *const cr = d->frame->cr;
    for (int64_t l = 0; l < d->n_shown; l++) {
        const struct label *const label = &d->labels[l];
        double x, y;
        if (!label->led) continue;
        qkvi_box_near(&label->box, label->x, label->y, &x, &y);
        set_color(d, d->frame->palette->faint, 1);
        cairo_set_line_width(cr, 1.5);
        cairo_move_to(cr, x0 + label->x, y0 + label->y);
        cairo_line_to(cr, x0 + x, y0 + y);
        cairo_stroke(cr);
    }
}

static void draw_labels(const struct drawing *d, double x0, double y0) {
    for (int64_t l = 0; l < d->n_shown; l++) {
        const struct label *const label = &d->labels[l];
        const qkvi_line style = label_style(d, at_a_line(d->map, label->point));
        qkvi_line_draw(&d->frame->type, d->frame->cr, label->text, &style, x0 + label->box.x,
                       y0 + label->box.y + LABEL_HEIGHT / 2.0);
    }
}

static void make_notes(const struct drawing *d, char *notes, size_t bytes) {
    char span_x[40], span_y[40];
    const int decimals = fmin(d->span_x, d->span_y) >= 10 ? 1 : 4;
    qkvi_number(span_x, sizeof span_x, d->span_x, decimals);
    qkvi_number(span_y, sizeof span_y, d->span_y, decimals);
    const int used =
        snprintf(notes, bytes, "One scale for both axes; the points span %s x %s.", span_x, span_y);
    if (d->n_shown < d->n_labels)
        snprintf(notes + used, bytes - (size_t)used, " %lld of %lld labels found room.",
                 (long long)d->n_shown, (long long)d->n_labels);
}

static qkv_status draw(struct drawing *d, qkv_error *error) {
    char notes[200];
    measure(d);
    QKV_TRY(place_labels(d, error));
    make_notes(d, notes, sizeof notes);
    QKV_TRY(qkvi_frame_begin(d->frame, d->map->title, d->map->caption, notes, d->width,
                             LEGEND + d->height, error));
    const double x0 = d->frame->x, y0 = d->frame->y + LEGEND;
    draw_legend(d);
    draw_lines(d, x0, y0);
    draw_leaders(d, x0, y0);
    draw_marks(d, x0, y0);
    draw_labels(d, x0, y0);
    return qkvi_frame_save(d->frame, error);
}

qkv_status qkvi_point_map_draw(const qkv_point_map *map, const char *path, qkv_error *error) {
    qkvi_frame frame;
    struct drawing drawing = { .frame = &frame, .map = map };
    qkv_status status = qkvi_frame_open(&frame, path, map->theme, error);
    if (status == QKV_OK) status = draw(&drawing, error);
    for (int64_t l = 0; l < drawing.n_shown; l++) free(drawing.labels[l].text);
    free(drawing.labels);
    free(drawing.placed);
    qkvi_raster_free(&drawing.raster);
    qkvi_frame_close(&frame);
    return status;
}
