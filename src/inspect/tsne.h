/**
 * t-SNE: joint affinities of points, of all pairs or of near ones, and runs that descend from a
 * start, by the exact gradient or by that of Barnes and Hut.
 *
 * Each row of affinities is computed by one task, and so is the force on each point; one thread
 * adds up over rows, in their order. So bits do not depend on the number of threads.
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
 * It depends only on the coordinates of the points, bit by bit. One thread makes it anew for each
 * iteration, in one block of memory: 16 bytes a point for keys, 16 for coordinates, 112 for nodes.
 */

typedef struct qkvi_tsne_forest {
    qkvi_tsne_tree tree;
    uint64_t *keys, *spare; /* [n]: the cell of a point in the upper 48 bits, its index below */
    double *x, *y;          /* [room], in the order of keys */
    qkvi_tsne_node *nodes;  /* [2 n] */
    double side, open2;     /* side of the root; a node of side s is near if d^2 <= s^2 * open2 */
} qkvi_tsne_forest;

/** Memory for the trees of n points. Free it in any case. */
qkv_status qkvi_tsne_forest_make(int64_t n, qkvi_tsne_forest *forest, qkv_error *error);
void qkvi_tsne_forest_free(qkvi_tsne_forest *forest);

/** Makes the tree of points x[i], y[i]. theta: tsne_tree.c. */
void qkvi_tsne_forest_grow(qkvi_tsne_forest *forest, double theta, const double *x,
                           const double *y);

/** The index of the point at place `at` in the order of the tree. */
static inline int64_t qkvi_tsne_forest_point(const qkvi_tsne_forest *forest, int64_t at) {
    return (int64_t)(forest->keys[at] & 0xffff);
}

/** ln x for normal x > 0, with the bits of the kernels. */
static inline double qkvi_tsne_log(const qkvi_kernels *kernels, double x) {
    const double one[QKVI_TSNE_LANES] = { 1 }, a[QKVI_TSNE_LANES] = { x };
    return kernels->tsne->sum_p_log(1, one, a);
}

/**
 * Affinities of near points, in rows (CSR): row i is start[i] … start[i + 1] - 1, in ascending
 * order of points. Its length is a multiple of 8; it is filled up with p = 0 to point i itself.
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
    qkvi_tsne_sparse sparse; /* in place of p, for Barnes and Hut */
    double theta;
    double *nothing;       /* [room], zeros: a row of no affinities; with sparse */
    double p_log_p, sum_p; /* sum p ln p, sum p */
    double rate;           /* the learning rate */
    int64_t n_iters;       /* the most of a run */
    int stop_early;
} qkvi_tsne;

/**
 * Makes affinities of all pairs. Each row of conditional affinities has the entropy ln(perplexity)
 * within `tolerance` nats.
 */
qkv_status qkvi_tsne_make(const qkvi_points *points, qkvi_pool *pool, double perplexity,
                          double tolerance, qkvi_tsne *tsne, qkv_error *error);
/** A function that is called every fraction of a second; 0: stop. */
typedef struct qkvi_tsne_watch {
    int (*go_on)(void *user);
    void *user;
} qkvi_tsne_watch;

/**
 * The same for the floor(3 perplexity) + 1 nearest points of each point, as in scikit-learn; other
 * pairs have no affinity. Free it in any case. MEMORY; CANCELLED by watch (nullable), without a
 * message.
 */
qkv_status qkvi_tsne_make_sparse(const qkvi_points *points, qkvi_pool *pool, double perplexity,
                                 double tolerance, const qkvi_tsne_watch *watch, qkvi_tsne *tsne,
                                 qkv_error *error);
void qkvi_tsne_free(qkvi_tsne *tsne);

/** One run: a gradient descent from one start. */
typedef struct qkvi_tsne_run {
    double *y[2], *velocity[2], *gain[2]; /* [2][room]: for each coordinate */
    double *xy;                           /* [n][2]: the points y again, for Barnes and Hut */
    double *cost;                         /* [n]: terms of KL of each row */
    qkvi_tsne_force *force;               /* [n] */
    qkvi_tsne_forest forest;              /* Barnes and Hut */
    double kl, best_kl;                   /* at the last check; the least of this phase */
    int64_t n_iters, best_iter;           /* iterations so far; the one of best_kl */
    int exaggerates, done;                /* in the phase of early exaggeration; at its end */
    double gradient_norm;
} qkvi_tsne_run;

/** Allocates a run, all 0: its points start at 0. Free it in any case. */
qkv_status qkvi_tsne_run_make(const qkvi_tsne *tsne, qkvi_tsne_run *run, qkv_error *error);
void qkvi_tsne_run_free(qkvi_tsne_run *run);

/**
 * Draws a normal start with a standard deviation of 1e-4, in the coordinates of `which` (bits 0 and
 * 1). index: of the run.
 */
void qkvi_tsne_run_draw(const qkvi_tsne *tsne, uint64_t seed, int64_t index, unsigned which,
                        qkvi_tsne_run *run);

/** Makes n_iters more iterations, or fewer if the run is done; pool NULL: on this thread alone. */
void qkvi_tsne_run_advance(const qkvi_tsne *tsne, qkvi_pool *pool, int64_t n_iters,
                           qkvi_tsne_run *run);

/** Computes the forces at the run's points, by its method: all pairs, or Barnes and Hut. */
void qkvi_tsne_run_forces(const qkvi_tsne *tsne, qkvi_pool *pool, qkvi_tsne_run *run);
/** sum w, and KL, from the forces that were computed last. */
double qkvi_tsne_run_sum_w(const qkvi_tsne *tsne, const qkvi_tsne_run *run);
double qkvi_tsne_run_kl(const qkvi_tsne *tsne, qkvi_pool *pool, const qkvi_tsne_run *run);

/** Computes forces and kl at the run's points over all pairs, whatever the method. */
void qkvi_tsne_run_measure(const qkvi_tsne *tsne, qkvi_pool *pool, qkvi_tsne_run *run);

/** The gradient, xy [n][2], from the forces that were computed last, with p times exaggeration. */
void qkvi_tsne_gradient(const qkvi_tsne *tsne, const qkvi_tsne_run *run, double exaggeration,
                        double *xy);

#endif
