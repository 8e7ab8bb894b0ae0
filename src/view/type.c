/** Text with pango: see type.h. */
#include "view/type.h"

#include <math.h>

#include "view/frame.h"

static const char families[] = "DejaVu Sans, sans-serif";
static const double cap_height = 0.729; /* of DejaVu Sans, in its size */
static const float line_spacing = 1.32f;

/*
 * Options, or copies of them, for which cairo finds no memory are other options, and say so only
 * when asked.
 */
static qkv_status set_options(PangoContext *context, qkv_error *error) {
    cairo_font_options_t *options = cairo_font_options_create();
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    pango_cairo_context_set_font_options(context, options);
    const cairo_font_options_t *const taken = pango_cairo_context_get_font_options(context);
    const int done = taken && cairo_font_options_equal(taken, options);
    cairo_font_options_destroy(options);
    return done ? QKV_OK : qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for font options");
}

qkv_status qkvi_type_open(qkvi_type *type, qkv_error *error) {
    type->map = pango_cairo_font_map_new();
    if (type->map == NULL) return qkvi_error_set(error, QKV_ERR_MEMORY, "no font map");
    type->context = pango_font_map_create_context(type->map);
    QKV_TRY(set_options(type->context, error));
    pango_context_set_language(type->context, pango_language_from_string("en"));
    pango_context_set_round_glyph_positions(type->context, FALSE);
    return QKV_OK;
}

void qkvi_type_close(qkvi_type *type) {
    if (type->context) g_object_unref(type->context);
    if (type->map) g_object_unref(type->map);
    *type = (qkvi_type){ 0 };
}

static PangoLayout *make_layout(const qkvi_type *type, const char *text, const qkvi_line *style) {
    PangoLayout *layout = pango_layout_new(type->context);
    PangoFontDescription *font = pango_font_description_new();
    pango_font_description_set_family_static(font, families);
    pango_font_description_set_absolute_size(font, style->size * PANGO_SCALE);
    pango_font_description_set_weight(font, style->bold ? PANGO_WEIGHT_BOLD : PANGO_WEIGHT_NORMAL);
    pango_layout_set_font_description(layout, font);
    pango_font_description_free(font);
    pango_layout_set_text(layout, text, -1);
    return layout;
}

static PangoLayout *make_line(const qkvi_type *type, const char *text, const qkvi_line *line) {
    PangoLayout *layout = make_layout(type, text, line);
    pango_layout_set_single_paragraph_mode(layout, TRUE);
    if (line->max_width > 0) {
        PangoRectangle logical;
        pango_layout_get_extents(layout, NULL, &logical);
        if (logical.width > line->max_width * PANGO_SCALE) {
            pango_layout_set_width(layout, (int)(line->max_width * PANGO_SCALE));
            pango_layout_set_ellipsize(layout, PANGO_ELLIPSIZE_MIDDLE);
        }
    }
    return layout;
}

static PangoLayout *make_paragraph(const qkvi_type *type, const char *text, const qkvi_line *style,
                                   double width) {
    PangoLayout *layout = make_layout(type, text, style);
    pango_layout_set_width(layout, (int)(width * PANGO_SCALE));
    pango_layout_set_wrap(layout, PANGO_WRAP_WORD_CHAR);
    pango_layout_set_line_spacing(layout, line_spacing);
    return layout;
}

double qkvi_line_width(const qkvi_type *type, const char *text, const qkvi_line *line) {
    PangoRectangle logical;
    PangoLayout *layout = make_line(type, text, line);
    pango_layout_get_extents(layout, NULL, &logical);
    g_object_unref(layout);
    return (double)logical.width / PANGO_SCALE;
}

static void set_color(cairo_t *cr, qkvi_rgb color) {
    cairo_set_source_rgb(cr, color.r / 255.0, color.g / 255.0, color.b / 255.0);
}

void qkvi_line_draw(const qkvi_type *type, cairo_t *cr, const char *text, const qkvi_line *line,
                    double x, double y) {
    PangoRectangle logical;
    PangoLayout *layout = make_line(type, text, line);
    cairo_save(cr);
    cairo_translate(cr, x, y);
    cairo_rotate(cr, line->turn);
    set_color(cr, line->color);
    pango_cairo_update_layout(cr, layout);
    pango_layout_get_extents(layout, NULL, &logical);
    const double left = (double)logical.x / PANGO_SCALE,
                 width = (double)logical.width / PANGO_SCALE;
    const double baseline = (double)pango_layout_get_baseline(layout) / PANGO_SCALE;
    const double dx = -left - line->align * width, dy = cap_height / 2 * line->size;
    cairo_move_to(cr, dx, dy - baseline);
    pango_cairo_show_layout(cr, layout);
    cairo_restore(cr);
    if (type->words) {
        const qkvi_svg_place place = { x,          y,    dx + left, dy, line->turn * 180 / M_PI,
                                       line->size, width };
        qkvi_svg_word(type->words, text, strlen(text), &place);
    }
    g_object_unref(layout);
}

double qkvi_paragraph_height(const qkvi_type *type, const char *text, const qkvi_line *style,
                             double width) {
    PangoRectangle logical;
    PangoLayout *layout = make_paragraph(type, text, style, width);
    pango_layout_get_extents(layout, NULL, &logical);
    g_object_unref(layout);
    return *text ? ceil((double)logical.height / PANGO_SCALE) : 0;
}

/* The lines of a paragraph as words of an SVG. */
static void add_lines(qkvi_bytes *words, PangoLayout *layout, const char *text, double size,
                      double x, double y) {
    PangoLayoutIter *at = pango_layout_get_iter(layout);
    do {
        const PangoLayoutLine *line = pango_layout_iter_get_line_readonly(at);
        PangoRectangle logical;
        pango_layout_iter_get_line_extents(at, NULL, &logical);
        const double left = (double)logical.x / PANGO_SCALE;
        const double baseline = (double)pango_layout_iter_get_baseline(at) / PANGO_SCALE;
        const qkvi_svg_place place = { .x = x + left,
                                       .y = y + baseline,
                                       .size = size,
                                       .width = (double)logical.width / PANGO_SCALE };
        if (line) qkvi_svg_word(words, text + line->start_index, (size_t)line->length, &place);
    } while (pango_layout_iter_next_line(at));
    pango_layout_iter_free(at);
}

void qkvi_paragraph_draw(const qkvi_type *type, cairo_t *cr, const char *text,
                         const qkvi_line *style, double width, double x, double y) {
    PangoLayout *layout = make_paragraph(type, text, style, width);
    set_color(cr, style->color);
    cairo_move_to(cr, x, y);
    pango_cairo_update_layout(cr, layout);
    pango_cairo_show_layout(cr, layout);
    if (type->words) add_lines(type->words, layout, text, style->size, x, y);
    g_object_unref(layout);
}
