/*
 * Attention problems, made from a seed, or from a recipe and a seed: these determine shapes,
 * strides, options, values and guard pages. Elements that no query may see, and gaps between rows,
 * are NaN.
 */
#ifndef QKV_TESTS_CASES_H
#define QKV_TESTS_CASES_H

#include "check/guard.h"
#include "check/layout.h"
#include "check/oracle.h"
#include "check/recipe.h"

enum { CASE_MAX_BATCH = 4 };

typedef struct check_case {
    uint64_t seed;
    char text[512]; /* a description, for messages */
    qkv_attention_desc d;
    int64_t d_o_stride[3], d_q_stride[3], d_k_stride[3], d_v_stride[3];
    int64_t d_mask_stride[4], d_distance_stride;
    /* Read-only; from d_lse on they may be absent (data NULL). */
    guarded q, k, v, d_o, d_lse, mask, seg_q, seg_k, slopes, distances, sinks;
    guarded cu_q, cu_k, block_offsets, block_index;
    int64_t q_offsets[CASE_MAX_BATCH], kv_len[CASE_MAX_BATCH], q_len[CASE_MAX_BATCH];
    int64_t prefix_len[CASE_MAX_BATCH];
    const double *k_dense, *v_dense; /* stored elsewhere: what the oracle gets; or NULL */
    bool whole;                      /* as whole numbers */
    bool wants_d_mask, wants_d_distance, at_end;
    bool visible_nan; /* a value that some query sees is not finite */
    /* Gradients have no bound: scores beyond 2^20, which f32 in lse cannot distinguish. */
    bool forward_only;
    /* Numbers have any magnitude, in a band for each array. Not compared with the oracle. */
    bool any_size;
    size_band q_sizes, k_sizes, v_sizes;
} check_case;

void case_make(check_case *c, uint64_t seed);
void case_make_of(check_case *c, const recipe *x, uint64_t seed);

/*
 * Cases by hand: dense arrays of normal values in the shapes of d, each adjacent to a guard page at
 * its end or its beginning. A test may then change values, options, and strides of d to 0;
 * case_seal makes inputs read-only. d may point to a mask of the caller.
 */
void case_dense(check_case *c, const qkv_attention_desc *d, uint64_t seed, bool at_end);
void case_seal(check_case *c);

void case_free(check_case *c);
/* The inputs of the oracle; o and lse are not set. */
oracle_inputs case_inputs(const check_case *c);

/* ---- Between the files that make cases ------------------------------------------------------- */

/* Draw shape and packed sequences; strides; options of position and numbers. */
void case_shape(rng *r, check_case *c, const recipe *x);
void case_strides(rng *r, check_case *c);
void case_options(rng *r, check_case *c, const recipe *x);
/* Explicit mask; segments, block mask; ALiBi, distance bias, sinks, dropout. */
void case_mask(rng *r, check_case *c, const recipe *x);
void case_modifiers(rng *r, check_case *c, const recipe *x);

/* Makes an array of normal values. */
guarded case_array(rng *r, check_case *c, char which, const int64_t stride[3]);
/* Sets c->text. */
void case_describe(check_case *c, const recipe *x, const char *pattern);
/* Fills arrays with values of a random pattern; returns its name. */
const char *case_values(rng *r, check_case *c);
/* Overwrites keys that no query sees, and query rows that do not count, with NaN and infinities. */
void case_poison_hidden(rng *r, check_case *c);
/* Overwrites one row of one array, which some queries may see, in the same way. */
void case_poison_one(rng *r, check_case *c);

/* With any_size: chooses bands before arrays are filled; then rescales all numbers to them. */
void case_choose_sizes(rng *r, check_case *c, const recipe *x);
void case_resize(rng *r, check_case *c);
/* Rescales the numbers of an array, except infinities and NaN. */
void case_resize_array(rng *r, const guarded *g, elem_type type, const size_band *s);

#endif
