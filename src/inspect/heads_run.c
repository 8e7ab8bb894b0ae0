/** Heads of a run: queries, keys and lse that it captured, and the tokens that it was made from. */

#include "inspect/heads_impl.h"
#include "model/run_impl.h"

static qkv_status is_null(const char *name, qkv_error *error) {
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", name);
}

static qkv_status check_tokens(const char *name, const qkv_encoding *tokens, int64_t wanted,
                               qkv_error *error) {
    if (!tokens->ids) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s.ids is NULL", name);
    if (tokens->n == wanted) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_SHAPE, "%s has %lld tokens, the run has %lld", name,
                          (long long)tokens->n, (long long)wanted);
}

/* [CLS] and [DIST] of an image are what [CLS] of a text is. */
static qkvi_token_kind kind_of(const qkv_token_list *list, int64_t i) {
    const qkv_image_tokens *const image = list->tokens->image;
    if (!image) return qkvi_token_kind_of(list->tokenizer, list->tokens->ids[i]);
    return i < image->n_prefix - image->n_registers ? QKVI_TOKEN_CLS : QKVI_TOKEN_TEXT;
}

static uint8_t *kinds_of(const qkv_token_list *list) {
    uint8_t *const kinds = qkvi_malloc_array((size_t)list->tokens->n, 1);
    for (int64_t i = 0; kinds && i < list->tokens->n; i++) kinds[i] = (uint8_t)kind_of(list, i);
    return kinds;
}

static qkv_status take_tokens(qkv_heads *heads, qkv_error *error) {
    const qkv_encoding *const queries = heads->queries.tokens;
    heads->query_kinds = kinds_of(&heads->queries);
    heads->key_kinds = kinds_of(&heads->keys);
    /* Patches have no ids: none is the same token as another. */
    const bool has_ids = heads->info.one_text && !queries->image;
    if (has_ids) heads->ids = qkvi_malloc_array((size_t)queries->n, sizeof(int32_t));
    if (!heads->query_kinds || !heads->key_kinds || (has_ids && !heads->ids))
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld tokens",
                              (long long)queries->n);
    for (int64_t i = 0; heads->ids && i < queries->n; i++) heads->ids[i] = queries->ids[i];
    return QKV_OK;
}

static qkv_status take_layers(const qkv_run *run, int64_t b, qkv_heads *heads, qkv_error *error) {
    for (int64_t layer = 0; layer < heads->info.n_layers; layer++) {
        qkv_capture c = qkv_capture_init();
        QKV_TRY(qkv_run_capture(run, heads->which, b, layer, &c, error));
        const int64_t group = c.n_heads / c.n_kv_heads;
        for (int64_t h = 0; h < c.n_heads; h++)
            heads->sources[layer * c.n_heads + h] =
                (qkvi_head_source){ .q = c.q + h * c.n * c.head_dim,
                                    .k = c.k + h / group * c.n_keys * c.head_dim,
                                    .lse = (float *)(uintptr_t)(c.lse + h * c.n),
                                    .scale = c.scale };
        if (heads->uncut) heads->uncut[layer] = (qkvi_layer_uncut){ c.uncut, c.uncut_stride };
        if (heads->layer_rules)
            heads->layer_rules[layer] =
                qkvi_rules_of_window(c.n, c.n_keys, 0, c.causal, c.window_left, c.window_right);
    }
    heads->n_lse = heads->n_all;
    heads->dense = !heads->uncut; /* else heads see different keys */
    return QKV_OK;
}

/* Whether a layer has a window, and whether edges of one are cut. */
static bool has_windows(const qkv_run *run, qkv_attention_kind which, int64_t b, int64_t n_layers,
                        bool *cut) {
    qkv_capture c = qkv_capture_init();
    bool windows = false;
    *cut = false;
    for (int64_t layer = 0; layer < n_layers; layer++) {
        if (qkv_run_capture(run, which, b, layer, &c, NULL) != QKV_OK) continue;
        windows |= c.window_left >= 0 || c.window_right >= 0;
        *cut |= c.uncut != NULL;
    }
    return windows;
}

