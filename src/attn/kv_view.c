/* See kv_view.h. */
#include "attn/kv_view.h"

#include <inttypes.h>
#include <string.h>

#include "attn/mask.h"
#include "core/options.h"

static qkv_status check_multiple(const char *name, int64_t value, int64_t of, qkv_error *e) {
    if (value < 0 || value > QKVI_MAX_SIZE || value % of)
        return qkvi_error_set(e, QKV_ERR_SHAPE,
                              "%s = %" PRId64 " is not a multiple of %" PRId64 " in [0, %" PRId64
                              "]",
                              name, value, of, QKVI_MAX_SIZE);
    return QKV_OK;
}

static qkv_status check_sizes(const qkv_kv_view *view, qkv_error *e) {
    if ((int)view->dtype < QKV_F32 || view->dtype > QKV_I8)
        return qkvi_error_set(e, QKV_ERR_DTYPE,
                              "view.dtype = %d is none of QKV_F32, QKV_BF16, QKV_F16, QKV_I8",
                              (int)view->dtype);
    QKV_TRY(check_multiple("view.page_len", view->page_len, QKVI_DECODE_GROUP, e));
    QKV_TRY(check_multiple("view.ring_len", view->ring_len,
                           view->page_len ? view->page_len : QKVI_DECODE_GROUP, e));
    if (view->page_len && (view->n_pages < 0 || view->n_pages > INT32_MAX))
        return qkvi_error_set(e, QKV_ERR_SHAPE,
                              "view.n_pages = %" PRId64 " is not in [0, %" PRId64 "]",
                              view->n_pages, (int64_t)INT32_MAX);
    if (view->page_len && (view->row_pages < 0 || view->row_pages > QKVI_MAX_SIZE))
        return qkvi_error_set(e, QKV_ERR_SHAPE,
                              "view.row_pages = %" PRId64 " is not in [0, %" PRId64 "]",
                              view->row_pages, QKVI_MAX_SIZE);
    return QKV_OK;
}

/* A stride that leads nowhere may be any number: it becomes 0 (see call_arrays.h). */
static void add_rows(qkvi_arrays *all, const char *name, const void *data, const int64_t size[4],
                     int64_t stride[3], int64_t elem_bytes) {
    qkvi_arrays_add(all, name, data, size, stride, false)->elem_bytes = elem_bytes;
    const bool empty = !size[0] || !size[1] || !size[2] || !size[3];
    for (int i = 0; i < 3; i++)
        if (empty || (size[i] == 1 && stride[i] > 0)) stride[i] = 0;
}

static void add_arrays(const qkvi_problem *p, qkvi_arrays *all, qkvi_kv *kv) {
    const int64_t b = p->n_batch, g = p->n_kv_heads, page = kv->place.page_len;
    const int64_t len = kv->place.ring_len ? kv->place.ring_len : p->len_k;
    const int64_t k[4] = { page ? kv->n_pages : b, g, page ? page : len, p->head_dim };
    const int64_t v[4] = { k[0], g, k[2], p->head_dim_v };
    add_rows(all, "view.k", kv->k, k, kv->k_stride, kv->elem_bytes);
    add_rows(all, "view.v", kv->v, v, kv->v_stride, kv->elem_bytes);
    if (kv->storage == QKVI_STORE_I8) {
        const int64_t scales[4] = { k[0], g, k[2], 1 };
        add_rows(all, "view.k_scale", kv->k_scale, scales, kv->k_scale_stride, sizeof(float));
        add_rows(all, "view.v_scale", kv->v_scale, scales, kv->v_scale_stride, sizeof(float));
    }
    if (page) {
        const int64_t all_pages = qkvi_ceil_div(len, page);
        if (!kv->row_pages || kv->row_pages > all_pages) kv->row_pages = all_pages;
        const int64_t size[4] = { b, 1, 1, kv->row_pages };
        const int64_t stride[3] = { kv->pages_stride, 0, 0 };
        qkvi_arrays_add(all, "view.pages", kv->place.pages, size, stride, false)->elem_bytes =
            sizeof *kv->place.pages;
    }
    if (kv->first) {
        const int64_t size[4] = { 1, 1, 1, b }, stride[3] = { 0 };
        qkvi_arrays_add(all, "view.first", kv->first, size, stride, false)->elem_bytes =
            sizeof *kv->first;
    }
}

