/*
 * A vocabulary as the files of a tokenizer: see tokenizer.h. tokenizer.ggml.model is gpt2
 * (byte-level BPE with merges), llama (SentencePiece BPE with scores), t5 (Unigram, of an
 * XLM-RoBERTa) or bert (WordPiece, whose tokens have the mark of a space where a word begins, and
 * lack their ##).
 */
#include "gguf/tokenizer.h"

#include <inttypes.h>

#include "files/encode.h"
#include "gguf/unigram.h"
#include "text/words.h"

#define META "\xE2\x96\x81" /* U+2581 */

typedef struct writing {
    const qkvi_gguf_keys *keys;
    qkvi_gguf_vocab vocab;
    qkvi_gguf_texts *texts;
    qkvi_bytes *out; /* tokenizer.json */
    const char *arch;
    bool failed; /* a field of tokenizer_config.json found no memory */
} writing;

/* ---- Words ----------------------------------------------------------------------------------- */

typedef enum word_rule { GPT2_WORDS, DIGITS, LLAMA3_WORDS, QWEN_WORDS, BLOOM_WORDS } word_rule;

/* By tokenizer.ggml.pre. */
static const struct pre {
    const char *name;
    word_rule words;
    bool composes;      /* texts are in NFC */
    bool ignore_merges; /* a word that is a token needs no merges */
    bool bos;           /* stands before a text, if the file does not say whether */
    bool sep;           /* a RoBERTa: <s> A </s></s> B </s> */
} pres[] = {
    { "llama3", LLAMA3_WORDS, false, true, true, false },
    { "llama-v3", LLAMA3_WORDS, false, true, true, false },
    { "llama-bpe", LLAMA3_WORDS, false, true, true, false },
    { "falcon3", LLAMA3_WORDS, false, true, true, false },
    { "lfm2", LLAMA3_WORDS, false, true, true, false },
    { "pixtral", LLAMA3_WORDS, false, true, true, false },
    { "dbrx", LLAMA3_WORDS, false, false, false, false },
    { "smaug-bpe", LLAMA3_WORDS, false, false, false, false },
    { "qwen2", QWEN_WORDS, true, false, false, false },
    { "deepseek-r1-qwen", QWEN_WORDS, true, false, false, false },
    { "megrez", QWEN_WORDS, false, false, false, false },
    { "stablelm2", QWEN_WORDS, false, false, false, false },
    { "hunyuan", QWEN_WORDS, false, false, false, false },
    { "smollm", DIGITS, false, false, false, false },
    { "starcoder", DIGITS, false, false, false, false },
    { "refact", DIGITS, false, false, false, false },
    { "command-r", DIGITS, false, false, false, false },
    { "codeshell", DIGITS, false, false, false, false },
    { "exaone", DIGITS, false, false, false, false },
    { "minerva-7b", DIGITS, false, false, false, false },
    { "bloom", BLOOM_WORDS, false, false, false, false },
    { "gpt-2", GPT2_WORDS, false, false, false, false },
    { "phi-2", GPT2_WORDS, false, false, false, false },
    { "mellum", GPT2_WORDS, false, false, false, false },
    { "modern-bert", GPT2_WORDS, true, false, true, false },
    { "jina-v2-es", GPT2_WORDS, false, false, false, false },
    { "olmo", GPT2_WORDS, false, false, false, false },
    { "mpt", GPT2_WORDS, false, false, false, false },
    { "jais", GPT2_WORDS, false, false, false, false },
    { "exaone4", GPT2_WORDS, false, false, false, false },
    { "roberta-bpe", GPT2_WORDS, false, false, true, true },
    { "jina-v2-code", GPT2_WORDS, false, false, true, true },
};

static qkv_status find_pre(const writing *w, const struct pre **pre) {
    static const char name[] = "tokenizer.ggml.pre";
    char *text;
    *pre = NULL;
    QKV_TRY(qkvi_gguf_take_text(w->keys, name, &text));
    for (size_t p = 0; text && p < sizeof pres / sizeof *pres; p++)
        if (strcmp(pres[p].name, text) == 0) *pre = &pres[p];
    const qkv_status status =
        *pre ? QKV_OK
        : text
            ? QKVI_GGUF_FAIL(w->keys, QKV_ERR_UNSUPPORTED,
                             "key '%s' is '%s', and how it cuts words is not known here", name,
                             QKVI_PRINTABLE(96, text))
            : QKVI_GGUF_FAIL(w->keys, QKV_ERR_UNSUPPORTED,
                             "key '%s' is missing, and how words are cut would be guessed", name);
    free(text);
    return status;
}

