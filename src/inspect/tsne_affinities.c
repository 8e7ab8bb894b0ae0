/**
 * Affinities of all pairs: first conditional affinities p_j|i ∝ e^(-beta_i D_ij), a row for each
 * point i, then p = max((p_j|i + p_i|j) / sum, 2.2e-16).
 *
 * The kernels sum each row; the sum over all pairs adds these in the order of rows.
 */
#include <math.h>
#include <stdatomic.h>

#include "core/ints.h"
#include "inspect/tsne.h"

enum {
    BLOCK = 32,         /* rows and columns that change places at a time: 2 x 8 KiB */
    PARALLEL_FROM = 256 /* points: below, sums are made sooner than a thread wakes */
};

static const double smallest = 0x1p-52; /* of a joint affinity, as in scikit-learn */

/* Tasks draw rows, or blocks of them; each has a row of scratch. */
struct job {
    const qkvi_points *points;
    qkvi_tsne *tsne;
    double log_perplexity, tolerance;
    double *scratch;               /* [tasks][room] */
    double *row_sums, *row_p_logs; /* [room]: sum p and sum p ln p of each row */
    double sum;                    /* of all pairs */
    atomic_llong next;
};

static void make_rows(void *argument, int index) {
    struct job *const job = argument;
    const qkvi_points *const points = job->points;
    double *const d = job->scratch + index * points->room;
    for (int64_t i; (i = atomic_fetch_add(&job->next, 1)) < points->n;) {
        qkvi_points_distances(points, i, d);
        points->kernels->tsne->affinities(points->n, i, d, job->log_perplexity, job->tolerance,
                                          job->tsne->p + i * points->room);
    }
}

/* p_ij and p_ji of two blocks become their sum. */
static void add_blocks(const qkvi_tsne *tsne, int64_t first, int64_t second) {
    const int64_t room = tsne->room;
    for (int64_t i = first; i < qkvi_min_i64(first + BLOCK, tsne->n); i++) {
        for (int64_t j = first == second ? i + 1 : second;
             j < qkvi_min_i64(second + BLOCK, tsne->n); j++) {
            const double sum = tsne->p[i * room + j] + tsne->p[j * room + i];
            tsne->p[i * room + j] = tsne->p[j * room + i] = sum;
        }
    }
}

static void add_transposed(void *argument, int index) {
    (void)index;
    struct job *const job = argument;
    const int64_t n = job->tsne->n;
    for (int64_t i; (i = BLOCK * atomic_fetch_add(&job->next, 1)) < n;)
        for (int64_t j = i; j < n; j += BLOCK) add_blocks(job->tsne, i, j);
}

static double sum_row(const double *p, int64_t room) {
    double lanes[QKVI_TSNE_LANES] = { 0 };
    for (int64_t j = 0; j < room; j += QKVI_TSNE_LANES)
        for (int l = 0; l < QKVI_TSNE_LANES; l++) lanes[l] += p[j + l];
    for (int half = QKVI_TSNE_LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) lanes[l] += lanes[l + half];
    return lanes[0];
}

static void sum_rows(void *argument, int index) {
    (void)index;
    struct job *const job = argument;
    const int64_t n = job->tsne->n, room = job->tsne->room;
    for (int64_t i; (i = atomic_fetch_add(&job->next, 1)) < n;)
        job->row_sums[i] = sum_row(job->tsne->p + i * room, room);
}

static void divide_rows(void *argument, int index) {
    (void)index;
    struct job *const job = argument;
    const qkvi_tsne *const tsne = job->tsne;
    const int64_t n = tsne->n, room = tsne->room;
    for (int64_t i; (i = atomic_fetch_add(&job->next, 1)) < n;) {
        double *const p = tsne->p + i * room;
        for (int64_t j = 0; j < n; j++) {
            const double share = p[j] / job->sum;
            p[j] = share > smallest ? share : smallest;
        }
        p[i] = 0;
        job->row_sums[i] = sum_row(p, room);
        job->row_p_logs[i] = tsne->kernels->tsne->sum_p_log(n, p, p);
    }
}

static void run_job(struct job *job, qkvi_pool *pool, int n_tasks, qkvi_task *task) {
    atomic_store(&job->next, 0);
    qkvi_pool_run(pool, n_tasks, task, job);
}

static void make_joint(struct job *job, qkvi_pool *pool, int n_tasks) {
    qkvi_tsne *const tsne = job->tsne;
    if (tsne->n < PARALLEL_FROM) n_tasks = 1;
    run_job(job, pool, n_tasks, add_transposed);
    run_job(job, pool, n_tasks, sum_rows);
    for (int64_t i = 0; i < tsne->n; i++) job->sum += job->row_sums[i];
    run_job(job, pool, n_tasks, divide_rows);
    for (int64_t i = 0; i < tsne->n; i++) {
        tsne->sum_p += job->row_sums[i];
        tsne->p_log_p += job->row_p_logs[i];
    }
}

qkv_status qkvi_tsne_make(const qkvi_points *points, qkvi_pool *pool, double perplexity,
                          double tolerance, qkvi_tsne *tsne, qkv_error *error) {
    const int n_tasks = (int)qkvi_min_i64(qkvi_pool_threads(pool), points->n);
    *tsne = (qkvi_tsne){ .kernels = points->kernels,
                         .n = points->n,
                         .room = points->room,
                         .rate = fmax((double)points->n / 48, 50) };
    int64_t n_p;
    struct job job = { .points = points, .tsne = tsne, .tolerance = tolerance };
    if (qkvi_mul_i64(points->n, points->room, &n_p))
        tsne->p = qkvi_aligned_array((size_t)n_p, sizeof(double));
    job.scratch = qkvi_aligned_array((size_t)((n_tasks + 2) * points->room), sizeof(double));
    if (!tsne->p || !job.scratch) {
        qkvi_aligned_free(job.scratch);
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for the affinities of %lld points",
                              (long long)points->n);
    }
    job.row_sums = job.scratch + n_tasks * points->room;
    job.row_p_logs = job.row_sums + points->room;
    job.log_perplexity = qkvi_tsne_log(points->kernels, perplexity);
    run_job(&job, pool, n_tasks, make_rows);
    make_joint(&job, pool, n_tasks);
    qkvi_aligned_free(job.scratch);
    return QKV_OK;
}

void qkvi_tsne_free(qkvi_tsne *tsne) {
    qkvi_aligned_free(tsne->p);
    free(tsne->nothing);
    free(tsne->sparse.start);
    free(tsne->sparse.to);
    free(tsne->sparse.p);
    *tsne = (qkvi_tsne){ 0 };
}
