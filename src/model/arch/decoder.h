/*
 * Decoding with kept keys and values: token after token through a causal stack, without computing
 * again what is known of the tokens before. Slots are sequences side by side, such as the beams of
 * a search; they grow together or one by one, and share pages of the cache where they begin alike.
 *
 *     qkvi_decoder_make(ctx, net, n_slots, max_len, n_source, source, &decoder, error);
 *     qkvi_decoder_prompt(ctx, decoder, 0, n, ids, logits, error);         slot 0
 *     loop: choose from logits [n_slots][vocab]
 *         qkvi_decoder_reorder(ctx, decoder, n, from, error);              if beams change places
 *         qkvi_decoder_step(ctx, decoder, n, ids, logits, error);
 *
 * Numbers are those of a run over the whole sequence but for the order of attention's sums
 * (docs/numerics.md, decode); they do not depend on threads, instruction set, or the slots beside.
 *
 * Memory: 2 max_len n_kv_heads head_dim floats for each layer and slot, made at once; a layer with
 * a window of W keys has a ring instead of max_len, W + 15 rounded up to 16, and so many more for a
 * call. Of an encoder-decoder 2 n_layers n_source hidden more; activations of a prompt.
 */
#ifndef QKVI_ARCH_DECODER_H
#define QKVI_ARCH_DECODER_H

#include "model/arch/net.h"

typedef struct qkvi_decoder qkvi_decoder;

/*
 * A decoder of empty slots, for at most max_len tokens each (at most the model's). net and ctx must
 * outlive it, and ctx's calls be its own. source [n_source][hidden]: last hidden states of an
 * encoder, which all slots see and which are read here only; NULL for a stack without
 * cross-attention. UNSUPPORTED without an LM head; ARGUMENT, SHAPE, MEMORY.
 */
qkv_status qkvi_decoder_make(qkv_ctx *ctx, const qkvi_net *net, int64_t n_slots, int64_t max_len,
                             int64_t n_source, const float *source, qkvi_decoder **decoder,
                             qkv_error *error);
void qkvi_decoder_free(qkvi_decoder *decoder);

/* Appends n tokens to a slot; logits [vocab_size] of what follows the last one. SHAPE if they are
 * too many, ARGUMENT for an id. */
qkv_status qkvi_decoder_prompt(qkv_ctx *ctx, qkvi_decoder *decoder, int64_t slot, int64_t n,
                               const int32_t *ids, float *logits, qkv_error *error);

/* Appends ids[i] to slot i of 0 … n - 1; logits [n][vocab_size]. */
qkv_status qkvi_decoder_step(qkv_ctx *ctx, qkvi_decoder *decoder, int64_t n, const int32_t *ids,
                             float *logits, qkv_error *error);

/* Slot i of 0 … n - 1 goes on from what slot from[i] was; those above are empty then. */
qkv_status qkvi_decoder_reorder(qkv_ctx *ctx, qkvi_decoder *decoder, int64_t n, const int32_t *from,
                                qkv_error *error);

int64_t qkvi_decoder_len(const qkvi_decoder *decoder, int64_t slot);

#endif
