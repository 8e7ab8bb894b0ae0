/*
 * What the rows of BERT and its family, of BART and Marian have in common: see families.c. From
 * transformers 5, models/<type>/{configuration,modeling}_<type>.py.
 */
#ifndef QKVI_ARCH_FAMILIES_EARLY_H
#define QKVI_ARCH_FAMILIES_EARLY_H

/* ---- What config.json calls sizes ------------------------------------------------------------ */

#define NO_OTHER_ATTENTION                                                                         \
    { "is_decoder", 0, 0 }, { "add_cross_attention", 0, 0 }
#define AT(field) (int)offsetof(qkv_model_info, field)

/* Encoders: sizes must be there. The switch for sinusoids is ours, for BERT alone. */
#define ENCODER(n, of_hidden, heads, wide, act, ...)                                               \
    .config = { .hidden = { of_hidden, 0 },                                                        \
                .max_len = { "max_position_embeddings", 0 },                                       \
                .vocab_size = { "vocab_size", 0 },                                                 \
                .kv_heads = "num_key_value_heads",                                                 \
                .stacks = { { { n, 0 }, { heads, 0 }, { wide, 0 } } },                             \
                .activation = act,                                                                 \
                .activation_absent = "gelu",                                                       \
                .eps_absent = 1e-12,                                                               \
                .position_word = "position_embedding_type",                                        \
                .bos = -1,                                                                         \
                .eos = -1,                                                                         \
                .start = -1,                                                                       \
                __VA_ARGS__ }

#define BERT_CONFIG(...)                                                                           \
    ENCODER("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size",        \
            "hidden_act", .n_types = { "type_vocab_size", 2 }, .eps = "layer_norm_eps",            \
            __VA_ARGS__)

/*
 * BART and Marian: what is absent has the default of transformers 5. They are one graph, which no
 * field changes; fields by which files of before 2021 said so are checked.
 */
#define PAIR_STACK(side)                                                                           \
    {                                                                                              \
        { side "_layers", 12 }, { side "_attention_heads", 16 }, { side "_ffn_dim", 4096 }         \
    }

#define PAIR_CONFIG(n_words, is_marian, ...)                                                       \
    .config = { .hidden = { "d_model", 1024 },                                                     \
                .max_len = { "max_position_embeddings", 1024 },                                    \
                .vocab_size = { "vocab_size", n_words },                                           \
                .stacks = { PAIR_STACK("encoder"), PAIR_STACK("decoder") },                        \
                .activation = "activation_function",                                               \
                .activation_absent = "gelu",                                                       \
                .eps_absent = 1e-5,                                                                \
                .switches = { NO_OTHER_ATTENTION,                                                  \
                              { "is_encoder_decoder", 1, 0 },                                      \
                              { "normalize_before", 0, 0 },                                        \
                              { "add_final_layer_norm", 0, 0 },                                    \
                              { "normalize_embedding", !is_marian, 0 },                            \
                              { "static_position_embeddings", is_marian, 0 },                      \
                              { "scale_embedding", 0, AT(scales_words) },                          \
                              { is_marian ? "share_encoder_decoder_embeddings" : NULL, 1,          \
                                AT(separate_words) } },                                            \
                __VA_ARGS__ }

/* ---- Names ----------------------------------------------------------------------------------- */

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

#define SHARED_TIE                                                                                 \
    {                                                                                              \
        "model.shared.weight", {                                                                   \
            "lm_head.weight", "model.decoder.embed_tokens.weight",                                 \
                "model.encoder.embed_tokens.weight"                                                \
        }                                                                                          \
    }

/* T5 and mT5. */
#define T5_STACK(layers, of_layers, of_heads, wide)                                                \
    {                                                                                              \
        { layers, of_layers }, { "num_heads", of_heads }, { "d_ff", wide }                         \
    }

