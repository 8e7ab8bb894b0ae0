/* Ceilings of this machine, measured: multiply-adds and bytes per second. */
#ifndef QKV_CLI_BENCH_PEAK_H
#define QKV_CLI_BENCH_PEAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum peak_kind {
    PEAK_FMA,  /* f32 multiply-adds in registers, the widest vectors here; GFLOP/s */
    PEAK_DP,   /* pairs of bf16 products added in f32: VDPBF16PS; GFLOP/s */
    PEAK_AMX,  /* tiles of bf16 products added in f32: TDPBF16PS, once a context exists; GFLOP/s */
    PEAK_READ, /* reading an array from end to end, again and again; GB/s */
    PEAK_KINDS
};

/* A loop (peak_loops.c): operations of a round, and what runs `rounds` of them. name NULL: none. */
struct peak_loop {
    const char *name;
    double operations;
    float (*run)(int64_t rounds);
};
struct peak_loop peak_loop(enum peak_kind kind);

struct peak {
    enum peak_kind kind;
    int n_threads;
    size_t bytes; /* PEAK_READ: of the array, which all threads share out */
    char *memory;
    struct peak_loop loop;
};

/* "FMA avx512", "read"; NULL if this build or this processor has none. */
const char *peak_name(enum peak_kind kind);

/* bytes: for PEAK_READ. False: no memory. */
bool peak_open(struct peak *peak, enum peak_kind kind, int n_threads, size_t bytes);
void peak_close(struct peak *peak);

/*
 * Seconds by the clock that counts: of one thread its own processor time, so that what else runs on
 * the machine does not; of several, the wall.
 */
double peak_seconds(int n_threads);

/*
 * 1e9 operations or bytes a second, of all threads together, running for about `seconds`. The best
 * window of each thread counts, because a ceiling is not lowered by what else runs; of threads that
 * read, the average. 0: unknown.
 */
double peak_measure(const struct peak *peak, double seconds);

/* Reads n bytes, a multiple of 1024, aligned to 64. */
uint64_t peak_read(const char *bytes, size_t n);

#endif
