/*
 * The check of kernels, as qkv-check and `qkv check` run it: does the library, on this machine,
 * compute what it promises?
 *
 * Random problems are run on the scalar build and compared with a double oracle, within the bounds
 * of docs/numerics.md; then on every instruction set, with random numbers of threads and
 * floating-point modes, and compared with the scalar build bit by bit. Arrays end or begin at a
 * page without access, and gaps between rows have canaries. The parts of every kernel table are
 * compared in the same way. Each case runs in a child process, so that a crash is a failure, too.
 */
#ifndef QKV_TESTS_CHECK_H
#define QKV_TESTS_CHECK_H

#include <stdio.h>

#include "check/outputs.h"
#include "check/pairs.h"
#include "check/stored_case.h"

/* In the order of the arrays of outputs. */
enum {
    BOUND_O,
    BOUND_LSE,
    BOUND_D_Q,
    BOUND_D_K,
    BOUND_D_V,
    BOUND_D_SINKS,
    BOUND_D_MASK,
    BOUND_D_DISTANCE,
    BOUNDS
};
extern const char *const check_bound_names[BOUNDS];

/*
 * Kinds of cases: parts of kernel tables; random forward and backward calls; random decode calls;
 * calls with every pair of features.
 */
enum { CHECK_PARTS, CHECK_WHOLE, CHECK_DECODE, CHECK_PAIRS, CHECK_KINDS };
extern const char *const check_kind_names[CHECK_KINDS];

enum { CHECK_MAX_ISAS = 8 };

typedef struct check_options {
    int n_cases;     /* cases of each of the kinds PARTS, WHOLE and DECODE */
    int n_pairs;     /* sizes of each pair in each column */
    uint64_t seed;   /* of the first case, which determines the others */
    bool one;        /* only the case with this seed, in this process */
    int kind;        /* with `one`: its kind */
    const char *isa; /* NULL: all that are usable here */
    FILE *failures;  /* each failure is printed there at once; nullable */
    void (*progress)(void *user, int64_t done, int64_t total); /* nullable */
    void *user;
} check_options;

/* The results of one pair in one column. */
typedef struct check_cell {
    int n_cases, n_failed;
    int64_t numbers; /* numbers compared with the oracle */
    double share;    /* the largest error, as a share of its bound */
} check_cell;

typedef struct check_summary {
    const char *isas[CHECK_MAX_ISAS]; /* that ran, "scalar" first */
    int n_isas;
    int n_cases[CHECK_KINDS], n_failed[CHECK_KINDS];
    double fraction[BOUNDS]; /* the largest error of each kind, as a share of its bound */
    /* Arrays that were compared bit by bit with those of scalar code, and those that differed. */
    int64_t compared, mismatches;
    uint64_t digest; /* of the results of scalar code: the same on every processor */
    check_cell pairs[PAIRS][COLUMNS];
    int first_kind; /* of the first failure, if there is one */
    uint64_t first_seed;
    char first_message[1024];
} check_summary;

/* Returns the number of failures. */
int check_run(const check_options *options, check_summary *summary);
int check_failures(const check_summary *summary);
/* Instruction sets, counts and shares, a line each. */
void check_print(const check_summary *summary, FILE *out);
/* Every pair on a line: for each type the numbers that were compared and the largest share. */
void check_print_pairs(const check_summary *summary, FILE *out);
/* All pairs of a column; n_cases counts pairs. */
check_cell check_pairs_of(const check_summary *summary, int column);

/* ---- Between the files of qkv-check ---------------------------------------------------------- */

/* What a child tells its parent, in shared memory. */
typedef struct check_report {
    int failures;
    char message[1024];           /* of the first failure */
    double fraction[BOUNDS];      /* as in check_summary */
    int64_t compared, mismatches; /* as in check_summary */
    int64_t numbers;              /* compared with the oracle */
    uint64_t digest;              /* of the results of scalar code */
} check_report;

__attribute__((format(printf, 2, 3))) void check_failed(check_report *report, const char *format,
                                                        ...);

