/* The names: see family.h. From transformers 5, models/<type>/modeling_<type>.py. */
#include "model/arch/family.h"

#include <string.h>

const char qkvi_family_types[] = "\"bert\", \"distilbert\", \"roberta\" and \"electra\"";

/* Blocks are alike but for DistilBERT's. */
#define BERT_BLOCK                                                                                 \
    .query = "attention.self.query", .key = "attention.self.key", .value = "attention.self.value", \
    .output = "attention.output.dense", .norm1 = "attention.output.LayerNorm",                     \
    .up = "intermediate.dense", .down = "output.dense", .norm2 = "output.LayerNorm"

#define EMBEDDINGS(prefix)                                                                         \
    .word = prefix "embeddings.word_embeddings",                                                   \
    .position = prefix "embeddings.position_embeddings",                                           \
    .embed_norm = prefix "embeddings.LayerNorm"

static const qkvi_family families[] = {
    { .type = "bert",
      .spelling = { "bert.",
                    { { "bert.embeddings.word_embeddings.weight",
                        "cls.predictions.decoder.weight" },
                      { "cls.predictions.bias", "cls.predictions.decoder.bias" } } },
      EMBEDDINGS("bert."),
      .segment = "bert.embeddings.token_type_embeddings",
      .layer = "bert.encoder.layer.",
      BERT_BLOCK,
      .pooler = "bert.pooler.dense",
      .nsp = "cls.seq_relationship",
      .transform = "cls.predictions.transform.dense",
      .transform_norm = "cls.predictions.transform.LayerNorm",
      .decoder_bias = "cls.predictions.bias" },
    { .type = "distilbert",
      .spelling = { "distilbert.",
                    { { "distilbert.embeddings.word_embeddings.weight",
                        "vocab_projector.weight" } } },
      EMBEDDINGS("distilbert."),
      .layer = "distilbert.transformer.layer.",
      .query = "attention.q_lin",
      .key = "attention.k_lin",
      .value = "attention.v_lin",
      .output = "attention.out_lin",
      .norm1 = "sa_layer_norm",
      .up = "ffn.lin1",
      .down = "ffn.lin2",
      .norm2 = "output_layer_norm",
      .transform = "vocab_transform",
      .transform_norm = "vocab_layer_norm",
      .decoder_bias = "vocab_projector.bias" },
    { .type = "roberta",
      .spelling = { "roberta.",
                    { { "roberta.embeddings.word_embeddings.weight", "lm_head.decoder.weight" },
                      { "lm_head.bias", "lm_head.decoder.bias" } } },
      EMBEDDINGS("roberta."),
      .segment = "roberta.embeddings.token_type_embeddings",
      .layer = "roberta.encoder.layer.",
      BERT_BLOCK,
      .pooler = "roberta.pooler.dense",
      .transform = "lm_head.dense",
      .transform_norm = "lm_head.layer_norm",
      .decoder_bias = "lm_head.bias" },
    { .type = "electra",
      .spelling = { "electra.",
                    { { "electra.embeddings.word_embeddings.weight",
                        "generator_lm_head.weight" } } },
      EMBEDDINGS("electra."),
      .segment = "electra.embeddings.token_type_embeddings",
      .project = "electra.embeddings_project",
      .layer = "electra.encoder.layer.",
      BERT_BLOCK,
      .transform = "generator_predictions.dense",
      .transform_norm = "generator_predictions.LayerNorm",
      .decoder_bias = "generator_lm_head.bias",
      .judge = "discriminator_predictions.dense",
      .judgement = "discriminator_predictions.dense_prediction" },
};

const qkvi_family *qkvi_family_of(const char *type) {
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        if (strcmp(families[f].type, type) == 0) return &families[f];
    return NULL;
}
