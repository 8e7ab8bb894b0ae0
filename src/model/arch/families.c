/* The rows: see family.h. From transformers 5, models/<type>/modeling_<type>.py. */
#include <math.h>

#include "model/arch/families_early.h"
#include "model/arch/families_images.h"
#include "model/arch/families_rotary.h"
#include "model/arch/family.h"

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
      TOKEN_CLASSIFIERS,
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
      .classifier = "classifier",
      .class_dense = "pre_classifier",
      .class_act = QKVI_RELU,
      TOKEN_CLASSIFIERS,
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
      .classifier = "classifier.out_proj",
      .class_dense = "classifier.dense",
      .class_act = QKVI_GELU,
      TOKEN_CLASSIFIERS,
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
      .classifier = "score",
      .fused = "attn.c_attn",
      .transposes = true },
    { .type = "gptj",
      .kind = QKV_MODEL_DECODER,
      .place = QKVI_NORM_INPUT,
      .positions = QKVI_ROTARY,
      .biases = QKVI_BIASES_MLP,
      .neighbours = true,
      .one_norm = true,
      .padding_learns = true,
      GPTJ_CONFIG,
      .spelling = { .prefix = "transformer.",
                    .ties = { { "transformer.wte.weight", { "lm_head.weight" } } },
                    .ignored = { ".attn.bias", ".attn.masked_bias" } },
      .stacks = { { GPTJ_NAMES } },
      .head = "lm_head",
      .classifier = "score",
      .head_bias = "lm_head.bias" },
    { .type = "bloom",
      .kind = QKV_MODEL_DECODER,
      .place = QKVI_NORM_INPUT,
      .positions = QKVI_ALIBI,
      .padding_learns = true,
      BLOOM_CONFIG,
      .spelling = { .prefix = "transformer.",
                    .ties = { { "transformer.word_embeddings.weight", { "lm_head.weight" } } } },
      .stacks = { { BLOOM_NAMES } },
      .head = "lm_head",
      .classifier = "score",
      .fused = "self_attention.query_key_value",
      .fused_by_head = true },
    { .type = "opt",
      .kind = QKV_MODEL_DECODER,
      .place = QKVI_NORM_INPUT,
      .biases = QKVI_BIASES_ENABLED,
      .first_position = 2,
      .positions_last = true,
      OPT_CONFIG,
      .spelling = { .prefix = "model.",
                    .ties = { { "model.decoder.embed_tokens.weight", { "lm_head.weight" } } } },
      .stacks = { { OPT_NAMES } },
      .head = "lm_head",
      .classifier = "score" },
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
    T5("t5", .scales_logits = true, T5_CONFIG(32128, 6, 8, 2048, false)),
    T5("mt5", T5_CONFIG(250112, 8, 6, 1024, true)),
    LLAMA("llama", QKVI_RMS_NORM, QKVI_NORM_INPUT, BIASES_ASKED, .mlp_bias = true,
          .stacks = { { LLAMA_BLOCK } },
          LLAMA_CONFIG(1e-6, "silu", LLAMA_SIZES(32000, 4096, 11008, 32, 32), MAX_LEN(2048),
                       .bos = 1, .eos = 2, .pad = -1, .untied = true)),
    LLAMA("mistral", QKVI_RMS_NORM, QKVI_NORM_INPUT, QKVI_BIASES_NONE, .slides = QKVI_SLIDES_ALWAYS,
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
    { .type = "gpt_neox",
      .kind = QKV_MODEL_DECODER,
      .place = QKVI_NORM_INPUT,
      .positions = QKVI_ROTARY,
      .biases = QKVI_BIASES_UNLESS_ATTENTION,
      .parallel = true,
      .padding_learns = true,
      NEOX_CONFIG,
      .spelling = { .prefix = "gpt_neox.",
                    .ties = { { "gpt_neox.embed_in.weight", { "embed_out.weight" } } },
                    .ignored = { ".attention.bias", ".attention.masked_bias",
                                 ".rotary_emb.inv_freq" },
                    .other = { "embed_out.weight", "lm_head.weight" } },
      .stacks = { { NEOX_NAMES } },
      .head = "embed_out",
      .classifier = "score",
      .fused = "attention.query_key_value",
      .fused_by_head = true },
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
      .token_classifier = "classifier",
      .answers = "classifier",
      .transform = "head.dense",
      .transform_norm = "head.norm",
      .decoder_bias = "decoder.bias" },
    SEES(
        "vit", QKVI_BIASES_QKV_ASKED, IMAGE_CONFIG(768, 3072, 12, 12, "gelu", 1e-12),
        .spelling = { .prefix = "vit.", .ignored = { ".mask_token" } },
        .stacks = { { VIT_NAMES("vit."), VIT_BLOCK } }, .pooler = "vit.pooler.dense",
        .classifier = "classifier",
        .image = { VIT_EMBEDDINGS("vit."), .classes = { "vit.embeddings.cls_token" }, .side = 16 }),
    SEES(
        "deit", QKVI_BIASES_QKV_ASKED, IMAGE_CONFIG(768, 3072, 12, 12, "gelu", 1e-12),
        .spelling = { .prefix = "deit.", .ignored = { ".mask_token" } },
        .stacks = { { VIT_NAMES("deit."), VIT_BLOCK } }, .pooler = "deit.pooler.dense",
        .classifier = "classifier",
        .image = { VIT_EMBEDDINGS("deit."),
                   .classes = { "deit.embeddings.cls_token", "deit.embeddings.distillation_token" },
                   .side = 16, .distilled = { "cls_classifier", "distillation_classifier" } }),
    DINO2("dinov2", "dinov2.", dino2_gated, .side = 14),
    DINO2("dinov2_with_registers", "dinov2_with_registers.", registers_gated, .side = 16,
          .registers = "dinov2_with_registers.embeddings.register_tokens", .n_registers = 4,
          .antialiases = true),
    SEES("dinov3_vit", QKVI_BIASES_APART, IMAGE_CONFIG(384, 1536, 12, 6, "gelu", 1e-5),
         .positions = QKVI_ROTARY_PLANE,
         .spelling = { .prefix = "model.", .ignored = { ".mask_token", ".inv_freq" } },
         .stacks = { { DINO3_NAMES } }, .gated = &dino3_gated, .theta = { 100 },
         .image = { .patch = "embeddings.patch_embeddings",
                    .classes = { "embeddings.cls_token" },
                    .registers = "embeddings.register_tokens",
                    .size = 224,
                    .side = 16,
                    .interpolates = true }),
    SIGLIP_TEXT("siglip", .part = "text_config", .images = "siglip_vision_model"),
    SIGLIP_TEXT("siglip_text_model"),
    SIGLIP("siglip_vision_model"),
    CLIP_TEXT("clip", .part = "text_config", .images = "clip_vision_model"),
    CLIP_TEXT("clip_text_model"),
    SEES("clip_vision_model", QKVI_BIASES, IMAGE_CONFIG(768, 3072, 12, 12, "quick_gelu", 1e-5),
         CLIP_SPELLING("vision_model."),
         .stacks = { { .embed_norm = "vision_model.pre_layrnorm",
                       .layer = "vision_model.encoder.layers.",
                       CLIP_BLOCK } },
         .joint = "visual_projection", .classifier = "classifier",
         .image = { .patch = "vision_model.embeddings.patch_embedding",
                    .no_bias = true,
                    .classes = { "vision_model.embeddings.class_embedding" },
                    .position = "vision_model.embeddings.position_embedding.weight",
                    .flat = true,
                    .size = 224,
                    .side = 32,
                    .reads = QKVI_READS_MEAN,
                    .pooled_norm = "vision_model.post_layernorm" }),
    { .type = NULL },
};

