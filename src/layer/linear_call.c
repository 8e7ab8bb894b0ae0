/*
 * The linear layer of qkv/layers.h. A call makes a layer (linear.h) with panels that the caller has
 * packed before, or that it packs into the context's arena.
 *
 * Packed memory begins with a header that says what was packed, so that panels of another layer are
 * refused.
 */
#include <string.h>

#include "core/options.h"
#include "layer/call.h"
#include "layer/linear.h"
#include "layer/rows.h"
#include "qkv/layers.h"

typedef struct packed_head {
    char is[8]; /* "qkv lin" */
    int32_t pass, half;
    int64_t n_in, n_out;
} packed_head;

enum { HEAD_BYTES = QKVI_ALIGNMENT };
_Static_assert(sizeof(packed_head) <= HEAD_BYTES, "the head fits");

/* ---- The descriptor -------------------------------------------------------------------------- */

static bool in_half(const qkv_linear_desc *d) {
    return d->arithmetic == QKV_CLASS_DP || d->arithmetic == QKV_CLASS_AMX;
}

static qkv_status read_desc(qkv_ctx *ctx, const qkv_linear_desc *given, qkv_linear_desc *d) {
    if (!given) return qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "desc is NULL");
    *d = qkv_linear_desc_init(0, 0, 0);
    QKV_TRY(qkvi_options_read(d, sizeof *d, given, "qkv_linear_desc", &ctx->error));
    QKV_TRY(qkvi_call_size(ctx, "n_rows", d->n_rows, 0));
    QKV_TRY(qkvi_call_size(ctx, "n_in", d->n_in, 1));
    QKV_TRY(qkvi_call_size(ctx, "n_out", d->n_out, 1));
    if (!in_half(d) && d->arithmetic != QKV_CLASS_AUTO && d->arithmetic != QKV_CLASS_F32)
        return qkvi_ctx_fail(ctx, QKV_ERR_DTYPE, "arithmetic = %d is no qkv_class",
                             (int)d->arithmetic);
    return QKV_OK;
}

static qkvi_linear layer_of(const qkv_linear_desc *d) {
    return (qkvi_linear){ .n_in = d->n_in, .n_out = d->n_out, .half_class = d->arithmetic };
}

/* Gives the layer its panels of a pass. */
static void set_panels(const qkv_linear_desc *d, qkv_pass pass, void *panels, qkvi_linear *layer) {
    if (in_half(d))
        *(pass == QKV_PASS_FORWARD ? &layer->half : &layer->half_backward) = panels;
    else
        *(pass == QKV_PASS_FORWARD ? &layer->forward : &layer->backward) = panels;
}

/* ---- Packed memory --------------------------------------------------------------------------- */

/* 32-bit words of the panels; SIZE_MAX: too many. */
static size_t panel_words(const qkv_linear_desc *d, qkv_pass pass) {
    const int64_t k = pass == QKV_PASS_FORWARD ? d->n_in : d->n_out;
    const int64_t n = pass == QKV_PASS_FORWARD ? d->n_out : d->n_in;
    return in_half(d) ? qkvi_bf16_packed_words(k, n) : qkvi_gemm_packed_elems(k, n);
}

static packed_head head_of(const qkv_linear_desc *d, qkv_pass pass) {
    packed_head head;
    memset(&head, 0, sizeof head);
    memcpy(head.is, "qkv lin", sizeof head.is);
    head.pass = (int32_t)pass;
    head.half = in_half(d);
    head.n_in = d->n_in;
    head.n_out = d->n_out;
    return head;
}

static qkv_status packed_bytes(qkv_ctx *ctx, const qkv_linear_desc *d, qkv_pass pass,
                               size_t *bytes) {
    const size_t words = panel_words(d, pass);
    if (pass != QKV_PASS_FORWARD && pass != QKV_PASS_BACKWARD)
        return qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "pass = %d is no pass of a layer", (int)pass);
    if (!qkvi_mul_size(words, sizeof(float), bytes) || !qkvi_add_size(*bytes, HEAD_BYTES, bytes) ||
        *bytes > (size_t)QKVI_MAX_SPAN)
        return qkvi_ctx_fail(ctx, QKV_ERR_LIMIT, "what is packed does not fit the address space");
    return QKV_OK;
}

