/**
 * What a family of models is: one row for each model_type of config.json. The row says which graph
 * computes it, what config.json calls its sizes, and what its files call its parameters. The wiring
 * (net_table.c, net_bind.c), config.c and training read the row, and nothing else decides.
 *
 *   bert        word + segment + position; MLM head, pooler, NSP head      (Devlin et al. 2018)
 *   distilbert  word + position; MLM head                                  (Sanh et al. 2019)
 *   roberta     as bert, positions after the padding's row; MLM head       (Liu et al. 2019)
 *   electra     as bert, narrower, then a linear layer to the width of the blocks; a head that
 *               tells replaced tokens, or an MLM head                      (Clark et al. 2020)
 *   opt         word, perhaps narrower, then a linear layer, + position, first row 2; causal,
 *               norms before or after parts, LM head, perhaps behind a linear layer
 *                                                                        (Zhang et al. 2022)
 *   gpt2        word + position; causal, pre-norm, LM head                 (Radford et al. 2019)
 *   bart        encoder and decoder; word + position, first row 2; LM head (Lewis et al. 2020)
 *   marian      as bart, with sinusoids and no norm of the embeddings, words perhaps of their own
 *               for each side                                (Junczys-Dowmunt et al. 2018)
 *
 *   t5, mt5     encoder and decoder; word, a bias by distance, pre-norm, RMSNorm, LM head
 *                                                                        (Raffel et al. 2020)
 *   llama …     word; rotary, causal, RMSNorm, gated, LM head              (Touvron et al. 2023)
 *               and families of its graph: mistral, qwen2, qwen3, gemma, gemma2, gemma3_text,
 *               smollm3, olmo2, phi3
 *   gpt_neox    word; rotary in some channels, causal, both parts of a block
 *               side by side, LayerNorm, LM head                         (Black et al. 2022)
 *   gptj        as gpt_neox, rotary of neighbours, one norm for both parts
 *                                                             (Wang and Komatsuzaki 2021)
 *   bloom       word, normed; ALiBi, causal, pre-norm, LM head       (Le Scao et al. 2022)
 *   modernbert  word; rotary, pre-norm, gated, layers with windows; MLM    (Warner et al. 2024)
 *
 *   vit …       patches of images + position, pre-norm; classifier        (Dosovitskiy et al. 2021)
 *               and kin: deit, dinov2, dinov2_with_registers, dinov3_vit, siglip
 *   clip        word + position; causal, pre-norm; beside it a ViT (clip_vision_model), both
 *               projected to one space                                    (Radford et al. 2021)
 *
 * Names are those of transformers, with the prefix of the whole model; files may have them without
 * (weights/resolver.h). A part that a family lacks is NULL.
 */
#ifndef QKVI_ARCH_FAMILY_H
#define QKVI_ARCH_FAMILY_H

#include "kernels/layer.h"
#include "layer/layernorm.h"
#include "model/layer/patches.h"
#include "model/weights/resolver.h"
#include "qkv/model.h"

/* ---- The graph ------------------------------------------------------------------------------- */

/* Where the norms of a part f of a block are. */
typedef enum qkvi_norm_place {
    QKVI_NORM_SUM,    /* norm(x + f(x)) */
    QKVI_NORM_INPUT,  /* x + f(norm(x)) */
    QKVI_NORM_OUTPUT, /* x + norm(f(x)) */
    QKVI_NORM_BOTH    /* x + norm(f(norm(x))) */
} qkvi_norm_place;

typedef enum qkvi_positions {
    QKVI_LEARNED,
    QKVI_SINUSOIDS,    /* sines before cosines; those of qkv's own BERT (config.json) alternate */
    QKVI_ALIBI,        /* none: scores have a slope by distance, a fixed one for each head */
    QKVI_ROTARY,       /* of queries and keys, in all layers that are not QKV_LAYER_UNROTATED */
    QKVI_ROTARY_PLANE, /* the same of patches, by their row and column (layer/patches.h) */
    QKVI_DISTANCES     /* none: scores have a bias by distance, one for all layers of a stack */
} qkvi_positions;

/* Norms of queries and keys, before they are turned. */
typedef enum qkvi_qk_norm { QKVI_QK_PLAIN, QKVI_QK_NORM_HEADS, QKVI_QK_NORM_ROWS } qkvi_qk_norm;

/* Which layers see a window of the text only, by config.json. */
typedef enum qkvi_slides {
    QKVI_SLIDES_NEVER,
    QKVI_SLIDES_ALWAYS,  /* where sliding_window is not null */
    QKVI_SLIDES_ABOVE,   /* layer_types, else from max_window_layers on, with use_sliding_window */
    QKVI_SLIDES_EVEN,    /* layer_types, else 0, 2, 4 … */
    QKVI_SLIDES_PATTERN, /* layer_types, else i unless sliding_window_pattern divides i + 1 */
    QKVI_SLIDES_NOPE,    /* layer_types, else layers without positions, with use_sliding_window */
    QKVI_SLIDES_LOCAL    /* layer_types, else i unless global_attn_every_n_layers divides i */
} qkvi_slides;

