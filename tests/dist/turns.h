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
