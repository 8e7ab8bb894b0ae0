/*
 * One block of a transformer: self-attention, in a decoder attention over the encoder,
 * feed-forward; each a residual part with its layer norm. With f one of the three and x its input,
 *
 *     norm of the sum    y = norm(x + f(x))        Vaswani et al. 2017: BERT, BART, Marian
 *     of the input       y = x + f(norm(x))        Xiong et al. 2020: GPT-2, Llama
 *     of the output      y = x + norm(f(x))        OLMo 2
 *     of both            y = x + norm(f(norm(x)))  Gemma 2
 *     parallel           y = x + a(norm(x)) + f(norm'(x))  GPT-NeoX: both parts read the block's x;
 *                                             GPT-J: norm and norm' are one
 *     from the norm      y = norm(x) + f(norm(x))  BLOOM, where its config.json says so
 *
 *     feed-forward    f(z) = act(z Wuᵀ + bu) Wdᵀ + bd
 *     gated           f(z) = (act(z Wgᵀ + bg) ⊙ (z Wuᵀ + bu)) Wdᵀ + bd
 *
 * In training f's result goes through dropout before the sum, and so do the weights of attention.
 *
 * The last block of an encoder may compute its rows only where heads will read them: qkvi_pick. Its
 * attention still has queries for every row; what follows attention has not.
 */
#ifndef QKVI_LAYER_BLOCK_H
#define QKVI_LAYER_BLOCK_H

#include "core/arena.h"
#include "layer/act.h"
#include "layer/dropout.h"
#include "layer/layernorm.h"
#include "layer/linear.h"
#include "model/layer/distances.h"
#include "model/layer/rope.h"

/*
 * Multi-head attention (Vaswani et al. 2017, section 3.2.2) over a batch without padding.
 *
 *     q = x Wqᵀ + bq      k, v = m Wkᵀ + bk, m Wvᵀ + bv      head h of a row: channels h head_dim …
 *     q, k = turn(norm(q)), turn(norm(k))                    where a model has such norms and turns
 *     o = softmax(softcap(scale q kᵀ) + bias) v              for each sequence and head; bias: by
 *                                                            distance (T5) or ALiBi (BLOOM)
 *
 * Norms of q and k are of each head, or of whole rows; turn is that of rotary positions (rope.h).
 * Query heads share n_kv_heads key/value heads in groups (Ainslie et al. 2023).
 *
 * Self-attention has m = x; cross-attention has the rows of another stack, the memory. The output
 * projection y = o Woᵀ + bo has its weights here but is computed by the block, which may want it
 * for some rows only.
 *
 * Sequences follow each other in the rows, in groups whose sequences have equally many queries and
 * equally many keys. Attention is called once for each group, with strides into the rows; so its
 * cost has no padding in it.
 *
 * An encoder with weights in bf16 that only runs attends in bf16, too: q, k and v are rounded to
 * it, and attention is computed in the class of the weights. Decoders attend in f32, since what
 * they keep of earlier tokens is f32; so do layers that turn q and k, or have a bias by distance.
 */

typedef struct qkvi_sequence_group {
    int64_t first_row, n_sequences, len;
    int64_t first_key, len_keys; /* rows of the memory; those above again where there is none */
} qkvi_sequence_group;

/*
 * A mask of a layer beside its rules, of edges that are cut: a query sees a key if both allow it.
 * sees NULL: nothing is cut.
 */
typedef struct qkvi_uncut {
    const uint8_t *sees; /* [n_heads or 1][n_queries][n_keys], of a batch of one sequence */
    int64_t head_stride; /* 0: the same for all heads */
} qkvi_uncut;

/* How attention is to differ from what the model says (--what-if). Zeros: it does not. */
typedef struct qkvi_mha_change {
    bool causal, no_scale;
    double temperature;        /* scores are divided by it; 0: they are not */
    const uint8_t *seen;       /* [n_keys]: 0 hides a key from every query; NULL: none is hidden */
    const qkvi_uncut *cuts[3]; /* by qkv_attention_kind, [n_layers] each; NULL: none are cut */
    const qkvi_uncut *cut;     /* the element of cuts for this layer; it includes seen */
} qkvi_mha_change;

/* The rows of a batch: groups of sequences, one after another. */
typedef struct qkvi_groups {
    int64_t n_rows, n_keys, n_groups;
    const qkvi_sequence_group *list;
    const float *turns; /* [n_rows][turned] of rotary positions; NULL: none */
    qkvi_mha_change change;
    qkvi_row_dropout dropout; /* of weights; its site is this layer's */
} qkvi_groups;

