/*
 * Softmax cross-entropy of rows of logits, its mean, and the gradient of the mean.
 *
 *     loss_r = lse_r - x[r][t_r]      mean over the rows that have a target
 *     d_x[r][j] = (softmax(x_r)[j] - [j = t_r]) / n
 *
 * With label smoothing ε (Szegedy et al. 2016, section 7) the target's share is 1 - ε + ε/V and
 * that of every other of the V classes ε/V, as in torch.nn.CrossEntropyLoss:
 *
 *     loss_r = (1 - ε) (lse_r - x[r][t_r]) + ε (lse_r - mean x_r)
 *     d_x[r][j] = (softmax(x_r)[j] - (1 - ε) [j = t_r] - ε/V) / n
 */
#ifndef QKVI_LAYER_LOSS_H
#define QKVI_LAYER_LOSS_H

#include "qkv/qkv.h"

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

typedef struct qkvi_cross_entropy {
    double mean;        /* 0 without rows that count; smoothed */
    int64_t n, n_right; /* rows that count; those whose target has the largest logit */
} qkvi_cross_entropy;

/*
 * x [n_rows][n_classes] holds logits and becomes their gradient; the rows of targets < 0 do not
 * count, and their gradient is 0. 0 <= smoothing <= 1 is ε; with 0 no other logit than the target's
 * is weighed, so it may be -∞. scratch: [n_rows][2]. The mean is added up in double, in row order.
 * n_whole > 0: the rows are a part of so many that count, and n of the mean is that.
 */
void qkvi_cross_entropy_rows(qkv_ctx *ctx, int64_t n_rows, int64_t n_classes,
                             const int32_t *targets, int64_t n_whole, double smoothing, float *x,
                             float *scratch, qkvi_cross_entropy *result);

#pragma GCC visibility pop

#endif
