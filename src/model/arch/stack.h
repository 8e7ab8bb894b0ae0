/*
 * The activations of one stack over one batch, cut from the arena of a net's pass. What is kept
 * decides what shares memory: a run needs two hidden states and one of everything else, training
 * needs everything.
 */
#ifndef QKVI_ARCH_STACK_PASS_H
#define QKVI_ARCH_STACK_PASS_H

#include "core/arena.h"
#include "files/base.h"
#include "layer/embed.h"
#include "model/layer/block.h"
#include "model/layer/patches.h"
#include "qkv/model.h"

/*
 * A stack: embeddings and blocks, an encoder or a decoder. One graph computes them all; what tells
 * them apart is in the struct:
 *
 *     h0 = project(norm(scale word + type + position))        norm, project: where there are any
 *     h0 = project(scale word) + position                     of OPT, if its words are narrower
 *     h[l + 1] = block[l](h[l], memory)                       memory: of a decoder over an encoder
 *     y = norm(h[n_layers])                                   where there is one (pre-norm)
 *
 * A pass holds a batch and the activations of it.
 */

typedef struct qkvi_stack {
    int64_t n_layers, n_heads, n_kv_heads, hidden, head_dim, intermediate, vocab_size, max_len,
        n_types;
    int64_t embedding_size; /* of embed and embed_norm; if not hidden, project follows them */
    int64_t first_position; /* row of the position table that a sequence's first token gets */
    bool skips_padding; /* RoBERTa: the row before that is the padding's, which is not counted */
    bool causal;
    float eps;
    qkvi_embed embed; /* position: owned sinusoids, or learned; NULL: sinusoids have no gradient */
    qkvi_layernorm embed_norm;     /* gamma NULL: none */
    qkvi_linear project;           /* [hidden][embedding_size] */
    float *positions;              /* rows of [hidden] that are added behind it; NULL: none */
    qkvi_block *blocks;            /* [n_layers], owned */
    qkvi_layernorm last_norm;      /* gamma NULL: none */
    float *sinusoids, *no_segment; /* owned */
    qkvi_rope ropes[2];            /* of layers that do not slide, and that do; w NULL: none */
    qkvi_patches patches;          /* of a stack that reads images, instead of embed */
    qkvi_reads reads;              /* what its classifier reads */
    qkvi_distance_bias distances;  /* of every block's scores; table NULL: none */
    float *alibi;                  /* [n_heads] slopes, owned; NULL: none */
} qkvi_stack;

static inline bool qkvi_stack_sees(const qkvi_stack *stack) { return stack->patches.height > 0; }

static inline bool qkvi_stack_projects(const qkvi_stack *stack) {
    return stack->embedding_size != stack->hidden;
}
/* Rows of positions that are added behind a projection; 0: there are none. */
static inline int64_t qkvi_stack_positions(const qkvi_stack *stack) {
    return stack->positions ? stack->first_position + stack->max_len : 0;
}
static inline bool qkvi_stack_crosses(const qkvi_stack *stack) {
    return qkvi_block_crosses(&stack->blocks[0]);
}

/*
 * The row of the position table for token i of a sequence. RoBERTa counts from the row after that
 * of padding, and a padding token that the text contains has that one and is not counted.
 */
int32_t qkvi_stack_place(const qkvi_stack *stack, const int32_t *ids, int64_t i);

/* Its segment: types may be NULL, and are ignored where the model has none. */
static inline int32_t qkvi_stack_type(const qkvi_stack *stack, const uint8_t *types, int64_t i) {
    return stack->n_types > 0 && types ? types[i] : 0;
}

typedef struct qkvi_stack_pass qkvi_stack_pass;

/* The turns of a layer's queries and keys, while it runs; NULL: none. */
const float *qkvi_stack_turns(const qkvi_stack_pass *pass, int64_t layer);

/* Edges of a layer that are cut; NULL: none. */
const qkvi_uncut *qkvi_stack_cut(const qkvi_stack_pass *pass, qkv_attention_kind which,
                                 int64_t layer);

