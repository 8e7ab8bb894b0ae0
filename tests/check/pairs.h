/*
 * Every pair of features, and each alone: forward and backward, in every type, in sizes that cross
 * the edges of blocks and tiles.
 *
 * Case n of a run is one pair, one type and one size; with its run's seed it makes the whole
 * problem. Some pairs cannot be written down, by name: docs/numerics.md says why.
 */
#ifndef QKV_TESTS_PAIRS_H
#define QKV_TESTS_PAIRS_H

#include "check/recipe.h"

enum { PAIRS = FEATURE_PAIRED * (FEATURE_PAIRED + 1) / 2, PAIR_SIZES = 12 };

typedef struct pair {
    feature a, b; /* a <= b; the same: that feature alone */
} pair;

pair pair_of(int index);
/* Why there is no such pair, or NULL. */
const char *pair_refusal(pair p);
/* Both features are in the library. */
bool pair_exists(pair p);

/* Sizes are taken in turn; seed decides where a run begins, and the rest. */
recipe pair_recipe(pair p, int type, int size, rng *r);

#endif
