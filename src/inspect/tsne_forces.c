/**
 * Forces on the points of a map, KL and gradient, over all pairs or by Barnes and Hut.
 *
 *     d = 1 + |y_i - y_j|^2,   w = 1 / d
 *     KL = sum p ln p + sum p ln d + ln(sum w) sum p
 *     gradient of y_i = 4 (sum p w (y_i - y_j) - sum w^2 (y_i - y_j) / sum w)
 *
 * One task computes the force on a point; one thread sums over points, in their order.
 */
#include <math.h>
#include <stdatomic.h>

#include "core/ints.h"
#include "inspect/normal.h"
#include "inspect/tsne.h"

enum {
    ROWS_A_TASK = 16,   /* drawn by a thread at a time; a multiple of 8 */
    PARALLEL_FROM = 256 /* points: below, an iteration is shorter than waking a thread */
};

struct job {
    const qkvi_tsne *tsne;
    const qkvi_tsne_run *run;
    atomic_llong next;
};

static void run_job(struct job *job, qkvi_pool *pool, qkvi_task *task) {
    const int n_threads = job->tsne->n < PARALLEL_FROM ? 1 : qkvi_pool_threads(pool);
    if (n_threads > 1)
        qkvi_pool_run(pool, n_threads, task, job);
    else
        task(job, 0);
}

/* ---- All pairs ------------------------------------------------------------------------------- */

static void force_rows(void *argument, int index) {
    (void)index;
    struct job *const job = argument;
    const qkvi_tsne *const tsne = job->tsne;
    const qkvi_tsne_run *const run = job->run;
    for (int64_t i; (i = atomic_fetch_add(&job->next, ROWS_A_TASK)) < tsne->n;) {
        for (const int64_t end = qkvi_min_i64(i + ROWS_A_TASK, tsne->n); i < end; i++)
            tsne->kernels->tsne->force(tsne->n, i, tsne->p + i * tsne->room, run->y[0], run->y[1],
                                       &run->force[i]);
    }
}

/* ---- Near points attract, all repel ---------------------------------------------------------- */

static void attract(const qkvi_tsne *tsne, int64_t i, const qkvi_tsne_run *run) {
    const qkvi_tsne_sparse *const near = &tsne->sparse;
    const int64_t first = near->start[i];
    tsne->kernels->tsne->pull(near->start[i + 1] - first, i, near->p + first, near->to + first,
                              run->xy, run->force[i].attract);
}

/* The places as pairs: a neighbour is then in one line of the cache. */
static void pair_up(const qkvi_tsne *tsne, qkvi_tsne_run *run) {
    for (int64_t i = 0; i < tsne->n; i++)
        for (int c = 0; c < 2; c++) run->xy[2 * i + c] = run->y[c][i];
}

/* Eight points that follow each other in the order of the tree walk it together. */
static void repel_eight(const qkvi_tsne *tsne, int64_t at, const qkvi_tsne_run *run) {
    qkvi_tsne_force eight[QKVI_TSNE_LANES];
    tsne->kernels->tsne->push(&run->forest.tree, at, eight);
    for (int64_t l = 0; l < qkvi_min_i64(QKVI_TSNE_LANES, tsne->n - at); l++) {
        qkvi_tsne_force *const force = &run->force[qkvi_tsne_forest_point(&run->forest, at + l)];
        memcpy(force->repel, eight[l].repel, sizeof force->repel);
        force->sum_w = eight[l].sum_w;
    }
}

/* Rows are read in the order in which they lie, which is not that of the tree. */
static void force_by_tree(void *argument, int index) {
    (void)index;
    struct job *const job = argument;
    const qkvi_tsne *const tsne = job->tsne;
    for (int64_t first; (first = atomic_fetch_add(&job->next, ROWS_A_TASK)) < tsne->n;) {
        const int64_t end = qkvi_min_i64(first + ROWS_A_TASK, tsne->n);
        for (int64_t i = first; i < end; i++) attract(tsne, i, job->run);
        for (int64_t at = first; at < end; at += QKVI_TSNE_LANES) repel_eight(tsne, at, job->run);
    }
}

static void force_over_pairs(void *argument, int index) {
    (void)index;
    struct job *const job = argument;
    const qkvi_tsne *const tsne = job->tsne;
    const qkvi_tsne_run *const run = job->run;
    for (int64_t i; (i = atomic_fetch_add(&job->next, 1)) < tsne->n;) {
        tsne->kernels->tsne->force(tsne->n, i, tsne->nothing, run->y[0], run->y[1], &run->force[i]);
        attract(tsne, i, run);
    }
}

