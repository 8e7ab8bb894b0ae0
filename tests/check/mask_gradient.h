/*
 * The gradients of an added mask, summed where its strides are 0, and of a distance bias: from the
 * gradients of all pairs of a query and a key, which the oracle has.
 */
#ifndef QKV_TESTS_MASK_GRADIENT_H
#define QKV_TESTS_MASK_GRADIENT_H

#include "check/cases.h"

/* The elements of the array, with gaps, up to the last one. */
int64_t mask_gradient_elems(const check_case *c);
/* Sums g->d_mask to g->d_mask_sum, in the layout of the case; in f32 or in double. */
void mask_gradient_sum(const check_case *c, oracle_backward *g, bool in_floats);
/* The same for the distance bias: the rows of its gradient, its elements with gaps, its sums. */
int64_t distance_gradient_rows(const check_case *c);
int64_t distance_gradient_elems(const check_case *c);
void distance_gradient_sum(const check_case *c, oracle_backward *g, bool in_floats);
/* Is this no element, but a gap? */
bool mask_gradient_gap(double x);

#endif
