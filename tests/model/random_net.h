/*
 * Random networks for tests of the graph alone, without names and files: stacks whose parameters
 * are bound to consecutive parts of an arena. The same code binds gradients to an arena of
 * gradients.
 */
#ifndef TESTS_RANDOM_NET_H
#define TESTS_RANDOM_NET_H

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/cpu.h"
#include "core/rng.h"
#include "kernels/gemm.h"
#include "model/arch/net.h"

typedef struct net_kind {
    const char *name;
    int n_stacks;
    bool pre_norm, embed_norm, learned_positions, tied, lm_bias;
    qkvi_act act;
    float word_scale;
    double scale; /* of the attention of layer 0; 0: 1 / sqrt(head_dim) */
    int64_t first_position;
    int64_t n_kv_heads;
    qkvi_norm_kind norm;
    bool adds, normed_output, gated, rotates, norms_heads, norms_rows, parallel;
    int64_t turned; /* channels of a head that RoPE rotates; 0: all */
    int64_t narrow; /* width of word embeddings that are projected (OPT); 0: not projected */
    int64_t window; /* of layer 1, in keys; 0: none */
    float cap;      /* of scores, and of logits */
    bool one_norm, neighbours, bias_learns; /* of GPT-J */
    bool alibi, from_norm;                  /* of BLOOM */
} net_kind;

/* Smooth activations, for finite differences; ReLU is in tests/golden. */
static const net_kind net_kinds[] = {
    { "like GPT-2", 1, true, false, true, true, false, QKVI_GELU_TANH, 1, 0, 0, .n_kv_heads = 3,
      .adds = true },
    { "like BART", 2, false, true, true, true, true, QKVI_GELU, 1, 0, 2, .n_kv_heads = 3 },
    { "like Marian", 2, false, false, false, false, true, QKVI_SILU, 6.5f, 0, 0, .n_kv_heads = 3 },
    { "pre-norm pairs", 2, true, true, true, true, false, QKVI_GELU, 1, 0.3, 0, .n_kv_heads = 3,
      .adds = true },
    { "like Llama", 1, true, false, true, false, false, QKVI_SILU, 1, 0, 0, .n_kv_heads = 1,
      .norm = QKVI_RMS_NORM, .adds = true, .gated = true, .rotates = true },
    { "like Gemma",
      1,
      true,
      false,
      true,
      true,
      false,
      QKVI_GELU_TANH,
      3.5f,
      0.4,
      0,
      .n_kv_heads = 1,
      .norm = QKVI_RMS_NORM_FROM_ONE,
      .adds = true,
      .normed_output = true,
      .gated = true,
      .rotates = true,
      .norms_heads = true,
      .window = 5,
      .cap = 3 },
    { "like OLMo 2", 1, false, false, true, false, false, QKVI_SILU, 1, 0, 0, .n_kv_heads = 3,
      .norm = QKVI_RMS_NORM, .adds = true, .normed_output = true, .gated = true, .rotates = true,
      .norms_rows = true, .window = 30 },
    { "like GPT-NeoX", 1, true, false, true, false, false, QKVI_GELU, 1, 0, 0, .n_kv_heads = 3,
      .adds = true, .rotates = true, .parallel = true, .turned = 4 },
    { "like OPT", 1, true, false, true, true, false, QKVI_GELU, 4, 0, 2, .n_kv_heads = 3,
      .adds = true, .narrow = 20 },
    { "like GPT-J", 1, true, false, true, false, false, QKVI_GELU_TANH, 1, 0, 0, .n_kv_heads = 3,
      .adds = true, .rotates = true, .parallel = true, .turned = 6, .one_norm = true,
      .neighbours = true, .bias_learns = true },
    { "like BLOOM", 1, true, true, true, true, false, QKVI_GELU_TANH, 1, 0, 0, .n_kv_heads = 3,
      .adds = true, .alibi = true, .from_norm = true },
};
enum { N_NET_KINDS = sizeof net_kinds / sizeof *net_kinds };
enum { NET_LAYERS = 2, NET_HEADS = 3, NET_HIDDEN = 36, NET_WIDE = 50, NET_MAX_LEN = 520 };
enum { NET_WORDS = 41, NET_TARGET_WORDS = 37, NET_PARAMS = 260000, NET_PACKED = 256 };

