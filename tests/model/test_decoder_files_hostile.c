/*
 * Hostile checkpoints of GPT-2, BART, Marian and Llama and its kin (ids of docs/hostile-inputs.md):
 * the models of tests/golden/decoder and tests/golden/llama with a tensor that is missing,
 * unexpected, of another shape or type, with a wrong config.json, and with a vocabulary that does
 * not match. Each message has the names and shapes of the file, even where the library stores a
 * tensor transposed or in three parts.
 */
#include "hostile/cage.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/file.h"
#include "files/safetensors.h"
#include "model/model_impl.h"

#define GOLDEN QKV_TEST_DATA "/golden/decoder"

enum { MAX_TENSORS = 120 };

/* What is done to a tensor of a checkpoint. */
typedef enum change {
    NOTHING,
    DROP,
    SWAP,    /* its two dimensions: as if it were not transposed */
    RESHAPE, /* one dimension more, of 1 */
    INTEGERS /* its type is I32 */
} change;

typedef struct attempt {
    const char *id, *what, *model;
    change change;
    const char *tensor;
    const char *field, *value; /* of config.json: this text becomes that one */
    const char *extra;         /* a tensor [3] more */
    int ignores_extra;         /* it is a buffer that is not needed */
    const char *unused;        /* another tensor that is told to be unused */
    const char *words;         /* lines after those of vocab.txt */
    qkv_status status;
    const char *says;
} attempt;

