/* The names: see family.h. From transformers 5, models/<type>/modeling_<type>.py. */
#include "model/arch/family.h"

#include <math.h>
#include <string.h>

const char qkvi_family_types[] =
    "\"bert\", \"distilbert\", \"roberta\", \"electra\", \"gpt2\", \"bart\" and \"marian\"";

/* Blocks are alike but for DistilBERT's. */
#define BERT_BLOCK                                                                                 \
    .query = "attention.self.query", .key = "attention.self.key", .value = "attention.self.value", \
    .output = "attention.output.dense", .norm1 = "attention.output.LayerNorm",                     \
    .up = "intermediate.dense", .down = "output.dense", .norm2 = "output.LayerNorm"

#define EMBEDDINGS(prefix)                                                                         \
    .word = prefix "embeddings.word_embeddings",                                                   \
    .position = prefix "embeddings.position_embeddings",                                           \
    .embed_norm = prefix "embeddings.LayerNorm"

/* BART and Marian. */
#define PAIR_BLOCK                                                                                 \
    .query = "self_attn.q_proj", .key = "self_attn.k_proj", .value = "self_attn.v_proj",           \
    .output = "self_attn.out_proj", .norm1 = "self_attn_layer_norm", .up = "fc1", .down = "fc2",   \
    .norm2 = "final_layer_norm"

#define PAIR_ENCODER                                                                               \
    .word = "model.encoder.embed_tokens", .position = "model.encoder.embed_positions",             \
    .layer = "model.encoder.layers.", PAIR_BLOCK

#define PAIR_DECODER                                                                               \
    .word = "model.decoder.embed_tokens", .position = "model.decoder.embed_positions",             \
    .layer = "model.decoder.layers.", PAIR_BLOCK, .cross_query = "encoder_attn.q_proj",            \
    .cross_key = "encoder_attn.k_proj", .cross_value = "encoder_attn.v_proj",                      \
    .cross_output = "encoder_attn.out_proj", .norm_cross = "encoder_attn_layer_norm"

#define SHARED_TIES                                                                                \
    { "model.shared.weight", "model.decoder.embed_tokens.weight" },                                \
        { "model.shared.weight", "model.encoder.embed_tokens.weight" }, {                          \
        "model.shared.weight", "lm_head.weight"                                                    \
    }

