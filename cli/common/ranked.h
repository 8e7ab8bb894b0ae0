/* Things in the order of a number: the smallest first, those without one last, equal ones as they stood. */
#ifndef QKV_CLI_COMMON_RANKED_H
#define QKV_CLI_COMMON_RANKED_H

#include <stdint.h>

struct ranked {
    double key;
    int64_t index;
};

void ranked_sort(struct ranked *list, int64_t n);

#endif
