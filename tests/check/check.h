/*
 * The check of kernels, as qkv-check and `qkv check` run it: does the library, on this machine,
 * compute what it promises?
 *
 * Random problems are run on the scalar build and compared with a double oracle, within the bounds
 * of docs/numerics.md; then on every instruction set, with random numbers of threads and
 * floating-point modes, and compared with the scalar build bit by bit. Arrays end or begin at a
 * page without access, and gaps between rows hold canaries. The parts of every kernel table are
 * compared in the same way. Each case runs in a child process, so that a crash is a failure like
 * any other.
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
 * Of kernel tables; random forward and backward calls; of decode; calls with every pair of
 * features.
 */
enum { CHECK_PARTS, CHECK_WHOLE, CHECK_DECODE, CHECK_PAIRS, CHECK_KINDS };
extern const char *const check_kind_names[CHECK_KINDS];

enum { CHECK_MAX_ISAS = 8 };

typedef struct check_options {
    int n_cases;     /* of parts, whole calls and decode */
    int n_pairs;     /* of each pair, in each column: so many sizes */
    uint64_t seed;   /* of the first case; the others follow from it */
    bool one;        /* that one case only, in this process */
    int kind;        /* with one: its kind */
    const char *isa; /* NULL: all that are usable here */
    FILE *failures;  /* where each failure is told at once; nullable */
    void (*progress)(void *user, int64_t done, int64_t total); /* nullable */
    void *user;
} check_options;

/* What was compared in one column, for one pair. */
typedef struct check_cell {
    int n_cases, n_failed;
    int64_t numbers; /* with the oracle */
    double share;    /* the largest of any bound */
} check_cell;

typedef struct check_summary {
    const char *isas[CHECK_MAX_ISAS]; /* that ran, "scalar" first */
    int n_isas;
    int n_cases[CHECK_KINDS], n_failed[CHECK_KINDS];
    double fraction[BOUNDS]; /* the largest share of each bound that was used */
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
    double fraction[BOUNDS];      /* the largest share of each bound that was used */
    int64_t compared, mismatches; /* arrays, bit by bit */
    int64_t numbers;              /* compared with the oracle */
    uint64_t digest;              /* of the results of scalar code */
} check_report;

__attribute__((format(printf, 2, 3))) void check_failed(check_report *report, const char *format,
                                                        ...);

/*
 * Forward and backward of one case: the scalar build against the oracle, every instruction set with
 * random numbers of threads and floating-point modes against the scalar build. seed decides these.
 */
void check_case_everywhere(const check_options *options, const check_case *c, uint64_t seed,
                           check_report *report);
/* The same of decode. */
void check_decode_everywhere(const check_options *options, const stored_case *x, uint64_t seed,
                             check_report *report);

void check_whole(const check_options *options, uint64_t seed, check_report *report);
void check_parts(const check_options *options, uint64_t seed, check_report *report);
void check_decode(const check_options *options, uint64_t seed, check_report *report);
void check_whole_of(const check_options *options, const recipe *x, uint64_t seed,
                    check_report *report);
void check_decode_of(const check_options *options, const recipe *x, elem_type stored, uint64_t seed,
                     check_report *report);

/* Of a pair: the seed of the run, and which pair, type and size. */
uint64_t pair_seed(uint64_t run, int n);
uint64_t pair_run(uint64_t seed);
void check_pair(const check_options *options, uint64_t seed, check_report *report);

/* The instruction sets to check, "scalar" first. Returns how many. */
int check_isas(const check_options *options, const char *isas[CHECK_MAX_ISAS]);

typedef struct check_setup {
    const char *isa;
    int n_threads;
    uint64_t modes; /* of the host, during the calls */
} check_setup;

/* NULL, and a failure, if there is none. */
qkv_ctx *check_context(const check_setup *s, check_report *report);
/* QKV_OK, and the host's state as it was? */
bool check_status(qkv_status status, const char *call, const check_setup *s, const qkv_ctx *ctx,
                  check_report *report);
/* x of this setup against y of scalar code. */
void compare_bits(const check_case *c, const outputs *x, const outputs *y, const check_setup *s,
                  check_report *report);
/* Forward and backward; false, with nothing to free, if one of them failed. */
bool check_call(const check_case *c, const check_setup *s, outputs *x, check_report *report);
/* One of the batches in a call of its own: the same bits as in `all`. */
void check_alone(const check_case *c, const check_setup *s, const outputs *all, rng *r,
                 check_report *report);

/*
 * The case with some of its queries, from *first on; false: it cannot be written down. Then what a
 * call of it gave, o, lse and d_q, against their rows in `all`.
 */
bool case_of_queries(const check_case *c, rng *r, int64_t *first, check_case *some);
void compare_queries(const check_case *c, const outputs *all, int64_t first, const check_case *some,
                     const outputs *x, check_report *report);
/* Forward and backward of such a case: the same bits. */
void check_queries(const check_case *c, const check_setup *s, const outputs *all, rng *r,
                   check_report *report);
/* n elements of the n-th output from elements on; `where` says of what the first are. */
void compare_elements(const check_case *c, int output, const outputs *x, int64_t at_x,
                      const outputs *y, int64_t at_y, int64_t size, const char *where,
                      check_report *report);

/* Within the bounds? The results of scalar code, against the oracle. */
void compare_forward(const check_case *c, const outputs *x, check_report *report);
void compare_backward(const check_case *c, const outputs *x, check_report *report);

/* Results of scalar code join the digest of a case, and that another digest. */
void digest_add(check_report *report, elem_type type, const void *data, size_t n);
void digest_outputs(check_report *report, const check_case *c, const outputs *x);
uint64_t digest_joined(uint64_t digest, uint64_t other);

/* What a backward call gets, with the arrays and strides of the case. */
qkv_attention_grads outputs_grads(const check_case *c, const outputs *x);
/* Adds to the message of a failure what the case was. */
void check_tell_case(check_report *report, const check_case *c);

/* The same bits, where any NaN equals any NaN. Returns -1, or the index of the first difference. */
int64_t first_difference(const float *x, const float *y, size_t n);
int64_t first_difference_of(elem_type type, const void *x, const void *y, size_t n);

#endif