/* Biases of linear layers in a block. */
typedef enum qkvi_biases {
    QKVI_BIASES, /* all have one */
    /* where config.json says attention_bias, and mlp_bias if mlp_bias is set */
    QKVI_BIASES_IF_ASKED,
    QKVI_BIASES_QKV, /* queries, keys and values */
    QKVI_BIASES_MLP, /* the MLP */
    /* of the MLP, and of attention unless config.json says attention_bias: false */
    QKVI_BIASES_UNLESS_ATTENTION,
    QKVI_BIASES_ENABLED,   /* all, unless config.json says enable_bias: false */
    QKVI_BIASES_QKV_ASKED, /* all, but those of q, k, v if config.json says qkv_bias: false */
    QKVI_BIASES_APART, /* config.json has a switch for each: query_bias, key_bias … (DINOv3) */
    QKVI_BIASES_NONE
} qkvi_biases;

/* ---- config.json ----------------------------------------------------------------------------- */

/* An integer. field NULL: it has none, and the value is `absent`. */
typedef struct qkvi_size {
    const char *field;
    int64_t absent; /* where the file lacks it; 0: it must be there; -n: n times hidden */
} qkvi_size;

/* A switch, true or false. */
typedef struct qkvi_switch {
    const char *field;
    int usual; /* where the file lacks it */
    int at;    /* the int of qkv_model_info that is 1 where it is not so; 0: that is refused */
} qkvi_switch;

enum { QKVI_SWITCHES = 10, QKVI_SWITCH_IGNORED = -1 }; /* at: either will do */

typedef struct qkvi_config_fields {
    qkvi_size hidden, max_len, vocab_size, n_types, embedding_size;
    const char *hidden_before; /* goes before hidden, where it is there; or NULL */
    struct {
        qkvi_size n_layers, n_heads, intermediate;
    } stacks[2];
    const char *kv_heads;           /* must be n_heads, but of rotary families; or NULL */
    qkvi_size n_kv_heads, head_dim; /* of rotary families; absent 0: heads, hidden / heads */
    int64_t window;                 /* sliding_window where it is absent; 0: null */
    bool untied;                    /* where tie_word_embeddings is absent */
    const char *target_vocab_size;  /* of words of its own; or NULL */
    const char *activation, *activation_absent;
    const char *eps; /* NULL: none */
    double eps_absent;
    const char *theta;            /* what rope_theta is called at the top of the file; or NULL */
    const char *turned;           /* the share of a head's channels that turn; NULL: all do … */
    double turned_absent;         /* … where it is absent */
    qkvi_size rotary_dim;         /* or how many turn, of neighbours */
    const char *position_word;    /* must be "absolute"; or NULL */
    const char *first_position;   /* must be that of the graph; or NULL */
    int64_t bos, eos, pad, start; /* absent; -1: none */
    qkvi_switch switches[QKVI_SWITCHES];
} qkvi_config_fields;

/* ---- Parameters ------------------------------------------------------------------------------ */

/* Of one stack. Parts of a block are after "<layer><number>.". */
typedef struct qkvi_stack_names {
    const char *word, *position, *segment, *embed_norm, *project, *project_out;
    const char *layer;
    const char *query, *key, *value, *output, *norm1;
    const char *query_norm, *key_norm;
    const char *cross_query, *cross_key, *cross_value, *cross_output, *norm_cross;
    const char *up, *down, *norm2, *gate;
    const char *up_alone;        /* up of a model that is not gated, in a family that has both */
    const char *distances;       /* [buckets][heads] of the bias by distance */
    const char *out1, *out2;     /* norms of what the parts add */
    const char *scale1, *scale2; /* or factors of it, tensors of that name (LayerScale) */
    const char *last_norm;
} qkvi_stack_names;

/*
 * Of a family whose rows are patches of images (layer/patches.h). Names of tensors, not of layers,
 * where they do not say otherwise.
 */
typedef struct qkvi_image_family {
    const char *patch;                             /* the layer; NULL: the family reads words */
    bool no_bias;                                  /* of it */
    const char *classes[2], *registers, *position; /* NULL: none */
    bool flat;                /* they are [h] and [n][h], not [1][1][h] and [1][n][h] */
    int64_t size, side;       /* image_size and patch_size where they are absent … */
    int64_t n_registers;      /* … and num_register_tokens */
    bool interpolates;        /* positions are interpolated without being asked */
    bool antialiases;         /* how (layer/positions.h) */
    bool by_ratio;            /* the feed-forward is mlp_ratio times as wide, or use_swiglu_ffn */
    qkvi_reads reads;         /* its classifier */
    const char *distilled[2]; /* classifiers of both class rows: logits are their mean */
    const char *pooled_norm;  /* of the row that is pooled (CLIP) */
    const char *probe; /* … or the head that attends to all rows (SigLIP): its parts follow */
} qkvi_image_family;