static void put_pre_tokenizer(qkvi_bytes *out, word_rule words) {
    static const char byte_level[] =
        "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":";
    const char *const pattern = words == LLAMA3_WORDS  ? qkvi_llama3_pattern
                                : words == BLOOM_WORDS ? qkvi_bloom_pattern
                                                       : qkvi_qwen_pattern;
    const bool splits = words == LLAMA3_WORDS || words == QWEN_WORDS || words == BLOOM_WORDS;
    qkvi_bytes_text(out, "{\"type\":\"Sequence\",\"pretokenizers\":[");
    if (words == DIGITS) qkvi_bytes_text(out, "{\"type\":\"Digits\",\"individual_digits\":true},");
    if (splits) {
        qkvi_bytes_text(out, "{\"type\":\"Split\",\"pattern\":{\"Regex\":");
        qkvi_json_string(out, pattern, strlen(pattern));
        qkvi_bytes_text(out, "},\"behavior\":\"Isolated\",\"invert\":false},");
    }
    qkvi_bytes_text(out, byte_level);
    qkvi_bytes_text(out, splits ? "false}]}" : "true}]}");
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

static void put_token(qkvi_bytes *out, const qkvi_gguf_vocab *v, int64_t id) {
    qkvi_json_string(out, v->tokens[id].bytes, v->tokens[id].n);
}

static void put_number(qkvi_bytes *out, int64_t number) {
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, number);
    qkvi_bytes_text(out, text);
}

/* Control tokens and those of the user are found in a text before anything else is. */
static void put_added(const writing *w) {
    const qkvi_gguf_vocab *const v = &w->vocab;
    bool is_first = true;
    qkvi_bytes_text(w->out, "\"added_tokens\":[");
    for (int64_t id = 0; id < v->n; id++) {
        const uint8_t kind = v->kinds[id];
        if (kind != QKVI_GGUF_CONTROL && kind != QKVI_GGUF_USER && kind != QKVI_GGUF_UNKNOWN)
            continue;
        qkvi_bytes_text(w->out, is_first ? "{\"id\":" : ",{\"id\":");
        put_number(w->out, id);
        qkvi_bytes_text(w->out, ",\"content\":");
        put_token(w->out, v, id);
        qkvi_bytes_text(w->out, ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
                                "\"normalized\":false,\"special\":");
        qkvi_bytes_text(w->out, kind == QKVI_GGUF_USER ? "false}" : "true}");
        is_first = false;
    }
    qkvi_bytes_text(w->out, "]");
}

typedef void put_word(qkvi_bytes *out, qkvi_gguf_text token);

static void put_as_is(qkvi_bytes *out, qkvi_gguf_text token) {
    qkvi_json_string(out, token.bytes, token.n);
}

/* {"token": id, …} of all tokens but those that only fill the table. */
static void put_vocab(const writing *w, put_word *put) {
    bool is_first = true;
    qkvi_bytes_text(w->out, "\"vocab\":{");
    for (int64_t id = 0; id < w->vocab.n; id++) {
        if (w->vocab.kinds[id] == QKVI_GGUF_UNUSED) continue;
        if (!is_first) qkvi_bytes_text(w->out, ",");
        put(w->out, w->vocab.tokens[id]);
        qkvi_bytes_text(w->out, ":");
        put_number(w->out, id);
        is_first = false;
    }
    qkvi_bytes_text(w->out, "}");
}

/* ---- What stands around a text --------------------------------------------------------------- */

/* Whether a token is put there, by the file or else by default; -1: none is. */
static qkv_status around(const writing *w, const char *name, bool by_default, qkvi_gguf_role role,
                         int64_t *id) {
    bool is_put = by_default;
    QKV_TRY(qkvi_gguf_take_bool(w->keys, name, &is_put));
    *id = is_put ? w->vocab.roles[role] : -1;
    return QKV_OK;
}

