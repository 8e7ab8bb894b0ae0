/* See chunks.h. */
#include "dist/chunks.h"

#include <string.h>

#include "attn/sequence.h"
#include "kernels/attend.h"

enum {
    MOST_BYTES = 8 << 20, /* of a chunk: long enough for the bandwidth of a network */
    MOST_KEYS = 4096      /* of a chunk: what is packed at a time */
};

static int64_t elements(const qkvi_problem *p) { return p->head_dim + p->head_dim_v; }

int64_t qkvi_chunk_end(const qkvi_chunks *c, int64_t n) {
    return qkvi_min_i64((n + 1) * c->n_keys, c->p->len_k);
}

static int64_t choose_keys(const qkvi_chunks *c) {
    const int64_t fit = MOST_BYTES / qkvi_max_i64(c->row_bytes, 1);
    const int64_t keys = qkvi_max_i64(qkvi_min_i64(fit, MOST_KEYS), QKVI_KEY_BLOCK);
    if (c->group->chunk_keys) return c->group->chunk_keys;
    return keys / QKVI_KEY_BLOCK * QKVI_KEY_BLOCK;
}

void qkvi_chunks_init(qkvi_chunks *c, qkvi_group *group, const qkvi_problem *p) {
    *c = (qkvi_chunks){ .group = group, .p = p, .under_way = -1 };
    c->row_bytes = p->n_batch * p->n_kv_heads * elements(p) * qkvi_dtype_bytes(p->dtype);
    c->n_keys = choose_keys(c);
    c->count = qkvi_ceil_div(p->len_k, c->n_keys);
}

void qkvi_chunks_lay_out(qkvi_chunks *c, qkvi_cutter *cutter) {
    const int64_t keys = qkvi_min_i64(c->n_keys, c->p->len_k);
    for (int n = 0; n < 2; n++) c->buffer[n] = qkvi_cut(cutter, keys, (size_t)c->row_bytes);
}

/* Keys [begin, end) of this rank, packed to `to`. */
static void pack(const qkvi_chunks *c, int64_t begin, int64_t end, char *to) {
    const qkvi_problem *const p = c->p;
    const size_t k_bytes = (size_t)(p->head_dim * qkvi_dtype_bytes(p->dtype));
    const size_t v_bytes = (size_t)(p->head_dim_v * qkvi_dtype_bytes(p->dtype));
    for (int64_t j = begin; j < end; j++)
        for (int64_t b = 0; b < p->n_batch; b++)
            for (int64_t g = 0; g < p->n_kv_heads; g++, to += k_bytes + v_bytes) {
                const int64_t k_at = qkvi_k_at(p, p->k_stride, b, g, j);
                const int64_t v_at = qkvi_k_at(p, p->v_stride, b, g, j);
                if (k_bytes) memcpy(to, qkvi_elem(p->k, p->dtype, k_at), k_bytes);
                if (v_bytes) memcpy(to + k_bytes, qkvi_elem(p->v, p->dtype, v_at), v_bytes);
            }
}

/* Every owner of keys of chunk n broadcasts them. */
static void start(qkvi_chunks *c, int64_t n) {
    qkvi_group *const group = c->group;
    qkvi_transport *const t = group->transport;
    const int half = (int)(n % 2);
    qkvi_request *const requests = group->requests + (size_t)half * (size_t)t->size;
    c->n_requests[half] = 0;
    c->under_way = n;
    for (int rank = 0; rank < t->size && c->status == QKV_OK; rank++) {
        const int64_t begin = qkvi_max_i64(qkvi_chunk_begin(c, n), group->first_k[rank]);
        const int64_t end = qkvi_min_i64(qkvi_chunk_end(c, n), group->first_k[rank + 1]);
        if (begin >= end) continue;
        char *const at = c->buffer[half] + (begin - qkvi_chunk_begin(c, n)) * c->row_bytes;
        if (rank == t->rank) pack(c, begin, end, at);
        c->status = t->ops->ibcast(t, at, (size_t)((end - begin) * c->row_bytes), rank,
                                   &requests[c->n_requests[half]], &group->error);
        if (c->status == QKV_OK) c->n_requests[half]++;
    }
}

void qkvi_chunks_start(qkvi_chunks *c) {
    if (c->count > 0) start(c, 0);
}

static qkvi_request *requests_of(const qkvi_chunks *c, int64_t n) {
    return c->group->requests + (size_t)(n % 2) * (size_t)c->group->transport->size;
}

qkv_status qkvi_chunks_next(qkvi_chunks *c, int64_t n, qkvi_problem *p) {
    const int64_t row = c->row_bytes / qkvi_dtype_bytes(p->dtype);
    const char *const buffer = c->buffer[n % 2];
    if (c->status == QKV_OK)
        c->status = qkvi_group_wait(c->group, requests_of(c, n), c->n_requests[n % 2]);
    c->under_way = -1;
    if (c->status != QKV_OK) return c->status;
    if (n + 1 < c->count) start(c, n + 1);
    const int64_t stride[3] = { p->n_kv_heads * elements(p), elements(p), row };
    memcpy(p->k_stride, stride, sizeof stride);
    memcpy(p->v_stride, stride, sizeof stride);
    p->k = buffer;
    p->v = qkvi_elem(buffer, p->dtype, p->head_dim);
    p->first_k = qkvi_chunk_begin(c, n);
    return c->status;
}

void qkvi_chunks_poll(void *user, int64_t done, int64_t total) {
    qkvi_chunks *const c = user;
    qkvi_transport *const t = c->group->transport;
    bool completed;
    (void)done, (void)total;
    if (c->under_way < 0 || c->status != QKV_OK) return;
    const int n = c->n_requests[c->under_way % 2];
    c->status = t->ops->test(t, requests_of(c, c->under_way), n, &completed, &c->group->error);
    if (c->status != QKV_OK) c->group->broken = true;
}
