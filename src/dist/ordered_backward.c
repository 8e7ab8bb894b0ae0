/*
 * Scheme "ordered" of backward, in two passes. In the first, keys and values are streamed, and each
 * rank sums d_q of its own queries over them. In the second, queries and gradients of o are
 * streamed, and each rank sums d_k and d_v of its own keys. Each sum is made on one rank, in the
 * order of one process.
 */
#include <math.h>
#include <string.h>

#include "attn/backward_part.h"
#include "attn/problem.h"
#include "dist/chunks.h"
#include "dist/ordered.h"
#include "dist/query_chunks.h"
#include "kernels/attend_bwd.h"

typedef struct pass {
    qkvi_group *group;
    qkv_ctx *ctx;
    qkvi_problem whole; /* with the arrays of this rank */
    qkvi_grads grads;
    qkvi_chunks keys;
    qkvi_query_chunks queries;
    float *delta, *d_q;
    qkvi_key_sums sums;
    float *sinks;          /* [head of a group][n_batch][n_kv_heads][blocks of 128 queries] */
    float *turn_sinks;     /* [n_kv_heads] */
    int64_t n_sink_blocks; /* of a head */
    void *workspace;       /* of a part */
    size_t workspace_bytes;
} pass;

/* ---- Memory ---------------------------------------------------------------------------------- */

static void lay_out(void *user, qkvi_cutter *cutter) {
    pass *const x = user;
    const qkvi_problem *const p = &x->whole;
    const int64_t rows = p->n_batch * p->n_heads * p->len_q;
    const bool sinks = x->grads.d_sinks != NULL;
    qkvi_stream_lay_out(&x->keys.stream, cutter);
    qkvi_query_chunks_lay_out(&x->queries, cutter);
    x->delta = qkvi_cut(cutter, rows, sizeof *x->delta);
    x->d_q = qkvi_cut(cutter, qkvi_max_i64(rows * p->head_dim, 1), sizeof *x->d_q);
    qkvi_key_sums_lay_out(p, p->first_k, x->group->first_k[x->group->transport->rank + 1], cutter,
                          &x->sums);
    x->sinks =
        qkvi_cut(cutter, sinks ? p->n_batch * p->n_heads * x->n_sink_blocks : 0, sizeof *x->sinks);
    x->turn_sinks = qkvi_cut(cutter, sinks ? p->n_kv_heads : 0, sizeof *x->turn_sinks);
    x->workspace = qkvi_cut(cutter, (int64_t)x->workspace_bytes, 1);
}

static qkv_status reserve(pass *x) {
    QKV_TRY(qkvi_backward_part_workspace(x->ctx, &x->whole, &x->workspace_bytes));
    return qkvi_call_reserve(x->ctx, lay_out, x);
}

/* ---- The passes ------------------------------------------------------------------------------ */

static qkv_status run_part(pass *x, const qkvi_backward_part *part, qkvi_stream *under_way) {
    qkv_call_options call = qkv_call_options_init();
    call.workspace = x->workspace;
    call.workspace_bytes = x->workspace_bytes;
    call.progress = qkvi_stream_poll;
    call.progress_user = under_way;
    return qkvi_backward_run_part(x->ctx, part, &call);
}

static void begin(pass *x) {
    const qkvi_problem *const p = &x->whole;
    const int64_t rows = p->n_batch * p->n_heads * p->len_q;
    if (rows * p->head_dim > 0) memset(x->d_q, 0, (size_t)(rows * p->head_dim) * sizeof *x->d_q);
    qkvi_key_sums_begin(&x->sums);
    qkvi_backward_part_deltas(x->ctx, p, &x->grads, x->delta);
    x->grads.delta = x->delta;
    x->grads.delta_stride[0] = p->n_heads * p->len_q;
    x->grads.delta_stride[1] = p->len_q;
    x->grads.delta_stride[2] = 1;
}

static qkv_status sum_d_q(pass *x) {
    qkvi_stream *const stream = &x->keys.stream;
    qkvi_problem p = x->whole;
    qkv_status status = QKV_OK;
    qkvi_stream_start(stream);
    for (int64_t n = 0; n < stream->count; n++) {
        QKV_TRY(qkvi_chunks_next(&x->keys, n, &p));
        const qkvi_backward_part part = { .p = &p,
                                          .g = &x->grads,
                                          .begin = qkvi_stream_begin(stream, n),
                                          .end = qkvi_stream_end(stream, n),
                                          .d_q = x->d_q };
        if (status == QKV_OK) status = run_part(x, &part, stream);
    }
    return status;
}

