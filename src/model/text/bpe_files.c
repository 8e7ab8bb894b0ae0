/**
 * vocab.json and merges.txt, and the small files beside them, as transformers reads them:
 *
 *     vocab.json               {"token": id, …}
 *     merges.txt               "a b" a line; lines that begin with "#version" do not count
 *     tokenizer_config.json    tokenizer_class, add_prefix_space, add_bos_token, add_eos_token,
 *                              trim_offsets, the special tokens, added_tokens_decoder
 *     special_tokens_map.json  the special tokens, before those of tokenizer_config.json
 *     added_tokens.json        {"token": id, …}
 *     config.json              model_type, where no tokenizer_class is named
 *
 * Where there is an added_tokens_decoder, the two files that came before it are not read. A special
 * token is a string or an object with its switches, which an entry of added_tokens_decoder
 * replaces. What a class has by itself is below.
 */
#include "model/text/bpe_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "model/text/bpe.h"
#include "model/text/tokenizer_json.h"
#include "model/text/unicode.h"

static const qkvi_json_limits vocab_limits = {
    .max_bytes = (size_t)16 << 20, .max_values = 600000, .max_containers = 2, .max_depth = 2
};

enum { BOS, EOS, UNK, SEP, PAD, CLS, MASK, N_NAMED };

static const char *const fields[N_NAMED] = { "bos_token", "eos_token", "unk_token", "sep_token",
                                             "pad_token", "cls_token", "mask_token" };

/* GPT-2: nothing around a text. RoBERTa, BART: <s> A </s></s> B </s>; <mask> takes the space on its
 * left, in transformers 4 and in the tokenizer.json of these models. */
static const struct family {
    const char *class, *model_type;
    int around;
    const char *tokens[N_NAMED];
} families[] = {
    { "GPT2Tokenizer", "gpt2", 0, { "<|endoftext|>", "<|endoftext|>", "<|endoftext|>" } },
    { "RobertaTokenizer",
      "roberta",
      1,
      { "<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>" } },
    { "BartTokenizer", "bart", 1, { "<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>" } },
};

/* A special token as the files have it. */
struct named {
    const char *content; /* NULL: none */
    unsigned flags;
    int is_given; /* by a file, not by the class */
};

/* Everything while it is read; strings live in the roots. */
struct reading {
    const qkvi_bpe_files *files;
    json_t *tokenizer_config, *special_tokens_map, *added_tokens, *config;
    const struct family *family;
    struct named named[N_NAMED];
    int add_prefix_space, add_bos, add_eos, trim_offsets;
    qkv_tokenizer *tokenizer;
    qkv_error *error;
};

/* ---- vocab.json and merges.txt --------------------------------------------------------------- */

static qkv_status read_vocab(const struct reading *r) {
    const qkvi_bpe_file *file = &r->files->vocab;
    const qkvi_tokenizer_reader reader = { file->name, NULL, r->tokenizer, r->error };
    json_t *root = NULL;
    QKV_TRY(qkvi_json_load(file->name, file->bytes, file->n_bytes, &vocab_limits, &root, r->error));
    qkv_status status = qkvi_tokenizer_read_ids(&reader, "the vocabulary", root);
    json_decref(root);
    if (status == QKV_OK) status = qkvi_tokenizer_seal_model(r->tokenizer, r->error);
    return status;
}

static qkv_status line_failed(const struct reading *r, int64_t line, qkv_status status,
                              const char *rule) {
    return qkvi_error_set(r->error, status, "%s: line %lld %s", r->files->merges.name,
                          (long long)line, rule);
}

static qkv_status read_line(const struct reading *r, int64_t number, const char *line, size_t n) {
    char place[32];
    if (n > 2 * QKVI_PIECE_MAX_BYTES + 1)
        return line_failed(r, number, QKV_ERR_LIMIT, "is longer than two tokens may be");
    if (qkvi_utf8_valid(line, n) < n)
        return line_failed(r, number, QKV_ERR_FORMAT, "is not valid UTF-8");
    if (number == 1 && n >= 3 && memcmp(line, "\xEF\xBB\xBF", 3) == 0)
        return line_failed(r, number, QKV_ERR_FORMAT, "starts with a byte order mark");
    if (n >= 8 && memcmp(line, "#version", 8) == 0) return QKV_OK;
    const char *space = n > 0 ? memchr(line, ' ', n) : NULL;
    const char *rest = space ? space + 1 : NULL;
    if (rest == NULL || memchr(rest, ' ', (size_t)(line + n - rest)))
        return line_failed(r, number, QKV_ERR_FORMAT, "is not two tokens with a space between");
    snprintf(place, sizeof place, "line %lld", (long long)number);
    const char *const parts[2] = { line, rest };
    const size_t lengths[2] = { (size_t)(space - line), (size_t)(line + n - rest) };
    return qkvi_bpe_add_merge(r->tokenizer, r->files->merges.name, place, parts, lengths, r->error);
}

