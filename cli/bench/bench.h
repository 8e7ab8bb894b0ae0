/*
 * `qkv bench`: a table of cases (cases.c), the arrays of one (arrays.c), what hides keys
 * in it (rules.c) or is asked of it (stats.c), rounds of it (measure.c), memory
 * (memory.c), what rounds come to (summary.c), and what is said about it (report.c, compare.c).
 */
#ifndef QKV_CLI_BENCH_H
#define QKV_CLI_BENCH_H

#include <jansson.h>

#include "bench/peak.h"
#include "common/cli.h"
#include <qkv/columns.h>
#include <qkv/kv.h>
#include <qkv/stats.h>

enum { BENCH_MOST_ROUNDS = 101 };

enum bench_call { BENCH_FORWARD, BENCH_BACKWARD, BENCH_BOTH, BENCH_DECODE, BENCH_COLUMNS };

/* Arrays of a case, filled once. */
struct bench {
    qkv_ctx *ctx;
    enum bench_call call;
    qkv_attention_desc desc;
    qkv_attention_grads grads;
    qkv_kv_view view;              /* of k and v, for BENCH_DECODE */
    qkv_attention_stats stats;     /* desc.stats, if a rule asks for some */
    qkv_attention_columns columns; /* for BENCH_COLUMNS */
    void *q, *k, *v, *o;
    float *lse;
    void *memory; /* of all of them */
    /*
     * Decode reads K and V once: where they are larger than a cache, a call takes the next of so
     * many copies of everything, so that none is found in one.
     */
    int n_copies, copy;
    size_t copy_bytes;
    void *rule;      /* malloc: what a rule needs, such as a mask */
    double pairs;    /* of a query and a key that are counted, of one head of one batch */
    double bytes;    /* that a call must read and write at least once */
    double kv_bytes; /* those of k and v */
};

/* sizes: batch, heads, key/value heads, queries, keys, channels of q and k, of v. */
struct bench_case {
    const char *name; /* its first word is the suite */
    enum bench_call call;
    qkv_dtype dtype; /* of all arrays; BENCH_DECODE: of k and v, where q has no such type */
    int64_t sizes[7];
    /*
     * Sets flags and arrays of bench->desc, bench->pairs if it hides keys, and what is asked for.
     * False: no memory. NULL: every query sees every key.
     */
    bool (*rule)(struct bench *bench);
};

/* The table: n-th case, NULL past the end. Is the case's suite, or another word of it, `word`? */
const struct bench_case *bench_case_at(int index);
bool bench_case_is(const struct bench_case *c, const char *word);
/* Bytes of the first word of the name. */
int bench_suite_length(const char *name);

/* False: no memory, and nothing to free. */
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
 * entropy, largest, effective keys; 8 greatest keys, 8 classes, distance, too; all of qkv/stats.h
 */
bool bench_rows_spread(struct bench *bench);
bool bench_rows_keys(struct bench *bench);
bool bench_rows_all(struct bench *bench);

/* received; and all that belongs to keys, diagonals, 64 x 64 tiles */
bool bench_columns_received(struct bench *bench);
bool bench_columns_all(struct bench *bench);

/* Uniform in [0, 2^24), from a linear congruence: speed does not depend on the values. */
uint32_t bench_random(uint32_t *state);

/*
 * What a case came to: of our own, or read from a file, whose names are its own (`name` lives as
 * long as the results).
 */
struct bench_result {
    const char *name;
    double seconds, spread; /* of a call: median; quartiles' distance over the median */
    double gflops, gbytes;  /* per second; gbytes of what must be read and written */
    double peak,
        share;         /* the best of the suite's rounds (0: unknown), and the part of it reached */
    double low_peak;   /* lower quartile of the peaks beside the case's rounds */
    double peak_bytes; /* that PEAK_READ reads from a cache; 0: from memory */
    bool busy;         /* the machine: rounds differ much, or did not run all the time */
    double workspace_bytes,
        memory_bytes; /* the queried, and what the process grew by; -1: unknown */
    enum peak_kind peak_of;
    const char *kernel, *arithmetic; /* as the library explains it */
};

/* From the least to the greatest. */
void bench_sort(double *values, int n);

/*
 * Seconds of a call by the clock that counts and by the wall, and the peak beside it (0: unknown).
 */
struct bench_round {
    double seconds, wall, peak;
};

/*
 * Of n rounds, from 1 to BENCH_MOST_ROUNDS: sets seconds, spread, low_peak and busy, and raises
 * peak to the best of them.
 */
void bench_summarise(int n, const struct bench_round *rounds, struct bench_result *result);

/*
 * All results of a suite, which know their speed: the peak of each becomes the best of those that
 * are of the same, and gives the share. A case with less than that beside its rounds is busy.
 */
void bench_share_peaks(int n, struct bench_result *results);

/*
 * Measures: a first call for memory and warmth, then rounds of as many calls as take a while, each
 * round beside the peak; the share is not yet known. QKV_ERR_CANCELLED if the user interrupts.
 */
qkv_status bench_measure(struct bench *bench, const struct bench_case *c, int rounds,
                         struct bench_result *result);

/*
 * The parts of it: one call; operations of a call; which path it takes (of two passes, the backward
 * one); what bounds that: decode reads K and V, everything else multiplies in its class.
 */
qkv_status bench_call_once(struct bench *bench);
double bench_operations(const struct bench *bench);
qkv_status bench_explain(const struct bench *bench, qkv_attention_plan *plan);
enum peak_kind bench_peak_of(const qkv_attention_plan *plan);

/*
 * Resident memory of this process in bytes: now, and the most since bench_memory_mark. -1: unknown.
 */
double bench_memory_mark(void);
double bench_memory_peak(void);

void bench_print_head(const qkv_ctx *ctx, int rounds);
void bench_print(const struct bench_result *result);
/* What the mark of a busy result means, if one of them is. */
void bench_print_busy(bool busy);
json_t *bench_json(const qkv_ctx *ctx, int rounds, int n, const struct bench_result *results);

/* A file of results. */
struct bench_file {
    json_t *json; /* owns the names */
    const char *isa;
    int64_t threads;
    int n;
    struct bench_result *results;
};

/* Each returns an exit code, having said what is wrong. Free it only if it could be read. */
int bench_file_read(const char *path, struct bench_file *file);
void bench_file_free(struct bench_file *file);

/*
 * Prints old beside new. *slowest becomes the smallest ratio new / old: of shares of the peak, or
 * of speeds where a peak is unknown.
 */
int bench_compare(const struct bench_file *before, const char *isa, int64_t threads, int n,
                  const struct bench_result *now, double *slowest);

#endif