static void put_place(const writing *w, int64_t id, const char *type) {
    qkvi_bytes_text(w->out, "{\"SpecialToken\":{\"id\":");
    put_token(w->out, &w->vocab, id);
    qkvi_bytes_text(w->out, ",\"type_id\":");
    qkvi_bytes_text(w->out, type);
    qkvi_bytes_text(w->out, "}}");
}

static void put_named(const writing *w, int64_t id) {
    put_token(w->out, &w->vocab, id);
    qkvi_bytes_text(w->out, ":{\"id\":");
    put_token(w->out, &w->vocab, id);
    qkvi_bytes_text(w->out, ",\"ids\":[");
    put_number(w->out, id);
    qkvi_bytes_text(w->out, "],\"tokens\":[");
    put_token(w->out, &w->vocab, id);
    qkvi_bytes_text(w->out, "]}");
}

/* BOS A EOS, or with is_pair BOS A EOS B EOS. */
static void put_sequence(const writing *w, int64_t bos, int64_t eos, bool is_pair) {
    static const char *const texts[2] = { "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}",
                                          ",{\"Sequence\":{\"id\":\"B\",\"type_id\":1}}" };
    qkvi_bytes_text(w->out, "[");
    if (bos >= 0) put_place(w, bos, "0");
    if (bos >= 0) qkvi_bytes_text(w->out, ",");
    for (int t = 0; t <= is_pair; t++) {
        qkvi_bytes_text(w->out, texts[t]);
        if (eos >= 0) qkvi_bytes_text(w->out, ",");
        if (eos >= 0) put_place(w, eos, t ? "1" : "0");
    }
    qkvi_bytes_text(w->out, "]");
}

static qkv_status put_post_processor(const writing *w, bool bos_by_default) {
    int64_t bos, eos, sep;
    QKV_TRY(around(w, "tokenizer.ggml.add_bos_token", bos_by_default, QKVI_GGUF_BOS, &bos));
    QKV_TRY(around(w, "tokenizer.ggml.add_eos_token", false, QKVI_GGUF_EOS, &eos));
    QKV_TRY(around(w, "tokenizer.ggml.add_sep_token", false, QKVI_GGUF_SEP, &sep));
    if (eos < 0) eos = sep;
    qkvi_bytes_text(w->out, ",\"post_processor\":");
    if (bos < 0 && eos < 0) {
        qkvi_bytes_text(w->out, "null");
        return QKV_OK;
    }
    qkvi_bytes_text(w->out, "{\"type\":\"TemplateProcessing\",\"single\":");
    put_sequence(w, bos, eos, false);
    qkvi_bytes_text(w->out, ",\"pair\":");
    put_sequence(w, bos, eos, true);
    qkvi_bytes_text(w->out, ",\"special_tokens\":{");
    if (bos >= 0) put_named(w, bos);
    if (bos >= 0 && eos >= 0 && eos != bos) qkvi_bytes_text(w->out, ",");
    if (eos >= 0 && eos != bos) put_named(w, eos);
    qkvi_bytes_text(w->out, "}}");
    return QKV_OK;
}

/* <s> and </s>, which the file may call CLS and SEP, too. */
static qkv_status put_roberta(const writing *w) {
    const int64_t *const roles = w->vocab.roles;
    const int64_t ids[2] = {
        roles[QKVI_GGUF_SEP] >= 0 ? roles[QKVI_GGUF_SEP] : roles[QKVI_GGUF_EOS],
        roles[QKVI_GGUF_CLS] >= 0 ? roles[QKVI_GGUF_CLS] : roles[QKVI_GGUF_BOS]
    };
    if (ids[0] < 0 || ids[1] < 0)
        return QKVI_GGUF_FAIL(w->keys, QKV_ERR_FORMAT,
                              "neither bos_token_id and eos_token_id of tokenizer.ggml nor cls and "
                              "seperator are there");
    qkvi_bytes_text(w->out, ",\"post_processor\":{\"type\":\"RobertaProcessing\",\"trim_offsets\":"
                            "true,\"add_prefix_space\":false,\"sep\":[");
    for (int i = 0; i < 2; i++) {
        put_token(w->out, &w->vocab, ids[i]);
        qkvi_bytes_text(w->out, ",");
        put_number(w->out, ids[i]);
        qkvi_bytes_text(w->out, i ? "]}" : "],\"cls\":[");
    }
    return QKV_OK;
}

