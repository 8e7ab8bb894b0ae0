/*
 * An unusual heat map for tests of pictures: labels with every byte, of 3,000 letters, empty, NULL
 * and of other scripts; weights that are NaN, infinite or out of range.
 */
#ifndef QKV_TESTS_ODD_MAP_H
#define QKV_TESTS_ODD_MAP_H

#include <math.h>
#include <string.h>

#include "lost_by_others.h"
#include "qkv/picture.h"

const char *__lsan_default_suppressions(void) { return LOST_BY_OTHERS; }

static inline void make_odd(qkv_heatmap *map) {
    static char all[256], many[3000];
    static const char *const labels[] = { all, many, "", NULL, "\xE6\x97\xA5", "\xD8\xA7\xD9\x84" };
    static const float weights[36] = { 0.5f, NAN, INFINITY, -INFINITY, -1, 1e-40f, 3 };
    for (int i = 0; i < 255; i++) all[i] = (char)(i + 1);
    memset(many, 'm', sizeof many - 1);
    map->n_rows = map->n_cols = 6;
    map->weights = weights;
    map->row_labels = map->col_labels = labels;
    map->title = all;
    map->caption = many;
}

#endif
