/**
 * qkv: the layers around attention, to train with: linear, layer norm, activations, embedding,
 * dropout, cross-entropy and AdamW. They are the code that `qkv train` runs.
 *
 *     qkv_linear_desc layer = qkv_linear_desc_init(n_rows, n_in, n_out);
 *     if (qkv_linear_forward(ctx, &layer, x, weight, bias, y) != QKV_OK)
 *         fprintf(stderr, "%s\n", qkv_ctx_message(ctx));
 *
 * The following holds for every call.
 *
 * Arrays: dense floats, row after row; [n_rows][n] has element (r, c) at r * n + c. There are no
 *     strides. Pointers need the alignment of their element.
 * Sizes: n_rows may be 0, every other size is at least 1, and none is above 2^31 - 1.
 * Overlap: an output must overlap no other array, except where the call says which it may be.
 * Special values: NaN and infinities follow IEEE arithmetic in the order of docs/numerics.md,
 *     section Layers, except where the call says more.
 * Determinism: the bits depend on the arguments only, not on threads or instruction set.
 * Memory: the context's arena grows to the bytes that the call names, each piece rounded up to 64.
 *     Nothing else is allocated, and nothing at all once the arena is large enough.
 * Threads: the context's, over rows, columns or chunks.
 * Errors: the message is qkv_ctx_message(ctx), and outputs are untouched. QKV_ERR_ARGUMENT: NULL,
 *     overlap, alignment, or a number out of its range. QKV_ERR_SHAPE: a size that is too small.
 *     QKV_ERR_LIMIT: a size above 2^31 - 1, or an array that memory cannot hold. QKV_ERR_STRIDE: an
 *     array that reaches past the end of the address space. QKV_ERR_MEMORY, QKV_ERR_BUSY,
 *     QKV_ERR_VERSION: as everywhere.
 *
 * u is 2^-24 below, half a unit in the last place of 1. Bounds hold without overflow or underflow.
 */
#ifndef QKV_LAYERS_H
#define QKV_LAYERS_H

#include "qkv/qkv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Linear ---------------------------------------------------------------------------------- */

/**
 * A linear layer (Rumelhart, Hinton and Williams 1986 for its gradients):
 *
 *     y = x Wᵀ + b        d_x = d_y W        d_W = d_yᵀ x        d_b = the column sums of d_y
 *
 *     x, d_x [n_rows][n_in]     W, d_W [n_out][n_in]     b, d_b [n_out]     y, d_y [n_rows][n_out]
 */
typedef struct qkv_linear_desc {
    /** sizeof(qkv_linear_desc), set by qkv_linear_desc_init. */
    size_t struct_size;
    int64_t n_rows, n_in, n_out;
    /**
     * QKV_CLASS_F32 multiplies floats. So does QKV_CLASS_AUTO here; in a descriptor of attention it
     * chooses. QKV_CLASS_DP and QKV_CLASS_AMX round both factors of each product to bf16, to
     * nearest even, and add in floats. Every class gives the same bits on every processor. Arrays
     * are floats in each class.
     */
    qkv_class arithmetic;
    /** Not 0: the backward pass adds to d_x what it otherwise stores there. */
    int add_d_x;
    /**
     * NULL: a call packs W in the context's arena. Otherwise what qkv_linear_pack has made of W for
     * this pass; the call then does not read `weight`, which may be NULL. Pack again after each
     * change of W. A program that only runs a layer needs packed_forward alone.
     */
    const void *packed_forward, *packed_backward;
} qkv_linear_desc;

/** A descriptor of these sizes; everything else is 0. */
static inline qkv_linear_desc qkv_linear_desc_init(int64_t n_rows, int64_t n_in, int64_t n_out) {
    const qkv_linear_desc desc = { sizeof(qkv_linear_desc), n_rows, n_in, n_out,
                                   QKV_CLASS_AUTO,          0,      NULL, NULL };
    return desc;
}