/* ---- Roles of tokens ------------------------------------------------------------------------- */

typedef struct role_id {
    qkvi_gguf_role role;
    int64_t id;
} role_id;

/* The ids that llama.cpp has where the file has none. */
static void default_roles(qkvi_gguf_vocab *v, const role_id *absent, int n) {
    for (int i = 0; i < n; i++)
        if (v->roles[absent[i].role] < 0 && absent[i].id < v->n)
            v->roles[absent[i].role] = absent[i].id;
}

/* ---- Kinds of models ------------------------------------------------------------------------- */

static const char bpe_rest[] = "\"dropout\":null,\"continuing_subword_prefix\":null,"
                               "\"end_of_word_suffix\":null,";

static qkv_status put_byte_level(writing *w) {
    const struct pre *pre;
    QKV_TRY(find_pre(w, &pre));
    qkvi_gguf_ask(w->keys, "tokenizer.ggml.add_space_prefix"); /* says nothing of this kind */
    qkvi_bytes_text(w->out, ",\"normalizer\":");
    const bool composes = pre->composes || strcmp(w->arch, "gptneox") == 0;
    qkvi_bytes_text(w->out, composes ? "{\"type\":\"NFC\"}" : "null");
    qkvi_bytes_text(w->out, ",\"pre_tokenizer\":");
    put_pre_tokenizer(w->out, pre->words);
    QKV_TRY(pre->sep ? put_roberta(w) : put_post_processor(w, pre->bos));
    qkvi_bytes_text(w->out, ",\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
                            "\"trim_offsets\":true,\"use_regex\":true},\"model\":{\"type\":\"BPE\","
                            "\"unk_token\":null,\"fuse_unk\":false,\"byte_fallback\":false,");
    qkvi_bytes_text(w->out, bpe_rest);
    qkvi_bytes_text(w->out,
                    pre->ignore_merges ? "\"ignore_merges\":true," : "\"ignore_merges\":false,");
    put_vocab(w, put_as_is);
    qkvi_bytes_text(w->out, ",\"merges\":");
    QKV_TRY(qkvi_gguf_put_merges(&w->vocab, w->out));
    qkvi_bytes_text(w->out, "}}");
    return QKV_OK;
}

/* What SentencePiece would do to a text, and metaspace BPE does not. */
static qkv_status refuse_normalising(const writing *w) {
    static const char spaces[] = "tokenizer.ggml.remove_extra_whitespaces";
    static const char charsmap[] = "tokenizer.ggml.precompiled_charsmap";
    bool removes = false;
    QKV_TRY(qkvi_gguf_take_bool(w->keys, spaces, &removes));
    const qkvi_gguf_key *const map = qkvi_gguf_ask(w->keys, charsmap);
    if (!removes && (!map || map->count == 0)) return QKV_OK;
    return QKVI_GGUF_FAIL(w->keys, QKV_ERR_UNSUPPORTED,
                          "key '%s' changes texts, which is not supported for tokenizer.ggml.model "
                          "'llama'",
                          removes ? spaces : charsmap);
}

static bool is_gemma(const writing *w) { return strncmp(w->arch, "gemma", 5) == 0; }

