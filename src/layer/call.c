/* Checks of the calls of qkv/layers.h: see call.h. */
#include "layer/call.h"

#include <inttypes.h>
#include <math.h>

qkv_status qkvi_call_size(qkv_ctx *ctx, const char *name, int64_t value, int64_t least) {
    if (value < least)
        return qkvi_ctx_fail(ctx, QKV_ERR_SHAPE, "%s = %" PRId64 " is less than %" PRId64, name,
                             value, least);
    if (value > INT32_MAX)
        return qkvi_ctx_fail(ctx, QKV_ERR_LIMIT, "%s = %" PRId64 " is greater than %" PRId32, name,
                             value, INT32_MAX);
    return QKV_OK;
}

qkv_status qkvi_call_rows(qkv_ctx *ctx, int64_t n_rows, int64_t n) {
    QKV_TRY(qkvi_call_size(ctx, "n_rows", n_rows, 0));
    return qkvi_call_size(ctx, "n", n, 1);
}

qkv_status qkvi_call_number(qkv_ctx *ctx, const char *name, double value) {
    if (isfinite(value) && value >= 0) return QKV_OK;
    return qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "%s = %g is not a finite number of at least 0",
                         name, value);
}

static qkvi_array *add(qkvi_arrays *all, const char *name, const void *data, int64_t n_rows,
                       int64_t n, bool output) {
    const int64_t size[4] = { 1, 1, n_rows, n }, stride[3] = { 0, 0, n };
    return qkvi_arrays_add(all, name, data, size, stride, output);
}

qkvi_array *qkvi_call_input(qkvi_arrays *all, const char *name, const void *data, int64_t n_rows,
                            int64_t n) {
    return add(all, name, data, n_rows, n, false);
}

qkvi_array *qkvi_call_output(qkvi_arrays *all, const char *name, const void *data, int64_t n_rows,
                             int64_t n) {
    return add(all, name, data, n_rows, n, true);
}

qkv_status qkvi_call_arrays(qkv_ctx *ctx, qkvi_arrays *all) {
    for (int i = 0; i < all->count; i++) {
        const qkvi_array *const a = &all->list[i];
        int64_t elems;
        if (!qkvi_mul_i64(a->size[2], a->size[3], &elems) || elems > QKVI_MAX_SPAN / a->elem_bytes)
            return qkvi_ctx_fail(ctx, QKV_ERR_LIMIT,
                                 "%s [%" PRId64 "][%" PRId64 "] does not fit the address space",
                                 a->name, a->size[2], a->size[3]);
    }
    return qkvi_arrays_check(all, true, &ctx->error);
}

qkv_status qkvi_call_memory(qkv_ctx *ctx, void (*lay_out)(void *argument, qkvi_cutter *cutter),
                            void *argument) {
    qkvi_cutter cutter = { 0 };
    size_t bytes;
    void *block;
    lay_out(argument, &cutter);
    QKV_TRY(qkvi_ctx_measured(ctx, &cutter, &bytes));
    if (bytes == 0) return QKV_OK;
    QKV_TRY(qkvi_ctx_workspace(ctx, NULL, bytes, &block));
    cutter = qkvi_cutter_on(block);
    lay_out(argument, &cutter);
    return QKV_OK;
}
