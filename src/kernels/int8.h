/*
 * Matrices of 8-bit integers, in groups of 64 of the inner dimension k with a scale each:
 *
 *     element = scale q,  scale = max|x| / 127,  q = x · (127 / max|x|), to the nearest integer
 *
 * of the 64 elements of a row of A, or of a column of B. A group is scale 0 and zeros where max|x|
 * is below 2^-100, and scale NaN and zeros where one of its elements is not finite. k is padded
 * with zeros.
 *
 * The product of two groups is a sum of integers, below 2^20 and so exact, whatever its order:
 *
 *     C = fma(Σ q_A q_B, scale_A · scale_B, C), group after group, from +0; then the bias is added
 *
 * The instruction for it (VPDPBUSD) multiplies unsigned by signed bytes. So B has q + 128, and the
 * sum for a row of A begins at -128 Σ q_A.
 */
#ifndef QKVI_KERNELS_INT8_H
#define QKVI_KERNELS_INT8_H

#include <stdint.h>

#define QKVI_INT8_LEAST 0x1p-100f
/* 1.5 · 2^23: a float plus that is an integer in the lower bits, rounded to nearest even. */
#define QKVI_INT8_MAGIC 12582912.0f

enum { QKVI_INT8_GROUP = 64, QKVI_INT8_COLUMNS = 32 };

/* Of a row of A. */
typedef struct qkvi_int8_group {
    float scale;
    int32_t start; /* -128 Σ q */
    int8_t q[QKVI_INT8_GROUP];
} qkvi_int8_group;

/*
 * Of 32 columns of B; they follow each other along k, and then come the next 32 columns. Aligned to
 * 64.
 */
typedef struct qkvi_int8_panel {
    float scale[QKVI_INT8_COLUMNS];
    uint8_t q[QKVI_INT8_GROUP / 4][QKVI_INT8_COLUMNS][4]; /* q + 128 of k, k + 1, k + 2, k + 3 */
} qkvi_int8_panel;

#endif
