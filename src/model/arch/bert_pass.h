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

/* The heads over the rows they read, see bert_heads.c. n: MLM targets, or first tokens. */
typedef struct qkvi_mlm_acts {
    const float *x;   /* [n][hidden] */
    float *u, *g, *y; /* [n][embedding_size] transform, gelu, norm */
    float *stats;     /* [n][2] */
    float *logits;    /* [n][vocab_size], then their gradient */
    float *d;         /* [n][embedding_size] gradients */
    float *d_x;       /* [n][hidden] at last, of x */
    float *packed;    /* panels of x or y */
    float *sums;      /* column sums of a product with the vocabulary */
} qkvi_mlm_acts;

typedef struct qkvi_nsp_acts {
    const float *x; /* [n][hidden] */
    float *pooled;  /* [n][hidden] */
    float *logits;  /* [n][2], then their gradient */
    float *d, *d_x; /* [n][hidden] gradients, of x at last */
} qkvi_nsp_acts;

struct qkvi_bert_pass {
    qkv_allocator allocator;
    qkvi_arena arena;
    unsigned keep;
    int64_t n_layers, hidden;
    qkvi_batch_rows rows;
    qkvi_mha_change change;
    float *embed_s, *embed_stats, *embedded; /* sum, mu and rstd, norm [n_rows][embedding_size] */
    float *h0;             /* [n_rows][hidden]: embedded, or what is projected of it */
    qkvi_block_acts *acts; /* [n_layers], from malloc */
    int64_t acts_capacity;

    /* The rest is for qkvi_bert_loss, which needs the last hidden states of a few rows only. */
    int64_t n_labels; /* first tokens that the NSP head reads: n_sequences or 0 */
    qkvi_pick pick;   /* n_targets rows for the MLM head, n_labels for the other */
    qkvi_mlm_acts mlm;
    qkvi_nsp_acts nsp;
    float *row_loss; /* [max(n_targets, n_labels)][2] */
    float *d;        /* [n_rows][hidden] */
    qkvi_block_scratch scratch;
    float *d_embed;                   /* [n_rows][embedding_size], if projected */
    float *embed_packed, *embed_sums; /* panels of embedded, if projected; column sums */
    int32_t *embed_scratch;
};

qkvi_groups qkvi_pass_groups(const qkvi_bert_pass *pass);

/* Checks the batch, makes room, sorts. */
qkv_status qkvi_pass_begin(const qkvi_bert_params *params, const qkvi_bert_batch *batch,
                           unsigned keep, qkvi_bert_pass *pass, qkv_error *error);

/* Encoder over a pass that has begun. Backward starts from pass->pick.d. */
qkv_status qkvi_encoder_forward(qkv_ctx *ctx, const qkvi_bert_params *params, qkvi_bert_pass *pass);
qkv_status qkvi_encoder_backward(qkv_ctx *ctx, const qkvi_bert_params *params,
                                 const qkvi_bert_params *grads, qkvi_bert_pass *pass);

/* status, with the context's message in error. */
qkv_status qkvi_pass_failed(const qkv_ctx *ctx, qkv_status status, qkv_error *error);

#endif
