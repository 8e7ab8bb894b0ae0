/* What tests of ranks leave out under sanitizers, such that each kind of case still runs. */
#ifndef QKV_TESTS_TURNS_H
#define QKV_TESTS_TURNS_H

#include "attn/every_isa.h"
#include "dist/pieces.h"
#include "sanitizers.h"

/* Turns rotate over instruction sets, since all have the same bits, which other tests compare. */
static inline bool my_turn(int turn) {
    int n = 0;
    while (qkv_isa_name(n)) n++;
    return turn % n == isa_at;
}

/*
 * Is column `column` run for the n-th pair of features? Under sanitizers each pair runs in every
 * fourth column, and each column with every fourth pair.
 */
static inline bool takes_pair(int n, int column) {
    return !UNDER_SANITIZER || (n + column) % 4 == 0;
}

/* Is the n-th of PAIRS x COLUMNS run? *n_cases counts those before it that can be in pieces. */
static inline bool takes_pieces(int n, int *n_cases) {
    return has_pieces(n) && takes_pair(n / COLUMNS, n % COLUMNS) && my_turn((*n_cases)++);
}

/* If the n-th of PAIRS x COLUMNS is run, makes a case of random sizes of it. */
static inline bool pair_case(int n, int *n_cases, rng *r, check_case *c) {
    if (!takes_pieces(n, n_cases)) return false;
    const recipe x =
        pair_recipe(pair_of(n / COLUMNS), n % COLUMNS, (int)rng_between(r, 0, PAIR_SIZES - 1), r);
    case_make_of(c, &x, rng_next(r));
    return true;
}

/* Dense arrays of heads of 24 channels, whose values have 40. */
typedef struct dense_sizes {
    int64_t len_q, len_k;
    uint32_t flags;
} dense_sizes;

static inline void case_of_sizes(check_case *c, const dense_sizes *sizes, int64_t n_batch,
                                 int64_t n_heads, int64_t n_kv_heads, bool at_end, rng *r) {
    qkv_attention_desc d;
    qkv_attention_desc_contiguous(&d, n_batch, n_heads, n_kv_heads, sizes->len_q, sizes->len_k, 24,
                                  40);
    d.flags |= sizes->flags;
    case_dense(c, &d, rng_next(r), at_end);
    case_seal(c);
}

/* Under sanitizers each number of ranks runs one of n_cases cases, and each case some numbers. */
static inline bool takes_size(int n, int n_cases, int size) {
    return !UNDER_SANITIZER || size % n_cases == n;
}

/* Are ranks threads, processes? For each number of ranks both; under sanitizers one of the two. */
static inline bool takes_threads(int size) { return !UNDER_SANITIZER || UNDER_TSAN || size % 2; }
static inline bool takes_processes(int size) {
    return !UNDER_TSAN && (!UNDER_SANITIZER || size % 2 == 0);
}

#endif