qkv_status qkv_linear_packed_bytes(qkv_ctx *ctx, const qkv_linear_desc *desc, qkv_pass pass,
                                   size_t *bytes) {
    qkv_linear_desc d;
    size_t found = 0;
    QKV_TRY(qkvi_ctx_begin(ctx));
    qkv_status status = read_desc(ctx, desc, &d);
    if (status == QKV_OK && !bytes) status = qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "bytes is NULL");
    if (status == QKV_OK) status = packed_bytes(ctx, &d, pass, &found);
    if (status == QKV_OK) *bytes = found;
    return qkvi_ctx_end(ctx, status);
}

static qkv_status check_aligned(qkv_ctx *ctx, const char *name, const void *packed) {
    if ((uintptr_t)packed % QKVI_ALIGNMENT == 0) return QKV_OK;
    return qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "%s = %p is not aligned to %d bytes", name, packed,
                         QKVI_ALIGNMENT);
}

static qkv_status pack(qkv_ctx *ctx, const qkv_linear_desc *d, qkv_pass pass, const float *weight,
                       void *packed, size_t given_bytes) {
    qkvi_arrays all = { .count = 0 };
    size_t bytes = 0;
    QKV_TRY(packed_bytes(ctx, d, pass, &bytes));
    QKV_TRY(check_aligned(ctx, "packed", packed));
    if (given_bytes < bytes)
        return qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "packed_bytes = %zu is less than %zu",
                             given_bytes, bytes);
    qkvi_call_input(&all, "weight", weight, d->n_out, d->n_in);
    qkvi_call_output(&all, "packed", packed, 1, (int64_t)bytes)->elem_bytes = 1;
    QKV_TRY(qkvi_call_arrays(ctx, &all));
    const packed_head head = head_of(d, pass);
    qkvi_linear layer = layer_of(d);
    layer.weight = (float *)weight; /* only read */
    memset(packed, 0, HEAD_BYTES);
    memcpy(packed, &head, sizeof head);
    set_panels(d, pass, (char *)packed + HEAD_BYTES, &layer);
    qkvi_linear_pack(ctx, &layer);
    return QKV_OK;
}

qkv_status qkv_linear_pack(qkv_ctx *ctx, const qkv_linear_desc *desc, qkv_pass pass,
                           const float *weight, void *packed, size_t given_bytes) {
    qkv_linear_desc d;
    QKV_TRY(qkvi_ctx_begin(ctx));
    qkv_status status = read_desc(ctx, desc, &d);
    if (status == QKV_OK) status = pack(ctx, &d, pass, weight, packed, given_bytes);
    return qkvi_ctx_end(ctx, status);
}

/* ---- W of a call ----------------------------------------------------------------------------- */

/* What the caller has packed for the pass; NULL: nothing. */
static const void *packed_of(const qkv_linear_desc *d, qkv_pass pass) {
    return pass == QKV_PASS_FORWARD ? d->packed_forward : d->packed_backward;
}

/* Lists W in the form that the call reads it in, and checks that form's head. */
static qkv_status add_weight(qkv_ctx *ctx, const qkv_linear_desc *d, qkv_pass pass,
                             const float *weight, qkvi_arrays *all) {
    const char *const name = pass == QKV_PASS_FORWARD ? "packed_forward" : "packed_backward";
    const void *const packed = packed_of(d, pass);
    const packed_head head = head_of(d, pass);
    size_t bytes = 0;
    if (!packed) {
        qkvi_call_input(all, "weight", weight, d->n_out, d->n_in);
        return QKV_OK;
    }
    QKV_TRY(packed_bytes(ctx, d, pass, &bytes));
    QKV_TRY(check_aligned(ctx, name, packed));
    if (memcmp(packed, &head, sizeof head) != 0)
        return qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT,
                             "%s was not packed for this pass, class, n_in and n_out", name);
    qkvi_call_input(all, name, packed, 1, (int64_t)bytes)->elem_bytes = 1;
    return QKV_OK;
}

