/*
 * JPEG by libjpeg-turbo: see decode.h. Its decoder of blocks and its upsampling give the bytes that
 * torchvision and Pillow have, which other libraries of that interface do not.
 *
 * A warning (damaged data, an early end) is an error: what follows it is grey or noise. libjpeg
 * leaves a failed call by longjmp, from functions that own nothing of ours.
 */
#include <setjmp.h>
#include <stdio.h> /* before the header of libjpeg, which needs it */

#include <jerror.h>
#include <jpeglib.h>

#include "image/decode.h"

#ifndef LIBJPEG_TURBO_VERSION
#error "libjpeg-turbo is needed (Debian: libjpeg62-turbo-dev)"
#endif

enum {
    MAX_SCANS = 100,
    MAX_SCANNED = 1 << 30,    /* pixels of all scans */
    MOST_PIXELS_A_BYTE = 512, /* a block of 64 has a Huffman code of at least one bit */
};

typedef struct jpeg_file {
    struct jpeg_error_mgr errors; /* first: libjpeg knows it by this address */
    struct jpeg_progress_mgr progress;
    struct jpeg_decompress_struct decoder;
    jmp_buf failed;
    const qkvi_image_bytes *file;
    qkvi_image_pixels *pixels;
    uint8_t *line; /* of four bytes a pixel, for CMYK */
    qkv_status status;
    qkv_error *error;
} jpeg_file;

static jpeg_file *jpeg_of(j_common_ptr decoder) { return (jpeg_file *)(void *)decoder->err; }

/* ---- Called by libjpeg ----------------------------------------------------------------------- */

static qkv_status status_of(int code) {
    switch (code) {
    case JERR_OUT_OF_MEMORY: return QKV_ERR_MEMORY;
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED:
    case JERR_ARITH_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL: return QKV_ERR_UNSUPPORTED;
    default: return QKV_ERR_FORMAT;
    }
}

static void fail(j_common_ptr decoder) {
    jpeg_file *const jpeg = jpeg_of(decoder);
    char message[JMSG_LENGTH_MAX];
    decoder->err->format_message(decoder, message);
    jpeg->status = qkvi_error_set(jpeg->error, status_of(decoder->err->msg_code), "%s: JPEG: %s",
                                  jpeg->file->name, QKVI_PRINTABLE(256, message));
    longjmp(jpeg->failed, 1);
}

/* Level -1 is a warning; others trace what is read. */
static void hear(j_common_ptr decoder, int level) {
    if (level < 0) fail(decoder);
}

static void print_nothing(j_common_ptr decoder) { (void)decoder; }

static void stop(jpeg_file *jpeg, qkv_status status, const char *what, long long value,
                 long long limit) {
    jpeg->status = qkvi_error_set(jpeg->error, status, "%s: JPEG: %lld %s, the limit is %lld",
                                  jpeg->file->name, value, what, limit);
    longjmp(jpeg->failed, 1);
}

/* Each scan of a progressive file goes over all pixels, in however few bytes. */
static void watch(j_common_ptr common) {
    jpeg_file *const jpeg = jpeg_of(common);
    const struct jpeg_decompress_struct *const decoder = &jpeg->decoder;
    const long long n_scans = decoder->input_scan_number;
    const long long n_scanned = n_scans * decoder->image_width * decoder->image_height;
    if (n_scans > MAX_SCANS) stop(jpeg, QKV_ERR_LIMIT, "scans", n_scans, MAX_SCANS);
    if (n_scanned > MAX_SCANNED)
        stop(jpeg, QKV_ERR_LIMIT, "pixels of all scans", n_scanned, MAX_SCANNED);
}

/* ---- Colours --------------------------------------------------------------------------------- */

/*
 * 255 - K and its part that is not C, of Adobe's inverted values, which Pillow and torchvision take
 * for granted; as these round.
 */
static uint8_t red_of(int inverted_c, int inverted_k) {
    const int product = inverted_k * (255 - inverted_c) + 128;
    return (uint8_t)(inverted_k - (((product >> 8) + product) >> 8));
}

static void from_cmyk(const uint8_t *line, int64_t n, uint8_t *rgb) {
    for (int64_t x = 0; x < n; x++)
        for (int c = 0; c < 3; c++) rgb[x * 3 + c] = red_of(line[x * 4 + c], line[x * 4 + 3]);
}

