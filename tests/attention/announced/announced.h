/*
 * The kernels as C without vectors, in both shapes of tiles, which tell announced_line of every
 * line that they announce (kernels/ahead.h). QKVI_ANNOUNCED is announced_line for all that is
 * compiled with this.
 */
#ifndef QKV_TESTS_ANNOUNCED_H
#define QKV_TESTS_ANNOUNCED_H

#include "kernels/table.h"

extern const qkvi_kernels announced_6x16, announced_12x32;

void announced_line(const void *p);

#endif
