/*
 * Every pair of features, and each alone: forward and backward in every type, and decode from keys
 * and values of every type, in sizes that cross the edges of blocks and tiles.
 *
 * Case n of a run is one pair, one column and one size; with its run's seed it makes the whole
 * problem. Some pairs cannot be written down, by name: docs/numerics.md says why.
 */
#ifndef QKV_TESTS_PAIRS_H
#define QKV_TESTS_PAIRS_H

#include "check/recipe.h"

enum { PAIRS = FEATURE_PAIRED * (FEATURE_PAIRED + 1) / 2, PAIR_SIZES = 12, COLUMNS = 11 };

/* What the table has a column for. */
typedef struct pair_column {
    const char *name;
    int type;         /* of check_types */
    bool decode;      /* otherwise forward and backward */
    elem_type stored; /* decode: of keys and values */
    bool exists;      /* in the library */
} pair_column;

extern const pair_column check_columns[COLUMNS];

typedef struct pair {
    feature a, b; /* a <= b; the same: that feature alone */
} pair;

pair pair_of(int index);
/* Why such a pair cannot be written, or NULL. */
const char *pair_refusal(pair p);
/* Is it a case? Decode has no dropout and no packed sequences. */
bool pair_exists(pair p, int column);

/* Sizes are taken in turn; seed decides where a run begins, and the rest. */
recipe pair_recipe(pair p, int column, int size, rng *r);

#endif