/* What the chunk's queries of one turn add to the gradient of the sinks, block by block. */
static void add_sinks(pass *x, const qkvi_problem *p, const qkvi_grads *g, int64_t turn) {
    const int64_t heads = p->n_batch * p->n_kv_heads;
    if (!x->grads.d_sinks) return;
    for (int64_t kv = 0; kv < p->n_kv_heads; kv++)
        x->turn_sinks[kv] = x->whole.sinks[kv * x->whole.heads_per_kv + turn];
    qkvi_backward_part_sinks(x->ctx, p, g, x->turn_sinks,
                             x->sinks + turn * heads * x->n_sink_blocks +
                                 p->first_q / QKVI_BWD_QUERIES,
                             x->n_sink_blocks);
}

static qkv_status sum_keys(pass *x) {
    qkvi_stream *const stream = &x->queries.stream;
    qkv_status status = QKV_OK;
    qkvi_stream_start(stream);
    for (int64_t n = 0; n < stream->count * stream->n_turns; n++) {
        qkvi_problem p;
        qkvi_grads g;
        QKV_TRY(qkvi_query_chunks_next(&x->queries, n, &p, &g));
        const qkvi_backward_part part = {
            .p = &p, .g = &g, .begin = x->sums.first, .end = x->sums.end, .sums = &x->sums
        };
        if (status == QKV_OK) status = run_part(x, &part, stream);
        add_sinks(x, &p, &g, n / stream->count);
    }
    return status;
}

/* ---- Results --------------------------------------------------------------------------------- */

/* Blocks in the order of batches, then of queries. */
static void store_sinks(const pass *x) {
    const qkvi_problem *const p = &x->whole;
    const int64_t all_q = x->group->first_q[x->group->transport->size];
    for (int64_t h = 0; x->grads.d_sinks && h < p->n_heads; h++) {
        const int64_t turn = h % p->heads_per_kv, kv = h / p->heads_per_kv;
        float sum = 0;
        for (int64_t b = 0; b < p->n_batch && p->sinks[h] != -INFINITY; b++) {
            const float *const blocks =
                x->sinks + ((turn * p->n_batch + b) * p->n_kv_heads + kv) * x->n_sink_blocks;
            const int64_t n = p->q_len ? qkvi_min_i64(p->q_len[b], all_q) : all_q;
            for (int64_t block = 0; block * QKVI_BWD_QUERIES < n; block++) sum += blocks[block];
        }
        x->grads.d_sinks[h] = sum;
    }
}

static qkv_status walk(pass *x) {
    begin(x);
    const qkv_status first = sum_d_q(x);
    if (x->group->broken) return first;
    const qkv_status second = sum_keys(x);
    if (x->group->broken) return second;
    if (first != QKV_OK || second != QKV_OK) return first != QKV_OK ? first : second;
    qkvi_backward_store_d_q(x->ctx, &x->whole, &x->grads, x->d_q);
    qkvi_backward_store_keys(x->ctx, &x->whole, &x->grads, &x->sums);
    store_sinks(x);
    return QKV_OK;
}

static qkv_status backward(pass *x, qkv_status status, const qkv_attention_desc *desc,
                           qkvi_backward_call *call) {
    int mask_dims;
    QKV_TRY(qkvi_call_open_backward(x->group, x->ctx, status, desc, call, &x->whole, &x->grads,
                                    &mask_dims));
    const int64_t all_q = x->group->first_q[x->group->transport->size];
    x->n_sink_blocks = qkvi_ceil_div(all_q, QKVI_BWD_QUERIES);
    qkvi_chunks_init(&x->keys, x->group, &x->whole);
    x->queries.rows.g = &x->grads;
    qkvi_query_chunks_init(&x->queries, x->group, &x->whole, mask_dims);
    QKV_TRY(qkvi_group_agree(x->group, qkvi_group_from_ctx(x->group, x->ctx, reserve(x))));
    return qkvi_group_agree(x->group, qkvi_group_from_ctx(x->group, x->ctx, walk(x)));
}

qkv_status qkvi_ordered_backward(qkvi_group *group, qkv_ctx *ctx, const qkv_attention_desc *desc,
                                 qkvi_backward_call *call) {
    pass x = { .group = group, .ctx = ctx };
    const qkv_status begun = qkvi_call_begin(group, ctx);
    return qkvi_call_end(group, ctx, begun, backward(&x, begun, desc, call));
}
