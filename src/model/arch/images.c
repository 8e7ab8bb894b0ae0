/*
 * The heads of models that read images, forward for a run, and with the loss of the classifier and
 * its gradients for training.
 *
 *     classifier   W r + b                    r: the row [CLS], or the mean of patches, or both
 *                  (W0 x0 + b0 + W1 x1 + b1) / 2    of [CLS] and [DIST] (DeiT's teacher)
 *     pooled       x0, tanh(Wp x0 + bp), or norm(x0)
 *                  z + down(act(up(norm(z)))), z what a learned row gets that attends to all rows
 *     joint        W pooled, W pooled + b, or pooled itself
 *
 * A mean is a sum in double, in the order of patches, rounded once.
 */
#include "core/fpstate.h"
#include "layer/act.h"
#include "layer/loss.h"
#include "layer/rows.h"
#include "model/arch/net_pass.h"

/* ---- Classes --------------------------------------------------------------------------------- */

/* What the classifier reads of an image's last hidden states. */
static void read_image(const qkvi_stack *stack, int64_t n_rows, const float *hidden, float *read) {
    const int64_t h = stack->hidden, n_prefix = qkvi_patches_prefix(&stack->patches);
    float *const mean = stack->reads == QKVI_READS_CLS_MEAN ? read + h : read;
    if (stack->reads != QKVI_READS_MEAN) memcpy(read, hidden, (size_t)h * sizeof *read);
    if (stack->reads != QKVI_READS_CLS)
        qkvi_mean_of_rows(n_rows - n_prefix, h, hidden + n_prefix * h, mean);
}

qkv_status qkvi_net_classify_image(qkv_ctx *ctx, const qkvi_net *net, int64_t n_rows,
                                   const float *hidden, float *logits, qkv_error *error) {
    const int64_t h = net->stacks[0].hidden, n = net->n_labels;
    if (n == 0) return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "no classifier");
    float *const read = qkvi_aligned_array(2 * (size_t)h + (size_t)n, sizeof *read);
    if (!read) return qkvi_no_memory(error, "the classifier");
    float *const other = read + 2 * h;
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    read_image(&net->stacks[0], n_rows, hidden, read);
    qkvi_linear_forward(ctx, &net->classifier, 1, read, logits);
    if (net->second.n_out > 0) {
        qkvi_linear_forward(ctx, &net->second, 1, hidden + h, other);
        for (int64_t c = 0; c < n; c++) logits[c] = (logits[c] + other[c]) / 2;
    }
    qkvi_fpstate_leave(saved);
    qkvi_aligned_free(read);
    return QKV_OK;
}

/* ---- What is pooled -------------------------------------------------------------------------- */

/* z, what the learned row gets from rows x [n][h], and what follows it. */
static qkv_status run_probe(qkv_ctx *ctx, const qkvi_net *net, int64_t n, const float *x,
                            float *pooled, qkvi_cutter *cutter) {
    const qkvi_probe *const p = &net->probe;
    const qkvi_stack *const s = &net->stacks[0];
    const int64_t h = s->hidden;
    const qkvi_sequence_group group = { 0, 1, 1, 0, n };
    const qkvi_groups groups = { .n_rows = 1, .n_keys = n, .n_groups = 1, .list = &group };
    qkvi_mha_acts acts = { .q = qkvi_cut(cutter, h, sizeof(float)),
                           .o = qkvi_cut(cutter, h, sizeof(float)),
                           .k = qkvi_cut(cutter, n * h, sizeof(float)),
                           .v = qkvi_cut(cutter, n * h, sizeof(float)),
                           .lse = qkvi_cut(cutter, s->n_heads, sizeof(float)) };
    float *const y = qkvi_cut(cutter, h, sizeof(float)), *const z = qkvi_cut(cutter, h, sizeof *y);
    float *const wide = qkvi_cut(cutter, s->intermediate, sizeof *y);
    float *const stats = qkvi_cut(cutter, 2, sizeof *y);
    if (qkvi_mha_in_half(&p->attention))
        for (int i = 0; i < 3; i++) acts.half[i] = qkvi_cut(cutter, n * h, sizeof(uint16_t));
    if (!pooled) return QKV_OK; /* to measure */
    QKV_TRY(qkvi_mha_forward(ctx, &p->attention, &groups, p->row, x, &acts));
    qkvi_linear_forward(ctx, &p->attention.output, 1, acts.o, z);
    qkvi_layernorm_forward(ctx, &p->norm, s->eps, 1, NULL, z, y, stats);
    qkvi_linear_forward(ctx, &p->up, 1, y, wide);
    qkvi_act_forward(ctx, s->blocks[0].act, 1, s->intermediate, wide, wide);
    qkvi_linear_forward(ctx, &p->down, 1, wide, pooled);
    qkvi_rows_add(ctx, 1, h, z, pooled);
    return QKV_OK;
}