typedef struct qkvi_model_family {
    const char *type;   /* model_type of config.json; qkv_model_info.architecture */
    const char *part;   /* of config.json that has its sizes; NULL: the whole */
    const char *images; /* the type that reads the images of a model with two towers */
    const char *joint;  /* the layer to the space that texts and images share */
    bool joint_biased;  /* it has a bias, and config.json has projection_size (SigLIP's texts) */

    qkv_model_kind kind;
    qkvi_norm_kind norm;
    qkvi_norm_place place;
    qkvi_positions positions;
    qkvi_qk_norm qk_norm;
    qkvi_biases biases;
    qkvi_slides slides;
    bool mlp_bias;        /* config.json has a switch for it */
    bool norm_bias;       /* LayerNorms have no beta, and config.json may say norm_bias: false */
    bool first_unnormed;  /* block 0 has no norm1 */
    bool parallel;        /* config.json has use_parallel_residual, true where it is absent */
    bool neighbours;      /* rotary positions turn channels 2i and 2i + 1; no field scales them */
    bool one_norm;        /* norm2 is norm1: blocks are parallel, which no field says */
    int gemma;            /* 1, 2, 3: words · √width; from 2 on scale and caps of config.json */
    double theta[2];      /* rope_theta where it is absent: full, sliding; 0: 10,000, one kind */
    bool first_after_pad; /* positions begin after the padding's, which is not counted … */
    int64_t first_position; /* … others in this row */
    bool padding_learns;    /* padding's word learns as an embedding (no padding_idx in torch) */
    bool positions_last;    /* added to what is projected; projections have no bias */
    bool head_is_gelu;      /* of masked words, whatever the blocks have */
    bool always_tied;       /* whatever tie_word_embeddings says */
    bool scales_logits;     /* scale_decoder_outputs, else tie_word_embeddings, says so */
    bool headless;          /* a decoder that predicts no words */
    qkvi_image_family image;

    qkvi_config_fields config;
    qkvi_spelling spelling;
    qkvi_stack_names stacks[2];    /* the only one, or encoder and decoder */
    const qkvi_stack_names *gated; /* where config.json says that the feed-forward is gated */
    const char *shared_words;      /* of both, unless they have words of their own */
    const char *fused;    /* tensor of query, key and value, in this order along its outputs */
    bool fused_by_head;   /* in this order in each head of it */
    const char *fused_up; /* tensor of gate and up */
    bool transposes;      /* linear layers of blocks are stored [in][out] */
    const char *pooler, *nsp;
    const char *classifier;  /* of texts, over class_dense; without it over the pooler, or … */
    const char *class_dense; /* … the transform of the MLM head; NULL: there is no such layer.
                              * A decoder's reads hidden states, and has no bias */
    qkvi_act class_act;      /* of class_dense */
    const char *token_classifier, *answers; /* of tokens: classes, and where an answer is */
    const char *head;      /* that predicts words: its weights, unless it is tied … */
    const char *head_bias; /* … and its bias, a parameter; or NULL */
    const char *transform, *transform_norm, *decoder_bias; /* MLM */
    const char *discriminator, *discriminator_out;         /* replaced or not */
    const char *lm_bias;                                   /* a buffer [1][words]; or nowhere */
} qkvi_model_family;

/** QKV_BIAS_… of a model. */
int qkvi_family_biases(const qkv_model_info *info);

static inline bool qkvi_family_sees(const qkvi_model_family *family) {
    return family->image.patch != NULL;
}

/** What a stack's parameters are called. */
const qkvi_stack_names *qkvi_family_names(const qkv_model_info *info, int stack);

/** NULL: no family of that name is known. */
const qkvi_model_family *qkvi_family_of(const char *type);

/** All rows; after the last, one without a type. */
extern const qkvi_model_family qkvi_families[];

/** "bert", "distilbert" …: the types that are computed, for messages. */
extern const char qkvi_family_types[];

static inline int qkvi_family_stacks(const qkvi_model_family *family) {
    return family->kind == QKV_MODEL_PAIR ? 2 : 1;
}

/** Of the blocks, by its name in *info. */
qkvi_act qkvi_family_act(const qkv_model_info *info);

/**
 * What the classifier is called, and the layer that it reads instead of hidden states; NULL: there
 * is none.
 */
const char *qkvi_classifier_name(const qkv_model_info *info);
const char *qkvi_classifier_below(const qkv_model_info *info);

/** What the feed-forward part's layers are called. gate NULL: it is not gated. */
const char *qkvi_gate_name(const qkv_model_info *info, const qkvi_stack_names *names);
const char *qkvi_up_name(const qkv_model_info *info, const qkvi_stack_names *names);

/** The factor on q·k in a block; 0: 1 / √head_dim. */
double qkvi_family_scale(const qkv_model_info *info, int64_t head_dim, int64_t layer);

#endif