static const qkvi_model_family families[] = {
    { .type = "bert",
      .spelling = { .prefix = "bert.",
                    .ties = { { "bert.embeddings.word_embeddings.weight",
                                "cls.predictions.decoder.weight" },
                              { "cls.predictions.bias", "cls.predictions.decoder.bias" } } },
      .stacks = { { EMBEDDINGS("bert."), .segment = "bert.embeddings.token_type_embeddings",
                    .layer = "bert.encoder.layer.", BERT_BLOCK } },
      .pooler = "bert.pooler.dense",
      .nsp = "cls.seq_relationship",
      .transform = "cls.predictions.transform.dense",
      .transform_norm = "cls.predictions.transform.LayerNorm",
      .decoder_bias = "cls.predictions.bias" },
    { .type = "distilbert",
      .spelling = { .prefix = "distilbert.",
                    .ties = { { "distilbert.embeddings.word_embeddings.weight",
                                "vocab_projector.weight" } } },
      .stacks = { { EMBEDDINGS("distilbert."), .layer = "distilbert.transformer.layer.",
                    .query = "attention.q_lin", .key = "attention.k_lin",
                    .value = "attention.v_lin", .output = "attention.out_lin",
                    .norm1 = "sa_layer_norm", .up = "ffn.lin1", .down = "ffn.lin2",
                    .norm2 = "output_layer_norm" } },
      .transform = "vocab_transform",
      .transform_norm = "vocab_layer_norm",
      .decoder_bias = "vocab_projector.bias" },
    { .type = "roberta",
      .spelling = { .prefix = "roberta.",
                    .ties = { { "roberta.embeddings.word_embeddings.weight",
                                "lm_head.decoder.weight" },
                              { "lm_head.bias", "lm_head.decoder.bias" } } },
      .stacks = { { EMBEDDINGS("roberta."), .segment = "roberta.embeddings.token_type_embeddings",
                    .layer = "roberta.encoder.layer.", BERT_BLOCK } },
      .pooler = "roberta.pooler.dense",
      .transform = "lm_head.dense",
      .transform_norm = "lm_head.layer_norm",
      .decoder_bias = "lm_head.bias" },
    { .type = "electra",
      .spelling = { .prefix = "electra.",
                    .ties = { { "electra.embeddings.word_embeddings.weight",
                                "generator_lm_head.weight" } } },
      .stacks = { { EMBEDDINGS("electra."), .segment = "electra.embeddings.token_type_embeddings",
                    .project = "electra.embeddings_project", .layer = "electra.encoder.layer.",
                    BERT_BLOCK } },
      .transform = "generator_predictions.dense",
      .transform_norm = "generator_predictions.LayerNorm",
      .decoder_bias = "generator_lm_head.bias",
      .judge = "discriminator_predictions.dense",
      .judgement = "discriminator_predictions.dense_prediction" },
    { .type = "gpt2",
      .spelling = { .prefix = "transformer.",
                    .ties = { { "transformer.wte.weight", "lm_head.weight" } },
                    .ignored = { ".attn.bias", ".attn.masked_bias" } },
      .stacks = { { .word = "transformer.wte",
                    .position = "transformer.wpe",
                    .layer = "transformer.h.",
                    .query = "attn.query",
                    .key = "attn.key",
                    .value = "attn.value",
                    .output = "attn.c_proj",
                    .norm1 = "ln_1",
                    .up = "mlp.c_fc",
                    .down = "mlp.c_proj",
                    .norm2 = "ln_2",
                    .last_norm = "transformer.ln_f" } },
      .fused = "attn.c_attn",
      .transposes = true },
    { .type = "bart",
      .spelling = { .prefix = "model.", .ties = { SHARED_TIES } },
      .stacks = { { PAIR_ENCODER, .embed_norm = "model.encoder.layernorm_embedding" },
                  { PAIR_DECODER, .embed_norm = "model.decoder.layernorm_embedding" } },
      .shared_words = "model.shared",
      .lm_bias = "final_logits_bias" },
    { .type = "marian",
      .spelling = { .prefix = "model.",
                    .ties = { SHARED_TIES,
                              { "model.decoder.embed_tokens.weight", "lm_head.weight" } } },
      .stacks = { { PAIR_ENCODER }, { PAIR_DECODER } },
      .shared_words = "model.shared",
      .lm_bias = "final_logits_bias" },
};

const qkvi_model_family *qkvi_family_of(const char *type) {
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        if (strcmp(families[f].type, type) == 0) return &families[f];
    return NULL;
}

/* ---- Switches --------------------------------------------------------------------------------- */

static qkvi_act act_of(const char *name) {
    static const char *const names[QKVI_N_ACTS] = {
        [QKVI_GELU] = "gelu",
        [QKVI_GELU_TANH] = "gelu_tanh",
        [QKVI_RELU] = "relu",
        [QKVI_SILU] = "silu",
    };
    for (int act = 0; name && act < QKVI_N_ACTS; act++)
        if (strcmp(name, names[act]) == 0) return (qkvi_act)act;
    return QKVI_GELU;
}

qkvi_switches qkvi_switches_of(const qkv_model_info *info) {
    return (qkvi_switches){ .pre_norm = info->is_decoder,
                            .half_sinusoids = info->is_encoder_decoder,
                            .skips_padding = strcmp(info->architecture, "roberta") == 0,
                            .act = act_of(info->activation),
                            .word_scale = info->scales_words ? sqrtf((float)info->hidden) : 1 };
}

double qkvi_switched_scale(const qkv_model_info *info, int64_t head_dim, int64_t layer) {
    if (!info->unscaled && !info->scales_by_layer) return 0;
    const double scale = info->unscaled ? 1 : 1 / sqrt((double)head_dim);
    return info->scales_by_layer ? scale / (double)(layer + 1) : scale;
}
