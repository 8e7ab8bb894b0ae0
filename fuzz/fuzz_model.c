/*
 * The weights of a model whose config.json and vocabulary are ours: one layer with two channels, of
 * the family whose name of a tensor the file has, else of BERT. What opens is run on a pair;
 * whatever the weights are, it gives as many numbers as it promised.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"

#include "qkv/model.h"

#define SIZES                                                                                      \
    "\"num_hidden_layers\":1,\"hidden_size\":2,\"num_attention_heads\":1,\"intermediate_size\":3," \
    "\"vocab_size\":6,\"max_position_embeddings\":7}"

/* Which families have tensors of such a name: first those with more names than llama. */
static const struct {
    const char *name, *config;
} families[] = {
    { "feedforward_layernorm",
      "{\"model_type\":\"gemma3_text\",\"num_key_value_heads\":1,\"head_dim\":4,\"sliding_window\":2,"
      "\"final_logit_softcapping\":3.5," SIZES },
    { "qkv_proj", "{\"model_type\":\"phi3\",\"pad_token_id\":0," SIZES },
    { "Wqkv", "{\"model_type\":\"modernbert\",\"attention_bias\":true," SIZES },
    { "self_attention.query_key_value", "{\"model_type\":\"bloom\"," SIZES },
    { "query_key_value", "{\"model_type\":\"gpt_neox\",\"rotary_pct\":1," SIZES },
    { "mlp.fc_in", "{\"model_type\":\"gptj\",\"rotary_dim\":2,\"n_inner\":3," SIZES },
    { "project_in", "{\"model_type\":\"opt\",\"ffn_dim\":3,\"word_embed_proj_dim\":3," SIZES },
    { "q_norm", "{\"model_type\":\"qwen3\",\"num_key_value_heads\":1,\"head_dim\":2," SIZES },
    { "model.layers.", "{\"model_type\":\"llama\",\"rope_scaling\":{\"type\":\"linear\","
                       "\"factor\":2}," SIZES },
    { "", "{\"model_type\":\"bert\"," SIZES },
};
static const char vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n";

static const char *config_for(const uint8_t *bytes, size_t n_bytes) {
    for (size_t f = 0;; f++) {
        const size_t n = strlen(families[f].name);
        for (size_t at = 0; at + n <= n_bytes; at++)
            if (memcmp(bytes + at, families[f].name, n) == 0) return families[f].config;
        if (n == 0) return families[f].config; /* an empty input */
    }
}

static void use(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run) {
    const qkv_model_info *const info = qkv_model_get_info(model);
    float *const logits = fuzz_alloc((size_t)info->vocab_size * sizeof *logits);
    float *const weights = fuzz_alloc(6 * 6 * sizeof *weights);
    qkv_candidate *const words = fuzz_alloc(3 * sizeof *words);
    float nsp[2];
    const qkv_word_head head = info->kind == QKV_MODEL_DECODER ? QKV_HEAD_NEXT : QKV_HEAD_MASKED;
    qkv_error error;
    fuzz_accepted(qkv_model_logits(ctx, model, run, head, 0, 1, logits, &error), &error);
    fuzz_accepted(qkv_model_nsp(ctx, model, run, 0, nsp, &error), &error);
    const qkv_status status =
        qkv_model_candidates(ctx, model, run, head, 0, 2, 3, words, sizeof(qkv_candidate), &error);
    for (int i = 0; fuzz_accepted(status, &error) && i < 3; i++)
        FUZZ_CHECK(words[i].id >= 0 && words[i].id < info->vocab_size);
    FUZZ_CHECK(qkv_run_weights(run, QKV_SELF, 0, 0, 0, weights, &error) == QKV_OK);
    free(logits);
    free(weights);
    free(words);
}

/* [CLS] a [MASK] [SEP] a [SEP] */
static void run(const qkv_model *model) {
    static qkv_ctx *ctx;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.n_threads = 1;
    qkv_encoding *input;
    qkv_run *result;
    qkv_error error;
    if (!ctx) FUZZ_CHECK(qkv_ctx_create(&options, &ctx, NULL) == QKV_OK);
    FUZZ_CHECK(qkv_tokenizer_encode(qkv_model_tokenizer(model, QKV_SOURCE), "a [MASK]", 8, "a", 1,
                                    &input, &error) == QKV_OK);
    FUZZ_CHECK(input->n == 6);
    FUZZ_CHECK(qkv_model_run(ctx, model, 1, (const qkv_encoding *const *)&input,
                             QKV_RUN_CAPTURE | QKV_RUN_HIDDEN, NULL, &result, &error) == QKV_OK);
    use(ctx, model, result);
    qkv_run_free(result);
    qkv_encoding_free(input);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    qkv_model *model;
    qkv_error error;
    const char *const config = config_for(bytes, n_bytes);
    const qkv_status status = qkv_model_open_memory(config, strlen(config), vocab, sizeof vocab - 1,
                                                    bytes, n_bytes, NULL, &model, &error);
    if (!fuzz_accepted(status, &error)) {
        FUZZ_CHECK(!model);
        return 0;
    }
    for (int64_t i = 0; qkv_model_unused(model, i); i++)
        for (const char *c = qkv_model_unused(model, i); *c; c++)
            FUZZ_CHECK((unsigned char)*c >= ' ' && *c != 0x7f);
    run(model);
    qkv_model_free(model);
    return 0;
}
