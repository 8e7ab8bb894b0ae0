/**
 * Byte-level BPE as the classes of GPT-2, RoBERTa and BART make it: settings.h has the switches, and the
 * vocabulary is that of a tokenizer.json or of
 *
 *     vocab.json    {"token": id, …}
 *     merges.txt    "a b" a line; lines that begin with "#version" do not count
 */
#include "model/text/bpe.h"
#include "model/text/tokenizer_json.h"
#include "model/text/unicode.h"

/* ---- Parts of a tokenizer.json --------------------------------------------------------------- */

/*
 * The parts of a tokenizer.json that are byte-level BPE's:
 *
 *     model  BPE      normalizer  null or Lowercase      pre_tokenizer  ByteLevel, by its own pattern
 *
 * A merge is "a b" or ["a", "b"]. Its tokens and their joined string are in the vocabulary, as the
 * reference demands.
 */

static qkv_status read_normalizer(const qkvi_tokenizer_reader *r) {
    const json_t *object = NULL;
    QKV_TRY(qkvi_tokenizer_normalizer(r, &object, &r->tokenizer->normalizes));
    if (object == NULL) return QKV_OK;
    return qkvi_tokenizer_refuse(r, "normalizer",
                                 json_string_value(json_object_get(object, "type")));
}

static qkv_status read_pre_tokenizer(const qkvi_tokenizer_reader *r) {
    const json_t *object = NULL;
    const char *type = "";
    int regex = 1;
    QKV_TRY(qkvi_tokenizer_part(r, "pre_tokenizer", &object, &type));
    if (strcmp(type, "ByteLevel") != 0) return qkvi_tokenizer_refuse(r, "pre_tokenizer", type);
    const qkvi_json_reader inner = qkvi_tokenizer_fields(r, "pre_tokenizer", object);
    qkvi_bpe *model = qkvi_bpe_of(r->tokenizer);
    model->add_prefix_space = 1;
    QKV_TRY(qkvi_json_take_bool(&inner, "add_prefix_space", &model->add_prefix_space));
    QKV_TRY(qkvi_json_take_bool(&inner, "use_regex", &regex));
    if (regex) return QKV_OK;
    return QKVI_TOKENIZER_FAIL(r, QKV_ERR_UNSUPPORTED,
                               "pre_tokenizer.use_regex = false is not supported");
}

/* ---- The model ------------------------------------------------------------------------------- */

/* What would change ids and is not implemented: only its neutral value is accepted. */
static qkv_status refuse_switches(const qkvi_tokenizer_reader *r, const qkvi_json_reader *inner) {
    static const char *const texts[] = { "continuing_subword_prefix", "end_of_word_suffix" };
    int fallback = 0;
    double dropout = 0;
    const char *name = NULL;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *text = "";
        QKV_TRY(qkvi_json_take_string(inner, texts[i], &text));
        if (*text) name = texts[i];
    }
    QKV_TRY(qkvi_json_take_bool(inner, "byte_fallback", &fallback));
    QKV_TRY(qkvi_json_take_real(inner, "dropout", &dropout));
    if (fallback) name = "byte_fallback";
    if (dropout != 0) name = "dropout";
    if (name == NULL) return QKV_OK;
    return QKVI_TOKENIZER_FAIL(r, QKV_ERR_UNSUPPORTED,
                               "model.%s is set, which is not "
                               "supported",
                               name);
}

static qkv_status read_unk(const qkvi_tokenizer_reader *r, const qkvi_json_reader *inner) {
    const char *unk = NULL;
    qkvi_bpe *model = qkvi_bpe_of(r->tokenizer);
    QKV_TRY(qkvi_json_take_string(inner, "unk_token", &unk));
    if (unk == NULL) return QKV_OK;
    model->unk = qkvi_pieces_find(&r->tokenizer->pieces, unk, strlen(unk));
    r->tokenizer->special[QKV_TOKEN_UNK] = model->unk;
    if (model->unk >= 0) return QKV_OK;
    return QKVI_TOKENIZER_FAIL(r, QKV_ERR_FORMAT, "model.unk_token \"%s\" is not in model.vocab",
                               QKVI_PRINTABLE(96, unk));
}