typedef struct random_net {
    qkvi_net net;
    float *arena, *positions;
    size_t used;
    qkvi_rng rng;
    bool is_gradient;
    qkv_model_weights compute; /* f32, or a class of bf16 */
    float *packed[NET_PACKED];
    int n_packed;
} random_net;

/* n random floats around centre; in gradients they are garbage that must be overwritten. */
static float *take(random_net *r, int64_t n, float centre, float spread) {
    float *const at = r->arena + r->used;
    r->used += ((size_t)n + 15) / 16 * 16;
    if (r->used > NET_PARAMS) abort();
    for (int64_t i = 0; i < n; i++)
        at[i] = r->is_gradient
                    ? 77
                    : centre + spread * (qkvi_rng_unit(&r->rng) + qkvi_rng_unit(&r->rng) - 1.0f);
    return at;
}

static float *make_packed(random_net *r, int64_t k, int64_t n) {
    return r->packed[r->n_packed++] =
               qkvi_aligned_array((size_t)qkvi_rows_packed_elems(k, n), sizeof(float));
}

static void make_forms(random_net *r, qkvi_linear *l) {
    float *const forward = make_packed(r, l->n_in, l->n_out);
    float *const backward = make_packed(r, l->n_out, l->n_in);
    if (r->compute == QKV_WEIGHTS_F32) {
        l->forward = forward, l->backward = backward;
        return;
    }
    l->half = (uint32_t *)forward, l->half_backward = (uint32_t *)backward;
    l->half_class = r->compute == QKV_WEIGHTS_BF16_AMX ? QKV_CLASS_AMX : QKV_CLASS_DP;
}

static qkvi_linear make_linear(random_net *r, int64_t n_out, int64_t n_in, float *weight) {
    qkvi_linear l = { .n_in = n_in, .n_out = n_out };
    l.weight = weight ? weight : take(r, n_in * n_out, 0, 0.35f);
    if (!r->is_gradient) make_forms(r, &l);
    return l;
}

static qkvi_linear make_biased(random_net *r, int64_t n_out, int64_t n_in) {
    qkvi_linear l = make_linear(r, n_out, n_in, NULL);
    l.bias = take(r, n_out, 0, 0.3f);
    return l;
}

static qkvi_layernorm make_norm_of(random_net *r, const net_kind *kind, int64_t n) {
    const float centre = kind->norm == QKVI_RMS_NORM_FROM_ONE ? 0 : 1;
    qkvi_layernorm norm = { .n = n, .kind = kind->norm };
    norm.gamma = take(r, n, centre, 0.3f);
    if (kind->norm == QKVI_LAYER_NORM) norm.beta = take(r, n, 0, 0.3f);
    return norm;
}

static qkvi_layernorm make_norm(random_net *r, const net_kind *kind) {
    return make_norm_of(r, kind, NET_HIDDEN);
}

static const float net_slopes[NET_HEADS] = { 0.5f, 0, 0.0625f };

