/**
 * The descent of t-SNE, step for step that of scikit-learn: gradient 4 sum (p - q) w (y_i - y_j),
 * gains + 0.2 where velocity and gradient disagree in sign, else times 0.8, at least 0.01;
 * velocity = momentum velocity - rate gain gradient; y += velocity. Momentum and exaggeration change
 * after 250 iterations, when velocities and gains begin anew. Every 50 iterations it is seen whether
 * the KL is still getting smaller.
 */
#include <math.h>

#include "core/ints.h"
#include "inspect/normal.h"
#include "inspect/tsne.h"

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
    double *const block = qkvi_calloc_array(8 * room, sizeof(double));
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
            gain[i] = velocity[i] * gradient < 0 ? gain[i] + 0.2 : fmax(gain[i] * 0.8, 0.01);
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
            run->kl = qkvi_tsne_run_kl(tsne, run);
        step(tsne, run);
        if (!phase_ends(tsne, run)) continue;
        if (run->exaggerates && run->n_iters < tsne->n_iters)
            begin_second_phase(tsne, run);
        else
            run->done = 1;
    }
}