qkv_status qkvi_kv_read(const qkv_kv_view *given, const qkvi_problem *p, qkvi_arrays *all,
                        qkvi_kv *kv, qkv_error *e) {
    qkv_kv_view copy = { 0 };
    const qkv_kv_view *view = &copy;
    if (!given) return qkvi_error_set(e, QKV_ERR_ARGUMENT, "view is NULL");
    QKV_TRY(qkvi_options_read(&copy, sizeof copy, given, "view", e));
    QKV_TRY(check_sizes(view, e));
    *kv = (qkvi_kv){
        .end = p->len_k,
        .storage = (qkvi_storage)view->dtype,
        .elem_bytes = qkvi_storage_bytes(view->dtype),
        .k = view->k,
        .v = view->v,
        .place = { .ring_len = view->ring_len,
                   .pages = view->page_len ? view->pages : NULL,
                   .page_len = view->page_len },
        .pages_stride = view->pages_stride,
        .row_pages = view->row_pages,
        .n_pages = view->n_pages,
        .first = view->first,
        .k_scale = view->k_scale,
        .v_scale = view->v_scale,
    };
    memcpy(kv->k_scale_stride, view->k_scale_stride, sizeof kv->k_scale_stride);
    memcpy(kv->v_scale_stride, view->v_scale_stride, sizeof kv->v_scale_stride);
    memcpy(kv->k_stride, view->k_stride, sizeof kv->k_stride);
    memcpy(kv->v_stride, view->v_stride, sizeof kv->v_stride);
    add_arrays(p, all, kv);
    return QKV_OK;
}

/* ---- Contents -------------------------------------------------------------------------------- */

/* The first token of batch b that is still there. */
static int64_t first_of(const qkvi_kv *kv, const qkvi_problem *p, int64_t b) {
    const int64_t len = p->kv_len ? p->kv_len[b] : p->len_k;
    const int64_t in_ring = kv->place.ring_len ? len - kv->place.ring_len : 0;
    const int64_t first = qkvi_max_i64(qkvi_max_i64(in_ring, kv->first ? kv->first[b] : 0), 0);
    return kv->place.first + first;
}

static qkv_status check_pages(const qkvi_kv *kv, int64_t b, qkvi_range keys, qkv_error *e) {
    const int64_t page = kv->place.page_len, n_ring = kv->place.ring_len / page;
    const int32_t *row = kv->place.pages + b * kv->pages_stride;
    int64_t from = (keys.begin - kv->place.first) / page;
    int64_t to = qkvi_ceil_div(keys.end - kv->place.first, page);
    if (n_ring && to - from >= n_ring) from = 0, to = n_ring;
    for (int64_t n = from; n < to; n++) {
        const int64_t at = n_ring ? n % n_ring : n;
        if (at >= kv->row_pages)
            return qkvi_error_set(e, QKV_ERR_SHAPE,
                                  "batch %" PRId64 " may see key %" PRId64 ", beyond the %" PRId64
                                  " pages of its row",
                                  b, keys.end - 1, kv->row_pages);
        if (row[at] < 0 || row[at] >= kv->n_pages)
            return qkvi_error_set(e, QKV_ERR_SHAPE,
                                  "view.pages[%" PRId64 "][%" PRId64 "] = %" PRId32
                                  " is not in [0, %" PRId64 ")",
                                  b, at, row[at], kv->n_pages);
    }
    return QKV_OK;
}

/* Batches that may differ. Without a list for each they are alike, and may be 2^48. */
static int64_t batches_to_check(const qkvi_kv *kv, const qkvi_problem *p) {
    const bool differ = p->kv_len || p->q_len || p->q_offsets || p->prefix_len || kv->first ||
                        (kv->place.page_len && kv->pages_stride != 0);
    if (p->n_heads == 0 || p->len_q == 0) return 0;
    return differ ? p->n_batch : qkvi_min_i64(p->n_batch, 1);
}

qkv_status qkvi_kv_check(const qkvi_kv *kv, const qkvi_problem *p, qkv_error *e) {
    const int64_t n_batch = batches_to_check(kv, p);
    for (int64_t b = 0; b < n_batch; b++) {
        const qkvi_rules rules = qkvi_rules_of(p, b);
        if (rules.n_queries <= 0) continue;
        const qkvi_range all = qkvi_keys_of_block(&rules, 0, rules.n_queries);
        const qkvi_range keys = { qkvi_max_i64(all.begin, kv->place.first),
                                  qkvi_min_i64(all.end, kv->end) };
        if (keys.begin >= keys.end) continue;
        const int64_t first = first_of(kv, p, b);
        if (keys.begin < first)
            return qkvi_error_set(e, QKV_ERR_SHAPE,
                                  "batch %" PRId64 " may see key %" PRId64 ", but its first one %s "
                                  "is %" PRId64,
                                  b, keys.begin,
                                  kv->place.ring_len ? "in the ring" : "that is there", first);
        if (kv->place.page_len) QKV_TRY(check_pages(kv, b, keys, e));
    }
    return QKV_OK;
}