/**
 * Bytes that qkv_linear_pack fills for a pass; n_rows does not matter. Forward, in floats: 64 + 4
 * n_in N, where N is n_out rounded up to 32. Backward has n_in and n_out exchanged. In bf16 half of
 * the second term, with n_in rounded up to 32, too.
 * @param pass  QKV_PASS_FORWARD or QKV_PASS_BACKWARD.
 * @return QKV_OK, or an error as above; QKV_ERR_DTYPE for an unknown class.
 */
QKV_API QKV_NODISCARD qkv_status qkv_linear_packed_bytes(qkv_ctx *ctx, const qkv_linear_desc *desc,
                                                         qkv_pass pass, size_t *bytes);

/**
 * Packs W for a pass into memory of the caller, aligned to 64. What is packed depends on class,
 * n_in and n_out, but not on the context or its instruction set. Memory: none.
 *
 * @param packed_bytes  the size of packed, at least qkv_linear_packed_bytes.
 * @return as qkv_linear_packed_bytes.
 */
QKV_API QKV_NODISCARD qkv_status qkv_linear_pack(qkv_ctx *ctx, const qkv_linear_desc *desc,
                                                 qkv_pass pass, const float *weight, void *packed,
                                                 size_t packed_bytes);

/**
 * The forward pass: y = x Wᵀ + b.
 *
 * Accuracy, n = n_in: within (min(n, 256) + n / 256 + 2) u (sum |x||W| + |b|) of the exact value.
 *     In bf16: within (n + 2) u of the exact sum of the rounded factors, relative to sum |x||W|.
 * Memory: without packed_forward its bytes, less 64. In bf16 the context also keeps the rounded
 *     rows of the largest call, 2 n_rows n_in bytes and some. In f32 it keeps 102 KiB for each
 *     thread, or for up to 24 rows at most 4 n_rows (n_in + 32) bytes, if n_in is a multiple of
 *     1024 and the first-level cache of an x86 has at most 8 ways. Without memory for them the call
 *     is slower and has the same bits.
 *
 * @param weight  NULL is allowed with packed_forward.
 * @param bias    NULL: no bias.
 * @return as qkv_linear_packed_bytes; QKV_ERR_ARGUMENT if packed_forward was packed for another
 *         pass, class or size.
 */
QKV_API QKV_NODISCARD qkv_status qkv_linear_forward(qkv_ctx *ctx, const qkv_linear_desc *desc,
                                                    const float *x, const float *weight,
                                                    const float *bias, float *y);

/**
 * The backward pass. Each of the three gradients is computed if its array is there. d_weight and
 * d_bias are stored; of no rows they are 0.
 *
 * Accuracy: of d_x and d_weight as forward, with n = n_out and n = n_rows. d_bias: within
 *     (65 + n_rows / 64) u sum |d_y|.
 * Memory: for d_x without packed_backward its bytes, less 64; in bf16 with add_d_x 4 n_rows n_in
 *     more. For d_weight 4 n_rows N, N being n_in rounded up to 32, in bf16 half of that, with
 *     n_rows rounded up to 32. For d_bias 4 n_out n_rows / 64, rounded up. In f32 the context
 *     keeps 102 KiB for each thread that d_weight is computed by, and for d_x what forward keeps of
 *     rows of n_out; without them it takes longer.
 *
 * @param x         what forward read; NULL is allowed without d_weight.
 * @param weight    NULL is allowed without d_x or with packed_backward.
 * @param d_x       NULL: not computed.
 * @param d_weight  NULL: not computed.
 * @param d_bias    NULL: not computed.
 * @return as forward, for packed_backward.
 */
QKV_API QKV_NODISCARD qkv_status qkv_linear_backward(qkv_ctx *ctx, const qkv_linear_desc *desc,
                                                     const float *x, const float *weight,
                                                     const float *d_y, float *d_x, float *d_weight,
                                                     float *d_bias);

