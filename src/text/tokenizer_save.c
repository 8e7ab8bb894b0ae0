/**
 * A vocabulary as three files: vocab.txt for all readers, the two JSON files for Hugging Face's
 * libraries.
 */
#include "files/file.h"
#include "files/json.h"
#include "text/bpe_train.h"
#include "text/tokenizer_json.h"
#include "text/vocab.h"
#include "text/wordpiece.h"

json_t *qkvi_added_tokens_json(const qkv_tokenizer *tokenizer) {
    json_t *list = json_array();
    const qkvi_added *added = &tokenizer->added;
    for (int32_t id = 0; id < added->n_ids; id++) {
        size_t n_bytes;
        const char *token = qkvi_added_token(added, id, &n_bytes);
        if (token == NULL) continue;
        const unsigned flags = added->flags[id];
        json_array_append_new(list, json_pack("{si,ss%,sb,sb,sb,sb,sb}", "id", id, "content", token,
                                              n_bytes, "single_word",
                                              (flags & QKVI_ADDED_SINGLE_WORD) != 0, "lstrip",
                                              (flags & QKVI_ADDED_LSTRIP) != 0, "rstrip",
                                              (flags & QKVI_ADDED_RSTRIP) != 0, "normalized",
                                              (flags & QKVI_ADDED_NORMALIZED) != 0, "special",
                                              (flags & QKVI_ADDED_SPECIAL) != 0));
    }
    return list;
}

/* {"type": "TemplateProcessing", …}: [CLS] A [SEP] and [CLS] A [SEP] B [SEP]. */
static json_t *make_post_processor(const qkv_tokenizer *tokenizer) {
    const json_int_t cls = tokenizer->special[QKV_TOKEN_CLS];
    const json_int_t sep = tokenizer->special[QKV_TOKEN_SEP];
    json_t *cls0 = json_pack("{s{ss,si}}", "SpecialToken", "id", "[CLS]", "type_id", 0);
    json_t *sep0 = json_pack("{s{ss,si}}", "SpecialToken", "id", "[SEP]", "type_id", 0);
    json_t *sep1 = json_pack("{s{ss,si}}", "SpecialToken", "id", "[SEP]", "type_id", 1);
    json_t *a = json_pack("{s{ss,si}}", "Sequence", "id", "A", "type_id", 0);
    json_t *b = json_pack("{s{ss,si}}", "Sequence", "id", "B", "type_id", 1);
    return json_pack("{ss, s[OOO], s[ooooo], s{s{ss,s[I],s[s]}, s{ss,s[I],s[s]}}}", "type",
                     "TemplateProcessing", "single", cls0, a, sep0, "pair", cls0, a, sep0, b, sep1,
                     "special_tokens", "[CLS]", "id", "[CLS]", "ids", cls, "tokens", "[CLS]",
                     "[SEP]", "id", "[SEP]", "ids", sep, "tokens", "[SEP]");
}

static json_t *make_model(const qkv_tokenizer *tokenizer) {
    json_t *vocab = json_object();
    char key[QKVI_PIECE_MAX_BYTES + 1];
    for (int32_t id = 0; id < tokenizer->pieces.n_ids; id++) {
        size_t n_bytes = 0;
        const char *token = qkv_tokenizer_token(tokenizer, id, &n_bytes);
        memcpy(key, token, n_bytes);
        key[n_bytes] = '\0';
        if (json_object_set_new(vocab, key, json_integer(id)) != 0) {
            json_decref(vocab);
            return NULL;
        }
    }
    return json_pack("{ss,ss,ss,si,so}", "type", "WordPiece", "unk_token", "[UNK]",
                     "continuing_subword_prefix", "##", "max_input_chars_per_word",
                     QKVI_WORDPIECE_MAX_CHARS, "vocab", vocab);
}

static json_t *make_tokenizer(const qkv_tokenizer *tokenizer, const qkvi_bert_rules *rules) {
    json_t *normalizer = json_pack("{ss,sb,sb,sb,sb}", "type", "BertNormalizer", "clean_text", 1,
                                   "handle_chinese_chars", rules->split_cjk, "strip_accents",
                                   rules->strip_accents, "lowercase", rules->lowercase);
    return json_pack("{ss,sn,sn,so,so,s{ss},so,s{ss,ss,sb},so}", "version", "1.0", "truncation",
                     "padding", "added_tokens", qkvi_added_tokens_json(tokenizer), "normalizer",
                     normalizer, "pre_tokenizer", "type", "BertPreTokenizer", "post_processor",
                     make_post_processor(tokenizer), "decoder", "type", "WordPiece", "prefix", "##",
                     "cleanup", 1, "model", make_model(tokenizer));
}

