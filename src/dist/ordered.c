/* See ordered.h. */
#include "dist/ordered.h"

#include "attn/forward_part.h"
#include "dist/chunks.h"

/*
 * The rows of this rank. With a block mask they are two ranges: 32 rows from a multiple of 32 on
 * share a list of blocks, and the kernel counts from the first row of a range.
 */
typedef struct pass {
    qkvi_group *group;
    qkv_ctx *ctx;
    qkvi_problem whole; /* with the arrays of this rank */
    int n_ranges;
    qkvi_problem range[2];
    qkvi_forward_sums sums[2];
    qkvi_chunks chunks;
    void *workspace; /* of a part */
    size_t workspace_bytes;
} pass;

static void cut_ranges(pass *x) {
    const qkvi_problem *const p = &x->whole;
    int64_t head = 0;
    if (p->block_len) head = qkvi_min_i64(qkvi_round_up(p->first_q, 32) - p->first_q, p->len_q);
    if (head > 0) x->range[x->n_ranges++] = qkvi_problem_rows(p, 0, head);
    if (head < p->len_q) x->range[x->n_ranges++] = qkvi_problem_rows(p, head, p->len_q);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void lay_out(pass *x, qkvi_cutter *cutter) {
    for (int n = 0; n < x->n_ranges; n++)
        qkvi_forward_sums_lay_out(&x->range[n], cutter, &x->sums[n]);
    qkvi_stream_lay_out(&x->chunks.stream, cutter);
    x->workspace = qkvi_cut(cutter, (int64_t)x->workspace_bytes, 1);
}

/* All that the call needs, so that nothing fails for lack of memory once it communicates. */
static qkv_status reserve(pass *x) {
    const int64_t n_keys = qkvi_min_i64(x->chunks.stream.n_rows, x->whole.len_k);
    qkvi_cutter cutter = { 0 };
    void *block;
    for (int n = 0; n < x->n_ranges; n++) {
        size_t bytes;
        QKV_TRY(qkvi_forward_part_workspace(x->ctx, &x->range[n], n_keys, &bytes));
        if (bytes > x->workspace_bytes) x->workspace_bytes = bytes;
    }
    lay_out(x, &cutter);
    if (cutter.overflow) return qkvi_ctx_fail(x->ctx, QKV_ERR_MEMORY, "too many bytes to count");
    QKV_TRY(qkvi_ctx_workspace(x->ctx, NULL, cutter.used_bytes, &block));
    cutter = qkvi_cutter_on(block);
    lay_out(x, &cutter);
    return QKV_OK;
}

/* ---- The pass over all keys ------------------------------------------------------------------ */

static qkv_status attend(pass *x, qkvi_range keys, bool last) {
    qkv_call_options call = qkv_call_options_init();
    call.workspace = x->workspace;
    call.workspace_bytes = x->workspace_bytes;
    call.progress = qkvi_stream_poll;
    call.progress_user = &x->chunks.stream;
    for (int n = 0; n < x->n_ranges; n++) {
        const qkvi_forward_part part = {
            .begin = keys.begin,
            .end = keys.end,
            .last = last,
            .sums = x->sums[n],
        };
        QKV_TRY(qkvi_forward_run_part(x->ctx, &x->range[n], &part, &call));
    }
    return QKV_OK;
}

/* Without a key there is still something to write. */
static qkv_status walk(pass *x) {
    const qkvi_stream *const stream = &x->chunks.stream;
    qkv_status status = QKV_OK;
    qkvi_forward_parts_begin(&x->whole);
    for (int n = 0; n < x->n_ranges; n++) qkvi_forward_sums_begin(&x->sums[n]);
    if (stream->count == 0) return attend(x, (qkvi_range){ 0, 0 }, true);
    qkvi_stream_start(&x->chunks.stream);
    for (int64_t chunk = 0; chunk < stream->count; chunk++) {
        qkvi_problem keys = x->whole;
        QKV_TRY(qkvi_chunks_next(&x->chunks, chunk, &keys));
        for (int n = 0; n < x->n_ranges; n++) qkvi_problem_take_keys(&x->range[n], &keys);
        const qkvi_range range = { qkvi_stream_begin(stream, chunk),
                                   qkvi_stream_end(stream, chunk) };
        if (status == QKV_OK) status = attend(x, range, chunk + 1 == stream->count);
    }
    return status;
}

static qkv_status forward(pass *x, qkv_status status, const qkv_attention_desc *desc,
                          const qkvi_dist_arrays *arrays) {
    QKV_TRY(qkvi_call_open(x->group, x->ctx, status, desc, arrays, &x->whole));
    cut_ranges(x);
    qkvi_chunks_init(&x->chunks, x->group, &x->whole);
    QKV_TRY(qkvi_group_agree(x->group, qkvi_group_from_ctx(x->group, x->ctx, reserve(x))));
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