/* Sets what libjpeg makes of what is stored. */
static void choose_colors(struct jpeg_decompress_struct *decoder) {
    const bool is_cmyk =
        decoder->jpeg_color_space == JCS_CMYK || decoder->jpeg_color_space == JCS_YCCK;
    decoder->out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void take_orientation(jpeg_file *jpeg) {
    for (jpeg_saved_marker_ptr m = jpeg->decoder.marker_list; m; m = m->next)
        if (m->marker == JPEG_APP0 + 1 && m->data_length > 6 &&
            memcmp(m->data, "Exif\0\0", 6) == 0) {
            jpeg->pixels->orientation = qkvi_exif_orientation(m->data + 6, m->data_length - 6);
            return;
        }
}

static void take_line(jpeg_file *jpeg, int64_t y) {
    struct jpeg_decompress_struct *const decoder = &jpeg->decoder;
    uint8_t *const rgb = jpeg->pixels->rgb + y * jpeg->pixels->width * 3;
    JSAMPROW row = jpeg->line ? jpeg->line : rgb;
    jpeg_read_scanlines(decoder, &row, 1);
    if (jpeg->line) from_cmyk(jpeg->line, jpeg->pixels->width, rgb);
}

/* Of the header. */
static qkv_status check_size(const jpeg_file *jpeg) {
    const struct jpeg_decompress_struct *const decoder = &jpeg->decoder;
    const qkvi_image_bytes *const file = jpeg->file;
    const uint64_t n_pixels = (uint64_t)decoder->image_height * decoder->image_width;
    QKV_TRY(qkvi_image_check_size(file->name, decoder->image_height, decoder->image_width,
                                  jpeg->error));
    if (decoder->arith_code || n_pixels <= (uint64_t)file->n_bytes * MOST_PIXELS_A_BYTE)
        return QKV_OK;
    return qkvi_error_set(jpeg->error, QKV_ERR_FORMAT,
                          "%s: JPEG: %u x %u pixels cannot be in a file of %zu bytes", file->name,
                          decoder->image_width, decoder->image_height, file->n_bytes);
}

static qkv_status reserve(jpeg_file *jpeg) {
    const struct jpeg_decompress_struct *const decoder = &jpeg->decoder;
    QKV_TRY(qkvi_image_reserve(jpeg->file->name, decoder->image_height, decoder->image_width,
                               jpeg->pixels, jpeg->error));
    if (decoder->out_color_space != JCS_CMYK) return QKV_OK;
    jpeg->line = qkvi_malloc_array(decoder->image_width, 4);
    return jpeg->line ? QKV_OK : qkvi_no_memory(jpeg->error, "a line of an image");
}

/* Reads up to the first scan, then reserves. */
static void begin_pixels(jpeg_file *jpeg) {
    jpeg_read_header(&jpeg->decoder, TRUE);
    choose_colors(&jpeg->decoder);
    take_orientation(jpeg);
    jpeg->status = check_size(jpeg);
    if (jpeg->status == QKV_OK) jpeg->status = reserve(jpeg);
    if (jpeg->status != QKV_OK) longjmp(jpeg->failed, 1);
}

static void read_jpeg(jpeg_file *jpeg) {
    struct jpeg_decompress_struct *const decoder = &jpeg->decoder;
    decoder->err = jpeg_std_error(&jpeg->errors);
    jpeg->errors.error_exit = fail;
    jpeg->errors.emit_message = hear;
    jpeg->errors.output_message = print_nothing;
    if (setjmp(jpeg->failed)) return; /* the status is set */
    jpeg_create_decompress(decoder);
    jpeg->progress.progress_monitor = watch;
    decoder->progress = &jpeg->progress;
    jpeg_mem_src(decoder, jpeg->file->bytes, (unsigned long)jpeg->file->n_bytes);
    jpeg_save_markers(decoder, JPEG_APP0 + 1, 0xffff);
    begin_pixels(jpeg);
    jpeg_start_decompress(decoder);
    for (int64_t y = 0; y < jpeg->pixels->height; y++) take_line(jpeg, y);
    jpeg_finish_decompress(decoder);
}

qkv_status qkvi_image_decode_jpeg(const qkvi_image_bytes *file, qkvi_image_pixels *pixels,
                                  qkv_error *error) {
    jpeg_file jpeg = { .file = file, .pixels = pixels, .error = error };
    read_jpeg(&jpeg);
    jpeg_destroy_decompress(&jpeg.decoder);
    free(jpeg.line);
    if (jpeg.status == QKV_OK) return QKV_OK;
    free(pixels->rgb);
    pixels->rgb = NULL;
    return jpeg.status;
}
