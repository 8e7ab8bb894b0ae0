/*
 * BERT (Devlin et al. 2018) and its family (family.h): embeddings, post-norm blocks, masked-word
 * head, next-sentence head; forward and backward.
 *
 * Parameters live in one float arena that qkvi_bert_table describes; gradients and optimizer
 * moments are arenas of the same layout. One struct of pointers, qkvi_bert_params, is bound to an
 * arena of parameters or to one of gradients:
 *
 *     qkvi_bert_table(&info, &table, error);              names, shapes, offsets
 *     qkvi_bert_bind(&info, &table, weights, FORWARD|BACKWARD, &params, error);
 *     qkvi_bert_bind(&info, &table, gradients, 0, &grads, error);
 *     qkvi_bert_pass_create(&pass, error);                activations; grow with the batch
 *     each step:
 *         qkvi_bert_pack(ctx, params);                    after every change of the weights
 *         qkvi_bert_loss(ctx, params, &batch, pass, grads, &losses, error);
 *         … norm, AdamW over the arenas (kernels/layer.h) …
 *
 * A batch is token-concatenated; there is no padding anywhere. Sequences are sorted by length
 * inside, and attention is called once for each group of equal length. Every row of activations has
 * the bits of a run of its sequence alone. Gradients are sums in a fixed order of the sorted batch:
 * they depend on the batch, never on threads or instruction set.
 */
#ifndef QKVI_ARCH_BERT_H
#define QKVI_ARCH_BERT_H

#include "model/layer/block.h"
#include "model/layer/embed.h"
#include "model/params.h"
#include "qkv/model.h"

typedef struct qkvi_bert_params {
    int64_t n_layers, n_heads, hidden, head_dim, intermediate, vocab_size, max_len, n_types;
    int64_t embedding_size; /* of embed and embed_norm; if not hidden, project follows them */
    int64_t first_position; /* place of a sequence's first token, RoBERTa's padding before it */
    float eps;
    bool has_pooler, has_mlm, has_nsp, has_judge;
    qkvi_embed embed; /* position: owned sinusoids, or learned; NULL: sinusoids have no gradient */
    qkvi_layernorm embed_norm;
    qkvi_linear project;                         /* [hidden][embedding_size] */
    qkvi_block *blocks;                          /* [n_layers] */
    qkvi_linear pooler, transform, decoder, nsp; /* decoder.weight is embed.word: tied */
    qkvi_layernorm transform_norm;
    qkvi_linear judge, judgement;
    float *packed, *sinusoids, *no_segment; /* owned */
} qkvi_bert_params;

static inline bool qkvi_bert_projects(const qkvi_bert_params *params) {
    return params->embedding_size != params->hidden;
}

/*
 * Rows in the order of the arena, named as transformers stores them. LIMIT if a size is absurd;
 * MEMORY.
 */
qkv_status qkvi_bert_table(const qkv_model_info *info, qkvi_param_table *table, qkv_error *error);

/* Which packed forms of the weights to keep: none for gradients, FORWARD to run, both to train. */
enum { QKVI_BERT_FORWARD = 1u << 0, QKVI_BERT_BACKWARD = 1u << 1 };

/*
 * Pointers into arena (not owned), and memory for packed weights, which qkvi_bert_pack must fill
 * before use.
 */
qkv_status qkvi_bert_bind(const qkv_model_info *info, const qkvi_param_table *table, float *arena,
                          unsigned packed, qkvi_bert_params **params, qkv_error *error);
void qkvi_bert_free(qkvi_bert_params *params);

/*
 * Packs all weights. ctx may be NULL: one thread (packing does not depend on the instruction set).
 */
void qkvi_bert_pack(qkv_ctx *ctx, const qkvi_bert_params *params);

/* Sequences one after another. Targets and labels are for qkvi_bert_loss only. */
typedef struct qkvi_bert_batch {
    int64_t n_sequences;
    const int64_t *lengths; /* [n_sequences], 1 … max_len */
    const int32_t *ids;     /* [sum of lengths] */
    const uint8_t *types;   /* [sum of lengths], for models with segments; NULL: all 0 */
    int64_t n_targets;
    const int64_t *target_tokens; /* [n_targets] indices into ids, ascending */
    const int32_t *target_ids;    /* [n_targets] the words that stood there */
    const int32_t *labels;  /* [n_sequences] 0: is next, 1: is not, -1: not counted; or NULL */
    qkvi_mha_change change; /* of every attention; its seen is [sum of lengths], as ids */
} qkvi_bert_batch;

