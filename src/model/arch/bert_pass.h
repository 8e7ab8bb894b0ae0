/*
 * The activations of one pass. One arena holds them all; it is laid out anew for every batch, by
 * one function that runs twice: to measure, then to cut. What a pass keeps decides what shares
 * memory: a run needs two hidden states and one of everything else, training needs everything.
 */
#ifndef QKVI_ARCH_BERT_PASS_H
#define QKVI_ARCH_BERT_PASS_H

#include "model/arch/batch.h"

/* What to keep of every layer. */
enum {
    QKVI_KEEP_CAPTURE = QKV_RUN_CAPTURE, /* q, k, lse */
    QKVI_KEEP_HIDDEN = QKV_RUN_HIDDEN,   /* hidden states */
    QKVI_KEEP_ALL = 1u << 16             /* whatever the backward pass reads */
};

/* The heads over selected rows, see bert_loss.c. n: MLM targets, or sequences. */
typedef struct qkvi_mlm_acts {
    float *x, *u, *g, *y; /* [n][hidden] rows, transform, gelu, norm */
    float *stats;         /* [n][2] */
    float *logits;        /* [n][vocab_size], then their gradient */
    float *d;             /* [n][hidden] */
    float *sums;          /* column sums of a product with the vocabulary */
} qkvi_mlm_acts;

typedef struct qkvi_nsp_acts {
    float *x, *pooled, *d; /* [n][hidden] first tokens, pooler, gradient */
    float *logits;         /* [n][2], then their gradient */
} qkvi_nsp_acts;

struct qkvi_bert_pass {
    qkv_allocator allocator;
    qkvi_arena arena;
    unsigned keep;
    int64_t n_layers, hidden;
    qkvi_batch_rows rows;
    float *embed_s, *embed_stats, *embedded; /* sum, mu and rstd, norm */
    qkvi_block_acts *acts;                   /* [n_layers], from malloc */
    int64_t acts_capacity;

    /* The rest is for qkvi_bert_loss. */
    qkvi_mlm_acts mlm;
    qkvi_nsp_acts nsp;
    float *row_loss; /* [max(n_targets, n_sequences)][2] */
    float *d;        /* [n_rows][hidden] */
    qkvi_block_scratch scratch;
    int32_t *embed_scratch;
};

qkvi_groups qkvi_pass_groups(const qkvi_bert_pass *pass);

/* Checks the batch, makes room, sorts. */
qkv_status qkvi_pass_begin(const qkvi_bert_params *params, const qkvi_bert_batch *batch,
                           unsigned keep, qkvi_bert_pass *pass, qkv_error *error);

/*
 * Encoder over a pass that has begun. pass->d comes into backward as the gradient of the last
 * layer.
 */
qkv_status qkvi_encoder_forward(qkv_ctx *ctx, const qkvi_bert_params *params, qkvi_bert_pass *pass);
qkv_status qkvi_encoder_backward(qkv_ctx *ctx, const qkvi_bert_params *params,
                                 const qkvi_bert_params *grads, qkvi_bert_pass *pass);

/* status, with the context's message in error. */
qkv_status qkvi_pass_failed(const qkv_ctx *ctx, qkv_status status, qkv_error *error);

#endif
