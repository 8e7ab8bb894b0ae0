/*
 * Attention problems for decode: a few queries over keys and values that are stored contiguous, in
 * pages, or in a ring, in any type (stored.h), from a seed alone or from a recipe and a seed.
 */
#ifndef QKV_TESTS_STORED_CASE_H
#define QKV_TESTS_STORED_CASE_H

#include "check/stored.h"

typedef struct stored_case {
    check_case c; /* without k and v */
    kv_stored kv;
    int layout;
} stored_case;

/* Random: what queries are like, and of which type what is stored. */
recipe stored_recipe(uint64_t seed, elem_type *stored);

void stored_case_make_of(stored_case *x, const recipe *y, elem_type stored, uint64_t seed);
void stored_case_free(stored_case *x);

#endif
