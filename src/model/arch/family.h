/**
 * What models that one graph computes (net.h) call the same things, and what tells them apart.
 *
 *   bert        word + segment + position; MLM head, pooler, NSP head      (Devlin et al. 2018)
 *   distilbert  word + position; MLM head                                  (Sanh et al. 2019)
 *   roberta     word + segment + position, whose first is the padding's row + 1; MLM head (Liu et al. 2019)
 *   electra     as bert, narrower, then a linear layer to the width of the blocks; a head that tells
 *               replaced tokens, or an MLM head                            (Clark et al. 2020)
 *   gpt2        word + position; causal, pre-norm, a norm after the last block; LM head, tied
 *                                                                          (Radford et al. 2019)
 *   bart        encoder and decoder; word + position, whose first row is 2; LM head, tied (Lewis et al. 2020)
 *   marian      as bart, with sinusoids and no norm of the embeddings, words perhaps of their own
 *               for each side                                              (Junczys-Dowmunt et al. 2018)
 *
 * Names are those of transformers, with the prefix of the whole model; files may have them without
 * (store/resolver.h). A part that a family lacks is NULL.
 */
#ifndef QKVI_ARCH_FAMILY_H
#define QKVI_ARCH_FAMILY_H

#include <stdbool.h>

#include "kernels/layer.h"
#include "model/store/resolver.h"
#include "qkv/model.h"

/* Of one stack. Parts of a block are after "<layer><number>.". */
typedef struct qkvi_stack_names {
    const char *word, *position, *segment, *embed_norm, *project;
    const char *layer;
    const char *query, *key, *value, *output, *norm1;
    const char *cross_query, *cross_key, *cross_value, *cross_output, *norm_cross;
    const char *up, *down, *norm2;
    const char *last_norm;
} qkvi_stack_names;

typedef struct qkvi_model_family {
    const char *type; /* model_type of config.json; qkv_model_info.architecture */
    qkvi_spelling spelling;
    qkvi_stack_names stacks[2]; /* the only one, or encoder and decoder */
    const char *shared_words;   /* of both, unless they have words of their own */
    const char *fused; /* tensor of query, key and value, in this order along its last axis */
    bool transposes;   /* linear layers of blocks are stored [in][out] */
    const char *pooler, *nsp;
    const char *transform, *transform_norm, *decoder_bias; /* MLM */
    const char *judge, *judgement;                         /* replaced or not */
    const char *lm_bias;                                   /* a buffer [1][words]; or nowhere */
} qkvi_model_family;

/** NULL: nobody of that name is in the family. */
const qkvi_model_family *qkvi_family_of(const char *type);

/** "bert", "distilbert" …: for messages. */
extern const char qkvi_family_types[];

/* What a model computes otherwise than BERT. */
typedef struct qkvi_switches {
    bool pre_norm;
    bool half_sinusoids; /* sines before cosines, where positions are sinusoids */
    bool skips_padding;  /* padding has a position of its own, which is not counted */
    qkvi_act act;
    float word_scale;
} qkvi_switches;

qkvi_switches qkvi_switches_of(const qkv_model_info *info);

/** The factor on q·k in a block; 0: 1 / √head_dim. */
double qkvi_switched_scale(const qkv_model_info *info, int64_t head_dim, int64_t layer);

#endif
