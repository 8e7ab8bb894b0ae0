/* Hostile models in GGUF files (ids of docs/hostile-inputs.md), each opened in a cage. */
#include "hostile/gguf_words.h"

#include "qkv/model.h"

/* ---- Models ---------------------------------------------------------------------------------- */

#define TEXT(text)   " 4:8 s:" text
#define F32(x)       " 4:6 f:" x
#define WORDS_INFO   " T s:token_embd.weight 4:2 8:4 8:2 4:0 8:0"
#define WORDS_DATA   " a:32 z:32"
#define ARCH(name)   "G" KEY("general.architecture") TEXT(name)
#define SIZE(key, n) KEY("llama." key) U32(n)
#define WIDTH        ARCH("llama") SIZE("embedding_length", "4") SIZE("block_count", "1")
#define LENGTHS      WIDTH SIZE("context_length", "8") SIZE("feed_forward_length", "4")
#define SIZES        LENGTHS SIZE("attention.head_count", "2")
#define LLAMA        SIZES KEY("llama.attention.layer_norm_rms_epsilon") F32("1e-5")
#define GPT2         LLAMA KEY("tokenizer.ggml.model") TEXT("gpt2") KEY("tokenizer.ggml.pre") TEXT("gpt-2")
#define SPM          LLAMA KEY("tokenizer.ggml.model") TEXT("llama")
#define TOKENS(n)    KEY("tokenizer.ggml.tokens") " 4:9 4:8 8:" n
#define AB           TOKENS("2") " s:a s:b"
#define REFUSED      WORDS_INFO WORDS_DATA