/* y = norm(x), the norm that ends the stack, of n_rows rows; stats [n_rows][2]. x is only read. */
void qkvi_stack_norm(qkv_ctx *ctx, const qkvi_stack *stack, int64_t n_rows, const float *x,
                     float *y, float *stats);

/* status, with the context's message in error. */
qkv_status qkvi_pass_failed(const qkv_ctx *ctx, qkv_status status, qkv_error *error);

/* Over a pass that has begun. Fails only if attention does. */
qkv_status qkvi_stack_forward(qkv_ctx *ctx, const qkvi_stack *stack, qkvi_stack_pass *pass);

/*
 * pass->d comes as the gradient of the last hidden states (with a pick: its d does instead) and is
 * used up; that of the memory is added to pass->d_memory.
 */
qkv_status qkvi_stack_backward(qkv_ctx *ctx, const qkvi_stack *stack, const qkvi_stack *grads,
                               qkvi_stack_pass *pass);

/*
 * A batch in the order in which it is computed: sequences sorted by length, shortest first, equal
 * ones in the order of the batch; their tokens one after another, one row each. Where there are two
 * stacks, each sequence is a pair, and pairs are sorted by the length in the first stack, then by
 * that in the second.
 */

/* What goes into one stack: sequences one after another. */
typedef struct qkvi_sequences {
    int64_t n;
    const int64_t *lengths;    /* [n], 1 … max_len */
    const int32_t *ids;        /* [sum of lengths] */
    const uint8_t *types;      /* [sum of lengths], for models with segments; NULL: all 0 */
    const uint8_t *seen;       /* [sum of lengths] of qkvi_mha_change; NULL */
    const qkvi_pixels *images; /* [n], of a stack that reads these instead of ids */
} qkvi_sequences;

typedef struct qkvi_batch_rows {
    int64_t n_sequences, n_rows;
    qkvi_sequence_group *groups,
        *cross_groups; /* of equal length; of equal length and equal memory */
    int64_t n_groups, n_cross_groups;
    int32_t *ids, *types, *places; /* [n_rows] */
    int32_t *reaches;              /* [n_rows]: tokens of the row's text that are known so far */
    uint8_t *seen;                 /* [n_rows]; NULL */
    int32_t *row_of_token;         /* [n_rows]: where a token of the batch went */
    int64_t *first_row;            /* [n_sequences]: the row of a sequence's first token */
    const int64_t *lengths;        /* [n_sequences], the caller's */
    const qkvi_pixels *images;     /* [n_sequences], the caller's; NULL */
} qkvi_batch_rows;

/* Every length, id and type of sequences, and how many tokens they have. SHAPE, ARGUMENT, LIMIT. */
qkv_status qkvi_sequences_check_lengths(const qkvi_stack *stack, const qkvi_sequences *sequences,
                                        int64_t *n_rows, qkv_error *error);
qkv_status qkvi_sequences_check(const qkvi_stack *stack, const qkvi_sequences *sequences,
                                int64_t *n_rows, qkv_error *error);

/* Scratch of the sort. */
typedef struct qkvi_order {
    int64_t *sequences; /* [n], in the order of the rows at last */
    int64_t *other;     /* [n] */
    int64_t *starts;    /* [the larger max_len + 2] */
} qkvi_order;

void qkvi_order_cut(int64_t n, int64_t max_len, qkvi_cutter *cutter, qkvi_order *order);
/*
 * Of n sequences, by lengths, which are at most max_len; then by `then`, nullable, and their place.
 */
void qkvi_order_make(int64_t n, const int64_t *lengths, const int64_t *then, int64_t max_len,
                     qkvi_order *order);

void qkvi_rows_cut(const qkvi_sequences *sequences, int64_t n_rows, bool crosses,
                   qkvi_cutter *cutter, qkvi_batch_rows *rows);
/* Fills rows for sequences that have been checked. memory: the rows of the stack before; NULL. */
void qkvi_rows_fill(const qkvi_stack *stack, const qkvi_sequences *sequences,
                    const qkvi_order *order, const qkvi_batch_rows *memory, qkvi_batch_rows *rows);

