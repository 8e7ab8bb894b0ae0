/*
 * A whole network: one stack, or an encoder and a decoder over it, and the heads on top.
 *
 *     BERT and its family (family.h)    an encoder; masked-word, next-sentence and other heads
 *     GPT-2                             a causal stack; the language-model head
 *     BART, Marian                      an encoder, a causal decoder with cross-attention; head
 *
 * Parameters live in one arena that qkvi_net_table describes, floats unless a model only runs
 * (params.h); gradients and optimizer moments are arenas of the same layout. One struct of
 * pointers, qkvi_net, is bound to an arena of parameters or to one of gradients:
 *
 *     qkvi_net_table(&info, &table, error);              names, shapes, offsets
 *     qkvi_net_bind(&info, &table, weights, FORWARD|BACKWARD, &net, error);
 *     qkvi_net_bind(&info, &table, gradients, 0, &grads, error);
 *     qkvi_net_pass_create(&pass, error);                activations; grow with the batch
 *     each step:
 *         qkvi_net_pack(ctx, net);                    after every change of the weights
 *         qkvi_net_loss(ctx, net, &batch, pass, grads, &losses, error);
 *         … norm, AdamW over the arenas (kernels/layer.h) …
 *
 * A batch is token-concatenated; there is no padding anywhere. Sequences are sorted by length
 * inside, and attention is called once for each group of equal length. Every row of activations has
 * the bits of a run of its sequence alone. Gradients are sums in a fixed order of the sorted batch:
 * they depend on the batch, never on threads or instruction set.
 */
#ifndef QKVI_ARCH_NET_H
#define QKVI_ARCH_NET_H

#include "model/arch/stack.h"
#include "model/weights/params.h"
#include "qkv/model.h"

/*
 * SigLIP's pooling: one learned row attends to all rows of an image; with z what it gets,
 * z + down(act(up(norm(z)))).
 */
typedef struct qkvi_probe {
    qkvi_mha attention; /* n_heads 0: there is none */
    float *row;         /* [hidden] */
    qkvi_layernorm norm;
    qkvi_linear up, down;
} qkvi_probe;

/* What a classifier of texts, or of tokens, reads. */
typedef enum qkvi_below_classes {
    QKVI_BELOW_NOTHING, /* hidden states */
    QKVI_BELOW_POOLER,
    QKVI_BELOW_DENSE, /* a layer of its own */
    QKVI_BELOW_TRANSFORM
} qkvi_below_classes;

typedef struct qkvi_net {
    int n_stacks;
    qkvi_stack stacks[2];
    bool has_pooler, has_mlm, has_nsp, has_discriminator, has_lm;
    qkvi_linear pooler, transform, decoder, nsp; /* decoder mostly has the words' weights: tied */
    qkvi_act head_act;                           /* after transform */
    qkvi_layernorm transform_norm;
    qkvi_linear discriminator, discriminator_out;
    int64_t n_labels; /* 0: no classifier */
    qkvi_below_classes class_below;
    qkvi_linear class_dense; /* a layer of the classifier's own; n_out 0: none */
    qkvi_act class_act;      /* of it */
    qkvi_linear classifier;
    bool transforms; /* a transform is below the words of the MLM head, or below the classifier */
    qkvi_linear
        project_out; /* what lm, and pooling, read of the last hidden states; n_out 0: them */
    qkvi_linear lm;  /* over the last stack; weight mostly its words', bias NULL or no parameter */
    bool joins_pooled;          /* what is pooled is in the space of texts and images as it is */
    qkvi_linear second;         /* the classifier of the distillation row; n_out 0: none */
    qkvi_layernorm pooled_norm; /* of the row of an image that is pooled; gamma NULL: none */
    qkvi_probe probe;
    qkvi_linear joint; /* of what is pooled to the space of texts and images; n_out 0: none */
    float logit_cap;   /* c of c tanh(logit / c), of lm; 0: none */
    float logit_scale; /* of logits of lm; 0: none */
    float *packed;     /* owned; of a net that is trained */
} qkvi_net;

