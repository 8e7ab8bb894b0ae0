/*
 * Keys and values of a case as decode finds them: contiguous, in pages, or in a ring, in any type,
 * with rubbish in every row that no query sees, in every gap, and in entries of page tables that
 * must not be read. What lies there, as doubles, is what the oracle gets.
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
 * Random values; a ring or `first` need a case whose queries do not see what is not there:
 * stored_limits makes it so, before the case's arrays are made.
 */
void stored_limits(rng *r, check_case *c, int layout, int64_t *ring_len);
kv_stored stored_new(rng *r, const check_case *c, elem_type type, int layout, int64_t ring_len);
/* The same tokens, contiguous. */
kv_stored stored_contiguous(const check_case *c, const kv_stored *like);
void stored_free(kv_stored *s);

#endif
