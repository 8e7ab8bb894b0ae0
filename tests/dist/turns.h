/* What tests of ranks leave out under sanitizers, so that each kind of case is still there. */
#ifndef QKV_TESTS_TURNS_H
#define QKV_TESTS_TURNS_H

#include "attention/every_isa.h"
#include "dist/pieces.h"
#include "sanitizers.h"

/* One instruction set takes each turn: all have the same bits, which other tests compare. */
static inline bool my_turn(int turn) {
    int n = 0;
    while (qkv_isa_name(n)) n++;
    return turn % n == isa_at;
}

/*
 * Of the n-th pair of features: under sanitizers each pair has every fourth type, each type every
 * fourth pair.
 */
static inline bool takes_pair(int n, int column) {
    return !UNDER_SANITIZER || (n + column) % 4 == 0;
}

/* Of the n-th of PAIRS x COLUMNS. n_cases: how many before it may lie in pieces. */
static inline bool takes_pieces(int n, int *n_cases) {
    return has_pieces(n) && takes_pair(n / COLUMNS, n % COLUMNS) && my_turn((*n_cases)++);
}

/*
 * Under sanitizers each number of ranks has one case of n_cases, each case some numbers of ranks.
 */
static inline bool takes_size(int n, int n_cases, int size) {
    return !UNDER_SANITIZER || size % n_cases == n;
}

/* Threads or processes: of each number of ranks both, but under sanitizers one of them. */
static inline bool takes_threads(int size) { return !UNDER_SANITIZER || UNDER_TSAN || size % 2; }
static inline bool takes_processes(int size) {
    return !UNDER_TSAN && (!UNDER_SANITIZER || size % 2 == 0);
}

#endif