/* ---- For the kernel -------------------------------------------------------------------------- */

static qkvi_kv_rows rows_of(const char *at, const int64_t stride[3], int64_t elem_bytes,
                            int64_t batch, int64_t g) {
    return (qkvi_kv_rows){ .at = at + (batch * stride[0] + g * stride[1]) * elem_bytes,
                           .row_bytes = stride[2] * elem_bytes,
                           .page_bytes = stride[0] * elem_bytes };
}

static void add_scales(qkvi_kv_rows *rows, const float *scale, const int64_t stride[3],
                       int64_t batch, int64_t g) {
    rows->scale = scale + batch * stride[0] + g * stride[1];
    rows->scale_row = stride[2];
    rows->scale_page = stride[0];
}

void qkvi_kv_rows_of(const qkvi_kv *kv, int64_t b, int64_t g, qkvi_kv_rows *k, qkvi_kv_rows *v,
                     qkvi_kv_place *place) {
    const int64_t batch = kv->place.page_len ? 0 : b;
    *k = rows_of(kv->k, kv->k_stride, kv->elem_bytes, batch, g);
    *v = rows_of(kv->v, kv->v_stride, kv->elem_bytes, batch, g);
    if (kv->storage == QKVI_STORE_I8) {
        add_scales(k, kv->k_scale, kv->k_scale_stride, batch, g);
        add_scales(v, kv->v_scale, kv->v_scale_stride, batch, g);
    }
    *place = kv->place;
    if (place->pages) place->pages += b * kv->pages_stride;
}

/* The row of token j, and the number of its scale. */
static const char *row_of(const qkvi_kv_place *place, const qkvi_kv_rows *rows, int64_t j,
                          int64_t *scale) {
    int64_t page = 0, token = j - place->first;
    if (place->pages) {
        page = place->pages[token / place->page_len];
        token %= place->page_len;
    }
    *scale = page * rows->scale_page + token * rows->scale_row;
    return rows->at + page * rows->page_bytes + token * rows->row_bytes;
}

void qkvi_kv_copy(const qkvi_kv *kv, const qkvi_problem *p, int64_t b, int64_t g, int64_t j,
                  char *to, float scales[2]) {
    const int64_t bytes[2] = { p->head_dim * kv->elem_bytes, p->head_dim_v * kv->elem_bytes };
    qkvi_kv_rows rows[2];
    qkvi_kv_place place;
    int64_t scale;
    qkvi_kv_rows_of(kv, b, g, &rows[0], &rows[1], &place);
    for (int n = 0; n < 2; to += bytes[n++]) {
        const char *const row = row_of(&place, &rows[n], j, &scale);
        if (bytes[n]) memcpy(to, row, (size_t)bytes[n]);
        if (rows[n].scale) scales[n] = rows[n].scale[scale];
    }
}

void qkv_kv_view_fill(qkv_kv_view *view, const qkv_attention_desc *desc, qkv_dtype dtype) {
    qkv_attention_desc d = { 0 };
    if (!view || !desc || qkvi_options_read(&d, sizeof d, desc, "desc", NULL) != QKV_OK) return;
    /* They may wrap for absurd sizes: the checks of a call find those. */
    const uint64_t heads = (uint64_t)d.n_kv_heads, len = (uint64_t)d.len_k;
    const uint64_t k = len * (uint64_t)d.head_dim, v = len * (uint64_t)d.head_dim_v;
    const qkv_kv_view made = {
        .dtype = dtype,
        .k_stride = { (int64_t)(heads * k), (int64_t)k, d.head_dim },
        .v_stride = { (int64_t)(heads * v), (int64_t)v, d.head_dim_v },
        .k_scale_stride = { (int64_t)(heads * len), d.len_k, 1 },
        .v_scale_stride = { (int64_t)(heads * len), d.len_k, 1 },
    };
    qkvi_options_write(view, &made, sizeof made);
}