static const attempt attempts[] = {
    { "CF", "gpt2 as it is", "gpt2_1", .status = QKV_OK, .says = "" },
    { "CF", "bart as it is", "bart_2", .status = QKV_OK, .says = "" },
    { "CF", "marian as it is", "marian_3", .status = QKV_OK, .says = "" },

    { "ST", "no c_attn", "gpt2_2", DROP, "transformer.h.2.attn.c_attn.weight",
      .status = QKV_ERR_FORMAT, .says = "tensor 'transformer.h.2.attn.c_attn.weight' is missing" },
    { "ST", "no bias of c_attn", "gpt2_1", DROP, "h.0.attn.c_attn.bias", .status = QKV_ERR_FORMAT,
      .says = "tensor 'transformer.h.0.attn.c_attn.bias' is missing" },
    { "ST", "c_attn as a Linear has it", "gpt2_2", SWAP, "transformer.h.0.attn.c_attn.weight",
      .status = QKV_ERR_SHAPE, .says = "has shape [36,12], config.json asks for [12,36]" },
    { "ST", "c_fc as a Linear has it", "gpt2_3", SWAP, "transformer.h.0.mlp.c_fc.weight",
      .status = QKV_ERR_SHAPE, .says = "has shape [19,21], config.json asks for [21,19]" },
    { "ST", "ln_f of rank 2", "gpt2_1", RESHAPE, "ln_f.weight", .status = QKV_ERR_SHAPE,
      .says = "tensor 'ln_f.weight' has shape [20,1], config.json asks for [20]" },
    { "ST", "integers in wte", "gpt2_1", INTEGERS, "wte.weight", .status = QKV_ERR_UNSUPPORTED,
      .says = "unsupported dtype in tensor 'wte.weight'" },
    { "ST", "integers in c_proj", "gpt2_2", INTEGERS, "transformer.h.1.attn.c_proj.weight",
      .status = QKV_ERR_UNSUPPORTED, .says = "transformer.h.1.attn.c_proj.weight" },
    { "ST", "no shared words", "bart_1", DROP, "model.shared.weight", .status = QKV_ERR_FORMAT,
      .says = "tensor 'model.shared.weight' is missing" },
    { "ST", "no cross-attention", "bart_1", DROP,
      "model.decoder.layers.0.encoder_attn.k_proj.weight", .status = QKV_ERR_FORMAT,
      .says = "tensor 'model.decoder.layers.0.encoder_attn.k_proj.weight' is missing" },
    { "ST", "fc1 transposed", "bart_1", SWAP, "model.decoder.layers.0.fc1.weight",
      .status = QKV_ERR_SHAPE, .says = "has shape [20,22], config.json asks for [22,20]" },
    { "ST", "a bias of logits that is flat", "marian_1", RESHAPE, "final_logits_bias",
      .status = QKV_ERR_SHAPE, .says = "has shape [1,53,1], config.json asks for [1,53]" },
    { "ST", "a bias of logits in integers", "marian_1", INTEGERS, "final_logits_bias",
      .status = QKV_ERR_UNSUPPORTED, .says = "unsupported dtype in tensor 'final_logits_bias'" },
    { "ST", "no words of the decoder", "marian_3", DROP, "model.decoder.embed_tokens.weight",
      .status = QKV_ERR_FORMAT, .says = "tensor 'model.decoder.embed_tokens.weight' is missing" },
    { "ST", "one tensor more", "gpt2_2", .extra = "transformer.h.3.ln_1.weight", .status = QKV_OK,
      .says = "" },
    { "ST", "one tensor more", "bart_1", .extra = "classification_head.bias", .status = QKV_OK,
      .says = "" },

    { "CF", "phi3 as it is", "../llama/phi3_1", .status = QKV_OK, .says = "" },
    { "CF", "modernbert as it is", "../llama/modernbert_1", .status = QKV_OK, .says = "" },
    { "ST", "no gate", "../llama/llama_1", DROP, "model.layers.1.mlp.gate_proj.weight",
      .status = QKV_ERR_FORMAT, .says = "tensor 'model.layers.1.mlp.gate_proj.weight' is missing" },
    { "ST", "no norm of keys", "../llama/qwen3_1", DROP, "model.layers.2.self_attn.k_norm.weight",
      .status = QKV_ERR_FORMAT,
      .says = "tensor 'model.layers.2.self_attn.k_norm.weight' is missing" },
    { "ST", "no norm after the feed-forward", "../llama/gemma2_1", DROP,
      "model.layers.0.post_feedforward_layernorm.weight", .status = QKV_ERR_FORMAT,
      .says = "tensor 'model.layers.0.post_feedforward_layernorm.weight' is missing" },
    { "ST", "no rows of gate and up", "../llama/phi3_1", DROP,
      "model.layers.0.mlp.gate_up_proj.weight", .status = QKV_ERR_FORMAT,
      .says = "tensor 'model.layers.0.mlp.gate_up_proj.weight' is missing" },
    { "ST", "rows of q, k and v transposed", "../llama/phi3_1", SWAP,
      "model.layers.2.self_attn.qkv_proj.weight", .status = QKV_ERR_SHAPE,
      .says = "has shape [24,48], config.json asks for [48,24]" },
    { "ST", "integers in rows of q, k and v", "../llama/phi3_1", INTEGERS,
      "model.layers.2.self_attn.qkv_proj.weight", .status = QKV_ERR_UNSUPPORTED,
      .says = "model.layers.2.self_attn.qkv_proj.weight" },
    { "ST", "a bias of rows of rank 2", "../llama/modernbert_1", RESHAPE,
      "model.layers.0.attn.Wqkv.bias", .status = QKV_ERR_SHAPE,
      .says = "has shape [72,1], config.json asks for [72]" },
    { "ST", "a classifier's head alone", "../llama/modernbert_1", DROP, "decoder.bias",
      .status = QKV_OK, .unused = "head.dense.weight", .says = "" },
    { "CF", "gpt_neox as it is", "../llama/gpt_neox_1", .status = QKV_OK, .says = "" },
    { "ST", "no rows of q, k and v in turn", "../llama/gpt_neox_1", DROP,
      "gpt_neox.layers.1.attention.query_key_value.weight", .status = QKV_ERR_FORMAT,
      .says = "tensor 'gpt_neox.layers.1.attention.query_key_value.weight' is missing" },
    { "ST", "rows of q, k and v in turn, transposed", "../llama/gpt_neox_1", SWAP,
      "gpt_neox.layers.1.attention.query_key_value.weight", .status = QKV_ERR_SHAPE,
      .says = "has shape [24,72], config.json asks for [72,24]" },
    { "ST", "their biases of rank 2", "../llama/gpt_neox_2", RESHAPE,
      "gpt_neox.layers.0.attention.query_key_value.bias", .status = QKV_ERR_SHAPE,
      .says = "has shape [72,1], config.json asks for [72]" },
    { "ST", "their biases in integers", "../llama/gpt_neox_2", INTEGERS,
      "gpt_neox.layers.2.attention.query_key_value.bias", .status = QKV_ERR_UNSUPPORTED,
      .says = "gpt_neox.layers.2.attention.query_key_value.bias" },
    { "ST", "no norm before the feed-forward", "../llama/gpt_neox_1", DROP,
      "gpt_neox.layers.0.post_attention_layernorm.bias", .status = QKV_ERR_FORMAT,
      .says = "tensor 'gpt_neox.layers.0.post_attention_layernorm.bias' is missing" },
    { "ST", "a mask of older files", "../llama/gpt_neox_1",
      .extra = "gpt_neox.layers.0.attention.masked_bias", .ignores_extra = 1, .status = QKV_OK,
      .says = "" },
    { "ST", "no embed_out", "../llama/gpt_neox_1", DROP, "embed_out.weight", .status = QKV_OK,
      .says = "" },
    { "CF05", "biases that are not stored", "../llama/gpt_neox_3",
      .field = "\"attention_bias\": false", .value = "\"attention_bias\": true",
      .status = QKV_ERR_FORMAT,
      .says = "tensor 'gpt_neox.layers.0.attention.query_key_value.bias' is missing" },
    { "CF", "opt as it is", "../llama/opt_2", .status = QKV_OK, .says = "" },
    { "ST", "no way to the width of blocks", "../llama/opt_2", DROP,
      "model.decoder.project_in.weight", .status = QKV_ERR_FORMAT,
      .says = "tensor 'model.decoder.project_in.weight' is missing" },
    { "ST", "no way back", "../llama/opt_3", DROP, "model.decoder.project_out.weight",
      .status = QKV_ERR_FORMAT, .says = "tensor 'model.decoder.project_out.weight' is missing" },
    { "ST", "the way back transposed", "../llama/opt_2", SWAP, "model.decoder.project_out.weight",
      .status = QKV_ERR_SHAPE, .says = "has shape [24,10], config.json asks for [10,24]" },
    { "ST", "positions in integers", "../llama/opt_1", INTEGERS,
      "model.decoder.embed_positions.weight", .status = QKV_ERR_UNSUPPORTED,
      .says = "unsupported dtype in tensor 'model.decoder.embed_positions.weight'" },
    { "ST", "no last norm", "../llama/opt_1", DROP, "model.decoder.final_layer_norm.weight",
      .status = QKV_ERR_FORMAT,
      .says = "tensor 'model.decoder.final_layer_norm.weight' is missing" },
    { "ST", "a last norm that is not used", "../llama/opt_2",
      .extra = "model.decoder.final_layer_norm.weight", .status = QKV_OK, .says = "" },
    { "CF05", "words as wide as blocks", "../llama/opt_2", .field = "\"word_embed_proj_dim\": 10",
      .value = "\"word_embed_proj_dim\": 24", .status = QKV_ERR_SHAPE,
      .says = "has shape [53,10], config.json asks for [53,24]" },
    { "CF05", "positions of another length", "../llama/opt_1",
      .field = "\"max_position_embeddings\": 64", .value = "\"max_position_embeddings\": 66",
      .status = QKV_ERR_SHAPE, .says = "has shape [66,24], config.json asks for [68,24]" },
    { "CF05", "biases that are not stored", "../llama/opt_4", .field = "\"enable_bias\": false",
      .value = "\"enable_bias\": true", .status = QKV_ERR_FORMAT,
      .says = "tensor 'model.decoder.layers.0.self_attn.q_proj.bias' is missing" },
    { "CF", "gptj as it is", "../llama/gptj_1", .status = QKV_OK, .says = "" },
    { "ST", "no norm of both parts", "../llama/gptj_1", DROP, "transformer.h.1.ln_1.weight",
      .status = QKV_ERR_FORMAT, .says = "tensor 'transformer.h.1.ln_1.weight' is missing" },
    { "ST", "a norm of the second part", "../llama/gptj_1", .extra = "transformer.h.0.ln_2.weight",
      .status = QKV_OK, .says = "" },
    { "ST", "the way up transposed", "../llama/gptj_1", SWAP, "transformer.h.0.mlp.fc_in.weight",
      .status = QKV_ERR_SHAPE, .says = "has shape [24,29], config.json asks for [29,24]" },
    { "ST", "integers in keys", "../llama/gptj_2", INTEGERS, "transformer.h.2.attn.k_proj.weight",
      .status = QKV_ERR_UNSUPPORTED, .says = "transformer.h.2.attn.k_proj.weight" },
    { "ST", "no bias of the head, which then is none", "../llama/gptj_2", DROP, "lm_head.bias",
      .status = QKV_OK, .says = "" },
    { "ST", "a bias of the head of rank 2", "../llama/gptj_1", RESHAPE, "lm_head.bias",
      .status = QKV_ERR_SHAPE, .says = "tensor 'lm_head.bias' has shape [53,1]" },
    { "ST", "a mask of older files", "../llama/gptj_3", .extra = "transformer.h.0.attn.masked_bias",
      .ignores_extra = 1, .status = QKV_OK, .says = "" },
    { "CF05", "heads that do not divide", "../llama/gptj_3", .field = "\"n_head\": 3",
      .value = "\"n_head\": 4", .status = QKV_ERR_SHAPE,
      .says = "n_embd = 21 is not a multiple of n_head = 4" },
    { "CF05", "more channels that turn than a head has", "../llama/gptj_1",
      .field = "\"rotary_dim\": 4", .value = "\"rotary_dim\": 8", .status = QKV_ERR_SHAPE,
      .says = "rotary_dim = 8 is odd, or above 6, the channels of a head" },
    { "CF", "bloom as it is", "../llama/bloom_3", .status = QKV_OK, .says = "" },
    { "ST", "no norm of words", "../llama/bloom_1", DROP,
      "transformer.word_embeddings_layernorm.bias", .status = QKV_ERR_FORMAT,
      .says = "tensor 'transformer.word_embeddings_layernorm.bias' is missing" },
    { "ST", "rows of q, k and v in turn, transposed", "../llama/bloom_2", SWAP,
      "transformer.h.1.self_attention.query_key_value.weight", .status = QKV_ERR_SHAPE,
      .says = "has shape [24,72], config.json asks for [72,24]" },
    { "ST", "their biases in integers", "../llama/bloom_2", INTEGERS,
      "transformer.h.2.self_attention.query_key_value.bias", .status = QKV_ERR_UNSUPPORTED,
      .says = "transformer.h.2.self_attention.query_key_value.bias" },
    { "ST", "no head of its own, which then is none", "../llama/bloom_3", DROP, "lm_head.weight",
      .status = QKV_OK, .says = "" },
    { "CF05", "heads that do not divide", "../llama/bloom_1", .field = "\"n_head\": 4",
      .value = "\"n_head\": 5", .status = QKV_ERR_SHAPE,
      .says = "hidden_size = 24 is not a multiple of n_head = 5" },
    { "CF05", "another width that goes before", "../llama/bloom_1", .field = "\"n_layer\": 3",
      .value = "\"n_layer\": 3, \"n_embed\": 12", .status = QKV_ERR_SHAPE,
      .says = "has shape [53,24], config.json asks for [53,12]" },
    { "ST", "frequencies of old files", "../llama/llama_1",
      .extra = "model.layers.0.self_attn.rotary_emb.inv_freq", .ignores_extra = 1, .status = QKV_OK,
      .says = "" },
    { "ST", "no head", "../llama/llama_1", DROP, "lm_head.weight", .status = QKV_OK, .says = "" },
    { "CF05", "more key/value heads", "../llama/llama_1", .field = "\"num_key_value_heads\": 2",
      .value = "\"num_key_value_heads\": 4", .status = QKV_ERR_SHAPE,
      .says = "has shape [12,24], config.json asks for [24,24]" },
    { "CF05", "another head_dim", "../llama/llama_2", .field = "\"head_dim\": 10",
      .value = "\"head_dim\": 12", .status = QKV_ERR_SHAPE,
      .says = "has shape [60,24], config.json asks for [72,24]" },
    { "CF05", "biases that are not stored", "../llama/gemma_1",
      .field = "\"attention_bias\": false", .value = "\"attention_bias\": true",
      .status = QKV_ERR_FORMAT,
      .says = "tensor 'model.layers.0.self_attn.q_proj.bias' is missing" },
    { "CF05", "a neighbour", "../llama/llama_1", .field = "\"model_type\": \"llama\"",
      .value = "\"model_type\": \"olmo2\"", .status = QKV_ERR_FORMAT,
      .says = "tensor 'model.layers.0.self_attn.q_norm.weight' is missing" },

    { "CF02", "a layer more", "gpt2_1", .field = "\"n_layer\": 2", .value = "\"n_layer\": 3",
      .status = QKV_ERR_FORMAT, .says = "tensor 'transformer.h.2.attn.c_attn.weight' is missing" },
    { "CF02", "1024 layers", "bart_1", .field = "\"decoder_layers\": 1",
      .value = "\"decoder_layers\": 1024", .status = QKV_ERR_FORMAT,
      .says = "'model.decoder.layers.1.self_attn.q_proj.weight' is missing" },
    { "CF05", "a word more", "gpt2_1", .field = "\"vocab_size\": 53", .value = "\"vocab_size\": 54",
      .status = QKV_ERR_SHAPE, .says = "has shape [53,20], config.json asks for [54,20]" },
    { "CF05", "another inner size", "gpt2_1", .field = "\"n_inner\": 37",
      .value = "\"n_inner\": null", .status = QKV_ERR_SHAPE,
      .says = "tensor 'h.0.mlp.c_fc.weight' has shape [20,37], config.json asks for [20,80]" },
    { "CF05", "positions of another length", "bart_1", .field = "\"max_position_embeddings\": 43",
      .value = "\"max_position_embeddings\": 45", .status = QKV_ERR_SHAPE,
      .says = "has shape [45,20], config.json asks for [47,20]" },
    { "CF05", "more words of the target", "marian_3", .field = "\"decoder_vocab_size\": 45",
      .value = "\"decoder_vocab_size\": 46", .status = QKV_ERR_SHAPE,
      .says = "has shape [45,12], config.json asks for [46,12]" },
    { "CF05", "shared words that are stored apart", "marian_3",
      .field = "\"share_encoder_decoder_embeddings\": false",
      .value = "\"share_encoder_decoder_embeddings\": true ", .status = QKV_ERR_SHAPE,
      .says = "decoder_vocab_size = 45 is not vocab_size = 37" },
    { "CF05", "another architecture", "gpt2_2", .field = "\"model_type\": \"gpt2\"",
      .value = "\"model_type\": \"bart\"", .status = QKV_ERR_FORMAT, .says = "is missing" },
    { "CF05", "more tokens than rows", "gpt2_2", .words = "one\ntwo\n", .status = QKV_OK,
      .says = "" },
    { "CF05", "more tokens than rows", "marian_1", .words = "one\n", .status = QKV_OK, .says = "" },

    { "CF09", "untied, and no head", "gpt2_2", .field = "\"tie_word_embeddings\": true",
      .value = "\"tie_word_embeddings\": false", .status = QKV_OK, .says = "" },
    { "CF09", "untied, and only shared words", "bart_1", .field = "\"tie_word_embeddings\": true",
      .value = "\"tie_word_embeddings\": false", .status = QKV_ERR_FORMAT,
      .says = "tensor 'model.encoder.embed_tokens.weight' is missing" },
    { "CF09", "a head of integers", "gpt2_2", .extra = "lm_head.weight", .status = QKV_ERR_SHAPE,
      .says = "tensor 'lm_head.weight' has shape [3]" },
    { "CF09", "words of another shape beside those that are shared", "bart_1",
      .extra = "model.decoder.embed_tokens.weight", .status = QKV_ERR_SHAPE,
      .says = "tensor 'model.decoder.embed_tokens.weight' has shape [3]" },
    { "CF09", "positions of another shape", "marian_1",
      .extra = "model.decoder.embed_positions.weight", .status = QKV_ERR_SHAPE,
      .says = "'model.decoder.embed_positions.weight' has shape [3], config.json asks for" },
};