typedef struct qkvi_mha {
    int64_t n_heads, n_kv_heads, head_dim, hidden; /* hidden: of the rows that it reads */
    double scale;                                  /* 0: 1 / √head_dim */
    float softcap;                                 /* 0: none */
    bool windowed;
    int64_t window_left, window_right;   /* of a windowed layer; -1: no bound */
    int rope;                            /* 1 + which of the stack's; 0: none */
    int64_t turned;                      /* channels of a head that it turns … */
    bool neighbours;                     /* … in pairs of 2i and 2i + 1 (rope.h) */
    const qkvi_distance_bias *distances; /* that bias scores; NULL: none do */
    const float *alibi;                  /* [n_heads] slopes of ALiBi; NULL: none */
    qkvi_layernorm q_norm, k_norm;       /* gamma NULL: none; n: head_dim, or the whole row */
    float eps;                           /* of both */
    qkvi_linear query, key, value, output;
} qkvi_mha;

/* Channels of a row of q and o, and of k and v. */
static inline int64_t qkvi_mha_width(const qkvi_mha *layer) {
    return layer->n_heads * layer->head_dim;
}
static inline int64_t qkvi_mha_kv_width(const qkvi_mha *layer) {
    return layer->n_kv_heads * layer->head_dim;
}

/* What the forward pass leaves for captures and for the backward pass. */
typedef struct qkvi_mha_acts {
    float *q, *o;      /* [n_rows][qkvi_mha_width] */
    float *k, *v;      /* [n_keys][qkvi_mha_kv_width] */
    float *raw[2];     /* q and k before their norms, to train; NULL: norms are in place */
    float *stats[2];   /* of these norms; NULL */
    uint16_t *half[3]; /* q, k and v in bf16, which then are computed with; NULL: those above are */
    float *lse;        /* [n_heads][len] of a sequence begin at its first row * n_heads */
} qkvi_mha_acts;

typedef struct qkvi_mha_scratch {
    float *d_q, *d_o; /* [n_rows][qkvi_mha_width] */
    float *d_k, *d_v; /* [n_keys][qkvi_mha_kv_width] */
    float *packed;    /* qkvi_rows_packed_elems(the more of n_rows and n_keys, hidden) */
    float *sums;      /* of columns of d_q, d_k, d_v; two of rows of their norms */
    float *product;   /* [the more of n_rows and n_keys][hidden] of layers in bf16 */
    float *d_bias;    /* of all distances, where a bias by distance has a gradient */
} qkvi_mha_scratch;

/* Whether such a layer attends in bf16. */
static inline bool qkvi_mha_in_half(const qkvi_mha *layer) {
    return layer->query.half && !layer->query.weight && !layer->rope && !layer->distances;
}

/* The factor on q·k: the layer's, or what the change makes of it. */
double qkvi_mha_scale(const qkvi_mha *layer, const qkvi_mha_change *change);
/*
 * Sets in desc how the layer makes scores and which keys queries see: causal, window, soft cap,
 * bias by distance, ALiBi, scale. A scale of 1 / √head_dim is not set: attention has that default.
 */
void qkvi_mha_describe_scores(const qkvi_mha *layer, const qkvi_mha_change *change,
                              qkv_attention_desc *desc);

/*
 * acts from x [n_rows][hidden] and memory [n_keys][hidden], NULL: x. Fails only if attention does.
 */
qkv_status qkvi_mha_forward(qkv_ctx *ctx, const qkvi_mha *layer, const qkvi_groups *groups,
                            const float *x, const float *memory, qkvi_mha_acts *acts);

/*
 * q and k of projections become those that attention reads: norms, then turns of rows. keys: of k;
 * the same rows as those of q in self-attention, where alone there are turns.
 */
void qkvi_mha_place(qkv_ctx *ctx, const qkvi_mha *layer, int64_t n_rows, int64_t n_keys,
                    const float *turns, const qkvi_mha_acts *acts);

/*
 * From scratch->d_o, the gradient of o: d_x += the gradient of x, and d_memory += that of memory,
 * which are the same array without one.
 */
qkv_status qkvi_mha_backward(qkv_ctx *ctx, const qkvi_mha *layer, const qkvi_mha *d,
                             const qkvi_groups *groups, const float *x, const float *memory,
                             const qkvi_mha_acts *acts, float *d_x, float *d_memory,
                             const qkvi_mha_scratch *scratch);

typedef struct qkvi_block {
    qkvi_mha mha;
    qkvi_layernorm norm1;
    qkvi_mha cross; /* n_heads 0: none */
    qkvi_layernorm norm_cross;
    qkvi_linear up, down; /* hidden → intermediate → hidden */
    qkvi_linear gate;     /* n_out 0: none */
    qkvi_layernorm norm2;
    qkvi_layernorm out1, out2; /* of what parts add; gamma NULL: none */
    qkvi_act act;
    bool pre_norm;  /* norm1, norm_cross and norm2 are of the input, not of the sum */
    bool adds;      /* the output is a sum, x + …; false: it is the norm of one */
    bool parallel;  /* feed-forward reads the block's input, too; with adds, without cross */
    bool from_norm; /* parts are added to what they read; with pre_norm alone, without cross */
    float eps;
} qkvi_block;

/* Whether both parts of a parallel block read the same norm. */
static inline bool qkvi_block_shares_norm(const qkvi_block *layer) {
    return layer->parallel && layer->norm1.gamma && layer->norm2.gamma == layer->norm1.gamma;
}

