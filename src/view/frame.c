/**
 * The same drawing goes to any of three cairo surfaces. It is in pixels, 192 to the inch; SVG and
 * PDF have 72 points to the inch, so a pixel is 0.375 points there.
 *
 * The bytes of a file are the same in each run; a PDF has no date.
 */
#include "view/frame.h"

#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <math.h>
#include <zlib.h>

#include "files/file.h"

/* ---- PNG ------------------------------------------------------------------------------------- */

/*
 * cairo's PNG with three chunks of ours after IHDR: pHYs (192 pixels an inch) and the title and
 * caption as iTXt, so that the picture says what it shows to those who cannot see it.
 *
 * A PNG is an 8-byte signature, then chunks: length (big endian), type, data, CRC-32 of type and
 * data. IHDR comes first and has 13 bytes, so it ends at byte 33. Bytes depend on nothing but the
 * pixels and the words.
 */

enum { HEADER_BYTES = 8 + 4 + 4 + 13 + 4, PIXELS_PER_METRE = 7559 };

static void big_endian(unsigned char *out, uint32_t value) {
    for (int i = 0; i < 4; i++) out[i] = (unsigned char)(value >> (24 - 8 * i));
}

static void add_chunk(qkvi_bytes *file, const char *type, const void *data, size_t n) {
    unsigned char length[4], check[4];
    big_endian(length, (uint32_t)n);
    uLong crc = crc32(crc32(0, NULL, 0), (const Bytef *)type, 4);
    crc = crc32_z(crc, data, n);
    big_endian(check, (uint32_t)crc);
    qkvi_bytes_add(file, length, 4);
    qkvi_bytes_add(file, type, 4);
    qkvi_bytes_add(file, data, n);
    qkvi_bytes_add(file, check, 4);
}

/* keyword NUL, not compressed, method 0, no language, no translated keyword, UTF-8 */
static void add_words(qkvi_bytes *file, const char *keyword, const char *words) {
    static const char flags[4] = { 0, 0, 0, 0 };
    qkvi_bytes data = { 0 };
    if (*words == '\0') return;
    qkvi_bytes_add(&data, keyword, strlen(keyword) + 1);
    qkvi_bytes_add(&data, flags, 4);
    qkvi_bytes_text(&data, words);
    if (data.failed)
        file->failed = 1;
    else
        add_chunk(file, "iTXt", data.data, data.n);
    qkvi_bytes_free(&data);
}

/* For cairo's stream writers: closure is qkvi_bytes, to which they add. */
static cairo_status_t bytes_receive(void *closure, const unsigned char *data, unsigned int n) {
    qkvi_bytes *const bytes = closure;
    qkvi_bytes_add(bytes, data, n);
    return bytes->failed ? CAIRO_STATUS_NO_MEMORY : CAIRO_STATUS_SUCCESS;
}

/* The file of an image surface, with title and caption as iTXt; a failure is in file->failed. */
static void png_make(cairo_surface_t *surface, const char *title, const char *caption,
                     qkvi_bytes *file) {
    unsigned char density[9];
    qkvi_bytes plain = { 0 };
    const cairo_status_t drawn = cairo_surface_write_to_png_stream(surface, bytes_receive, &plain);
    if (drawn != CAIRO_STATUS_SUCCESS || plain.n < HEADER_BYTES) {
        file->failed = 1;
    } else {
        big_endian(density, PIXELS_PER_METRE);
        big_endian(density + 4, PIXELS_PER_METRE);
        density[8] = 1; /* the unit is the metre */
        qkvi_bytes_add(file, plain.data, HEADER_BYTES);
        add_chunk(file, "pHYs", density, sizeof density);
        add_words(file, "Title", title);
        add_words(file, "Description", caption);
        qkvi_bytes_add(file, plain.data + HEADER_BYTES, plain.n - HEADER_BYTES);
    }
    qkvi_bytes_free(&plain);
}

enum { MAX_SIDE = 32767 };

static const double points_per_pixel = 72.0 / 192.0;

/* The format that a path's ending names: .png, .svg or .pdf. ARGUMENT for any other. */
static qkv_status format_of(const char *path, qkvi_format *format, qkv_error *error) {
    static const char *const endings[] = { ".png", ".svg", ".pdf" };
    const size_t n = strlen(path);
    for (int i = 0; i < 3; i++) {
        if (n < 4 || strcmp(path + n - 4, endings[i]) != 0) continue;
        *format = (qkvi_format)i;
        return QKV_OK;
    }
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "path = '%s' does not end in .png, .svg or .pdf",
                          QKVI_PRINTABLE_BYTES(QKVI_NAME_BYTES, path, n));
}

static void describe_pdf(cairo_surface_t *surface, const char *title, const char *caption) {
    cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATE_DATE, ""); /* none */
    cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_TITLE, title);
    cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_SUBJECT, caption);
    cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATOR, "qkv");
}

static cairo_surface_t *make_surface(qkvi_sheet *sheet, double width, double height) {
    const double w = width * sheet->scale, h = height * sheet->scale;
    switch (sheet->format) {
    case QKVI_SVG: return cairo_svg_surface_create_for_stream(bytes_receive, &sheet->drawing, w, h);
    case QKVI_PDF: return cairo_pdf_surface_create_for_stream(bytes_receive, &sheet->drawing, w, h);
    default: return cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)width, (int)height);
    }
}

