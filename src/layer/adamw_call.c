/* AdamW of qkv/layers.h: the caller's arrays become chunks in the context's arena. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/options.h"
#include "layer/adamw.h"
#include "layer/call.h"
#include "qkv/layers.h"

typedef struct adamw_call {
    int64_t n_arrays;
    const char *arrays; /* array_bytes apart */
    size_t array_bytes, n_chunks;
    qkvi_adamw adamw;
    qkvi_adamw_arrays *pointers;
} adamw_call;

static qkv_adamw_array array_at(const adamw_call *c, int64_t i) {
    qkv_adamw_array array;
    memcpy(&array, c->arrays + (size_t)i * c->array_bytes, sizeof array);
    return array;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static qkv_status read_options(qkv_ctx *ctx, const qkv_adamw_options *given, int64_t step,
                               qkv_adamw_options *o) {
    if (!given) return qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "options is NULL");
    *o = qkv_adamw_options_init(0);
    QKV_TRY(qkvi_options_read(o, sizeof *o, given, "qkv_adamw_options", &ctx->error));
    QKV_TRY(qkvi_call_number(ctx, "rate", o->rate));
    QKV_TRY(qkvi_call_number(ctx, "beta1", o->beta1));
    QKV_TRY(qkvi_call_number(ctx, "beta2", o->beta2));
    QKV_TRY(qkvi_call_number(ctx, "eps", o->eps));
    QKV_TRY(qkvi_call_number(ctx, "weight_decay", o->weight_decay));
    QKV_TRY(qkvi_call_number(ctx, "clip", o->clip));
    if (o->beta1 >= 1 || o->beta2 >= 1)
        return qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "beta1 = %g or beta2 = %g is not below 1",
                             o->beta1, o->beta2);
    if (step < 1)
        return qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "step = %" PRId64 " is less than 1", step);
    return QKV_OK;
}

/* The first header had all that is here, so that no element is smaller. */
static qkv_status check_elements(qkv_ctx *ctx, const adamw_call *c) {
    qkv_adamw_array array;
    if (c->array_bytes < sizeof array)
        return qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "array_bytes = %zu is less than %zu",
                             c->array_bytes, sizeof array);
    QKV_TRY(qkvi_element_check(c->array_bytes, sizeof array, "array_bytes", &ctx->error));
    for (int64_t i = 0; i < c->n_arrays; i++)
        QKV_TRY(qkvi_element_read(&array, sizeof array, c->arrays, i, c->array_bytes, "arrays",
                                  &ctx->error));
    return QKV_OK;
}

/* The arrays of an element by themselves. */
static qkv_status check_array(qkv_ctx *ctx, const qkv_adamw_array *a, int64_t i) {
    qkvi_arrays all = { .count = 0 };
    if (a->n < 0)
        return qkvi_ctx_fail(ctx, QKV_ERR_SHAPE, "arrays[%" PRId64 "].n = %" PRId64 " is negative",
                             i, a->n);
    qkvi_call_input(&all, "grad", a->grad, 1, a->n);
    qkvi_call_output(&all, "param", a->param, 1, a->n);
    qkvi_call_output(&all, "m", a->m, 1, a->n);
    qkvi_call_output(&all, "v", a->v, 1, a->n);
    return qkvi_call_arrays(ctx, &all);
}

static bool overlap(const float *x, int64_t n_x, const float *y, int64_t n_y) {
    const uintptr_t x0 = (uintptr_t)x, y0 = (uintptr_t)y;
    return n_x && n_y && x0 < y0 + (uintptr_t)n_y * sizeof *y &&
           y0 < x0 + (uintptr_t)n_x * sizeof *x;
}

