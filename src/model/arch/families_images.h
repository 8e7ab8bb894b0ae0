/*
 * What the rows of models that read images have in common, and texts of CLIP and SigLIP: see
 * families.c. From
 * transformers 5, models/<type>/{configuration,modeling}_<type>.py; names are those on disk.
 */
#ifndef QKVI_ARCH_FAMILIES_IMAGES_H
#define QKVI_ARCH_FAMILIES_IMAGES_H

#include "model/arch/family.h"

/* ---- config.json ----------------------------------------------------------------------------- */

#define IMAGE_CONFIG(wide, inner, layers, heads, act, eps_of)                                      \
    .config = { .hidden = { "hidden_size", wide },                                                 \
                .stacks = { { { "num_hidden_layers", layers },                                     \
                              { "num_attention_heads", heads },                                    \
                              { inner ? "intermediate_size" : NULL, inner } } },                   \
                .activation = "hidden_act",                                                        \
                .activation_absent = act,                                                          \
                .eps = "layer_norm_eps",                                                           \
                .eps_absent = eps_of,                                                              \
                .bos = -1,                                                                         \
                .eos = -1,                                                                         \
                .pad = -1,                                                                         \
                .start = -1 }

/* ---- Names ----------------------------------------------------------------------------------- */

#define VIT_NAMES(prefix)                                                                          \
    .layer = prefix "encoder.layer.", .query = "attention.attention.query",                        \
    .key = "attention.attention.key", .value = "attention.attention.value",                        \
    .output = "attention.output.dense", .last_norm = prefix "layernorm"

#define VIT_BLOCK                                                                                  \
    .norm1 = "layernorm_before", .up = "intermediate.dense", .down = "output.dense",               \
    .norm2 = "layernorm_after"

#define DINO_BLOCK                                                                                 \
    .norm1 = "norm1", .norm2 = "norm2", .scale1 = "layer_scale1.lambda1",                          \
    .scale2 = "layer_scale2.lambda1"

#define DINO3_NAMES                                                                                \
    .layer = "layer.", .query = "attention.q_proj", .key = "attention.k_proj",                     \
    .value = "attention.v_proj", .output = "attention.o_proj", DINO_BLOCK, .up = "mlp.up_proj",    \
    .down = "mlp.down_proj", .last_norm = "norm"

#define CLIP_BLOCK                                                                                 \
    .query = "self_attn.q_proj", .key = "self_attn.k_proj", .value = "self_attn.v_proj",           \
    .output = "self_attn.out_proj", .norm1 = "layer_norm1", .up = "mlp.fc1", .down = "mlp.fc2",    \
    .norm2 = "layer_norm2"

/* A gated feed-forward: the tensor mlp.weights_in has both (families.c). */
#define DINO2_GATED .gate = "mlp.gate", .up = "mlp.up", .down = "mlp.weights_out"

static const qkvi_stack_names dino2_gated = { VIT_NAMES("dinov2."), DINO_BLOCK, DINO2_GATED };
static const qkvi_stack_names registers_gated = { VIT_NAMES("dinov2_with_registers."), DINO_BLOCK,
                                                  DINO2_GATED };
static const qkvi_stack_names dino3_gated = { DINO3_NAMES, .gate = "mlp.gate_proj" };

/* ---- Rows ------------------------------------------------------------------------------------ */

#define SEES(name, its_biases, ...)                                                                \
    {                                                                                              \
        .type = name, .place = QKVI_NORM_INPUT, .biases = its_biases, .padding_learns = true,      \
        __VA_ARGS__                                                                                \
    }

#define VIT_EMBEDDINGS(prefix)                                                                     \
    .patch = prefix "embeddings.patch_embeddings.projection",                                      \
    .position = prefix "embeddings.position_embeddings", .size = 224

#define DINO2(name, base, gated_names, ...)                                                        \
    SEES(name, QKVI_BIASES_QKV_ASKED, IMAGE_CONFIG(768, 0, 12, 12, "gelu", 1e-6),                  \
         .spelling = { .prefix = base, .ignored = { ".mask_token" } },                             \
         .stacks = { { VIT_NAMES(base), DINO_BLOCK, .up = "mlp.fc1", .down = "mlp.fc2" } },        \
         .gated = &gated_names, .fused_up = "mlp.weights_in", .classifier = "classifier",          \
         .image = { VIT_EMBEDDINGS(base), .classes = { base "embeddings.cls_token" },              \
                    .interpolates = true, .by_ratio = true, .reads = QKVI_READS_CLS_MEAN,          \
                    __VA_ARGS__ })