/* ---- Making ---------------------------------------------------------------------------------- */

/* Not inlined: gcc 12 takes the address of bytes for a pointer that outlives it. */
__attribute__((noinline)) static char *load_golden(const char *model, const char *name, size_t *n) {
    char path[512], *bytes = NULL;
    qkv_error error;
    snprintf(path, sizeof path, GOLDEN "/%s/%s", model, name);
    if (qkvi_file_load(path, 1 << 22, &bytes, n, &error)) fail_msg("%s", error.message);
    return bytes;
}

static void alter(qkvi_stored_out *tensor, change what) {
    const int64_t rows = tensor->shape[0];
    if (what == SWAP) {
        tensor->shape[0] = tensor->shape[1];
        tensor->shape[1] = rows;
    }
    if (what == RESHAPE) tensor->shape[tensor->rank++] = 1;
    if (what == INTEGERS) tensor->type = QKVI_I32;
}

/* The tensors of the golden model with the change, as the bytes of a file. */
static char *make_weights(const attempt *a, size_t *n_bytes) {
    static const float zeros[3];
    static qkvi_stored_out tensors[MAX_TENSORS];
    void *raw[MAX_TENSORS];
    char path[512], *bytes = NULL;
    qkvi_safetensors *file;
    qkv_error error;
    int64_t n = 0, n_changed = 0;
    snprintf(path, sizeof path, GOLDEN "/%s/model.safetensors", a->model);
    if (qkvi_safetensors_open(path, &file, &error)) fail_msg("%s", error.message);
    const int64_t n_raw = file->n_tensors;
    assert_true(n_raw < MAX_TENSORS);
    for (int64_t t = 0; t < n_raw; t++) {
        const qkvi_stored *const from = &file->tensors[t];
        raw[t] = malloc((size_t)(from->end - from->begin) + 1);
        assert_int_equal(qkvi_safetensors_read_raw(file, from, raw[t], &error), QKV_OK);
        const int is_it = a->tensor && strcmp(a->tensor, from->name) == 0;
        n_changed += is_it;
        if (is_it && a->change == DROP) continue;
        tensors[n] = (qkvi_stored_out){ from->name, from->type, from->rank, { 0 }, raw[t] };
        memcpy(tensors[n].shape, from->shape, sizeof from->shape);
        if (is_it) alter(&tensors[n], a->change);
        n++;
    }
    assert_int_equal(n_changed, a->tensor != NULL);
    if (a->extra) tensors[n++] = (qkvi_stored_out){ a->extra, QKVI_F32, 1, { 3 }, zeros };
    hostile_path(path, "weights");
    assert_int_equal(qkvi_safetensors_write(path, tensors, n, NULL, NULL, &error), QKV_OK);
    assert_int_equal(qkvi_file_load(path, 1 << 22, &bytes, n_bytes, &error), QKV_OK);
    unlink(path);
    for (int64_t t = 0; t < n_raw; t++) free(raw[t]);
    qkvi_safetensors_close(file);
    return bytes;
}

