/*
 * The summary of rounds, without measuring anything: the numbers of a case, the peak of a suite,
 * and whether other work disturbed it.
 *
 * Other work can only lower a peak. So the peak of a suite is the best of all rounds of its cases,
 * and no share is divided by a disturbed one.
 */
#include <stdlib.h>

#include "suite/suite.h"

static const double TOLERANCE = 0.1;

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void bench_sort(double *values, int n) { qsort(values, (size_t)n, sizeof *values, ascending); }

static double quantile(const double *sorted, int n, double q) {
    return sorted[(int)(q * (n - 1) + 0.5)];
}

void bench_summarise(int n, const struct bench_round *rounds, struct bench_result *result) {
    double seconds[BENCH_MOST_ROUNDS], peaks[BENCH_MOST_ROUNDS], waits[BENCH_MOST_ROUNDS];
    for (int r = 0; r < n; r++) {
        seconds[r] = rounds[r].seconds;
        peaks[r] = rounds[r].peak;
        waits[r] = rounds[r].wall / rounds[r].seconds - 1;
    }
    bench_sort(seconds, n);
    bench_sort(peaks, n);
    bench_sort(waits, n);
    result->seconds = quantile(seconds, n, 0.5);
    result->spread = (quantile(seconds, n, 0.75) - quantile(seconds, n, 0.25)) / result->seconds;
    result->low_peak = quantile(peaks, n, 0.25);
    if (peaks[n - 1] > result->peak) result->peak = peaks[n - 1];
    result->busy = result->spread > TOLERANCE || quantile(waits, n, 0.75) > TOLERANCE;
}

static bool one_peak(const struct bench_result *a, const struct bench_result *b) {
    return a->peak_of == b->peak_of && a->peak_bytes == b->peak_bytes;
}

void bench_share_peaks(int n, struct bench_result *results) {
    for (int i = 0; i < n; i++) {
        struct bench_result *const r = &results[i];
        for (int j = 0; j < n; j++)
            if (one_peak(r, &results[j]) && results[j].peak > r->peak) r->peak = results[j].peak;
        if (!(r->peak > 0)) continue;
        r->share = (r->peak_of == PEAK_READ ? r->gbytes : r->gflops) / r->peak;
        if (r->low_peak < (1 - TOLERANCE) * r->peak) r->busy = true;
    }
}
