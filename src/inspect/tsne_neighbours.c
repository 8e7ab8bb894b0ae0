/**
 * Affinities of near points. The floor(3 perplexity) + 1 nearest points of each point are found by
 * comparing D to all points, of equal distances the first; conditional affinities go over those
 * only; p = (p_j|i + p_i|j) / sum.
 *
 * A task takes a tile of points and goes through the blocks of columns (points.h), so that a block
 * is read from the cache for all points of the tile. Sums over rows are added in their order.
 */
#include <math.h>
#include <stdatomic.h>

#include "core/ints.h"
#include "inspect/tsne.h"

enum { TILE = 32, ROUND_PAIRS = 1 << 24 /* between two looks at the watch */ };

struct near {
    double d;
    int32_t j;
};

/* The nearest of every point, in the order of points, and its affinities to them. */
struct job {
    const qkvi_points *points;
    int64_t k, room; /* room: k in whole eights */
    double log_perplexity, tolerance;
    struct near *heaps; /* [tasks][TILE][k] */
    double *rows;       /* [tasks][2][room] */
    int32_t *to;        /* [n][k] */
    double *p;          /* [n][k] */
    int64_t end;        /* of this round */
    atomic_llong next;
};

/* ---- The k nearest, in a heap with the farthest on top --------------------------------------- */

static int farther(const struct near *a, const struct near *b) {
    return a->d > b->d || (a->d == b->d && a->j > b->j);
}

static void sift_down(struct near *heap, int64_t n, int64_t at) {
    const struct near moved = heap[at];
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && farther(&heap[child + 1], &heap[child])) child++;
        if (!farther(&heap[child], &moved)) break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

/* Points come in ascending order, so one that is as far as the top stays outside. */
static int64_t offer(struct near *heap, int64_t n, int64_t k, double d, int64_t j) {
    if (n == k) {
        if (!(d < heap[0].d)) return n;
        heap[0] = (struct near){ d, (int32_t)j };
        sift_down(heap, k, 0);
        return n;
    }
    heap[n++] = (struct near){ d, (int32_t)j };
    for (int64_t i = k / 2; n == k && i-- > 0;) sift_down(heap, k, i);
    return n;
}

static void find_nearest(const struct job *job, int64_t first, int64_t end, struct near *heaps) {
    const qkvi_points *const points = job->points;
    int64_t found[TILE] = { 0 };
    for (int64_t block = 0; block < points->n; block += QKVI_POINTS_BLOCK) {
        const int64_t width = qkvi_min_i64(QKVI_POINTS_BLOCK, points->n - block);
        for (int64_t i = first; i < end; i++) {
            double d[QKVI_POINTS_BLOCK];
            int64_t *const n = &found[i - first];
            struct near *const heap = heaps + (i - first) * job->k;
            qkvi_points_block_distances(points, i, block, d);
            for (int64_t j = 0; j < width; j++)
                if (block + j != i) *n = offer(heap, *n, job->k, d[j], block + j);
        }
    }
}

static int by_index(const void *a, const void *b) {
    const int32_t x = ((const struct near *)a)->j, y = ((const struct near *)b)->j;
    return (x > y) - (x < y);
}

static void make_tiles(void *argument, int index) {
    struct job *const job = argument;
    const int64_t k = job->k;
    struct near *const heaps = job->heaps + index * TILE * k;
    double *const d = job->rows + index * 2 * job->room, *const p = d + job->room;
    for (int64_t first; (first = atomic_fetch_add(&job->next, TILE)) < job->end;) {
        const int64_t end = qkvi_min_i64(first + TILE, job->end);
        find_nearest(job, first, end, heaps);
        for (int64_t i = first; i < end; i++) {
            struct near *const near = heaps + (i - first) * k;
            qsort(near, (size_t)k, sizeof *near, by_index);
            for (int64_t j = 0; j < k; j++) d[j] = near[j].d;
            job->points->kernels->tsne->affinities(k, -1, d, job->log_perplexity, job->tolerance,
                                                   p);
            memcpy(job->p + i * k, p, (size_t)k * sizeof *p);
            for (int64_t j = 0; j < k; j++) job->to[i * k + j] = near[j].j;
        }
    }
}

/* Rounds of tiles; 0 if the watch has had enough. */
static int find_all(struct job *job, qkvi_pool *pool, int n_tasks, const qkvi_tsne_watch *watch) {
    const int64_t n = job->points->n;
    const int64_t round = qkvi_round_up(qkvi_max_i64(ROUND_PAIRS / n, n_tasks * TILE), TILE);
    for (int64_t first = 0; first < n; first += round) {
        if (watch && !watch->go_on(watch->user)) return 0;
        job->end = qkvi_min_i64(first + round, n);
        atomic_store(&job->next, first);
        qkvi_pool_run(pool, n_tasks, make_tiles, job);
    }
    return 1;
}

/* ---- From conditional to joint --------------------------------------------------------------- */

/*
 * Who has a point among its nearest: of point j, from start[j] to start[j + 1], in ascending order.
 */
struct reverse {
    int64_t *start; /* [n + 1] */
    int32_t *from;  /* [n k] */
    double *p;
};

