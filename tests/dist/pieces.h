/* A case (check/cases.h) whose sequence is cut into pieces, one for each rank. */
#ifndef QKV_TESTS_PIECES_H
#define QKV_TESTS_PIECES_H

#include "check/check.h"
#include "check/pairs.h"
#include "dist/call.h"

enum { MOST_RANKS = 16 };

/* Where each rank's queries and keys begin; the last is where they end. */
typedef struct cuts {
    int size;
    int64_t q[MOST_RANKS + 1], k[MOST_RANKS + 1];
} cuts;

/* Is the n-th of PAIRS x COLUMNS a forward case whose sequence can be in pieces? */
static inline bool has_pieces(int n) {
    const pair p = pair_of(n / COLUMNS);
    const int column = n % COLUMNS;
    return pair_exists(p, column) && !check_columns[column].decode && p.a != FEATURE_VARLEN &&
           p.b != FEATURE_VARLEN;
}

/* Uneven pieces, some of them empty. */
cuts cuts_random(rng *r, int size, const qkv_attention_desc *d);
/* Pieces that are as even as possible. */
cuts cuts_even(int size, const qkv_attention_desc *d);

/* Descriptor and arrays of a rank. */
typedef struct piece {
    qkv_attention_desc d;
    qkvi_dist_arrays a;
} piece;

piece piece_of(const check_case *c, const outputs *x, const cuts *at, int rank);

/* Compares o and lse of a rank with those of one process; 0: the same bits. */
int piece_differs(const check_case *c, const outputs *x, const outputs *whole, const cuts *at,
                  int rank);

#endif