static const hostile_file models[] = {
    { "GG06", "no architecture", QKV_ERR_FORMAT, "key 'general.architecture' is missing",
      WORDS("G" REFUSED) },
    { "GG06", "an architecture that is a number", QKV_ERR_FORMAT,
      "key 'general.architecture' is of type u32, not a string",
      WORDS("G" KEY("general.architecture") U32("1") REFUSED) },
    { "GG06", "an architecture with a NUL", QKV_ERR_FORMAT, "is no UTF-8, or holds a NUL",
      WORDS("G" KEY("general.architecture") " 4:8 8:2 x:61 x:00" REFUSED) },
    { "GG06", "another architecture", QKV_ERR_UNSUPPORTED,
      "architecture 'mamba' is not supported; of GGUF files qkv loads \"llama\"",
      WORDS(ARCH("mamba") REFUSED) },
    { "GG06", "an adapter", QKV_ERR_UNSUPPORTED, "key 'general.type' is 'adapter', not 'model'",
      WORDS(ARCH("llama") KEY("general.type") TEXT("adapter") REFUSED) },
    { "GG06", "no words", QKV_ERR_FORMAT, "tensor 'token_embd.weight' is missing", WORDS(LLAMA) },
    { "GG06", "a size that is missing", QKV_ERR_FORMAT, "key 'llama.embedding_length' is missing",
      WORDS(ARCH("llama") REFUSED) },
    { "GG06", "a size of 0", QKV_ERR_SHAPE, "key 'llama.embedding_length' is 0, not from 1",
      WORDS(ARCH("llama") KEY("llama.embedding_length") U32("0") REFUSED) },
    { "GG06", "a size of 2^64 - 1", QKV_ERR_FORMAT, "holds 18446744073709551615, above 2^63 - 1",
      WORDS(ARCH("llama") KEY("llama.embedding_length") " 4:10 8:0xffffffffffffffff" REFUSED) },
    { "GG06", "a size that is a float", QKV_ERR_FORMAT, "is of type f32, not an integer",
      WORDS(ARCH("llama") KEY("llama.embedding_length") F32("4") REFUSED) },
    { "GG06", "heads that differ", QKV_ERR_UNSUPPORTED, "differs from layer to layer",
      WORDS(LENGTHS KEY("llama.attention.head_count") " 4:9 4:5 8:2 4:2 4:1" REFUSED) },
    { "GG06", "heads that are strings", QKV_ERR_FORMAT,
      "is of type array of string, not of integers",
      WORDS(LENGTHS KEY("llama.attention.head_count") " 4:9 4:8 8:1 s:a" REFUSED) },
    { "GG06", "no epsilon", QKV_ERR_FORMAT,
      "key 'llama.attention.layer_norm_rms_epsilon' is missing", WORDS(SIZES REFUSED) },
    { "GG06", "an epsilon that is NaN", QKV_ERR_FORMAT, "is not finite",
      WORDS(SIZES KEY("llama.attention.layer_norm_rms_epsilon") F32("nan") REFUSED) },
    { "GG06", "a key that is not known", QKV_ERR_UNSUPPORTED, "key 'llama.x' is not known here",
      WORDS(LLAMA KEY("llama.x") U32("1") REFUSED) },
    { "GG06", "experts", QKV_ERR_UNSUPPORTED,
      "key 'llama.expert_count' is 8, which is not supported",
      WORDS(LLAMA KEY("llama.expert_count") U32("8") REFUSED) },
    { "GG06", "a scaling that is not known", QKV_ERR_UNSUPPORTED,
      "'llama.rope.scaling.type' is 'longrope', which is none of none, linear, yarn",
      WORDS(LLAMA KEY("llama.rope.scaling.type") TEXT("longrope") REFUSED) },
    { "GG06", "another version of quantisation", QKV_ERR_UNSUPPORTED, "is 1, not 2",
      WORDS(LLAMA KEY("general.quantization_version") U32("1") REFUSED) },
    { "GG06", "one of several files", QKV_ERR_ARGUMENT,
      "is file 2 of 3 of a model; name the first, which ends in -00001-of-00003.gguf",
      WORDS(LLAMA KEY("split.no") " 4:2 2:1" KEY("split.count") " 4:2 2:3" REFUSED) },
    { "GG06", "the first of several, by another name", QKV_ERR_FORMAT,
      "but the name does not end in -00001-of-00003.gguf",
      WORDS(LLAMA KEY("split.no") " 4:2 2:0" KEY("split.count") " 4:2 2:3" REFUSED) },

    { "GG07", "no tokenizer", QKV_ERR_UNSUPPORTED, "key 'tokenizer.ggml.model' is ''",
      WORDS(LLAMA REFUSED) },
    { "GG07", "another tokenizer", QKV_ERR_UNSUPPORTED,
      "'rwkv', which is none of gpt2, llama, t5, bert",
      WORDS(LLAMA KEY("tokenizer.ggml.model") TEXT("rwkv") AB REFUSED) },
    { "GG07", "words that are not known", QKV_ERR_UNSUPPORTED,
      "key 'tokenizer.ggml.pre' is 'tekken', and how it cuts words is not known",
      WORDS(LLAMA KEY("tokenizer.ggml.model") TEXT("gpt2") KEY("tokenizer.ggml.pre") TEXT("tekken")
                AB REFUSED) },
    { "GG07", "words that would be guessed", QKV_ERR_UNSUPPORTED,
      "key 'tokenizer.ggml.pre' is missing, and how words are cut would be guessed",
      WORDS(LLAMA KEY("tokenizer.ggml.model") TEXT("gpt2") AB REFUSED) },
    { "GG07", "no tokens", QKV_ERR_FORMAT, "the file has no vocabulary", WORDS(GPT2 REFUSED) },
    { "GG07", "tokens that are numbers", QKV_ERR_FORMAT,
      "key 'tokenizer.ggml.tokens' is of type array of f32, not array of string",
      WORDS(GPT2 KEY("tokenizer.ggml.tokens") " 4:9 4:6 8:1 f:1" REFUSED) },
    { "GG07", "a token twice", QKV_ERR_FORMAT, "has 'a' twice, as 0 and 1",
      WORDS(GPT2 TOKENS("2") " s:a s:a" REFUSED) },
    { "GG07", "a token that is no UTF-8", QKV_ERR_FORMAT,
      "token 1 of 'tokenizer.ggml.tokens' is no UTF-8",
      WORDS(GPT2 TOKENS("2") " s:a 8:1 x:ff" REFUSED) },
    { "GG07", "a token with a NUL", QKV_ERR_FORMAT, "token 1 of 'tokenizer.ggml.tokens'",
      WORDS(GPT2 TOKENS("2") " s:a 8:2 x:62 x:00" REFUSED) },
    { "GG07", "kinds of fewer tokens", QKV_ERR_FORMAT, "no array of as many as there are tokens, 2",
      WORDS(GPT2 AB KEY("tokenizer.ggml.token_type") " 4:9 4:5 8:1 4:1" REFUSED) },
    { "GG07", "kinds that are strings", QKV_ERR_FORMAT,
      "is of type array of string, not of integers",
      WORDS(GPT2 AB KEY("tokenizer.ggml.token_type") " 4:9 4:8 8:2 s:a s:b" REFUSED) },
    { "GG07", "a kind of 7", QKV_ERR_FORMAT, "has 7 for token 1, which is not from 1 to 6",
      WORDS(GPT2 AB KEY("tokenizer.ggml.token_type") " 4:9 4:5 8:2 4:1 4:7" REFUSED) },
    { "GG07", "a special token that is none", QKV_ERR_FORMAT,
      "key 'tokenizer.ggml.eos_token_id' is 2, but there are 2 tokens",
      WORDS(GPT2 AB KEY("tokenizer.ggml.eos_token_id") U32("2") REFUSED) },
    { "GG07", "no merges", QKV_ERR_FORMAT, "key 'tokenizer.ggml.merges' is missing",
      WORDS(GPT2 AB REFUSED) },
    { "GG07", "a merge of no tokens", QKV_ERR_FORMAT,
      "merge 0 of 'tokenizer.ggml.merges', 'ab', is no two tokens",
      WORDS(GPT2 AB KEY("tokenizer.ggml.merges") " 4:9 4:8 8:1 s:ab" REFUSED) },
    { "GG07", "scores of fewer tokens", QKV_ERR_FORMAT, "as many as there are tokens, 2",
      WORDS(SPM AB KEY("tokenizer.ggml.scores") " 4:9 4:6 8:1 f:0" REFUSED) },
    { "GG07", "scores that are strings", QKV_ERR_FORMAT, "is no array of f32 or i32",
      WORDS(SPM AB KEY("tokenizer.ggml.scores") " 4:9 4:8 8:2 s:a s:b" REFUSED) },
    { "GG07", "a score that is NaN", QKV_ERR_FORMAT, "the score of token 0 is not a number",
      WORDS(SPM AB KEY("tokenizer.ggml.scores") " 4:9 4:6 8:2 f:nan f:0" REFUSED) },
    { "GG07", "texts that are changed", QKV_ERR_UNSUPPORTED,
      "remove_extra_whitespaces' changes texts",
      WORDS(SPM AB KEY("tokenizer.ggml.remove_extra_whitespaces") " 4:7 1:1" REFUSED) },
    { "GG07", "a bool of 2", QKV_ERR_FORMAT, "is a bool of 2, neither 0 nor 1",
      WORDS(SPM AB KEY("tokenizer.ggml.add_space_prefix") " 4:7 1:2" REFUSED) },
    { "GG08", "a weight that is missing", QKV_ERR_FORMAT, "tensor 'output_norm.weight' is missing",
      WORDS(GPT2 AB KEY("tokenizer.ggml.merges") " 4:9 4:8 8:0" REFUSED) },
};

static qkv_status open_model(const char *path, qkv_error *error) {
    qkv_model *model = NULL;
    const qkv_status status = qkv_model_open(path, NULL, &model, error);
    qkv_model_free(model);
    return status;
}

int main(void) {
    const hostile_family family = {
        "gguf_models", "x.gguf", open_model, models, sizeof models / sizeof *models, NULL, NULL
    };
    return hostile_main(&family, NULL, 0);
}
