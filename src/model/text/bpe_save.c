/**
 * A byte-level BPE vocabulary as a tokenizer and as four files: see bpe_train.h. The two that were
 * trained are for everybody, the other two for Hugging Face's libraries.
 */

#include "model/store/json.h"
#include "model/text/bpe_train.h"
#include "model/text/tokenizer_json.h"
#include "model/text/tokenizer_save.h"

const qkvi_bpe_style qkvi_bpe_gpt2 = {
    .class = "GPT2Tokenizer",
    .special = { "<|endoftext|>" },
    .bos = "<|endoftext|>",
    .eos = "<|endoftext|>",
    .unk = "<|endoftext|>",
};

const qkvi_bpe_style qkvi_bpe_bart = {
    .class = "BartTokenizer",
    .special = { "<s>", "<pad>", "</s>", "<unk>", "<mask>" },
    .bos = "<s>",
    .eos = "</s>",
    .unk = "<unk>",
    .sep = "</s>",
    .cls = "<s>",
    .pad = "<pad>",
    .mask = "<mask>",
};

static json_t *make_config(const qkvi_bpe_style *style, int64_t max_len) {
    return json_pack("{ss,sb,sI,ss,ss,ss,ss*,ss*,ss*,ss*}", "tokenizer_class", style->class,
                     "add_prefix_space", 0, "model_max_length", (json_int_t)max_len, "bos_token",
                     style->bos, "eos_token", style->eos, "unk_token", style->unk, "sep_token",
                     style->sep, "cls_token", style->cls, "pad_token", style->pad, "mask_token",
                     style->mask);
}

qkv_status qkvi_bpe_vocab_open(const qkvi_bpe_vocab *made, qkv_tokenizer **tokenizer,
                               qkv_error *error) {
    json_t *root = make_config(made->style, 1);
    char *config = NULL;
    const char *const mask = made->style->mask;
    /* the tokenizer.json that is written says it too: <mask> takes the space before it */
    if (!mask || json_object_set_new(root, "mask_token",
                                     json_pack("{ss,sb}", "content", mask, "lstrip", 1)) == 0)
        config = root ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    *tokenizer = NULL;
    if (config == NULL) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a tokenizer");
    const qkvi_text_files files = {
        .vocab = { "vocab.json", made->vocab.bytes, made->vocab.n },
        .merges = { "merges.txt", made->merges.bytes, made->merges.n },
        .tokenizer_config = { "tokenizer_config.json", config, strlen(config) },
    };
    const qkv_status status = qkvi_tokenizer_read_bpe(&files, tokenizer, error);
    free(config);
    return status;
}

/* ---- tokenizer.json -------------------------------------------------------------------------- */

/* [["a", "b"], …] */
static json_t *make_merges(const qkvi_bpe_vocab *made) {
    json_t *list = json_array();
    const char *const end = made->merges.bytes + made->merges.n;
    const char *line = memchr(made->merges.bytes, '\n', made->merges.n);
    line++; /* the version's line */
    while (line < end) {
        const char *const space = memchr(line, ' ', (size_t)(end - line));
        const char *const stop = memchr(space, '\n', (size_t)(end - space));
        if (json_array_append_new(list, json_pack("[s%s%]", line, (size_t)(space - line), space + 1,
                                                  (size_t)(stop - space - 1)))) {
            json_decref(list);
            return NULL;
        }
        line = stop + 1;
    }
    return list;
}

static json_t *make_model(const qkvi_bpe_vocab *made) {
    json_t *vocab = json_loadb(made->vocab.bytes, made->vocab.n, 0, NULL);
    return json_pack("{ss,sn,sn,ss,ss,sb,sb,sb,so,so}", "type", "BPE", "dropout", "unk_token",
                     "continuing_subword_prefix", "", "end_of_word_suffix", "", "fuse_unk", 0,
                     "byte_fallback", 0, "ignore_merges", 0, "vocab", vocab, "merges",
                     make_merges(made));
}

static json_t *make_byte_level(int add_prefix_space, int trim_offsets) {
    return json_pack("{ss,sb,sb,sb}", "type", "ByteLevel", "add_prefix_space", add_prefix_space,
                     "trim_offsets", trim_offsets, "use_regex", 1);
}

/* As transformers makes it: ranges of GPT-2's tokens have their spaces. */
static json_t *make_post_processor(const qkvi_bpe_style *style, const qkv_tokenizer *tokenizer) {
    if (style->cls == NULL) return make_byte_level(1, 0);
    return json_pack("{ss,s[sI],s[sI],sb,sb}", "type", "RobertaProcessing", "sep", style->sep,
                     (json_int_t)tokenizer->special[QKV_TOKEN_SEP], "cls", style->cls,
                     (json_int_t)tokenizer->special[QKV_TOKEN_CLS], "trim_offsets", 1,
                     "add_prefix_space", 0);
}

static json_t *make_tokenizer(const qkvi_bpe_vocab *made, const qkv_tokenizer *tokenizer) {
    return json_pack("{ss,sn,sn,so,sn,so,so,so,so}", "version", "1.0", "truncation", "padding",
                     "added_tokens", qkvi_added_tokens_json(tokenizer), "normalizer",
                     "pre_tokenizer", make_byte_level(0, 1), "post_processor",
                     make_post_processor(made->style, tokenizer), "decoder", make_byte_level(1, 1),
                     "model", make_model(made));
}

qkv_status qkvi_bpe_vocab_save(qkvi_files *files, const qkvi_bpe_vocab *made, int64_t max_len,
                               qkv_error *error) {
    qkv_tokenizer *tokenizer = NULL;
    QKV_TRY(qkvi_bpe_vocab_open(made, &tokenizer, error));
    qkv_status status =
        qkvi_files_add(files, "vocab.json", made->vocab.bytes, made->vocab.n, error);
    if (status == QKV_OK)
        status = qkvi_files_add(files, "merges.txt", made->merges.bytes, made->merges.n, error);
    if (status == QKV_OK)
        status =
            qkvi_files_add_json(files, "tokenizer.json", make_tokenizer(made, tokenizer), error);
    if (status == QKV_OK)
        status = qkvi_files_add_json(files, "tokenizer_config.json",
                                     make_config(made->style, max_len), error);
    qkv_tokenizer_free(tokenizer);
    return status;
}
