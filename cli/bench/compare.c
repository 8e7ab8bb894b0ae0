/*
 * Compares two runs of `qkv bench` by their shares of the peak, since clocks of processors drift
 * between runs, and processors differ; if a peak is unknown, by speed.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"

static const struct bench_result *find(const char *name, int n, const struct bench_result *list) {
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0) return &list[i];
    return NULL;
}

/* new / old: above 1 is faster. */
static double compare_case(const struct bench_result *before, const struct bench_result *now) {
    const bool shares = before->share > 0 && now->share > 0;
    const double ratio = shares ? now->share / before->share : before->seconds / now->seconds;
    const double scale = shares ? 100 : 1;
    printf("%-38s %8.1f %8.1f %-9s %8.3f%s\n", now->name,
           scale * (shares ? before->share : before->gflops),
           scale * (shares ? now->share : now->gflops), shares ? "% of peak" : "GFLOP/s", ratio,
           before->busy || now->busy ? " *" : "");
    return ratio;
}

static void print_missing(const char *where, int n, const struct bench_result *list, int n_others,
                          const struct bench_result *others) {
    for (int i = 0; i < n; i++)
        if (!find(list[i].name, n_others, others)) printf("%-38s only %s\n", list[i].name, where);
}

int bench_compare(const struct bench_file *before, const char *isa, int64_t threads, int n,
                  const struct bench_result *now, double *slowest) {
    double log_sum = 0;
    int common = 0;
    bool busy = false;
    *slowest = INFINITY;
    printf("old: %s, threads %" PRId64 "; new: %s, threads %" PRId64 "\n\n", before->isa,
           before->threads, isa, threads);
    printf("%-38s %8s %8s %9s %8s\n", "case", "old", "new", "", "new/old");
    for (int i = 0; i < n; i++) {
        const struct bench_result *old = find(now[i].name, before->n, before->results);
        if (!old) continue;
        const double ratio = compare_case(old, &now[i]);
        busy |= old->busy || now[i].busy;
        log_sum += log(ratio);
        common++;
        if (ratio < *slowest) *slowest = ratio;
    }
    print_missing("old", before->n, before->results, n, now);
    print_missing("new", n, now, before->n, before->results);
    if (common == 0) return cli_fail("no case is in both: nothing to compare");
    printf("%-38s %36.3f\n", "geometric mean", exp(log_sum / common));
    bench_print_busy(busy);
    return EXIT_OK;
}