static qkv_status read_merges(const struct reading *r) {
    const qkvi_bpe_file *file = &r->files->merges;
    const char *line = file->bytes, *const end = file->bytes + file->n_bytes;
    for (int64_t number = 1; line < end; number++) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *stop = newline ? newline : end;
        const char *next = newline ? newline + 1 : end;
        if (newline && stop > line && stop[-1] == '\r') stop--;
        QKV_TRY(read_line(r, number, line, (size_t)(stop - line)));
        line = next;
    }
    return qkvi_bpe_end_merges(r->tokenizer, file->name, r->error);
}

/* ---- The class ------------------------------------------------------------------------------- */

static qkv_status find_family(struct reading *r) {
    const char *class = NULL, *type = NULL;
    char escaped[96];
    const qkvi_json_reader of_class = { r->files->tokenizer_config.name, "", r->tokenizer_config,
                                        r->error };
    const qkvi_json_reader of_type = { r->files->config.name, "", r->config, r->error };
    if (r->tokenizer_config) QKV_TRY(qkvi_json_take_string(&of_class, "tokenizer_class", &class));
    if (!class && r->config) QKV_TRY(qkvi_json_take_string(&of_type, "model_type", &type));
    if (!class && !type)
        return qkvi_error_set(r->error, QKV_ERR_FORMAT,
                              "%s: what stands around a text is unknown: neither "
                              "tokenizer_config.json has a tokenizer_class nor config.json a "
                              "model_type",
                              r->files->vocab.name);
    size_t n = strlen(class ? class : type);
    if (class && n > 4 && strcmp(class + n - 4, "Fast") == 0) n -= 4;
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        const char *name = class ? families[i].class : families[i].model_type;
        if (strlen(name) == n && memcmp(name, class ? class : type, n) == 0)
            r->family = &families[i];
    }
    if (r->family) return QKV_OK;
    return qkvi_error_set(
        r->error, QKV_ERR_UNSUPPORTED,
        "%s: %s \"%s\" is not one that vocab.json and merges.txt can be read for",
        class ? r->files->tokenizer_config.name : r->files->config.name,
        class ? "tokenizer_class" : "model_type",
        qkvi_escape(escaped, sizeof escaped, class ? class : type, strlen(class ? class : type)));
}

/* ---- Special tokens -------------------------------------------------------------------------- */

static qkv_status take_named(struct reading *r, const char *file, const json_t *root, int which) {
    const json_t *value = json_object_get(root, fields[which]);
    struct named *named = &r->named[which];
    if (value == NULL) return QKV_OK;
    if (json_is_null(value)) {
        *named = (struct named){ 0 };
        return QKV_OK;
    }
    const qkvi_json_reader inner = { file, fields[which], value, r->error };
    const qkvi_json_reader outer = { file, "", root, r->error };
    unsigned flags = QKVI_ADDED_SPECIAL;
    const char *content = NULL;
    if (json_is_object(value)) {
        QKV_TRY(qkvi_json_need_string(&inner, "content", &content));
        QKV_TRY(qkvi_tokenizer_take_flags(&inner, &flags));
    } else {
        QKV_TRY(qkvi_json_need_string(&outer, fields[which], &content));
        flags = named->flags;
    }
    *named = (struct named){ content, flags | QKVI_ADDED_SPECIAL, 1 };
    return QKV_OK;
}

static qkv_status take_all_named(struct reading *r, const char *file, const json_t *root) {
    for (int i = 0; i < N_NAMED && root; i++) QKV_TRY(take_named(r, file, root, i));
    return QKV_OK;
}

