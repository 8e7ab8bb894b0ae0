/**
 * Three kinds of cairo surface behind one drawing. A picture is drawn in pixels, 192 to the inch;
 * an SVG and a PDF have 72 points to the inch, so there a pixel is 0.375 points.
 *
 * Bytes are the same in each run: a PDF has no date.
 */
#include "view/sheet.h"

#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <math.h>

#include "model/store/file.h"
#include "view/png.h"
#include "view/svg.h"

enum { MAX_SIDE = 32767 };

static const double points_per_pixel = 72.0 / 192.0;

qkv_status qkvi_format_of(const char *path, qkvi_format *format, qkv_error *error) {
    static const char *const endings[] = { ".png", ".svg", ".pdf" };
    const size_t n = strlen(path);
    for (int i = 0; i < 3; i++) {
        if (n < 4 || strcmp(path + n - 4, endings[i]) != 0) continue;
        *format = (qkvi_format)i;
        return QKV_OK;
    }
    char shown[QKVI_NAME_BYTES];
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "path = '%s' does not end in .png, .svg or .pdf",
                          qkvi_escape(shown, sizeof shown, path, n));
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
    case QKVI_SVG:
        return cairo_svg_surface_create_for_stream(qkvi_bytes_receive, &sheet->drawing, w, h);
    case QKVI_PDF:
        return cairo_pdf_surface_create_for_stream(qkvi_bytes_receive, &sheet->drawing, w, h);
    default: return cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)width, (int)height);
    }
}

qkv_status qkvi_sheet_open(qkvi_sheet *sheet, qkvi_format format, double width, double height,
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

qkv_status qkvi_sheet_save(qkvi_sheet *sheet, const char *path, const char *title,
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
        qkvi_png_make(sheet->surface, title, caption, &file);
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

void qkvi_sheet_close(qkvi_sheet *sheet) {
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
