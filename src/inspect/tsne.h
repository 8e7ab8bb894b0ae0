/**
 * t-SNE: joint affinities of points, of all pairs or of near ones, and runs that descend from a
 * start, by the exact gradient or by that of Barnes and Hut.
 *
 * A row of affinities belongs to one task, and so does the force on a point; what is summed over
 * rows is summed in their order by one thread. So bits do not depend on the number of threads.
 */
#ifndef QKVI_INSPECT_TSNE_H
#define QKVI_INSPECT_TSNE_H

#include "core/pool.h"
#include "files/base.h"
#include "inspect/points.h"
#include "kernels/tsne.h"

/**
 * A quadtree over the points of a map, for forces by Barnes and Hut.
 *
 * It is a function of the places of the points alone, bit by bit, made anew for each iteration by
 * one thread in one block of memory: 16 bytes a point for the order, 16 for places, 112 for nodes.
 */

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

/** ln x for normal x > 0, with the bits of the kernels. */
static inline double qkvi_tsne_log(const qkvi_kernels *kernels, double x) {
    const double one[QKVI_TSNE_LANES] = { 1 }, a[QKVI_TSNE_LANES] = { x };
    return kernels->tsne.sum_p_log(1, one, a);
}

/**
 * Affinities of near points. Row i is from start[i] to start[i + 1], a multiple of 8 long, in the
 * order of points; what fills it up is p = 0 to point i.
 */
typedef struct qkvi_tsne_sparse {
    int64_t *start; /* [n + 1] */
    int32_t *to;
    double *p;
} qkvi_tsne_sparse;

/** What all runs share. */
typedef struct qkvi_tsne {
    const qkvi_kernels *kernels;
    int64_t n, room;
    double *p; /* [n][room]: joint affinities, 0 on the diagonal and beyond n; or NULL */
    qkvi_tsne_sparse sparse; /* in place of p: Barnes and Hut */
    double theta;
    double *nothing;       /* [room]: no affinities; with sparse */
    double p_log_p, sum_p; /* sum p ln p, sum p */
    double rate;           /* of the descent */
    int64_t n_iters;       /* of a run */
    int stop_early;
} qkvi_tsne;

/**
 * The entropy of each row of conditional affinities is that of perplexity within tolerance nats.
 */
qkv_status qkvi_tsne_make(const qkvi_points *points, qkvi_pool *pool, double perplexity,
                          double tolerance, qkvi_tsne *tsne, qkv_error *error);
/** Is asked every fraction of a second whether to go on. */
typedef struct qkvi_tsne_watch {
    int (*go_on)(void *user);
    void *user;
} qkvi_tsne_watch;

/**
 * The same over the floor(3 perplexity) + 1 nearest points of each, as in scikit-learn; what is not
 * among them has no affinity. Free it in any case. MEMORY; CANCELLED by watch (nullable), without a
 * message.
 */
qkv_status qkvi_tsne_make_sparse(const qkvi_points *points, qkvi_pool *pool, double perplexity,
                                 double tolerance, const qkvi_tsne_watch *watch, qkvi_tsne *tsne,
                                 qkv_error *error);
void qkvi_tsne_free(qkvi_tsne *tsne);

/** One descent. Arrays of a coordinate lie in one block of memory. */
typedef struct qkvi_tsne_run {
    double *y[2], *velocity[2], *gain[2]; /* [room]: by coordinate */
    double *xy;                           /* [n][2]: y, for Barnes and Hut */
    double *cost;                         /* [n]: of each row, for KL */
    qkvi_tsne_force *force;               /* [n] */
    qkvi_tsne_forest forest;              /* Barnes and Hut */
    double kl, best_kl;                   /* of the last check; the least of this phase */
    int64_t n_iters, best_iter;           /* made; when best_kl was met */
    int exaggerates, done;
    double gradient_norm;
} qkvi_tsne_run;

/** Memory of a run: zeros, so a run that is to begin at 0. Free it in any case. */
qkv_status qkvi_tsne_run_make(const qkvi_tsne *tsne, qkvi_tsne_run *run, qkv_error *error);
void qkvi_tsne_run_free(qkvi_tsne_run *run);

/** A start with a standard deviation of 1e-4 in each coordinate of `which` (bits 0 and 1). */
void qkvi_tsne_run_draw(const qkvi_tsne *tsne, uint64_t seed, int64_t index, unsigned which,
                        qkvi_tsne_run *run);

/** n_iters more iterations, or fewer if the run is done; on threads of pool (NULL: on this one). */
void qkvi_tsne_run_advance(const qkvi_tsne *tsne, qkvi_pool *pool, int64_t n_iters,
                           qkvi_tsne_run *run);

/** Forces of a run where it is, as its method has them. */
void qkvi_tsne_run_forces(const qkvi_tsne *tsne, qkvi_pool *pool, qkvi_tsne_run *run);
/** sum w, and KL, from these. */
double qkvi_tsne_run_sum_w(const qkvi_tsne *tsne, const qkvi_tsne_run *run);
double qkvi_tsne_run_kl(const qkvi_tsne *tsne, qkvi_pool *pool, const qkvi_tsne_run *run);

/** Forces and kl of a run where it is, over all pairs whatever the method. */
void qkvi_tsne_run_measure(const qkvi_tsne *tsne, qkvi_pool *pool, qkvi_tsne_run *run);

/** The gradient at measured forces: p times exaggeration. xy is [n][2]. */
void qkvi_tsne_gradient(const qkvi_tsne *tsne, const qkvi_tsne_run *run, double exaggeration,
                        double *xy);

#endif
