/* Patches of images: see patches.h. */
#include "model/layer/patches.h"

#include <string.h>

#include "layer/angles.h"
#include "layer/rows.h"
#include "model/layer/positions.h"

int64_t qkvi_patches_count(const qkvi_patches *p, const qkvi_patch_rows *rows) {
    int64_t n = 0;
    for (int64_t b = 0; b < rows->n_images; b++) {
        const qkvi_grid grid = qkvi_patches_grid(p, &rows->images[b]);
        n += grid.rows * grid.columns;
    }
    return n;
}

static int64_t most_patches(const qkvi_patches *p, const qkvi_patch_rows *rows) {
    int64_t most = 0;
    for (int64_t b = 0; b < rows->n_images; b++) {
        const qkvi_grid grid = qkvi_patches_grid(p, &rows->images[b]);
        if (grid.rows * grid.columns > most) most = grid.rows * grid.columns;
    }
    return most;
}

void qkvi_patches_cut(const qkvi_patches *p, const qkvi_patch_rows *rows, bool train,
                      qkvi_cutter *cutter, qkvi_patch_acts *acts) {
    const int64_t n = qkvi_patches_count(p, rows), h = p->map.n_out;
    *acts = (qkvi_patch_acts){ 0 };
    acts->x = qkvi_cut(cutter, n * qkvi_patches_elems(p), sizeof(float));
    acts->y = qkvi_cut(cutter, n * h, sizeof(float));
    acts->placed = qkvi_cut(cutter, most_patches(p, rows) * h, sizeof(float));
    if (!train) return;
    acts->packed =
        qkvi_cut(cutter, qkvi_rows_packed_elems(n, qkvi_patches_elems(p)), sizeof(float));
    acts->sums = qkvi_cut(cutter, qkvi_colsum_elems(n, h), sizeof(float));
}

/* ---- Forward --------------------------------------------------------------------------------- */

/* The patches of an image as rows x [patches][3][height][width]; returns the end of them. */
static float *unfold(const qkvi_patches *p, const qkvi_pixels *image, float *x) {
    const qkvi_grid grid = qkvi_patches_grid(p, image);
    for (int64_t r = 0; r < grid.rows; r++)
        for (int64_t c = 0; c < grid.columns; c++)
            for (int64_t channel = 0; channel < 3; channel++)
                for (int64_t y = 0; y < p->height; y++, x += p->width) {
                    const int64_t line = channel * image->height + r * p->height + y;
                    memcpy(x, image->values + line * image->width + c * p->width,
                           (size_t)p->width * sizeof *x);
                }
    return x;
}

static void add(int64_t n, const float *x, float *y) {
    for (int64_t c = 0; c < n; c++) y[c] += x[c];
}

/* The rows before the patches; returns the first of these. */
static float *put_prefix(const qkvi_patches *p, float *s) {
    const int64_t h = p->map.n_out;
    for (int64_t k = 0; k < qkvi_patches_classes(p); k++, s += h) {
        memcpy(s, p->classes[k], (size_t)h * sizeof *s);
        if (p->positions) add(h, p->positions + k * h, s);
    }
    if (p->n_registers > 0) memcpy(s, p->registers, (size_t)(p->n_registers * h) * sizeof *s);
    return s + p->n_registers * h;
}

/* Positions of the patches of a grid; NULL: there are none. */
static const float *place(const qkvi_patches *p, qkvi_grid grid, float *placed) {
    const int64_t h = p->map.n_out;
    if (!p->positions) return NULL;
    const float *const learned = p->positions + qkvi_patches_classes(p) * h;
    if (grid.rows == p->learned.rows && grid.columns == p->learned.columns) return learned;
    qkvi_positions_interpolate(h, p->learned, learned, p->antialiases, grid, placed);
    return placed;
}

void qkvi_patches_forward(qkv_ctx *ctx, const qkvi_patches *p, const qkvi_patch_rows *rows,
                          const qkvi_patch_acts *acts, float *s) {
    const int64_t h = p->map.n_out;
    float *x = acts->x;
    const float *y = acts->y;
    qkvi_grid last = { 0, 0 };
    const float *positions = NULL;
    for (int64_t b = 0; b < rows->n_images; b++) x = unfold(p, &rows->images[b], x);
    qkvi_linear_forward(ctx, &p->map, qkvi_patches_count(p, rows), acts->x, acts->y);
    for (int64_t b = 0; b < rows->n_images; b++) {
        const qkvi_grid grid = qkvi_patches_grid(p, &rows->images[b]);
        const int64_t elems = grid.rows * grid.columns * h;
        float *const to = put_prefix(p, s + rows->first_row[b] * h);
        if (grid.rows != last.rows || grid.columns != last.columns)
            positions = place(p, grid, acts->placed);
        last = grid;
        memcpy(to, y, (size_t)elems * sizeof *to);
        if (positions) add(elems, positions, to);
        y += elems;
    }
}

