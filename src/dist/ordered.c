/* See ordered.h. */
#include "dist/ordered.h"

#include "dist/chunks.h"
#include "dist/forward_rows.h"

typedef struct pass {
    qkvi_group *group;
    qkv_ctx *ctx;
    qkvi_problem whole; /* with the arrays of this rank */
    qkvi_forward_rows rows;
    qkvi_chunks chunks;
} pass;

static void lay_out(void *user, qkvi_cutter *cutter) {
    qkvi_stream_lay_out(&((pass *)user)->chunks.stream, cutter);
}

/* Without a key there is still something to write. */
static qkv_status walk(pass *x) {
    const qkvi_stream *const stream = &x->chunks.stream;
    qkv_status status = QKV_OK;
    qkvi_forward_parts_begin(&x->whole);
    qkvi_forward_rows_begin(&x->rows);
    if (stream->count == 0)
        return qkvi_forward_rows_attend(&x->rows, &x->whole, (qkvi_range){ 0, 0 }, true);
    qkvi_stream_start(&x->chunks.stream);
    for (int64_t chunk = 0; chunk < stream->count; chunk++) {
        qkvi_problem keys = x->whole;
        QKV_TRY(qkvi_chunks_next(&x->chunks, chunk, &keys));
        const qkvi_range range = { qkvi_stream_begin(stream, chunk),
                                   qkvi_stream_end(stream, chunk) };
        if (status == QKV_OK)
            status = qkvi_forward_rows_attend(&x->rows, &keys, range, chunk + 1 == stream->count);
    }
    return status;
}

static qkv_status forward(pass *x, qkv_status status, const qkv_attention_desc *desc,
                          const qkvi_dist_arrays *arrays) {
    QKV_TRY(qkvi_call_open(x->group, x->ctx, status, desc, arrays, &x->whole));
    qkvi_chunks_init(&x->chunks, x->group, &x->whole);
    x->rows = (qkvi_forward_rows){ .ctx = x->ctx,
                                   .poll = qkvi_stream_poll,
                                   .poll_user = &x->chunks.stream };
    qkvi_forward_rows_add(&x->rows, &x->whole, 0, x->whole.len_q, x->whole.first_q);
    status = qkvi_forward_rows_reserve(
        &x->rows, qkvi_min_i64(x->chunks.stream.n_rows, x->whole.len_k), lay_out, x);
    QKV_TRY(qkvi_group_agree(x->group, qkvi_group_from_ctx(x->group, x->ctx, status)));
    return qkvi_group_agree(x->group, qkvi_group_from_ctx(x->group, x->ctx, walk(x)));
}

qkv_status qkvi_ordered_pass(qkvi_group *group, qkv_ctx *ctx, qkv_status status,
                             const qkv_attention_desc *desc, const qkvi_dist_arrays *arrays) {
    pass x = { .group = group, .ctx = ctx };
    return forward(&x, status, desc, arrays);
}

qkv_status qkvi_ordered_forward(qkvi_group *group, qkv_ctx *ctx, const qkv_attention_desc *desc,
                                const qkvi_dist_arrays *arrays) {
    const qkv_status begun = qkvi_call_begin(group, ctx);
    return qkvi_call_end(group, ctx, begun, qkvi_ordered_pass(group, ctx, begun, desc, arrays));
}
