/* See jobs.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/jobs.h"
#include "dist/ring.h"

/* ---- Zigzag: rows of two runs, gathered ------------------------------------------------------ */

/* Row i of a rank's arrays, in the sequence. */
static int64_t place(const ring_job *j, int rank, int64_t n, int64_t i) {
    const int64_t run = n / (2 * j->at.size);
    return i < run ? rank * run + i : (2 * j->at.size - 1 - rank) * run + i - run;
}

/*
 * Rows of an array, dense; back: from there to the array. Queries that q_len takes away are not
 * there.
 */
static void move_rows(const ring_job *j, int rank, char letter, void *data, const int64_t stride[3],
                      char *dense, bool back) {
    const qkv_attention_desc *const d = &j->c->d;
    const int64_t bytes = (int64_t)element_bytes(output_element(d, letter));
    int64_t size[4];
    layout_shape(d, letter, size);
    const size_t row = (size_t)(size[3] * bytes);
    for (int64_t b = 0; b < size[0]; b++)
        for (int64_t h = 0; h < size[1]; h++)
            for (int64_t i = 0; i < size[2] / j->at.size; i++, dense += row) {
                const int64_t at = place(j, rank, size[2], i);
                char *const x =
                    (char *)data + (b * stride[0] + h * stride[1] + at * stride[2]) * bytes;
                if (letter != 'k' && letter != 'v' && at >= layout_queries(d, b)) continue;
                if (row) memcpy(back ? x : dense, back ? dense : x, row);
            }
}

static void *room(const ring_job *j, char letter) {
    int64_t size[4];
    layout_shape(&j->c->d, letter, size);
    return calloc((size_t)(size[0] * size[1] * size[2] * size[3]) + 1, 4);
}

/* Rows of the mask, dense, and of seg_q. */
static void gather_mask(const ring_job *j, int rank, qkv_attention_desc *d, char **mask,
                        int32_t **seg) {
    const qkv_attention_desc *const w = &j->c->d;
    const size_t bytes = outputs_mask_bytes(w);
    const int64_t keys = w->mask_len_k ? w->mask_len_k : w->len_k, rows = d->len_q;
    const int64_t n = w->mask_type == QKV_MASK_BITS ? (keys + 7) / 8 : keys; /* elements */
    *mask = w->mask ? calloc((size_t)(w->n_batch * w->n_heads * rows * n) + 1, bytes) : NULL;
    *seg = w->seg_q ? calloc((size_t)(w->n_batch * rows) + 1, sizeof **seg) : NULL;
    for (int64_t b = 0; b < w->n_batch; b++)
        for (int64_t i = 0; i < rows; i++) {
            const int64_t at = place(j, rank, w->len_q, i);
            if (at >= layout_queries(w, b)) continue;
            if (*seg) (*seg)[b * rows + i] = w->seg_q[b * w->seg_q_stride + at];
            for (int64_t h = 0; *mask && h < w->n_heads; h++)
                for (int64_t key = 0; key < n; key++) {
                    const int64_t *const s = w->mask_stride;
                    const int64_t from = b * s[0] + h * s[1] + at * s[2] + key * s[3];
                    const int64_t to = ((b * w->n_heads + h) * rows + i) * n + key;
                    memcpy(*mask + to * (int64_t)bytes,
                           (const char *)w->mask + from * (int64_t)bytes, bytes);
                }
        }
    if (*mask) {
        d->mask = *mask;
        const int64_t stride[4] = { w->n_heads * rows * n, rows * n, n, 1 };
        memcpy(d->mask_stride, stride, sizeof stride);
    }
    if (*seg) {
        d->seg_q = *seg;
        d->seg_q_stride = rows;
    }
}

typedef qkv_status attention(void *user, const qkv_attention_desc *d, const qkvi_dist_arrays *a);

static void set_dense(int64_t stride[3], int64_t heads, int64_t rows, int64_t dim) {
    stride[0] = heads * rows * dim;
    stride[1] = rows * dim;
    stride[2] = dim;
}

static qkv_status zigzag(const ring_job *j, int rank, attention *call, void *user) {
    const qkv_attention_desc *const w = &j->c->d;
    qkv_attention_desc d = *w;
    char *const q = room(j, 'q'), *const k = room(j, 'k'), *const v = room(j, 'v');
    char *const o = room(j, 'o'), *const lse = room(j, 'l'), *mask;
    int32_t *seg;
    d.len_q /= j->at.size;
    d.len_k /= j->at.size;
    set_dense(d.q_stride, d.n_heads, d.len_q, d.head_dim);
    set_dense(d.k_stride, d.n_kv_heads, d.len_k, d.head_dim);
    set_dense(d.v_stride, d.n_kv_heads, d.len_k, d.head_dim_v);
    set_dense(d.o_stride, d.n_heads, d.len_q, d.head_dim_v);
    set_dense(d.lse_stride, d.n_heads, d.len_q, 1);
    gather_mask(j, rank, &d, &mask, &seg);
    move_rows(j, rank, 'q', j->c->q.data, w->q_stride, q, false);
    move_rows(j, rank, 'k', j->c->k.data, w->k_stride, k, false);
    move_rows(j, rank, 'v', j->c->v.data, w->v_stride, v, false);
    const qkvi_dist_arrays a = { q, k, v, o, (float *)(void *)lse };
    const qkv_status status = call(user, &d, &a);
    move_rows(j, rank, 'o', j->x->o.data, w->o_stride, o, true);
    move_rows(j, rank, 'l', j->x->lse.data, w->lse_stride, lse, true);
    void *const all[] = { q, k, v, o, lse, mask, seg };
    for (size_t n = 0; n < sizeof all / sizeof *all; n++) free(all[n]);
    return status;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

qkv_status ring_call(const ring_job *j, int rank, attention *call, void *user) {
    if (j->scheme == QKVI_SCHEME_ZIGZAG) return zigzag(j, rank, call, user);
    const piece p = piece_of(j->c, j->x, &j->at, rank);
    return call(user, &p.d, &p.a);
}

typedef struct caller {
    qkvi_group *group;
    qkv_ctx *ctx;
    qkvi_scheme scheme;
} caller;

static qkv_status forward(void *user, const qkv_attention_desc *d, const qkvi_dist_arrays *a) {
    const caller *const x = user;
    const qkvi_rates rates = { 1e9, 1e9, 0 };
    return qkvi_forward_by(x->group, x->ctx, x->scheme, &rates, NULL, d, a);
}

int ring_job_of_rank(qkvi_transport *t, void *user) {
    const ring_job *const j = user;
    qkv_ctx_options options = qkv_ctx_options_init();
    int64_t pairs = 0;
    caller x = { qkvi_group_new(t), NULL, j->scheme };
    options.isa = j->isa;
    options.n_threads = j->n_threads;
    if (!x.group || qkv_ctx_create(&options, &x.ctx, NULL) != QKV_OK) abort();
    x.group->pairs = &pairs;
    const qkv_status status = ring_call(j, t->rank, forward, &x);
    if (status != QKV_OK)
        fprintf(stderr, "rank %d: %s\n%s\n", t->rank, x.group->error.message, j->c->text);
    if (j->pairs) j->pairs[t->rank] = pairs;
    qkvi_group_free(x.group);
    qkv_ctx_free(x.ctx);
    if (status != QKV_OK || !j->whole) return status != QKV_OK;
    return piece_differs(j->c, j->x, j->whole, &j->at, t->rank);
}