#define T5_CONFIG(n_words, layers, heads, wide, gated)                                             \
    .config = { .hidden = { "d_model", 512 },                                                      \
                .vocab_size = { "vocab_size", n_words },                                           \
                .head_dim = { "d_kv", 64 },                                                        \
                .stacks = { T5_STACK("num_layers", layers, heads, wide),                           \
                            T5_STACK("num_decoder_layers", layers, heads, wide) },                 \
                .activation = "feed_forward_proj",                                                 \
                .activation_absent = gated ? "gated-gelu" : "relu",                                \
                .eps = "layer_norm_epsilon",                                                       \
                .eps_absent = 1e-6,                                                                \
                .bos = -1,                                                                         \
                .eos = 1,                                                                          \
                .pad = 0,                                                                          \
                .start = 0,                                                                        \
                .switches = { NO_OTHER_ATTENTION, { "is_encoder_decoder", 1, 0 } } }

#define T5_BLOCK(feed)                                                                             \
    .query = "layer.0.SelfAttention.q", .key = "layer.0.SelfAttention.k",                          \
    .value = "layer.0.SelfAttention.v", .output = "layer.0.SelfAttention.o",                       \
    .norm1 = "layer.0.layer_norm", .gate = feed ".DenseReluDense.wi_0",                            \
    .up = feed ".DenseReluDense.wi_1", .up_alone = feed ".DenseReluDense.wi",                      \
    .down = feed ".DenseReluDense.wo", .norm2 = feed ".layer_norm"

#define T5_NAMES(side)                                                                             \
    .word = side ".embed_tokens", .layer = side ".block.",                                         \
    .distances = side ".block.0.layer.0.SelfAttention.relative_attention_bias",                    \
    .last_norm = side ".final_layer_norm"

#define T5(name, ...)                                                                              \
    {                                                                                              \
        .type = name, .kind = QKV_MODEL_PAIR, .norm = QKVI_RMS_NORM, .place = QKVI_NORM_INPUT,     \
        .positions = QKVI_DISTANCES, .biases = QKVI_BIASES_NONE, .padding_learns = true,           \
        .always_tied = true,                                                                       \
        .spelling = { .prefix = "transformer.",                                                    \
                      .ties = { { "shared.weight",                                                 \
                                  { "encoder.embed_tokens.weight", "decoder.embed_tokens.weight",  \
                                    "lm_head.weight" } } },                                        \
                      .ignored = { ".EncDecAttention.relative_attention_bias.weight" } },          \
        .stacks = { { T5_NAMES("encoder"), T5_BLOCK("layer.1") },                                  \
                    { T5_NAMES("decoder"), T5_BLOCK("layer.2"),                                    \
                      .cross_query = "layer.1.EncDecAttention.q",                                  \
                      .cross_key = "layer.1.EncDecAttention.k",                                    \
                      .cross_value = "layer.1.EncDecAttention.v",                                  \
                      .cross_output = "layer.1.EncDecAttention.o",                                 \
                      .norm_cross = "layer.1.layer_norm" } },                                      \
        .head = "lm_head", .shared_words = "shared", __VA_ARGS__                                   \
    }

/* GPT-J. */
#define GPTJ_CONFIG                                                                                \
    .config = { .hidden = { "n_embd", 4096 },                                                      \
                .max_len = { "n_positions", 2048 },                                                \
                .vocab_size = { "vocab_size", 50400 },                                             \
                .stacks = { { { "n_layer", 28 }, { "n_head", 16 }, { "n_inner", -4 } } },          \
                .activation = "activation_function",                                               \
                .activation_absent = "gelu_new",                                                   \
                .eps = "layer_norm_epsilon",                                                       \
                .eps_absent = 1e-5,                                                                \
                .rotary_dim = { "rotary_dim", 64 },                                                \
                .untied = true,                                                                    \
                .bos = 50256,                                                                      \
                .eos = 50256,                                                                      \
                .pad = -1,                                                                         \
                .start = -1,                                                                       \
                .switches = { { "add_cross_attention", 0, 0 }, { "is_encoder_decoder", 0, 0 } } }

#define GPTJ_NAMES                                                                                 \
    .word = "transformer.wte", .layer = "transformer.h.", .query = "attn.q_proj",                  \
    .key = "attn.k_proj", .value = "attn.v_proj", .output = "attn.out_proj", .norm1 = "ln_1",      \
    .norm2 = "ln_1", .up = "mlp.fc_in", .down = "mlp.fc_out", .last_norm = "transformer.ln_f"