static qkv_status put_sentencepiece(writing *w) {
    static const role_id absent[] = { { QKVI_GGUF_UNK, 0 },
                                      { QKVI_GGUF_BOS, 1 },
                                      { QKVI_GGUF_EOS, 2 } };
    bool prefix = true;
    const bool has_merges = qkvi_gguf_key_of(w->keys->file, "tokenizer.ggml.merges") != NULL;
    default_roles(&w->vocab, absent, 3);
    QKV_TRY(refuse_normalising(w));
    QKV_TRY(qkvi_gguf_take_bool(w->keys, "tokenizer.ggml.add_space_prefix", &prefix));
    qkvi_bytes_text(w->out, ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
    if (prefix) qkvi_bytes_text(w->out, "{\"type\":\"Prepend\",\"prepend\":\"" META "\"},");
    qkvi_bytes_text(w->out, "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":"
                            "\"" META "\"}]},\"pre_tokenizer\":null");
    QKV_TRY(put_post_processor(w, true));
    qkvi_bytes_text(w->out,
                    ",\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\","
                    "\"pattern\":{\"String\":\"" META "\"},\"content\":\" \"},"
                    "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}");
    if (prefix)
        qkvi_bytes_text(w->out, ",{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}");
    qkvi_bytes_text(w->out, "]},\"model\":{\"type\":\"BPE\",\"fuse_unk\":true,"
                            "\"byte_fallback\":true,\"ignore_merges\":false,\"unk_token\":");
    if (w->vocab.roles[QKVI_GGUF_UNK] >= 0)
        put_token(w->out, &w->vocab, w->vocab.roles[QKVI_GGUF_UNK]);
    else
        qkvi_bytes_text(w->out, "null");
    qkvi_bytes_text(w->out, ",");
    qkvi_bytes_text(w->out, bpe_rest);
    put_vocab(w, put_as_is);
    qkvi_bytes_text(w->out, ",\"merges\":");
    QKV_TRY(has_merges ? qkvi_gguf_put_merges(&w->vocab, w->out)
                       : qkvi_gguf_put_merges_of_scores(&w->vocab, is_gemma(w), w->out));
    qkvi_bytes_text(w->out, "}}");
    return QKV_OK;
}

static void set(writing *w, const char *field, json_t *value) {
    if (json_object_set_new(w->texts->settings, field, value) != 0) w->failed = true;
}

/* ---- Unigram --------------------------------------------------------------------------------- */

/*
 * Of XLM-RoBERTa, whose class makes the rest: words begin with a mark, <s> A </s></s> B </s> stands
 * around texts, and the unknown piece is number 3.
 */
static qkv_status put_unigram(writing *w) {
    static const struct {
        const char *name;
        bool is;
    } needed[] = { { "tokenizer.ggml.add_bos_token", true },
                   { "tokenizer.ggml.add_eos_token", true },
                   { "tokenizer.ggml.remove_extra_whitespaces", true } };
    bool prefix = true;
    if (strcmp(w->arch, "bert") != 0 || w->vocab.roles[QKVI_GGUF_UNK] != 3)
        return QKVI_GGUF_FAIL(w->keys, QKV_ERR_UNSUPPORTED,
                              "tokenizer.ggml.model 't5' is read of an XLM-RoBERTa alone, which is "
                              "a bert whose unknown token is number 3");
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        bool value = needed[i].is;
        QKV_TRY(qkvi_gguf_take_bool(w->keys, needed[i].name, &value));
        if (value != needed[i].is)
            return QKVI_GGUF_FAIL(w->keys, QKV_ERR_UNSUPPORTED,
                                  "key '%s' is false, which is not supported for "
                                  "tokenizer.ggml.model 't5'",
                                  needed[i].name);
    }
    QKV_TRY(qkvi_gguf_take_bool(w->keys, "tokenizer.ggml.add_space_prefix", &prefix));
    qkvi_gguf_ask(w->keys, "tokenizer.ggml.pre"); /* there is one way to cut words */
    set(w, "tokenizer_class", json_string("XLMRobertaTokenizer"));
    set(w, "add_prefix_space", json_boolean(prefix));
    return qkvi_gguf_put_unigram(&w->vocab, w->out);
}

/* ---- WordPiece ------------------------------------------------------------------------------- */

static bool begins(qkvi_gguf_text token, const char *text) {
    return token.n >= strlen(text) && memcmp(token.bytes, text, strlen(text)) == 0;
}

/* "[CLS]" stays, a marked one begins a word, and others go on with it. */
static void put_wordpiece(qkvi_bytes *out, qkvi_gguf_text token) {
    char text[1024] = "##";
    const bool is_special = token.n > 2 && token.bytes[0] == '[' && token.bytes[token.n - 1] == ']';
    const size_t mark = strlen(META);
    if (begins(token, META)) {
        qkvi_json_string(out, token.bytes + mark, token.n - mark);
    } else if (is_special || token.n + 2 > sizeof text) {
        qkvi_json_string(out, token.bytes, token.n);
    } else {
        memcpy(text + 2, token.bytes, token.n);
        qkvi_json_string(out, text, token.n + 2);
    }
}

