/*
 * AdamW (Loshchilov and Hutter 2019, algorithm 2) over any number of arrays, after clipping by the
 * global norm of the gradient:
 *
 *     g *= min(1, clip / |g|)
 *     m = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) g²
 *     p = p (1 - rate decay) - rate m/(1 - beta1^t) / (sqrt(v/(1 - beta2^t)) + eps)
 *
 * Work is cut into chunks, which depend only on the sizes of the arrays, and |g|² is the sum of the
 * sums of chunks, in their order: the bits do not depend on threads.
 */
#ifndef QKVI_LAYER_ADAMW_H
#define QKVI_LAYER_ADAMW_H

#include "qkv/qkv.h"

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

enum { QKVI_ADAMW_MAX_CHUNKS = 1 << 24 };

typedef struct qkvi_adamw_arrays {
    const float *grads;
    float *params, *m, *v;
} qkvi_adamw_arrays;

/* Elements offset … offset + n - 1 of arrays number `arrays`. */
typedef struct qkvi_adamw_chunk {
    int64_t arrays;
    size_t offset, n;
    int decays;
} qkvi_adamw_chunk;

typedef struct qkvi_adamw {
    double beta1, beta2, eps, weight_decay, clip; /* clip 0: no clipping */
    qkvi_adamw_chunk *chunks;
    int n_chunks;
    float *partial; /* [n_chunks] */
    /*
     * own_end > 0: a step changes only the elements own_begin … own_end - 1, and m and v begin with
     * element own_begin.
     */
    size_t own_begin, own_end;
} qkvi_adamw;

/* An upper bound of the chunks of n elements. */
size_t qkvi_adamw_chunks(size_t n);

/* Appends the chunks of n elements, for which there must be room. */
void qkvi_adamw_add(qkvi_adamw *adamw, int64_t arrays, size_t offset, size_t n, int decays);

/*
 * Makes step t = 1, 2, … Returns the norm of the gradients before clipping; if it is not finite,
 * nothing is changed.
 */
double qkvi_adamw_update(qkv_ctx *ctx, const qkvi_adamw *adamw, int64_t t, double rate,
                         const qkvi_adamw_arrays *arrays);

#pragma GCC visibility pop

/* base^n by squaring: the same bits everywhere, unlike pow. n >= 0. */
double qkvi_adamw_power(double base, int64_t n);

#endif