/* As many as the run captured. */
static int64_t count_layers(const qkv_run *run, qkv_attention_kind which, int64_t b) {
    qkv_capture c = qkv_capture_init();
    int64_t n = 1;
    while (qkv_run_capture(run, which, b, n, &c, NULL) == QKV_OK) n++;
    return n;
}

static qkv_status open(qkv_ctx *ctx, const qkv_run *run, int64_t b, const qkv_capture *c,
                       qkv_heads *given, qkv_heads **heads, qkv_error *error) {
    const int64_t n_layers = count_layers(run, given->which, b);
    bool cut;
    const bool windows = has_windows(run, given->which, b, n_layers, &cut);
    const qkv_heads_info info = { .n_layers = n_layers,
                                  .n_heads = c->n_heads,
                                  .n_queries = c->n,
                                  .n_keys = c->n_keys,
                                  .head_dim = c->head_dim,
                                  .one_text = given->which != QKV_CROSS,
                                  .causal = c->causal,
                                  .sees_all = !c->causal && !c->seen && !windows && !cut,
                                  .windows = windows,
                                  .softcap = c->softcap };
    QKV_TRY(qkvi_heads_make(ctx, &info, heads, error));
    qkv_heads *const h = *heads;
    h->which = given->which;
    h->decodes = qkvi_run_decodes(run, given->which);
    h->queries = given->queries;
    h->keys = given->keys;
    h->seen = c->seen;
    h->softcap = c->softcap;
    if (c->alibi_slopes) h->desc.flags |= QKV_SET_ALIBI;
    h->desc.alibi_slopes = c->alibi_slopes;
    if (c->distance_bias) h->desc.flags |= QKV_SET_DISTANCE_BIAS;
    h->desc.distance_bias = c->distance_bias;
    h->desc.distance_bias_stride = c->distance_bias_stride;
    h->desc.distance_before = c->distance_before;
    h->desc.distance_after = c->distance_after;
    h->n_kv_heads = c->n_kv_heads;
    if (windows) h->layer_rules = qkvi_calloc_array((size_t)n_layers, sizeof *h->layer_rules);
    if (cut) h->uncut = qkvi_calloc_array((size_t)n_layers, sizeof *h->uncut);
    if ((windows && !h->layer_rules) || (cut && !h->uncut)) return qkvi_no_memory(error, "heads");
    h->rules = qkvi_rules_of_window(c->n, c->n_keys, 0, c->causal, -1, -1);
    QKV_TRY(take_layers(run, b, h, error));
    return take_tokens(h, error);
}

/* Images have no tokenizer. */
static bool is_whole(const qkv_token_list *list) {
    return list && list->tokens && (list->tokenizer || list->tokens->image);
}

qkv_status qkv_heads_open_run(qkv_ctx *ctx, const qkv_run *run, qkv_attention_kind which, int64_t b,
                              const qkv_token_list *queries, const qkv_token_list *keys,
                              qkv_heads **heads, qkv_error *error) {
    qkv_capture c = qkv_capture_init();
    if (heads) *heads = NULL;
    if (!ctx || !run || !heads) return is_null(!ctx ? "ctx" : !run ? "run" : "the result", error);
    if (!is_whole(queries)) return is_null("queries", error);
    if (which != QKV_CROSS) keys = queries;
    if (!is_whole(keys)) return is_null("keys", error);
    QKV_TRY(qkv_run_capture(run, which, b, 0, &c, error));
    QKV_TRY(check_tokens(which == QKV_CROSS ? "queries" : "input", queries->tokens, c.n, error));
    QKV_TRY(check_tokens("keys", keys->tokens, c.n_keys, error));
    qkv_heads given = { .which = which, .queries = *queries, .keys = *keys };
    const qkv_status status = open(ctx, run, b, &c, &given, heads, error);
    if (status == QKV_OK) return QKV_OK;
    qkv_heads_free(*heads);
    *heads = NULL;
    return status;
}