/* ---- Activations ----------------------------------------------------------------------------- */

/** Functions of one number (GELU: Hendrycks and Gimpel 2016; SiLU: Elfwing et al. 2018). */
typedef enum qkv_activation {
    /** x/2 (1 + erf(x / √2)) */
    QKV_ACTIVATION_GELU = 0,
    /** x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))) */
    QKV_ACTIVATION_GELU_TANH = 1,
    /** max(0, x); its slope at 0 is 0. */
    QKV_ACTIVATION_RELU = 2,
    /** x / (1 + exp(-x)), also called swish. */
    QKV_ACTIVATION_SILU = 3,
    /** x / (1 + exp(-1.702 x)) */
    QKV_ACTIVATION_QUICK_GELU = 4,
    QKV_ACTIVATION_TANH = 5
} qkv_activation;

/**
 * y = f(x), element by element.
 *
 * Overlap: y may be x. Special values: NaN stays NaN, infinity itself, but 1 for tanh. -infinity
 * becomes NaN, but 0 for ReLU and -1 for tanh, as in PyTorch. Accuracy: within 4 u |x|; ReLU is
 * exact. Memory: none.
 */
QKV_API QKV_NODISCARD qkv_status qkv_activation_forward(qkv_ctx *ctx, qkv_activation activation,
                                                        int64_t n_rows, int64_t n, const float *x,
                                                        float *y);

/**
 * d_x = d_y f'(x), element by element; x is what forward read.
 *
 * Overlap: d_x may be d_y. Accuracy: within 12 u |d_y|; ReLU is exact. Memory: none.
 */
QKV_API QKV_NODISCARD qkv_status qkv_activation_backward(qkv_ctx *ctx, qkv_activation activation,
                                                         int64_t n_rows, int64_t n, const float *x,
                                                         const float *d_y, float *d_x);

/* ---- Layer norm ------------------------------------------------------------------------------ */

/**
 * Layer normalization of each row (Ba, Kiros and Hinton 2016):
 *
 *     mean = sum x / n      rstd = 1 / √(sum (x - mean)² / n + eps)
 *     y = (x - mean) rstd gamma + beta
 *
 * Overlap: y may be x, if no backward pass follows.
 * Accuracy, rows of n <= 4096: within 24 u (1 + max|x| rstd) (1 + |x - mean| rstd) |gamma|
 *     + 2 u |beta|. Memory: none.
 *
 * @param eps    finite, at least 0. With 0 a row of equal elements becomes NaN.
 * @param gamma  [n]
 * @param beta   [n]
 * @param stats  [n_rows][2]: receives mean and rstd, which the backward pass reads.
 */
QKV_API QKV_NODISCARD qkv_status qkv_layer_norm_forward(qkv_ctx *ctx, int64_t n_rows, int64_t n,
                                                        float eps, const float *x,
                                                        const float *gamma, const float *beta,
                                                        float *y, float *stats);

/**
 * The backward pass. With z = (x - mean) rstd and g = d_y gamma:
 *
 *     d_x = rstd (g - mean(g) - z mean(g z))     d_gamma = sum of d_y z     d_beta = sum of d_y
 *
 * The sums are over the rows; of no rows they are 0.
 * Overlap: d_x may be d_y. Accuracy: of d_gamma and d_beta within (70 + n_rows / 64) u sum |d_y|
 *     (1 + |z|), for the mean and rstd in stats. Memory: 8 n n_rows / 64 bytes, rounded up.
 */
QKV_API QKV_NODISCARD qkv_status qkv_layer_norm_backward(qkv_ctx *ctx, int64_t n_rows, int64_t n,
                                                         const float *x, const float *stats,
                                                         const float *gamma, const float *d_y,
                                                         float *d_x, float *d_gamma, float *d_beta);

/* ---- Rows ------------------------------------------------------------------------------------ */

