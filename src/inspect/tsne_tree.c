/**
 * The quadtree: points in Z-order (Morton 1966), cells as ranges of it.
 *
 * The square around all points is divided 24 times into four. A point's key interleaves the 24 bits
 * of its two cell coordinates, so that the points of each cell are a range of the sorted keys. The
 * node of a range is the cell of the longest common prefix of its first and last key, so no node
 * has only one child. Keys of 48 bits leave 16 for the index of the point, which breaks ties, so
 * the order depends on coordinates alone.
 *
 * A node is far from a point at distance d if side < theta d, as in scikit-learn. No point is far
 * from its own cell, whose mean is within sqrt(2) * side of it.
 */
#include "inspect/tsne.h"

#include <math.h>

#include "core/ints.h"

enum { LEVELS = 24, INDEX_BITS = 16, FEW = 8 /* points of a leaf */ };

qkv_status qkvi_tsne_forest_make(int64_t n, qkvi_tsne_forest *forest, qkv_error *error) {
    const size_t size = (size_t)n, room = (size_t)qkvi_round_up(n, QKVI_TSNE_LANES);
    *forest = (qkvi_tsne_forest){ .tree.n = n };
    forest->keys = qkvi_malloc_array(2 * size, sizeof *forest->keys);
    forest->x = qkvi_malloc_array(2 * room, sizeof *forest->x);
    forest->nodes = qkvi_malloc_array(2 * size, sizeof *forest->nodes);
    if (!forest->keys || !forest->x || !forest->nodes)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a tree of %lld points",
                              (long long)n);
    forest->spare = forest->keys + size;
    forest->y = forest->x + room;
    forest->tree.nodes = forest->nodes;
    forest->tree.x = forest->x;
    forest->tree.y = forest->y;
    return QKV_OK;
}

void qkvi_tsne_forest_free(qkvi_tsne_forest *forest) {
    free(forest->keys);
    free(forest->x);
    free(forest->nodes);
    *forest = (qkvi_tsne_forest){ 0 };
}

/* ---- Z-order --------------------------------------------------------------------------------- */

/* Bits b23 … b0 at places 46, 44, …, 0. */
static uint64_t spread(uint32_t cell) {
    uint64_t a = cell;
    a = (a | a << 16) & 0x0000ffff0000ffff;
    a = (a | a << 8) & 0x00ff00ff00ff00ff;
    a = (a | a << 4) & 0x0f0f0f0f0f0f0f0f;
    a = (a | a << 2) & 0x3333333333333333;
    return (a | a << 1) & 0x5555555555555555;
}

/* Which of 2^24 cells from 0; what is no number is in the first. */
static uint32_t cell_of(double from_left, double scale) {
    const double at = from_left * scale, last = (1 << LEVELS) - 1;
    return at >= last ? (uint32_t)last : at > 0 ? (uint32_t)at : 0;
}

static void make_keys(qkvi_tsne_forest *forest, const double *x, const double *y) {
    double left = INFINITY, right = -INFINITY, bottom = INFINITY, top = -INFINITY;
    for (int64_t i = 0; i < forest->tree.n; i++) {
        left = fmin(left, x[i]), right = fmax(right, x[i]);
        bottom = fmin(bottom, y[i]), top = fmax(top, y[i]);
    }
    forest->side = fmax(right - left, top - bottom);
    const double scale = forest->side > 0 ? (1 << LEVELS) / forest->side : 0;
    for (int64_t i = 0; i < forest->tree.n; i++) {
        const uint64_t z =
            spread(cell_of(x[i] - left, scale)) | spread(cell_of(y[i] - bottom, scale)) << 1;
        forest->keys[i] = z << INDEX_BITS | (uint64_t)i;
    }
}

/* By the six bytes above the index, from the lowest; each pass keeps the order of equal bytes. */
static void sort_keys(qkvi_tsne_forest *forest) {
    uint64_t *from = forest->keys, *to = forest->spare;
    for (int shift = INDEX_BITS; shift < 64; shift += 8) {
        int64_t starts[257] = { 0 };
        for (int64_t i = 0; i < forest->tree.n; i++) starts[(from[i] >> shift & 255) + 1]++;
        for (int b = 0; b < 256; b++) starts[b + 1] += starts[b];
        for (int64_t i = 0; i < forest->tree.n; i++) to[starts[from[i] >> shift & 255]++] = from[i];
        uint64_t *const sorted = to;
        to = from;
        from = sorted;
    }
}

static void put_in_order(qkvi_tsne_forest *forest, const double *x, const double *y) {
    const int64_t n = forest->tree.n, room = qkvi_round_up(n, QKVI_TSNE_LANES);
    for (int64_t at = 0; at < room; at++) {
        const int64_t i = qkvi_tsne_forest_point(forest, qkvi_min_i64(at, n - 1));
        forest->x[at] = x[i];
        forest->y[at] = y[i];
    }
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

/* Sums over the points of a node. */
struct sums {
    double x, y;
};

/* How often the square was cut to get the smallest cell that holds these points. */
static int level_of(const qkvi_tsne_forest *forest, int64_t first, int64_t end) {
    const uint64_t apart = (forest->keys[first] ^ forest->keys[end - 1]) >> INDEX_BITS;
    return apart ? (__builtin_clzll(apart) - INDEX_BITS) / 2 : LEVELS;
}

/* The first from `first` on that is in a quarter after `quarter`, at a level. */
static int64_t end_of_quarter(const qkvi_tsne_forest *forest, int64_t first, int64_t end, int level,
                              unsigned quarter) {
    const int shift = INDEX_BITS + 2 * (LEVELS - 1 - level);
    while (first < end) {
        const int64_t middle = first + (end - first) / 2;
        if ((forest->keys[middle] >> shift & 3) <= quarter)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/* Adds a node and all below it: 25 deep at most. */
static struct sums grow(qkvi_tsne_forest *forest, int64_t first, int64_t end) {
    const int level = level_of(forest, first, end);
    qkvi_tsne_node *const node = forest->nodes + forest->tree.n_nodes++;
    const double side = end - first > 1 ? ldexp(forest->side, -level) : 0;
    struct sums sums = { 0, 0 };
    node->first = (int32_t)first;
    node->end = (int32_t)end;
    node->kind = end - first <= FEW ? QKVI_TSNE_FEW
                 : level == LEVELS  ? QKVI_TSNE_ALIKE
                                    : QKVI_TSNE_INNER;
    for (int64_t i = first; i < end && node->kind != QKVI_TSNE_INNER; i++) {
        sums.x += forest->x[i];
        sums.y += forest->y[i];
    }
    for (unsigned quarter = 0; first < end && node->kind == QKVI_TSNE_INNER; quarter++) {
        const int64_t to = end_of_quarter(forest, first, end, level, quarter);
        if (to == first) continue;
        const struct sums part = grow(forest, first, to);
        sums.x += part.x;
        sums.y += part.y;
        first = to;
    }
    node->n = (double)(node->end - node->first);
    node->x = sums.x / node->n;
    node->y = sums.y / node->n;
    node->near2 = side * side * forest->open2;
    node->next = (int32_t)forest->tree.n_nodes;
    return sums;
}

void qkvi_tsne_forest_grow(qkvi_tsne_forest *forest, double theta, const double *x,
                           const double *y) {
    make_keys(forest, x, y);
    sort_keys(forest);
    put_in_order(forest, x, y);
    forest->tree.n_nodes = 0;
    forest->open2 = fmax(1 / (theta * theta), 2);
    grow(forest, 0, forest->tree.n);
}
