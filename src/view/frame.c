/**
 * The frame of a picture; see frame.h. Lengths are pixels of a picture twice as fine as a screen's.
 */
#include "view/frame.h"

#include <math.h>

enum { MARGIN = 72, TITLE_GAP = 44, CAPTION_GAP = 52, MIN_WIDTH = 880 };

static const qkvi_line title_style = { .size = 34, .bold = 1 };
static const qkvi_line caption_style = { .size = 21 };

qkv_status qkvi_frame_open(qkvi_frame *frame, const char *path, qkv_theme theme, qkv_error *error) {
    *frame = (qkvi_frame){ .path = path, .theme = theme, .palette = qkvi_palette_of(theme) };
    if (theme != QKV_THEME_LIGHT && theme != QKV_THEME_DARK)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "theme = %d is neither 0 nor 1", (int)theme);
    QKV_TRY(qkvi_format_of(path, &frame->format, error));
    return qkvi_type_open(&frame->type, error);
}

void qkvi_frame_close(qkvi_frame *frame) {
    qkvi_sheet_close(&frame->sheet);
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

static qkv_status make_sheet(qkvi_frame *frame, double width, double height, qkv_error *error) {
    QKV_TRY(qkvi_sheet_open(&frame->sheet, frame->format, width, height, error));
    frame->cr = frame->sheet.cr;
    if (frame->format == QKVI_SVG) frame->type.words = &frame->sheet.words;
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
    QKV_TRY(make_sheet(frame, width + 2 * MARGIN, bottom + MARGIN, error));
    qkvi_paragraph_draw(&frame->type, frame->cr, frame->title, &heading, width, MARGIN, MARGIN);
    qkvi_paragraph_draw(&frame->type, frame->cr, frame->caption, &words, width, MARGIN, caption_y);
    return QKV_OK;
}

qkv_status qkvi_frame_save(qkvi_frame *frame, qkv_error *error) {
    return qkvi_sheet_save(&frame->sheet, frame->path, frame->title, frame->caption, error);
}

void qkvi_frame_fill(const qkvi_frame *frame, qkvi_rgb color, double x, double y, double width,
                     double height) {
    if (frame->format == QKVI_PNG) {
        qkvi_image_fill(frame->sheet.surface, color, x, y, width, height);
        return;
    }
    cairo_set_source_rgb(frame->cr, color.r / 255.0, color.g / 255.0, color.b / 255.0);
    cairo_rectangle(frame->cr, x, y, width, height);
    cairo_fill(frame->cr);
}
