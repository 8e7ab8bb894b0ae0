/*
 * The cache of keys and values: qkv/kv.h. It allocates only when it is created, so that all other
 * calls must succeed without memory.
 */
#include <string.h>

#include <qkv/kv.h>

#include "oom/calls.h"

enum { HEADS = 2, LEN = 40, DIM = 8, N = HEADS * LEN * DIM };

static float k[N], v[N];
static qkv_ctx *ctx;
static qkv_kv_cache *cache;

static qkv_status told(qkv_status status, qkv_error *error) {
    if (!error) return status;
    error->status = status;
    strcpy(error->message, qkv_ctx_message(ctx));
    return status;
}

static qkv_status create(qkv_error *error) {
    qkv_kv_cache_options options = qkv_kv_cache_options_init();
    options.dtype = QKV_I8;
    options.n_sequences = 2;
    options.n_kv_heads = HEADS;
    options.head_dim = options.head_dim_v = DIM;
    options.page_len = 16;
    options.n_pages = 8;
    const qkv_status status = qkv_kv_cache_create(ctx, &options, &cache);
    oom_claim(status == QKV_OK || !cache, "cache is NULL after a failure");
    return told(status, error);
}

static void new_cache(void) {
    qkv_error error;
    oom_must(create(&error), &error);
}

static void new_tokens(void) {
    qkv_error error;
    new_cache();
    oom_must(told(qkv_kv_cache_append(ctx, cache, 0, LEN, QKV_F32, k, NULL, v, NULL), &error),
             &error);
}

static qkv_status append(qkv_error *error) {
    return told(qkv_kv_cache_append(ctx, cache, 0, LEN, QKV_F32, k, NULL, v, NULL), error);
}

static qkv_status cut(qkv_error *error) {
    return told(qkv_kv_cache_truncate(ctx, cache, 0, 10), error);
}

static qkv_status share(qkv_error *error) {
    return told(qkv_kv_cache_fork(ctx, cache, 0, 1), error);
}

static qkv_status look(qkv_error *error) {
    qkv_kv_view view;
    const int64_t *len;
    return told(qkv_kv_cache_view(ctx, cache, 0, 2, &view, &len), error);
}

static uint64_t take_lengths(void) {
    const int64_t x[] = { qkv_kv_cache_len(cache, 0), qkv_kv_cache_len(cache, 1),
                          qkv_kv_cache_free_pages(cache) };
    return oom_hash(0, x, sizeof x);
}

static void drop(void) {
    qkv_kv_cache_free(cache);
    cache = NULL;
}

static void set_up(void) {
    qkv_error error;
    oom_must(qkv_ctx_create(NULL, &ctx, &error), &error);
    for (int i = 0; i < N; i++) {
        k[i] = (float)(i % 11) / 8;
        v[i] = (float)(i % 5) - 2;
    }
}

static void tear_down(void) { qkv_ctx_free(ctx); }

static const oom_call calls[] = {
    { "qkv_kv_cache_create", "8 pages", NULL, create, take_lengths, drop, 0, 0 },
    { "qkv_kv_cache_append", "40 tokens", new_cache, append, take_lengths, drop, 0, 0 },
    { "qkv_kv_cache_truncate", "to 10 tokens", new_tokens, cut, take_lengths, drop, 0, 0 },
    { "qkv_kv_cache_fork", "40 tokens", new_tokens, share, take_lengths, drop, 0, 0 },
    { "qkv_kv_cache_view_fill", "both sequences", new_tokens, look, take_lengths, drop, 0, 0 },
};

const oom_group oom_kv = { "kv", calls, sizeof calls / sizeof *calls, set_up, tear_down };
