/**
 * Collects the arrays of a call with their shapes into a list (arrays.h), and normalises strides.
 * problem.c does both for each kind of call.
 */
#ifndef QKVI_ATTN_CALL_ARRAYS_H
#define QKVI_ATTN_CALL_ARRAYS_H

#include "attn/arrays.h"
#include "attn/desc.h"

/** The shapes of a problem, as every array has them. */
typedef struct qkvi_shapes {
    int64_t q[4], k[4], v[4], o[4], lse[4];
} qkvi_shapes;

qkvi_shapes qkvi_shapes_of(const qkvi_problem *p);

/** An array of dtype or o_dtype, whose last stride is 1. */
void qkvi_add_typed(qkvi_arrays *all, const char *name, const void *data, qkv_dtype type,
                    const int64_t size[4], const int64_t stride[3], bool output);

/** One number per head, if data is not NULL. */
void qkvi_add_heads(qkvi_arrays *all, const char *name, const float *data, int64_t n, bool output);

/**
 * Lengths, segments, mask and what else belongs to the rules. all_q: queries of the lists of
 * blocks, which are those of the sequence where the other arrays have a piece of it.
 */
void qkvi_add_rules(qkvi_arrays *all, const qkvi_problem *p, int64_t all_q);

/** What every call but decode reads: q, k, v and the rules. */
void qkvi_add_inputs(qkvi_arrays *all, const qkvi_problem *p);

/** The caller's workspace, if he brought one. call is nullable. */
QKV_NODISCARD qkv_status qkvi_add_workspace(qkvi_arrays *all, const qkv_call_options *call,
                                            qkv_error *error);

/**
 * Sets strides that are never used to 0: those of dimensions of size 1, and all of an empty array.
 * Callers may leave any value there, with which addresses past the end of a dimension could wrap.
 * An empty array may be NULL; with zero strides, every address in it is the pointer itself.
 */
void qkvi_rest(const int64_t size[4], int64_t *stride, int n_strides);

/** The same for all arrays of a problem but its gradients. */
void qkvi_rest_strides(qkvi_problem *p);

#endif