/* What a call cuts of the arena. */
typedef struct space {
    const qkv_linear_desc *d;
    qkv_pass pass;
    bool panels_wanted, x_wanted, sums_wanted, product_wanted;
    void *panels;
    float *x, *sums, *product;
} space;

static void lay_out(void *argument, qkvi_cutter *cutter) {
    space *const s = argument;
    const int64_t n_rows = s->d->n_rows, n_in = s->d->n_in, n_out = s->d->n_out;
    const size_t n_x =
        in_half(s->d) ? qkvi_bf16_packed_words(n_rows, n_in) : qkvi_gemm_packed_elems(n_rows, n_in);
    const int64_t n_sums = qkvi_colsum_elems(n_rows, n_out);
    if (s->panels_wanted)
        s->panels = qkvi_call_cut(cutter, panel_words(s->d, s->pass), sizeof(float));
    if (s->x_wanted) s->x = qkvi_call_cut(cutter, n_x, sizeof(float));
    if (s->sums_wanted) s->sums = qkvi_cut(cutter, n_sums, sizeof(float));
    if (s->product_wanted) s->product = qkvi_cut(cutter, n_rows * n_in, sizeof(float));
}

/* The layer with its panels of the pass. */
static qkvi_linear open_layer(qkv_ctx *ctx, const space *s, const float *weight) {
    qkvi_linear layer = layer_of(s->d);
    const void *const packed = packed_of(s->d, s->pass);
    if (packed) {
        set_panels(s->d, s->pass, (char *)packed + HEAD_BYTES, &layer); /* only read */
    } else if (s->panels_wanted) {
        layer.weight = (float *)weight; /* only read */
        set_panels(s->d, s->pass, s->panels, &layer);
        qkvi_linear_pack(ctx, &layer);
    }
    return layer;
}

/* ---- Forward --------------------------------------------------------------------------------- */

static qkv_status forward(qkv_ctx *ctx, const qkv_linear_desc *d, const float *x,
                          const float *weight, const float *bias, float *y) {
    qkvi_arrays all = { .count = 0 };
    space s = { .d = d, .pass = QKV_PASS_FORWARD, .panels_wanted = !d->packed_forward };
    qkvi_call_input(&all, "x", x, d->n_rows, d->n_in);
    QKV_TRY(add_weight(ctx, d, s.pass, weight, &all));
    if (bias) qkvi_call_input(&all, "bias", bias, 1, d->n_out);
    qkvi_call_output(&all, "y", y, d->n_rows, d->n_out);
    QKV_TRY(qkvi_call_arrays(ctx, &all));
    if (d->n_rows == 0) return QKV_OK;
    QKV_TRY(qkvi_call_memory(ctx, lay_out, &s));
    qkvi_linear layer = open_layer(ctx, &s, weight);
    layer.bias = (float *)bias; /* only read */
    qkvi_linear_forward(ctx, &layer, d->n_rows, x, y);
    return QKV_OK;
}

qkv_status qkv_linear_forward(qkv_ctx *ctx, const qkv_linear_desc *desc, const float *x,
                              const float *weight, const float *bias, float *y) {
    qkv_linear_desc d;
    QKV_TRY(qkvi_ctx_begin(ctx));
    qkv_status status = read_desc(ctx, desc, &d);
    if (status == QKV_OK) status = forward(ctx, &d, x, weight, bias, y);
    return qkvi_ctx_end(ctx, status);
}

/* ---- Backward -------------------------------------------------------------------------------- */

typedef struct gradients {
    float *d_x, *d_weight, *d_bias;
} gradients;

