/*
 * Attention over kept keys: new keys and values are appended to the cache of their layer, and
 * queries attend to that. A layer with a window keeps a ring of its last tokens, into which a long
 * prompt goes in pieces, so that each token still sees its window.
 */
#include "core/ints.h"
#include "model/arch/decoder_impl.h"

int64_t qkvi_decoder_ring(const qkvi_decoder *d, const qkvi_mha *mha) {
    if (!mha->windowed) return 0;
    const int64_t ring = qkvi_round_up(mha->window_left + QKVI_RING_PAGE, QKVI_RING_PAGE);
    return ring < d->max_len ? ring : 0;
}

/* n_batch sequences of len_q rows each, one after another; keys are described by a view. */
static qkv_attention_desc describe(const qkvi_mha *mha, int64_t n_batch, int64_t len_q,
                                   int64_t len_k) {
    qkv_attention_desc desc;
    const qkvi_mha_change none = { 0 };
    qkv_attention_desc_contiguous(&desc, n_batch, mha->n_heads, mha->n_kv_heads, len_q, len_k,
                                  mha->head_dim, mha->head_dim);
    const int64_t width = qkvi_mha_width(mha);
    const int64_t stride[3] = { len_q * width, mha->head_dim, width };
    for (int d = 0; d < 3; d++) desc.q_stride[d] = desc.o_stride[d] = stride[d];
    qkvi_mha_describe_scores(mha, &none, &desc);
    return desc;
}

/* Rows first … first + n - 1 of a prompt. */
static qkv_status append_rows(qkv_ctx *ctx, const qkvi_decoder *d, const qkvi_mha *mha,
                              qkv_kv_cache *cache, int64_t first, int64_t n,
                              const qkvi_mha_acts *acts) {
    const int64_t kv_width = qkvi_mha_kv_width(mha), stride[2] = { mha->head_dim, kv_width };
    return qkv_kv_cache_append(ctx, cache, d->bank + d->prompted, n, QKV_F32,
                               acts->k + first * kv_width, stride, acts->v + first * kv_width,
                               stride);
}

/* One token for each slot. */
static qkv_status append_step(qkv_ctx *ctx, const qkvi_decoder *d, const qkvi_mha *mha,
                              qkv_kv_cache *cache, const qkvi_mha_acts *acts) {
    const int64_t kv_width = qkvi_mha_kv_width(mha);
    const int64_t stride[2] = { mha->head_dim, kv_width }, n = d->pass.rows.n_rows;
    for (int64_t i = 0; i < n; i++)
        QKV_TRY(qkv_kv_cache_append(ctx, cache, d->bank + i, 1, QKV_F32, acts->k + i * kv_width,
                                    stride, acts->v + i * kv_width, stride));
    return QKV_OK;
}

/* A prompt into an empty slot sees itself alone: attention as in a run. */
static qkv_status attend_fresh(qkv_ctx *ctx, const qkvi_mha *mha, int64_t n,
                               const qkvi_mha_acts *acts) {
    qkv_attention_desc desc = describe(mha, 1, n, n);
    const int64_t kv_width = qkvi_mha_kv_width(mha);
    const int64_t stride[3] = { n * kv_width, mha->head_dim, kv_width };
    for (int i = 0; i < 3; i++) desc.k_stride[i] = desc.v_stride[i] = stride[i];
    desc.flags |= QKV_SET_CAUSAL;
    return qkv_attention_forward(ctx, &desc, acts->q, acts->k, acts->v, acts->o, acts->lse, NULL);
}

/* Tokens that a call may add to a layer so that each of them still sees its window. */
static int64_t most_at_once(const qkvi_decoder *d, const qkvi_mha *mha) {
    const int64_t ring = qkvi_decoder_ring(d, mha);
    return ring > 0 ? ring - mha->window_left : INT64_MAX;
}

/* A prompt into an empty slot: what a ring does not keep is not appended, only counted. */
static qkv_status fresh_prompt(qkv_ctx *ctx, const qkvi_decoder *d, const qkvi_mha *mha,
                               qkv_kv_cache *cache, const qkvi_mha_acts *acts) {
    const int64_t n = d->pass.rows.n_rows, most = most_at_once(d, mha);
    for (int64_t first = 0; first < n; first += most) {
        const int64_t some = n - first < most ? n - first : most;
        QKV_TRY(append_rows(ctx, d, mha, cache, first, some, acts));
        if (some < most) break;
    }
    return attend_fresh(ctx, mha, n, acts);
}

