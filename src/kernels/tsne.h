/*
 * Kernels of the map of queries and keys (t-SNE): part of every kernel table (table.h: `tsne`), one
 * body in tmpl/tsne.h.
 *
 * All in double, eight lanes, nothing fused. A sum along a row has eight partial sums, element j in
 * sum j mod 8 in the order of j, and then the tree 4, 2, 1. So bits do not depend on the
 * instruction set. `room` is n rounded up to a multiple of 8: rows of that length hold room
 * elements, of which those from n on are read and, where a row is written, written. Pointers are
 * aligned to a double.
 */
#ifndef QKVI_KERNELS_TSNE_H
#define QKVI_KERNELS_TSNE_H

#include <stdint.h>

enum { QKVI_TSNE_LANES = 8 };

/* What the points of a row do to point i, with d_ij = 1 + |y_i - y_j|^2 and w = 1 / d, j != i. */
typedef struct qkvi_tsne_force {
    double attract[2]; /* sum p w (y_i - y_j) */
    double repel[2];   /* sum w^2 (y_i - y_j) */
    double sum_w;
} qkvi_tsne_force;

/* A square cell of a quadtree, or the smallest that holds the same points. */
typedef struct qkvi_tsne_node {
    double x, y;              /* the mean of its points */
    double n;                 /* how many they are */
    double near2;             /* seen from farther than the root of this, they are as one */
    int32_t first, end, next; /* its points; the first node that is not below it */
    int32_t kind;             /* enum qkvi_tsne_kind */
} qkvi_tsne_node;

enum qkvi_tsne_kind {
    QKVI_TSNE_INNER, /* the nodes below it follow */
    QKVI_TSNE_FEW,   /* points that are looked at one by one */
    QKVI_TSNE_ALIKE  /* many at one place: as one, from everywhere */
};

/* Nodes in the order of a walk that goes down first; points in the order of the leaves. */
typedef struct qkvi_tsne_tree {
    int64_t n, n_nodes;
    const qkvi_tsne_node *nodes;
    const double *x, *y; /* [room]; those from n on are those of the last point */
} qkvi_tsne_tree;

typedef struct qkvi_tsne_kernels {
    /* out[j] = sum_c x[c] columns[c][j], a chain over c from 0; columns is [dim][room]. */
    void (*dots)(int64_t room, int64_t dim, const double *x, const double *columns, double *out);

    /* out[j] = sum_c (x[c] - columns[c][j])^2, likewise. */
    void (*squares)(int64_t room, int64_t dim, const double *x, const double *columns, double *out);

    /*
     * p_j = e^(-beta (d_j - min d)) / sum for j < n but self, 0 for self and from n on, with beta
     * such that the entropy of p is log_perplexity within tolerance nats: doubled or halved from 1
     * until it is bracketed, then bisected, 200 steps at most. Returns beta. n >= 2, d finite.
     */
    double (*affinities)(int64_t n, int64_t self, const double *d, double log_perplexity,
                         double tolerance, double *p);

    /* The force on point i; p is row i. x and y are [room]. */
    void (*force)(int64_t n, int64_t i, const double *p, const double *x, const double *y,
                  qkvi_tsne_force *force);

    /* sum_j p_j ln d_ij; p is row i, 0 for i itself. */
    double (*cost)(int64_t n, int64_t i, const double *p, const double *x, const double *y);

    /* sum_j p_j ln a_j, a 0 where p is 0, or a normal number. */
    double (*sum_p_log)(int64_t n, const double *p, const double *a);

    /*
     * attract and cost of a sparse row: p_j is that of point to[j], j < n, n a multiple of 8.
     * Element j is in partial sum j mod 8. xy is [][2].
     */
    void (*pull)(int64_t n, int64_t i, const double *p, const int32_t *to, const double *xy,
                 double attract[2]);
    double (*pull_cost)(int64_t n, int64_t i, const double *p, const int32_t *to, const double *xy);

    /*
     * repel and sum_w, by Barnes and Hut, of eight points from `first` on, in the order of the
     * tree: each walks down the tree and adds, in that order, m w^2 (y_i - c) and m w of the nodes
     * of m points and mean c that it is far from, and those of the points of leaves that it is
     * near. A lane is a point, so lanes do not meet. first is a multiple of 8.
     */
    void (*push)(const qkvi_tsne_tree *tree, int64_t first, qkvi_tsne_force force[8]);
} qkvi_tsne_kernels;

#endif
