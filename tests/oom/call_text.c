/* Tokenizers: qkv/model.h. */
#include <stdlib.h>
#include <string.h>

#include "model/store/file.h"
#include "oom/calls.h"
#include "qkv/model.h"

#define TOKENIZER_FOLDER QKV_TEST_DATA "/golden/tokenizer"       /* tokenizer.json and vocab.txt */
#define VOCAB_FOLDER     QKV_TEST_DATA "/golden/bert_old"        /* vocab.txt alone */
#define MARIAN_FOLDER    QKV_TEST_DATA "/golden/marian_separate" /* two .spm, two vocabularies */

#define BPE_FOLDER QKV_TEST_DATA "/golden/bpe/roberta" /* vocab.json, merges.txt and others */

static const char text[] = "The man, who \xE1\xB8\x8B\xCC\xA3 watched [MASK] the \xE4\xB8\xAD d\xC3"
                           "\xB6or: unbelievably watchingwatching a\xCC\x81\xCC\xA3.";
static const char pair[] = "It opened.";

static qkv_tokenizer *tokenizer, *fixed, *fixed_bpe, *marian;
static qkv_text *decoded;
static qkv_encoding *encoding;
static char *vocab;
static size_t vocab_bytes;

static qkv_status open_folder(const char *path, qkv_error *error) {
    tokenizer = fixed; /* must become NULL or a tokenizer */
    const qkv_status status = qkv_tokenizer_open(path, &tokenizer, error);
    oom_claim(status == QKV_OK || !tokenizer, "tokenizer is NULL after a failure");
    return status;
}

static qkv_status open_json(qkv_error *error) { return open_folder(TOKENIZER_FOLDER, error); }
static qkv_status open_vocab(qkv_error *error) { return open_folder(VOCAB_FOLDER, error); }

static qkv_status open_bpe(qkv_error *error) { return open_folder(BPE_FOLDER, error); }
static qkv_status open_marian(qkv_error *error) { return open_folder(MARIAN_FOLDER, error); }

static qkv_status open_target(qkv_error *error) {
    tokenizer = fixed;
    const qkv_status status = qkv_tokenizer_open_target(MARIAN_FOLDER, &tokenizer, error);
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

static void set_up(void) {
    qkv_error error;
    oom_must(qkvi_file_load(VOCAB_FOLDER "/vocab.txt", 1 << 20, &vocab, &vocab_bytes, &error),
             &error);
    oom_must(qkv_tokenizer_open(TOKENIZER_FOLDER, &fixed, &error), &error);
    oom_must(qkv_tokenizer_open(BPE_FOLDER, &fixed_bpe, &error), &error);
    oom_must(qkv_tokenizer_open(MARIAN_FOLDER, &marian, &error), &error);
}

static void tear_down(void) {
    qkv_tokenizer_free(fixed);
    qkv_tokenizer_free(fixed_bpe);
    qkv_tokenizer_free(marian);
    free(vocab);
}

static const oom_call calls[] = {
    { "qkv_tokenizer_open", "tokenizer.json", NULL, open_json, take_tokenizer, drop_tokenizer,
      OOM_IO, 0 },
    { "qkv_tokenizer_open", "vocab.txt", NULL, open_vocab, take_tokenizer, drop_tokenizer, OOM_IO,
      0 },
    { "qkv_tokenizer_open", "vocab.json", NULL, open_bpe, take_tokenizer, drop_tokenizer, OOM_IO,
      0 },
    { "qkv_tokenizer_open_memory", "with a config", NULL, open_memory, take_tokenizer,
      drop_tokenizer, 0, 0 },
    { "qkv_tokenizer_encode", "a pair", NULL, encode, take_encoding, drop_encoding, 0, 0 },
    { "qkv_tokenizer_encode", "byte-level BPE", NULL, encode_bpe, take_encoding, drop_encoding, 0,
      0 },
    { "qkv_tokenizer_decode", "WordPiece", NULL, decode, take_text, drop_text, 0, 0 },
    { "qkv_tokenizer_decode", "byte-level BPE", NULL, decode_bpe, take_text, drop_text, 0, 0 },
    { "qkv_tokenizer_show", "byte-level BPE", NULL, show_bpe, take_text, drop_text, 0, 0 },
    { "qkv_tokenizer_open", "source.spm", NULL, open_marian, take_tokenizer, drop_tokenizer, OOM_IO,
      0 },
    { "qkv_tokenizer_open_target", "target.spm", NULL, open_target, take_tokenizer, drop_tokenizer,
      OOM_IO, 0 },
    { "qkv_tokenizer_decode", "Marian", NULL, decode_marian, take_text, drop_text, 0, 0 },
    { "qkv_tokenizer_show", "Marian", NULL, show_marian, take_text, drop_text, 0, 0 },
    { "qkv_tokenizer_encode", "a pair, Marian", NULL, encode_marian, take_encoding, drop_encoding,
      0, 0 },
};

const oom_group oom_text = { "text", calls, sizeof calls / sizeof *calls, set_up, tear_down };