static qkv_status pool_by_probe(qkv_ctx *ctx, const qkvi_net *net, int64_t n, const float *x,
                                float *pooled, qkv_error *error) {
    qkvi_cutter cutter = { 0 };
    QKV_TRY(run_probe(ctx, net, n, x, NULL, &cutter));
    void *const room = cutter.overflow ? NULL : qkvi_aligned_array(cutter.used_bytes, 1);
    if (!room) return qkvi_no_memory(error, "the pooling head");
    cutter = qkvi_cutter_on(room);
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    const qkv_status status = run_probe(ctx, net, n, x, pooled, &cutter);
    qkvi_fpstate_leave(saved);
    qkvi_aligned_free(room);
    return qkvi_pass_failed(ctx, status, error);
}

qkv_status qkvi_net_pool_image(qkv_ctx *ctx, const qkvi_net *net, int64_t n_rows,
                               const float *hidden, float *pooled, qkv_error *error) {
    const int64_t h = net->stacks[0].hidden;
    float stats[2];
    if (net->probe.attention.n_heads > 0)
        return pool_by_probe(ctx, net, n_rows, hidden, pooled, error);
    if (qkvi_patches_classes(&net->stacks[0].patches) == 0)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "no pooling head");
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    if (net->has_pooler) {
        qkvi_linear_forward(ctx, &net->pooler, 1, hidden, pooled);
        qkvi_tanh_forward(ctx, 1, h, pooled, pooled);
    } else if (net->pooled_norm.gamma) {
        qkvi_layernorm_forward(ctx, &net->pooled_norm, net->stacks[0].eps, 1, NULL,
                               (float *)(uintptr_t)hidden, pooled, stats); /* which it only reads */
    } else {
        memcpy(pooled, hidden, (size_t)h * sizeof *pooled);
    }
    qkvi_fpstate_leave(saved);
    return QKV_OK;
}

qkv_status qkvi_net_join(qkv_ctx *ctx, const qkvi_net *net, const float *pooled, float *joint,
                         qkv_error *error) {
    if (net->joins_pooled) {
        memcpy(joint, pooled, (size_t)net->stacks[0].hidden * sizeof *joint);
        return QKV_OK;
    }
    if (net->joint.n_out == 0)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "no projection to a space of texts and images");
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    qkvi_linear_forward(ctx, &net->joint, 1, pooled, joint);
    qkvi_fpstate_leave(saved);
    return QKV_OK;
}

/* ---- Training -------------------------------------------------------------------------------- */

static float *floats(qkvi_cutter *cutter, int64_t n) { return qkvi_cut(cutter, n, sizeof(float)); }

void qkvi_images_cut(const qkvi_net *net, qkvi_cutter *cutter, qkvi_net_pass *pass) {
    const int64_t n = pass->n_labels, h = net->stacks[0].hidden;
    pass->label.read = floats(cutter, n * 2 * h);
    pass->label.logits = floats(cutter, n * net->n_labels);
    pass->label.other = floats(cutter, net->second.n_out > 0 ? n * net->n_labels : 0);
    pass->label.packed = floats(cutter, qkvi_rows_packed_elems(n, 2 * h));
    pass->label.sums = floats(cutter, qkvi_colsum_elems(n, net->n_labels));
    pass->row_loss = floats(cutter, 2 * n);
}

/* Row k of every image, one after another. */
static void gather(const qkvi_stack_pass *p, int64_t k, float *to) {
    const int64_t h = p->stack->hidden;
    for (int64_t b = 0; b < p->rows.n_sequences; b++)
        memcpy(to + b * h, p->y + (p->rows.first_row[b] + k) * h, (size_t)h * sizeof *to);
}

/* With two classifiers read has all [CLS], then all [DIST]. */
static void read_all(const qkvi_net *net, const qkvi_stack_pass *p, float *read) {
    const int64_t h = p->stack->hidden, width = net->classifier.n_in, n = p->rows.n_sequences;
    if (net->second.n_out > 0) {
        for (int64_t k = 0; k < 2; k++) gather(p, k, read + k * n * h);
        return;
    }
    for (int64_t b = 0; b < n; b++)
        read_image(p->stack, p->rows.lengths[b], p->y + p->rows.first_row[b] * h, read + b * width);
}

