/*
 * Kernels of the map; kernels/tsne.h says what each computes. The force is written with one
 * division for two pairs, 1/a = b (1 / ab): divisions are what the loop waits for.
 */
#ifndef QKVI_TMPL_TSNE_H
#define QKVI_TMPL_TSNE_H

#include "kernels/tsne.h"
#include "kernels/vec/vec_double.h"

/* Columns j … j + 4 VD_WIDTH: four sums at once, so that none waits for itself. */
enum { TSNE_STRIDE = 4 * VD_WIDTH };

static void tsne_dots(int64_t room, int64_t dim, const double *x, const double *columns,
                      double *out) {
    int64_t j = 0;
    for (; j + TSNE_STRIDE <= room; j += TSNE_STRIDE) {
        vd sums[4] = { vd_set1(0), vd_set1(0), vd_set1(0), vd_set1(0) };
        for (int64_t c = 0; c < dim; c++)
            for (int u = 0; u < 4; u++)
                sums[u] = sums[u] + vd_set1(x[c]) * vd_load(columns + c * room + j + u * VD_WIDTH);
        for (int u = 0; u < 4; u++) vd_store(out + j + u * VD_WIDTH, sums[u]);
    }
    for (; j < room; j += VD_WIDTH) {
        vd sum = vd_set1(0);
        for (int64_t c = 0; c < dim; c++)
            sum = sum + vd_set1(x[c]) * vd_load(columns + c * room + j);
        vd_store(out + j, sum);
    }
}

static void tsne_squares(int64_t room, int64_t dim, const double *x, const double *columns,
                         double *out) {
    int64_t j = 0;
    for (; j + TSNE_STRIDE <= room; j += TSNE_STRIDE) {
        vd sums[4] = { vd_set1(0), vd_set1(0), vd_set1(0), vd_set1(0) };
        for (int64_t c = 0; c < dim; c++) {
            for (int u = 0; u < 4; u++) {
                const vd apart = vd_set1(x[c]) - vd_load(columns + c * room + j + u * VD_WIDTH);
                sums[u] = sums[u] + apart * apart;
            }
        }
        for (int u = 0; u < 4; u++) vd_store(out + j + u * VD_WIDTH, sums[u]);
    }
    for (; j < room; j += VD_WIDTH) {
        vd sum = vd_set1(0);
        for (int64_t c = 0; c < dim; c++) {
            const vd apart = vd_set1(x[c]) - vd_load(columns + c * room + j);
            sum = sum + apart * apart;
        }
        vd_store(out + j, sum);
    }
}

/* Truth for elements j, j + 1, ... that are below n and not self. */
VD_INLINE vl tsne_others(int64_t n, int64_t self, int64_t j) {
    const vl at = vl_from(j);
    return (at < vl_set1(n)) & (at != vl_set1(self));
}

/* p = e^(-beta (d - least)), not yet divided by its sum; *heat is sum p (d - least). */
static double tsne_weights(int64_t n, int64_t self, const double *d, double least, double beta,
                           double *p, double *heat) {
    double sums[VD_LANES], hots[VD_LANES];
    for (int64_t lane = 0; lane < VD_LANES; lane += VD_WIDTH) {
        vd sum = vd_set1(0), hot = vd_set1(0);
        for (int64_t j = lane; j < n + lane; j += VD_LANES) {
            const vl others = tsne_others(n, self, j);
            const vd apart = vd_keep(others, vd_load(d + j) - vd_set1(least));
            const vd e = vd_keep(others, vd_exp(vd_set1(-beta) * apart));
            sum = sum + e;
            hot = hot + e * apart;
            vd_store(p + j, e);
        }
        vd_store(sums + lane, sum);
        vd_store(hots + lane, hot);
    }
    *heat = vd_tree(hots);
    return vd_tree(sums);
}

static double tsne_least(int64_t n, int64_t self, const double *d) {
    double least = __builtin_inf();
    for (int64_t j = 0; j < n; j++) least = j != self && d[j] < least ? d[j] : least;
    return least;
}

static double tsne_affinities(int64_t n, int64_t self, const double *d, double log_perplexity,
                              double tolerance, double *p) {
    const double least = tsne_least(n, self, d);
    double low = 0, high = 0, beta = 1, sum = 1, heat;
    for (int step = 0; step < 200; step++) {
        sum = tsne_weights(n, self, d, least, beta, p, &heat);
        const double above = vd_log(vd_set1(sum))[0] + beta * heat / sum - log_perplexity;
        if (above <= tolerance && -above <= tolerance) break;
        if (above > 0)
            low = beta;
        else
            high = beta;
        beta = high > 0 ? (low + high) / 2 : beta * 2;
    }
    for (int64_t j = 0; j < n; j++) p[j] /= sum;
    return beta;
}