/* The stack that heads read. */
static inline const qkvi_stack *qkvi_net_last(const qkvi_net *net) {
    return &net->stacks[net->n_stacks - 1];
}

/*
 * Rows in the order of the arena, named as transformers stores them. LIMIT if a size is absurd;
 * MEMORY.
 */
qkv_status qkvi_net_table(const qkv_model_info *info, qkvi_param_table *table, qkv_error *error);

/*
 * Which packed forms of the weights to keep: none for gradients, FORWARD to run, BACKWARD, too, to
 * train; in bf16, HALF_DP or HALF_AMX instead of FORWARD, by class (kernels/gemm_bf16.h); INT8
 * instead of FORWARD, without BACKWARD. Of a table whose rows are packed (qkvi_params_pack) the
 * forms say how these are multiplied with, and take no memory.
 */
enum {
    QKVI_NET_FORWARD = 1u << 0,
    QKVI_NET_BACKWARD = 1u << 1,
    QKVI_NET_HALF_DP = 1u << 2,
    QKVI_NET_HALF_AMX = 1u << 3,
    QKVI_NET_INT8 = 1u << 4
};

/*
 * What QKV_WEIGHTS_BF16 is on this processor, others are themselves; false for what is none of
 * them.
 */
bool qkvi_weights_resolve(int given, qkv_model_weights *weights);
/* The form for which layers compute so: FORWARD, one of HALF, or INT8. */
unsigned qkvi_weights_form(qkv_model_weights resolved);
/* That in which the arena of a model that only runs has them. */
qkvi_param_form qkvi_weights_param(qkv_model_weights resolved);

/*
 * Pointers into arena (not owned), and memory for packed weights, which qkvi_net_pack must fill
 * before use.
 */
qkv_status qkvi_net_bind(const qkv_model_info *info, const qkvi_param_table *table, float *arena,
                         unsigned packed, qkvi_net **net, qkv_error *error);
void qkvi_net_free(qkvi_net *net);

/*
 * Packs all weights. ctx may be NULL: one thread (packing does not depend on the instruction set).
 */
void qkvi_net_pack(qkv_ctx *ctx, const qkvi_net *net);

/*
 * A pass that begins within a stack, over copies of one sequence, or pair: at the block `layer` of
 * the stack, whose blocks before are alike in all copies, as are the stacks before it.
 */
typedef struct qkvi_net_start {
    int stack;
    int64_t layer;
    const float *input;  /* [len][hidden] what the block reads */
    const float *memory; /* [len of the first stack][hidden] its last hidden states; stack 1 only */
    qkvi_outputs outputs; /* of every block of the stack */
    /*
     * [n_picks] tokens of a copy, no more than it has, whose rows the last block of a net of one
     * stack computes: those of the first copy, then those of the second, and so on. 0: all rows.
     */
    const int64_t *picks;
    int64_t n_picks;
} qkvi_net_start;

/* Sequences one after another. Targets and labels are for qkvi_net_loss only. */
typedef struct qkvi_net_batch {
    int64_t n_sequences;
    const int64_t *lengths;         /* [n_sequences], 1 … max_len */
    const int32_t *ids;             /* [sum of lengths] */
    const uint8_t *types;           /* [sum of lengths], for models with segments; NULL: all 0 */
    const qkvi_pixels *images;      /* [n_sequences] instead of ids, for models that read images */
    const int64_t *decoder_lengths; /* [n_sequences] and what goes into a decoder over an encoder */
    const int32_t *decoder_ids;
    int64_t n_targets;
    const int64_t *target_tokens; /* [n_targets] indices into ids, or into decoder_ids; ascending */
    const int32_t *target_ids; /* [n_targets] MLM: the words that stood there; LM: the next ones */
    /* [n_sequences] 0: is next, 1: is not, or the class of an image; -1: not counted; or NULL */
    const int32_t *labels;
    /*
     * Of a part of a batch: what the whole has of targets, and of labels that count, whose mean the
     * loss is; 0: this is the whole.
     */
    int64_t whole_targets, whole_labels;
    double label_smoothing; /* of LM targets */
    float dropout;          /* of every site; 0: none */
    uint64_t dropout_seed;
    qkvi_mha_change change;      /* of every attention; its seen is [sum of lengths], as ids */
    const qkvi_net_start *start; /* NULL: at the embeddings */
} qkvi_net_batch;