/* Of two elements, both checked, what is written apart from what the other has. */
static qkv_status check_apart(qkv_ctx *ctx, const adamw_call *c, int64_t i, int64_t j) {
    static const char *const names[4] = { "grad", "param", "m", "v" };
    const qkv_adamw_array a = array_at(c, i), b = array_at(c, j);
    const float *const of_a[4] = { a.grad, a.param, a.m, a.v };
    const float *const of_b[4] = { b.grad, b.param, b.m, b.v };
    for (int x = 0; x < 4; x++)
        for (int y = 0; y < 4; y++)
            if ((x || y) && overlap(of_a[x], a.n, of_b[y], b.n))
                return qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT,
                                     "arrays[%" PRId64 "].%s overlaps arrays[%" PRId64 "].%s", i,
                                     names[x], j, names[y]);
    return QKV_OK;
}

static qkv_status check(qkv_ctx *ctx, adamw_call *c) {
    QKV_TRY(qkvi_call_size(ctx, "n_arrays", c->n_arrays, 0));
    if (c->n_arrays > 0 && !c->arrays)
        return qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "arrays is NULL");
    QKV_TRY(check_elements(ctx, c));
    for (int64_t i = 0; i < c->n_arrays; i++) {
        const qkv_adamw_array a = array_at(c, i);
        QKV_TRY(check_array(ctx, &a, i));
        for (int64_t j = 0; j < i; j++) QKV_TRY(check_apart(ctx, c, j, i));
        c->n_chunks += qkvi_adamw_chunks((size_t)a.n);
        if (c->n_chunks > QKVI_ADAMW_MAX_CHUNKS)
            return qkvi_ctx_fail(ctx, QKV_ERR_LIMIT, "the arrays have more than %d chunks",
                                 QKVI_ADAMW_MAX_CHUNKS);
    }
    return QKV_OK;
}

/* ---- The call -------------------------------------------------------------------------------- */

static void lay_out(void *argument, qkvi_cutter *cutter) {
    adamw_call *const c = argument;
    c->pointers = qkvi_cut(cutter, c->n_arrays, sizeof *c->pointers);
    c->adamw.chunks = qkvi_call_cut(cutter, c->n_chunks, sizeof *c->adamw.chunks);
    c->adamw.partial = qkvi_call_cut(cutter, c->n_chunks, sizeof *c->adamw.partial);
}

static qkv_status run(qkv_ctx *ctx, adamw_call *c, const qkv_adamw_options *options, int64_t step,
                      double *norm) {
    qkv_adamw_options o;
    QKV_TRY(read_options(ctx, options, step, &o));
    QKV_TRY(check(ctx, c));
    QKV_TRY(qkvi_call_memory(ctx, lay_out, c));
    c->adamw.beta1 = o.beta1;
    c->adamw.beta2 = o.beta2;
    c->adamw.eps = o.eps;
    c->adamw.weight_decay = o.weight_decay;
    c->adamw.clip = o.clip;
    for (int64_t i = 0; i < c->n_arrays; i++) {
        const qkv_adamw_array a = array_at(c, i);
        c->pointers[i] = (qkvi_adamw_arrays){ a.grad, a.param, a.m, a.v };
        qkvi_adamw_add(&c->adamw, i, 0, (size_t)a.n, a.decays != 0);
    }
    const double found = qkvi_adamw_update(ctx, &c->adamw, step, o.rate, c->pointers);
    if (norm) *norm = found;
    if (isfinite(found)) return QKV_OK;
    return qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT,
                         "the norm of the gradients is not finite: nothing is changed");
}

qkv_status qkv_adamw_step(qkv_ctx *ctx, const qkv_adamw_options *options, int64_t step,
                          int64_t n_arrays, const qkv_adamw_array *arrays, size_t array_bytes,
                          double *norm) {
    adamw_call c = { .n_arrays = n_arrays,
                     .arrays = (const char *)arrays,
                     .array_bytes = array_bytes };
    QKV_TRY(qkvi_ctx_begin(ctx));
    return qkvi_ctx_end(ctx, run(ctx, &c, options, step, norm));
}
