/*
 * The first layer of a model that reads images (Dosovitskiy et al. 2021): an image is cut into
 * patches of height × width pixels, and each becomes a row, W p + b, of one product for all. The
 * rows of an image are
 *
 *     class rows      CLS, and a distillation row (DeiT), with positions
 *     registers       rows without positions (Darcet et al. 2024)
 *     patches         from left to right, from top to bottom, with positions
 *
 * What does not fill a patch, at the right and at the bottom, is not read. Positions were learned
 * for rows × columns patches; for others they are interpolated (positions.h).
 */
#ifndef QKVI_MODEL_PATCHES_H
#define QKVI_MODEL_PATCHES_H

#include "core/arena.h"
#include "layer/linear.h"

/* An image: [3][height][width], as the model reads it. */
typedef struct qkvi_pixels {
    const float *values;
    int64_t height, width;
} qkvi_pixels;

/* How many patches cover a table of rows × columns. */
typedef struct qkvi_grid {
    int64_t rows, columns;
} qkvi_grid;

typedef struct qkvi_patches {
    int64_t height, width; /* of a patch; 0: the stack reads words */
    qkvi_grid learned;     /* that positions are for */
    qkvi_linear map;       /* [hidden][3 height width]; bias NULL: none */
    float *classes[2];     /* CLS, distillation: [hidden]; NULL: none */
    float *registers;      /* [n_registers][hidden] */
    int64_t n_registers;
    float *positions; /* [class rows + rows columns][hidden]; NULL: none, queries and keys turn */
    bool antialiases; /* positions of fewer patches are means (positions.h) */
    double theta;     /* of turns; 0: there are none */
} qkvi_patches;

/* Class rows, and with the registers. */
static inline int64_t qkvi_patches_classes(const qkvi_patches *p) {
    return (p->classes[0] != NULL) + (p->classes[1] != NULL);
}
static inline int64_t qkvi_patches_prefix(const qkvi_patches *p) {
    return qkvi_patches_classes(p) + p->n_registers;
}
static inline int64_t qkvi_patches_elems(const qkvi_patches *p) { return 3 * p->height * p->width; }
static inline qkvi_grid qkvi_patches_grid(const qkvi_patches *p, const qkvi_pixels *image) {
    return (qkvi_grid){ image->height / p->height, image->width / p->width };
}

/* What a classifier of images reads, of last hidden states. */
typedef enum qkvi_reads {
    QKVI_READS_CLS,      /* the first row */
    QKVI_READS_CLS_MEAN, /* it, and behind it the mean of the patches */
    QKVI_READS_MEAN      /* the mean of the patches */
} qkvi_reads;

/* The images of a batch, each with its first row among those of the stack. */
typedef struct qkvi_patch_rows {
    int64_t n_images;
    const qkvi_pixels *images;
    const int64_t *first_row;
} qkvi_patch_rows;

/* What a pass keeps. */
typedef struct qkvi_patch_acts {
    float *x;      /* [n patches][3 height width] */
    float *y;      /* [n patches][hidden] W x + b; backward the gradient of it */
    float *placed; /* [patches of the largest image][hidden] interpolated positions */
    float *packed; /* panels of x, to train */
    float *sums;   /* to train */
} qkvi_patch_acts;

/* Patches of all images. */
int64_t qkvi_patches_count(const qkvi_patches *p, const qkvi_patch_rows *rows);

void qkvi_patches_cut(const qkvi_patches *p, const qkvi_patch_rows *rows, bool train,
                      qkvi_cutter *cutter, qkvi_patch_acts *acts);

/* s: every row of every image, [rows of the stack][hidden]. */
void qkvi_patches_forward(qkv_ctx *ctx, const qkvi_patches *p, const qkvi_patch_rows *rows,
                          const qkvi_patch_acts *acts, float *s);

/*
 * Stores the gradients of all parameters, from d of s: sums over images, in their order. Of images
 * that have the learned grid alone.
 */
void qkvi_patches_backward(qkv_ctx *ctx, const qkvi_patches *p, const qkvi_patches *grads,
                           const qkvi_patch_rows *rows, const qkvi_patch_acts *acts,
                           const float *d);

/*
 * turns [rows of the stack][dim], cosines, then sines, of a rotary model: rows of patches are
 * turned by 2 pi (y f, x f), f_i = theta^(-4i / dim), i < dim / 4, y = 2 (r + 1/2) / rows - 1 and x
 * likewise; others are not turned (DINOv3).
 */
void qkvi_patches_turns(const qkvi_patches *p, const qkvi_patch_rows *rows, int64_t dim,
                        float *turns);

#endif