static qkv_status take_settings(struct reading *r) {
    const json_t *decoder = NULL;
    const qkvi_json_reader reader = { r->files->tokenizer_config.name, "", r->tokenizer_config,
                                      r->error };
    for (int i = 0; i < N_NAMED; i++) {
        r->named[i] = (struct named){ r->family->tokens[i], QKVI_ADDED_SPECIAL, 0 };
        if (i == MASK) r->named[i].flags |= QKVI_ADDED_LSTRIP;
    }
    if (r->tokenizer_config) {
        QKV_TRY(qkvi_json_take_bool(&reader, "add_prefix_space", &r->add_prefix_space));
        QKV_TRY(qkvi_json_take_bool(&reader, "add_bos_token", &r->add_bos));
        QKV_TRY(qkvi_json_take_bool(&reader, "add_eos_token", &r->add_eos));
        QKV_TRY(qkvi_json_take_bool(&reader, "trim_offsets", &r->trim_offsets));
        QKV_TRY(qkvi_json_take_object(&reader, "added_tokens_decoder", &decoder));
    }
    if (r->family->around && (r->add_bos || r->add_eos))
        return qkvi_error_set(r->error, QKV_ERR_UNSUPPORTED,
                              "%s: add_bos_token and add_eos_token are not supported for %s",
                              reader.file, r->family->class);
    QKV_TRY(take_all_named(r, reader.file, r->tokenizer_config));
    if (decoder) return QKV_OK;
    return take_all_named(r, r->files->special_tokens_map.name, r->special_tokens_map);
}

/* ---- Added tokens ---------------------------------------------------------------------------- */

/* {"50264": {"content": "<mask>", "lstrip": true, …}} */
static qkv_status add_decoder(const struct reading *r, const json_t *decoder) {
    const qkvi_tokenizer_reader reader = { r->files->tokenizer_config.name, r->tokenizer_config,
                                           r->tokenizer, r->error };
    const char *key;
    const json_t *value;
    json_object_foreach((json_t *)decoder, key, value) {
        const size_t n = strlen(key);
        const char *content = NULL;
        unsigned flags = 0;
        if (n == 0 || n > 7 || strspn(key, "0123456789") != n || !json_is_object(value))
            return qkvi_error_set(r->error, QKV_ERR_FORMAT,
                                  "%s: an entry of added_tokens_decoder is not \"id\": {…}",
                                  reader.name);
        const qkvi_json_reader inner = { reader.name, "added_tokens_decoder", value, r->error };
        QKV_TRY(qkvi_json_need_string(&inner, "content", &content));
        QKV_TRY(qkvi_tokenizer_take_flags(&inner, &flags));
        QKV_TRY(
            qkvi_tokenizer_add_added(&reader, "added_tokens_decoder", content, atoi(key), flags));
    }
    return QKV_OK;
}

/* {"<mask>": 50264}: without switches, also where a special token of the name has some. */
static qkv_status add_older(const struct reading *r) {
    const qkvi_tokenizer_reader reader = { r->files->added_tokens.name, r->added_tokens,
                                           r->tokenizer, r->error };
    const char *key;
    const json_t *value;
    json_object_foreach(r->added_tokens, key, value) {
        unsigned flags = QKVI_ADDED_NORMALIZED;
        if (!json_is_integer(value))
            return qkvi_error_set(r->error, QKV_ERR_FORMAT, "%s: an id is no integer", reader.name);
        for (int i = 0; i < N_NAMED; i++) {
            const char *content = r->named[i].content;
            if (content && strcmp(content, key) == 0) flags = QKVI_ADDED_SPECIAL;
        }
        QKV_TRY(qkvi_tokenizer_add_added(&reader, "the added tokens", key,
                                         json_integer_value(value), flags));
    }
    return QKV_OK;
}

/* A special token that no list of added tokens has. One that only the class names may be missing. */
static qkv_status add_named(const struct reading *r, int which) {
    const struct named *named = &r->named[which];
    if (named->content == NULL) return QKV_OK;
    const size_t n = strlen(named->content);
    const qkvi_tokenizer_reader reader = { r->files->vocab.name, NULL, r->tokenizer, r->error };
    if (qkvi_added_listed(&r->tokenizer->added, named->content, n)) return QKV_OK;
    const int32_t id = qkvi_pieces_find(&r->tokenizer->pieces, named->content, n);
    const int needed = named->is_given || (r->family->around && (which == CLS || which == SEP));
    if (id >= 0 || needed) {
        char escaped[96];
        if (id < 0)
            return qkvi_error_set(r->error, QKV_ERR_FORMAT, "%s: %s \"%s\" is not in it",
                                  reader.name, fields[which],
                                  qkvi_escape(escaped, sizeof escaped, named->content, n));
        return qkvi_tokenizer_add_added(&reader, fields[which], named->content, id, named->flags);
    }
    return QKV_OK;
}

