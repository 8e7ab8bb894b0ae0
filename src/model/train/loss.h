/*
 * Softmax cross-entropy of rows of logits, its mean, and the gradient of the mean.
 *
 *     loss_r = lse_r - x[r][t_r]      mean over the rows that have a target
 *     d_x[r][j] = (softmax(x_r)[j] - [j = t_r]) / n
 */
#ifndef QKVI_TRAIN_LOSS_H
#define QKVI_TRAIN_LOSS_H

#include "qkv/qkv.h"

typedef struct qkvi_cross_entropy {
    double mean;        /* 0 without rows that count */
    int64_t n, n_right; /* rows that count; those whose target has the largest logit */
} qkvi_cross_entropy;

/*
 * x [n_rows][n_classes] holds logits and becomes their gradient; the rows of targets < 0 do not
 * count, and their gradient is 0. scratch: [n_rows][2]. The mean is added up in double, in row
 * order.
 */
void qkvi_cross_entropy_rows(qkv_ctx *ctx, int64_t n_rows, int64_t n_classes,
                             const int32_t *targets, float *x, float *scratch,
                             qkvi_cross_entropy *result);

#endif
