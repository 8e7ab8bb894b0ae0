/**
 * The parts of a tokenizer.json that are WordPiece's:
 *
 *     model  WordPiece      normalizer  BertNormalizer      pre_tokenizer  BertPreTokenizer
 *
 * Lowercase may stand before the normalizer.
 */

#include "model/text/tokenizer_json.h"
#include "model/text/wordpiece.h"

static qkv_status read_normalizer(const qkvi_tokenizer_reader *r) {
    const json_t *object = NULL;
    qkvi_bert_rules *rules = &qkvi_wordpiece_of(r->tokenizer)->rules;
    QKV_TRY(qkvi_tokenizer_normalizer(r, &object, &rules->lower_first));
    const char *const type = json_string_value(json_object_get(object, "type"));
    if (type == NULL || strcmp(type, "BertNormalizer") != 0)
        return qkvi_tokenizer_refuse(r, "normalizer", type ? type : "null");
    const qkvi_json_reader inner = qkvi_tokenizer_fields(r, "normalizer", object);
    int strip = -1;
    QKV_TRY(qkvi_json_take_bool(&inner, "clean_text", &rules->clean_text));
    QKV_TRY(qkvi_json_take_bool(&inner, "handle_chinese_chars", &rules->split_cjk));
    QKV_TRY(qkvi_json_take_bool(&inner, "lowercase", &rules->lowercase));
    QKV_TRY(qkvi_json_take_bool(&inner, "strip_accents", &strip));
    rules->strip_accents = strip < 0 ? rules->lowercase : strip;
    return QKV_OK;
}

static qkv_status read_pre_tokenizer(const qkvi_tokenizer_reader *r) {
    const json_t *object = NULL;
    const char *type = "";
    QKV_TRY(qkvi_tokenizer_part(r, "pre_tokenizer", &object, &type));
    return strcmp(type, "BertPreTokenizer") == 0 ? QKV_OK
                                                 : qkvi_tokenizer_refuse(r, "pre_tokenizer", type);
}

static qkv_status read_mark(const qkvi_tokenizer_reader *r, const qkvi_json_reader *inner) {
    const char *mark = "##";
    qkvi_wordpiece *model = qkvi_wordpiece_of(r->tokenizer);
    QKV_TRY(qkvi_json_take_string(inner, "continuing_subword_prefix", &mark));
    if (strlen(mark) >= sizeof model->mark)
        return qkvi_error_set(r->error, QKV_ERR_LIMIT,
                              "%s: model.continuing_subword_prefix has %zu bytes, the limit is %zu",
                              r->name, strlen(mark), sizeof model->mark - 1);
    memcpy(model->mark, mark, strlen(mark) + 1);
    return QKV_OK;
}

static qkv_status read_unk(const qkvi_tokenizer_reader *r, const qkvi_json_reader *inner) {
    const char *unk = "[UNK]";
    qkvi_wordpiece *model = qkvi_wordpiece_of(r->tokenizer);
    QKV_TRY(qkvi_json_take_string(inner, "unk_token", &unk));
    model->unk = qkvi_pieces_find(&r->tokenizer->pieces, unk, strlen(unk));
    r->tokenizer->special[QKV_TOKEN_UNK] = model->unk;
    if (model->unk >= 0) return QKV_OK;
    return qkvi_error_set(r->error, QKV_ERR_FORMAT,
                          "%s: model.unk_token \"%s\" is not in model.vocab", r->name,
                          QKVI_PRINTABLE(96, unk));
}

static qkv_status read_model(const qkvi_tokenizer_reader *r) {
    const json_t *object = NULL;
    int64_t max_chars = QKVI_WORDPIECE_MAX_CHARS;
    QKV_TRY(qkvi_tokenizer_model(r, "WordPiece", &object));
    const qkvi_json_reader inner = qkvi_tokenizer_fields(r, "model", object);
    QKV_TRY(read_mark(r, &inner));
    QKV_TRY(qkvi_json_take_int(&inner, "max_input_chars_per_word", QKVI_WORDPIECE_LIMIT_CHARS,
                               &max_chars));
    qkvi_wordpiece_of(r->tokenizer)->max_chars = (uint32_t)max_chars;
    QKV_TRY(qkvi_tokenizer_read_words(r, object));
    return read_unk(r, &inner);
}

qkv_status qkvi_wordpiece_read_json(qkvi_tokenizer_reader *r) {
    r->tokenizer = qkvi_wordpiece_new();
    if (r->tokenizer == NULL)
        return qkvi_error_set(r->error, QKV_ERR_MEMORY, "%s: no memory for a tokenizer", r->name);
    QKV_TRY(read_normalizer(r));
    QKV_TRY(read_pre_tokenizer(r));
    return read_model(r);
}