static qkv_status add_tokens(struct reading *r) {
    const json_t *decoder = json_object_get(r->tokenizer_config, "added_tokens_decoder");
    QKV_TRY(decoder && !json_is_null(decoder) ? add_decoder(r, decoder) : add_older(r));
    for (int i = 0; i < N_NAMED; i++) QKV_TRY(add_named(r, i));
    return qkvi_tokenizer_seal(r->tokenizer, r->error);
}

/* ---- Roles and templates --------------------------------------------------------------------- */

static int32_t id_of(const struct reading *r, int which) {
    const char *content = r->named[which].content;
    return content ? qkv_tokenizer_id(r->tokenizer, content, strlen(content)) : -1;
}

static void append(qkvi_template *template, int32_t id, uint8_t type) {
    template->items[template->n++] = (qkvi_template_item){ id, type };
}

/* [bos] A [eos], and the same of a pair with types 0 and 1. */
static void set_gpt2(const struct reading *r) {
    qkvi_template *const pair = &r->tokenizer->pair;
    const int32_t bos = id_of(r, BOS), eos = id_of(r, EOS);
    for (int i = 0; i < 2; i++) {
        if (r->add_bos && bos >= 0) append(pair, bos, (uint8_t)i);
        append(pair, i == 0 ? QKVI_TEMPLATE_TEXT : QKVI_TEMPLATE_PAIR, (uint8_t)i);
        if (r->add_eos && eos >= 0) append(pair, eos, (uint8_t)i);
        if (i == 0) r->tokenizer->single = *pair;
    }
}

static void set_model(const struct reading *r) {
    static const int named[QKVI_N_ROLES] = { [QKV_TOKEN_UNK] = UNK,
                                             [QKV_TOKEN_SEP] = SEP,
                                             [QKV_TOKEN_PAD] = PAD,
                                             [QKV_TOKEN_CLS] = CLS,
                                             [QKV_TOKEN_MASK] = MASK };
    qkvi_bpe *model = qkvi_bpe_of(r->tokenizer);
    for (int role = 0; role < QKVI_N_ROLES; role++)
        r->tokenizer->special[role] = id_of(r, named[role]);
    model->add_prefix_space = r->add_prefix_space;
    if (r->family->around) {
        r->tokenizer->trim_offsets = r->trim_offsets;
        r->tokenizer->trim_keeps_first = r->add_prefix_space;
        qkvi_tokenizer_roberta_templates(r->tokenizer, id_of(r, CLS), id_of(r, SEP));
    } else {
        set_gpt2(r);
    }
}

/* ---- Everything ------------------------------------------------------------------------------ */

static qkv_status load(const qkvi_bpe_file *file, json_t **root, qkv_error *error) {
    if (file->bytes == NULL) return QKV_OK;
    return qkvi_json_load(file->name, file->bytes, file->n_bytes, &qkvi_json_limits_config, root,
                          error);
}

static qkv_status read_all(struct reading *r) {
    QKV_TRY(load(&r->files->tokenizer_config, &r->tokenizer_config, r->error));
    QKV_TRY(load(&r->files->special_tokens_map, &r->special_tokens_map, r->error));
    QKV_TRY(load(&r->files->added_tokens, &r->added_tokens, r->error));
    QKV_TRY(load(&r->files->config, &r->config, r->error));
    QKV_TRY(find_family(r));
    QKV_TRY(take_settings(r));
    QKV_TRY(read_vocab(r));
    QKV_TRY(read_merges(r));
    QKV_TRY(add_tokens(r));
    set_model(r);
    return QKV_OK;
}

qkv_status qkvi_tokenizer_read_bpe(const qkvi_bpe_files *files, qkv_tokenizer **tokenizer,
                                   qkv_error *error) {
    struct reading r = { .files = files, .trim_offsets = 1, .error = error };
    *tokenizer = NULL;
    r.tokenizer = qkvi_bpe_new();
    qkv_status status = r.tokenizer
                            ? read_all(&r)
                            : qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory for a tokenizer",
                                             files->vocab.name);
    json_decref(r.tokenizer_config);
    json_decref(r.special_tokens_map);
    json_decref(r.added_tokens);
    json_decref(r.config);
    if (status == QKV_OK)
        *tokenizer = r.tokenizer;
    else
        qkv_tokenizer_free(r.tokenizer);
    return status;
}
