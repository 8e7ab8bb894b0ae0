/*
 * Keys and values of a decode case in memory: contiguous, in pages, or in a ring, in any type. Rows
 * that no query sees, gaps, and entries of page tables that must not be read have NaN or invalid
 * numbers. The oracle gets the same keys and values as doubles.
 */
#ifndef QKV_TESTS_STORED_H
#define QKV_TESTS_STORED_H

#include "check/cases.h"
#include "qkv/kv.h"

enum layout_kind { LAYOUT_CONTIGUOUS, LAYOUT_PAGES, LAYOUT_RING, LAYOUT_PAGED_RING, LAYOUTS };

typedef struct kv_stored {
    qkv_kv_view view;
    guarded k, v, pages, first, k_scale, v_scale;
    double *k_dense, *v_dense; /* [n_batch][n_kv_heads][len_k][channels] */
} kv_stored;

/*
 * Random values. With a ring, or with `first`, queries must not see keys that are not stored:
 * stored_limits changes the case so, before its arrays are made.
 */
void stored_limits(rng *r, check_case *c, int layout, int64_t *ring_len);
kv_stored stored_new(rng *r, const check_case *c, elem_type type, int layout, int64_t ring_len);
/* A contiguous copy of the same tokens. */
kv_stored stored_contiguous(const check_case *c, const kv_stored *like);
void stored_free(kv_stored *s);

#endif
