/*
 * A stack: embeddings and blocks, an encoder or a decoder. One graph computes them all; what tells
 * them apart is in the struct:
 *
 *     h0 = project(norm(scale word + type + position))        norm, project: where there are any
 *     h[l + 1] = block[l](h[l], memory)                       memory: of a decoder over an encoder
 *     y = norm(h[n_layers])                                   where there is one (pre-norm)
 *
 * A pass (stack_pass.h) holds a batch and the activations of it.
 */
#ifndef QKVI_ARCH_STACK_H
#define QKVI_ARCH_STACK_H

#include "layer/embed.h"
#include "model/layer/block.h"

typedef struct qkvi_stack {
    int64_t n_layers, n_heads, hidden, head_dim, intermediate, vocab_size, max_len, n_types;
    int64_t embedding_size; /* of embed and embed_norm; if not hidden, project follows them */
    int64_t first_position; /* row of the position table that a sequence's first token gets */
    bool skips_padding; /* RoBERTa: the row before that is the padding's, which is not counted */
    bool causal;
    float eps;
    qkvi_embed embed; /* position: owned sinusoids, or learned; NULL: sinusoids have no gradient */
    qkvi_layernorm embed_norm;     /* gamma NULL: none */
    qkvi_linear project;           /* [hidden][embedding_size] */
    qkvi_block *blocks;            /* [n_layers], owned */
    qkvi_layernorm last_norm;      /* gamma NULL: none */
    float *sinusoids, *no_segment; /* owned */
} qkvi_stack;

static inline bool qkvi_stack_projects(const qkvi_stack *stack) {
    return stack->embedding_size != stack->hidden;
}
static inline bool qkvi_stack_crosses(const qkvi_stack *stack) {
    return qkvi_block_crosses(&stack->blocks[0]);
}

/*
 * The row of the position table for token i of a sequence. RoBERTa counts from the row after that of
 * padding, and a padding token that somebody wrote has that one and is not counted.
 */
int32_t qkvi_stack_place(const qkvi_stack *stack, const int32_t *ids, int64_t i);

/* Its segment: types may be NULL, and are ignored where the model has none. */
static inline int32_t qkvi_stack_type(const qkvi_stack *stack, const uint8_t *types, int64_t i) {
    return stack->n_types > 0 && types ? types[i] : 0;
}

typedef struct qkvi_stack_pass qkvi_stack_pass;

/* Over a pass that has begun. Fails only if attention does. */
qkv_status qkvi_stack_forward(qkv_ctx *ctx, const qkvi_stack *stack, qkvi_stack_pass *pass);

/*
 * pass->d comes as the gradient of the last hidden states (with a pick: its d does instead) and is
 * used up; that of the memory is added to pass->d_memory.
 */
qkv_status qkvi_stack_backward(qkv_ctx *ctx, const qkvi_stack *stack, const qkvi_stack *grads,
                               qkvi_stack_pass *pass);

#endif