void qkvi_images_forward(qkv_ctx *ctx, const qkvi_net *net, const qkvi_net_batch *batch,
                         qkvi_net_pass *pass, qkvi_net_losses *losses) {
    const qkvi_label_acts *const a = &pass->label;
    const int64_t n = pass->n_labels, n_labels = net->n_labels;
    qkvi_cross_entropy found = { 0 };
    if (n == 0) return;
    read_all(net, &pass->stacks[0], a->read);
    qkvi_linear_forward(ctx, &net->classifier, n, a->read, a->logits);
    if (net->second.n_out > 0) {
        qkvi_linear_forward(ctx, &net->second, n, a->read + n * net->second.n_in, a->other);
        for (int64_t i = 0; i < n * n_labels; i++) a->logits[i] = (a->logits[i] + a->other[i]) / 2;
    }
    qkvi_cross_entropy_rows(ctx, n, n_labels, batch->labels, batch->whole_labels,
                            batch->label_smoothing, a->logits, pass->row_loss, &found);
    losses->label = found.mean;
    losses->n_label = found.n;
    losses->n_label_right = found.n_right;
}

static void zero_norm(const qkvi_layernorm *d) {
    if (d->gamma) memset(d->gamma, 0, (size_t)d->n * sizeof *d->gamma);
    if (d->beta) memset(d->beta, 0, (size_t)d->n * sizeof *d->beta);
}

/* What the classifier does not read. */
static void zero_others(const qkvi_net *grads) {
    const qkvi_probe *const p = &grads->probe;
    const qkvi_linear *const layers[] = { &grads->pooler,
                                          &grads->joint,
                                          &p->up,
                                          &p->down,
                                          &p->attention.query,
                                          &p->attention.key,
                                          &p->attention.value,
                                          &p->attention.output };
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) qkvi_linear_zero(layers[i]);
    zero_norm(&grads->pooled_norm);
    zero_norm(&p->norm);
    if (p->row) memset(p->row, 0, (size_t)p->norm.n * sizeof *p->row);
}

/* Gradients of a classifier of the rows x, which become those of x. */
static void classifier_backward(qkv_ctx *ctx, const qkvi_linear *layer, const qkvi_linear *d,
                                const qkvi_label_acts *a, int64_t n, float *x) {
    qkvi_pack_rows(ctx, layer, n, x, a->packed);
    qkvi_linear_backward_params(ctx, layer, d, n, a->logits, a->packed, a->sums);
    qkvi_linear_backward_input(ctx, layer, n, a->logits, x);
}

static void add_scaled(int64_t h, float scale, const float *x, float *y) {
    for (int64_t c = 0; c < h; c++) y[c] += scale * x[c];
}

/* The gradient of what was read of an image to its rows, which are zeros. */
static void spread(const qkvi_stack *stack, int64_t n_rows, const float *read, float *d) {
    const int64_t h = stack->hidden, n_prefix = qkvi_patches_prefix(&stack->patches);
    const float *const mean = stack->reads == QKVI_READS_CLS_MEAN ? read + h : read;
    const float share = 1 / (float)(n_rows - n_prefix);
    if (stack->reads != QKVI_READS_MEAN) add_scaled(h, 1, read, d);
    for (int64_t i = n_prefix; stack->reads != QKVI_READS_CLS && i < n_rows; i++)
        add_scaled(h, share, mean, d + i * h);
}

void qkvi_images_backward(qkv_ctx *ctx, const qkvi_net *net, const qkvi_net *grads,
                          qkvi_net_pass *pass) {
    qkvi_stack_pass *const p = &pass->stacks[0];
    const qkvi_label_acts *const a = &pass->label;
    const int64_t n = pass->n_labels, h = p->stack->hidden, width = net->classifier.n_in;
    const bool two = net->second.n_out > 0;
    zero_others(grads);
    memset(p->d, 0, (size_t)(p->rows.n_rows * h) * sizeof *p->d);
    if (n == 0) {
        qkvi_linear_zero(&grads->classifier);
        qkvi_linear_zero(&grads->second);
        return;
    }
    for (int64_t i = 0; two && i < n * net->n_labels; i++) a->logits[i] /= 2;
    classifier_backward(ctx, &net->classifier, &grads->classifier, a, n, a->read);
    if (two) classifier_backward(ctx, &net->second, &grads->second, a, n, a->read + n * h);
    for (int64_t b = 0; b < n; b++) {
        float *const d = p->d + p->rows.first_row[b] * h;
        if (two) {
            for (int64_t k = 0; k < 2; k++) add_scaled(h, 1, a->read + (k * n + b) * h, d + k * h);
            continue;
        }
        spread(p->stack, p->rows.lengths[b], a->read + b * width, d);
    }
}