/* ---- What a family is asked ------------------------------------------------------------------ */

const char qkvi_family_types[] =
    "\"bert\", \"distilbert\", \"roberta\", \"xlm-roberta\", \"electra\", \"gpt2\", \"gptj\", \"bloom\", "
    "\"opt\", \"bart\", \"marian\", "
    "\"t5\", \"mt5\", \"llama\", \"mistral\", \"qwen2\", \"qwen3\", \"gemma\", \"gemma2\", \"gemma3_text\", \"smollm3\", "
    "\"olmo2\", \"phi3\", \"gpt_neox\", \"modernbert\", \"vit\", \"deit\", \"dinov2\", "
    "\"dinov2_with_registers\", \"dinov3_vit\", \"siglip\", "
    "\"siglip_text_model\", \"siglip_vision_model\", \"clip\", "
    "\"clip_text_model\" and \"clip_vision_model\"";

const qkvi_model_family *qkvi_family_of(const char *type) {
    for (const qkvi_model_family *f = qkvi_families; f->type; f++)
        if (strcmp(f->type, type) == 0) return f;
    return NULL;
}

/* ---- What config.json decides ---------------------------------------------------------------- */

qkvi_act qkvi_family_act(const qkv_model_info *info) {
    static const char *const names[QKVI_N_ACTS] = {
        [QKVI_GELU] = "gelu", [QKVI_GELU_TANH] = "gelu_tanh",   [QKVI_RELU] = "relu",
        [QKVI_SILU] = "silu", [QKVI_QUICK_GELU] = "quick_gelu", [QKVI_TANH] = "tanh",
    };
    for (int act = 0; info->activation && act < QKVI_N_ACTS; act++)
        if (strcmp(info->activation, names[act]) == 0) return (qkvi_act)act;
    return QKVI_GELU;
}