#define CLIP_SPELLING(prefix_of) .spelling = { .prefix = prefix_of }

/* Names that CLIP and SigLIP share. */
#define CLIP_TEXT_NAMES                                                                            \
    CLIP_SPELLING("text_model."),                                                                  \
        .stacks = { { .word = "text_model.embeddings.token_embedding",                             \
                      .position = "text_model.embeddings.position_embedding",                      \
                      .layer = "text_model.encoder.layers.",                                       \
                      CLIP_BLOCK,                                                                  \
                      .last_norm = "text_model.final_layer_norm" } }

#define CLIP_TEXT(name, ...)                                                                       \
    {                                                                                              \
        .type = name, .kind = QKV_MODEL_DECODER, .place = QKVI_NORM_INPUT, .padding_learns = true, \
        .headless = true,                                                                          \
        .config = { .hidden = { "hidden_size", 512 },                                              \
                    .max_len = { "max_position_embeddings", 77 },                                  \
                    .vocab_size = { "vocab_size", 49408 },                                         \
                    .stacks = { { { "num_hidden_layers", 12 },                                     \
                                  { "num_attention_heads", 8 },                                    \
                                  { "intermediate_size", 2048 } } },                               \
                    .activation = "hidden_act",                                                    \
                    .activation_absent = "quick_gelu",                                             \
                    .eps = "layer_norm_eps",                                                       \
                    .eps_absent = 1e-5,                                                            \
                    .bos = 49406,                                                                  \
                    .eos = 49407,                                                                  \
                    .pad = 1,                                                                      \
                    .start = -1 },                                                                 \
        CLIP_TEXT_NAMES, .joint = "text_projection", __VA_ARGS__                                   \
    }

/* Texts are padded to as many tokens as there are positions, which nothing masks. */
#define SIGLIP_TEXT(name, ...)                                                                     \
    {                                                                                              \
        .type = name, .place = QKVI_NORM_INPUT, .padding_learns = true,                            \
        .config = { .hidden = { "hidden_size", 768 },                                              \
                    .max_len = { "max_position_embeddings", 64 },                                  \
                    .vocab_size = { "vocab_size", 32000 },                                         \
                    .stacks = { { { "num_hidden_layers", 12 },                                     \
                                  { "num_attention_heads", 12 },                                   \
                                  { "intermediate_size", 3072 } } },                               \
                    .activation = "hidden_act",                                                    \
                    .activation_absent = "gelu_pytorch_tanh",                                      \
                    .eps = "layer_norm_eps",                                                       \
                    .eps_absent = 1e-6,                                                            \
                    .bos = -1,                                                                     \
                    .eos = -1,                                                                     \
                    .pad = 1,                                                                      \
                    .start = -1 },                                                                 \
        CLIP_TEXT_NAMES, .joint = "text_model.head", .joint_biased = true, __VA_ARGS__             \
    }

#define SIGLIP(name, ...)                                                                          \
    SEES(name, QKVI_BIASES, IMAGE_CONFIG(768, 3072, 12, 12, "gelu_pytorch_tanh", 1e-6),            \
         CLIP_SPELLING("vision_model."),                                                           \
         .stacks = { { .layer = "vision_model.encoder.layers.",                                    \
                       CLIP_BLOCK,                                                                 \
                       .last_norm = "vision_model.post_layernorm" } },                             \
         .classifier = "classifier",                                                               \
         .image = { .patch = "vision_model.embeddings.patch_embedding",                            \
                    .position = "vision_model.embeddings.position_embedding.weight",               \
                    .flat = true,                                                                  \
                    .size = 224,                                                                   \
                    .side = 16,                                                                    \
                    .reads = QKVI_READS_MEAN,                                                      \
                    .probe = "vision_model.head." },                                               \
         __VA_ARGS__)

#endif
