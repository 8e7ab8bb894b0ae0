/**
 * A quadtree over the points of a map, for forces by Barnes and Hut.
 *
 * It is a function of the places of the points alone, bit by bit, made anew for each iteration by
 * one thread in one block of memory: 16 bytes a point for the order, 16 for places, 112 for nodes.
 */
#ifndef QKVI_INSPECT_TSNE_TREE_H
#define QKVI_INSPECT_TSNE_TREE_H

#include "kernels/tsne.h"
#include "model/base.h"

typedef struct qkvi_tsne_forest {
    qkvi_tsne_tree tree;
    uint64_t *keys, *spare; /* [n]: the cell of a point in the upper 48 bits, its index below */
    double *x, *y;          /* [room], in the order of keys */
    qkvi_tsne_node *nodes;  /* [2 n] */
    double side, open2;     /* of the root; a node of side s is near within s^2 open2 */
} qkvi_tsne_forest;

/** Memory for the trees of n points. Free it in any case. */
qkv_status qkvi_tsne_forest_make(int64_t n, qkvi_tsne_forest *forest, qkv_error *error);
void qkvi_tsne_forest_free(qkvi_tsne_forest *forest);

/** The tree of points at x[i], y[i]: a node is far from where it is seen under less than theta. */
void qkvi_tsne_forest_grow(qkvi_tsne_forest *forest, double theta, const double *x,
                           const double *y);

/** Which point is at a place of the tree's order. */
static inline int64_t qkvi_tsne_forest_point(const qkvi_tsne_forest *forest, int64_t at) {
    return (int64_t)(forest->keys[at] & 0xffff);
}

#endif
