/**
 * The parts of a tokenizer.json that are byte-level BPE's:
 *
 *     model  BPE      normalizer  null or Lowercase      pre_tokenizer  ByteLevel, by its own pattern
 *
 * A merge is "a b" or ["a", "b"]. Its tokens and their joined string are in the vocabulary, as the
 * reference demands.
 */

#include "model/text/bpe.h"
#include "model/text/tokenizer_json.h"

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
    return qkvi_error_set(r->error, QKV_ERR_UNSUPPORTED,
                          "%s: pre_tokenizer.use_regex = false is not supported", r->name);
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
    return qkvi_error_set(r->error, QKV_ERR_UNSUPPORTED,
                          "%s: model.%s is set, which is not "
                          "supported",
                          r->name, name);
}

static qkv_status read_unk(const qkvi_tokenizer_reader *r, const qkvi_json_reader *inner) {
    const char *unk = NULL;
    qkvi_bpe *model = qkvi_bpe_of(r->tokenizer);
    QKV_TRY(qkvi_json_take_string(inner, "unk_token", &unk));
    if (unk == NULL) return QKV_OK;
    model->unk = qkvi_pieces_find(&r->tokenizer->pieces, unk, strlen(unk));
    r->tokenizer->special[QKV_TOKEN_UNK] = model->unk;
    if (model->unk >= 0) return QKV_OK;
    return qkvi_error_set(r->error, QKV_ERR_FORMAT,
                          "%s: model.unk_token \"%s\" is not in model.vocab", r->name,
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
    if (merges == NULL)
        return qkvi_error_set(r->error, QKV_ERR_FORMAT, "%s: model.merges is missing", r->name);
    for (size_t i = 0; i < json_array_size(merges); i++) {
        const char *parts[2];
        size_t n[2];
        if (!parts_of(json_array_get(merges, i), parts, n))
            return qkvi_error_set(r->error, QKV_ERR_FORMAT,
                                  "%s: model.merges[%zu] is neither \"a b\" nor [\"a\", \"b\"]",
                                  r->name, i);
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
        return qkvi_error_set(r->error, QKV_ERR_MEMORY, "%s: no memory for a tokenizer", r->name);
    QKV_TRY(read_normalizer(r));
    QKV_TRY(read_pre_tokenizer(r));
    return read_model(r);
}