static qkvi_mha make_mha(random_net *r, const net_kind *kind, double scale) {
    const int64_t head_dim = NET_HIDDEN / NET_HEADS, kv_width = kind->n_kv_heads * head_dim;
    qkvi_mha mha = { .n_heads = NET_HEADS,
                     .n_kv_heads = kind->n_kv_heads,
                     .head_dim = head_dim,
                     .hidden = NET_HIDDEN,
                     .scale = scale,
                     .softcap = kind->cap,
                     .eps = 1e-5f,
                     .rope = kind->rotates,
                     .neighbours = kind->neighbours,
                     .alibi = kind->alibi ? net_slopes : NULL,
                     .turned = kind->turned > 0 ? kind->turned : head_dim };
    if (kind->norms_heads || kind->norms_rows) {
        mha.q_norm = make_norm_of(r, kind, kind->norms_rows ? NET_HIDDEN : head_dim);
        mha.k_norm = make_norm_of(r, kind, kind->norms_rows ? kv_width : head_dim);
    }
    mha.query = make_biased(r, NET_HIDDEN, NET_HIDDEN);
    mha.key = make_biased(r, kv_width, NET_HIDDEN);
    mha.value = make_biased(r, kv_width, NET_HIDDEN);
    mha.output = make_biased(r, NET_HIDDEN, NET_HIDDEN);
    return mha;
}

static qkvi_block make_block(random_net *r, const net_kind *kind, bool crosses, double scale) {
    const bool normed = kind->pre_norm || !kind->adds;
    qkvi_block b = {
        .act = kind->act, .pre_norm = kind->pre_norm, .adds = kind->adds, .eps = 1e-5f
    };
    b.parallel = kind->parallel;
    b.from_norm = kind->from_norm;
    b.mha = make_mha(r, kind, scale);
    b.norm1.n = b.norm2.n = NET_HIDDEN;
    if (normed) b.norm1 = make_norm(r, kind);
    if (kind->normed_output) b.out1 = make_norm(r, kind), b.out2 = make_norm(r, kind);
    if (crosses) {
        b.cross = make_mha(r, kind, scale);
        b.norm_cross = make_norm(r, kind);
    }
    if (kind->gated) b.gate = make_biased(r, NET_WIDE, NET_HIDDEN);
    b.up = make_biased(r, NET_WIDE, NET_HIDDEN);
    b.down = make_biased(r, NET_HIDDEN, NET_WIDE);
    if (normed) b.norm2 = kind->one_norm ? b.norm1 : make_norm(r, kind);
    return b;
}

/* Word embeddings of another width, and positions of the hidden width. */
static void make_narrow(random_net *r, const net_kind *kind, qkvi_stack *s) {
    const int64_t n_positions = kind->first_position + NET_MAX_LEN;
    s->embed = (qkvi_embed){ .hidden = kind->narrow,
                             .n_words = s->vocab_size,
                             .n_types = 1,
                             .word_scale = kind->word_scale,
                             .padding = -1,
                             .padding_place = -1 };
    s->embedding_size = kind->narrow;
    s->embed.word = take(r, s->vocab_size * kind->narrow, 0, 0.5f);
    s->project = make_linear(r, NET_HIDDEN, kind->narrow, NULL);
    s->positions = take(r, n_positions * NET_HIDDEN, 0, 0.3f);
    if (!r->is_gradient) s->no_segment = s->embed.type = calloc((size_t)kind->narrow, 4);
}

static void make_embed(random_net *r, const net_kind *kind, int64_t n_words, float *words,
                       qkvi_stack *s) {
    s->embed = (qkvi_embed){ .hidden = NET_HIDDEN,
                             .n_words = n_words,
                             .n_types = 1,
                             .n_positions = kind->first_position + NET_MAX_LEN,
                             .word_scale = kind->word_scale,
                             .padding = -1,
                             .padding_place = -1 };
    s->embed.word = words ? words : take(r, n_words * NET_HIDDEN, 0, 0.5f);
    s->embed.position =
        kind->learned_positions ? take(r, s->embed.n_positions * NET_HIDDEN, 0, 0.3f) : NULL;
    if (r->is_gradient) return;
    if (!kind->learned_positions) s->embed.position = r->positions;
    s->no_segment = s->embed.type = calloc(NET_HIDDEN, sizeof(float));
}