static inline bool qkvi_block_crosses(const qkvi_block *layer) { return layer->cross.n_heads > 0; }

/* Sites of dropout: weights and result of both attentions, the feed-forward part. */
enum { QKVI_BLOCK_SITES = 5 };

/*
 * Attention over keys that the caller keeps, instead of that over the batch: computes acts->o for
 * the rows x of a block's layer.
 */
typedef struct qkvi_kept {
    qkv_status (*attend)(qkv_ctx *ctx, void *kept, const qkvi_mha *mha, int64_t layer, bool cross,
                         const float *x, qkvi_mha_acts *acts);
    void *kept;
} qkvi_kept;

/*
 * Replaces or changes o [n_rows][n_heads head_dim], the output of a layer's heads, as ablations do.
 * give: fills o in place of attention, or returns false, and attention computes it. change: is
 * called on o after either. NULL: not called.
 */
typedef struct qkvi_outputs {
    bool (*give)(void *of, int64_t layer, bool cross, float *o);
    void (*change)(void *of, int64_t layer, bool cross, float *o);
    void *of;
} qkvi_outputs;

/* The rows of a block's batch, and what its parts read besides. */
typedef struct qkvi_block_rows {
    qkvi_groups self, cross;  /* cross: of blocks that have it */
    const float *memory;      /* [cross.n_keys][hidden] */
    qkvi_row_dropout dropout; /* its site is the block's first of QKVI_BLOCK_SITES; rate 0: none */
    int64_t layer;            /* the block's number */
    qkvi_kept kept;           /* attend NULL: attention over the batch */
    qkvi_outputs outputs;
} qkvi_block_rows;

/*
 * Rows that are computed after attention. A row may be picked several times; all arrays after the
 * pick are in its order.
 */
typedef struct qkvi_pick {
    int64_t n;
    int32_t *rows;
    float *o,
        *x; /* [n][hidden] of attention's output and of the block's input; x is used up backward */
    float *d; /* [n][hidden] gradient of the block's output */
} qkvi_pick;

/*
 * A residual part. To run only, s, y and f may be the same array; the backward pass needs all.
 *
 *     norm of the sum    f reads x         s = x + f     y = norm(s), the output
 *     of the input       f reads y         y = norm(x)   s = x + f, the output
 *     from the norm      f reads y         y = norm(x)   s = y + f, the output; s must not be y
 *     of the output      f reads x, or y   s = x + norm(f), the output
 */
typedef struct qkvi_part_acts {
    float *s, *y;   /* [n][hidden] */
    float *stats;   /* [n][2] of the norm */
    float *f;       /* s, but of blocks with norms of the output */
    float *f_stats; /* [n][2] of that */
} qkvi_part_acts;

/* What the forward pass computes, for n rows: all, or those picked. To run only, u and g may be the
 * same array, and so may o of mha and of cross, and q. */
typedef struct qkvi_block_acts {
    qkvi_mha_acts mha, cross;
    qkvi_part_acts part1, part_cross, part2;
    int64_t n_feed; /* rows that the feed-forward part takes at once; to train, all */
    float *u, *g;   /* [n_feed][intermediate]: before and after act; gated: up z, what down reads */
    float *gate;    /* [n_feed][intermediate]: gate z of a gated block */
    float *output;  /* part2.s or part2.y */
} qkvi_block_acts;

typedef struct qkvi_block_scratch {
    qkvi_mha_scratch mha; /* its packed and sums are large enough for the whole block */
    float *d_g, *d_gate;  /* [n_rows][intermediate]; d_gate of gated blocks */
    float *d_part;        /* [n_rows][hidden]: of f's result, or of what it reads */
    float *d_output;      /* [n_rows][hidden]: of a parallel block's output */
    float *d_norm;        /* [2][hidden]: of the parameters of a norm that both parts read */
} qkvi_block_scratch;

/*
 * Cuts the scratch of a block's backward pass for at most n_rows rows, all or picked, and n_keys.
 */
void qkvi_block_scratch_cut(const qkvi_block *layer, int64_t n_rows, int64_t n_keys,
                            qkvi_cutter *cutter, qkvi_block_scratch *scratch);

/*
 * acts from x [n_rows][hidden], for picked rows if pick is not NULL, which a block with
 * cross-attention cannot. Fails only if attention does.
 */
qkv_status qkvi_block_forward(qkv_ctx *ctx, const qkvi_block *layer, const qkvi_block_rows *rows,
                              const qkvi_pick *pick, const float *x, qkvi_block_acts *acts);

/*
 * d [n_rows][hidden] comes in as the gradient of the output and goes out as that of x; the gradient
 * of the memory is added to d_memory. With a pick, the gradient of the output comes in pick->d
 * instead, which is used up.
 */
qkv_status qkvi_block_backward(qkv_ctx *ctx, const qkvi_block *layer, const qkvi_block *grads,
                               const qkvi_block_rows *rows, const qkvi_pick *pick, const float *x,
                               const qkvi_block_acts *acts, float *d, float *d_memory,
                               const qkvi_block_scratch *scratch);

#endif
