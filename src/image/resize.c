/*
 * Resizing: see resize.h.
 *
 * Of a side, with s = n_in / n_out, F = max(s, 1), and a kernel k of support S, output i is the sum
 * of w_j v_j over lo <= j < hi:
 *
 *     c  = s (i + 1/2)
 *     lo = max(trunc(c - S F + 1/2), 0)        hi = min(trunc(c + S F + 1/2), n_in)
 *     w_j = k((j - c + 1/2) / F) / sum
 *
 * in double. Of bytes, weights are then rounded to w 2^p, halves away from 0, where p is the
 * largest that is at most 22, and keeps all weights of the side below 2^15; so p depends on columns
 * that are not made, too. The result is (2^(p - 1) + sum) >> p, clamped to a byte. Rows are resized
 * first, to bytes, then columns. A side that keeps its size is copied. Reference: the kernels of
 * ATen for uint8 on AVX2, after Pillow-SIMD.
 *
 * Only the rows of the input that columns to be made depend on go through the first pass.
 */
#include "image/resize.h"

#include <math.h>

#include "qkv/image.h"

enum { CHANNELS = 3, MAX_PRECISION = 22, WEIGHT_BITS = 15 };

/* Of each output that is made, from where it takes how many inputs, by which weights. */
typedef struct side_taps {
    int64_t *first, *n; /* [side->n] */
    double *weights;    /* [side->n][width] */
    int16_t *rounded;   /* the same, of bytes; NULL: of floats */
    int64_t width;
    int precision;
} side_taps;

/* Both passes; a side without taps keeps its size. */
typedef struct both_passes {
    const qkvi_resize *resize;
    side_taps x, y;
    bool floats; /* of values times factor */
    float factor;
    int64_t from, n_rows; /* of the input, those that are used */
} both_passes;

static void free_taps(side_taps *taps) {
    free(taps->first);
    free(taps->n);
    free(taps->weights);
    free(taps->rounded);
    *taps = (side_taps){ 0 };
}

/* ---- Kernels --------------------------------------------------------------------------------- */

