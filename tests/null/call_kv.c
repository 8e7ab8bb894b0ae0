/* kv.h: see nulls.h. */
#include "null/nulls.h"
#include "qkv/kv.h"

enum { N = 3, D = 4 };
static float x[N * D], o[N * D], lse[N];
static const int64_t stride[2] = { N * D, D };
static const qkv_call_options call_options = { .struct_size = sizeof call_options };

static qkv_attention_desc make_desc(void) {
    qkv_attention_desc desc;
    qkv_attention_desc_contiguous(&desc, 1, 1, 1, N, N, D, D);
    return desc;
}

static const qkv_kv_cache_options cache_options = { .struct_size = sizeof cache_options,
                                                    .n_sequences = 2,
                                                    .n_kv_heads = 1,
                                                    .head_dim = D,
                                                    .head_dim_v = D,
                                                    .n_pages = 2 };

static qkv_kv_cache *make_cache(void) {
    qkv_kv_cache *cache = NULL;
    null_must(qkv_kv_cache_create(null_ctx, &cache_options, &cache));
    null_must(qkv_kv_cache_append(null_ctx, cache, 0, N, QKV_F32, x, NULL, x, NULL));
    return cache;
}

static qkv_status kv_view_contiguous(void) {
    const qkv_attention_desc desc = make_desc();
    qkv_kv_view view = { .struct_size = sizeof view };
    qkv_kv_view_fill(P(0, &view), P(1, &desc), QKV_F32);
    return QKV_OK;
}
static qkv_status decode(void) {
    const qkv_attention_desc desc = make_desc();
    qkv_kv_view view;
    qkv_kv_view_contiguous(&view, &desc, QKV_F32);
    view.k = view.v = x;
    return qkv_attention_decode(P(0, null_ctx), P(1, &desc), P(2, x), P(3, &view), P(4, o),
                                P(5, lse), P(6, &call_options));
}
static qkv_status decode_workspace(void) {
    const qkv_attention_desc desc = make_desc();
    size_t bytes;
    return qkv_attention_decode_workspace(P(0, null_ctx), P(1, &desc), P(2, &bytes));
}
static qkv_status cache_create(void) {
    qkv_kv_cache *cache;
    return qkv_kv_cache_create(P(0, null_ctx), P(1, &cache_options), P(2, &cache));
}
static qkv_status cache_destroy(void) {
    qkv_kv_cache_free(P(0, make_cache()));
    return QKV_OK;
}
static qkv_status cache_append(void) {
    return qkv_kv_cache_append(P(0, null_ctx), P(1, make_cache()), 0, N, QKV_F32, P(2, x),
                               P(3, stride), P(4, x), P(5, stride));
}
static qkv_status cache_truncate(void) {
    return qkv_kv_cache_truncate(P(0, null_ctx), P(1, make_cache()), 0, 1);
}
static qkv_status cache_fork(void) {
    return qkv_kv_cache_fork(P(0, null_ctx), P(1, make_cache()), 0, 1);
}
static qkv_status cache_view(void) {
    qkv_kv_view view = { .struct_size = sizeof view };
    const int64_t *len;
    return qkv_kv_cache_view_fill(P(0, null_ctx), P(1, make_cache()), 0, 1, P(2, &view),
                                  P(3, &len));
}
static qkv_status cache_len(void) {
    return qkv_kv_cache_len(P(0, make_cache()), 0) == N ? QKV_OK : QKV_ERR_ARGUMENT;
}
static qkv_status cache_free_pages(void) {
    return qkv_kv_cache_free_pages(P(0, make_cache())) == 1 ? QKV_OK : QKV_ERR_ARGUMENT;
}
static qkv_status cache_bytes(void) {
    return qkv_kv_cache_bytes(P(0, make_cache())) > 0 ? QKV_OK : QKV_ERR_ARGUMENT;
}

const null_call null_kv[] = {
    { "qkv_kv_view_fill", kv_view_contiguous, "nn" },
    { "qkv_attention_decode", decode, "-rrrrnn" },
    { "qkv_attention_decode_workspace", decode_workspace, "-rr" },
    { "qkv_kv_cache_create", cache_create, "-rr" },
    { "qkv_kv_cache_free", cache_destroy, "n" },
    { "qkv_kv_cache_append", cache_append, "-rrnrn" },
    { "qkv_kv_cache_truncate", cache_truncate, "-r" },
    { "qkv_kv_cache_fork", cache_fork, "-r" },
    { "qkv_kv_cache_view_fill", cache_view, "-rrr" },
    { "qkv_kv_cache_len", cache_len, "-" },
    { "qkv_kv_cache_free_pages", cache_free_pages, "-" },
    { "qkv_kv_cache_bytes", cache_bytes, "-" },
    { 0 },
};
