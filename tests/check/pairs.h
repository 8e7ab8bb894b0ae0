/*
 * Cases with every pair of features, and with each feature alone: forward and backward in every
 * type, and decode from keys and values of every type, in sizes that cross edges of blocks and
 * tiles.
 *
 * Case n of a run is one pair, one column and one size; with the seed of the run it determines the
 * whole problem. Some pairs are refused by the library: docs/numerics.md says why.
 */
#ifndef QKV_TESTS_PAIRS_H
#define QKV_TESTS_PAIRS_H

#include "check/recipe.h"

enum { PAIRS = FEATURE_PAIRED * (FEATURE_PAIRED + 1) / 2, PAIR_SIZES = 12, COLUMNS = 11 };

/* A column of the table of results. */
typedef struct pair_column {
    const char *name;
    int type;         /* of check_types */
    bool decode;      /* else forward and backward */
    elem_type stored; /* decode: the type of keys and values */
    bool exists;      /* in the library */
} pair_column;

extern const pair_column check_columns[COLUMNS];

typedef struct pair {
    feature a, b; /* a <= b; a == b: that feature alone */
} pair;

pair pair_of(int index);
/* Why the library refuses a pair, or NULL. */
const char *pair_refusal(pair p);
/* Is it a case? Decode has no dropout and no packed sequences. */
bool pair_exists(pair p, int column);

/* The recipe of a pair, with its size'th shape; all else is random. */
recipe pair_recipe(pair p, int column, int size, rng *r);

#endif