static double triangle(double x) {
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

/* Keys 1981, a = -1/2. */
static double cubic(double x) {
    const double a = -0.5;
    x = fabs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static double sinc(double x) {
    const double pi = 3.14159265358979323846;
    return x == 0 ? 1 : sin(pi * x) / (pi * x);
}

static double lanczos(double x) { return -3 <= x && x < 3 ? sinc(x) * sinc(x / 3) : 0; }

/* Nearest has no antialias, and so no kernel. */
static const struct kernel {
    double (*of)(double x);
    double support;
} kernels[] = { [QKVI_IMAGE_NEAREST] = { NULL, 0 },
                [QKVI_IMAGE_LANCZOS] = { lanczos, 3 },
                [QKVI_IMAGE_BILINEAR] = { triangle, 1 },
                [QKVI_IMAGE_BICUBIC] = { cubic, 2 } };

/* ---- Weights --------------------------------------------------------------------------------- */

/* The one input that the middle of output i is in, in f32 as ATen's nearest-exact. */
static int64_t choose_nearest(const qkvi_resize_side *side, int64_t i, int64_t *first,
                              double *weights) {
    const float scale = (float)side->n_in / (float)side->n_out;
    const int64_t nearest = (int64_t)floorf(((float)i + 0.5f) * scale);
    *first = nearest < side->n_in ? nearest : side->n_in - 1;
    weights[0] = 1;
    return 1;
}

/* Those of output i; returns how many. */
static int64_t weigh(const struct kernel *kernel, const qkvi_resize_side *side, int64_t i,
                     int64_t *first, double *weights) {
    if (!kernel->of) return choose_nearest(side, i, first, weights);
    const double scale = (double)side->n_in / (double)side->n_out;
    const double support = scale >= 1 ? kernel->support * scale : kernel->support;
    const double inverse = scale >= 1 ? 1 / scale : 1;
    const double center = scale * ((double)i + 0.5);
    const int64_t begin = (int64_t)(center - support + 0.5);
    const int64_t end = (int64_t)(center + support + 0.5);
    const int64_t lo = begin > 0 ? begin : 0, n = (end < side->n_in ? end : side->n_in) - lo;
    double sum = 0;
    for (int64_t j = 0; j < n; j++) {
        weights[j] = kernel->of(((double)(j + lo) - center + 0.5) * inverse);
        sum += weights[j];
    }
    const double factor = sum != 0 ? 1 / sum : 1;
    for (int64_t j = 0; j < n; j++) weights[j] *= factor;
    *first = lo;
    return n;
}

static int precision_of(double largest) {
    int precision = 0;
    while (precision < MAX_PRECISION &&
           (int64_t)(0.5 + largest * (double)(1 << (precision + 1))) < 1 << WEIGHT_BITS)
        precision++;
    return precision;
}

static void round_weights(const qkvi_resize_side *side, side_taps *taps) {
    const double unit = (double)(1 << taps->precision);
    for (int64_t i = 0; i < side->n; i++)
        for (int64_t j = i * taps->width, end = j + taps->n[i]; j < end; j++)
            taps->rounded[j] =
                (int16_t)(taps->weights[j] * unit + (taps->weights[j] < 0 ? -0.5 : 0.5));
}

/* Fills what make_taps has reserved. others has room for the weights of an output not made. */
static void fill_taps(const struct kernel *kernel, const qkvi_resize_side *side, double *others,
                      side_taps *taps) {
    double largest = 0;
    const int64_t begin = taps->rounded ? 0 : side->begin;
    const int64_t end = taps->rounded ? side->n_out : side->begin + side->n;
    for (int64_t i = begin; i < end; i++) {
        const int64_t at = i - side->begin;
        const bool is_made = 0 <= at && at < side->n;
        double *const weights = is_made ? taps->weights + at * taps->width : others;
        int64_t first;
        const int64_t n = weigh(kernel, side, i, &first, weights);
        if (is_made) taps->first[at] = first, taps->n[at] = n;
        for (int64_t j = 0; j < n; j++) largest = weights[j] > largest ? weights[j] : largest;
    }
    if (!taps->rounded) return;
    taps->precision = precision_of(largest);
    round_weights(side, taps);
}

static qkv_status make_taps(const qkvi_resize_side *side, qkvi_image_filter filter, bool rounds,
                            side_taps *taps, qkv_error *error) {
    const struct kernel *const kernel = &kernels[filter];
    const double scale = (double)side->n_in / (double)side->n_out;
    const double reach = ceil(kernel->support * (scale > 1 ? scale : 1));
    *taps = (side_taps){ .width = 2 * (int64_t)reach + 1 };
    const size_t n_weights = (size_t)(side->n * taps->width);
    double *const others = qkvi_malloc_array((size_t)taps->width, sizeof *others);
    taps->first = qkvi_malloc_array((size_t)side->n, sizeof *taps->first);
    taps->n = qkvi_malloc_array((size_t)side->n, sizeof *taps->n);
    taps->weights = qkvi_malloc_array(n_weights, sizeof *taps->weights);
    taps->rounded = rounds ? qkvi_malloc_array(n_weights, sizeof *taps->rounded) : NULL;
    const bool complete =
        others && taps->first && taps->n && taps->weights && (taps->rounded || !rounds);
    if (complete) fill_taps(kernel, side, others, taps);
    free(others);
    if (complete) return QKV_OK;
    free_taps(taps);
    return qkvi_no_memory(error, "the weights of a resized image");
}

/* ---- Sums ------------------------------------------------------------------------------------ */

static uint8_t to_byte(int32_t sum, int precision) {
    const int32_t value = sum >> precision;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static int32_t half_of(const side_taps *taps) {
    return taps->precision > 0 ? 1 << (taps->precision - 1) : 0;
}

/* A row of the input to n pixels. */
static void resize_row(const side_taps *taps, int64_t n, const uint8_t *in, uint8_t *out) {
    for (int64_t i = 0; i < n; i++) {
        const int16_t *const w = taps->rounded + i * taps->width;
        const uint8_t *v = in + taps->first[i] * CHANNELS;
        int32_t sums[CHANNELS];
        for (int c = 0; c < CHANNELS; c++) sums[c] = half_of(taps);
        for (int64_t j = 0; j < taps->n[i]; j++, v += CHANNELS)
            for (int c = 0; c < CHANNELS; c++) sums[c] += w[j] * v[c];
        for (int c = 0; c < CHANNELS; c++) *out++ = to_byte(sums[c], taps->precision);
    }
}

static void resize_row_floats(const side_taps *taps, int64_t n, const uint8_t *in, float factor,
                              float *out) {
    for (int64_t i = 0; i < n; i++) {
        const double *const w = taps->weights + i * taps->width;
        const uint8_t *v = in + taps->first[i] * CHANNELS;
        double sums[CHANNELS] = { 0 };
        for (int64_t j = 0; j < taps->n[i]; j++, v += CHANNELS)
            for (int c = 0; c < CHANNELS; c++) sums[c] += w[j] * (double)((float)v[c] * factor);
        for (int c = 0; c < CHANNELS; c++) *out++ = (float)sums[c];
    }
}

/* A row of n values: the weighted sum of rows below each other, of which in is the first. */
static void add_rows(const side_taps *taps, int64_t i, int64_t n, const uint8_t *in, uint8_t *out) {
    enum { BLOCK = 256 };
    const int16_t *const w = taps->rounded + i * taps->width;
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        const int64_t end = n - begin < BLOCK ? n - begin : BLOCK;
        int32_t sums[BLOCK];
        for (int64_t x = 0; x < end; x++) sums[x] = half_of(taps);
        for (int64_t j = 0; j < taps->n[i]; j++)
            for (int64_t x = 0; x < end; x++) sums[x] += w[j] * in[j * n + begin + x];
        for (int64_t x = 0; x < end; x++) out[begin + x] = to_byte(sums[x], taps->precision);
    }
}

static void add_rows_floats(const side_taps *taps, int64_t i, int64_t n, const float *in,
                            float *out) {
    enum { BLOCK = 256 };
    const double *const w = taps->weights + i * taps->width;
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        const int64_t end = n - begin < BLOCK ? n - begin : BLOCK;
        double sums[BLOCK] = { 0 };
        for (int64_t j = 0; j < taps->n[i]; j++)
            for (int64_t x = 0; x < end; x++) sums[x] += w[j] * (double)in[j * n + begin + x];
        for (int64_t x = 0; x < end; x++) out[begin + x] = (float)sums[x];
    }
}

/* ---- Passes ---------------------------------------------------------------------------------- */

/* The columns of a row that are made, of a side that keeps its size. */
static void keep_row(const both_passes *passes, const uint8_t *in, void *out) {
    const qkvi_resize_side *const side = &passes->resize->x;
    const int64_t n = side->n * CHANNELS;
    float *const floats = out;
    in += side->begin * CHANNELS;
    if (!passes->floats)
        memcpy(out, in, (size_t)n);
    else
        for (int64_t x = 0; x < n; x++) floats[x] = (float)in[x] * passes->factor;
}

/* Each row of the input that is used, to passes->resize->x.n pixels. */
static void first_pass(const both_passes *passes, const uint8_t *in, void *out) {
    const qkvi_resize *const resize = passes->resize;
    const size_t row_bytes =
        (size_t)(resize->x.n * CHANNELS) * (passes->floats ? sizeof(float) : 1);
    for (int64_t r = 0; r < passes->n_rows; r++) {
        const uint8_t *const row = in + (passes->from + r) * resize->x.n_in * CHANNELS;
        void *const to = (char *)out + (size_t)r * row_bytes;
        if (!passes->x.first)
            keep_row(passes, row, to);
        else if (passes->floats)
            resize_row_floats(&passes->x, resize->x.n, row, passes->factor, to);
        else
            resize_row(&passes->x, resize->x.n, row, to);
    }
}

static void second_pass(const both_passes *passes, const void *in, void *out) {
    const int64_t n = passes->resize->x.n * CHANNELS;
    for (int64_t i = 0; i < passes->resize->y.n; i++) {
        const int64_t at = (passes->y.first[i] - passes->from) * n;
        if (passes->floats)
            add_rows_floats(&passes->y, i, n, (const float *)in + at, (float *)out + i * n);
        else
            add_rows(&passes->y, i, n, (const uint8_t *)in + at, (uint8_t *)out + i * n);
    }
}

/* Both passes, the first into memory of its own. */
static qkv_status run_both(const both_passes *passes, const uint8_t *in, void *out,
                           qkv_error *error) {
    const int64_t n = passes->n_rows * passes->resize->x.n;
    if (n > QKV_IMAGE_MAX_PIXELS)
        return qkvi_error_set(error, QKV_ERR_LIMIT,
                              "image: %lld rows, resized to a width of %lld, have %lld pixels; the "
                              "limit is %d",
                              (long long)passes->n_rows, (long long)passes->resize->x.n,
                              (long long)n, QKV_IMAGE_MAX_PIXELS);
    void *const between =
        qkvi_malloc_array((size_t)n, CHANNELS * (passes->floats ? sizeof(float) : 1));
    if (!between) return qkvi_no_memory(error, "a resized image");
    first_pass(passes, in, between);
    second_pass(passes, between, out);
    free(between);
    return QKV_OK;
}

/* Reserves the taps of both sides. After an error passes may have those of one. */
static qkv_status begin_passes(both_passes *passes, qkv_error *error) {
    const qkvi_resize *const resize = passes->resize;
    const qkvi_resize_side *const y = &resize->y;
    passes->from = y->begin, passes->n_rows = y->n;
    if (resize->x.n_in != resize->x.n_out)
        QKV_TRY(make_taps(&resize->x, resize->filter, !passes->floats, &passes->x, error));
    if (y->n_in == y->n_out) return QKV_OK;
    QKV_TRY(make_taps(y, resize->filter, !passes->floats, &passes->y, error));
    passes->from = passes->y.first[0];
    passes->n_rows = passes->y.first[y->n - 1] + passes->y.n[y->n - 1] - passes->from;
    return QKV_OK;
}

static qkv_status run(both_passes *passes, const uint8_t *in, void *out, qkv_error *error) {
    qkv_status status = begin_passes(passes, error);
    if (status == QKV_OK && passes->y.first)
        status = run_both(passes, in, out, error);
    else if (status == QKV_OK)
        first_pass(passes, in, out);
    free_taps(&passes->x);
    free_taps(&passes->y);
    return status;
}

qkv_status qkvi_resize_bytes(const qkvi_resize *resize, const uint8_t *in, uint8_t *out,
                             qkv_error *error) {
    return run(&(both_passes){ .resize = resize }, in, out, error);
}

qkv_status qkvi_resize_floats(const qkvi_resize *resize, const uint8_t *in, float factor,
                              float *out, qkv_error *error) {
    return run(&(both_passes){ .resize = resize, .floats = true, .factor = factor }, in, out,
               error);
}
