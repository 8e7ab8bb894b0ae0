/*
 * What the rows of Llama and its kin, and of ModernBERT, have in common: see families.c. From
 * transformers 5, models/<type>/{configuration,modeling}_<type>.py. Sizes are those of an absent
 * field.
 */
#ifndef QKVI_ARCH_FAMILIES_ROTARY_H
#define QKVI_ARCH_FAMILIES_ROTARY_H

/* ---- config.json ----------------------------------------------------------------------------- */

#define MAX_LEN(n)  .max_len = { "max_position_embeddings", n }
#define KV_HEADS(n) .n_kv_heads = { "num_key_value_heads", n }
#define HEAD_DIM(n) .head_dim = { "head_dim", n }
#define GELU_TANH   "gelu_pytorch_tanh"

#define LLAMA_SIZES(words, wide, inner, layers, heads)                                             \
    .hidden = { "hidden_size", wide }, .vocab_size = { "vocab_size", words },                      \
    .stacks = { { { "num_hidden_layers", layers },                                                 \
                  { "num_attention_heads", heads },                                                \
                  { "intermediate_size", inner } } }

#define LLAMA_CONFIG(eps_of, act, ...)                                                             \
    .config = { .activation = "hidden_act",                                                        \
                .activation_absent = act,                                                          \
                .eps = "rms_norm_eps",                                                             \
                .eps_absent = eps_of,                                                              \
                .start = -1,                                                                       \
                .switches = { { "add_cross_attention", 0, 0 },                                     \
                              { "is_encoder_decoder", 0, 0 },                                      \
                              { "use_bidirectional_attention", 0, 0 } },                           \
                __VA_ARGS__ }

/* ---- Names ----------------------------------------------------------------------------------- */

#define LLAMA_NAMES                                                                                \
    .word = "model.embed_tokens", .layer = "model.layers.", .query = "self_attn.q_proj",           \
    .key = "self_attn.k_proj", .value = "self_attn.v_proj", .output = "self_attn.o_proj",          \
    .gate = "mlp.gate_proj", .up = "mlp.up_proj", .down = "mlp.down_proj",                         \
    .last_norm = "model.norm"

#define LLAMA_BLOCK LLAMA_NAMES, .norm1 = "input_layernorm", .norm2 = "post_attention_layernorm"

#define QK_NORMS .query_norm = "self_attn.q_norm", .key_norm = "self_attn.k_norm"

#define OUTPUT_NORMS                                                                               \
    .norm1 = "input_layernorm", .out1 = "post_attention_layernorm",                                \
    .norm2 = "pre_feedforward_layernorm", .out2 = "post_feedforward_layernorm"

/* GPT-NeoX. */
#define NEOX_CONFIG                                                                                \
    .config = { LLAMA_SIZES(50432, 6144, 24576, 44, 64),                                           \
                MAX_LEN(2048),                                                                     \
                .activation = "hidden_act",                                                        \
                .activation_absent = "gelu",                                                       \
                .eps = "layer_norm_eps",                                                           \
                .eps_absent = 1e-5,                                                                \
                .theta = "rotary_emb_base",                                                        \
                .turned = "rotary_pct",                                                            \
                .turned_absent = 0.25,                                                             \
                .untied = true,                                                                    \
                .bos = 0,                                                                          \
                .eos = 2,                                                                          \
                .pad = -1,                                                                         \
                .start = -1,                                                                       \
                .switches = { { "add_cross_attention", 0, 0 }, { "is_encoder_decoder", 0, 0 } } }

#define NEOX_NAMES                                                                                 \
    .word = "gpt_neox.embed_in", .layer = "gpt_neox.layers.", .query = "attention.query",          \
    .key = "attention.key", .value = "attention.value", .output = "attention.dense",               \
    .norm1 = "input_layernorm", .norm2 = "post_attention_layernorm", .up = "mlp.dense_h_to_4h",    \
    .down = "mlp.dense_4h_to_h", .last_norm = "gpt_neox.final_layer_norm"

/* ---- Rows ------------------------------------------------------------------------------------ */

#define BIASES_ASKED QKVI_BIASES_IF_ASKED

#define LLAMA(name, its_norm, its_place, its_biases, ...)                                          \
    {                                                                                              \
        .type = name, .kind = QKV_MODEL_DECODER, .norm = its_norm, .place = its_place,             \
        .positions = QKVI_ROTARY, .biases = its_biases,                                            \
        .spelling = { .prefix = "model.",                                                          \
                      .ties = { { "model.embed_tokens.weight", { "lm_head.weight" } } },           \
                      .ignored = { ".rotary_emb.inv_freq" } },                                     \
        .head = "lm_head", .classifier = "score", __VA_ARGS__                                      \
    }

#endif
