/* Softmax cross-entropy over rows: see loss.h; the arithmetic is in kernels/tmpl/layer.h. */
#include "layer/loss.h"

#include <stdbool.h>
#include <string.h>

#include "attn/ctx.h"
#include "kernels/table.h"
#include "layer/rows.h"

typedef struct loss_job {
    int64_t n_classes;
    const int32_t *targets;
    double smoothing;
    float on, off;  /* shares of the target and of another class */
    float factor;   /* 1 / n */
    float *x, *row; /* row [n_rows][2]: loss, and 1 if right */
} loss_job;

/* The target has the largest logit; of equal ones the first counts. */
static bool is_top(int64_t n, const float *x, int32_t target) {
    const float logit = x[target];
    int above = 0;
    for (int64_t j = 0; j < target; j++) above |= x[j] >= logit;
    for (int64_t j = target + 1; j < n; j++) above |= x[j] > logit;
    return !above;
}

/* (1 - ε) (lse - logit) + ε (lse - mean); all is the sum of the logits */
static float smoothed(const loss_job *job, float lse, float logit, float all) {
    const double mean = (double)all / (double)job->n_classes, e = job->smoothing;
    return (float)((1 - e) * ((double)lse - (double)logit) + e * ((double)lse - mean));
}

static void loss_block(qkv_ctx *ctx, void *argument, qkvi_rows rows) {
    const loss_job *job = argument;
    const qkvi_layer_kernels *kernels = ctx->kernels->layer;
    for (int64_t r = rows.first; r < rows.first + rows.count; r++) {
        float *x = job->x + r * job->n_classes, *row = job->row + 2 * r, sum, lse;
        const int32_t target = job->targets[r];
        if (target < 0) {
            memset(x, 0, (size_t)job->n_classes * sizeof *x);
            row[0] = row[1] = 0;
            continue;
        }
        const float logit = x[target];
        const float all = job->smoothing > 0 ? kernels->sum(job->n_classes, x) : 0;
        row[1] = is_top(job->n_classes, x, target);
        kernels->softmax_forward(job->n_classes, x, &sum, &lse);
        row[0] = job->smoothing > 0 ? smoothed(job, lse, logit, all) : lse - logit;
        kernels->softmax_backward(job->n_classes, target, job->on, job->off, job->factor, sum, x);
    }
}

void qkvi_cross_entropy_rows(qkv_ctx *ctx, int64_t n_rows, int64_t n_classes,
                             const int32_t *targets, int64_t n_whole, double smoothing, float *x,
                             float *scratch, qkvi_cross_entropy *result) {
    double sum = 0;
    *result = (qkvi_cross_entropy){ 0 };
    for (int64_t r = 0; r < n_rows; r++) result->n += targets[r] >= 0;
    const int64_t n = n_whole > 0 ? n_whole : result->n;
    const float factor = (float)(1.0 / (double)(n ? n : 1));
    const double off = smoothing / (double)n_classes;
    loss_job job = { n_classes,  targets, smoothing, (float)(1 - smoothing + off),
                     (float)off, factor,  x,         scratch };
    qkvi_rows_run(ctx, n_rows, loss_block, &job);
    for (int64_t r = 0; r < n_rows; r++) {
        sum += (double)scratch[2 * r];
        result->n_right += scratch[2 * r + 1] != 0;
    }
    if (n) result->mean = sum / (double)n;
}