void qkvi_tsne_run_forces(const qkvi_tsne *tsne, qkvi_pool *pool, qkvi_tsne_run *run) {
    struct job job = { .tsne = tsne, .run = run };
    if (tsne->sparse.p) {
        pair_up(tsne, run);
        qkvi_tsne_forest_grow(&run->forest, tsne->theta, run->y[0], run->y[1]);
    }
    run_job(&job, pool, tsne->sparse.p ? force_by_tree : force_rows);
}

/* ---- What follows from forces ---------------------------------------------------------------- */

double qkvi_tsne_run_sum_w(const qkvi_tsne *tsne, const qkvi_tsne_run *run) {
    double sum = 0;
    for (int64_t i = 0; i < tsne->n; i++) sum += run->force[i].sum_w;
    return sum;
}

static double cost_of(const qkvi_tsne *tsne, const qkvi_tsne_run *run, int64_t i) {
    const qkvi_tsne_sparse *const near = &tsne->sparse;
    const double *const x = run->y[0], *const y = run->y[1];
    if (!near->p) return tsne->kernels->tsne->cost(tsne->n, i, tsne->p + i * tsne->room, x, y);
    const int64_t first = near->start[i];
    return tsne->kernels->tsne->pull_cost(near->start[i + 1] - first, i, near->p + first,
                                          near->to + first, run->xy);
}

static void cost_rows(void *argument, int index) {
    (void)index;
    struct job *const job = argument;
    const int64_t n = job->tsne->n;
    for (int64_t i; (i = atomic_fetch_add(&job->next, ROWS_A_TASK)) < n;)
        for (const int64_t end = qkvi_min_i64(i + ROWS_A_TASK, n); i < end; i++)
            job->run->cost[i] = cost_of(job->tsne, job->run, i);
}

double qkvi_tsne_run_kl(const qkvi_tsne *tsne, qkvi_pool *pool, const qkvi_tsne_run *run) {
    struct job job = { .tsne = tsne, .run = run };
    double sum = 0;
    run_job(&job, pool, cost_rows);
    for (int64_t i = 0; i < tsne->n; i++) sum += run->cost[i];
    return tsne->p_log_p + sum +
           tsne->sum_p * qkvi_tsne_log(tsne->kernels, qkvi_tsne_run_sum_w(tsne, run));
}

void qkvi_tsne_gradient(const qkvi_tsne *tsne, const qkvi_tsne_run *run, double factor,
                        double *xy) {
    const double all = qkvi_tsne_run_sum_w(tsne, run);
    for (int64_t i = 0; i < tsne->n; i++)
        for (int c = 0; c < 2; c++)
            xy[2 * i + c] = 4 * (factor * run->force[i].attract[c] - run->force[i].repel[c] / all);
}

void qkvi_tsne_run_measure(const qkvi_tsne *tsne, qkvi_pool *pool, qkvi_tsne_run *run) {
    struct job job = { .tsne = tsne, .run = run };
    if (tsne->n < 2) {
        run->kl = 0;
        return;
    }
    if (tsne->sparse.p) pair_up(tsne, run);
    run_job(&job, pool, tsne->sparse.p ? force_over_pairs : force_rows);
    run->kl = qkvi_tsne_run_kl(tsne, pool, run);
}

/* ---- Descent --------------------------------------------------------------------------------- */

/*
 * The descent of t-SNE, step for step that of scikit-learn: gradient 4 sum (p - q) w (y_i - y_j),
 * gains + 0.2 where velocity and gradient disagree in sign, else times 0.8, at least 0.01; velocity
 * = momentum velocity - rate gain gradient; y += velocity. Momentum and exaggeration change after
 * 250 iterations, when velocities and gains begin anew. Every 50 iterations it is seen whether the
 * KL is still getting smaller.
 */

enum {
    EXAGGERATED = 250, /* iterations of the first phase */
    CHECK_EVERY = 50,
    PATIENCE = 300,        /* iterations without a smaller KL; in the first phase 250 */
    RNG_START = 0x6d617001 /* purpose of the random stream: starts of maps */
};

static const double exaggeration = 12, least_gradient = 1e-7, start_deviation = 1e-4;