static void backward_params(qkv_ctx *ctx, const space *s, const qkvi_linear *layer, const float *x,
                            const float *d_y, const gradients *g) {
    const qkv_linear_desc *const d = s->d;
    const qkvi_linear grads = {
        .n_in = d->n_in, .n_out = d->n_out, .weight = g->d_weight, .bias = g->d_bias
    };
    qkvi_linear reader = *layer;
    if (in_half(d)) reader.half = (uint32_t *)s->x; /* says that x is to be packed in bf16 */
    if (g->d_weight) {
        qkvi_pack_rows(ctx, &reader, d->n_rows, x, s->x);
        qkvi_linear_backward_params(ctx, &reader, &grads, d->n_rows, d_y, s->x, s->sums);
    } else if (g->d_bias) {
        qkvi_colsum(ctx, d->n_rows, d->n_out, d_y, s->sums, g->d_bias);
    }
}

/* Sums of nothing are 0. x and d_y may be NULL. */
static void backward_no_rows(const qkv_linear_desc *d, const gradients *g) {
    const size_t n_out = (size_t)d->n_out, n_in = (size_t)d->n_in;
    if (g->d_weight) memset(g->d_weight, 0, n_out * n_in * sizeof *g->d_weight);
    if (g->d_bias) memset(g->d_bias, 0, n_out * sizeof *g->d_bias);
}

static void backward_input(qkv_ctx *ctx, const space *s, const qkvi_linear *layer, const float *d_y,
                           float *d_x) {
    if (s->d->add_d_x)
        qkvi_linear_backward_input_add(ctx, layer, s->d->n_rows, d_y, d_x, s->product);
    else
        qkvi_linear_backward_input(ctx, layer, s->d->n_rows, d_y, d_x);
}

static qkv_status backward(qkv_ctx *ctx, const qkv_linear_desc *d, const float *x,
                           const float *weight, const float *d_y, const gradients *g) {
    qkvi_arrays all = { .count = 0 };
    space s = { .d = d,
                .pass = QKV_PASS_BACKWARD,
                .panels_wanted = g->d_x && !d->packed_backward,
                .x_wanted = g->d_weight,
                .sums_wanted = g->d_bias,
                .product_wanted = g->d_x && d->add_d_x && in_half(d) };
    qkvi_call_input(&all, "d_y", d_y, d->n_rows, d->n_out);
    if (g->d_weight) qkvi_call_input(&all, "x", x, d->n_rows, d->n_in);
    if (g->d_x) QKV_TRY(add_weight(ctx, d, s.pass, weight, &all));
    if (g->d_x) qkvi_call_output(&all, "d_x", g->d_x, d->n_rows, d->n_in);
    if (g->d_weight) qkvi_call_output(&all, "d_weight", g->d_weight, d->n_out, d->n_in);
    if (g->d_bias) qkvi_call_output(&all, "d_bias", g->d_bias, 1, d->n_out);
    QKV_TRY(qkvi_call_arrays(ctx, &all));
    if (d->n_rows == 0) {
        backward_no_rows(d, g);
        return QKV_OK;
    }
    QKV_TRY(qkvi_call_memory(ctx, lay_out, &s));
    const qkvi_linear layer = open_layer(ctx, &s, weight);
    backward_params(ctx, &s, &layer, x, d_y, g);
    if (g->d_x) backward_input(ctx, &s, &layer, d_y, g->d_x);
    return QKV_OK;
}

qkv_status qkv_linear_backward(qkv_ctx *ctx, const qkv_linear_desc *desc, const float *x,
                               const float *weight, const float *d_y, float *d_x, float *d_weight,
                               float *d_bias) {
    const gradients g = { d_x, d_weight, d_bias };
    qkv_linear_desc d;
    QKV_TRY(qkvi_ctx_begin(ctx));
    qkv_status status = read_desc(ctx, desc, &d);
    if (status == QKV_OK) status = backward(ctx, &d, x, weight, d_y, &g);
    return qkvi_ctx_end(ctx, status);
}
