/**
 * tokenizer.json: the part of Hugging Face's format that our models use.
 *
 *     model           by its type, with normalizer and pre_tokenizer: the kinds below
 *     added_tokens    cut out of the text
 *     post_processor  what is put around a text
 *     decoder         that of the kind, for decoding
 *
 * A class may take the vocabulary only (settings.h). What would change ids and is not implemented is
 * refused by its name. truncation and padding cut and pad nothing here.
 */
#include "model/text/tokenizer_json.h"

#include "model/text/bpe.h"
#include "model/text/tokenizer_parts.h"
#include "model/text/unigram.h"
#include "model/text/wordpiece.h"

const qkvi_json_limits qkvi_json_limits_tokenizer = { .max_bytes = (size_t)16 << 20,
                                                      .max_values = 600000,
                                                      .max_containers = 120000,
                                                      .max_depth = 64,
                                                      .wide_integers = 1 };

qkvi_json_reader qkvi_tokenizer_fields(const qkvi_tokenizer_reader *r, const char *path,
                                       const json_t *object) {
    return (qkvi_json_reader){ r->name, path, object, r->error };
}

qkvi_tokenizer_reader qkvi_tokenizer_reader_of(const qkvi_settings *s, const json_t *root,
                                               qkv_tokenizer *tokenizer) {
    return (qkvi_tokenizer_reader){ s->files->tokenizer.name, root,    tokenizer, s->error,
                                    s->files->lower_first,    s->words };
}

qkv_status qkvi_tokenizer_broken(const qkvi_tokenizer_reader *r, const char *path,
                                 const qkvi_json_cursor *at) {
    return QKVI_TOKENIZER_FAIL(r, QKV_ERR_FORMAT, "line %lld: %s breaks its format",
                               (long long)qkvi_json_line(at), path);
}

qkv_status qkvi_tokenizer_refuse(const qkvi_tokenizer_reader *r, const char *part,
                                 const char *type) {
    return QKVI_TOKENIZER_FAIL(r, QKV_ERR_UNSUPPORTED, "%s \"%s\" is not supported", part,
                               QKVI_PRINTABLE(96, type));
}

qkv_status qkvi_tokenizer_part(const qkvi_tokenizer_reader *r, const char *part,
                               const json_t **object, const char **type) {
    const qkvi_json_reader top = qkvi_tokenizer_fields(r, "", r->root);
    QKV_TRY(qkvi_json_take_object(&top, part, object));
    if (*object == NULL) return qkvi_tokenizer_refuse(r, part, "null");
    const qkvi_json_reader inner = qkvi_tokenizer_fields(r, part, *object);
    return qkvi_json_need_string(&inner, "type", type);
}

/* "Lowercase", another type, or a Sequence of them. */
qkv_status qkvi_tokenizer_normalizer(const qkvi_tokenizer_reader *r, const json_t **last,
                                     int *lowers) {
    const json_t *object = json_object_get(r->root, "normalizer"), *list = NULL;
    const char *type = "";
    *last = NULL;
    *lowers = r->lower_first;
    if (object == NULL || json_is_null(object)) return QKV_OK;
    QKV_TRY(qkvi_tokenizer_part(r, "normalizer", &object, &type));
    if (strcmp(type, "Sequence") == 0) {
        const qkvi_json_reader inner = qkvi_tokenizer_fields(r, "normalizer", object);
        QKV_TRY(qkvi_json_take_array(&inner, "normalizers", &list));
    }
    const size_t n = list ? json_array_size(list) : 1;
    for (size_t i = 0; i < n; i++) {
        const json_t *const one = list ? json_array_get(list, i) : object;
        const char *name = json_string_value(json_object_get(one, "type"));
        if (name == NULL || (strcmp(name, "Lowercase") != 0 && i + 1 < n))
            return qkvi_tokenizer_refuse(r, "normalizer", type);
        if (strcmp(name, "Lowercase") == 0)
            *lowers = 1;
        else
            *last = one;
    }
    return QKV_OK;
}

/* ---- Parts ----------------------------------------------------------------------------------- */

qkv_status qkvi_tokenizer_take_flags(const qkvi_json_reader *token, unsigned *flags) {
    static const struct {
        const char *name;
        unsigned flag;
    } switches[] = {
        { "special", QKVI_ADDED_SPECIAL },         { "normalized", QKVI_ADDED_NORMALIZED },
        { "lstrip", QKVI_ADDED_LSTRIP },           { "rstrip", QKVI_ADDED_RSTRIP },
        { "single_word", QKVI_ADDED_SINGLE_WORD },
    };
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
        int set = (*flags & switches[i].flag) != 0;
        QKV_TRY(qkvi_json_take_bool(token, switches[i].name, &set));
        *flags = set ? *flags | switches[i].flag : *flags & ~switches[i].flag;
    }
    if (!json_object_get(token->object, "normalized") && !(*flags & QKVI_ADDED_SPECIAL))
        *flags |= QKVI_ADDED_NORMALIZED;
    return QKV_OK;
}

qkv_status qkvi_tokenizer_model(const qkvi_tokenizer_reader *r, const char *type,
                                const json_t **model) {
    const char *is = "";
    QKV_TRY(qkvi_tokenizer_part(r, "model", model, &is));
    return strcmp(is, type) == 0 ? QKV_OK : qkvi_tokenizer_refuse(r, "model", is);
}

/* Absent or null: nothing stands around a text, as in the reference; a model of BERT's kind cannot
 * use that. */
