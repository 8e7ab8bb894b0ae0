/*
 * Contexts and attention: qkv/qkv.h. Every call gets a context of its own, because the arena of one
 * that has been used is large enough for the next.
 */
#include <stdlib.h>
#include <string.h>

#include <qkv/kv.h>

#include "oom/calls.h"

enum { HEADS = 2, LEN = 70, DIM = 8, N = HEADS * LEN * DIM, N_LSE = HEADS * LEN, TOP = 3 };

static float q[N], k[N], v[N], o[N], lse[N_LSE], other_o[N], other_lse[N_LSE], d_o[N], d_q[N],
    d_k[N], d_v[N], mask[LEN * LEN], d_mask[LEN * LEN], entropy[N_LSE];
static int64_t top_keys[N_LSE * TOP];
static qkv_attention_desc desc;
static qkv_attention_grads grads;
static qkv_ctx *ctx, *shared;
static size_t bytes;
static qkv_attention_plan plan;

/* ---- An allocator of the caller, which counts its bytes -------------------------------------- */

static int64_t caller_bytes;

static void *caller_alloc(void *user, size_t n, size_t alignment) {
    void *const made = aligned_alloc(alignment, (n + alignment - 1) / alignment * alignment);
    if (made) *(int64_t *)user += (int64_t)n;
    return made;
}

static void caller_release(void *user, void *pointer, size_t n) {
    *(int64_t *)user -= (int64_t)n;
    free(pointer);
}

static const qkv_allocator caller = { caller_alloc, caller_release, &caller_bytes };

/* ---- Contexts -------------------------------------------------------------------------------- */

static qkv_status create(const qkv_ctx_options *options, qkv_error *error) {
    ctx = shared; /* must become NULL or a context */
    const qkv_status status = qkv_ctx_create(options, &ctx, error);
    oom_claim(status == QKV_OK || !ctx, "ctx is NULL after a failure");
    return status;
}

static qkv_status create_default(qkv_error *error) { return create(NULL, error); }

static qkv_status create_custom(qkv_error *error) {
    qkv_ctx_options options = qkv_ctx_options_init();
    options.allocator = caller;
    options.n_threads = 3;
    return create(&options, error);
}

static qkv_status create_shared(qkv_error *error) {
    qkv_ctx_options options = qkv_ctx_options_init();
    options.share_pool = shared;
    return create(&options, error);
}

static uint64_t take_ctx(void) { return oom_hash_text(0, qkv_ctx_isa(ctx)); }

static void drop_ctx(void) {
    qkv_ctx_free(ctx);
    ctx = NULL;
    oom_claim(caller_bytes == 0, "the allocator got back what it gave");
}

/* ---- Calls on a context ---------------------------------------------------------------------- */

static void new_ctx(void) {
    qkv_error error;
    oom_must(create_custom(&error), &error);
}

static void new_outputs(void) {
    new_ctx();
    for (int i = 0; i < N; i++) o[i] = d_q[i] = d_k[i] = d_v[i] = 7;
    for (int i = 0; i < N_LSE; i++) lse[i] = 7;
    for (int i = 0; i < LEN * LEN; i++) d_mask[i] = 7;
}

/* What a context says is its error. */
static qkv_status told(qkv_status status, qkv_error *error) {
    if (!error) return status;
    error->status = status;
    strcpy(error->message, qkv_ctx_message(ctx));
    return status;
}

static qkv_status size_forward(qkv_error *error) {
    return told(qkv_attention_workspace(ctx, &desc, &bytes), error);
}

static qkv_status size_backward(qkv_error *error) {
    return told(qkv_attention_backward_workspace(ctx, &desc, &bytes), error);
}

static qkv_status size_decode(qkv_error *error) {
    return told(qkv_attention_decode_workspace(ctx, &desc, &bytes), error);
}

static qkv_status explain(qkv_error *error) {
    plan = qkv_attention_plan_init();
    return told(qkv_attention_explain(ctx, &desc, &plan), error);
}

static int64_t interval[2];

static qkv_status visible_keys(qkv_error *error) {
    return qkv_attention_visible_keys(&desc, 0, 5, 0, &interval[0], &interval[1], error);
}

static uint64_t take_interval(void) { return oom_hash(0, interval, sizeof interval); }

static uint64_t take_plan(void) {
    return oom_hash(oom_hash_text(0, plan.kernel), &plan.workspace_bytes,
                    sizeof plan.workspace_bytes);
}

static uint64_t take_bytes(void) { return oom_hash(0, &bytes, sizeof bytes); }

static void expect_untouched(qkv_status status, const float *x, int n) {
    for (int i = 0; status != QKV_OK && i < n; i++)
        oom_claim(x[i] == 7, "outputs are untouched after a failure");
}

