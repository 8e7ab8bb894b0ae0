/* Interpolated positions: see positions.h. */
#include "model/layer/positions.h"

#include <math.h>

/* One axis of an output: taps first … end - 1, whose weights are divided by `sum`. */
typedef struct taps {
    int64_t n, first, end; /* n: of the table */
    double centre, width, a, sum;
} taps;

static double kernel(double a, double x) {
    x = fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static double weight(const taps *t, int64_t tap) {
    return kernel(t->a, ((double)tap - t->centre) / t->width) / t->sum;
}

static taps plain(int64_t i, int64_t in, int64_t out) {
    const double at = ((double)i + 0.5) * ((double)in / (double)out) - 0.5;
    const int64_t first = (int64_t)floor(at) - 1;
    return (taps){ in, first, first + 4, at, 1, -0.75, 1 };
}

static taps antialiased(int64_t i, int64_t in, int64_t out) {
    const double s = (double)in / (double)out, f = s > 1 ? s : 1, c = ((double)i + 0.5) * s;
    taps made = {
        in, (int64_t)floor(c - 2 * f + 0.5), (int64_t)floor(c + 2 * f + 0.5), c - 0.5, f, -0.5, 1
    };
    double sum = 0;
    if (made.first < 0) made.first = 0;
    if (made.end > in) made.end = in;
    for (int64_t tap = made.first; tap < made.end; tap++) sum += weight(&made, tap);
    made.sum = sum;
    return made;
}

static int64_t inside(const taps *t, int64_t tap) {
    return tap < 0 ? 0 : tap < t->n ? tap : t->n - 1;
}

/* Some channels of one output at a time, so that a weight is made once for them all. */
static void interpolate(int64_t n, qkvi_grid from, const float *table, const taps *y, const taps *x,
                        float *made) {
    enum { SOME = 64 };
    for (int64_t at = 0; at < n; at += SOME) {
        const int64_t some = n - at < SOME ? n - at : SOME;
        double sums[SOME] = { 0 };
        for (int64_t r = y->first; r < y->end; r++)
            for (int64_t i = x->first; i < x->end; i++) {
                const double w = weight(y, r) * weight(x, i);
                const float *const values =
                    table + (inside(y, r) * from.columns + inside(x, i)) * n + at;
                for (int64_t c = 0; c < some; c++) sums[c] += w * (double)values[c];
            }
        for (int64_t c = 0; c < some; c++) made[at + c] = (float)sums[c];
    }
}

void qkvi_positions_interpolate(int64_t n, qkvi_grid from, const float *table, bool antialiases,
                                qkvi_grid to, float *made) {
    taps (*const make)(int64_t, int64_t, int64_t) = antialiases ? antialiased : plain;
    for (int64_t r = 0; r < to.rows; r++) {
        const taps y = make(r, from.rows, to.rows);
        for (int64_t c = 0; c < to.columns; c++) {
            const taps x = make(c, from.columns, to.columns);
            interpolate(n, from, table, &y, &x, made + (r * to.columns + c) * n);
        }
    }
}
