/*
 * Attention problems: from a seed alone, or from a recipe and a seed, which decide shapes, strides,
 * options, values and where the guard pages lie. What no query may see is NaN, and so are the gaps
 * between rows.
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
    char text[512]; /* what the seed came to, for messages */
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
    /* Gradients have no bound: scores beyond 2^20, which lse in f32 cannot tell apart. */
    bool forward_only;
    /* Numbers have any size, those of an array a band of its own. The oracle is not asked. */
    bool any_size;
    size_band q_sizes, k_sizes, v_sizes;
} check_case;

void case_make(check_case *c, uint64_t seed);
void case_make_of(check_case *c, const recipe *x, uint64_t seed);

/*
 * Cases by hand: dense arrays of normal values in the shapes of d, each flush with a guard page at
 * its end or its beginning. Change values, options and strides of d that repeat, then seal: inputs
 * become read-only. d may point to a mask of the caller's.
 */
void case_dense(check_case *c, const qkv_attention_desc *d, uint64_t seed, bool at_end);
void case_seal(check_case *c);

void case_free(check_case *c);
/* The pointers, for the oracle; o and lse are not set. */
oracle_inputs case_inputs(const check_case *c);

/* ---- Between the files that make cases ------------------------------------------------------- */

/* Shape, packed sequences and strides; options of positions and numbers. */
void case_shape(rng *r, check_case *c, const recipe *x);
void case_strides(rng *r, check_case *c);
void case_options(rng *r, check_case *c, const recipe *x);
/* Explicit mask; segments, block mask; ALiBi, distance bias, sinks, dropout. */
void case_mask(rng *r, check_case *c, const recipe *x);
void case_modifiers(rng *r, check_case *c, const recipe *x);

/* One array of normal values. */
guarded case_array(rng *r, check_case *c, char which, const int64_t stride[3]);
/* Writes text. */
void case_describe(check_case *c, const recipe *x, const char *pattern);
/* Values; the name of their pattern. */
const char *case_values(rng *r, check_case *c);
/* Keys that no query sees and query rows that do not count become rubbish. */
void case_poison_hidden(rng *r, check_case *c);
/* One row of one array becomes rubbish that some may see and others may not. */
void case_poison_one(rng *r, check_case *c);

/* With any_size: bands for arrays that are yet to be filled; then every number there is. */
void case_choose_sizes(rng *r, check_case *c, const recipe *x);
void case_resize(rng *r, check_case *c);
/* The numbers of an array of a type, but for infinities and NaN. */
void case_resize_array(rng *r, const guarded *g, elem_type type, const size_band *s);

#endif
