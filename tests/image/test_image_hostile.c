/*
 * Hostile PNG and JPEG files (ids of docs/hostile-inputs.md), each read in a cage. Files that
 * others wrote are in tests/golden.
 */
#include "hostile/cage.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <zlib.h>

#include "qkv/image.h"

#define FILES QKV_TEST_DATA "/golden/image/files/"

/* ---- PNG ------------------------------------------------------------------------------------- */

enum { IHDR_BYTES = 13, NAME_BYTES = 4 };
/* What is wrong with a file. */
enum { NOTHING, HEAD_CRC, DATA_CRC, OTHER_CRC, NO_END, CUT_DATA, TWO_HEADS };

static void put_big_endian(FILE *out, uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) fputc((int)(value >> shift & 255), out);
}

static void put_chunk(FILE *out, const char *name, const void *bytes, size_t n, int wrong) {
    uLong crc = crc32(0, (const Bytef *)name, NAME_BYTES);
    if (n) crc = crc32(crc, bytes, (uInt)n);
    put_big_endian(out, (uint32_t)n);
    fwrite(name, 1, NAME_BYTES, out);
    if (n) fwrite(bytes, 1, n, out);
    put_big_endian(out, (uint32_t)crc ^ (uint32_t)wrong);
}

/* data_bytes zeros as IDAT. */
static void put_data(FILE *out, const hostile_file *file) {
    const uLong n = (uLong)file->data_bytes;
    uLongf n_packed = compressBound(n);
    Bytef *const zeros = calloc(1, n + 1), *const packed = malloc(n_packed);
    if (!zeros || !packed || compress2(packed, &n_packed, zeros, n, 9) != Z_OK) exit(1);
    if (file->number == CUT_DATA) n_packed /= 2;
    put_chunk(out, "IDAT", packed, n_packed, file->number == DATA_CRC);
    free(packed);
    free(zeros);
}

/* The 13 bytes of IHDR, then chunks: name, one byte for the length, content. */
static void make_png(FILE *out, const hostile_file *file) {
    fwrite("\x89PNG\r\n\x1a\n", 1, 8, out);
    for (int n = 0; n < 1 + (file->number == TWO_HEADS); n++)
        put_chunk(out, "IHDR", file->text, IHDR_BYTES, file->number == HEAD_CRC);
    for (size_t at = IHDR_BYTES; at + NAME_BYTES < file->n_text;) {
        const size_t n = (unsigned char)file->text[at + NAME_BYTES];
        put_chunk(out, file->text + at, file->text + at + NAME_BYTES + 1, n,
                  file->number == OTHER_CRC);
        at += NAME_BYTES + 1 + n;
    }
    if (file->data_bytes >= 0) put_data(out, file);
    if (file->number != NO_END) put_chunk(out, "IEND", "", 0, 0);
}

/* A compressed text of 90 MB, in front of one pixel. */
static void make_text_bomb(FILE *out, const hostile_file *file) {
    enum { N = 90000000 };
    uLongf n_packed = compressBound(N);
    Bytef *const zeros = calloc(1, N), *const bytes = malloc(3 + n_packed);
    if (!zeros || !bytes || compress2(bytes + 3, &n_packed, zeros, N, 9) != Z_OK) exit(1);
    memcpy(bytes, "a\0\0", 3);
    fwrite("\x89PNG\r\n\x1a\n", 1, 8, out);
    put_chunk(out, "IHDR", file->text, IHDR_BYTES, 0);
    put_chunk(out, "zTXt", bytes, 3 + n_packed, 0);
    put_data(out, file);
    put_chunk(out, "IEND", "", 0, 0);
    free(bytes);
    free(zeros);
}

/* ---- JPEG ------------------------------------------------------------------------------------ */

enum {
    TOO_LARGE = 1,
    TOO_SHORT,
    NO_ROWS,
    TWELVE_BITS,
    CUT,
    NO_EOI,
    BETWEEN,
    NO_TABLES,
    SCANS,
    LOSSLESS
};