/* "a b" or ["a", "b"]: its two parts; 0 if it is neither. */
static int parts_of(const json_t *merge, const char *parts[2], size_t n[2]) {
    if (json_is_string(merge)) {
        const char *text = json_string_value(merge), *space = strchr(text, ' ');
        if (space == NULL || strchr(space + 1, ' ')) return 0;
        parts[0] = text;
        n[0] = (size_t)(space - text);
        parts[1] = space + 1;
        n[1] = strlen(space + 1);
        return 1;
    }
    if (json_array_size(merge) != 2) return 0;
    for (size_t i = 0; i < 2; i++) {
        parts[i] = json_string_value(json_array_get(merge, i));
        if (parts[i] == NULL) return 0;
        n[i] = strlen(parts[i]);
    }
    return 1;
}

qkv_status qkvi_bpe_read_merges(const qkvi_tokenizer_reader *r, const json_t *model) {
    const qkvi_json_reader inner = qkvi_tokenizer_fields(r, "model", model);
    const json_t *merges = NULL;
    char place[64];
    QKV_TRY(qkvi_json_take_array(&inner, "merges", &merges));
    if (merges == NULL) return QKVI_TOKENIZER_FAIL(r, QKV_ERR_FORMAT, "model.merges is missing");
    for (size_t i = 0; i < json_array_size(merges); i++) {
        const char *parts[2];
        size_t n[2];
        if (!parts_of(json_array_get(merges, i), parts, n))
            return QKVI_TOKENIZER_FAIL(
                r, QKV_ERR_FORMAT, "model.merges[%zu] is neither \"a b\" nor [\"a\", \"b\"]", i);
        snprintf(place, sizeof place, "model.merges[%zu]", i);
        QKV_TRY(qkvi_bpe_add_merge(r->tokenizer, r->name, place, parts, n, r->error));
    }
    return qkvi_bpe_end_merges(r->tokenizer, r->name, r->error);
}

static qkv_status read_model(const qkvi_tokenizer_reader *r) {
    const json_t *object = NULL;
    qkvi_bpe *model = qkvi_bpe_of(r->tokenizer);
    QKV_TRY(qkvi_tokenizer_model(r, "BPE", &object));
    const qkvi_json_reader inner = qkvi_tokenizer_fields(r, "model", object);
    QKV_TRY(refuse_switches(r, &inner));
    QKV_TRY(qkvi_json_take_bool(&inner, "fuse_unk", &model->fuse_unk));
    QKV_TRY(qkvi_json_take_bool(&inner, "ignore_merges", &model->ignore_merges));
    QKV_TRY(qkvi_tokenizer_read_words(r, object));
    QKV_TRY(read_unk(r, &inner));
    return qkvi_bpe_read_merges(r, object);
}

qkv_status qkvi_bpe_read_json(qkvi_tokenizer_reader *r) {
    r->tokenizer = qkvi_bpe_new();
    if (r->tokenizer == NULL)
        return QKVI_TOKENIZER_FAIL(r, QKV_ERR_MEMORY, "no memory for a tokenizer");
    QKV_TRY(read_normalizer(r));
    QKV_TRY(read_pre_tokenizer(r));
    return read_model(r);
}

static const qkvi_json_limits vocab_limits = {
    .max_bytes = (size_t)16 << 20, .max_values = 600000, .max_containers = 2, .max_depth = 2
};

struct reading {
    const qkvi_text_files *files;
    qkv_tokenizer *tokenizer;
    qkv_error *error;
};

/* ---- vocab.json and merges.txt --------------------------------------------------------------- */

