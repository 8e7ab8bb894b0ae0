/** Places of the largest of many numbers: where to go in a long text. */

#include "page/head.h"

static int ascending(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

int qkvi_page_largest(const float *values, int64_t n, int most, int64_t *places) {
    int count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!(values[i] > 0) || (count == most && !(values[i] > values[places[most - 1]])))
            continue;
        int at = count < most ? count++ : most - 1;
        for (; at > 0 && values[i] > values[places[at - 1]]; at--) places[at] = places[at - 1];
        places[at] = i;
    }
    qsort(places, (size_t)count, sizeof *places, ascending);
    return count;
}
