/*
 * Softmax cross-entropy of rows of logits, its mean, and the gradient of the mean.
 *
 *     loss_r = lse_r - x[r][t_r]      mean over the rows that have a target
 *     d_x[r][j] = (softmax(x_r)[j] - [j = t_r]) / n
 *
 * With label smoothing ε (Szegedy et al. 2016, section 7) the target has the probability 1 - ε +
 * ε/V and each other of the V classes ε/V, as in torch.nn.CrossEntropyLoss:
 *
 *     loss_r = (1 - ε) (lse_r - x[r][t_r]) + ε (lse_r - mean x_r)
 *     d_x[r][j] = (softmax(x_r)[j] - (1 - ε) [j = t_r] - ε/V) / n
 */
#ifndef QKVI_LAYER_LOSS_H
#define QKVI_LAYER_LOSS_H

#include "qkv/qkv.h"

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

typedef struct qkvi_cross_entropy {
    double mean;        /* with smoothing; 0 if no row has a target */
    int64_t n, n_right; /* rows with a target; those whose target has the largest logit */
} qkvi_cross_entropy;

/*
 * x [n_rows][n_classes] has the logits and becomes their gradient. targets[row] < 0: the row has no
 * target, and its gradient is 0. 0 <= smoothing <= 1 is ε; with 0 other logits than the target's
 * may be -∞. scratch: [n_rows][2]. The mean is summed in double, in the order of rows. n_whole > 0:
 * the rows are a part of a batch with n_whole targets, which then is the n of both formulas.
 */
void qkvi_cross_entropy_rows(qkv_ctx *ctx, int64_t n_rows, int64_t n_classes,
                             const int32_t *targets, int64_t n_whole, double smoothing, float *x,
                             float *scratch, qkvi_cross_entropy *result);

#pragma GCC visibility pop

#endif
