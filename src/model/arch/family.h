/**
 * What the members of BERT's family call the same things. One encoder computes them all; they differ
 * in the names of their parameters, in what a token's embedding is the sum of, and in the heads on top:
 *
 *   bert        word + segment + position; MLM head, pooler, NSP head
 *   distilbert  word + position; MLM head                               (Sanh et al. 2019)
 *   roberta     word + segment + position, whose first is the padding's row + 1; MLM head (Liu et al. 2019)
 *   electra     as bert, narrower, then a linear layer to the width of the blocks; a head that tells
 *               replaced tokens, or an MLM head                           (Clark et al. 2020)
 *
 * Names are those of transformers, with the prefix of the whole model; files may have them without
 * (store/resolver.h). A part that a family lacks is NULL.
 */
#ifndef QKVI_ARCH_FAMILY_H
#define QKVI_ARCH_FAMILY_H

#include "model/store/resolver.h"

typedef struct qkvi_family {
    const char *type; /* model_type of config.json; qkv_model_info.architecture */
    qkvi_spelling spelling;
    const char *word, *position, *segment, *embed_norm, *project;
    const char *layer; /* "….layer.", then its number, ".", and */
    const char *query, *key, *value, *output, *norm1, *up, *down, *norm2;
    const char *pooler, *nsp;
    const char *transform, *transform_norm, *decoder_bias; /* MLM */
    const char *judge, *judgement;                         /* replaced or not */
} qkvi_family;

/** NULL: nobody of that name is in the family. */
const qkvi_family *qkvi_family_of(const char *type);

/** "bert", "distilbert" …: for messages. */
extern const char qkvi_family_types[];

#endif
