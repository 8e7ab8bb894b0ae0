/*
 * Row kernels of the model's layers: part of every kernel table (table.h: `layer`), one body in
 * tmpl/layer.h.
 *
 * Their order of operations is in docs/numerics.md, section Layers: a sum along a row has 32
 * partial sums (index mod 32) and then the tree 16 + 16, 8, 4, 2, 1; a sum over rows is one chain
 * in row order. So bits do not depend on the instruction set. n >= 1 is any length; arrays are
 * dense, rows follow each other, pointers are aligned to a float. An output may be the very input
 * it is computed from where "in place" is said; otherwise nothing overlaps.
 */
#ifndef QKVI_KERNELS_LAYER_H
#define QKVI_KERNELS_LAYER_H

#include <stdint.h>

/* Activations of a feed-forward layer; x sigmoid(x) is also called swish. */
typedef enum qkvi_act {
    QKVI_GELU,       /* x/2 (1 + erf(x / √2)) */
    QKVI_GELU_TANH,  /* x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))) */
    QKVI_RELU,       /* max(0, x) */
    QKVI_SILU,       /* x / (1 + exp(-x)) */
    QKVI_QUICK_GELU, /* x / (1 + exp(-1.702 x)) */
    QKVI_TANH,
    QKVI_N_ACTS
} qkvi_act;

/*
 * One step of AdamW (Loshchilov and Hutter 2019); the caller computes in double what depends on the
 * step number t.
 */
typedef struct qkvi_adamw_step {
    float grad_scale; /* from clipping */
    float beta1, one_minus_beta1;
    float beta2, one_minus_beta2;
    float decay;      /* 1 - rate * weight_decay */
    float rate;       /* rate / (1 - beta1^t) */
    float root_scale; /* 1 / sqrt(1 - beta2^t) */
    float eps;
} qkvi_adamw_step;

struct qkvi_dropout; /* kernels/attend.h */

typedef struct qkvi_layer_kernels {
    /* y += x; y *= x */
    void (*add)(int64_t n, const float *x, float *y);
    void (*mul)(int64_t n, const float *x, float *y);
    /* y = (scale a + b) + c, the first sum rounded once; in place if wanted (y = a) */
    void (*add3)(int64_t n, float scale, const float *a, const float *b, const float *c, float *y);
    /* sum x; sum x² */
    float (*sum)(int64_t n, const float *x);
    float (*sum_squares)(int64_t n, const float *x);
    /*
     * y += scale ((x[i0] + x[i1]) + …), the last sum rounded once: rows of n, in the order of
     * index; index NULL: rows 0, 1, …
     */
    void (*sum_rows)(int64_t n_rows, const int32_t *index, int64_t n, float scale, const float *x,
                     float *y);
    /*
     * x becomes factor x where it is kept, and 0 elsewhere: elements of a row are keys, rows
     * queries, from query d->row and key 0 on
     */
    void (*dropout)(int64_t n_rows, int64_t n, const struct qkvi_dropout *d, float *x);

    /*
     * s += residual (if not NULL); y = (s - mu) rstd gamma + beta, in place if wanted; stats[2 row]
     * = mu, rstd; beta NULL: 0
     */
    void (*norm_forward)(int64_t n_rows, int64_t n, const float *residual, const float *gamma,
                         const float *beta, float eps, float *s, float *y, float *stats);
    /*
     * d_s from d_y, in place if wanted; d_gamma and d_beta [n] continue as chains over these rows
     */
    void (*norm_backward)(int64_t n_rows, int64_t n, const float *s, const float *stats,
                          const float *gamma, const float *d_y, float *d_s, float *d_gamma,
                          float *d_beta);

    /*
     * y = x rstd gamma, or with from_one x rstd (1 + gamma), rstd = 1 / sqrt(mean(x²) + eps); in
     * place if wanted; stats[2 row] = 0, rstd unless stats is NULL. Backward: as norm_backward.
     */
    void (*rms_forward)(int64_t n_rows, int64_t n, int from_one, const float *gamma, float eps,
                        const float *x, float *y, float *stats);
    void (*rms_backward)(int64_t n_rows, int64_t n, int from_one, const float *x,
                         const float *stats, const float *gamma, const float *d_y, float *d_x,
                         float *d_gamma);
    /*
     * In place, of each row's heads [n_heads][n] with the row's turns [n]: n / 2 cosines c, then as
     * many sines s; n is even.
     *     x_i, x_(i + n/2) = c_i x_i - s_i x_(i + n/2), c_i x_(i + n/2) + s_i x_i
     * back: with -s for s, the inverse where c² + s² = 1, and the gradient
     */
    void (*rotate)(int64_t n_rows, int64_t n_heads, int64_t n, int back, const float *turns,
                   float *x);
    /* x becomes cap tanh(x / cap); d_y (1 - (y / cap)²), of that y, in place */
    void (*soft_cap)(int64_t n, float cap, float *x);
    void (*soft_cap_backward)(int64_t n, float cap, const float *y, float *d);

    /* y = f(x); d_x = d_y f'(x); both in place if wanted (y = x, d_x = d_y). By qkvi_act. */
    void (*act_forward[QKVI_N_ACTS])(int64_t n, const float *x, float *y);
    void (*act_backward[QKVI_N_ACTS])(int64_t n, const float *x, const float *d_y, float *d_x);

    /* y = tanh x; d_x = d_y (1 - y²); both in place if wanted */
    void (*tanh_forward)(int64_t n, const float *x, float *y);
    void (*tanh_backward)(int64_t n, const float *y, const float *d_y, float *d_x);

    /*
     * x becomes e_j = exp(x_j - max x); *sum receives sum_j e_j, *lse the logarithm of sum_j
     * exp(x_j). So softmax is e / sum, and the cross entropy of a target t is lse - x_t, with x_t
     * read before the call.
     */
    void (*softmax_forward)(int64_t n, float *x, float *sum, float *lse);
    /*
     * e becomes factor (e_j / sum - (j = target ? on : off)): the gradient of factor times the
     * cross entropy with the distribution on, off (1 and 0: without smoothing)
     */
    void (*softmax_backward)(int64_t n, int64_t target, float on, float off, float factor,
                             float sum, float *e);
    /* s becomes exp(scale s_j - lse): attention weights from the scores of one query */
    void (*weights)(int64_t n, float scale, float lse, float *s);

    /* p, m and v after one step with gradient g */
    void (*adamw)(int64_t n, const qkvi_adamw_step *step, const float *g, float *p, float *m,
                  float *v);
} qkvi_layer_kernels;

#endif
