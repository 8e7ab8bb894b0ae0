/* Measuring the peaks of this machine: multiply-adds, and bytes read, per second. */
#ifndef QKV_BENCH_SUITE_PEAK_H
#define QKV_BENCH_SUITE_PEAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum peak_kind {
    PEAK_FMA,  /* f32 multiply-adds in registers, with the widest vectors; GFLOP/s */
    PEAK_DP,   /* pairs of bf16 products added in f32: VDPBF16PS; GFLOP/s */
    PEAK_AMX,  /* tiles of bf16 products added in f32: TDPBF16PS, after qkv_ctx_create; GFLOP/s */
    PEAK_READ, /* reading an array from end to end, again and again; GB/s */
    PEAK_KINDS
};

/* A loop (peak_loops.c); operations: of one round. name NULL: there is none. */
struct peak_loop {
    const char *name;
    double operations;
    float (*run)(int64_t rounds);
};
struct peak_loop peak_loop(enum peak_kind kind);

struct peak {
    enum peak_kind kind;
    int n_threads;
    size_t bytes; /* PEAK_READ: of the array, of which each thread reads a part */
    char *memory;
    struct peak_loop loop;
};

/* The name of a peak, "FMA avx512" or "read"; NULL if this build or processor has none. */
const char *peak_name(enum peak_kind kind);

/* bytes: for PEAK_READ. False: no memory. */
bool peak_open(struct peak *peak, enum peak_kind kind, int n_threads, size_t bytes);
void peak_close(struct peak *peak);

/*
 * The clock of measurements: with one thread its processor time, which other work on the machine
 * does not change; with several threads the wall clock.
 */
double peak_seconds(int n_threads);

/*
 * Measures for about `seconds`, and returns 1e9 operations or bytes a second of all threads
 * together; 0: unknown. For operations the best window of each thread counts, since other work can
 * only lower it; for reading the average.
 */
double peak_measure(const struct peak *peak, double seconds);

/* Reads n bytes, a multiple of 1024, aligned to 64. */
uint64_t peak_read(const char *bytes, size_t n);

#endif