/*
 * The row of the position table for token i of a sequence. RoBERTa counts from the row after that of
 * padding, and a padding token that somebody wrote has that one and is not counted.
 */
int32_t qkvi_bert_place(const qkvi_bert_params *params, const int32_t *ids, int64_t i);

/* Its segment: types may be NULL, and are ignored where the model has none. */
static inline int32_t qkvi_bert_type(const qkvi_bert_params *params, const uint8_t *types,
                                     int64_t i) {
    return params->n_types > 0 && types ? types[i] : 0;
}

typedef struct qkvi_bert_pass qkvi_bert_pass;
qkv_status qkvi_bert_pass_create(qkvi_bert_pass **pass, qkv_error *error);
void qkvi_bert_pass_free(qkvi_bert_pass *pass);

/*
 * Runs the encoder. flags: QKV_RUN_CAPTURE and QKV_RUN_HIDDEN of model.h keep q, k, lse and hidden
 * states.
 */
qkv_status qkvi_bert_forward(qkv_ctx *ctx, const qkvi_bert_params *params,
                             const qkvi_bert_batch *batch, uint32_t flags, qkvi_bert_pass *pass,
                             qkv_error *error);

/*
 * What qkvi_bert_forward left in pass, until its next use; NULL for what was not kept. Rows of one
 * sequence are consecutive. (qkvi_bert_loss does not compute all rows of the last layer.)
 */
int64_t qkvi_bert_row(const qkvi_bert_pass *pass, int64_t sequence);      /* its first row */
const float *qkvi_bert_hidden(const qkvi_bert_pass *pass, int64_t layer); /* [rows][hidden] */
const float *qkvi_bert_query(const qkvi_bert_pass *pass, int64_t layer);  /* [rows][hidden] */
const float *qkvi_bert_key(const qkvi_bert_pass *pass, int64_t layer);    /* [rows][hidden] */
/* What attention did otherwise; its seen is by rows. */
const qkvi_mha_change *qkvi_bert_change(const qkvi_bert_pass *pass);
/* [n_heads][length] of a sequence begin at qkvi_bert_row * n_heads. */
const float *qkvi_bert_lse(const qkvi_bert_pass *pass, int64_t layer);

/*
 * MLM logits [n_rows][vocab_size] of last hidden states [n_rows][hidden]; NSP logits [n_rows][2] of
 * first tokens'.
 */
qkv_status qkvi_bert_mlm(qkv_ctx *ctx, const qkvi_bert_params *params, int64_t n_rows,
                         const float *hidden, float *logits, qkv_error *error);
qkv_status qkvi_bert_nsp(qkv_ctx *ctx, const qkvi_bert_params *params, int64_t n_rows,
                         const float *hidden, float *logits, qkv_error *error);
/* Logits [n_rows] of "this token is not the one that was written". */
qkv_status qkvi_bert_judge(qkv_ctx *ctx, const qkvi_bert_params *params, int64_t n_rows,
                           const float *hidden, float *logits, qkv_error *error);

typedef struct qkvi_bert_losses {
    double mlm, nsp; /* means over targets and over counted labels; 0 if there are none */
    int64_t n_mlm, n_mlm_right, n_nsp, n_nsp_right; /* right: the target has the largest logit */
} qkvi_bert_losses;

/*
 * Losses of a batch and, unless grads is NULL, the gradient of mlm + nsp for every parameter:
 * stored, not added, zeros where nothing flows. params must have both packed forms if grads is
 * given.
 */
qkv_status qkvi_bert_loss(qkv_ctx *ctx, const qkvi_bert_params *params,
                          const qkvi_bert_batch *batch, qkvi_bert_pass *pass,
                          const qkvi_bert_params *grads, qkvi_bert_losses *losses,
                          qkv_error *error);

#endif
