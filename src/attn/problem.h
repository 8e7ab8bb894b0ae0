/**
 * From the arguments of a call to a qkvi_problem, and for those who only need a part of that: the
 * descriptor without arrays (desc.c), shapes, one batch.
 */
#ifndef QKVI_ATTN_PROBLEM_H
#define QKVI_ATTN_PROBLEM_H

#include "attn/desc.h"

/** The descriptor alone: sizes, numbers, lengths, defaults. Arrays are not looked at. */
QKV_NODISCARD qkv_status qkvi_problem_read(const qkv_attention_desc *desc, qkvi_problem *problem,
                                           qkv_error *error);

/** Shapes and rules only; pointers of the problem stay NULL. For workspace queries. */
QKV_NODISCARD qkv_status qkvi_problem_shape(const qkv_attention_desc *desc, bool writes_o,
                                            qkvi_problem *problem, qkv_error *error);

QKV_NODISCARD qkv_status qkvi_problem_forward(const qkv_attention_desc *desc, const void *q,
                                              const void *k, const void *v, void *o, float *lse,
                                              const qkv_call_options *call, qkvi_problem *problem,
                                              qkv_error *error);

QKV_NODISCARD qkv_status qkvi_problem_backward(const qkv_attention_desc *desc, const void *q,
                                               const void *k, const void *v, const void *o,
                                               const float *lse, const qkv_attention_grads *grads,
                                               const qkv_call_options *call, qkvi_problem *problem,
                                               qkvi_grads *out, qkv_error *error);

/**
 * The arrays of a backward call whose problem has been read. rows_k: keys that k and v have; all_q:
 * as call_arrays.h.
 */
typedef struct qkvi_backward_call {
    const void *q, *k, *v, *o;
    const float *lse;
    const qkv_attention_grads *grads;
    const qkv_call_options *call; /* nullable */
    int64_t rows_k, all_q;
} qkvi_backward_call;

QKV_NODISCARD qkv_status qkvi_problem_backward_of(const qkvi_backward_call *call,
                                                  qkvi_problem *problem, qkvi_grads *out,
                                                  qkv_error *error);

/** Only o and lse are arrays here; each may be that of one part, exactly. */
QKV_NODISCARD qkv_status qkvi_problem_merge(const qkv_attention_desc *desc, int n_parts,
                                            const void *const *o_parts,
                                            const float *const *lse_parts, void *o, float *lse,
                                            qkvi_problem *problem, qkv_error *error);

/** A caller's call options, nullable, as a struct of this version's size. */
QKV_NODISCARD qkv_status qkvi_call_read(const qkv_call_options *given, qkv_call_options *call,
                                        qkv_error *error);

/* ---- One batch, for those who go through its rows from outside ------------------------------- */

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

typedef struct qkvi_batch {
    int64_t n_queries; /* those that count: q_len */
    int64_t n_keys;
    int64_t offset; /* query i stands at key i + offset */
} qkvi_batch;

/* Checks the descriptor, but no array; desc is not NULL, b any number. */
QKV_NODISCARD qkv_status qkvi_batch_read(const qkv_attention_desc *desc, int64_t b,
                                         qkvi_batch *batch, qkv_error *error);

#pragma GCC visibility pop

#endif
