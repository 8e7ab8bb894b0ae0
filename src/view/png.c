/**
 * cairo's PNG with three chunks of ours after IHDR: pHYs (192 pixels an inch) and the title and
 * caption as iTXt, so that the picture says what it shows to those who cannot see it.
 *
 * A PNG is an 8-byte signature, then chunks: length (big endian), type, data, CRC-32 of type and
 * data. IHDR comes first and has 13 bytes, so it ends at byte 33. Bytes depend on nothing but the
 * pixels and the words.
 */
#include "view/png.h"

#include <zlib.h>

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

cairo_status_t qkvi_bytes_receive(void *closure, const unsigned char *data, unsigned int n) {
    qkvi_bytes *const bytes = closure;
    qkvi_bytes_add(bytes, data, n);
    return bytes->failed ? CAIRO_STATUS_NO_MEMORY : CAIRO_STATUS_SUCCESS;
}

void qkvi_png_make(cairo_surface_t *surface, const char *title, const char *caption,
                   qkvi_bytes *file) {
    unsigned char density[9];
    qkvi_bytes plain = { 0 };
    const cairo_status_t drawn =
        cairo_surface_write_to_png_stream(surface, qkvi_bytes_receive, &plain);
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