/* 16 x 16 pixels in a scan for each of the three components. */
static uint8_t *jpeg_of(unsigned long *n_bytes) {
    static const jpeg_scan_info scans[] = { { 1, { 0 }, 0, 63, 0, 0 },
                                            { 1, { 1 }, 0, 63, 0, 0 },
                                            { 1, { 2 }, 0, 63, 0, 0 } };
    struct jpeg_compress_struct encoder;
    struct jpeg_error_mgr errors;
    uint8_t *bytes = NULL, row[16 * 3];
    JSAMPROW line = row;
    for (int i = 0; i < 16 * 3; i++) row[i] = (uint8_t)(i * 37);
    encoder.err = jpeg_std_error(&errors);
    jpeg_create_compress(&encoder);
    jpeg_mem_dest(&encoder, &bytes, n_bytes);
    encoder.image_width = encoder.image_height = 16;
    encoder.input_components = 3;
    encoder.in_color_space = JCS_RGB;
    jpeg_set_defaults(&encoder);
    encoder.scan_info = scans, encoder.num_scans = 3;
    jpeg_start_compress(&encoder, TRUE);
    for (int y = 0; y < 16; y++) jpeg_write_scanlines(&encoder, &line, 1);
    jpeg_finish_compress(&encoder);
    jpeg_destroy_compress(&encoder);
    return bytes;
}

/* The last place of a marker. */
static size_t find(const uint8_t *bytes, size_t n, int marker) {
    for (size_t at = n - 1; at-- > 0;)
        if (bytes[at] == 0xff && bytes[at + 1] == marker) return at;
    exit(1);
}

static void set_size(uint8_t *frame, unsigned height, unsigned width) {
    frame[5] = (uint8_t)(height >> 8), frame[6] = (uint8_t)height;
    frame[7] = (uint8_t)(width >> 8), frame[8] = (uint8_t)width;
}

static void make_jpeg(FILE *out, const hostile_file *file) {
    unsigned long n;
    uint8_t *const bytes = jpeg_of(&n), *const frame = bytes + find(bytes, n, 0xc0);
    const size_t scan = find(bytes, n, 0xda), end = find(bytes, n, 0xd9);
    if (file->number == TOO_LARGE) set_size(frame, 65500, 65500);
    if (file->number == TOO_SHORT) set_size(frame, 8000, 8000);
    if (file->number == NO_ROWS) set_size(frame, 0, 16);
    if (file->number == TWELVE_BITS) frame[4] = 12;
    if (file->number == LOSSLESS) frame[1] = 0xc3;
    if (file->number == NO_TABLES) bytes[find(bytes, n, 0xdb) + 1] = 0xee; /* Adobe's */
    fwrite(bytes, 1, file->number == CUT ? scan + 12 : scan, out);
    for (int64_t s = 0; s < (file->data_bytes ? file->data_bytes : 1) && file->number != CUT; s++)
        fwrite(bytes + scan, 1, end - scan, out);
    for (int i = 0; i < 100 && file->number == BETWEEN; i++) fputs("more", out);
    if (file->number != NO_EOI && file->number != CUT) fwrite("\xff\xd9", 1, 2, out);
    free(bytes);
}

