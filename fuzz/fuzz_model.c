/*
 * The weights of a model whose config.json and vocabulary are ours: a BERT of one layer with two
 * channels. What opens is run on a pair; whatever the weights are, it gives as many numbers as it
 * promised.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"

#include "qkv/model.h"

static const char config[] =
    "{\"model_type\":\"bert\",\"num_hidden_layers\":1,\"hidden_size\":2,\"num_attention_heads\":1,"
    "\"intermediate_size\":3,\"vocab_size\":6,\"max_position_embeddings\":7}";
static const char vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n";

static void use(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run) {
    const qkv_model_info *const info = qkv_model_get_info(model);
    float *const logits = fuzz_alloc((size_t)info->vocab_size * sizeof *logits);
    float *const weights = fuzz_alloc(6 * 6 * sizeof *weights);
    qkv_candidate *const words = fuzz_alloc(3 * sizeof *words);
    float nsp[2];
    qkv_error error;
    fuzz_accepted(qkv_model_logits(ctx, model, run, QKV_HEAD_MASKED, 0, 1, logits, &error), &error);
    fuzz_accepted(qkv_model_nsp(ctx, model, run, 0, nsp, &error), &error);
    const qkv_status status = qkv_model_candidates(ctx, model, run, QKV_HEAD_MASKED, 0, 2, 3, words,
                                                   sizeof(qkv_candidate), &error);
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
    const qkv_status status = qkv_model_open_memory(
        config, sizeof config - 1, vocab, sizeof vocab - 1, bytes, n_bytes, NULL, &model, &error);
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
