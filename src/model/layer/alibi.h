/*
 * Slopes of ALiBi (Press et al. 2022): each head adds slope (j - i) to its scores. As BLOOM has it,
 *
 *     slope_h = b(n)^(h + 1),  b(n) = 2^(-8 / n)     n the largest power of two in n_heads, h < n
 *               b(2n)^(2 (h - n) + 1)                h >= n: every other slope of 2n heads
 */
#ifndef QKVI_LAYER_ALIBI_H
#define QKVI_LAYER_ALIBI_H

#include <stdint.h>

/* slopes [n_heads]; n_heads is at least 1. */
void qkvi_alibi_slopes(int64_t n_heads, float *slopes);

#endif