qkv_status qkvi_tsne_run_make(const qkvi_tsne *tsne, qkvi_tsne_run *run, qkv_error *error) {
    const size_t room = (size_t)tsne->room, n = (size_t)tsne->n;
    *run = (qkvi_tsne_run){ .exaggerates = 1, .kl = INFINITY, .best_kl = INFINITY };
    double *const block = qkvi_calloc_array(9 * room, sizeof(double));
    run->y[0] = block;
    run->force = qkvi_calloc_array(n, sizeof *run->force);
    if (!block || !run->force)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a map of %zu points", n);
    for (int c = 0; c < 2; c++) {
        run->y[c] = block + (size_t)c * room;
        run->velocity[c] = block + (2 + (size_t)c) * room;
        run->gain[c] = block + (4 + (size_t)c) * room;
        for (size_t i = 0; i < room; i++) run->gain[c][i] = 1;
    }
    run->xy = block + 6 * room;
    run->cost = block + 8 * room;
    run->done = tsne->n < 2;
    return tsne->sparse.p ? qkvi_tsne_forest_make(tsne->n, &run->forest, error) : QKV_OK;
}

void qkvi_tsne_run_free(qkvi_tsne_run *run) {
    free(run->y[0]);
    free(run->force);
    qkvi_tsne_forest_free(&run->forest);
    *run = (qkvi_tsne_run){ 0 };
}

/* ---- A random start -------------------------------------------------------------------------- */

void qkvi_tsne_run_draw(const qkvi_tsne *tsne, uint64_t seed, int64_t index, unsigned which,
                        qkvi_tsne_run *run) {
    qkvi_rng rng = qkvi_rng_make(seed, RNG_START, (uint64_t)index);
    for (int64_t i = 0; i < tsne->n; i++) {
        double normal[2];
        qkvi_two_normals(tsne->kernels, &rng, normal);
        for (int c = 0; c < 2; c++)
            if (which >> c & 1) run->y[c][i] = start_deviation * normal[c];
    }
}

/* ---- One iteration --------------------------------------------------------------------------- */

/* One step from measured forces. */
static void step(const qkvi_tsne *tsne, qkvi_tsne_run *run) {
    const double all = qkvi_tsne_run_sum_w(tsne, run);
    const double factor = run->exaggerates ? exaggeration : 1;
    const double momentum = run->exaggerates ? 0.5 : 0.8;
    double squares = 0;
    for (int c = 0; c < 2; c++) {
        double *const y = run->y[c], *const velocity = run->velocity[c], *const gain = run->gain[c];
        for (int64_t i = 0; i < tsne->n; i++) {
            const double gradient =
                4 * (factor * run->force[i].attract[c] - run->force[i].repel[c] / all);
            const double more = gain[i] + 0.2, less = gain[i] * 0.8;
            const double small = less > 0.01 ? less : 0.01;
            gain[i] = velocity[i] * gradient < 0 ? more : small;
            velocity[i] = momentum * velocity[i] - tsne->rate * (gain[i] * gradient);
            y[i] += velocity[i];
            squares += gradient * gradient;
        }
    }
    run->gradient_norm = sqrt(squares);
    run->n_iters++;
}

static void begin_second_phase(const qkvi_tsne *tsne, qkvi_tsne_run *run) {
    run->exaggerates = 0;
    run->best_kl = INFINITY;
    run->best_iter = run->n_iters;
    for (int c = 0; c < 2; c++) {
        for (int64_t i = 0; i < tsne->n; i++) {
            run->velocity[c][i] = 0;
            run->gain[c][i] = 1;
        }
    }
}

/* Whether the phase is over: by its iterations, or early. kl is that before the last step. */
static int phase_ends(const qkvi_tsne *tsne, qkvi_tsne_run *run) {
    const int64_t last =
        run->exaggerates ? qkvi_min_i64(EXAGGERATED, tsne->n_iters) : tsne->n_iters;
    if (run->n_iters >= last) return 1;
    if (!tsne->stop_early || run->n_iters % CHECK_EVERY != 0) return 0;
    if (run->kl < run->best_kl) {
        run->best_kl = run->kl;
        run->best_iter = run->n_iters;
    } else if (run->n_iters - run->best_iter > (run->exaggerates ? EXAGGERATED : PATIENCE)) {
        return 1;
    }
    return run->gradient_norm <= least_gradient;
}

void qkvi_tsne_run_advance(const qkvi_tsne *tsne, qkvi_pool *pool, int64_t n_iters,
                           qkvi_tsne_run *run) {
    for (int64_t i = 0; i < n_iters && !run->done; i++) {
        qkvi_tsne_run_forces(tsne, pool, run);
        if (tsne->stop_early && (run->n_iters + 1) % CHECK_EVERY == 0)
            run->kl = qkvi_tsne_run_kl(tsne, pool, run);
        step(tsne, run);
        if (!phase_ends(tsne, run)) continue;
        if (run->exaggerates && run->n_iters < tsne->n_iters)
            begin_second_phase(tsne, run);
        else
            run->done = 1;
    }
}
