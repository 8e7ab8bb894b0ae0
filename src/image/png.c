/*
 * PNG by libpng: see decode.h. The size is read from the header before libpng sees a byte; every
 * wrong checksum is an error; chunks that pixels do not need are skipped.
 *
 * libpng leaves a failed call by longjmp, from functions that own nothing of ours: all that must be
 * released lives in a `png` that the caller of setjmp has.
 */
#include <png.h>

#include "image/decode.h"

enum {
    SIGNATURE = 8,
    FRAME = 12,                      /* of a chunk: length, name, checksum */
    HEADER = SIGNATURE + FRAME + 13, /* with IHDR */
    CHUNK_BYTES = 1 << 20,           /* of a chunk that is kept */
    MOST_INFLATED = 1032,            /* bytes of pixels that one byte of deflate may become */
    MAX_CHUNKS = 1000
};

typedef struct png_file {
    const qkvi_image_bytes *file;
    size_t at; /* of what libpng has read */
    png_structp reader;
    png_infop info;
    png_bytepp rows;
    qkvi_image_pixels *pixels;
    qkv_status status;
    qkv_error *error;
} png_file;

static uint32_t big_endian(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Whether so many bytes may become so many pixels, of a depth and a type of colours. */
static bool is_long_enough(size_t n_bytes, uint64_t n_pixels, int depth, int type) {
    static const uint8_t channels[] = { 1, 0, 3, 1, 2, 0, 4 };
    const size_t n = type < (int)sizeof channels ? channels[type] : 0;
    return n_pixels / 8 * (size_t)depth * n <= (uint64_t)n_bytes * MOST_INFLATED;
}

static qkv_status check_header(const qkvi_image_bytes *file, qkv_error *error) {
    if (file->n_bytes < HEADER || memcmp(file->bytes + SIGNATURE, "\0\0\0\rIHDR", 8) != 0)
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: PNG: it does not begin with IHDR",
                              file->name);
    const uint8_t *const header = file->bytes + SIGNATURE + 8;
    const uint32_t width = big_endian(header), height = big_endian(header + 4);
    QKV_TRY(qkvi_image_check_size(file->name, height, width, error));
    if (header[8] == 16)
        return qkvi_error_set(
            error, QKV_ERR_UNSUPPORTED,
            "%s: PNG: 16 bits a sample, which readers turn into different values; "
            "make it one of 8 bits",
            file->name);
    if (is_long_enough(file->n_bytes, (uint64_t)height * width, header[8], header[9]))
        return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_FORMAT,
                          "%s: PNG: %u x %u pixels cannot be in a file of %zu bytes", file->name,
                          width, height, file->n_bytes);
}

/* ---- Called by libpng ------------------------------------------------------------------------ */

static void fail(png_structp reader, png_const_charp message) {
    png_file *const png = png_get_error_ptr(reader);
    png->status =
        qkvi_error_set(png->error, strstr(message, "emory") ? QKV_ERR_MEMORY : QKV_ERR_FORMAT,
                       "%s: PNG: %s", png->file->name, QKVI_PRINTABLE(256, message));
    png_longjmp(reader, 1);
}

static void ignore(png_structp reader, png_const_charp message) { (void)reader, (void)message; }

static void give(png_structp reader, png_bytep bytes, size_t n) {
    png_file *const png = png_get_io_ptr(reader);
    if (n > png->file->n_bytes - png->at) png_error(reader, "the file ends early");
    memcpy(bytes, png->file->bytes + png->at, n);
    png->at += n;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void set_limits(png_structp reader) {
    png_set_user_limits(reader, QKV_IMAGE_MAX_SIDE, QKV_IMAGE_MAX_SIDE);
    png_set_chunk_cache_max(reader, MAX_CHUNKS);
    png_set_chunk_malloc_max(reader, CHUNK_BYTES);
    png_set_crc_action(reader, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_set_keep_unknown_chunks(reader, PNG_HANDLE_CHUNK_NEVER, NULL, -1); /* all but pixels */
    png_set_keep_unknown_chunks(reader, PNG_HANDLE_CHUNK_NEVER, (png_const_bytep) "tRNS", 1);
}

/* Three bytes a pixel, whatever is stored. */
static void set_rgb(png_structp reader) {
    png_set_palette_to_rgb(reader);
    png_set_expand_gray_1_2_4_to_8(reader);
    png_set_gray_to_rgb(reader);
    png_set_strip_alpha(reader);
}

/*
 * libpng drops EXIF for which it has no memory. By now it has read all chunks, so that their
 * lengths and checksums are right.
 */
static void take_orientation(png_file *png) {
    const qkvi_image_bytes *const file = png->file;
    for (size_t at = SIGNATURE; file->n_bytes - at >= FRAME;) {
        const uint8_t *const chunk = file->bytes + at;
        const size_t n_bytes = big_endian(chunk), left = file->n_bytes - at - FRAME;
        if (n_bytes > left || memcmp(chunk + 4, "IEND", 4) == 0) return;
        if (memcmp(chunk + 4, "eXIf", 4) == 0) {
            png->pixels->orientation = qkvi_exif_orientation(chunk + 8, n_bytes);
            return;
        }
        at += FRAME + n_bytes;
    }
}

/* Into memory that is there once the size is known. */
static void take_pixels(png_file *png) {
    const png_uint_32 height = png_get_image_height(png->reader, png->info);
    const png_uint_32 width = png_get_image_width(png->reader, png->info);
    png_set_interlace_handling(png->reader);
    png_read_update_info(png->reader, png->info);
    if (png_get_rowbytes(png->reader, png->info) != (size_t)width * 3)
        png_error(png->reader, "a row has not 3 bytes a pixel");
    png->status = qkvi_image_reserve(png->file->name, height, width, png->pixels, png->error);
    png->rows = qkvi_malloc_array(height, sizeof *png->rows);
    if (png->status != QKV_OK || !png->rows) png_error(png->reader, "no memory");
    for (png_uint_32 y = 0; y < height; y++)
        png->rows[y] = png->pixels->rgb + (size_t)y * width * 3;
    png_read_image(png->reader, png->rows);
    png_read_end(png->reader, png->info);
    take_orientation(png);
}

static void read_png(png_file *png) {
    png->reader = png_create_read_struct(PNG_LIBPNG_VER_STRING, png, fail, ignore);
    png->info = png->reader ? png_create_info_struct(png->reader) : NULL;
    if (!png->info) {
        png->status = qkvi_no_memory(png->error, "the PNG decoder");
        return;
    }
    if (setjmp(png_jmpbuf(png->reader))) return; /* fail has set the status */
    png_set_read_fn(png->reader, png, give);
    set_limits(png->reader);
    png_read_info(png->reader, png->info);
    set_rgb(png->reader);
    take_pixels(png);
}

qkv_status qkvi_image_decode_png(const qkvi_image_bytes *file, qkvi_image_pixels *pixels,
                                 qkv_error *error) {
    QKV_TRY(check_header(file, error));
    png_file png = { .file = file, .pixels = pixels, .error = error };
    read_png(&png);
    png_destroy_read_struct(&png.reader, &png.info, NULL);
    free(png.rows);
    if (png.status == QKV_OK) return QKV_OK;
    free(pixels->rgb);
    pixels->rgb = NULL;
    return png.status;
}
