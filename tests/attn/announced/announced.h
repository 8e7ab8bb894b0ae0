/*
 * The kernels compiled as C without vectors, in both shapes of tiles. With QKVI_ANNOUNCED defined
 * as announced_line they call it for every cache line that they prefetch (kernels/ahead.h).
 */
#ifndef QKV_TESTS_ANNOUNCED_H
#define QKV_TESTS_ANNOUNCED_H

#include "kernels/table.h"

extern const qkvi_kernels announced_6x16_kernels, announced_12x32_kernels;

void announced_line(const void *p);

#endif
