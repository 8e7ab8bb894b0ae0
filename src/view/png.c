/**
 * cairo's PNG with three chunks of ours after IHDR: pHYs (192 pixels an inch) and the title and
 * caption as iTXt, so that the picture says what it shows to those who cannot see it.
 *
 * A PNG is an 8-byte signature, then chunks: length (big endian), type, data, CRC-32 of type and
 * data. IHDR comes first and has 13 bytes, so it ends at byte 33. Bytes depend on nothing but the
 * pixels and the words.
 */
#include "view/png.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/alloc.h"
#include "core/status.h"
#include "model/store/file.h"

enum { HEADER_BYTES = 8 + 4 + 4 + 13 + 4, PIXELS_PER_METRE = 7559 };

struct buffer {
    unsigned char *bytes;
    size_t n, capacity;
};

static int append(struct buffer *buffer, const void *bytes, size_t n) {
    if (buffer->capacity - buffer->n < n) {
        const size_t capacity = 2 * buffer->capacity + n;
        unsigned char *grown = qkvi_realloc_array(buffer->bytes, capacity, 1);
        if (grown == NULL) return 0;
        buffer->bytes = grown;
        buffer->capacity = capacity;
    }
    memcpy(buffer->bytes + buffer->n, bytes, n);
    buffer->n += n;
    return 1;
}

static cairo_status_t receive(void *closure, const unsigned char *bytes, unsigned int n) {
    return append(closure, bytes, n) ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_NO_MEMORY;
}

static void big_endian(unsigned char *out, uint32_t value) {
    for (int i = 0; i < 4; i++) out[i] = (unsigned char)(value >> (24 - 8 * i));
}

static int append_chunk(struct buffer *out, const char *type, const void *data, size_t n) {
    unsigned char length[4], check[4];
    big_endian(length, (uint32_t)n);
    uLong crc = crc32(crc32(0, NULL, 0), (const Bytef *)type, 4);
    crc = crc32_z(crc, data, n);
    big_endian(check, (uint32_t)crc);
    return append(out, length, 4) && append(out, type, 4) && append(out, data, n) &&
           append(out, check, 4);
}

/* keyword NUL, not compressed, method 0, no language, no translated keyword, UTF-8 */
static int append_words(struct buffer *out, const char *keyword, const char *words) {
    static const char flags[4] = { 0, 0, 0, 0 };
    struct buffer data = { 0 };
    const int done = append(&data, keyword, strlen(keyword) + 1) && append(&data, flags, 4) &&
                     append(&data, words, strlen(words)) &&
                     append_chunk(out, "iTXt", data.bytes, data.n);
    free(data.bytes);
    return done;
}

static int append_ours(struct buffer *out, const char *title, const char *caption) {
    unsigned char density[9];
    big_endian(density, PIXELS_PER_METRE);
    big_endian(density + 4, PIXELS_PER_METRE);
    density[8] = 1; /* the unit is the metre */
    return append_chunk(out, "pHYs", density, sizeof density) &&
           (!*title || append_words(out, "Title", title)) &&
           (!*caption || append_words(out, "Description", caption));
}

qkv_status qkvi_png_save(cairo_surface_t *surface, const char *path, const char *title,
                         const char *caption, qkv_error *error) {
    struct buffer plain = { 0 }, out = { 0 };
    if (path == NULL) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "path is NULL");
    const cairo_status_t drawn = cairo_surface_write_to_png_stream(surface, receive, &plain);
    qkv_status status = QKV_OK;
    if (drawn != CAIRO_STATUS_SUCCESS || plain.n < HEADER_BYTES ||
        !append(&out, plain.bytes, HEADER_BYTES) || !append_ours(&out, title, caption) ||
        !append(&out, plain.bytes + HEADER_BYTES, plain.n - HEADER_BYTES))
        status = qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for the PNG");
    if (status == QKV_OK) status = qkvi_file_save(path, out.bytes, out.n, error);
    free(plain.bytes);
    free(out.bytes);
    return status;
}