/*
 * Checks forward and backward of one case: the scalar build against the oracle, and every
 * instruction set against the scalar build, with numbers of threads and floating-point modes from
 * seed.
 */
void check_case_everywhere(const check_options *options, const check_case *c, uint64_t seed,
                           check_report *report);
/* The same for decode. */
void check_decode_everywhere(const check_options *options, const stored_case *x, uint64_t seed,
                             check_report *report);

void check_whole(const check_options *options, uint64_t seed, check_report *report);
void check_parts(const check_options *options, uint64_t seed, check_report *report);
void check_decode(const check_options *options, uint64_t seed, check_report *report);
void check_whole_of(const check_options *options, const recipe *x, uint64_t seed,
                    check_report *report);
void check_decode_of(const check_options *options, const recipe *x, elem_type stored, uint64_t seed,
                     check_report *report);

/* The seed of case n of a run (pairs.h); and the seed of its run. */
uint64_t pair_seed(uint64_t run, int n);
uint64_t pair_run(uint64_t seed);
void check_pair(const check_options *options, uint64_t seed, check_report *report);

/* The instruction sets to check, "scalar" first. Returns their number. */
int check_isas(const check_options *options, const char *isas[CHECK_MAX_ISAS]);

typedef struct check_setup {
    const char *isa;
    int n_threads;
    uint64_t modes; /* of the host, during the calls */
} check_setup;

/* Makes a context; NULL, and a failure in the report, if there is none. */
qkv_ctx *check_context(const check_setup *s, check_report *report);
/* Checks that a call returned QKV_OK, and that the state of the processor is as it was. */
bool check_status(qkv_status status, const char *call, const check_setup *s, const qkv_ctx *ctx,
                  check_report *report);
/* Compares the bits of x, of this setup, with y of scalar code. */
void compare_bits(const check_case *c, const outputs *x, const outputs *y, const check_setup *s,
                  check_report *report);
/* Calls forward and backward; false, with nothing to free, if one of them failed. */
bool check_call(const check_case *c, const check_setup *s, outputs *x, check_report *report);
/* Checks that one of the batches, in a call of its own, has the same bits as in `all`. */
void check_alone(const check_case *c, const check_setup *s, const outputs *all, rng *r,
                 check_report *report);

/*
 * Makes a case of some of the queries, from *first on; false: no descriptor can express it. Then
 * compares o, lse and d_q of a call of it with their rows in `all`.
 */
bool case_of_queries(const check_case *c, rng *r, int64_t *first, check_case *some);
void compare_queries(const check_case *c, const outputs *all, int64_t first, const check_case *some,
                     const outputs *x, check_report *report);
/* Checks that forward and backward of such a case have the same bits as in `all`. */
void check_queries(const check_case *c, const check_setup *s, const outputs *all, rng *r,
                   check_report *report);
/* Compares `size` elements of an output from at_x and at_y on; `where` is for the message. */
void compare_elements(const check_case *c, int output, const outputs *x, int64_t at_x,
                      const outputs *y, int64_t at_y, int64_t size, const char *where,
                      check_report *report);

/* Check that results of scalar code are within the bounds around those of the oracle. */
void compare_forward(const check_case *c, const outputs *x, check_report *report);
void compare_backward(const check_case *c, const outputs *x, check_report *report);

/* Add results of scalar code to the digest of a case, and that to another digest. */
void digest_add(check_report *report, elem_type type, const void *data, size_t n);
void digest_outputs(check_report *report, const check_case *c, const outputs *x);
uint64_t digest_joined(uint64_t digest, uint64_t other);

/* The gradients of a backward call, with the arrays and strides of the case. */
qkv_attention_grads outputs_grads(const check_case *c, const outputs *x);
/* Adds a description of the case to the message of a failure. */
void check_tell_case(check_report *report, const check_case *c);

/* The index of the first difference in bits, -1: there is none. Any NaN equals any other. */
int64_t first_difference(const float *x, const float *y, size_t n);
int64_t first_difference_of(elem_type type, const void *x, const void *y, size_t n);

#endif
