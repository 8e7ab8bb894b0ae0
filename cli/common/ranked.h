/* A stable ascending sort of indices by key, NaN last. */
#ifndef QKV_CLI_COMMON_RANKED_H
#define QKV_CLI_COMMON_RANKED_H

#include <stdint.h>

struct ranked {
    double key;
    int64_t index;
};

void ranked_sort(struct ranked *list, int64_t n);

#endif
