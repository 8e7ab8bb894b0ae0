/* What a decoder is (decoder.h): shared by decoder.c and decoder_attend.c. */
#ifndef QKVI_ARCH_DECODER_IMPL_H
#define QKVI_ARCH_DECODER_IMPL_H

#include "model/arch/decoder.h"
#include "qkv/kv.h"

/* Tokens of a page of a cache, and of a ring. */
enum { QKVI_DECODER_PAGE = 64, QKVI_RING_PAGE = 16 };

struct qkvi_decoder {
    const qkvi_net *net;
    const qkvi_stack *stack;
    int64_t n_slots, max_len, n_source;
    int64_t bank;          /* first sequence of the slots in the caches: 0 or n_slots */
    qkv_kv_cache **caches; /* [n_layers] */
    float *cross;          /* [n_layers][2][n_source][width] keys and values of the source */
    qkv_allocator allocator;
    qkvi_arena arena;
    qkvi_block_acts *acts; /* [n_layers] */
    qkvi_batch_rows source_rows;
    qkvi_stack_pass pass;
    float *narrow;    /* [rows of the pass][project_out.n_out] */
    int64_t prompted; /* the slot of a prompt, or -1: a step */
    int64_t *last;    /* [n_slots] places of the tokens of a step */
};

/* Tokens of the ring of a layer with a window; 0: it keeps all. */
int64_t qkvi_decoder_ring(const qkvi_decoder *d, const qkvi_mha *mha);

/* A qkvi_kept (layer/block.h) of a decoder. */
qkv_status qkvi_decoder_attend(qkv_ctx *ctx, void *kept, const qkvi_mha *mha, int64_t layer,
                               bool cross, const float *x, qkvi_mha_acts *acts);

#endif
