/**
 * What the public descriptor means, checked once. Everything below this line works on a
 * qkvi_problem and checks nothing again: sizes are in range and their products fit, every array it
 * reads or writes lies in the address space, is aligned to its element, and outputs overlap
 * nothing. Defaults are filled in and flags are gone. An array without elements may be NULL and has
 * strides of 0, so that addresses in it can be computed like any other.
 *
 * Checks come in this order, and the first failure is the one reported: struct_size, flags, dtype,
 * sizes, numbers, the workspace's size, then array by array strides, NULL, alignment, and last
 * overlap, also with the caller's workspace. No output is
 * touched before all of them have passed.
 */
#ifndef QKVI_ATTN_DESC_H
#define QKVI_ATTN_DESC_H

#include <stdbool.h>

#include "core/half.h"
#include "qkv/qkv.h"

#define QKVI_MAX_HEAD_DIM ((int64_t)65536)
#define QKVI_MAX_SIZE     ((int64_t)1 << 48) /* of any other dimension, and of |q_offset| */
#define QKVI_NO_WINDOW    ((int64_t)1 << 50) /* position +- this leaves [0, len_k] on both sides */
#define QKVI_MAX_ROWS                                                                              \
    ((int64_t)1 << 60) /* n_batch * n_heads * len_q, n_batch * n_kv_heads * len_k */

/** One attention problem. Strides are in elements: batch, head, token (mask: and key). */
typedef struct qkvi_problem {
    int64_t n_batch, n_heads, n_kv_heads, len_q, len_k, head_dim, head_dim_v;
    int64_t heads_per_kv; /* n_heads / n_kv_heads; 0 without heads */
    const int64_t *cu_q,
        *cu_k; /* packed sequences: sequence.h; both NULL: every batch has len_q, len_k */
    int64_t q_stride[3], k_stride[3], v_stride[3], o_stride[3], lse_stride[3];
    /*
     * Of a piece of a longer sequence, otherwise 0: query 0 of the arrays is query first_q of the
     * sequence, and key 0 of k and v is key first_k of it. len_q is the piece's. Rules, offsets and
     * numbers of keys, and so len_k, are those of the sequence.
     */
    int64_t first_q, first_k;
    /*
     * Of some of the all_heads query heads, as if there were no others, otherwise 0: head n is head
     * head_first + n head_step, by which dropout knows it.
     */
    int64_t all_heads, head_step, head_first;
    qkv_dtype dtype, o_dtype; /* of q, k, v; of o */
    qkv_class arithmetic;
    bool grads_dp;         /* gradients are of class dp: qkvi_problem_choose_gradients (piece.h) */
    const void *q, *k, *v; /* of workspace queries: NULL, like o and lse */
    void *o;               /* backward: read only */
    float *lse;            /* nullable in forward; backward: read only */

    float scale;
    bool has_softcap;
    float softcap;

    /*
     * Who sees whom by position: see mask.h. Query i stands at position i + offset; keys are the
     * first min(len_k, kv_len, mask length). An unbounded side of the window is QKVI_NO_WINDOW.
     */
    int64_t window_left, window_right;
    bool causal;
    const int64_t *prefix_len; /* nullable, n_batch entries in range */
    int64_t chunk;             /* 0: none */
    int64_t q_offset;
    const int64_t *q_offsets, *kv_len, *q_len; /* nullable, n_batch entries in range */

    qkv_mask_type mask_type; /* QKV_MASK_NONE: the five fields below are zero */
    const void *mask;
    int64_t mask_stride[4]; /* a last dimension of 1 has become stride 0 */
    int64_t mask_len_k;     /* keys at or beyond it are hidden; len_k without a mask */
    bool mask_repeats;      /* its last dimension is 1, and stands for all keys */

    int64_t block_len; /* of the block mask: blocks.h; 0: none, the three fields below are zero */
    const int64_t *block_offsets;
    int64_t block_offsets_stride[2];
    const int32_t *block_index;

    const int32_t *seg_q, *seg_k; /* both NULL: no segments */
    int64_t seg_q_stride, seg_k_stride;
    const float *alibi_slopes, *sinks; /* nullable, n_heads entries */

    const float *distance_bias; /* nullable; element distance_before is that of distance 0 */
    int64_t distance_bias_stride, distance_before, distance_after;

    bool has_dropout;      /* some weight may be dropped: dropout.h */
    float dropout;         /* share */
    uint32_t dropout_last; /* the greatest word that drops its weight */
    uint64_t dropout_seed;

    bool has_stats;
    qkv_attention_stats stats; /* checked; what is not asked for is NULL, and its number 0 */
} qkvi_problem;

/** Elements of a head's row of the distance bias. */
static inline int64_t qkvi_distances(const qkvi_problem *p) {
    return p->distance_before + 1 + p->distance_after;
}

/** Is there an additive mask? */
static inline bool qkvi_adds(const qkvi_problem *p) {
    return p->mask_type == QKV_MASK_F32 || p->mask_type == QKV_MASK_BF16 ||
           p->mask_type == QKV_MASK_F16;
}

/** The type of an additive mask. */
static inline qkv_dtype qkvi_adds_type(const qkvi_problem *p) {
    return p->mask_type == QKV_MASK_BF16  ? QKV_BF16
           : p->mask_type == QKV_MASK_F16 ? QKV_F16
                                          : QKV_F32;
}

/** Bytes of an element of the explicit mask. */
static inline int64_t qkvi_mask_bytes(const qkvi_problem *p) {
    return qkvi_adds(p) ? qkvi_dtype_bytes(qkvi_adds_type(p)) : 1;
}

/** The gradients of a backward call, with the strides of qkvi_problem's arrays. */
typedef struct qkvi_grads {
    const void *d_o;    /* of o_dtype */
    const float *d_lse; /* nullable, lse_stride */
    const float *delta; /* NULL: of o, d_o and d_lse */
    int64_t delta_stride[3];
    void *d_q, *d_k, *d_v;                           /* of dtype */
    float *d_sinks;                                  /* nullable */
    float *d_mask;                                   /* nullable */
    int64_t d_mask_size[4], d_mask_stride[4];        /* the mask's shape; 1 where it is summed */
    float *d_distance_bias;                          /* nullable */
    int64_t d_distance_rows, d_distance_bias_stride; /* rows: n_heads, or 1 for the sum of all */
    int64_t d_o_stride[3], d_q_stride[3], d_k_stride[3], d_v_stride[3];
} qkvi_grads;

/**
 * The address of element `at` of x, or NULL if x is NULL (NULL + 0 is undefined in C). It casts
 * const away so that one function serves inputs and outputs: write only to outputs.
 */
static inline void *qkvi_elem(const void *x, qkv_dtype type, int64_t at) {
    if (!x) return NULL;
    return (char *)(uintptr_t)x + at * qkvi_dtype_bytes(type);
}

#endif