static void reverse(const struct job *job, struct reverse *back) {
    const int64_t n = job->points->n, n_pairs = n * job->k;
    memset(back->start, 0, (size_t)(n + 1) * sizeof *back->start);
    for (int64_t l = 0; l < n_pairs; l++) back->start[job->to[l] + 1]++;
    for (int64_t j = 0; j < n; j++) back->start[j + 1] += back->start[j];
    for (int64_t l = 0; l < n_pairs; l++) {
        const int64_t at = back->start[job->to[l]]++;
        back->from[at] = (int32_t)(l / job->k);
        back->p[at] = job->p[l];
    }
    for (int64_t j = n; j > 0; j--) back->start[j] = back->start[j - 1];
    back->start[0] = 0;
}

/* Row i: those that it has and those that have it, in ascending order. Returns how many. */
static int64_t merge_row(const struct job *job, const struct reverse *back, int64_t i, int32_t *to,
                         double *p) {
    int64_t a = i * job->k, b = back->start[i], n = 0;
    const int64_t a_end = a + job->k, b_end = back->start[i + 1];
    while (a < a_end || b < b_end) {
        const int32_t own = a < a_end ? job->to[a] : INT32_MAX;
        const int32_t others = b < b_end ? back->from[b] : INT32_MAX;
        to[n] = own < others ? own : others;
        p[n] = own <= others ? job->p[a++] : 0;
        if (others <= own) p[n] += back->p[b++];
        n++;
    }
    for (; n % QKVI_TSNE_LANES; n++) {
        to[n] = (int32_t)i;
        p[n] = 0;
    }
    return n;
}

static void make_joint(const struct job *job, const struct reverse *back, qkvi_tsne *tsne) {
    qkvi_tsne_sparse *const near = &tsne->sparse;
    double sum = 0;
    near->start[0] = 0;
    for (int64_t i = 0; i < tsne->n; i++) {
        const int64_t first = near->start[i];
        near->start[i + 1] = first + merge_row(job, back, i, near->to + first, near->p + first);
        for (int64_t l = first; l < near->start[i + 1]; l++) sum += near->p[l];
    }
    for (int64_t i = 0; i < tsne->n; i++) {
        const int64_t first = near->start[i], n = near->start[i + 1] - first;
        double row = 0;
        for (int64_t l = first; l < first + n; l++) row += near->p[l] /= sum;
        tsne->sum_p += row;
        tsne->p_log_p += tsne->kernels->tsne->sum_p_log(n, near->p + first, near->p + first);
    }
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static int allocate(struct job *job, struct reverse *back, int n_tasks, qkvi_tsne *tsne) {
    const size_t n = (size_t)tsne->n, pairs = n * (size_t)job->k;
    const size_t most = 2 * pairs + QKVI_TSNE_LANES * n; /* of joint affinities */
    job->heaps = qkvi_malloc_array((size_t)n_tasks * TILE * (size_t)job->k, sizeof *job->heaps);
    job->rows = qkvi_calloc_array((size_t)n_tasks * 2 * (size_t)job->room, sizeof *job->rows);
    job->to = qkvi_malloc_array(pairs, sizeof *job->to);
    job->p = qkvi_malloc_array(pairs, sizeof *job->p);
    back->start = qkvi_malloc_array(n + 1, sizeof *back->start);
    back->from = qkvi_malloc_array(pairs, sizeof *back->from);
    back->p = qkvi_malloc_array(pairs, sizeof *back->p);
    tsne->nothing = qkvi_calloc_array((size_t)tsne->room, sizeof *tsne->nothing);
    tsne->sparse.start = qkvi_malloc_array(n + 1, sizeof *tsne->sparse.start);
    tsne->sparse.to = qkvi_malloc_array(most, sizeof *tsne->sparse.to);
    tsne->sparse.p = qkvi_malloc_array(most, sizeof *tsne->sparse.p);
    return job->heaps && job->rows && job->to && job->p && back->start && back->from && back->p &&
           tsne->nothing && tsne->sparse.start && tsne->sparse.to && tsne->sparse.p;
}

static void release(struct job *job, struct reverse *back) {
    free(job->heaps);
    free(job->rows);
    free(job->to);
    free(job->p);
    free(back->start);
    free(back->from);
    free(back->p);
}

qkv_status qkvi_tsne_make_sparse(const qkvi_points *points, qkvi_pool *pool, double perplexity,
                                 double tolerance, const qkvi_tsne_watch *watch, qkvi_tsne *tsne,
                                 qkv_error *error) {
    const int64_t n = points->n, k = qkvi_min_i64(n - 1, (int64_t)(3 * perplexity + 1));
    const int n_tasks = (int)qkvi_min_i64(qkvi_pool_threads(pool), qkvi_ceil_div(n, TILE));
    *tsne = (qkvi_tsne){ .kernels = points->kernels,
                         .n = n,
                         .room = points->room,
                         .theta = 0.5,
                         .rate = fmax((double)n / 48, 50) };
    struct job job = {
        .points = points, .k = k, .room = qkvi_round_up(k, QKVI_TSNE_LANES), .tolerance = tolerance
    };
    struct reverse back = { 0 };
    const int allocated = allocate(&job, &back, n_tasks, tsne);
    job.log_perplexity = qkvi_tsne_log(points->kernels, perplexity);
    const int found = allocated && find_all(&job, pool, n_tasks, watch);
    if (found) {
        reverse(&job, &back);
        make_joint(&job, &back, tsne);
    }
    release(&job, &back);
    if (allocated) return found ? QKV_OK : QKV_ERR_CANCELLED;
    return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for the %lld nearest of %lld points",
                          (long long)k, (long long)n);
}