const qkvi_stack_names *qkvi_family_names(const qkv_model_info *info, int stack) {
    const qkvi_model_family *const family = qkvi_family_of(info->architecture);
    return family->gated && info->gated ? family->gated : &family->stacks[stack];
}

int qkvi_family_biases(const qkv_model_info *info) {
    const qkvi_model_family *const family = qkvi_family_of(info->architecture);
    return family->biases == QKVI_BIASES ? QKV_BIAS_QKV | QKV_BIAS_OUTPUT | QKV_BIAS_MLP
                                         : info->biases;
}

const char *qkvi_gate_name(const qkv_model_info *info, const qkvi_stack_names *names) {
    return names->up_alone && !info->gated ? NULL : names->gate;
}

const char *qkvi_up_name(const qkv_model_info *info, const qkvi_stack_names *names) {
    return names->up_alone && !info->gated ? names->up_alone : names->up;
}

double qkvi_family_scale(const qkv_model_info *info, int64_t head_dim, int64_t layer) {
    if (info->score_scale > 0) return info->score_scale;
    if (!info->unscaled && !info->scales_by_layer) return 0;
    const double scale = info->unscaled ? 1 : 1 / sqrt((double)head_dim);
    return info->scales_by_layer ? scale / (double)(layer + 1) : scale;
}

/* ---- Classifiers ----------------------------------------------------------------------------- */

const char *qkvi_classifier_name(const qkv_model_info *info) {
    const qkvi_model_family *const family = qkvi_family_of(info->architecture);
    return info->label_task == QKV_LABELS_OF_TOKENS    ? family->token_classifier
           : info->label_task == QKV_LABELS_OF_ANSWERS ? family->answers
                                                       : family->classifier;
}

/* One of tokens reads hidden states, but for ModernBERT, where all have the same layer. */
const char *qkvi_classifier_below(const qkv_model_info *info) {
    const qkvi_model_family *const family = qkvi_family_of(info->architecture);
    const char *const of_text = family->class_dense ? family->class_dense : family->pooler;
    if (!of_text) return family->transform;
    return info->label_task == QKV_LABELS_OF_TEXTS ? of_text : NULL;
}
