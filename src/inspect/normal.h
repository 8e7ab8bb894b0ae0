/**
 * Normal numbers from a random stream, with the same bits everywhere: Marsaglia's polar method
 * (Marsaglia and Bray 1964), two from a point of the disk.
 */
#ifndef QKVI_INSPECT_NORMAL_H
#define QKVI_INSPECT_NORMAL_H

#include <math.h>

#include "core/rng.h"
#include "inspect/tsne.h"

static inline double qkvi_signed_unit(qkvi_rng *rng) {
    return ((double)qkvi_rng_u32(rng) + 0.5) * 0x1p-31 - 1; /* in (-1, 1) */
}

static inline void qkvi_two_normals(const qkvi_kernels *kernels, qkvi_rng *rng, double normal[2]) {
    double u, v, s;
    do {
        u = qkvi_signed_unit(rng);
        v = qkvi_signed_unit(rng);
        s = u * u + v * v;
    } while (s >= 1);
    const double factor = sqrt(-2 * qkvi_tsne_log(kernels, s) / s);
    normal[0] = u * factor;
    normal[1] = v * factor;
}

#endif