/** y += x: a residual connection, or two gradients that meet. Memory: none. */
QKV_API QKV_NODISCARD qkv_status qkv_rows_add(qkv_ctx *ctx, int64_t n_rows, int64_t n,
                                              const float *x, float *y);

/**
 * Dropout in place (Srivastava et al. 2014): x becomes x / (1 - rate) where it is kept and 0
 * elsewhere, NaN included. What is kept depends on (seed, site, row, column) only: the backward
 * pass is the same call on the gradient. docs/numerics.md has the function. Memory: none.
 *
 * @param rate  0 ... 1. Below 2^-32 nothing is changed.
 * @param site  tells one place of a network from another.
 */
QKV_API QKV_NODISCARD qkv_status qkv_dropout(qkv_ctx *ctx, int64_t n_rows, int64_t n, float rate,
                                             uint64_t seed, uint32_t site, float *x);

/* ---- Embedding ------------------------------------------------------------------------------- */

/**
 * A table of vectors, and which of them each row takes:
 *
 *     y[r] = scale table[ids[r]]        d_table[i] = scale sum of d_y[r], for the r with ids[r] = i
 *
 *     table, d_table [n_entries][n]     ids [n_rows]     y, d_y [n_rows][n]
 */
typedef struct qkv_embedding_desc {
    /** sizeof(qkv_embedding_desc), set by qkv_embedding_desc_init. */
    size_t struct_size;
    int64_t n_rows, n_entries, n;
    /** Each in 0 ... n_entries - 1. */
    const int32_t *ids;
    /** 1, or for instance √n (Vaswani et al. 2017, section 3.4). */
    float scale;
    /**
     * Not 0: forward adds to y and backward to d_table what they otherwise store there. So a row
     * can be the sum of a word's, a position's and a segment's vector, and a table can be tied.
     */
    int add;
} qkv_embedding_desc;

/** A descriptor of these sizes with scale 1; everything else is 0. */
static inline qkv_embedding_desc qkv_embedding_desc_init(int64_t n_rows, int64_t n_entries,
                                                         int64_t n, const int32_t *ids) {
    const qkv_embedding_desc desc = { sizeof(qkv_embedding_desc), n_rows, n_entries, n, ids, 1, 0 };
    return desc;
}

/** Gathers. Accuracy: rounded once, as fma(scale, table, y or 0). Memory: none. */
QKV_API QKV_NODISCARD qkv_status qkv_embedding_forward(qkv_ctx *ctx, const qkv_embedding_desc *desc,
                                                       const float *table, float *y);

/**
 * Scatters: each entry is the sum of its rows, in their order.
 *
 * Accuracy: of an entry with m rows within (67 + m / 32) u (|d_table| + |scale| sum |d_y|), where
 *     |d_table| is what was there before, if it is added to. Memory: 4 (n_entries + n_rows) bytes.
 */
QKV_API QKV_NODISCARD qkv_status qkv_embedding_backward(qkv_ctx *ctx,
                                                        const qkv_embedding_desc *desc,
                                                        const float *d_y, float *d_table);

/* ---- Cross-entropy --------------------------------------------------------------------------- */

/**
 * Softmax cross-entropy of rows of logits, its mean over the m rows that have a target, and the
 * gradient of that mean. t is the target of row r, n = n_classes, ε = smoothing (Szegedy et al.
 * 2016, section 7):
 *
 *     loss[r] = (1 - ε) (lse[r] - x[r][t]) + ε (lse[r] - mean of x[r]),   lse = log sum exp x
 *     d_logits[r][j] = (softmax(x[r])[j] - (1 - ε) [j = t] - ε / n) / m
 *
 * Rows with a negative target do not count; their gradient is 0.
 * Overlap: d_logits may be logits.
 * Special values: without smoothing, logits other than the target's may be -infinity.
 * Accuracy: each loss[r] and each m d_logits within (16 + 8 max|x| + n / 32) u. The mean is added
 *     in double, in the order of the rows.
 * Memory: 8 n_rows bytes; without d_logits 4 n_rows n_classes more.
 *
 * @param targets    [n_rows], each below n_classes.
 * @param smoothing  ε, 0 ... 1.
 * @param logits     [n_rows][n_classes]
 * @param d_logits   [n_rows][n_classes]; NULL: no gradient.
 * @param loss       receives the mean, 0 if no row counts.
 * @param n_right    NULL, or receives the number of rows whose target has the largest logit. Of
 *                   equal ones the first counts.
 */