static json_t *make_config(const qkvi_bert_rules *rules, int64_t max_len) {
    return json_pack("{ss,sb,sb,sb,sI,ss,ss,ss,ss,ss}", "tokenizer_class", "BertTokenizer",
                     "do_lower_case", rules->lowercase, "strip_accents", rules->strip_accents,
                     "tokenize_chinese_chars", rules->split_cjk, "model_max_length",
                     (json_int_t)max_len, "unk_token", "[UNK]", "sep_token", "[SEP]", "pad_token",
                     "[PAD]", "cls_token", "[CLS]", "mask_token", "[MASK]");
}

qkv_status qkvi_tokenizer_save(qkvi_files *files, const char *vocab, size_t vocab_bytes,
                               const qkvi_bert_rules *rules, int64_t max_len, qkv_error *error) {
    qkv_tokenizer *tokenizer = NULL;
    QKV_TRY(qkv_tokenizer_open_memory(vocab, vocab_bytes, NULL, 0, &tokenizer, error));
    qkv_status status = qkvi_files_add(files, "vocab.txt", vocab, vocab_bytes, error);
    if (status == QKV_OK)
        status =
            qkvi_files_add_json(files, "tokenizer.json", make_tokenizer(tokenizer, rules), error);
    if (status == QKV_OK)
        status =
            qkvi_files_add_json(files, "tokenizer_config.json", make_config(rules, max_len), error);
    qkv_tokenizer_free(tokenizer);
    return status;
}

/* ---- Byte-level BPE -------------------------------------------------------------------------- */

/*
 * A byte-level BPE vocabulary as a tokenizer and as four files: see bpe_train.h. The two that were
 * trained are for all readers, the other two for Hugging Face's libraries.
 */

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

static json_t *make_bpe_config(const qkvi_bpe_style *style, int64_t max_len) {
    return json_pack("{ss,sb,sI,ss,ss,ss,ss*,ss*,ss*,ss*}", "tokenizer_class", style->class,
                     "add_prefix_space", 0, "model_max_length", (json_int_t)max_len, "bos_token",
                     style->bos, "eos_token", style->eos, "unk_token", style->unk, "sep_token",
                     style->sep, "cls_token", style->cls, "pad_token", style->pad, "mask_token",
                     style->mask);
}

qkv_status qkvi_bpe_vocab_open(const qkvi_bpe_vocab *made, qkv_tokenizer **tokenizer,
                               qkv_error *error) {
    json_t *root = make_bpe_config(made->style, 1);
    char *config = NULL;
    const char *const mask = made->style->mask;
    /* the tokenizer.json that is written says it too: <mask> takes the space before it */
    if (!mask || json_object_set_new(root, "mask_token",
                                     json_pack("{ss,sb}", "content", mask, "lstrip", 1)) == 0)
        config = root ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    *tokenizer = NULL;
    if (config == NULL) return qkvi_no_memory(error, "a tokenizer");
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

static json_t *make_bpe_model(const qkvi_bpe_vocab *made) {
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
static json_t *make_bpe_post_processor(const qkvi_bpe_style *style,
                                       const qkv_tokenizer *tokenizer) {
    if (style->cls == NULL) return make_byte_level(1, 0);
    return json_pack("{ss,s[sI],s[sI],sb,sb}", "type", "RobertaProcessing", "sep", style->sep,
                     (json_int_t)tokenizer->special[QKV_TOKEN_SEP], "cls", style->cls,
                     (json_int_t)tokenizer->special[QKV_TOKEN_CLS], "trim_offsets", 1,
                     "add_prefix_space", 0);
}

static json_t *make_bpe_tokenizer(const qkvi_bpe_vocab *made, const qkv_tokenizer *tokenizer) {
    return json_pack("{ss,sn,sn,so,sn,so,so,so,so}", "version", "1.0", "truncation", "padding",
                     "added_tokens", qkvi_added_tokens_json(tokenizer), "normalizer",
                     "pre_tokenizer", make_byte_level(0, 1), "post_processor",
                     make_bpe_post_processor(made->style, tokenizer), "decoder",
                     make_byte_level(1, 1), "model", make_bpe_model(made));
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
        status = qkvi_files_add_json(files, "tokenizer.json", make_bpe_tokenizer(made, tokenizer),
                                     error);
    if (status == QKV_OK)
        status = qkvi_files_add_json(files, "tokenizer_config.json",
                                     make_bpe_config(made->style, max_len), error);
    qkv_tokenizer_free(tokenizer);
    return status;
}
