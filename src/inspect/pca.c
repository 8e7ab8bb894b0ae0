/**
 * Principal components of the points: the two largest eigenvalues of the covariance matrix, by
 * cyclic Jacobi rotations (Golub and Van Loan, section 8.5), and the projections on their vectors.
 */
#include <float.h>
#include <math.h>

#include "files/base.h"
#include "inspect/points.h"

enum { SWEEPS = 40 }; /* convergence is quadratic: seven are usual */

/* What is computed with: the covariance, [dim][dim], its vectors in rows, and the mean. */
struct pca {
    double *cov, *vectors, *mean;
    int64_t dim;
};

static qkv_status begin(struct pca *pca, int64_t dim, qkv_error *error) {
    const size_t n = (size_t)dim;
    *pca = (struct pca){ qkvi_calloc_array(n * n, sizeof(double)),
                         qkvi_calloc_array(n * n, sizeof(double)),
                         qkvi_calloc_array(n, sizeof(double)), dim };
    if (pca->cov && pca->vectors && pca->mean) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a covariance of %lld x %lld",
                          (long long)dim, (long long)dim);
}

static void end(struct pca *pca) {
    free(pca->cov);
    free(pca->vectors);
    free(pca->mean);
}

static void make_covariance(const qkvi_points *points, struct pca *pca) {
    const int64_t n = points->n, dim = pca->dim;
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < dim; c++) pca->mean[c] += points->rows[i * dim + c];
    for (int64_t c = 0; c < dim; c++) pca->mean[c] /= (double)n;
    for (int64_t i = 0; i < n; i++) {
        const double *const x = points->rows + i * dim;
        for (int64_t a = 0; a < dim; a++) {
            const double xa = x[a] - pca->mean[a];
            for (int64_t b = 0; b < dim; b++) pca->cov[a * dim + b] += xa * (x[b] - pca->mean[b]);
        }
    }
    for (int64_t c = 0; c < dim; c++) pca->vectors[c * dim + c] = 1;
}

/* Rows and columns a and b turn so that cov[a][b] becomes 0. */
static void rotate(struct pca *pca, int64_t a, int64_t b) {
    const int64_t dim = pca->dim;
    double *const row_a = pca->cov + a * dim, *const row_b = pca->cov + b * dim;
    const double theta = (row_b[b] - row_a[a]) / (2 * row_a[b]);
    const double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1));
    const double cosine = 1 / sqrt(t * t + 1), sine = t * cosine;
    for (int64_t c = 0; c < dim; c++) { /* rows */
        const double x = row_a[c], y = row_b[c];
        row_a[c] = cosine * x - sine * y;
        row_b[c] = sine * x + cosine * y;
        double *const u = pca->vectors + a * dim + c, *const v = pca->vectors + b * dim + c;
        const double p = *u, q = *v;
        *u = cosine * p - sine * q;
        *v = sine * p + cosine * q;
    }
    for (int64_t c = 0; c < dim; c++) { /* columns */
        double *const u = pca->cov + c * dim + a, *const v = pca->cov + c * dim + b;
        const double x = *u, y = *v;
        *u = cosine * x - sine * y;
        *v = sine * x + cosine * y;
    }
}

static void diagonalize(struct pca *pca) {
    const int64_t dim = pca->dim;
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        int turned = 0;
        for (int64_t a = 0; a < dim; a++) {
            for (int64_t b = a + 1; b < dim; b++) {
                const double *const cov = pca->cov;
                const double scale = sqrt(fabs(cov[a * dim + a]) * fabs(cov[b * dim + b]));
                if (!(fabs(cov[a * dim + b]) > DBL_EPSILON * scale + DBL_MIN)) continue;
                rotate(pca, a, b);
                turned = 1;
            }
        }
        if (!turned) return;
    }
}

/* The index of the largest eigenvalue but `except` (-1: none). */
static int64_t largest(const struct pca *pca, int64_t except) {
    int64_t best = -1;
    for (int64_t c = 0; c < pca->dim; c++) {
        const double value = pca->cov[c * pca->dim + c];
        if (c != except && (best < 0 || value > pca->cov[best * pca->dim + best])) best = c;
    }
    return best;
}

static void project(const qkvi_points *points, const struct pca *pca, int64_t component,
                    double *xy) {
    const double *const vector = pca->vectors + component * pca->dim;
    double loading = 0;
    for (int64_t c = 0; c < pca->dim; c++)
        if (fabs(vector[c]) > fabs(loading)) loading = vector[c];
    for (int64_t i = 0; i < points->n; i++) {
        double sum = 0;
        for (int64_t c = 0; c < pca->dim; c++)
            sum += (points->rows[i * pca->dim + c] - pca->mean[c]) * vector[c];
        xy[2 * i] = loading < 0 ? -sum : sum;
    }
}

qkv_status qkvi_points_pca(const qkvi_points *points, double *xy, double explained[2],
                           qkv_error *error) {
    struct pca pca;
    qkv_status status = begin(&pca, points->dim, error);
    explained[0] = explained[1] = 0;
    memset(xy, 0, 2 * (size_t)points->n * sizeof *xy);
    if (status == QKV_OK) {
        make_covariance(points, &pca);
        double variance = 0;
        for (int64_t c = 0; c < pca.dim; c++) variance += pca.cov[c * pca.dim + c];
        diagonalize(&pca);
        int64_t component = -1;
        for (int i = 0; i < 2 && i < points->dim && variance > 0; i++) {
            component = largest(&pca, component);
            explained[i] = pca.cov[component * pca.dim + component] / variance;
            if (explained[i] < DBL_EPSILON) explained[i] = 0;
            if (explained[i] > 0) project(points, &pca, component, xy + i);
        }
    }
    end(&pca);
    return status;
}
