/* See jobs.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "dist/jobs.h"
#include "dist/ordered.h"

/* ---- Pieces ---------------------------------------------------------------------------------- */

static void shift(void *pointer, const int64_t stride[3], int64_t rows, int64_t bytes) {
    char **const x = pointer;
    if (*x) *x += rows * stride[2] * bytes;
}

qkv_attention_grads grads_piece_of(const backward_job *j, int rank, float *d_sinks) {
    const check_case *const c = j->c;
    const int64_t q = j->at.q[rank], k = j->at.k[rank];
    const int64_t bytes = (int64_t)element_bytes((elem_type)c->d.dtype);
    const int64_t o_bytes = (int64_t)element_bytes(output_element(&c->d, 'o'));
    qkv_attention_grads g = outputs_grads(c, j->x);
    g.d_mask = g.d_distance_bias = NULL;
    if (g.d_sinks) g.d_sinks = d_sinks;
    shift(&g.d_o, g.d_o_stride, q, o_bytes);
    shift(&g.d_lse, c->d.lse_stride, q, sizeof(float));
    shift(&g.d_q, g.d_q_stride, q, bytes);
    shift(&g.d_k, g.d_k_stride, k, bytes);
    shift(&g.d_v, g.d_v_stride, k, bytes);
    return g;
}

/* ---- Results --------------------------------------------------------------------------------- */

/* Rows [begin, end) of the n-th array of outputs. */
static int rows_differ(const backward_job *j, int rank, int n, char letter, const int64_t stride[3],
                       int64_t begin, int64_t end) {
    const qkv_attention_desc *const d = &j->c->d;
    const elem_type type = outputs_element(d, n);
    const int64_t bytes = (int64_t)element_bytes(type);
    int64_t size[4];
    layout_shape(d, letter, size);
    for (int64_t b = 0; b < size[0]; b++)
        for (int64_t h = 0; h < size[1]; h++)
            for (int64_t i = begin; i < end && (letter != 'q' || i < layout_queries(d, b)); i++) {
                const int64_t row = bytes * layout_place(d, letter, stride, b, h, i);
                const char *const x = (const char *)outputs_at(j->x, n)->data + row;
                const char *const y = (const char *)outputs_at(j->whole, n)->data + row;
                const int64_t e = first_difference_of(type, x, y, (size_t)size[3]);
                if (e < 0) continue;
                fprintf(stderr,
                        "rank %d of %d: %s[%" PRId64 "][%" PRId64 "][%" PRId64 "][%" PRId64
                        "] is %.9g, in one process %.9g\n%s\n",
                        rank, j->at.size, check_bound_names[n], b, h, i, e, element_get(x, type, e),
                        element_get(y, type, e), j->c->text);
                return 1;
            }
    return 0;
}

int grads_differ(const backward_job *j, int rank, const float *d_sinks) {
    const check_case *const c = j->c;
    const int64_t *const q = j->at.q + rank, *const k = j->at.k + rank;
    if (rows_differ(j, rank, BOUND_D_Q, 'q', c->d_q_stride, q[0], q[1]) ||
        rows_differ(j, rank, BOUND_D_K, 'k', c->d_k_stride, k[0], k[1]) ||
        rows_differ(j, rank, BOUND_D_V, 'v', c->d_v_stride, k[0], k[1]))
        return 1;
    if (!(c->d.flags & QKV_SET_SINKS)) return 0;
    const int64_t h = first_difference(d_sinks, j->whole->d_sinks.data, (size_t)c->d.n_heads);
    if (h >= 0) fprintf(stderr, "rank %d: d_sinks[%" PRId64 "] differs\n%s\n", rank, h, c->text);
    return h >= 0;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static qkv_ctx *context(const char *isa, int n_threads) {
    qkv_ctx *ctx = NULL;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.isa = isa;
    options.n_threads = n_threads;
    if (qkv_ctx_create(&options, &ctx, NULL) != QKV_OK) abort();
    return ctx;
}

int backward_job_of_rank(qkvi_transport *t, void *user) {
    const backward_job *const j = user;
    const piece p = piece_of(j->c, j->whole, &j->at, t->rank);
    float *const d_sinks = calloc((size_t)j->c->d.n_heads + 1, sizeof *d_sinks);
    const qkv_attention_grads grads = grads_piece_of(j, t->rank, d_sinks);
    qkvi_backward_call call = { .q = p.a.q, .k = p.a.k, .v = p.a.v, .o = p.a.o, .lse = p.a.lse };
    qkvi_group *const group = qkvi_group_new(t);
    qkv_ctx *const ctx = context(j->isa, j->n_threads);
    if (!group || !d_sinks) abort();
    call.grads = &grads;
    group->chunk_keys = j->chunk_keys;
    const qkv_status status = qkvi_ordered_backward(group, ctx, &p.d, &call);
    if (status != QKV_OK)
        fprintf(stderr, "rank %d: %s\n%s\n", t->rank, group->error.message, j->c->text);
    const int failed = status != QKV_OK || grads_differ(j, t->rank, d_sinks);
    free(d_sinks);
    qkvi_group_free(group);
    qkv_ctx_free(ctx);
    return failed;
}

outputs both_in_one_process(const check_case *c) {
    outputs x = outputs_new(c);
    qkv_ctx *const ctx = context(NULL, 1);
    qkv_attention_grads grads = outputs_grads(c, &x);
    grads.d_mask = grads.d_distance_bias = NULL;
    qkv_status status = qkv_attention_forward(ctx, &c->d, c->q.data, c->k.data, c->v.data, x.o.data,
                                              x.lse.data, NULL);
    if (status == QKV_OK)
        status = qkv_attention_backward(ctx, &c->d, c->q.data, c->k.data, c->v.data, x.o.data,
                                        x.lse.data, &grads, NULL);
    if (status != QKV_OK) {
        fprintf(stderr, "%s\n%s\n", qkv_ctx_message(ctx), c->text);
        exit(1);
    }
    qkv_ctx_free(ctx);
    return x;
}
