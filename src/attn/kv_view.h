/**
 * A checked view of stored keys and values: sizes fit, arrays lie in the address space, and every
 * page that a query may look into exists. kernels/decode.h has the layout.
 */
#ifndef QKVI_ATTN_KV_VIEW_H
#define QKVI_ATTN_KV_VIEW_H

#include "attn/arrays.h"
#include "attn/desc.h"
#include "kernels/decode.h"
#include "qkv/kv.h"

typedef struct qkvi_kv {
    qkvi_storage storage;
    int64_t elem_bytes;
    const char *k, *v;
    int64_t k_stride[3], v_stride[3]; /* batch or page, head, token */
    qkvi_kv_place place;              /* pages: of batch 0 */
    int64_t end;                      /* tokens [place.first, end) are here */
    int64_t pages_stride, row_pages, n_pages;
    const int64_t *first;           /* nullable */
    const float *k_scale, *v_scale; /* QKVI_STORE_I8 */
    int64_t k_scale_stride[3], v_scale_stride[3];
} qkvi_kv;

/** Bytes of an element of K or V. */
static inline int64_t qkvi_storage_bytes(qkv_dtype dtype) {
    return dtype == QKV_F32 ? 4 : dtype == QKV_I8 ? 1 : 2;
}

/** The caller's view, its arrays added to `all`. Pages are not looked at. */
QKV_NODISCARD qkv_status qkvi_kv_read(const qkv_kv_view *view, const qkvi_problem *problem,
                                      qkvi_arrays *all, qkvi_kv *kv, qkv_error *error);

/** After the arrays: pages of all keys that some query may see by position, and `first`. */
QKV_NODISCARD qkv_status qkvi_kv_check(const qkvi_kv *kv, const qkvi_problem *problem,
                                       qkv_error *error);

/** Rows of key/value head g of batch b, and where they lie. */
void qkvi_kv_rows_of(const qkvi_kv *kv, int64_t b, int64_t g, qkvi_kv_rows *k, qkvi_kv_rows *v,
                     qkvi_kv_place *place);

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

/** K, then V, of a token outside of rings, as they are stored; for QKV_I8 the scales of both. */
void qkvi_kv_copy(const qkvi_kv *kv, const qkvi_problem *problem, int64_t b, int64_t g, int64_t j,
                  char *to, float scales[2]);

#pragma GCC visibility pop

/** A call of qkv_attention_decode: the problem's k and v stay NULL. */
QKV_NODISCARD qkv_status qkvi_problem_decode(const qkv_attention_desc *desc, const void *q,
                                             const qkv_kv_view *view, void *o, float *lse,
                                             const qkv_call_options *call, qkvi_problem *problem,
                                             qkvi_kv *kv, qkv_error *error);

/** Shapes and rules only, for the workspace query. */
QKV_NODISCARD qkv_status qkvi_problem_decode_shape(const qkv_attention_desc *desc,
                                                   qkvi_problem *problem, qkv_error *error);

#endif