/* ---- Backward -------------------------------------------------------------------------------- */

/* The gradient of the patches' rows to y, one image after the other. */
static void gather(const qkvi_patches *p, const qkvi_patch_rows *rows, const float *d, float *y) {
    const int64_t h = p->map.n_out, n = p->learned.rows * p->learned.columns;
    for (int64_t b = 0; b < rows->n_images; b++)
        memcpy(y + b * n * h, d + (rows->first_row[b] + qkvi_patches_prefix(p)) * h,
               (size_t)(n * h) * sizeof *y);
}

/* What was added to every image: to[n], from rows first … of each. */
static void sum_rows(const qkvi_patch_rows *rows, int64_t h, int64_t first, int64_t n,
                     const float *d, float *to) {
    if (!to) return;
    memset(to, 0, (size_t)(n * h) * sizeof *to);
    for (int64_t b = 0; b < rows->n_images; b++)
        add(n * h, d + (rows->first_row[b] + first) * h, to);
}

void qkvi_patches_backward(qkv_ctx *ctx, const qkvi_patches *p, const qkvi_patches *grads,
                           const qkvi_patch_rows *rows, const qkvi_patch_acts *acts,
                           const float *d) {
    const int64_t h = p->map.n_out, n_classes = qkvi_patches_classes(p);
    const int64_t n = p->learned.rows * p->learned.columns;
    for (int64_t k = 0; k < n_classes; k++) sum_rows(rows, h, k, 1, d, grads->classes[k]);
    if (p->n_registers > 0) sum_rows(rows, h, n_classes, p->n_registers, d, grads->registers);
    if (p->positions) {
        sum_rows(rows, h, 0, n_classes, d, grads->positions);
        sum_rows(rows, h, qkvi_patches_prefix(p), n, d, grads->positions + n_classes * h);
    }
    gather(p, rows, d, acts->y);
    qkvi_pack_rows(ctx, &p->map, rows->n_images * n, acts->x, acts->packed);
    qkvi_linear_backward_params(ctx, &p->map, &grads->map, rows->n_images * n, acts->y,
                                acts->packed, acts->sums);
}

/* ---- Turns ----------------------------------------------------------------------------------- */

#define TWO_PI 6.283185307179586

/* Angles of one axis at a place between -1 and 1: dim / 4 cosines, and sines. */
static void turn(double theta, int64_t dim, double at, float *cosines, float *sines) {
    for (int64_t i = 0; i < dim / 4; i++) {
        const double f = qkvi_angle_exp(-qkvi_ln(theta) * ((double)(4 * i) / (double)dim));
        /* qkvi_sinusoid takes angles from 0 on */
        const double angle = TWO_PI * (at < 0 ? -at : at) * f;
        cosines[i] = (float)qkvi_sinusoid(angle, 1);
        sines[i] = (float)(at < 0 ? -qkvi_sinusoid(angle, 0) : qkvi_sinusoid(angle, 0));
    }
}

static double centre(int64_t i, int64_t n) { return 2 * ((double)i + 0.5) / (double)n - 1; }

void qkvi_patches_turns(const qkvi_patches *p, const qkvi_patch_rows *rows, int64_t dim,
                        float *turns) {
    const int64_t half = dim / 2, quarter = dim / 4;
    for (int64_t b = 0; b < rows->n_images; b++) {
        const qkvi_grid grid = qkvi_patches_grid(p, &rows->images[b]);
        float *at = turns + rows->first_row[b] * dim;
        for (int64_t i = 0; i < qkvi_patches_prefix(p); i++, at += dim)
            for (int64_t c = 0; c < dim; c++) at[c] = c < half ? 1 : 0;
        for (int64_t i = 0; i < grid.rows * grid.columns; i++, at += dim) {
            turn(p->theta, dim, centre(i / grid.columns, grid.rows), at, at + half);
            turn(p->theta, dim, centre(i % grid.columns, grid.columns), at + quarter,
                 at + half + quarter);
        }
    }
}