/* Rows of a prompt into a slot that has tokens. */
static qkv_status later_prompt(qkv_ctx *ctx, const qkvi_decoder *d, const qkvi_mha *mha,
                               qkv_kv_cache *cache, const qkvi_mha_acts *acts) {
    const int64_t n = d->pass.rows.n_rows, most = most_at_once(d, mha), *len;
    const int64_t width = qkvi_mha_width(mha), slot = d->bank + d->prompted;
    for (int64_t first = 0, some; first < n; first += some) {
        const int64_t before = qkv_kv_cache_len(cache, slot), at = first * width;
        some = n - first < most ? n - first : most;
        QKV_TRY(append_rows(ctx, d, mha, cache, first, some, acts));
        qkv_kv_view view;
        QKV_TRY(qkv_kv_cache_view(ctx, cache, slot, 1, &view, &len));
        qkv_attention_desc desc = describe(mha, 1, some, d->max_len);
        desc.flags |= QKV_SET_KV_LEN | QKV_SET_CAUSAL | QKV_SET_Q_OFFSET;
        desc.kv_len = len;
        desc.q_offsets = &before;
        QKV_TRY(qkv_attention_decode(ctx, &desc, acts->q + at, &view, acts->o + at, NULL, NULL));
    }
    return QKV_OK;
}

static qkv_status step(qkv_ctx *ctx, const qkvi_decoder *d, const qkvi_mha *mha,
                       qkv_kv_cache *cache, const qkvi_mha_acts *acts) {
    const int64_t n = d->pass.rows.n_rows, *len;
    qkv_kv_view view;
    QKV_TRY(append_step(ctx, d, mha, cache, acts));
    QKV_TRY(qkv_kv_cache_view(ctx, cache, d->bank, n, &view, &len));
    qkv_attention_desc desc = describe(mha, n, 1, d->max_len);
    desc.flags |= QKV_SET_KV_LEN;
    desc.kv_len = len;
    if (mha->windowed || mha->distances || mha->alibi) { /* the query of a slot is its last token */
        for (int64_t i = 0; i < n; i++) d->last[i] = len[i] - 1;
        desc.flags |= QKV_SET_Q_OFFSET;
        desc.q_offsets = d->last;
    }
    return qkv_attention_decode(ctx, &desc, acts->q, &view, acts->o, acts->lse, NULL);
}

static qkv_status attend_self(qkv_ctx *ctx, const qkvi_decoder *d, const qkvi_mha *mha,
                              int64_t layer, const float *x, const qkvi_mha_acts *acts) {
    qkv_kv_cache *const cache = d->caches[layer];
    const int64_t n = d->pass.rows.n_rows;
    const qkvi_linear *const maps[3] = { &mha->query, &mha->key, &mha->value };
    float *const results[3] = { acts->q, acts->k, acts->v };
    qkvi_linears_forward(ctx, 3, maps, n, x, results, NULL);
    qkvi_mha_place(ctx, mha, n, n, qkvi_stack_turns(&d->pass, layer), acts);
    if (d->prompted < 0) return step(ctx, d, mha, cache, acts);
    return qkv_kv_cache_len(cache, d->bank + d->prompted) == 0
               ? fresh_prompt(ctx, d, mha, cache, acts)
               : later_prompt(ctx, d, mha, cache, acts);
}

static qkv_status attend_cross(qkv_ctx *ctx, const qkvi_decoder *d, const qkvi_mha *mha,
                               int64_t layer, const float *x, const qkvi_mha_acts *acts) {
    const int64_t n = d->pass.rows.n_rows, width = qkvi_mha_kv_width(mha);
    const int64_t elems = d->n_source * width;
    qkvi_linear_forward(ctx, &mha->query, n, x, acts->q);
    const qkv_attention_desc desc = describe(mha, 1, n, d->n_source);
    qkv_kv_view view;
    qkv_kv_view_contiguous(&view, &desc, QKV_F32);
    view.k = d->cross + 2 * layer * elems;
    view.v = d->cross + (2 * layer + 1) * elems;
    const int64_t stride[3] = { elems, mha->head_dim, width };
    for (int i = 0; i < 3; i++) view.k_stride[i] = view.v_stride[i] = stride[i];
    return qkv_attention_decode(ctx, &desc, acts->q, &view, acts->o, acts->lse, NULL);
}

qkv_status qkvi_decoder_attend(qkv_ctx *ctx, void *kept, const qkvi_mha *mha, int64_t layer,
                               bool cross, const float *x, qkvi_mha_acts *acts) {
    return cross ? attend_cross(ctx, kept, mha, layer, x, acts)
                 : attend_self(ctx, kept, mha, layer, x, acts);
}