/* Whether no word of the vocabulary has a capital letter of ASCII. */
static bool is_lower(const qkvi_gguf_vocab *v) {
    for (int64_t id = 0; id < v->n; id++) {
        const qkvi_gguf_text token = v->tokens[id];
        if (v->kinds[id] != QKVI_GGUF_NORMAL || begins(token, "[")) continue;
        for (size_t i = 0; i < token.n; i++)
            if (token.bytes[i] >= 'A' && token.bytes[i] <= 'Z') return false;
    }
    return true;
}

static qkv_status put_bert(writing *w) {
    static const char lowercase[] = "tokenizer.ggml.normalizer.lowercase";
    static const char strip[] = "tokenizer.ggml.normalizer.strip_accents";
    static const role_id absent[] = { { QKVI_GGUF_CLS, 101 },
                                      { QKVI_GGUF_SEP, 102 },
                                      { QKVI_GGUF_PAD, 0 },
                                      { QKVI_GGUF_UNK, 100 },
                                      { QKVI_GGUF_MASK, 103 } };
    qkvi_gguf_vocab *const v = &w->vocab;
    default_roles(v, absent, 5);
    bool lowers = is_lower(v), strips = false;
    w->texts->guesses_case = lowers && !qkvi_gguf_key_of(w->keys->file, lowercase);
    const bool has_strip = qkvi_gguf_key_of(w->keys->file, strip) != NULL;
    QKV_TRY(qkvi_gguf_take_bool(w->keys, lowercase, &lowers));
    QKV_TRY(qkvi_gguf_take_bool(w->keys, strip, &strips));
    qkvi_gguf_ask(w->keys, "tokenizer.ggml.pre"); /* a BERT has one way to cut words */
    qkvi_gguf_ask(w->keys, "tokenizer.ggml.scores");
    set(w, "tokenizer_class", json_string("BertTokenizer"));
    set(w, "pad_token", json_null()); /* unless the file has them: the class would add its own */
    set(w, "mask_token", json_null());
    set(w, "do_lower_case", json_boolean(lowers));
    set(w, "strip_accents", has_strip ? json_boolean(strips) : json_null());
    qkvi_bytes_text(w->out, ",\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\","
                            "\"continuing_subword_prefix\":\"##\","
                            "\"max_input_chars_per_word\":100,");
    put_vocab(w, put_wordpiece);
    qkvi_bytes_text(w->out, "}}");
    return QKV_OK;
}

/* ---- Beside tokenizer.json ------------------------------------------------------------------- */

/* A token as transformers names it. */
static const struct {
    qkvi_gguf_role role;
    const char *name; /* of tokenizer_config.json; with _id, of config.json */
} named[] = { { QKVI_GGUF_BOS, "bos_token" },   { QKVI_GGUF_EOS, "eos_token" },
              { QKVI_GGUF_UNK, "unk_token" },   { QKVI_GGUF_PAD, "pad_token" },
              { QKVI_GGUF_MASK, "mask_token" }, { QKVI_GGUF_SEP, "sep_token" },
              { QKVI_GGUF_CLS, "cls_token" } };
enum { N_NAMED = sizeof named / sizeof *named };

/* What a class would have where the file has nothing is null. */
static void put_ids(writing *w, json_t *config) {
    static const char *const nulls[] = { "bos_token_id", "eos_token_id", "pad_token_id" };
    for (int i = 0; i < 3; i++)
        if (json_object_set_new(config, nulls[i], json_null()) != 0) w->failed = true;
    for (int i = 0; i < N_NAMED; i++) {
        char field[32];
        const int64_t id = w->vocab.roles[named[i].role];
        if (id < 0) continue;
        snprintf(field, sizeof field, "%s_id", named[i].name);
        if (json_object_set_new(config, field, json_integer(id)) != 0) w->failed = true;
        set(w, named[i].name, json_stringn(w->vocab.tokens[id].bytes, w->vocab.tokens[id].n));
    }
}

static qkv_status put_chat(writing *w) {
    char *text;
    QKV_TRY(qkvi_gguf_take_text(w->keys, "tokenizer.chat_template", &text));
    if (text) set(w, "chat_template", json_string(text));
    free(text);
    return QKV_OK;
}