/* Partial sums of a row. */
struct tsne_sums {
    vd attract_x, attract_y, repel_x, repel_y, w;
};

VD_INLINE void tsne_add(struct tsne_sums *sums, vd p, vd w, vd dx, vd dy) {
    const vd pull = p * w, push = w * w;
    sums->attract_x = sums->attract_x + pull * dx;
    sums->attract_y = sums->attract_y + pull * dy;
    sums->repel_x = sums->repel_x + push * dx;
    sums->repel_y = sums->repel_y + push * dy;
    sums->w = sums->w + w;
}

/* The sums of the lanes from `lane` on: pairs of eights, then what is left. */
VD_INLINE struct tsne_sums tsne_lanes(int64_t n, int64_t i, int64_t lane, const double *p,
                                      const double *x, const double *y) {
    const vd xi = vd_set1(x[i]), yi = vd_set1(y[i]), one = vd_set1(1), zero = vd_set1(0);
    struct tsne_sums sums = { zero, zero, zero, zero, zero };
    int64_t j = lane;
    for (; j + 2 * VD_LANES <= n + lane; j += 2 * VD_LANES) {
        const vd dx0 = xi - vd_load(x + j), dx1 = xi - vd_load(x + j + VD_LANES);
        const vd dy0 = yi - vd_load(y + j), dy1 = yi - vd_load(y + j + VD_LANES);
        const vd d0 = one + (dx0 * dx0 + dy0 * dy0), d1 = one + (dx1 * dx1 + dy1 * dy1);
        const vd r = one / (d0 * d1);
        vd w0 = d1 * r, w1 = d0 * r;
        if (__builtin_expect(i >= j && i < j + 2 * VD_LANES, 0)) {
            w0 = vd_keep(tsne_others(n, i, j), w0);
            w1 = vd_keep(tsne_others(n, i, j + VD_LANES), w1);
        }
        tsne_add(&sums, vd_load(p + j), w0, dx0, dy0);
        tsne_add(&sums, vd_load(p + j + VD_LANES), w1, dx1, dy1);
    }
    for (; j < n + lane; j += VD_LANES) {
        const vd dx = xi - vd_load(x + j), dy = yi - vd_load(y + j);
        const vd w = one / (one + (dx * dx + dy * dy));
        tsne_add(&sums, vd_load(p + j), vd_keep(tsne_others(n, i, j), w), dx, dy);
    }
    return sums;
}

static void tsne_force(int64_t n, int64_t i, const double *p, const double *x, const double *y,
                       qkvi_tsne_force *force) {
    double lanes[5][VD_LANES];
    for (int64_t lane = 0; lane < VD_LANES; lane += VD_WIDTH) {
        const struct tsne_sums sums = tsne_lanes(n, i, lane, p, x, y);
        vd_store(lanes[0] + lane, sums.attract_x);
        vd_store(lanes[1] + lane, sums.attract_y);
        vd_store(lanes[2] + lane, sums.repel_x);
        vd_store(lanes[3] + lane, sums.repel_y);
        vd_store(lanes[4] + lane, sums.w);
    }
    force->attract[0] = vd_tree(lanes[0]);
    force->attract[1] = vd_tree(lanes[1]);
    force->repel[0] = vd_tree(lanes[2]);
    force->repel[1] = vd_tree(lanes[3]);
    force->sum_w = vd_tree(lanes[4]);
}

static double tsne_cost(int64_t n, int64_t i, const double *p, const double *x, const double *y) {
    const vd xi = vd_set1(x[i]), yi = vd_set1(y[i]), one = vd_set1(1);
    double lanes[VD_LANES];
    for (int64_t lane = 0; lane < VD_LANES; lane += VD_WIDTH) {
        vd sum = vd_set1(0);
        for (int64_t j = lane; j < n + lane; j += VD_LANES) {
            const vd dx = xi - vd_load(x + j), dy = yi - vd_load(y + j);
            sum = sum + vd_load(p + j) * vd_log(one + (dx * dx + dy * dy));
        }
        vd_store(lanes + lane, sum);
    }
    return vd_tree(lanes);
}

static double tsne_sum_p_log(int64_t n, const double *p, const double *a) {
    double lanes[VD_LANES];
    for (int64_t lane = 0; lane < VD_LANES; lane += VD_WIDTH) {
        vd sum = vd_set1(0);
        for (int64_t j = lane; j < n + lane; j += VD_LANES) {
            const vd pj = vd_load(p + j);
            sum = sum + pj * vd_log(vd_select(pj > vd_set1(0), vd_load(a + j), vd_set1(1)));
        }
        vd_store(lanes + lane, sum);
    }
    return vd_tree(lanes);
}

#define TSNE_KERNELS tsne_dots, tsne_squares, tsne_affinities, tsne_force, tsne_cost, tsne_sum_p_log

#endif
