/* Tokenizers: qkv/tokenizer.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "files/file.h"
#include "oom/calls.h"
#include "qkv/tokenizer.h"

#define TOKENIZER_FOLDER QKV_TEST_DATA "/golden/tokenizer"       /* tokenizer.json and vocab.txt */
#define VOCAB_FOLDER     QKV_TEST_DATA "/golden/bert_old"        /* vocab.txt alone */
#define MARIAN_FOLDER    QKV_TEST_DATA "/golden/marian_separate" /* two .spm, two vocabularies */

#define UNIGRAM_FOLDER QKV_TEST_DATA "/golden/family/xlm_roberta_text"
#define BPE_FOLDER     QKV_TEST_DATA "/golden/bpe/roberta" /* vocab.json, merges.txt and others */

/*
 * Lists of added tokens, each in a folder of its own: in files of vocab.txt, and in tokenizer.json.
 */
static const struct {
    const char *name, *content;
} files_of_lists[] = {
    { "lines/vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nman\n##s\n" },
    { "lines/added_tokens.json", "{\"<ent>\": 8, \"Man\": 9}" },
    { "lines/special_tokens_map.json", "{\"additional_special_tokens\": [\"<ent>\"]}" },
    { "lines/tokenizer_config.json",
      "{\"tokenizer_class\": \"BertTokenizer\", \"extra_special_tokens\": [\"<new>\"], "
      "\"unk_token\": \"[UNK]\", \"do_lower_case\": true, \"model_max_length\": 10}" },
    { "json/tokenizer.json",
      "{\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"[PAD]\": 0, \"[UNK]\": 1, "
      "\"[CLS]\": 2, \"[SEP]\": 3, \"[MASK]\": 4, \"man\": 5}}, \"added_tokens\": []}" },
    { "json/tokenizer_config.json",
      "{\"tokenizer_class\": \"BertTokenizer\", \"added_tokens_decoder\": {\"6\": "
      "{\"content\": \"Man\", \"normalized\": true, \"single_word\": true, \"lstrip\": "
      "true}, \"7\": {\"content\": \"watch\", \"rstrip\": true}}, \"bos_token\": null}" },
    { "json/chat_template.jinja",
      "{% for message in messages %}{% if loop.first and message.role != 'system' %}{{ "
      "'<|im_start|>system\\nBe good.<|im_end|>\\n' }}{% endif %}{{ '<|im_start|>' + message.role "
      "+ '\\n' + message.content + '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ "
      "'<|im_start|>assistant\\n' }}{% endif %}" },
};

static const char text[] = "The man, who \xE1\xB8\x8B\xCC\xA3 watched [MASK] the \xE4\xB8\xAD d\xC3"
                           "\xB6or: unbelievably watchingwatching a\xCC\x81\xCC\xA3.";
static const char pair[] = "It opened.";

static qkv_tokenizer *tokenizer, *fixed, *fixed_bpe, *marian, *unigram, *listed;
static char lines[256], json[256];
static qkv_text *decoded;
static qkv_encoding *encoding;
static char *vocab;
static size_t vocab_bytes;

static qkv_status open_folder(const char *path, qkv_error *error) {
    tokenizer = fixed; /* must become NULL or a tokenizer */
    const qkv_status status = qkv_tokenizer_open(path, QKV_SOURCE, &tokenizer, error);
    oom_claim(status == QKV_OK || !tokenizer, "tokenizer is NULL after a failure");
    return status;
}

static qkv_status open_json(qkv_error *error) { return open_folder(TOKENIZER_FOLDER, error); }
static qkv_status open_vocab(qkv_error *error) { return open_folder(VOCAB_FOLDER, error); }

static qkv_status open_lines(qkv_error *error) { return open_folder(lines, error); }
static qkv_status open_listed(qkv_error *error) { return open_folder(json, error); }
static qkv_status open_bpe(qkv_error *error) { return open_folder(BPE_FOLDER, error); }
static qkv_status open_marian(qkv_error *error) { return open_folder(MARIAN_FOLDER, error); }
static qkv_status open_unigram(qkv_error *error) { return open_folder(UNIGRAM_FOLDER, error); }

static qkv_status open_target(qkv_error *error) {
    tokenizer = fixed;
    const qkv_status status = qkv_tokenizer_open(MARIAN_FOLDER, QKV_TARGET, &tokenizer, error);
    oom_claim(status == QKV_OK || !tokenizer, "tokenizer is NULL after a failure");
    return status;
}

static qkv_status open_memory(qkv_error *error) {
    static const char config[] = "{\"do_lower_case\": false}";
    tokenizer = fixed;
    const qkv_status status =
        qkv_tokenizer_open_memory(vocab, vocab_bytes, config, sizeof config - 1, &tokenizer, error);
    oom_claim(status == QKV_OK || !tokenizer, "tokenizer is NULL after a failure");
    return status;
}