/* What to keep of every layer. */
enum {
    QKVI_KEEP_CAPTURE = QKV_RUN_CAPTURE, /* q, k, lse */
    QKVI_KEEP_HIDDEN = QKV_RUN_HIDDEN,   /* hidden states */
    QKVI_KEEP_OUTPUTS = QKV_RUN_OUTPUTS, /* what heads give: o */
    QKVI_KEEP_ALL = 1u << 16             /* whatever the backward pass reads */
};

struct qkvi_stack_pass {
    const qkvi_stack *stack; /* while it runs */
    int64_t n_layers;
    unsigned keep;
    qkvi_batch_rows rows;
    qkvi_mha_change change;
    qkvi_kept kept;              /* of decoding (decoder.h) */
    qkvi_outputs outputs;        /* of every block */
    int64_t first;               /* blocks before it are done: qkvi_stack_input has what it reads */
    qkvi_row_dropout dropout;    /* of this stack: its sites begin at dropout.site */
    const float *memory;         /* [n_memory][hidden] last hidden states of the other stack */
    const qkvi_batch_rows *keys; /* its rows; NULL without */
    float *embed_s, *embed_stats, *embedded; /* sum, mu and rstd, norm [n_rows][embedding_size] */
    float *turns[2];                         /* [n_rows][dim] of the stack's ropes */
    qkvi_patch_acts patches;                 /* of images */
    float *h0;             /* [n_rows][hidden]: embedded, or what is projected of it */
    qkvi_block_acts *acts; /* [n_layers], the net pass' */
    float *y, *y_stats; /* [n_rows][hidden] last hidden states: the last block's, or their norm */

    bool picks; /* the last block computes the rows of pick only */
    qkvi_pick pick;

    /* The rest is for training. */
    float *d;        /* [n_rows][hidden] */
    float *d_memory; /* [n_memory][hidden] */
    qkvi_block_scratch scratch;
    float *d_embed;                   /* [n_rows][embedding_size], if projected */
    float *embed_packed, *embed_sums; /* panels of embedded, if projected; column sums */
    int32_t *embed_scratch;
};

/* The images of a pass whose rows are cut. */
static inline qkvi_patch_rows qkvi_stack_images(const qkvi_stack_pass *pass) {
    return (qkvi_patch_rows){ pass->rows.n_sequences, pass->rows.images, pass->rows.first_row };
}

/* Rows that the last block computes. */
static inline int64_t qkvi_stack_last_rows(const qkvi_stack_pass *pass) {
    return pass->picks ? pass->pick.n : pass->rows.n_rows;
}

/*
 * Cuts all but rows, for a pass whose stack, keep, rows.n_rows, keys, picks and pick.n are known.
 */
void qkvi_stack_pass_cut(qkvi_cutter *cutter, qkvi_stack_pass *pass);

/*
 * What a run left, until the pass' next use; NULL for what was not kept. Rows of one sequence are
 * consecutive. (A pass that picks does not compute all rows of the last layer.)
 */
static inline int64_t qkvi_stack_row(const qkvi_stack_pass *pass, int64_t sequence) {
    return pass->rows.first_row[sequence]; /* its first one */
}
const float *qkvi_stack_hidden(const qkvi_stack_pass *pass, int64_t layer); /* [rows][hidden] */
/* What block `layer` reads, [rows][hidden], to be filled before a pass whose `first` it is. */
float *qkvi_stack_input(const qkvi_stack_pass *pass, int64_t layer);
/* What heads gave, to itself or to the memory: [rows][n_heads head_dim]; NULL. */
const float *qkvi_stack_outputs(const qkvi_stack_pass *pass, int64_t layer, bool cross);
/* What attention had, to itself or to the memory: q, k, lse; NULL. */
const qkvi_mha_acts *qkvi_stack_captured(const qkvi_stack_pass *pass, int64_t layer, bool cross);

#endif