/* EXIF of `text` before all else; what is damaged is no orientation, and no error. */
static void make_exif(FILE *out, const hostile_file *file) {
    unsigned long n;
    uint8_t *const bytes = jpeg_of(&n);
    fwrite("\xff\xd8\xff\xe1", 1, 4, out);
    fputc(0, out);
    fputc((int)(8 + file->n_text), out);
    fwrite("Exif\0\0", 1, 6, out);
    fwrite(file->text, 1, file->n_text, out);
    fwrite(bytes + 2, 1, n - 2, out);
    free(bytes);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

#define SIZE(w, h, depth, color, lace) w h depth color "\0\0" lace
#define ONE                            SIZE("\0\0\0\1", "\0\0\0\1", "\x08", "\2", "\0")
#define PNG(text)                      .make = make_png, HOSTILE_TEXT(text)
#define DATA(n)                        .data_bytes = (n)
#define OTHER(text)                    .make = hostile_make_text, HOSTILE_TEXT(text)
#define JPEG(kind)                     .make = make_jpeg, .number = (kind)
#define EXIF(text)                     .make = make_exif, HOSTILE_TEXT(text)

static const hostile_file cases[] = {
    { "IM01", "no bytes", QKV_ERR_FORMAT, "neither a PNG nor a JPEG", OTHER("") },
    { "IM01", "a text", QKV_ERR_FORMAT, "neither a PNG nor a JPEG", OTHER("<svg>") },
    { "IM01", "a GIF", QKV_ERR_UNSUPPORTED, "it is a GIF", OTHER("GIF89a\1\0\1\0") },
    { "IM01", "a TIFF", QKV_ERR_UNSUPPORTED, "it is a TIFF", OTHER("II*\0\10\0\0\0") },
    { "IM01", "a TIFF, big-endian", QKV_ERR_UNSUPPORTED, "it is a TIFF", OTHER("MM\0*\0\0\0\10") },
    { "IM01", "a WebP", QKV_ERR_UNSUPPORTED, "it is a WebP", OTHER("RIFF\x1a\0\0\0WEBPVP8L") },
    { "IM01", "a HEIC", QKV_ERR_UNSUPPORTED, "it is a HEIC",
      OTHER("\0\0\0\x18"
            "ftypheic") },
    { "IM01", "an AVIF", QKV_ERR_UNSUPPORTED, "it is an AVIF",
      OTHER("\0\0\0\x20"
            "ftypavif") },
    { "IM01", "a BMP", QKV_ERR_UNSUPPORTED, "it is a BMP", OTHER("BM\0\0\0\0") },

    { "IM02", "one pixel", QKV_OK, "", PNG(ONE), DATA(4) },
    { "IM02", "no header", QKV_ERR_FORMAT, "does not begin with IHDR", OTHER("\x89PNG\r\n\x1a\n") },
    { "IM02", "width 0", QKV_ERR_SHAPE, "0 x 1 pixels",
      PNG(SIZE("\0\0\0\0", "\0\0\0\1", "\x08", "\2", "\0")), DATA(4) },
    { "IM02", "a width of 2^32 - 1", QKV_ERR_LIMIT, "4294967295 x 1 pixels",
      PNG(SIZE("\xff\xff\xff\xff", "\0\0\0\1", "\x08", "\2", "\0")), DATA(4) },
    { "IM02", "a height of 65536", QKV_ERR_LIMIT, "the limit of a side is 65535",
      PNG(SIZE("\0\0\0\1", "\0\1\0\0", "\x08", "\2", "\0")), DATA(4) },
    { "IM02", "more than 2^26 pixels", QKV_ERR_LIMIT, "the limit is 67108864 in all",
      PNG(SIZE("\0\0\x20\0", "\0\0\x20\1", "\x08", "\2", "\0")), DATA(4) },
    { "IM02", "2^26 pixels in a file of 70 bytes", QKV_ERR_FORMAT,
      "8192 x 8192 pixels cannot be in a file of",
      PNG(SIZE("\0\0\x20\0", "\0\0\x20\0", "\x08", "\2", "\0")), DATA(4) },
    { "IM03", "16 bits of grey", QKV_ERR_UNSUPPORTED, "16 bits a sample",
      PNG(SIZE("\0\0\0\1", "\0\0\0\1", "\x10", "\0", "\0")), DATA(3) },
    { "IM03", "16 bits of colour", QKV_ERR_UNSUPPORTED, "16 bits a sample",
      PNG(SIZE("\0\0\0\1", "\0\0\0\1", "\x10", "\2", "\0")), DATA(7) },
    { "IM03", "3 bits", QKV_ERR_FORMAT, "Invalid IHDR data",
      PNG(SIZE("\0\0\0\1", "\0\0\0\1", "\3", "\0", "\0")), DATA(3) },
    { "IM03", "colours of type 5", QKV_ERR_FORMAT, "Invalid IHDR data",
      PNG(SIZE("\0\0\0\1", "\0\0\0\1", "\x08", "\5", "\0")), DATA(3) },
    { "IM03", "interlaced another way", QKV_ERR_FORMAT, "Invalid IHDR data",
      PNG(SIZE("\0\0\0\1", "\0\0\0\1", "\x08", "\2", "\2")), DATA(4) },
    { "IM03", "a palette that is missing", QKV_ERR_FORMAT, "PLTE",
      PNG(SIZE("\0\0\0\1", "\0\0\0\1", "\x08", "\3", "\0")), DATA(2) },
    { "IM03", "a palette without the colour", QKV_OK, "",
      PNG(SIZE("\0\0\0\1", "\0\0\0\1", "\x08", "\3", "\0") "PLTE\x03\1\2\3"), DATA(2) },
    { "IM03", "two headers", QKV_ERR_FORMAT, "IHDR", PNG(ONE), DATA(4), .number = TWO_HEADS },
    { "IM04", "a wrong checksum of the header", QKV_ERR_FORMAT, "IHDR: CRC error", PNG(ONE),
      DATA(4), .number = HEAD_CRC },
    { "IM04", "a wrong checksum of pixels", QKV_ERR_FORMAT, "CRC error", PNG(ONE), DATA(4),
      .number = DATA_CRC },
    { "IM04", "a wrong checksum of a text", QKV_ERR_FORMAT, "tEXt: CRC error",
      PNG(ONE "tEXt\x03"
              "a\0b"),
      DATA(4), .number = OTHER_CRC },
    { "IM04", "a chunk that is not known, and critical", QKV_ERR_FORMAT, "unhandled critical",
      PNG(ONE "ABCD\1x"), DATA(4) },
    { "IM05", "no pixels", QKV_ERR_FORMAT, "PNG: ", PNG(ONE), DATA(-1) },
    { "IM05", "a byte of pixels too few", QKV_ERR_FORMAT, "PNG: ", PNG(ONE), DATA(3) },
    { "IM05", "pixels that are cut", QKV_ERR_FORMAT, "PNG: ", PNG(ONE), DATA(4),
      .number = CUT_DATA },
    { "IM05", "more than the pixels", QKV_OK, "", PNG(ONE), DATA(5) },
    { "IM05", "no end", QKV_ERR_FORMAT, "the file ends early", PNG(ONE), DATA(4),
      .number = NO_END },
    { "IM06", "a text of 90 MB", QKV_OK, "", make_text_bomb, HOSTILE_TEXT(ONE), DATA(4) },
    { "IM06", "4 GB of pixels for one", QKV_OK, "", PNG(ONE), DATA(60000000) },

    { "IM07", "three scans", QKV_OK, "", JPEG(0) },
    { "IM07", "65500 x 65500 pixels", QKV_ERR_LIMIT, "the limit is 67108864 in all",
      JPEG(TOO_LARGE) },
    { "IM07", "8000 x 8000 pixels in less than a kilobyte", QKV_ERR_FORMAT,
      "8000 x 8000 pixels cannot be in a file of", JPEG(TOO_SHORT) },
    { "IM07", "no rows", QKV_ERR_FORMAT, "JPEG: ", JPEG(NO_ROWS) },
    { "IM08", "12 bits", QKV_ERR_UNSUPPORTED, "precision", JPEG(TWELVE_BITS) },
    { "IM08", "lossless", QKV_ERR_UNSUPPORTED, "JPEG: ", JPEG(LOSSLESS) },
    { "IM08", "no tables", QKV_ERR_FORMAT, "JPEG: ", JPEG(NO_TABLES) },
    { "IM09", "cut in a scan", QKV_ERR_FORMAT, "JPEG: ", JPEG(CUT) },
    { "IM09", "no end", QKV_ERR_FORMAT, "JPEG: ", JPEG(NO_EOI) },
    { "IM09", "bytes between segments", QKV_ERR_FORMAT, "extraneous", JPEG(BETWEEN) },
    { "IM10", "100 scans", QKV_OK, "", JPEG(0), DATA(98) },
    { "IM10", "101 scans", QKV_ERR_LIMIT, "101 scans, the limit is 100", JPEG(0), DATA(99) },
    { "IM10", "100,000 scans", QKV_ERR_LIMIT, "101 scans, the limit is 100", JPEG(0), DATA(99998) },

    { "IM11", "orientation 6", QKV_OK, "", EXIF("II*\0\10\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0") },
    { "IM11", "no EXIF", QKV_OK, "", EXIF("") },
    { "IM11", "a directory at 2^32 - 1", QKV_OK, "", EXIF("II*\0\xff\xff\xff\xff") },
    { "IM11", "a directory at the end", QKV_OK, "", EXIF("MM\0*\0\0\0\10") },
    { "IM11", "65535 entries", QKV_OK, "", EXIF("MM\0*\0\0\0\10\xff\xff\1\0") },
    { "IM11", "orientation 9", QKV_OK, "", EXIF("II*\0\10\0\0\0\1\0\x12\1\3\0\1\0\0\0\x09\0\0\0") },
    { "IM11", "an orientation of another type", QKV_OK, "",
      EXIF("II*\0\10\0\0\0\1\0\x12\1\7\0\1\0\0\0\6\0\0\0") },
    { "IM11", "an orientation that is cut", QKV_OK, "",
      EXIF("II*\0\10\0\0\0\1\0\x12\1\3\0\1\0\0\0\6") },
};

static qkv_status read_image(const char *path, qkv_error *error) {
    qkv_image *image = (qkv_image *)1;
    const qkv_status status = qkv_image_read(path, &image, error);
    if (status != QKV_OK && image) return HOSTILE_BROKEN;
    qkv_image_free(image);
    return status;
}

/* ---- Files of others, cut and changed -------------------------------------------------------- */

static uint8_t *load(const char *name, size_t *n_bytes) {
    char path[512];
    snprintf(path, sizeof path, FILES "%s", name);
    FILE *const in = fopen(path, "rb");
    uint8_t *const bytes = malloc(1 << 16);
    if (!in || !bytes) exit(1);
    *n_bytes = fread(bytes, 1, 1 << 16, in);
    fclose(in);
    return bytes;
}

/* The image of n bytes in memory that ends with them. */
static qkv_status parse(const uint8_t *bytes, size_t n, qkv_error *error) {
    qkv_image *image = (qkv_image *)1;
    uint8_t *const exact = malloc(n ? n : 1);
    if (!exact) exit(1);
    memcpy(exact, bytes, n);
    const qkv_status status = qkv_image_parse("x", exact, n, &image, error);
    free(exact);
    if (status != QKV_OK && image) return HOSTILE_BROKEN;
    qkv_image_free(image);
    return status;
}

/* Cut anywhere, it is refused. */
static qkv_status cut(const void *name, qkv_error *error) {
    size_t n;
    uint8_t *const bytes = load(name, &n);
    qkv_status status = parse(bytes, n, error);
    for (size_t at = 0; at < n && status == QKV_OK; at++)
        if (parse(bytes, at, error) != QKV_ERR_FORMAT)
            status = qkv_image_parse("x", bytes, at, NULL, error);
    free(bytes);
    return status;
}

/* Any byte changed: a PNG is refused, whose checksums cover all, and nothing crashes. */
static qkv_status change(const void *name, qkv_error *error) {
    size_t n;
    uint8_t *const bytes = load(name, &n);
    const bool is_png = strstr(name, ".png") != NULL;
    qkv_status status = QKV_OK;
    for (size_t at = 0; at < n && status == QKV_OK; at++)
        for (int bit = 1; bit < 256 && status == QKV_OK; bit *= 4) {
            bytes[at] ^= (uint8_t)bit;
            const qkv_status changed = parse(bytes, n, error);
            if (changed == HOSTILE_BROKEN || (is_png && changed == QKV_OK)) status = HOSTILE_BROKEN;
            bytes[at] ^= (uint8_t)bit;
        }
    free(bytes);
    return status;
}

static const char *const names[] = { "RGBA.png", "interlaced.png",   "palette_16.png",
                                     "cmyk.jpg", "turned_6.jpg",     "progressive.jpg",
                                     "ycck.jpg", "subsampled_2.jpg", "restarts.jpg" };

static void test_cut(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        hostile_expect(names[i], cut, names[i], QKV_OK, "");
}

static void test_changed(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        hostile_expect(names[i], change, names[i], QKV_OK, "");
}

int main(void) {
    static const hostile_family family = {
        "image", "image", read_image, cases, sizeof cases / sizeof *cases, NULL, NULL
    };
    const struct CMUnitTest others[] = {
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_changed),
    };
    return hostile_main(&family, others, sizeof others / sizeof *others);
}