static uint64_t take_tokenizer(void) {
    uint64_t hash = 0;
    for (int32_t id = 0; id < qkv_tokenizer_size(tokenizer); id++) {
        size_t bytes;
        const char *const token = qkv_tokenizer_token(tokenizer, id, &bytes);
        if (!token) continue;
        hash = oom_hash(hash, token, bytes);
        const int32_t found = qkv_tokenizer_id(tokenizer, token, bytes);
        hash = oom_hash(hash, &found, sizeof found);
    }
    return hash;
}

static void drop_tokenizer(void) {
    qkv_tokenizer_free(tokenizer);
    tokenizer = NULL;
}

static qkv_status encode_by(const qkv_tokenizer *by, qkv_error *error) {
    static qkv_encoding none;
    encoding = &none; /* must become NULL or an encoding */
    const qkv_status status =
        qkv_tokenizer_encode(by, text, sizeof text - 1, pair, sizeof pair - 1, &encoding, error);
    oom_claim(status == QKV_OK || !encoding, "encoding is NULL after a failure");
    return status;
}

/* Longer than what is encoded without a table of known words. */
static qkv_status encode_bpe(qkv_error *error) {
    static char longer[6000];
    static qkv_encoding none;
    for (size_t i = 0; i < sizeof longer; i++) longer[i] = i % 7 ? (char)('a' + i * i % 26) : ' ';
    encoding = &none;
    const qkv_status status = qkv_tokenizer_encode(fixed_bpe, longer, sizeof longer, text,
                                                   sizeof text - 1, &encoding, error);
    oom_claim(status == QKV_OK || !encoding, "encoding is NULL after a failure");
    return status;
}

static qkv_status decode_with(const qkv_tokenizer *with, qkv_error *error) {
    static qkv_text none;
    int32_t ids[40];
    for (int i = 0; i < 40; i++) ids[i] = 5 + i;
    decoded = &none; /* must become NULL or a text */
    const qkv_status status =
        qkv_tokenizer_decode(with, ids, 40, QKV_DECODE_SKIP_SPECIAL, &decoded, error);
    oom_claim(status == QKV_OK || !decoded, "text is NULL after a failure");
    return status;
}

static qkv_status decode(qkv_error *error) { return decode_with(fixed, error); }
static qkv_status decode_bpe(qkv_error *error) { return decode_with(fixed_bpe, error); }

static qkv_status show_bpe(qkv_error *error) {
    static qkv_text none;
    decoded = &none;
    const qkv_status status = qkv_tokenizer_show(fixed_bpe, 300, &decoded, error);
    oom_claim(status == QKV_OK || !decoded, "text is NULL after a failure");
    return status;
}

static qkv_status encode(qkv_error *error) { return encode_by(fixed, error); }
static qkv_status encode_marian(qkv_error *error) { return encode_by(marian, error); }
static qkv_status encode_unigram(qkv_error *error) { return encode_by(unigram, error); }

static qkv_status encode_turn(qkv_error *error) {
    static qkv_encoding none;
    int32_t end;
    encoding = &none; /* must become NULL or an encoding */
    const qkv_status status =
        qkv_tokenizer_encode_turn(listed, NULL, " the door ", 10, &encoding, &end, error);
    oom_claim(status == QKV_OK || !encoding, "encoding is NULL after a failure");
    return status;
}

static qkv_status encode_listed(qkv_error *error) {
    const qkv_status status = encode_by(listed, error);
    if (status == QKV_OK) qkv_tokenizer_cut(listed, encoding, 5);
    return status;
}

static uint64_t take_encoding(void) {
    const size_t n = (size_t)encoding->n;
    uint64_t hash = oom_hash(0, encoding->ids, n * sizeof *encoding->ids);
    hash = oom_hash(hash, encoding->types, n);
    hash = oom_hash(hash, encoding->special, n);
    hash = oom_hash(hash, encoding->begin, n * sizeof *encoding->begin);
    return oom_hash(hash, encoding->end, n * sizeof *encoding->end);
}

static void drop_encoding(void) {
    qkv_encoding_free(encoding);
    encoding = NULL;
}

static qkv_status decode_marian(qkv_error *error) {
    static const int32_t ids[] = { 5, 0, 7, 1, 9, 11, 0 };
    static qkv_text none;
    decoded = &none; /* must become NULL or a text */
    const qkv_status status = qkv_tokenizer_decode(marian, ids, 7, 0, &decoded, error);
    oom_claim(status == QKV_OK || !decoded, "text is NULL after a failure");
    return status;
}

static qkv_status show_marian(qkv_error *error) {
    static qkv_text none;
    decoded = &none;
    const qkv_status status = qkv_tokenizer_show(marian, 5, &decoded, error);
    oom_claim(status == QKV_OK || !decoded, "text is NULL after a failure");
    return status;
}

