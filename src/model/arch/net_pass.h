/*
 * The activations of one pass through a net. One arena holds them all; it is laid out anew for
 * every batch, by one function that runs twice: to measure, then to cut.
 */
#ifndef QKVI_ARCH_NET_PASS_H
#define QKVI_ARCH_NET_PASS_H

#include "model/arch/net.h"

/* The heads over the rows they read, see heads.c. n: targets, or first tokens. */
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

typedef struct qkvi_lm_acts {
    float *x;      /* [n][hidden] the rows of targets, then their gradient */
    int32_t *rows; /* [n] where they are */
    float *logits; /* [n][vocab_size], then their gradient */
    float *narrow; /* [n][embedding_size] what is projected of x, then its gradient; or nothing */
    float *capped; /* [n][vocab_size] logits that stay, of models that cap them; or nothing */
    float *packed; /* panels of x, or of narrow */
    float *sums;   /* column sums of logits, or of narrow */
} qkvi_lm_acts;

/* The classifier of images (images.c). */
typedef struct qkvi_label_acts {
    float *read;   /* [n][2 hidden] what it reads of n images, then the gradient of it */
    float *logits; /* [n][n_labels], then their gradient */
    float *other;  /* [n][n_labels] of the second classifier */
    float *packed, *sums;
} qkvi_label_acts;

struct qkvi_net_pass {
    qkv_allocator allocator;
    qkvi_arena arena;
    qkvi_order order;
    int n_stacks; /* that this pass runs */
    qkvi_stack_pass stacks[2];
    qkvi_block_acts *acts; /* [layers of all stacks], from malloc */
    int64_t acts_capacity;

    /* The rest is for qkvi_net_loss; heads read a few rows only. */
    int64_t n_targets, n_labels; /* n_labels: first tokens that the NSP head reads, all or none */
    qkvi_mlm_acts mlm;
    qkvi_nsp_acts nsp;
    qkvi_lm_acts lm;
    qkvi_label_acts label;
    float *row_loss; /* [max(n_targets, n_labels)][2] */
};

/*
 * Fills what the first block of a pass that has begun reads, and the memory of its stack
 * (net_pass.c).
 */
void qkvi_pass_begin_within(const qkvi_net_start *start, qkvi_net_pass *pass);

/* ---- Heads ----------------------------------------------------------------------------------- */

/* The loss of the classifier of images, and its gradients (images.c). */
void qkvi_images_cut(const qkvi_net *net, qkvi_cutter *cutter, qkvi_net_pass *pass);
void qkvi_images_forward(qkv_ctx *ctx, const qkvi_net *net, const qkvi_net_batch *batch,
                         qkvi_net_pass *pass, qkvi_net_losses *losses);
void qkvi_images_backward(qkv_ctx *ctx, const qkvi_net *net, const qkvi_net *grads,
                          qkvi_net_pass *pass);

/* The losses of the heads of an encoder and of a language model (heads.c). */
void qkvi_heads_forward(qkv_ctx *ctx, const qkvi_net *net, const qkvi_net_batch *batch,
                        qkvi_net_pass *pass, qkvi_net_losses *losses);
void qkvi_heads_backward(qkv_ctx *ctx, const qkvi_net *net, const qkvi_net *grads,
                         const qkvi_net_pass *pass);
void qkvi_lm_forward(qkv_ctx *ctx, const qkvi_net *net, const qkvi_net_batch *batch,
                     qkvi_net_pass *pass, qkvi_net_losses *losses);
/*
 * Logits [n_rows][words] of last hidden states x [n_rows][hidden]; narrow: room for
 * [n_rows][project_out.n_out].
 */
void qkvi_lm_logits(qkv_ctx *ctx, const qkvi_net *net, int64_t n_rows, const float *x,
                    float *narrow, float *logits);
void qkvi_lm_backward(qkv_ctx *ctx, const qkvi_net *net, const qkvi_net *grads,
                      qkvi_net_pass *pass);

#endif
