/*
 * The rows of an image in double: see steps_image.h. A patch is W p + b, the rows before the
 * patches are learned, and where there is a table of positions each row but registers has one of
 * it.
 */
#include "inspect/steps_image.h"

#include <math.h>
#include <string.h>

#include "files/base.h"
#include "model/layer/positions.h"

qkv_status qkvi_step_check_image(const qkv_model_info *info, const qkv_encoding *input,
                                 qkv_error *error) {
    const qkv_image_tokens *const t = input->image;
    if (info->patch_height == 0)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "input is an image, and %s reads texts",
                              info->source);
    if (!t || !t->pixels)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "input is a text, and %s reads images",
                              info->source);
    if (t->patch_height == info->patch_height && t->patch_width == info->patch_width &&
        t->rows == t->height / t->patch_height && t->columns == t->width / t->patch_width &&
        t->n_prefix == info->n_prefix && input->n == t->n_prefix + t->rows * t->columns)
        return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_SHAPE,
                          "input has %lld tokens of an image of another model",
                          (long long)input->n);
}

qkv_status qkvi_step_places(const qkvi_stack *stack, const qkv_encoding *input, float **made,
                            qkv_error *error) {
    const qkvi_patches *const p = &stack->patches;
    const int64_t h = stack->hidden;
    *made = NULL;
    if (!input->image || !p->positions) return QKV_OK;
    const qkvi_grid grid = { input->image->rows, input->image->columns };
    const size_t n = (size_t)(grid.rows * grid.columns * h);
    const float *const learned = p->positions + qkvi_patches_classes(p) * h;
    *made = qkvi_malloc_array(n, sizeof **made);
    if (!*made) return qkvi_no_memory(error, "positions of patches");
    if (grid.rows == p->learned.rows && grid.columns == p->learned.columns)
        memcpy(*made, learned, n * sizeof **made);
    else
        qkvi_positions_interpolate(h, p->learned, learned, p->antialiases, grid, *made);
    return QKV_OK;
}

/* The pixels of a patch, [3][height][width]. */
static void unfold(const qkvi_patches *p, const qkv_image_tokens *image, int64_t patch,
                   double *pixels) {
    const int64_t top = patch / image->columns * p->height,
                  left = patch % image->columns * p->width;
    for (int64_t c = 0; c < 3; c++)
        for (int64_t y = 0; y < p->height; y++)
            for (int64_t x = 0; x < p->width; x++)
                *pixels++ =
                    (double)image->pixels[(c * image->height + top + y) * image->width + left + x];
}

void qkvi_step_row(const qkvi_stack *stack, const qkv_encoding *input, const float *places,
                   int64_t i, double *pixels, double *row, double *position) {
    const qkvi_patches *const p = &stack->patches;
    const int64_t h = stack->hidden, n_classes = qkvi_patches_classes(p),
                  patch = i - qkvi_patches_prefix(p);
    const float *const at = !p->positions   ? NULL
                            : i < n_classes ? p->positions + i * h
                            : patch >= 0    ? places + patch * h
                                            : NULL;
    for (int64_t c = 0; c < h; c++) position[c] = at ? (double)at[c] : 0;
    if (patch < 0) {
        qkvi_step_widen(h, i < n_classes ? p->classes[i] : p->registers + (i - n_classes) * h, row);
        return;
    }
    unfold(p, input->image, patch, pixels);
    qkvi_step_linear(&p->map, 0, h, pixels, row);
}

void qkvi_step_turn(const qkvi_stack *stack, const qkv_encoding *input, int64_t i, int64_t n_heads,
                    double *x) {
    const qkv_image_tokens *const t = input->image;
    const int64_t d = stack->head_dim, half = d / 2, quarter = d / 4, patch = i - t->n_prefix;
    if (patch < 0) return;
    const double y_of = 2 * ((double)(patch / t->columns) + 0.5) / (double)t->rows - 1;
    const double x_of = 2 * ((double)(patch % t->columns) + 0.5) / (double)t->columns - 1;
    for (int64_t h = 0; h < n_heads; h++)
        for (int64_t c = 0; c < half; c++) {
            const double f = pow(stack->patches.theta, -4 * (double)(c % quarter) / (double)d);
            const double angle = 2 * M_PI * (c < quarter ? y_of : x_of) * f;
            double *const a = x + h * d + c, low = a[0], high = a[half];
            a[0] = cos(angle) * low - sin(angle) * high;
            a[half] = cos(angle) * high + sin(angle) * low;
        }
}
