/*
 * The activations of one stack over one batch, cut from the arena of a net's pass. What is kept
 * decides what shares memory: a run needs two hidden states and one of everything else, training
 * needs everything.
 */
#ifndef QKVI_ARCH_STACK_PASS_H
#define QKVI_ARCH_STACK_PASS_H

#include "model/arch/batch.h"
#include "qkv/model.h"

/* What to keep of every layer. */
enum {
    QKVI_KEEP_CAPTURE = QKV_RUN_CAPTURE, /* q, k, lse */
    QKVI_KEEP_HIDDEN = QKV_RUN_HIDDEN,   /* hidden states */
    QKVI_KEEP_ALL = 1u << 16             /* whatever the backward pass reads */
};

struct qkvi_stack_pass {
    const qkvi_stack *stack; /* while it runs */
    int64_t n_layers;
    unsigned keep;
    qkvi_batch_rows rows;
    qkvi_mha_change change;
    qkvi_kept kept;              /* of decoding (decoder.h) */
    qkvi_row_dropout dropout;    /* of this stack: its sites begin at dropout.site */
    const float *memory;         /* [n_memory][hidden] last hidden states of the other stack */
    const qkvi_batch_rows *keys; /* its rows; NULL without */
    float *embed_s, *embed_stats, *embedded; /* sum, mu and rstd, norm [n_rows][embedding_size] */
    float *h0;             /* [n_rows][hidden]: embedded, or what is projected of it */
    qkvi_block_acts *acts; /* [n_layers], the net pass' */
    float *y, *y_stats; /* [n_rows][hidden] last hidden states: the last block's, or their norm */

    /* The rest is for training. */
    bool picks; /* the last block computes the rows of pick only */
    qkvi_pick pick;
    float *d;        /* [n_rows][hidden] */
    float *d_memory; /* [n_memory][hidden] */
    qkvi_block_scratch scratch;
    float *d_embed;                   /* [n_rows][embedding_size], if projected */
    float *embed_packed, *embed_sums; /* panels of embedded, if projected; column sums */
    int32_t *embed_scratch;
};

/* Cuts all but rows, for a pass whose stack, keep, rows.n_rows, keys, picks and pick.n are known. */
void qkvi_stack_pass_cut(qkvi_cutter *cutter, qkvi_stack_pass *pass);

/*
 * What a run left, until the pass' next use; NULL for what was not kept. Rows of one sequence are
 * consecutive. (Training does not compute all rows of an encoder's last layer.)
 */
static inline int64_t qkvi_stack_row(const qkvi_stack_pass *pass, int64_t sequence) {
    return pass->rows.first_row[sequence]; /* its first one */
}
const float *qkvi_stack_hidden(const qkvi_stack_pass *pass, int64_t layer); /* [rows][hidden] */
/* What attention had, to itself or to the memory: q, k, lse; NULL. */
const qkvi_mha_acts *qkvi_stack_captured(const qkvi_stack_pass *pass, int64_t layer, bool cross);

#endif