static uint64_t take_text(void) { return oom_hash(0, decoded->bytes, (size_t)decoded->n); }

static void drop_text(void) {
    qkv_text_free(decoded);
    decoded = NULL;
}

static void make_folders(void) {
    oom_path(lines, "lines");
    oom_path(json, "json");
    oom_claim(mkdir(lines, 0777) == 0 && mkdir(json, 0777) == 0, "folders can be made");
    for (size_t f = 0; f < sizeof files_of_lists / sizeof *files_of_lists; f++) {
        char path[256];
        oom_path(path, files_of_lists[f].name);
        oom_put(path, files_of_lists[f].content, strlen(files_of_lists[f].content));
    }
}

static void set_up(void) {
    qkv_error error;
    make_folders();
    oom_must(qkvi_file_load(VOCAB_FOLDER "/vocab.txt", 1 << 20, &vocab, &vocab_bytes, &error),
             &error);
    oom_must(qkv_tokenizer_open(TOKENIZER_FOLDER, QKV_SOURCE, &fixed, &error), &error);
    oom_must(qkv_tokenizer_open(BPE_FOLDER, QKV_SOURCE, &fixed_bpe, &error), &error);
    oom_must(qkv_tokenizer_open(MARIAN_FOLDER, QKV_SOURCE, &marian, &error), &error);
    oom_must(qkv_tokenizer_open(UNIGRAM_FOLDER, QKV_SOURCE, &unigram, &error), &error);
    oom_must(qkv_tokenizer_open(json, QKV_SOURCE, &listed, &error), &error);
}

static void tear_down(void) {
    qkv_tokenizer_free(fixed);
    qkv_tokenizer_free(fixed_bpe);
    qkv_tokenizer_free(marian);
    qkv_tokenizer_free(unigram);
    qkv_tokenizer_free(listed);
    free(vocab);
}

static const oom_call calls[] = {
    { "qkv_tokenizer_open", "tokenizer.json", NULL, open_json, take_tokenizer, drop_tokenizer,
      OOM_IO, 0 },
    { "qkv_tokenizer_open", "vocab.txt", NULL, open_vocab, take_tokenizer, drop_tokenizer, OOM_IO,
      0 },
    { "qkv_tokenizer_open", "lists beside vocab.txt", NULL, open_lines, take_tokenizer,
      drop_tokenizer, OOM_IO, 0 },
    { "qkv_tokenizer_open", "a list beside tokenizer.json", NULL, open_listed, take_tokenizer,
      drop_tokenizer, OOM_IO, 0 },
    { "qkv_tokenizer_open", "vocab.json", NULL, open_bpe, take_tokenizer, drop_tokenizer, OOM_IO,
      0 },
    { "qkv_tokenizer_open_memory", "with a config", NULL, open_memory, take_tokenizer,
      drop_tokenizer, 0, 0 },
    { "qkv_tokenizer_encode", "a pair", NULL, encode, take_encoding, drop_encoding, 0, 0 },
    { "qkv_tokenizer_encode", "with added tokens, cut", NULL, encode_listed, take_encoding,
      drop_encoding, 0, 0 },
    { "qkv_tokenizer_encode_turn", "by a template of the files", NULL, encode_turn, take_encoding,
      drop_encoding, 0, 0 },
    { "qkv_tokenizer_encode", "byte-level BPE", NULL, encode_bpe, take_encoding, drop_encoding, 0,
      0 },
    { "qkv_tokenizer_decode", "WordPiece", NULL, decode, take_text, drop_text, 0, 0 },
    { "qkv_tokenizer_decode", "byte-level BPE", NULL, decode_bpe, take_text, drop_text, 0, 0 },
    { "qkv_tokenizer_show", "byte-level BPE", NULL, show_bpe, take_text, drop_text, 0, 0 },
    { "qkv_tokenizer_open", "source.spm", NULL, open_marian, take_tokenizer, drop_tokenizer, OOM_IO,
      0 },
    { "qkv_tokenizer_open", "target.spm", NULL, open_target, take_tokenizer, drop_tokenizer, OOM_IO,
      0 },
    { "qkv_tokenizer_decode", "Marian", NULL, decode_marian, take_text, drop_text, 0, 0 },
    { "qkv_tokenizer_show", "Marian", NULL, show_marian, take_text, drop_text, 0, 0 },
    { "qkv_tokenizer_open", "Unigram", NULL, open_unigram, take_tokenizer, drop_tokenizer, OOM_IO,
      0 },
    { "qkv_tokenizer_encode", "a pair, Unigram", NULL, encode_unigram, take_encoding, drop_encoding,
      0, 0 },
    { "qkv_tokenizer_encode", "a pair, Marian", NULL, encode_marian, take_encoding, drop_encoding,
      0, 0 },
};

const oom_group oom_text = { "text", calls, sizeof calls / sizeof *calls, set_up, tear_down };
