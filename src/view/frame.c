/**
 * The frame of a picture; see frame.h. Lengths are pixels of a picture twice as fine as a screen's.
 */
#include "view/frame.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/status.h"
#include "view/png.h"

enum { MARGIN = 72, TITLE_GAP = 44, CAPTION_GAP = 52, MAX_SIDE = 32767, MIN_WIDTH = 880 };

static const qkvi_line title_style = { .size = 34, .bold = 1 };
static const qkvi_line caption_style = { .size = 21 };

qkv_status qkvi_frame_open(qkvi_frame *frame, qkv_theme theme, qkv_error *error) {
    *frame = (qkvi_frame){ .theme = theme, .palette = qkvi_palette_of(theme) };
    if (theme != QKV_THEME_LIGHT && theme != QKV_THEME_DARK)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "theme = %d is neither 0 nor 1", (int)theme);
    return qkvi_type_open(&frame->type, error);
}

void qkvi_frame_close(qkvi_frame *frame) {
    if (frame->cr) cairo_destroy(frame->cr);
    if (frame->surface) cairo_surface_destroy(frame->surface);
    qkvi_type_close(&frame->type);
    free(frame->title);
    free(frame->caption);
    *frame = (qkvi_frame){ 0 };
}

/* The caller's caption and our notes as one text. */
static char *join(const char *caption, const char *notes) {
    char *shown = qkvi_shown_lines(caption);
    if (shown == NULL || notes == NULL || !*notes) return shown;
    const size_t bytes = strlen(shown) + strlen(notes) + 2;
    char *both = qkvi_malloc_array(bytes, 1);
    if (both) snprintf(both, bytes, "%s%s%s", shown, *shown ? "\n" : "", notes);
    free(shown);
    return both;
}

static qkv_status make_surface(qkvi_frame *frame, double width, double height, qkv_error *error) {
    if (!(width <= MAX_SIDE && height <= MAX_SIDE))
        return qkvi_error_set(error, QKV_ERR_LIMIT,
                              "the picture would have %.0f x %.0f pixels, the limit is %d", width,
                              height, MAX_SIDE);
    frame->surface =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)ceil(width), (int)ceil(height));
    frame->cr = cairo_create(frame->surface);
    if (cairo_status(frame->cr) != CAIRO_STATUS_SUCCESS)
        return qkvi_error_set(error, QKV_ERR_MEMORY,
                              "no memory for a picture of %.0f x %.0f pixels", width, height);
    qkvi_frame_fill(frame, frame->palette->page, 0, 0, ceil(width), ceil(height));
    return QKV_OK;
}

qkv_status qkvi_frame_begin(qkvi_frame *frame, const char *title, const char *caption,
                            const char *notes, double width, double height, qkv_error *error) {
    frame->title = qkvi_shown_lines(title);
    frame->caption = join(caption, notes);
    if (frame->title == NULL || frame->caption == NULL)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for the caption");
    if (width < MIN_WIDTH) width = MIN_WIDTH;
    qkvi_line heading = title_style, words = caption_style;
    heading.color = frame->palette->strong;
    words.color = frame->palette->faint;
    const double title_height = qkvi_paragraph_height(&frame->type, frame->title, &heading, width);
    const double words_height = qkvi_paragraph_height(&frame->type, frame->caption, &words, width);
    frame->x = MARGIN;
    frame->y = MARGIN + (title_height > 0 ? title_height + TITLE_GAP : 0);
    const double caption_y = frame->y + ceil(height) + CAPTION_GAP;
    const double bottom = words_height > 0 ? caption_y + words_height : frame->y + ceil(height);
    QKV_TRY(make_surface(frame, width + 2 * MARGIN, bottom + MARGIN, error));
    qkvi_paragraph_draw(&frame->type, frame->cr, frame->title, &heading, width, MARGIN, MARGIN);
    qkvi_paragraph_draw(&frame->type, frame->cr, frame->caption, &words, width, MARGIN, caption_y);
    return QKV_OK;
}

qkv_status qkvi_frame_save(qkvi_frame *frame, const char *path, qkv_error *error) {
    cairo_surface_flush(frame->surface);
    if (cairo_status(frame->cr) != CAIRO_STATUS_SUCCESS)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "the picture could not be drawn: %s",
                              cairo_status_to_string(cairo_status(frame->cr)));
    return qkvi_png_save(frame->surface, path, frame->title, frame->caption, error);
}

void qkvi_frame_fill(const qkvi_frame *frame, qkvi_rgb color, double x, double y, double width,
                     double height) {
    const int right = cairo_image_surface_get_width(frame->surface);
    const int bottom = cairo_image_surface_get_height(frame->surface);
    const int x0 = (int)fmax(x, 0), x1 = (int)fmin(x + width, right);
    const int y0 = (int)fmax(y, 0), y1 = (int)fmin(y + height, bottom);
    if (x0 >= x1 || y0 >= y1) return;
    cairo_surface_flush(frame->surface);
    unsigned char *data = cairo_image_surface_get_data(frame->surface);
    const size_t stride = (size_t)cairo_image_surface_get_stride(frame->surface);
    const uint32_t pixel = (uint32_t)color.r << 16 | (uint32_t)color.g << 8 | color.b;
    for (int row = y0; row < y1; row++) {
        uint32_t *line = (uint32_t *)(void *)(data + (size_t)row * stride);
        for (int i = x0; i < x1; i++) line[i] = pixel;
    }
    cairo_surface_mark_dirty_rectangle(frame->surface, x0, y0, x1 - x0, y1 - y0);
}
