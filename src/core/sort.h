/*
 * A sort whose comparison has an argument of its own. qsort_r is not in every C library, and where
 * it is, its arguments have another order.
 */
#ifndef QKVI_CORE_SORT_H
#define QKVI_CORE_SORT_H

#include <stddef.h>

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

/* Of *left and *right: negative, 0 or positive, as for qsort. */
typedef int qkvi_comparison(const void *left, const void *right, void *user);

/*
 * Sorts n elements of size bytes in ascending order, in place, with O(n log n) comparisons. Equal
 * elements come in any order, but in the same one on every system. Of an order that contradicts
 * itself it makes some order, and it ends.
 */
void qkvi_sort(void *array, size_t n, size_t size, qkvi_comparison *order, void *user);

#pragma GCC visibility pop

#endif
