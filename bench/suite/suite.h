/*
 * The cases of `qkv bench` and how they are measured, for the tool and for bench/peers.py: the
 * table of cases (cases.c), the arrays of a case (arrays.c), its masks (rules.c) and statistics
 * (stats.c), its rounds (measure.c) and memory (os_memory.c), the summary of rounds (summary.c).
 */
#ifndef QKV_BENCH_SUITE_H
#define QKV_BENCH_SUITE_H

#include "suite/peak.h"
#include <qkv/columns.h>
#include <qkv/kv.h>
#include <qkv/stats.h>

enum { BENCH_MOST_ROUNDS = 101 };

enum bench_call { BENCH_FORWARD, BENCH_BACKWARD, BENCH_BOTH, BENCH_DECODE, BENCH_COLUMNS };

/* The arrays of a case, which are filled once. */
struct bench {
    qkv_ctx *ctx;
    const int *cancel; /* as in qkv_call_options; NULL */
    enum bench_call call;
    qkv_attention_desc desc;
    qkv_attention_grads grads;
    qkv_kv_view view;              /* of k and v, for BENCH_DECODE */
    qkv_attention_stats stats;     /* desc.stats, if a rule asks for some */
    qkv_attention_columns columns; /* for BENCH_COLUMNS */
    void *q, *k, *v, *o;
    float *lse;
    void *memory; /* one block for all of them */
    /*
     * Decode reads K and V once. If they are larger than a cache, each call uses the next of
     * n_copies copies of all arrays, so that no part of them is in a cache.
     */
    int n_copies, copy;
    size_t copy_bytes;
    void *rule;      /* memory of a rule, such as a mask; from malloc */
    double pairs;    /* visible pairs of query and key, of one head of one batch */
    double bytes;    /* bytes that a call must read or write at least once */
    double kv_bytes; /* bytes of k and v */
};

/* sizes: n_batch, n_heads, n_kv_heads, len_q, len_k, head_dim, head_dim_v. */
struct bench_case {
    const char *name; /* its first word is the suite */
    enum bench_call call;
    qkv_dtype dtype; /* of all arrays; BENCH_DECODE: of k and v, if q cannot have it */
    int64_t sizes[7];
    /*
     * Sets flags and arrays of bench->desc, bench->pairs if it hides keys, and the statistics that
     * are requested. False: no memory. NULL: every query sees every key.
     */
    bool (*rule)(struct bench *bench);
};

/* The n-th case of the table, NULL past the end; and whether its name has the word `word`. */
const struct bench_case *bench_case_at(int index);
bool bench_case_is(const struct bench_case *c, const char *word);
/* The length of the first word of a name. */
int bench_suite_length(const char *name);

/* Makes the arrays of a case, without cancel. False: no memory, and nothing to free. */
bool bench_make(struct bench *bench, qkv_ctx *ctx, const struct bench_case *c);
void bench_free(struct bench *bench);

bool bench_causal(struct bench *bench);
bool bench_window(struct bench *bench);
bool bench_segments(struct bench *bench);
bool bench_blocks(struct bench *bench);
bool bench_packed(struct bench *bench);
bool bench_packed_causal(struct bench *bench);
bool bench_bools(struct bench *bench);
bool bench_bits(struct bench *bench);
bool bench_numbers(struct bench *bench);

/*
 * Statistics of rows: entropy, largest weight, effective keys; also the 8 largest keys, 8 classes
 * and distance; all of qkv/stats.h.
 */
bool bench_rows_spread(struct bench *bench);
bool bench_rows_keys(struct bench *bench);
bool bench_rows_all(struct bench *bench);

/* Statistics of columns: received; all of keys, diagonals and 64 x 64 tiles. */
bool bench_columns_received(struct bench *bench);
bool bench_columns_all(struct bench *bench);

/*
 * Uniform in [0, 2^24), by a linear congruence, which is good enough: speed does not depend on it.
 */
uint32_t bench_random(uint32_t *state);

/*
 * The result of a case, measured or read from a file. name must live as long: it is in the table of
 * cases, or in what was read.
 */
struct bench_result {
    const char *name;
    double seconds, spread; /* of a call: median; interquartile range / median */
    double gflops, gbytes;  /* 1e9 operations, and 1e9 bytes read or written, a second */
    double peak, share;     /* the best peak of the suite (0: unknown); speed / peak */
    double low_peak;        /* lower quartile of the peaks beside the rounds of this case */
    double peak_bytes;      /* of the array of PEAK_READ, if it fits a cache; 0: memory */
    bool busy;              /* other work disturbed it: rounds vary, or did not run all the time */
    double workspace_bytes; /* as the library says */
    double memory_bytes;    /* by which the process grew; -1: unknown */
    enum peak_kind peak_of;
    const char *kernel, *arithmetic; /* as the library explains it */
};

/* Sorts in ascending order. */
void bench_sort(double *values, int n);

/* Seconds of a call by peak_seconds and by the wall clock; the peak beside it (0: unknown). */
struct bench_round {
    double seconds, wall, peak;
};

/*
 * Sets seconds, spread, low_peak and busy from n rounds, 1 to BENCH_MOST_ROUNDS, and raises peak to
 * the best of them.
 */
void bench_summarise(int n, const struct bench_round *rounds, struct bench_result *result);

/*
 * Sets peak and share of all results of a suite: peak is the best one with the same peak_of and
 * peak_bytes. A case whose own peaks were much lower is marked busy.
 */
void bench_share_peaks(int n, struct bench_result *results);

/*
 * Measures a case: a first call for memory and warming up, then rounds, each of as many calls as
 * take a while, with the peak measured beside it. The share is set later. QKV_ERR_CANCELLED if
 * bench->cancel was set.
 */
qkv_status bench_measure(struct bench *bench, const struct bench_case *c, int rounds,
                         struct bench_result *result);

/*
 * Parts of bench_measure: one call; its operations; the path that it takes (of forward and backward
 * the latter's); and the peak that bounds it: decode reads K and V, all else multiplies in its
 * class.
 */
qkv_status bench_call_once(struct bench *bench);
double bench_operations(const struct bench *bench);
qkv_status bench_explain(const struct bench *bench, qkv_attention_plan *plan);
enum peak_kind bench_peak_of(const qkv_attention_plan *plan);

/*
 * Resident memory of this process in bytes: at present, and the maximum since bench_memory_mark.
 * -1: unknown.
 */
double bench_memory_mark(void);
double bench_memory_peak(void);

#endif