static qkv_status simple(qkv_error *error) {
    const qkv_status status = qkv_attention(ctx, desc.n_batch, desc.n_heads, desc.len_q, desc.len_k,
                                            desc.head_dim, QKV_CAUSAL, q, k, v, o);
    expect_untouched(status, o, N);
    return told(status, error);
}

static uint64_t take_o(void) { return oom_hash(0, o, sizeof o); }

static qkv_status forward(qkv_error *error) {
    const qkv_status status = qkv_attention_forward(ctx, &desc, q, k, v, o, lse, NULL);
    expect_untouched(status, o, N);
    expect_untouched(status, lse, N_LSE);
    return told(status, error);
}

static qkv_status forward_with_stats(qkv_error *error) {
    qkv_attention_desc d = desc;
    qkv_attention_stats stats;
    qkv_attention_stats_contiguous(&stats, &desc);
    stats.entropy = entropy;
    stats.top_k = TOP;
    stats.top_keys = top_keys;
    d.flags |= QKV_SET_STATS;
    d.stats = &stats;
    const qkv_status status = qkv_attention_forward(ctx, &d, q, k, v, o, lse, NULL);
    expect_untouched(status, o, N);
    expect_untouched(status, lse, N_LSE);
    return told(status, error);
}

static qkv_status decode_with_stats(qkv_error *error) {
    qkv_attention_desc d = desc;
    qkv_attention_stats stats;
    qkv_kv_view view;
    qkv_attention_stats_contiguous(&stats, &desc);
    stats.entropy = entropy;
    stats.top_k = TOP;
    stats.top_keys = top_keys;
    d.flags |= QKV_SET_STATS;
    d.stats = &stats;
    qkv_kv_view_contiguous(&view, &desc, QKV_F32);
    view.k = k;
    view.v = v;
    const qkv_status status = qkv_attention_decode(ctx, &d, q, &view, o, lse, NULL);
    expect_untouched(status, o, N);
    expect_untouched(status, lse, N_LSE);
    return told(status, error);
}

static uint64_t take_stats(void) {
    return oom_hash(oom_hash(0, entropy, sizeof entropy), top_keys, sizeof top_keys);
}

static qkv_status decode(qkv_error *error) {
    qkv_kv_view view;
    qkv_kv_view_contiguous(&view, &desc, QKV_F32);
    view.k = k;
    view.v = v;
    const qkv_status status = qkv_attention_decode(ctx, &desc, q, &view, o, lse, NULL);
    expect_untouched(status, o, N);
    expect_untouched(status, lse, N_LSE);
    return told(status, error);
}

static uint64_t take_forward(void) { return oom_hash(oom_hash(0, o, sizeof o), lse, sizeof lse); }

static qkv_status backward(qkv_error *error) {
    const qkv_status status =
        qkv_attention_backward(ctx, &desc, q, k, v, other_o, other_lse, &grads, NULL);
    expect_untouched(status, d_q, N);
    expect_untouched(status, d_k, N);
    expect_untouched(status, d_v, N);
    return told(status, error);
}

static uint64_t take_backward(void) {
    return oom_hash(oom_hash(oom_hash(0, d_q, sizeof d_q), d_k, sizeof d_k), d_v, sizeof d_v);
}

/* With dropout, an additive mask and its gradient. */
static qkv_status backward_of_mask(qkv_error *error) {
    qkv_attention_desc d = desc;
    qkv_attention_grads g = grads;
    d.flags |= QKV_SET_MASK | QKV_SET_DROPOUT;
    d.mask = mask;
    d.mask_type = QKV_MASK_F32;
    d.mask_stride[2] = LEN;
    d.mask_stride[3] = 1;
    d.dropout = 0.5f;
    g.d_mask = d_mask;
    memcpy(g.d_mask_stride, d.mask_stride, sizeof g.d_mask_stride);
    const qkv_status status =
        qkv_attention_backward(ctx, &d, q, k, v, other_o, other_lse, &g, NULL);
    expect_untouched(status, d_q, N);
    expect_untouched(status, d_mask, LEN * LEN);
    return told(status, error);
}

static uint64_t take_backward_of_mask(void) {
    return oom_hash(take_backward(), d_mask, sizeof d_mask);
}

/* The bytes of floats, as f16: any numbers do. */
static qkv_status both_of_16_bits(qkv_error *error) {
    qkv_attention_desc d = desc;
    d.dtype = QKV_F16;
    qkv_status status = qkv_attention_forward(ctx, &d, q, k, v, o, lse, NULL);
    expect_untouched(status, o, N);
    if (status == QKV_OK) status = qkv_attention_backward(ctx, &d, q, k, v, o, lse, &grads, NULL);
    expect_untouched(status, d_q, N);
    return told(status, error);
}