/* Makes the surface, of whole pixels, 192 to the inch. Close it in any case. */
static qkv_status sheet_open(qkvi_sheet *sheet, qkvi_format format, double width, double height,
                             qkv_error *error) {
    *sheet = (qkvi_sheet){ .format = format, .scale = format == QKVI_PNG ? 1 : points_per_pixel };
    width = ceil(width);
    height = ceil(height);
    if (!(width <= MAX_SIDE && height <= MAX_SIDE))
        return qkvi_error_set(error, QKV_ERR_LIMIT,
                              "the picture would have %.0f x %.0f pixels, the limit is %d", width,
                              height, MAX_SIDE);
    sheet->surface = make_surface(sheet, width, height);
    sheet->cr = cairo_create(sheet->surface);
    if (cairo_status(sheet->cr) != CAIRO_STATUS_SUCCESS)
        return qkvi_error_set(error, QKV_ERR_MEMORY,
                              "no memory for a picture of %.0f x %.0f pixels", width, height);
    cairo_scale(sheet->cr, sheet->scale, sheet->scale);
    return QKV_OK;
}

/* Ends the drawing and makes the file of it; title and caption are in it as text. */
static qkv_status sheet_save(qkvi_sheet *sheet, const char *path, const char *title,
                             const char *caption, qkv_error *error) {
    const cairo_status_t drawn = cairo_status(sheet->cr);
    if (drawn != CAIRO_STATUS_SUCCESS)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "the picture could not be drawn: %s",
                              cairo_status_to_string(drawn));
    qkvi_bytes file = { 0 }, *whole = &file;
    if (sheet->format == QKVI_PDF) describe_pdf(sheet->surface, title, caption);
    if (sheet->format != QKVI_PNG) cairo_surface_finish(sheet->surface);
    if (cairo_surface_status(sheet->surface) != CAIRO_STATUS_SUCCESS)
        file.failed = 1;
    else if (sheet->format == QKVI_PNG)
        png_make(sheet->surface, title, caption, &file);
    else if (sheet->format == QKVI_SVG)
        qkvi_svg_make(&sheet->drawing, title, caption, &sheet->words, sheet->scale, &file);
    else
        whole = &sheet->drawing;
    const qkv_status status =
        file.failed || whole->failed
            ? qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for the file of the picture")
            : qkvi_file_save(path, whole->data, whole->n, error);
    qkvi_bytes_free(&file);
    return status;
}

static void sheet_close(qkvi_sheet *sheet) {
    if (sheet->cr) cairo_destroy(sheet->cr);
    if (sheet->surface) cairo_surface_destroy(sheet->surface);
    qkvi_bytes_free(&sheet->drawing);
    qkvi_bytes_free(&sheet->words);
    *sheet = (qkvi_sheet){ 0 };
}

void qkvi_image_fill(cairo_surface_t *image, qkvi_rgb color, double x, double y, double width,
                     double height) {
    const int right = cairo_image_surface_get_width(image);
    const int bottom = cairo_image_surface_get_height(image);
    const int x0 = (int)fmax(x, 0), x1 = (int)fmin(x + width, right);
    const int y0 = (int)fmax(y, 0), y1 = (int)fmin(y + height, bottom);
    if (x0 >= x1 || y0 >= y1) return;
    cairo_surface_flush(image);
    unsigned char *data = cairo_image_surface_get_data(image);
    const size_t stride = (size_t)cairo_image_surface_get_stride(image);
    const uint32_t pixel = (uint32_t)color.r << 16 | (uint32_t)color.g << 8 | color.b;
    for (int row = y0; row < y1; row++) {
        uint32_t *line = (uint32_t *)(void *)(data + (size_t)row * stride);
        for (int i = x0; i < x1; i++) line[i] = pixel;
    }
    cairo_surface_mark_dirty_rectangle(image, x0, y0, x1 - x0, y1 - y0);
}

/* ---- The frame ------------------------------------------------------------------------------- */

/*
 * The frame of a picture; see frame.h. Lengths are pixels of a picture twice as fine as a screen's.
 */

enum { MARGIN = 72, TITLE_GAP = 44, CAPTION_GAP = 52, MIN_WIDTH = 880 };

static const qkvi_line title_style = { .size = 34, .bold = 1 };
static const qkvi_line caption_style = { .size = 21 };

qkv_status qkvi_frame_open(qkvi_frame *frame, const char *path, qkv_theme theme, qkv_error *error) {
    *frame = (qkvi_frame){ .path = path, .theme = theme, .palette = qkvi_palette_of(theme) };
    if (theme != QKV_THEME_LIGHT && theme != QKV_THEME_DARK)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "theme = %d is neither 0 nor 1", (int)theme);
    QKV_TRY(format_of(path, &frame->format, error));
    return qkvi_type_open(&frame->type, error);
}

void qkvi_frame_close(qkvi_frame *frame) {
    sheet_close(&frame->sheet);
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
    QKV_TRY(sheet_open(&frame->sheet, frame->format, width, height, error));
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
    return sheet_save(&frame->sheet, frame->path, frame->title, frame->caption, error);
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

void qkvi_frame_paint(const qkvi_frame *frame, cairo_surface_t *image, double x, double y) {
    cairo_set_source_surface(frame->cr, image, x, y);
    cairo_pattern_set_filter(cairo_get_source(frame->cr), CAIRO_FILTER_NEAREST);
    cairo_paint(frame->cr);
    cairo_surface_destroy(image);
}