/* BLOOM. Its gelu is the tanh form, and no field says another. */
#define BLOOM_CONFIG                                                                               \
    .config = { .hidden = { "hidden_size", 64 },                                                   \
                .hidden_before = "n_embed",                                                        \
                .vocab_size = { "vocab_size", 250880 },                                            \
                .stacks = { { { "n_layer", 2 }, { "n_head", 8 }, { NULL, -4 } } },                 \
                .activation_absent = "gelu_new",                                                   \
                .eps = "layer_norm_epsilon",                                                       \
                .eps_absent = 1e-5,                                                                \
                .bos = 1,                                                                          \
                .eos = 2,                                                                          \
                .pad = -1,                                                                         \
                .start = -1,                                                                       \
                .switches = {                                                                      \
                    { "add_cross_attention", 0, 0 },                                               \
                    { "is_encoder_decoder", 0, 0 },                                                \
                    { "apply_residual_connection_post_layernorm", 0, AT(adds_to_norm) } } }

#define BLOOM_NAMES                                                                                \
    .word = "transformer.word_embeddings", .embed_norm = "transformer.word_embeddings_layernorm",  \
    .layer = "transformer.h.", .query = "self_attention.query", .key = "self_attention.key",       \
    .value = "self_attention.value", .output = "self_attention.dense", .norm1 = "input_layernorm", \
    .norm2 = "post_attention_layernorm", .up = "mlp.dense_h_to_4h", .down = "mlp.dense_4h_to_h",   \
    .last_norm = "transformer.ln_f"

/* OPT. */
#define OPT_CONFIG                                                                                 \
    .config = { .hidden = { "hidden_size", 768 },                                                  \
                .max_len = { "max_position_embeddings", 2048 },                                    \
                .vocab_size = { "vocab_size", 50272 },                                             \
                .embedding_size = { "word_embed_proj_dim", -1 },                                   \
                .stacks = { { { "num_hidden_layers", 12 },                                         \
                              { "num_attention_heads", 12 },                                       \
                              { "ffn_dim", 3072 } } },                                             \
                .activation = "activation_function",                                               \
                .activation_absent = "relu",                                                       \
                .eps_absent = 1e-5,                                                                \
                .bos = 2,                                                                          \
                .eos = 2,                                                                          \
                .pad = 1,                                                                          \
                .start = -1,                                                                       \
                .switches = { { "add_cross_attention", 0, 0 },                                     \
                              { "is_encoder_decoder", 0, 0 },                                      \
                              { "layer_norm_elementwise_affine", 1, 0 },                           \
                              { "do_layer_norm_before", 1, AT(post_norm) },                        \
                              { "_remove_final_layer_norm", 0, AT(no_last_norm) } } }

#define OPT_NAMES                                                                                  \
    .word = "model.decoder.embed_tokens", .position = "model.decoder.embed_positions",             \
    .project = "model.decoder.project_in", .project_out = "model.decoder.project_out",             \
    .layer = "model.decoder.layers.", PAIR_BLOCK, .last_norm = "model.decoder.final_layer_norm"

/* Linear layers over the hidden states of all tokens. */
#define TOKEN_CLASSIFIERS .token_classifier = "classifier", .answers = "qa_outputs"

/* RoBERTa and XLM-RoBERTa. */
#define ROBERTA_NAMES                                                                              \
    .spelling = { .prefix = "roberta.",                                                            \
                  .ties = { { "roberta.embeddings.word_embeddings.weight",                         \
                              { "lm_head.decoder.weight" } } },                                    \
                  .bias = { "lm_head.bias", "lm_head.decoder.bias" } },                            \
    .stacks = { { EMBEDDINGS("roberta."), .segment = "roberta.embeddings.token_type_embeddings",   \
                  .layer = "roberta.encoder.layer.", BERT_BLOCK } },                               \
    .classifier = "classifier.out_proj", .class_dense = "classifier.dense",                        \
    .class_act = QKVI_TANH, TOKEN_CLASSIFIERS, .pooler = "roberta.pooler.dense",                   \
    .head = "lm_head.decoder", .transform = "lm_head.dense",                                       \
    .transform_norm = "lm_head.layer_norm", .decoder_bias = "lm_head.bias"

#endif
