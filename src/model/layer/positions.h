/*
 * A table of positions, rows × columns vectors, for another number of patches: bicubic
 * interpolation without aligned corners, in double, each channel alone. With s = in / out and
 * k_a the kernel of Keys (1981),
 *
 *     |x| <= 1       (a + 2) |x|³ - (a + 3) |x|² + 1
 *     1 < |x| < 2    a |x|³ - 5a |x|² + 8a |x| - 4a
 *
 *     plain        a = -3/4, 4 taps around (i + 1/2) s - 1/2; those outside are the edge
 *     antialiased  a = -1/2, the kernel F = max(s, 1) times as wide around c = (i + 1/2) s: taps j
 *                  from ⌊c - 2F + 1/2⌋ to ⌊c + 2F + 1/2⌋ - 1 inside the table, weights
 *                  k((j - c + 1/2) / F) divided by their sum
 *
 * as torch has them (torch.nn.functional.interpolate, antialias).
 */
#ifndef QKVI_MODEL_POSITIONS_H
#define QKVI_MODEL_POSITIONS_H

#include "model/layer/patches.h"

/* made [to.rows][to.columns][n] from table [from.rows][from.columns][n]. */
void qkvi_positions_interpolate(int64_t n, qkvi_grid from, const float *table, bool antialiased,
                                qkvi_grid to, float *made);

#endif
