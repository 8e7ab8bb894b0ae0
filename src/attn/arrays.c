/*
 * Checks of the arrays of a call.
 *
 * Outputs are kept apart from everything by address ranges, with one refinement: arrays that
 * interleave under a common stride, like the q, k and v of a packed [token][3][head][channel]
 * buffer, are seen to be apart.
 */
#include "attn/arrays.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "core/alloc.h"

qkvi_array *qkvi_arrays_add(qkvi_arrays *all, const char *name, const void *data,
                            const int64_t size[4], const int64_t stride[3], bool output) {
    assert(all->count < QKVI_MAX_ARRAYS);
    qkvi_array *a = &all->list[all->count++];
    *a = (qkvi_array){ .name = name,
                       .data = data,
                       .elem_bytes = sizeof(float),
                       .output = output,
                       .role = "an output" };
    memcpy(a->size, size, sizeof a->size);
    memcpy(a->stride, stride, 3 * sizeof *stride);
    a->stride[3] = 1;
    return a;
}

void qkvi_arrays_add_scratch(qkvi_arrays *all, const char *name, const void *data, int64_t bytes) {
    const int64_t size[4] = { 1, 1, 1, bytes }, stride[3] = { bytes, bytes, bytes };
    qkvi_array *a = qkvi_arrays_add(all, name, data, size, stride, true);
    a->elem_bytes = 1;
    a->role = "scratch memory";
}

static bool is_empty(const qkvi_array *a) {
    return !a->size[0] || !a->size[1] || !a->size[2] || !a->size[3];
}

/* For messages, as two strings. */
#define STRIDES(a) (a)->strides ? (a)->strides : (a)->name, (a)->strides ? "" : "_stride"

static qkv_status check_strides(qkvi_array *a, qkv_error *e) {
    for (int i = 0; i < 4; i++)
        if (a->stride[i] < 0)
            return qkvi_error_set(e, QKV_ERR_STRIDE, "%s%s[%d] = %" PRId64 " is negative",
                                  STRIDES(a), i, a->stride[i]);
    a->span_bytes = 0;
    if (is_empty(a)) return QKV_OK;
    int64_t last = 1; /* elements up to the end of the last one */
    for (int i = 3; i >= 0; i--) {
        int64_t step;
        if (!qkvi_mul_i64(a->size[i] - 1, a->stride[i], &step) ||
            !qkvi_add_i64(last, step, &last) || last > QKVI_MAX_SPAN / a->elem_bytes)
            return qkvi_error_set(e, QKV_ERR_STRIDE,
                                  "%s%s[%d] = %" PRId64 " times %" PRId64
                                  " overflows the address space",
                                  STRIDES(a), i, a->stride[i], a->size[i] - 1);
    }
    a->span_bytes = last * a->elem_bytes;
    return QKV_OK;
}

/*
 * Rows of outputs are apart if each dimension, from the closest to the widest, steps over all that
 * lies inside it.
 */
static qkv_status check_rows_apart(const qkvi_array *a, qkv_error *e) {
    bool used[4] = { false };
    int64_t inner = 1;
    for (int n = 0; n < 4; n++) {
        int best = -1;
        for (int i = 3; i >= 0; i--)
            if (!used[i] && (best < 0 || a->stride[i] < a->stride[best])) best = i;
        used[best] = true;
        if (a->size[best] > 1 && a->stride[best] < inner)
            return qkvi_error_set(e, QKV_ERR_STRIDE,
                                  "%s%s[%d] = %" PRId64 " is less than %" PRId64
                                  ", the elements that it steps over: rows would overlap",
                                  STRIDES(a), best, a->stride[best], inner);
        inner += (a->size[best] - 1) * a->stride[best];
    }
    return QKV_OK;
}

static qkv_status check_pointer(const qkvi_array *a, qkv_error *e) {
    if (!a->span_bytes) return QKV_OK;
    if (!a->data)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT,
                              "%s is NULL, but has the shape [%" PRId64 "][%" PRId64 "][%" PRId64
                              "][%" PRId64 "]",
                              a->name, a->size[0], a->size[1], a->size[2], a->size[3]);
    if ((uintptr_t)a->data % (uintptr_t)a->elem_bytes)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT,
                              "%s is not aligned to its element, %" PRId64 " bytes", a->name,
                              a->elem_bytes);
    if ((uintptr_t)a->data > UINTPTR_MAX - (uintptr_t)a->span_bytes)
        return qkvi_error_set(e, QKV_ERR_STRIDE,
                              "%s spans %" PRId64 " bytes, past the end of the address space",
                              a->name, a->span_bytes);
    return QKV_OK;
}

/*
 * How far the elements of a reach inside one period, the other strides being multiples of it; -1 if
 * more than a period.
 */
static int64_t reach(const qkvi_array *a, int64_t period_bytes) {
    int64_t bytes = a->elem_bytes;
    for (int i = 0; i < 4; i++) {
        if (a->size[i] < 2) continue;
        const int64_t step = a->stride[i] * a->elem_bytes; /* fits, because the span does */
        if (step % period_bytes) bytes += (a->size[i] - 1) * step;
    }
    return bytes <= period_bytes ? bytes : -1;
}

/*
 * Do a and b keep to different parts of a common period? Enough for packed layouts; false when in
 * doubt.
 */
static bool interleave(const qkvi_array *a, const qkvi_array *b) {
    for (int i = 0; i < 4; i++) {
        if (a->size[i] < 2 || !a->stride[i]) continue;
        const int64_t period = a->stride[i] * a->elem_bytes;
        const int64_t reach_a = reach(a, period), reach_b = reach(b, period);
        if (reach_a < 0 || reach_b < 0) continue;
        const uintptr_t from = (uintptr_t)a->data % (uintptr_t)period;
        const uintptr_t to = (uintptr_t)b->data % (uintptr_t)period;
        const uintptr_t wrap = to >= from ? 0 : (uintptr_t)period;
        const int64_t ahead = (int64_t)(to + wrap - from); /* from a's first element to b's */
        if (ahead >= reach_a && ahead + reach_b <= period) return true;
    }
    return false;
}

static bool overlap(const qkvi_array *a, const qkvi_array *b) {
    if (!a->span_bytes || !b->span_bytes) return false;
    const uintptr_t a0 = (uintptr_t)a->data, b0 = (uintptr_t)b->data;
    if (a0 + (uintptr_t)a->span_bytes <= b0 || b0 + (uintptr_t)b->span_bytes <= a0) return false;
    return !interleave(a, b);
}

qkv_status qkvi_arrays_check(qkvi_arrays *all, bool pointers, qkv_error *e) {
    for (int i = 0; i < all->count; i++) {
        qkvi_array *a = &all->list[i];
        QKV_TRY(check_strides(a, e));
        if (a->output && !is_empty(a)) QKV_TRY(check_rows_apart(a, e));
        if (pointers) QKV_TRY(check_pointer(a, e));
    }
    if (!pointers) return QKV_OK;
    for (int i = 0; i < all->count; i++)
        for (int j = 0; j < all->count; j++) {
            const qkvi_array *a = &all->list[i], *b = &all->list[j];
            const bool twins = b->twin == a->data && b->data == a->data;
            if (a->output && i != j && !twins && overlap(a, b))
                return qkvi_error_set(e, QKV_ERR_ARGUMENT, "%s, %s, overlaps %s", a->name, a->role,
                                      b->name);
        }
    return QKV_OK;
}
