/* The ceiling of this machine: fused multiply-adds per second, measured. */
#ifndef QKV_CLI_PEAK_H
#define QKV_CLI_PEAK_H

/* "avx512", "avx2": the widest vectors with FMA here; NULL if this build knows none. */
const char *peak_name(void);

/*
 * GFLOP/s of n_threads threads, each multiplying and adding in registers for about `seconds`; the
 * best millisecond of each counts, because a ceiling is not lowered by what else runs.
 */
double peak_measure(int n_threads, double seconds);

#endif