qkv_status qkvi_tokenizer_read_post_processor(const qkvi_tokenizer_reader *r) {
    const json_t *value = json_object_get(r->root, "post_processor");
    const json_t *object = NULL;
    const char *type = "";
    if ((value == NULL || json_is_null(value)) && r->tokenizer->kind->may_be_bare) {
        r->tokenizer->single = qkvi_bare_single;
        r->tokenizer->pair = qkvi_bare_pair;
        return QKV_OK;
    }
    QKV_TRY(qkvi_tokenizer_part(r, "post_processor", &object, &type));
    return qkvi_post_processor_read(r->name, object, type, r->tokenizer, r->error);
}

static qkvi_metaspace *metaspace_of(const qkv_tokenizer *tokenizer) {
    if (tokenizer->kind == &qkvi_metaspace_kind) return &qkvi_bpe_of(tokenizer)->metaspace;
    return tokenizer->kind == &qkvi_unigram_kind ? &qkvi_unigram_of(tokenizer)->metaspace : NULL;
}

/* A decoder changes no ids: one that is not the kind's is refused when something is decoded. */
static qkv_status read_decoder(const qkvi_tokenizer_reader *r) {
    const json_t *object = NULL;
    const char *type = "";
    const qkvi_json_reader top = qkvi_tokenizer_fields(r, "", r->root);
    QKV_TRY(qkvi_json_take_object(&top, "decoder", &object));
    r->tokenizer->decoder = QKVI_DECODER_PLAIN;
    if (object == NULL) return QKV_OK;
    const qkvi_json_reader inner = qkvi_tokenizer_fields(r, "decoder", object);
    QKV_TRY(qkvi_json_need_string(&inner, "type", &type));
    qkvi_metaspace *const rules = metaspace_of(r->tokenizer);
    if (rules) return qkvi_metaspace_read_decoder(r, object, rules);
    r->tokenizer->decoder =
        strcmp(type, r->tokenizer->kind->decoder) == 0 ? QKVI_DECODER_KIND : QKVI_DECODER_OTHER;
    return QKV_OK;
}

/* Kinds of model, by model.type. */
static const struct {
    const qkvi_tokenizer_kind *kind;
    qkvi_tokenizer_read_kind *read;
} kinds[] = {
    { &qkvi_wordpiece_kind, qkvi_wordpiece_read_json },
    { &qkvi_bpe_kind, qkvi_bpe_read_json },
    { &qkvi_unigram_kind, qkvi_unigram_read_json },
};

static qkv_status read_kind(qkvi_tokenizer_reader *r) {
    const json_t *object = NULL;
    const char *type = "";
    QKV_TRY(qkvi_tokenizer_part(r, "model", &object, &type));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].kind->name, type) == 0) return kinds[i].read(r);
    }
    return qkvi_tokenizer_refuse(r, "model", type);
}

/* The whole file, as it is. */
static qkv_status read_file(const qkvi_settings *s, const json_t *root, qkv_tokenizer **tokenizer) {
    qkvi_tokenizer_reader r = qkvi_tokenizer_reader_of(s, root, NULL);
    qkv_status status = read_kind(&r);
    if (status == QKV_OK) status = qkvi_settings_add_tokens(s, root, r.tokenizer);
    if (status == QKV_OK) status = qkvi_tokenizer_read_post_processor(&r);
    if (status == QKV_OK) status = read_decoder(&r);
    if (status == QKV_OK)
        qkvi_settings_apply(s, r.tokenizer);
    else
        qkv_tokenizer_free(r.tokenizer);
    if (status == QKV_OK) *tokenizer = r.tokenizer;
    return status;
}

static qkv_status read_any(qkvi_settings *s, const json_t *root, qkv_tokenizer **tokenizer) {
    QKV_TRY(qkvi_settings_take_json(s, root));
    switch (s->class->maker) {
    case QKVI_MADE_BY_BERT:
    case QKVI_MADE_BY_MPNET: return qkvi_bert_make(s, root, tokenizer);
    case QKVI_MADE_BY_XLM_ROBERTA: return qkvi_unigram_make(s, root, tokenizer);
    case QKVI_MADE_BY_ROBERTA:
    case QKVI_MADE_BY_QWEN2:
    case QKVI_MADE_BY_LLAMA:
    case QKVI_MADE_BY_GEMMA:
    case QKVI_MADE_BY_GPT2: return qkvi_bpe_make(s, root, tokenizer);
    default: return read_file(s, root, tokenizer);
    }
}

qkv_status qkvi_tokenizer_read_json(const qkvi_text_files *files, qkv_tokenizer **tokenizer,
                                    qkv_error *error) {
    static const qkvi_settings_wanted wanted = {
        "tokenizer.json", ~QKVI_MADE_BY_MARIAN & (2 * QKVI_MADE_BY_MPNET - 1), QKVI_MADE_BY_FILE, 0
    };
    const qkvi_text_file *const file = &files->tokenizer;
    qkvi_settings settings;
    qkvi_tokenizer_words words = { 0 };
    json_t *root = NULL;
    *tokenizer = NULL;
    qkv_status status = qkvi_settings_read(files, &wanted, &settings, error);
    if (status == QKV_OK)
        status =
            qkvi_tokenizer_words_load(file->name, file->bytes, file->n_bytes, &words, &root, error);
    settings.words = &words;
    if (status == QKV_OK) status = read_any(&settings, root, tokenizer);
    json_decref(root);
    qkvi_settings_free(&settings);
    return status;
}