typedef struct qkvi_net_pass qkvi_net_pass;
qkv_status qkvi_net_pass_create(qkvi_net_pass **pass, qkv_error *error);
void qkvi_net_pass_free(qkvi_net_pass *pass);

/*
 * Runs all stacks. flags: QKV_RUN_CAPTURE, QKV_RUN_HIDDEN and QKV_RUN_OUTPUTS of model.h keep q, k,
 * lse, hidden states, and what heads give. Without decoder_lengths, of two stacks the encoder
 * alone.
 */
qkv_status qkvi_net_forward(qkv_ctx *ctx, const qkvi_net *net, const qkvi_net_batch *batch,
                            uint32_t flags, qkvi_net_pass *pass, qkv_error *error);

/* What a stack of the pass has: see stack.h. */
const qkvi_stack_pass *qkvi_net_stack(const qkvi_net_pass *pass, int stack);

/*
 * MLM logits [n_rows][vocab_size] of last hidden states [n_rows][hidden]; NSP logits [n_rows][2] of
 * first tokens'.
 */
qkv_status qkvi_net_mlm(qkv_ctx *ctx, const qkvi_net *net, int64_t n_rows, const float *hidden,
                        float *logits, qkv_error *error);
qkv_status qkvi_net_nsp(qkv_ctx *ctx, const qkvi_net *net, int64_t n_rows, const float *hidden,
                        float *logits, qkv_error *error);
/* Logits [n_rows] of "this token is not the one that was written". */
qkv_status qkvi_net_discriminate(qkv_ctx *ctx, const qkvi_net *net, int64_t n_rows,
                                 const float *hidden, float *logits, qkv_error *error);
/* Logits [n_rows][n_labels] of classes: of a text, from its pooled row, or of each token. */
qkv_status qkvi_net_classify(qkv_ctx *ctx, const qkvi_net *net, int64_t n_rows, const float *x,
                             float *logits, qkv_error *error);
/*
 * Of an image, from all its last hidden states [n_rows][hidden]: logits [n_labels] of its classes;
 * what is pooled, [hidden]. Of that its place in the joint space, [joint.n_out].
 */
qkv_status qkvi_net_classify_image(qkv_ctx *ctx, const qkvi_net *net, int64_t n_rows,
                                   const float *hidden, float *logits, qkv_error *error);
qkv_status qkvi_net_pool_image(qkv_ctx *ctx, const qkvi_net *net, int64_t n_rows,
                               const float *hidden, float *pooled, qkv_error *error);
qkv_status qkvi_net_join(qkv_ctx *ctx, const qkvi_net *net, const float *pooled, float *joint,
                         qkv_error *error);
/* Logits [n_rows][vocab_size] of the tokens that follow. */
qkv_status qkvi_net_lm(qkv_ctx *ctx, const qkvi_net *net, int64_t n_rows, const float *hidden,
                       float *logits, qkv_error *error);

typedef struct qkvi_net_losses {
    /* Means over targets and over counted labels; 0 if there are none; of a part, its share. */
    double mlm, nsp;
    double lm;                                      /* of a language model, mlm being 0 */
    int64_t n_mlm, n_mlm_right, n_nsp, n_nsp_right; /* right: the target has the largest logit */
    int64_t n_lm, n_lm_right;
    double label; /* of classes of images */
    int64_t n_label, n_label_right;
} qkvi_net_losses;

/*
 * Losses of a batch and, unless grads is NULL, the gradient of mlm + nsp, or of lm, for every
 * parameter: stored, not added, zeros where nothing flows. net must have both packed forms if
 * grads is given.
 */
qkv_status qkvi_net_loss(qkv_ctx *ctx, const qkvi_net *net, const qkvi_net_batch *batch,
                         qkvi_net_pass *pass, const qkvi_net *grads, qkvi_net_losses *losses,
                         qkv_error *error);

#endif
