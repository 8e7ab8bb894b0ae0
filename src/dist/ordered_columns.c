/*
 * Scheme "ordered" of the pass over columns: queries and their lse are streamed, one query head of
 * each group after the other, and each rank sums the weights of its own keys, in the order of one
 * process.
 */
#include "dist/ordered.h"
#include "dist/query_chunks.h"

typedef struct pass {
    qkvi_group *group;
    qkv_ctx *ctx;
    qkvi_columns_problem x; /* with the arrays of this rank */
    qkvi_query_chunks queries;
    qkvi_columns_sums sums;
    void *workspace; /* of a part */
    size_t workspace_bytes;
} pass;

static void lay_out(void *user, qkvi_cutter *cutter) {
    pass *const x = user;
    qkvi_query_chunks_lay_out(&x->queries, cutter);
    qkvi_columns_sums_lay_out(&x->x.p, x->x.p.first_k, x->x.p.first_k + x->x.rows_k, cutter,
                              &x->sums);
    x->workspace = qkvi_cut(cutter, (int64_t)x->workspace_bytes, 1);
}

/* A part has queries of a chunk, which lie elsewhere than those of this rank. */
static qkv_status reserve(pass *x) {
    qkvi_problem part = x->x.p;
    part.len_q = x->queries.stream.n_rows;
    qkvi_query_rows_place(&x->queries.rows, &part);
    QKV_TRY(qkvi_columns_part_workspace(x->ctx, &part, &x->workspace_bytes));
    return qkvi_call_reserve(x->ctx, lay_out, x);
}

/* A chunk of queries against the keys of this rank. g has their weights. */
static qkv_status add_queries(pass *x, const qkvi_problem *p, const qkvi_grads *g) {
    const bool weighs = x->queries.rows.weights;
    const qkvi_columns_part part = { .p = p,
                                     .weights = weighs ? g->delta : NULL,
                                     .weights_stride = g->delta_stride,
                                     .sums = &x->sums,
                                     .all = x->x.all,
                                     .tiny = x->x.want.tiny };
    qkv_call_options call = qkv_call_options_init();
    call.workspace = x->workspace;
    call.workspace_bytes = x->workspace_bytes;
    call.progress = qkvi_stream_poll;
    call.progress_user = &x->queries.stream;
    return qkvi_columns_run_part(x->ctx, &part, &call);
}

/* Without a query there is still something to write. */
static qkv_status walk(pass *x) {
    qkvi_stream *const stream = &x->queries.stream;
    qkv_status status = QKV_OK;
    qkvi_columns_begin_counts(&x->x);
    qkvi_stream_start(stream);
    for (int64_t turn = 0; turn < stream->n_turns; turn++) {
        qkvi_columns_sums_begin(&x->sums);
        for (int64_t n = 0; n < stream->count; n++) {
            qkvi_problem p;
            qkvi_grads g;
            QKV_TRY(qkvi_query_chunks_next(&x->queries, turn * stream->count + n, &p, &g));
            if (status == QKV_OK) status = add_queries(x, &p, &g);
        }
        if (status == QKV_OK) qkvi_columns_store(x->ctx, &x->x, &x->sums, turn);
    }
    return status;
}

static qkv_status columns(pass *x, qkv_status status, const qkv_attention_desc *desc,
                          const qkvi_dist_arrays *arrays, const qkv_attention_columns *given) {
    int mask_dims;
    QKV_TRY(
        qkvi_call_open_columns(x->group, x->ctx, status, desc, arrays, given, &x->x, &mask_dims));
    x->queries.rows.weights = x->x.want.row_weights;
    x->queries.rows.weights_stride = x->x.want.row_weights_stride;
    qkvi_query_chunks_init(&x->queries, x->group, &x->x.p, mask_dims);
    QKV_TRY(qkvi_group_agree(x->group, qkvi_group_from_ctx(x->group, x->ctx, reserve(x))));
    return qkvi_group_agree(x->group, qkvi_group_from_ctx(x->group, x->ctx, walk(x)));
}

qkv_status qkvi_ordered_columns(qkvi_group *group, qkv_ctx *ctx, const qkv_attention_desc *desc,
                                const qkvi_dist_arrays *arrays,
                                const qkv_attention_columns *given) {
    pass x = { .group = group, .ctx = ctx };
    const qkv_status begun = qkvi_call_begin(group, ctx);
    return qkvi_call_end(group, ctx, begun, columns(&x, begun, desc, arrays, given));
}