static void make_stack(random_net *r, const net_kind *kind, int place, float *words) {
    qkvi_stack *s = &r->net.stacks[place];
    const bool last = place == kind->n_stacks - 1;
    const int64_t n_words = last && !kind->tied ? NET_TARGET_WORDS : NET_WORDS;
    *s = (qkvi_stack){ .n_layers = NET_LAYERS,
                       .n_heads = NET_HEADS,
                       .n_kv_heads = kind->n_kv_heads,
                       .hidden = NET_HIDDEN,
                       .head_dim = NET_HIDDEN / NET_HEADS,
                       .intermediate = NET_WIDE,
                       .vocab_size = n_words,
                       .max_len = NET_MAX_LEN,
                       .embedding_size = NET_HIDDEN,
                       .first_position = kind->first_position,
                       .causal = last,
                       .eps = 1e-5f };
    if (kind->narrow > 0)
        make_narrow(r, kind, s);
    else
        make_embed(r, kind, n_words, kind->tied ? words : NULL, s);
    if (kind->embed_norm) s->embed_norm = make_norm(r, kind);
    s->blocks = calloc(NET_LAYERS, sizeof *s->blocks);
    for (int l = 0; l < NET_LAYERS; l++)
        s->blocks[l] = make_block(r, kind, place > 0, l ? 0 : kind->scale);
    if (kind->window > 0)
        s->blocks[1].mha.windowed = true, s->blocks[1].mha.window_left = kind->window - 1;
    if (kind->pre_norm) s->last_norm = make_norm(r, kind);
    const qkv_rope rope = { .type = QKV_ROPE_DEFAULT, .theta = 50, .attention_factor = 1.1 };
    if (kind->rotates && !r->is_gradient &&
        qkvi_rope_make(&rope, s->blocks[0].mha.turned, &s->ropes[0], NULL) != QKV_OK)
        abort();
}

/* Makes a net; is_gradient: the gradients of one, in an arena of their own. */
static random_net *make_net_in(qkv_model_weights compute, const net_kind *kind, uint64_t seed,
                               bool is_gradient) {
    random_net *r = calloc(1, sizeof *r);
    r->compute = compute;
    r->rng = qkvi_rng_make(seed, 21, 0);
    r->is_gradient = is_gradient;
    r->arena = qkvi_aligned_array(NET_PARAMS, sizeof(float));
    memset(r->arena, 0, NET_PARAMS * sizeof(float));
    r->positions = qkvi_aligned_array((size_t)NET_MAX_LEN * NET_HIDDEN, sizeof(float));
    qkvi_sinusoids_half(NET_MAX_LEN, NET_HIDDEN, r->positions);
    r->net.n_stacks = kind->n_stacks;
    for (int s = 0; s < kind->n_stacks; s++)
        make_stack(r, kind, s, s ? r->net.stacks[0].embed.word : NULL);
    const qkvi_stack *last = qkvi_net_last(&r->net);
    r->net.has_lm = true;
    r->net.logit_cap = kind->cap;
    if (kind->narrow > 0) r->net.project_out = make_linear(r, kind->narrow, NET_HIDDEN, NULL);
    r->net.lm = make_linear(r, last->vocab_size, last->embedding_size, last->embed.word);
    if (kind->bias_learns || (kind->lm_bias && !is_gradient)) /* the latter is no parameter */
        r->net.lm.bias = take(r, last->vocab_size, 0, 0.5f);
    if (!is_gradient) qkvi_net_pack(NULL, &r->net);
    return r;
}

static random_net *make_net(const net_kind *kind, uint64_t seed, bool is_gradient) {
    return make_net_in(QKV_WEIGHTS_F32, kind, seed, is_gradient);
}

static void free_net(random_net *r) {
    for (int s = 0; s < r->net.n_stacks; s++) {
        free(r->net.stacks[s].blocks);
        free(r->net.stacks[s].no_segment);
        qkvi_rope_free(&r->net.stacks[s].ropes[0]);
    }
    for (int p = 0; p < r->n_packed; p++) free(r->packed[p]);
    free(r->arena);
    free(r->positions);
    free(r);
}

#endif
