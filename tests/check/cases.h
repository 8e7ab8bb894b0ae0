/*
 * Random attention problems: one 64-bit seed decides shapes, strides, options, values and where the
 * guard pages lie.
 */
#ifndef QKV_TESTS_CASES_H
#define QKV_TESTS_CASES_H

#include "check/guard.h"
#include "check/oracle.h"

/* splitmix64 */
typedef struct rng {
    uint64_t state;
} rng;

uint64_t rng_next(rng *r);
int64_t rng_between(rng *r, int64_t low, int64_t high); /* both included */
bool rng_chance(rng *r, int percent);
float rng_normal(rng *r); /* sum of uniforms: mean 0, variance 1, within +-6 */

enum { CASE_MAX_BATCH = 3 };

typedef struct check_case {
    uint64_t seed;
    char text[512]; /* what the seed came to, for messages */
    qkv_attention_desc d;
    int64_t d_o_stride[3], d_q_stride[3], d_k_stride[3], d_v_stride[3];
    /* Read-only; from d_lse on they may be absent (data NULL). */
    guarded q, k, v, d_o, d_lse, mask, seg_q, seg_k, slopes, sinks;
    int64_t q_offsets[CASE_MAX_BATCH], kv_len[CASE_MAX_BATCH], q_len[CASE_MAX_BATCH];
    int64_t prefix_len[CASE_MAX_BATCH];
    bool wants_lse, at_end;
    bool visible_nan; /* a value that some query sees is not finite */
    /* Gradients have no bound: scores beyond 2^20, which lse in f32 cannot tell apart. */
    bool forward_only;
} check_case;

void case_make(check_case *c, uint64_t seed);

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

/* A guarded array for an output of this shape and these strides; see output_intact. */
guarded output_new(const int64_t size[4], const int64_t stride[3], bool at_end);
/*
 * Is everything still a canary that is no element of a row that the call may write? rows[b] says
 * how many rows of batch b it may; NULL: all.
 */
bool output_intact(const guarded *g, const int64_t size[4], const int64_t stride[3],
                   const int64_t *rows);

/* The shape of an array of the case: 'q', 'k', 'v', 'o' or 'l' for lse. */
void case_shape(const qkv_attention_desc *d, char which, int64_t size[4]);

#endif
