/* The cross-entropy of qkv/layers.h. */
#include <inttypes.h>
#include <string.h>

#include "layer/call.h"
#include "layer/loss.h"
#include "qkv/layers.h"

typedef struct loss_call {
    int64_t n_rows, n_classes;
    const int32_t *targets;
    double smoothing;
    const float *logits;
    float *d_logits; /* NULL: a copy in the arena, whose gradient is not read */
    float *copy, *rows;
} loss_call;

static void lay_out(void *argument, qkvi_cutter *cutter) {
    loss_call *const c = argument;
    c->rows = qkvi_cut(cutter, 2 * c->n_rows, sizeof *c->rows);
    if (!c->d_logits) c->copy = qkvi_cut(cutter, c->n_rows * c->n_classes, sizeof *c->copy);
}

static qkv_status check_arrays(qkv_ctx *ctx, const loss_call *c) {
    qkvi_arrays all = { .count = 0 };
    qkvi_call_input(&all, "targets", c->targets, 1, c->n_rows)->elem_bytes = sizeof *c->targets;
    qkvi_call_input(&all, "logits", c->logits, c->n_rows, c->n_classes)->twin = c->d_logits;
    if (c->d_logits) qkvi_call_output(&all, "d_logits", c->d_logits, c->n_rows, c->n_classes);
    QKV_TRY(qkvi_call_arrays(ctx, &all));
    for (int64_t r = 0; r < c->n_rows; r++)
        if (c->targets[r] >= c->n_classes)
            return qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT,
                                 "targets[%" PRId64 "] = %" PRId32 " is not below n_classes = "
                                 "%" PRId64,
                                 r, c->targets[r], c->n_classes);
    return QKV_OK;
}

static qkv_status check(qkv_ctx *ctx, const loss_call *c, const double *loss) {
    QKV_TRY(qkvi_call_size(ctx, "n_rows", c->n_rows, 0));
    QKV_TRY(qkvi_call_size(ctx, "n_classes", c->n_classes, 1));
    if (!(c->smoothing >= 0 && c->smoothing <= 1))
        return qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "smoothing = %g is not in 0 ... 1",
                             c->smoothing);
    if (!loss) return qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "loss is NULL");
    return check_arrays(ctx, c);
}

static qkv_status run(qkv_ctx *ctx, loss_call *c, double *loss, int64_t *n_right) {
    qkvi_cross_entropy result;
    QKV_TRY(check(ctx, c, loss));
    QKV_TRY(qkvi_call_memory(ctx, lay_out, c));
    float *const x = c->d_logits ? c->d_logits : c->copy;
    if (x != c->logits && c->n_rows > 0)
        memcpy(x, c->logits, (size_t)(c->n_rows * c->n_classes) * sizeof *x);
    qkvi_cross_entropy_rows(ctx, c->n_rows, c->n_classes, c->targets, 0, c->smoothing, x, c->rows,
                            &result);
    *loss = result.mean;
    if (n_right) *n_right = result.n_right;
    return QKV_OK;
}

qkv_status qkv_cross_entropy(qkv_ctx *ctx, int64_t n_rows, int64_t n_classes,
                             const int32_t *targets, double smoothing, const float *logits,
                             float *d_logits, double *loss, int64_t *n_right) {
    loss_call c = { .n_rows = n_rows,
                    .n_classes = n_classes,
                    .targets = targets,
                    .smoothing = smoothing,
                    .logits = logits,
                    .d_logits = d_logits };
    QKV_TRY(qkvi_ctx_begin(ctx));
    return qkvi_ctx_end(ctx, run(ctx, &c, loss, n_right));
}