static qkv_status read_vocab(const struct reading *r) {
    const qkvi_text_file *file = &r->files->vocab;
    const qkvi_tokenizer_reader reader = { file->name, NULL, r->tokenizer, r->error, 0 };
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
    const qkvi_text_file *file = &r->files->merges;
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

/* ---- The tokenizer --------------------------------------------------------------------------- */

static qkv_status read_words(const qkvi_settings *s, const json_t *root, qkv_tokenizer *tokenizer) {
    const qkvi_tokenizer_reader reader = { s->files->tokenizer.name, root, tokenizer, s->error, 0 };
    const struct reading files = { s->files, tokenizer, s->error };
    const json_t *model = NULL;
    if (root == NULL) {
        QKV_TRY(read_vocab(&files));
        return read_merges(&files);
    }
    QKV_TRY(qkvi_tokenizer_model(&reader, "BPE", &model));
    QKV_TRY(qkvi_tokenizer_read_words(&reader, model));
    return qkvi_bpe_read_merges(&reader, model);
}

static void append(qkvi_template *template, int32_t id, uint8_t type) {
    template->items[template->n++] = (qkvi_template_item){ id, type };
}

/* [bos] A [eos], and the same of a pair with types 0 and 1. */
static void set_gpt2(const qkvi_settings *s, qkv_tokenizer *tokenizer) {
    qkvi_template *const pair = &tokenizer->pair;
    const int32_t bos = qkvi_settings_id(s, QKVI_BOS, tokenizer);
    const int32_t eos = qkvi_settings_id(s, QKVI_EOS, tokenizer);
    for (int i = 0; i < 2; i++) {
        if (s->add_bos && bos >= 0) append(pair, bos, (uint8_t)i);
        append(pair, i == 0 ? QKVI_TEMPLATE_TEXT : QKVI_TEMPLATE_PAIR, (uint8_t)i);
        if (s->add_eos && eos >= 0) append(pair, eos, (uint8_t)i);
        if (i == 0) tokenizer->single = *pair;
    }
}

/* What stands around texts: of GPT-2 a tokenizer.json says it, if there is one. */
static qkv_status set_around(const qkvi_settings *s, const json_t *root, qkv_tokenizer *tokenizer) {
    const qkvi_tokenizer_reader reader = { s->files->tokenizer.name, root, tokenizer, s->error, 0 };
    if (s->class->maker == QKVI_MADE_BY_ROBERTA) {
        tokenizer->trim_offsets = s->trim_offsets;
        tokenizer->trim_keeps_first = s->add_prefix_space;
        qkvi_tokenizer_roberta_templates(tokenizer, tokenizer->special[QKV_TOKEN_CLS],
                                         tokenizer->special[QKV_TOKEN_SEP]);
        return QKV_OK;
    }
    if (root) return qkvi_tokenizer_read_post_processor(&reader);
    set_gpt2(s, tokenizer);
    return QKV_OK;
}

static qkv_status fill(const qkvi_settings *s, const json_t *root, qkv_tokenizer *tokenizer) {
    qkvi_bpe_of(tokenizer)->add_prefix_space = s->add_prefix_space;
    tokenizer->normalizes = s->files->lower_first;
    QKV_TRY(read_words(s, root, tokenizer));
    QKV_TRY(qkvi_settings_add_tokens(s, root, tokenizer));
    QKV_TRY(set_around(s, root, tokenizer));
    qkvi_settings_apply(s, tokenizer);
    return QKV_OK;
}

qkv_status qkvi_bpe_make(const qkvi_settings *s, const json_t *root, qkv_tokenizer **out) {
    qkv_tokenizer *tokenizer = qkvi_bpe_new();
    *out = NULL;
    if (tokenizer == NULL)
        return qkvi_error_set(s->error, QKV_ERR_MEMORY, "%s: no memory for a tokenizer",
                              s->files->vocab.name);
    const qkv_status status = fill(s, root, tokenizer);
    if (status == QKV_OK)
        *out = tokenizer;
    else
        qkv_tokenizer_free(tokenizer);
    return status;
}

qkv_status qkvi_tokenizer_read_bpe(const qkvi_text_files *files, qkv_tokenizer **tokenizer,
                                   qkv_error *error) {
    static const qkvi_settings_wanted wanted = { "vocab.json and merges.txt",
                                                 QKVI_MADE_BY_ROBERTA | QKVI_MADE_BY_GPT2, 0, 0 };
    qkvi_settings settings;
    *tokenizer = NULL;
    qkv_status status = qkvi_settings_read(files, &wanted, &settings, error);
    if (status == QKV_OK) status = qkvi_bpe_make(&settings, NULL, tokenizer);
    qkvi_settings_free(&settings);
    return status;
}
