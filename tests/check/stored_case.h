/*
 * Attention problems for decode: a few queries, and keys and values as in stored.h, made from a
 * seed or from a recipe and a seed.
 */
#ifndef QKV_TESTS_STORED_CASE_H
#define QKV_TESTS_STORED_CASE_H

#include "check/stored.h"

typedef struct stored_case {
    check_case c; /* without k and v */
    kv_stored kv;
    int layout;
} stored_case;

/* A random recipe, and a random type of keys and values. */
recipe stored_recipe(uint64_t seed, elem_type *stored);

void stored_case_make_of(stored_case *x, const recipe *y, elem_type stored, uint64_t seed);
void stored_case_free(stored_case *x);

#endif
