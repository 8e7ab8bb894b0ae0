/* qkv.h, stats.h, columns.h: see nulls.h. */
#include <stdlib.h>

#include "null/nulls.h"
#include "qkv/columns.h"

enum { N = 3, D = 4 };
static qkv_attention_desc desc;
static qkv_attention_stats stats, part;
static qkv_attention_grads grads;
static qkv_attention_columns columns;
static float q[N * D], o[N * D], dq[N * D], dk[N * D], dv[N * D], lse[N], entropy[N], p[N * N];
static float received[N];

static const void *o_parts[] = { q };
static const float *lse_parts[] = { lse };
static const qkv_attention_stats *parts[] = { &part };
static const int64_t first_keys[] = { 0 };
static const qkv_call_options call_options = { .struct_size = sizeof call_options };

void null_core_begin(void) {
    null_must(qkv_ctx_create(NULL, &null_ctx, &null_error));
    qkv_attention_desc_contiguous(&desc, 1, 1, 1, N, N, D, D);
    qkv_attention_grads_contiguous(&grads, &desc);
    grads.d_o = q, grads.d_q = dq, grads.d_k = dk, grads.d_v = dv;
    qkv_attention_stats_contiguous(&stats, &desc);
    part = stats;
    part.entropy = entropy;
    static float joined[N];
    stats.entropy = joined;
    qkv_attention_columns_contiguous(&columns, &desc);
    columns.received = received;
    null_must(qkv_attention_forward(null_ctx, &desc, q, q, q, o, lse, NULL));
}

/* QKV_ERR_ARGUMENT for nothing. */
static qkv_status some(int is_there) { return is_there ? QKV_OK : QKV_ERR_ARGUMENT; }

static qkv_status ctx_create(void) {
    const qkv_ctx_options options = qkv_ctx_options_init();
    qkv_ctx *ctx = NULL;
    return qkv_ctx_create(P(0, &options), P(1, &ctx), P(2, &null_error));
}
static qkv_status ctx_free(void) {
    qkv_ctx *ctx;
    null_must(qkv_ctx_create(NULL, &ctx, NULL));
    qkv_ctx_free(P(0, ctx));
    return QKV_OK;
}
static qkv_status ctx_message(void) { return some(qkv_ctx_message(P(0, null_ctx)) != NULL); }
static qkv_status ctx_isa(void) { return some(qkv_ctx_isa(P(0, null_ctx))[0]); }
static qkv_status ctx_threads(void) { return some(qkv_ctx_threads(P(0, null_ctx)) > 0); }

static qkv_status desc_contiguous(void) {
    qkv_attention_desc own = { .struct_size = sizeof own };
    qkv_attention_desc_fill(P(0, &own), 1, 1, 1, N, N, D, D);
    return QKV_OK;
}
static qkv_status workspace(void) {
    size_t bytes;
    return qkv_attention_workspace(P(0, null_ctx), P(1, &desc), P(2, &bytes));
}
static qkv_status backward_workspace(void) {
    size_t bytes;
    return qkv_attention_backward_workspace(P(0, null_ctx), P(1, &desc), P(2, &bytes));
}
static qkv_status explain(void) {
    qkv_attention_plan plan = qkv_attention_plan_init();
    return qkv_attention_explain(P(0, null_ctx), P(1, &desc), P(2, &plan));
}
static qkv_status visible_keys(void) {
    int64_t first, end;
    return qkv_attention_visible_keys(P(0, &desc), 0, 0, 0, P(1, &first), P(2, &end),
                                      P(3, &null_error));
}
static qkv_status forward(void) {
    return qkv_attention_forward(P(0, null_ctx), P(1, &desc), P(2, q), P(3, q), P(4, q), P(5, o),
                                 P(6, lse), P(7, &call_options));
}
static qkv_status simple(void) {
    return qkv_attention(P(0, null_ctx), 1, 1, N, N, D, QKV_CAUSAL, P(1, q), P(2, q), P(3, q),
                         P(4, o));
}
static qkv_status grads_contiguous(void) {
    qkv_attention_grads own = { .struct_size = sizeof own };
    qkv_attention_grads_fill(P(0, &own), P(1, &desc));
    return QKV_OK;
}
static qkv_status backward(void) {
    return qkv_attention_backward(P(0, null_ctx), P(1, &desc), P(2, q), P(3, q), P(4, q), P(5, o),
                                  P(6, lse), P(7, &grads), P(8, &call_options));
}
static qkv_status merge(void) {
    static float sum[N];
    return qkv_attention_merge(P(0, null_ctx), P(1, &desc), 1, P(2, o_parts), P(3, lse_parts),
                               P(4, o), P(5, sum));
}
static qkv_status stats_contiguous(void) {
    qkv_attention_stats own = { .struct_size = sizeof own };
    qkv_attention_stats_fill(P(0, &own), P(1, &desc));
    return QKV_OK;
}
static qkv_status stats_merge(void) {
    return qkv_attention_stats_merge(P(0, null_ctx), P(1, &desc), 1, P(2, parts), P(3, lse_parts),
                                     P(4, first_keys), P(5, &stats));
}
static qkv_status columns_contiguous(void) {
    qkv_attention_columns own = { .struct_size = sizeof own };
    qkv_attention_columns_fill(P(0, &own), P(1, &desc));
    return QKV_OK;
}
static qkv_status columns_pass(void) {
    return qkv_attention_columns_pass(P(0, null_ctx), P(1, &desc), P(2, q), P(3, q), P(4, lse),
                                      P(5, &columns), P(6, &call_options));
}
static qkv_status columns_workspace(void) {
    size_t bytes;
    return qkv_attention_columns_workspace(P(0, null_ctx), P(1, &desc), P(2, &columns),
                                           P(3, &bytes));
}
static qkv_status weights(void) {
    return qkv_attention_weights(P(0, null_ctx), P(1, &desc), P(2, q), P(3, q), P(4, lse), 0, 0, 0,
                                 N, 0, N, P(5, p), N, P(6, &call_options));
}
const null_call null_core[] = {
    { "qkv_ctx_create", ctx_create, "nrn" },
    { "qkv_ctx_free", ctx_free, "n" },
    { "qkv_ctx_message", ctx_message, "n" },
    { "qkv_ctx_isa", ctx_isa, "-" },
    { "qkv_ctx_threads", ctx_threads, "-" },
    { "qkv_attention_desc_fill", desc_contiguous, "n" },
    { "qkv_attention_workspace", workspace, "-rr" },
    { "qkv_attention_backward_workspace", backward_workspace, "-rr" },
    { "qkv_attention_explain", explain, "-rr" },
    { "qkv_attention_visible_keys", visible_keys, "rrrn" },
    { "qkv_attention", simple, "-rrrr" },
    { "qkv_attention_forward", forward, "-rrrrrnn" },
    { "qkv_attention_grads_fill", grads_contiguous, "nn" },
    { "qkv_attention_backward", backward, "-rrrrrrrn" },
    { "qkv_attention_merge", merge, "-rrrrn" },
    { "qkv_attention_stats_fill", stats_contiguous, "nn" },
    { "qkv_attention_stats_merge", stats_merge, "-rrrnr" },
    { "qkv_attention_columns_fill", columns_contiguous, "nn" },
    { "qkv_attention_columns_pass", columns_pass, "-rrrrrn" },
    { "qkv_attention_columns_workspace", columns_workspace, "-rrr" },
    { "qkv_attention_weights", weights, "-rrrrrn" },
    { 0 },
};