static char *make_config(const attempt *a, size_t *n_bytes) {
    char *const text = load_golden(a->model, "config.json", n_bytes);
    if (!a->field) return text;
    const size_t room = *n_bytes + strlen(a->value) + 1;
    char *const changed = malloc(room);
    text[*n_bytes - 1] = '\0'; /* a line's end */
    assert_non_null(strstr(text, a->field));
    const size_t begin = (size_t)(strstr(text, a->field) - text);
    *n_bytes = (size_t)snprintf(changed, room, "%.*s%s%s", (int)begin, text, a->value,
                                text + begin + strlen(a->field));
    free(text);
    return changed;
}

static char *make_words(const attempt *a, size_t *n_bytes) {
    char *words = load_golden(a->model, "vocab.txt", n_bytes);
    if (!a->words) return words;
    words = realloc(words, *n_bytes + strlen(a->words));
    memcpy(words + *n_bytes, a->words, strlen(a->words));
    *n_bytes += strlen(a->words);
    return words;
}

/* ---- Opening --------------------------------------------------------------------------------- */

typedef struct made {
    const attempt *attempt;
    char *config, *words, *weights;
    size_t n_config, n_words, n_weights;
} made;

static qkv_status open_made(const void *input, qkv_error *error) {
    const made *const m = input;
    qkv_model *model = (qkv_model *)1;
    const qkv_status status = qkv_model_open_memory(m->config, m->n_config, m->words, m->n_words,
                                                    m->weights, m->n_weights, NULL, &model, error);
    if (status != QKV_OK) return model ? HOSTILE_BROKEN : status;
    const char *const unused = qkv_model_unused(model, 0), *const extra = m->attempt->extra;
    const char *const wanted = m->attempt->unused          ? m->attempt->unused
                               : m->attempt->ignores_extra ? NULL
                                                           : extra;
    const int told = wanted ? unused && strcmp(unused, wanted) == 0 : unused == NULL;
    qkv_model_free(model);
    return told ? QKV_OK : HOSTILE_BROKEN;
}

static void test_checkpoints(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
        const attempt *const a = &attempts[i];
        made m = { .attempt = a };
        char label[128];
        m.config = make_config(a, &m.n_config);
        m.words = make_words(a, &m.n_words);
        m.weights = make_weights(a, &m.n_weights);
        snprintf(label, sizeof label, "%s %s: %s", a->id, a->model, a->what);
        hostile_expect(label, open_made, &m, a->status, a->says);
        free(m.config);
        free(m.words);
        free(m.weights);
    }
}

int main(void) {
    const hostile_family family = { .name = "hostile_decoder_files", .file_name = "config.json" };
    const struct CMUnitTest others[] = {
        { "ST CF checkpoints of decoders", test_checkpoints, NULL, NULL, NULL },
    };
    return hostile_main(&family, others, sizeof others / sizeof *others);
}