QKV_API QKV_NODISCARD qkv_status qkv_cross_entropy(qkv_ctx *ctx, int64_t n_rows, int64_t n_classes,
                                                   const int32_t *targets, double smoothing,
                                                   const float *logits, float *d_logits,
                                                   double *loss, int64_t *n_right);

/* ---- AdamW ----------------------------------------------------------------------------------- */

typedef struct qkv_adamw_options {
    /** sizeof(qkv_adamw_options), set by qkv_adamw_options_init. */
    size_t struct_size;
    /** Learning rate of this step: finite, at least 0. */
    double rate;
    /** Decay of the two means: each at least 0 and below 1. */
    double beta1, beta2;
    /** Finite, at least 0. */
    double eps;
    /** Finite, at least 0; for the arrays that decay. */
    double weight_decay;
    /** Largest norm of all gradients together; larger ones are scaled down to it. 0: none is. */
    double clip;
} qkv_adamw_options;

/** Those of torch.optim.AdamW: 0.9, 0.999, 1e-8, 0.01, no clipping. */
static inline qkv_adamw_options qkv_adamw_options_init(double rate) {
    const qkv_adamw_options options = {
        sizeof(qkv_adamw_options), rate, 0.9, 0.999, 1e-8, 0.01, 0
    };
    return options;
}

/** An array of parameters with its gradient and the two means, each [n]; n may be 0. */
typedef struct qkv_adamw_array {
    int64_t n;
    const float *grad;
    float *param;
    /** Zeros before the first step; kept from step to step. */
    float *m, *v;
    /** Not 0: weight_decay applies. Usually set for matrices, not for biases and norms. */
    int decays;
} qkv_adamw_array;

/**
 * One step of AdamW (Loshchilov and Hutter 2019, algorithm 2) on all arrays. Before it the
 * gradients are clipped by the norm of all together (Pascanu, Mikolov and Bengio 2013):
 *
 *     g = grad min(1, clip / |grad|)
 *     m = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) g²
 *     param = param (1 - rate weight_decay) - rate M / (√V + eps)
 *     with M = m / (1 - beta1^step) and V = v / (1 - beta2^step)
 *
 * Overlap: of all arrays together, param, m and v overlap nothing.
 * Special values: if the norm is not finite, nothing is changed.
 * Accuracy: of m within 4 u (|m| + |g|), of v within 4 u v, of param within 4 u |param| + 8 u times
 *     its change.
 * Determinism: chunks of 16,384 elements of each array; the norm adds them in their order.
 * Memory: 32 bytes for each array and 36 for each n / 16,384 + 1.
 *
 * @param step         1, 2, ...
 * @param arrays       [n_arrays], elements array_bytes apart.
 * @param array_bytes  sizeof(qkv_adamw_array).
 * @param norm         NULL, or receives the norm before clipping.
 * @return QKV_OK, or an error as above; QKV_ERR_ARGUMENT, with *norm set, if the norm is not
 *         finite; QKV_ERR_LIMIT above 2^24 chunks.
 */
QKV_API QKV_NODISCARD qkv_status qkv_adamw_step(qkv_ctx *ctx, const qkv_adamw_options *options,
                                                int64_t step, int64_t n_arrays,
                                                const qkv_adamw_array *arrays, size_t array_bytes,
                                                double *norm);

#ifdef __cplusplus
}
#endif
#endif
