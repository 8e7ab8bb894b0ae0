/*
 * Orientation: the tag 0x0112 of EXIF (CIPA DC-008), and the eight ways to lay pixels.
 *
 * EXIF is a TIFF structure: "II*\0" or "MM\0*" says the order of bytes, then comes the place of a
 * directory, which has a count and entries of 12 bytes: tag, type, count, value.
 */
#include "image/decode.h"

enum {
    HEADER = 8,
    ENTRY = 12,
    TAG_ORIENTATION = 0x112,
    TYPE_SHORT = 3,
    CHANNELS = 3,
    /* bits of how pixels are turned, see `turns` */
    MIRRORS_X = 1,
    MIRRORS_Y = 2,
    TRANSPOSES = 4
};

typedef struct tiff_bytes {
    const uint8_t *bytes;
    size_t n;
    bool is_big_endian;
} tiff_bytes;

/* n bytes at a place that has them. */
static uint32_t number(const tiff_bytes *tiff, size_t at, int n) {
    uint32_t value = 0;
    for (int i = 0; i < n; i++)
        value |= (uint32_t)tiff->bytes[at + (size_t)i] << 8 * (tiff->is_big_endian ? n - 1 - i : i);
    return value;
}

int qkvi_exif_orientation(const uint8_t *bytes, size_t n_bytes) {
    tiff_bytes tiff = { bytes, n_bytes, false };
    if (n_bytes < HEADER) return 1;
    if (memcmp(bytes, "MM\0*", 4) == 0)
        tiff.is_big_endian = true;
    else if (memcmp(bytes, "II*\0", 4) != 0)
        return 1;
    const size_t directory = number(&tiff, 4, 4);
    if (directory > n_bytes - 2) return 1;
    const uint32_t n_entries = number(&tiff, directory, 2);
    size_t at = directory + 2;
    for (uint32_t i = 0; i < n_entries && n_bytes - at >= ENTRY; i++, at += ENTRY) {
        if (number(&tiff, at, 2) != TAG_ORIENTATION) continue;
        const uint32_t value = number(&tiff, at + 8, 2);
        return number(&tiff, at + 2, 2) == TYPE_SHORT && 1 <= value && value <= 8 ? (int)value : 1;
    }
    return 1;
}

/* ---- Pixels ---------------------------------------------------------------------------------- */

/* By orientation: transposed first, then mirrored, gives 1. */
static const int turns[9] = { 0,
                              0,
                              MIRRORS_X,
                              MIRRORS_X | MIRRORS_Y,
                              MIRRORS_Y,
                              TRANSPOSES,
                              TRANSPOSES | MIRRORS_X,
                              TRANSPOSES | MIRRORS_X | MIRRORS_Y,
                              TRANSPOSES | MIRRORS_Y };

static void lay(const qkvi_image_pixels *from, int turn, qkvi_image_pixels *to) {
    for (int64_t y = 0; y < to->height; y++) {
        const int64_t row = turn & MIRRORS_Y ? to->height - 1 - y : y;
        for (int64_t x = 0; x < to->width; x++) {
            const int64_t column = turn & MIRRORS_X ? to->width - 1 - x : x;
            const int64_t place =
                turn & TRANSPOSES ? column * from->width + row : row * from->width + column;
            memcpy(to->rgb + (y * to->width + x) * CHANNELS, from->rgb + place * CHANNELS,
                   CHANNELS);
        }
    }
}

qkv_status qkvi_image_turn(const char *name, qkvi_image_pixels *pixels, qkv_error *error) {
    const int turn = turns[pixels->orientation];
    qkvi_image_pixels turned = { .orientation = 1 };
    if (turn == 0) return QKV_OK;
    const bool swaps = turn & TRANSPOSES;
    QKV_TRY(qkvi_image_reserve(name, swaps ? pixels->width : pixels->height,
                               swaps ? pixels->height : pixels->width, &turned, error));
    lay(pixels, turn, &turned);
    free(pixels->rgb);
    *pixels = turned;
    return QKV_OK;
}
