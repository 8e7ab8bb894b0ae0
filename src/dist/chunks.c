/* See chunks.h. */
#include "dist/chunks.h"

#include <string.h>

#include "attn/sequence.h"
#include "kernels/attend.h"

enum { MOST_KEYS = 4096 };

/* Elements of K and V of a key and head. */
static int64_t elements(const qkvi_problem *p) { return p->head_dim + p->head_dim_v; }

int64_t qkvi_chunks_row_bytes(const qkvi_problem *p) {
    return p->n_batch * p->n_kv_heads * elements(p) * qkvi_dtype_bytes(p->dtype);
}

void qkvi_chunks_pack(const qkvi_problem *p, int64_t begin, int64_t end, char *to) {
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

static void pack(const void *user, int64_t turn, int64_t begin, int64_t end, char *to) {
    (void)turn;
    qkvi_chunks_pack(((const qkvi_chunks *)user)->p, begin, end, to);
}

void qkvi_chunks_take(qkvi_problem *p, const char *rows, int64_t first) {
    const int64_t stride[3] = { p->n_kv_heads * elements(p), elements(p),
                                p->n_batch * p->n_kv_heads * elements(p) };
    memcpy(p->k_stride, stride, sizeof stride);
    memcpy(p->v_stride, stride, sizeof stride);
    p->k = rows;
    p->v = qkvi_elem(rows, p->dtype, p->head_dim);
    p->first_k = first;
}

void qkvi_chunks_init(qkvi_chunks *c, qkvi_group *group, const qkvi_problem *p) {
    const int64_t row = qkvi_chunks_row_bytes(p);
    c->p = p;
    c->stream = (qkvi_stream){ .group = group,
                               .first = group->first_k,
                               .n_rows = qkvi_stream_rows(group, row, QKVI_KEY_BLOCK, MOST_KEYS),
                               .n_first = QKVI_KEY_BLOCK,
                               .row_bytes = row,
                               .n_turns = 1,
                               .pack = pack,
                               .user = c };
    qkvi_stream_init(&c->stream);
}

qkv_status qkvi_chunks_next(qkvi_chunks *c, int64_t n, qkvi_problem *p) {
    const char *rows;
    QKV_TRY(qkvi_stream_next(&c->stream, n, &rows));
    qkvi_chunks_take(p, rows, qkvi_stream_begin(&c->stream, n));
    return QKV_OK;
}