static qkv_status merge(qkv_error *error) {
    const void *const o_parts[] = { other_o, v };
    const float *const lse_parts[] = { other_lse, q };
    return told(qkv_attention_merge(ctx, &desc, 2, o_parts, lse_parts, o, lse), error);
}

/* Entropies of two parts: other_o has no row that is no number. */
static qkv_status merge_stats(qkv_error *error) {
    qkv_attention_stats part, stats;
    qkv_attention_stats_contiguous(&part, &desc);
    part.entropy = other_o;
    qkv_attention_stats_contiguous(&stats, &desc);
    stats.entropy = entropy;
    const qkv_attention_stats *const parts[] = { &part, &part };
    const float *const lse_parts[] = { other_lse, other_lse };
    return told(qkv_attention_stats_merge(ctx, &desc, 2, parts, lse_parts, NULL, &stats), error);
}

/* ---- Setup ----------------------------------------------------------------------------------- */

static void set_up(void) {
    qkv_error error;
    oom_must(qkv_ctx_create(NULL, &shared, &error), &error);
    qkv_attention_desc_contiguous(&desc, 1, HEADS, HEADS, LEN, LEN, DIM, DIM);
    qkv_attention_grads_contiguous(&grads, &desc);
    grads.d_o = d_o;
    grads.d_q = d_q;
    grads.d_k = d_k;
    grads.d_v = d_v;
    for (int i = 0; i < N; i++) {
        q[i] = (float)(i % 11) / 8;
        k[i] = (float)(i % 7) / 4;
        v[i] = (float)(i % 5) - 2;
        d_o[i] = (float)(i % 3) - 1;
    }
    oom_must(qkv_attention_forward(shared, &desc, q, k, v, other_o, other_lse, NULL), &error);
}

static void tear_down(void) { qkv_ctx_free(shared); }

static const oom_call calls[] = {
    { "qkv_ctx_create", "the default allocator", NULL, create_default, take_ctx, drop_ctx, 0, 0 },
    { "qkv_ctx_create", "the caller's allocator", NULL, create_custom, take_ctx, drop_ctx, 0, 0 },
    { "qkv_ctx_create", "another's threads", NULL, create_shared, take_ctx, drop_ctx, 0, 0 },
    { "qkv_attention_workspace", "70 tokens", new_ctx, size_forward, take_bytes, drop_ctx, 0, 0 },
    { "qkv_attention_backward_workspace", "70 tokens", new_ctx, size_backward, take_bytes, drop_ctx,
      0, 0 },
    { "qkv_attention_decode_workspace", "70 tokens", new_ctx, size_decode, take_bytes, drop_ctx, 0,
      0 },
    { "qkv_attention_decode", "70 tokens", new_outputs, decode, take_forward, drop_ctx, 0, 0 },
    { "qkv_attention_decode", "70 tokens, statistics", new_outputs, decode_with_stats, take_stats,
      drop_ctx, 0, 0 },
    { "qkv_attention_explain", "70 tokens", new_ctx, explain, take_plan, drop_ctx, 0, 0 },
    { "qkv_attention_visible_keys", "70 tokens", new_ctx, visible_keys, take_interval, drop_ctx, 0,
      0 },
    { "qkv_attention", "70 tokens", new_outputs, simple, take_o, drop_ctx, 0, 0 },
    { "qkv_attention_forward", "70 tokens", new_outputs, forward, take_forward, drop_ctx, 0, 0 },
    { "qkv_attention_forward", "70 tokens, statistics", new_outputs, forward_with_stats, take_stats,
      drop_ctx, 0, 0 },
    { "qkv_attention_backward", "70 tokens", new_outputs, backward, take_backward, drop_ctx, 0, 0 },
    { "qkv_attention_backward", "70 tokens, dropout, gradient of the mask", new_outputs,
      backward_of_mask, take_backward_of_mask, drop_ctx, 0, 0 },
    { "qkv_attention_backward", "70 tokens of 16 bits", new_outputs, both_of_16_bits, take_backward,
      drop_ctx, 0, 0 },
    { "qkv_attention_merge", "two parts", new_outputs, merge, take_forward, drop_ctx, 0, 0 },
    { "qkv_attention_stats_merge", "two parts", new_outputs, merge_stats, take_stats, drop_ctx, 0,
      0 },
};

const oom_group oom_attention = { "attention", calls, sizeof calls / sizeof *calls, set_up,
                                  tear_down };
