/*
 * An image by the rules of a model: see prepare.h.
 *
 * Of bytes, rescaling and normalizing are one step: (v - mean / factor) / (std / factor), each
 * number f32, as transformers fuses them.
 */
#include "image/prepare.h"

#include "image/resize.h"

enum { CHANNELS = 3 };

/* A side of the image: what the crop keeps of it, and where that stands in what is made. */
typedef struct crop_side {
    qkvi_resize_side resize;
    int64_t n, at; /* n pixels are made; those of resize begin at `at`, all others are 0 */
} crop_side;

/* The middle of n_out, or all of it between zeros. */
static crop_side side_of(int64_t n_in, int64_t n_out, int64_t crop) {
    if (crop == 0) return (crop_side){ { n_in, n_out, 0, n_out }, n_out, 0 };
    if (crop > n_out) return (crop_side){ { n_in, n_out, 0, n_out }, crop, (crop - n_out) / 2 };
    return (crop_side){ { n_in, n_out, (n_out - crop) / 2, crop }, crop, 0 };
}

static qkv_status check_side(int64_t n, int64_t limit, const char *what, qkv_error *error) {
    if (n <= limit) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_LIMIT,
                          "image: a side of %lld pixels %s, the limit is %lld", (long long)n, what,
                          (long long)limit);
}

static qkv_status find_sides(const qkvi_image_rules *rules, const qkv_image *image, crop_side *y,
                             crop_side *x, qkv_error *error) {
    int64_t height = image->height, width = image->width;
    if (rules->shortest_edge > 0) {
        const int64_t edge = rules->shortest_edge;
        const bool is_tall = width <= height;
        height = is_tall ? edge * image->height / width : edge;
        width = is_tall ? edge : edge * width / image->height;
    } else if (rules->height > 0) {
        height = rules->height, width = rules->width;
    }
    *y = side_of(image->height, height, rules->crop_height);
    *x = side_of(image->width, width, rules->crop_width);
    const int64_t longest = height > width ? height : width;
    QKV_TRY(check_side(longest, QKVI_IMAGE_MAX_RESIZED, "after resizing", error));
    QKV_TRY(check_side(y->n, QKVI_IMAGE_MAX_OUTPUT, "for the model", error));
    return check_side(x->n, QKVI_IMAGE_MAX_OUTPUT, "for the model", error);
}

/* Places of what is made, in pixels of the image. */
static void place(const crop_side *side, double *begin, double *end) {
    const double scale = (double)side->resize.n_in / (double)side->resize.n_out;
    *begin = (double)(side->resize.begin - side->at) * scale;
    *end = *begin + (double)side->n * scale;
}

qkv_status qkvi_image_view_of(const qkvi_image_rules *rules, const qkv_image *image,
                              qkvi_image_view *view, qkv_error *error) {
    crop_side y, x;
    QKV_TRY(find_sides(rules, image, &y, &x, error));
    *view = (qkvi_image_view){ .height = y.n, .width = x.n };
    place(&y, &view->y0, &view->y1);
    place(&x, &view->x0, &view->x1);
    return QKV_OK;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* One channel's (v - subtract) / divide, or v * factor. */
typedef struct value_map {
    float subtract, divide, factor;
    bool normalizes;
} value_map;

static value_map map_of(const qkvi_image_rules *rules, int channel) {
    value_map map = { 0, 1, rules->rescale_factor > 0 ? (float)rules->rescale_factor : 1.0f,
                      rules->normalizes };
    if (!rules->normalizes) return map;
    map.subtract = (float)rules->mean[channel];
    map.divide = (float)rules->std[channel];
    if (rules->rescale_factor == 0 || rules->rescales_first) return map;
    map.subtract *= (float)(1 / rules->rescale_factor);
    map.divide *= (float)(1 / rules->rescale_factor);
    return map;
}

static float value_of(const value_map *map, float v) {
    return map->normalizes ? (v - map->subtract) / map->divide : v * map->factor;
}

/* From the part that was made, of either kind, to all values of a channel. */
static void spread(const crop_side *y, const crop_side *x, const value_map *map, int channel,
                   const uint8_t *bytes, const float *floats, float *pixels) {
    const float zero = value_of(map, 0);
    for (int64_t i = 0; i < y->n * x->n; i++) pixels[i] = zero;
    for (int64_t r = 0; r < y->resize.n; r++) {
        float *const row = pixels + (y->at + r) * x->n + x->at;
        const int64_t at = r * x->resize.n * CHANNELS + channel;
        for (int64_t c = 0; c < x->resize.n; c++)
            row[c] =
                value_of(map, floats ? floats[at + c * CHANNELS] : (float)bytes[at + c * CHANNELS]);
    }
}

static qkv_status resize_bytes(const qkvi_image_rules *rules, const qkv_image *image,
                               const crop_side *y, const crop_side *x, uint8_t **bytes,
                               qkv_error *error) {
    const qkvi_resize resize = { y->resize, x->resize, rules->filter };
    *bytes = qkvi_malloc_array((size_t)(y->resize.n * x->resize.n), CHANNELS);
    if (!*bytes) return qkvi_no_memory(error, "a resized image");
    return qkvi_resize_bytes(&resize, image->rgb, *bytes, error);
}

static qkv_status resize_floats(const qkvi_image_rules *rules, const qkv_image *image,
                                const crop_side *y, const crop_side *x, float **floats,
                                qkv_error *error) {
    const qkvi_resize resize = { y->resize, x->resize, rules->filter };
    const float factor = rules->rescale_factor > 0 ? (float)rules->rescale_factor : 1;
    *floats = qkvi_malloc_array((size_t)(y->resize.n * x->resize.n), CHANNELS * sizeof **floats);
    if (!*floats) return qkvi_no_memory(error, "a resized image");
    return qkvi_resize_floats(&resize, image->rgb, factor, *floats, error);
}

/* What was resized, between zeros. */
static void copy_rgb(const crop_side *y, const crop_side *x, const uint8_t *bytes, uint8_t *rgb) {
    memset(rgb, 0, (size_t)(y->n * x->n * CHANNELS));
    for (int64_t r = 0; r < y->resize.n; r++)
        memcpy(rgb + ((y->at + r) * x->n + x->at) * CHANNELS, bytes + r * x->resize.n * CHANNELS,
               (size_t)(x->resize.n * CHANNELS));
}

qkv_status qkvi_image_prepare(const qkvi_image_rules *rules, const qkv_image *image, float *pixels,
                              uint8_t *rgb, qkv_error *error) {
    const bool by_floats = pixels && rules->rescales_first;
    uint8_t *bytes = NULL;
    float *floats = NULL;
    crop_side y, x;
    QKV_TRY(find_sides(rules, image, &y, &x, error));
    qkv_status status = QKV_OK;
    if (rgb || !by_floats) status = resize_bytes(rules, image, &y, &x, &bytes, error);
    if (status == QKV_OK && by_floats) status = resize_floats(rules, image, &y, &x, &floats, error);
    for (int c = 0; c < CHANNELS && pixels && status == QKV_OK; c++) {
        value_map map = map_of(rules, c);
        if (rules->rescales_first) map.factor = 1; /* it was done */
        spread(&y, &x, &map, c, bytes, floats, pixels + c * y.n * x.n);
    }
    if (rgb && status == QKV_OK) copy_rgb(&y, &x, bytes, rgb);
    free(bytes);
    free(floats);
    return status;
}
