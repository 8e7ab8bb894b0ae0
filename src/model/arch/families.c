/* The rows: see family.h. From transformers 5, models/<type>/modeling_<type>.py. */
#include <math.h>

#include "model/arch/families_rotary.h"
#include "model/arch/family.h"

/* ---- What config.json calls sizes ------------------------------------------------------------- */

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

/* ---- Names ------------------------------------------------------------------------------------ */

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

/* RoBERTa and XLM-RoBERTa. */
#define ROBERTA_NAMES                                                                              \
    .spelling = { .prefix = "roberta.",                                                            \
                  .ties = { { "roberta.embeddings.word_embeddings.weight",                         \
                              { "lm_head.decoder.weight" } } },                                    \
                  .bias = { "lm_head.bias", "lm_head.decoder.bias" } },                            \
    .stacks = { { EMBEDDINGS("roberta."), .segment = "roberta.embeddings.token_type_embeddings",   \
                  .layer = "roberta.encoder.layer.", BERT_BLOCK } },                               \
    .pooler = "roberta.pooler.dense", .head = "lm_head.decoder", .transform = "lm_head.dense",     \
    .transform_norm = "lm_head.layer_norm", .decoder_bias = "lm_head.bias"

const qkvi_model_family qkvi_families[] = {
    { .type = "bert",
      BERT_CONFIG(.switches = { NO_OTHER_ATTENTION,
                                { "sinusoidal_positions", 0, AT(sinusoidal_positions) } }),
      .spelling = { .prefix = "bert.",
                    .ties = { { "bert.embeddings.word_embeddings.weight",
                                { "cls.predictions.decoder.weight" } } },
                    .bias = { "cls.predictions.bias", "cls.predictions.decoder.bias" } },
      .stacks = { { EMBEDDINGS("bert."), .segment = "bert.embeddings.token_type_embeddings",
                    .layer = "bert.encoder.layer.", BERT_BLOCK } },
      .pooler = "bert.pooler.dense",
      .nsp = "cls.seq_relationship",
      .classifier = "classifier",
      .head = "cls.predictions.decoder",
      .transform = "cls.predictions.transform.dense",
      .transform_norm = "cls.predictions.transform.LayerNorm",
      .decoder_bias = "cls.predictions.bias" },
    { .type = "distilbert",
      ENCODER("n_layers", "dim", "n_heads", "hidden_dim", "activation",
              .switches = { NO_OTHER_ATTENTION, { "sinusoidal_positions", 0, 0 } }),
      .spelling = { .prefix = "distilbert.",
                    .ties = { { "distilbert.embeddings.word_embeddings.weight",
                                { "vocab_projector.weight" } } } },
      .stacks = { { EMBEDDINGS("distilbert."), .layer = "distilbert.transformer.layer.",
                    .query = "attention.q_lin", .key = "attention.k_lin",
                    .value = "attention.v_lin", .output = "attention.out_lin",
                    .norm1 = "sa_layer_norm", .up = "ffn.lin1", .down = "ffn.lin2",
                    .norm2 = "output_layer_norm" } },
      .head = "vocab_projector",
      .transform = "vocab_transform",
      .transform_norm = "vocab_layer_norm",
      .decoder_bias = "vocab_projector.bias" },
    { .type = "roberta",
      .first_after_pad = true,
      .head_is_gelu = true,
      BERT_CONFIG(.pad = 1, .switches = { NO_OTHER_ATTENTION, { "sinusoidal_positions", 0, 0 } }),
      ROBERTA_NAMES },
    { .type = "xlm-roberta",
      .first_after_pad = true,
      .head_is_gelu = true,
      BERT_CONFIG(.pad = 1, .switches = { NO_OTHER_ATTENTION, { "sinusoidal_positions", 0, 0 } }),
      ROBERTA_NAMES },
    { .type = "electra",
      .head_is_gelu = true,
      BERT_CONFIG(.embedding_size = { "embedding_size", 128 },
                  .switches = { NO_OTHER_ATTENTION, { "sinusoidal_positions", 0, 0 } }),
      .spelling = { .prefix = "electra.",
                    .ties = { { "electra.embeddings.word_embeddings.weight",
                                { "generator_lm_head.weight" } } } },
      .stacks = { { EMBEDDINGS("electra."), .segment = "electra.embeddings.token_type_embeddings",
                    .project = "electra.embeddings_project", .layer = "electra.encoder.layer.",
                    BERT_BLOCK } },
      .head = "generator_lm_head",
      .transform = "generator_predictions.dense",
      .transform_norm = "generator_predictions.LayerNorm",
      .decoder_bias = "generator_lm_head.bias",
      .discriminator = "discriminator_predictions.dense",
      .discriminator_out = "discriminator_predictions.dense_prediction" },
    { .type = "gpt2",
      .kind = QKV_MODEL_DECODER,
      .place = QKVI_NORM_INPUT,
      .padding_learns = true,
      .config = { .hidden = { "n_embd", 768 },
                  .max_len = { "n_positions", 1024 },
                  .vocab_size = { "vocab_size", 50257 },
                  .stacks = { { { "n_layer", 12 }, { "n_head", 12 }, { "n_inner", -4 } } },
                  .activation = "activation_function",
                  .activation_absent = "gelu_new",
                  .eps = "layer_norm_epsilon",
                  .eps_absent = 1e-5,
                  .bos = 50256,
                  .eos = 50256,
                  .pad = -1,
                  .start = -1,
                  .switches = { { "add_cross_attention", 0, 0 },
                                { "is_encoder_decoder", 0, 0 },
                                { "scale_attn_weights", 1, AT(unscaled) },
                                { "scale_attn_by_inverse_layer_idx", 0, AT(scales_by_layer) },
                                /* The same product, which others round otherwise. */
                                { "reorder_and_upcast_attn", 0, QKVI_SWITCH_IGNORED } } },
      .spelling = { .prefix = "transformer.",
                    .ties = { { "transformer.wte.weight", { "lm_head.weight" } } },
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
      .head = "lm_head",
      .fused = "attn.c_attn",
      .transposes = true },
    { .type = "bart",
      .kind = QKV_MODEL_PAIR,
      .first_position = 2,
      PAIR_CONFIG(50265, 0, .bos = 0, .eos = 2, .pad = 1, .start = 2,
                  .first_position = "extra_pos_embeddings"),
      .spelling = { .prefix = "model.", .ties = { SHARED_TIE } },
      .stacks = { { PAIR_ENCODER, .embed_norm = "model.encoder.layernorm_embedding" },
                  { PAIR_DECODER, .embed_norm = "model.decoder.layernorm_embedding" } },
      .head = "lm_head",
      .shared_words = "model.shared",
      .lm_bias = "final_logits_bias" },
    { .type = "marian",
      .kind = QKV_MODEL_PAIR,
      .positions = QKVI_SINUSOIDS,
      PAIR_CONFIG(58101, 1, .bos = -1, .eos = 0, .pad = 58100, .start = 58100,
                  .target_vocab_size = "decoder_vocab_size"),
      .spelling = { .prefix = "model.",
                    .ties = { SHARED_TIE,
                              { "model.decoder.embed_tokens.weight", { "lm_head.weight" } } } },
      .stacks = { { PAIR_ENCODER }, { PAIR_DECODER } },
      .head = "lm_head",
      .shared_words = "model.shared",
      .lm_bias = "final_logits_bias" },
    LLAMA("llama", QKVI_RMS_NORM, QKVI_NORM_INPUT, BIASES_ASKED, .mlp_bias = true,
          .stacks = { { LLAMA_BLOCK } },
          LLAMA_CONFIG(1e-6, "silu", LLAMA_SIZES(32000, 4096, 11008, 32, 32), MAX_LEN(2048),
                       .bos = 1, .eos = 2, .pad = -1, .untied = true)),
    LLAMA("mistral", QKVI_RMS_NORM, QKVI_NORM_INPUT, BIASES_ASKED, .slides = QKVI_SLIDES_ALWAYS,
          .stacks = { { LLAMA_BLOCK } },
          LLAMA_CONFIG(1e-6, "silu", LLAMA_SIZES(32000, 4096, 14336, 32, 32), MAX_LEN(131072),
                       KV_HEADS(8), .window = 4096, .bos = 1, .eos = 2, .pad = -1, .untied = true)),
    LLAMA("qwen2", QKVI_RMS_NORM, QKVI_NORM_INPUT, QKVI_BIASES_QKV, .slides = QKVI_SLIDES_ABOVE,
          .stacks = { { LLAMA_BLOCK } },
          LLAMA_CONFIG(1e-6, "silu", LLAMA_SIZES(151936, 4096, 22016, 32, 32), MAX_LEN(32768),
                       KV_HEADS(32), .window = 4096, .bos = -1, .eos = -1, .pad = -1,
                       .untied = true)),
    LLAMA("qwen3", QKVI_RMS_NORM, QKVI_NORM_INPUT, BIASES_ASKED, .slides = QKVI_SLIDES_ABOVE,
          .qk_norm = QKVI_QK_NORM_HEADS, .stacks = { { LLAMA_BLOCK, QK_NORMS } },
          LLAMA_CONFIG(1e-6, "silu", LLAMA_SIZES(151936, 4096, 22016, 32, 32), MAX_LEN(32768),
                       KV_HEADS(32), HEAD_DIM(128), .window = 4096, .bos = -1, .eos = -1, .pad = -1,
                       .untied = true)),
    LLAMA("gemma", QKVI_RMS_NORM_FROM_ONE, QKVI_NORM_INPUT, BIASES_ASKED, .gemma = 1,
          .stacks = { { LLAMA_BLOCK } },
          LLAMA_CONFIG(1e-6, GELU_TANH, LLAMA_SIZES(256000, 3072, 24576, 28, 16), MAX_LEN(8192),
                       KV_HEADS(16), HEAD_DIM(256), .bos = 2, .eos = 1, .pad = 0)),
    LLAMA("gemma2", QKVI_RMS_NORM_FROM_ONE, QKVI_NORM_BOTH, BIASES_ASKED, .gemma = 2,
          .slides = QKVI_SLIDES_EVEN, .stacks = { { LLAMA_NAMES, OUTPUT_NORMS } },
          LLAMA_CONFIG(1e-6, GELU_TANH, LLAMA_SIZES(256000, 2304, 9216, 26, 8), MAX_LEN(8192),
                       KV_HEADS(4), HEAD_DIM(256), .window = 4096, .bos = 2, .eos = 1, .pad = 0)),
    LLAMA("gemma3_text", QKVI_RMS_NORM_FROM_ONE, QKVI_NORM_BOTH, BIASES_ASKED, .gemma = 3,
          .slides = QKVI_SLIDES_PATTERN, .qk_norm = QKVI_QK_NORM_HEADS, .theta = { 1e6, 1e4 },
          .stacks = { { LLAMA_NAMES, OUTPUT_NORMS, QK_NORMS } },
          LLAMA_CONFIG(1e-6, GELU_TANH, LLAMA_SIZES(262208, 2304, 9216, 26, 8), MAX_LEN(131072),
                       KV_HEADS(4), HEAD_DIM(256), .window = 4096, .bos = 2, .eos = 1, .pad = 0)),
    LLAMA("smollm3", QKVI_RMS_NORM, QKVI_NORM_INPUT, BIASES_ASKED, .mlp_bias = true,
          .slides = QKVI_SLIDES_NOPE, .theta = { 2e6 }, .stacks = { { LLAMA_BLOCK } },
          LLAMA_CONFIG(1e-6, "silu", LLAMA_SIZES(128256, 2048, 11008, 36, 16), MAX_LEN(32768),
                       KV_HEADS(4), .bos = 128000, .eos = 128001, .pad = 128004)),
    LLAMA("olmo2", QKVI_RMS_NORM, QKVI_NORM_OUTPUT, BIASES_ASKED, .qk_norm = QKVI_QK_NORM_ROWS,
          .stacks = { { LLAMA_NAMES, QK_NORMS, .out1 = "post_attention_layernorm",
                        .out2 = "post_feedforward_layernorm" } },
          LLAMA_CONFIG(1e-5, "silu", LLAMA_SIZES(50304, 4096, 11008, 32, 32), MAX_LEN(2048),
                       .bos = -1, .eos = 50279, .pad = 1, .untied = true)),
    LLAMA("phi3", QKVI_RMS_NORM, QKVI_NORM_INPUT, QKVI_BIASES_NONE, .slides = QKVI_SLIDES_ALWAYS,
          .fused = "self_attn.qkv_proj", .fused_up = "mlp.gate_up_proj",
          .stacks = { { LLAMA_BLOCK } },
          LLAMA_CONFIG(1e-5, "silu", LLAMA_SIZES(32064, 3072, 8192, 32, 32), MAX_LEN(4096),
                       .bos = 1, .eos = 32000, .pad = 32000, .untied = true)),
    { .type = "modernbert",
      .kind = QKV_MODEL_ENCODER,
      .place = QKVI_NORM_INPUT,
      .positions = QKVI_ROTARY,
      .biases = QKVI_BIASES_IF_ASKED,
      .slides = QKVI_SLIDES_LOCAL,
      .mlp_bias = true,
      .norm_bias = true,
      .first_unnormed = true,
      .head_is_gelu = true,
      .theta = { 160000, 10000 },
      .config = { .hidden = { "hidden_size", 768 },
                  .max_len = { "max_position_embeddings", 8192 },
                  .vocab_size = { "vocab_size", 50368 },
                  .stacks = { { { "num_hidden_layers", 22 },
                                { "num_attention_heads", 12 },
                                { "intermediate_size", 1152 } } },
                  .kv_heads = "num_key_value_heads",
                  .activation = "hidden_activation",
                  .activation_absent = "gelu",
                  .eps = "norm_eps",
                  .eps_absent = 1e-5,
                  .bos = -1,
                  .eos = -1,
                  .pad = 50283,
                  .start = -1,
                  .switches = { NO_OTHER_ATTENTION } },
      .spelling = { .prefix = "model.",
                    .ties = { { "model.embeddings.tok_embeddings.weight",
                                { "decoder.weight" } } } },
      .stacks = { { .word = "model.embeddings.tok_embeddings",
                    .embed_norm = "model.embeddings.norm",
                    .layer = "model.layers.",
                    .query = "attn.query",
                    .key = "attn.key",
                    .value = "attn.value",
                    .output = "attn.Wo",
                    .norm1 = "attn_norm",
                    .gate = "mlp.gate",
                    .up = "mlp.up",
                    .down = "mlp.Wo",
                    .norm2 = "mlp_norm",
                    .last_norm = "model.final_norm" } },
      .head = "decoder",
      .fused = "attn.Wqkv",
      .fused_up = "mlp.Wi",
      .classifier = "classifier",
      .transform = "head.dense",
      .transform_norm = "head.norm",
      .decoder_bias = "decoder.bias" },
    { .type = NULL },
};

/* ---- What a family is asked ------------------------------------------------------------------ */

const char qkvi_family_types[] =
    "\"bert\", \"distilbert\", \"roberta\", \"xlm-roberta\", \"electra\", \"gpt2\", \"bart\", \"marian\", "
    "\"llama\", \"mistral\", \"qwen2\", \"qwen3\", \"gemma\", \"gemma2\", \"gemma3_text\", \"smollm3\", "
    "\"olmo2\", \"phi3\" and \"modernbert\"";

const qkvi_model_family *qkvi_family_of(const char *type) {
    for (const qkvi_model_family *f = qkvi_families; f->type; f++)
        if (strcmp(f->type, type) == 0) return f;
    return NULL;
}

/* ---- What config.json decides ------------------------------------------------------------------ */

qkvi_act qkvi_family_act(const qkv_model_info *info) {
    static const char *const names[QKVI_N_ACTS] = {
        [QKVI_GELU] = "gelu", [QKVI_GELU_TANH] = "gelu_tanh",   [QKVI_RELU] = "relu",
        [QKVI_SILU] = "silu", [QKVI_QUICK_GELU] = "quick_gelu", [QKVI_TANH] = "tanh",
    };
    for (int act = 0; info->activation && act < QKVI_N_ACTS; act++)
        if (strcmp(info->activation, names[act]) == 0) return (qkvi_act)act;
    return QKVI_GELU;
}

int qkvi_family_biases(const qkv_model_info *info) {
    const qkvi_model_family *const family = qkvi_family_of(info->architecture);
    return family->biases == QKVI_BIASES ? QKV_BIAS_QKV | QKV_BIAS_OUTPUT | QKV_BIAS_MLP
                                         : info->biases;
}

double qkvi_family_scale(const qkv_model_info *info, int64_t head_dim, int64_t layer) {
    if (info->score_scale > 0) return info->score_scale;
    if (!info->unscaled && !info->scales_by_layer) return 0;
    const double scale = info->unscaled ? 1 : 1 / sqrt((double)head_dim);
    return info->scales_by_layer ? scale / (double)(layer + 1) : scale;
}