/* A text ends with what llama.cpp ends it with: the end of a text, of a turn or of a message. */
static void put_generation(writing *w) {
    const int64_t *const roles = w->vocab.roles;
    json_t *const ends = json_array(), *const out = w->texts->generation;
    for (int r = QKVI_GGUF_EOS; r <= QKVI_GGUF_EOM; r++) {
        bool is_there = false;
        for (size_t e = 0; e < json_array_size(ends); e++)
            is_there |= json_integer_value(json_array_get(ends, e)) == roles[r];
        if (roles[r] >= 0 && !is_there && json_array_append_new(ends, json_integer(roles[r])) != 0)
            w->failed = true;
    }
    if (roles[QKVI_GGUF_BOS] >= 0 &&
        json_object_set_new(out, "bos_token_id", json_integer(roles[QKVI_GGUF_BOS])) != 0)
        w->failed = true;
    if (roles[QKVI_GGUF_PAD] >= 0 &&
        json_object_set_new(out, "pad_token_id", json_integer(roles[QKVI_GGUF_PAD])) != 0)
        w->failed = true;
    if (json_array_size(ends) == 0)
        json_decref(ends);
    else if (json_object_set_new(out, "eos_token_id", ends) != 0)
        w->failed = true;
}

/* ---- All ------------------------------------------------------------------------------------- */

typedef qkv_status put_kind(writing *w);

static qkv_status find_kind(const writing *w, put_kind **kind) {
    static const struct {
        const char *name;
        put_kind *put;
    } kinds[] = { { "gpt2", put_byte_level },
                  { "llama", put_sentencepiece },
                  { "t5", put_unigram },
                  { "bert", put_bert } };
    char *name;
    *kind = NULL;
    QKV_TRY(qkvi_gguf_take_text(w->keys, "tokenizer.ggml.model", &name));
    for (size_t k = 0; name && k < sizeof kinds / sizeof *kinds; k++)
        if (strcmp(kinds[k].name, name) == 0) *kind = kinds[k].put;
    const qkv_status status =
        *kind ? QKV_OK
              : QKVI_GGUF_FAIL(w->keys, QKV_ERR_UNSUPPORTED,
                               "key 'tokenizer.ggml.model' is '%s', which is none of gpt2, llama, "
                               "t5, bert",
                               name ? QKVI_PRINTABLE(96, name) : "");
    free(name);
    return status;
}

static qkv_status write_all(writing *w, json_t *config) {
    put_kind *kind;
    QKV_TRY(find_kind(w, &kind));
    QKV_TRY(qkvi_gguf_vocab_read(w->keys, is_gemma(w), &w->vocab));
    set(w, "tokenizer_class", json_string("PreTrainedTokenizerFast"));
    set(w, "clean_up_tokenization_spaces", json_false());
    qkvi_bytes_text(w->out, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,");
    put_added(w);
    QKV_TRY(kind(w));
    put_ids(w, config);
    QKV_TRY(put_chat(w));
    put_generation(w);
    return w->failed || w->out->failed
               ? QKVI_GGUF_FAIL(w->keys, QKV_ERR_MEMORY, "no memory for its vocabulary")
               : QKV_OK;
}

qkv_status qkvi_gguf_texts_make(const qkvi_gguf_keys *keys, const char *arch, json_t *config,
                                qkvi_gguf_texts *texts) {
    *texts = (qkvi_gguf_texts){ .settings = json_object(), .generation = json_object() };
    if (!texts->settings || !texts->generation)
        return QKVI_GGUF_FAIL(keys, QKV_ERR_MEMORY, "no memory for its vocabulary");
    writing w = { .keys = keys, .texts = texts, .out = &texts->tokenizer, .arch = arch };
    const qkv_status status = write_all(&w, config);
    qkvi_gguf_vocab_free(&w.vocab);
    return status;
}

void qkvi_gguf_texts_free(qkvi_gguf_texts *texts) {
    qkvi_bytes_free(&texts->tokenizer);
    json_decref(texts->settings);
    json_decref(texts->generation);
    *texts = (qkvi_gguf_texts){ 0 };
}
