/**
 * BERT's tokenizer as its class makes it: settings.h has the switches; the vocabulary comes from a
 * tokenizer.json or from
 *
 *     vocab.txt    one token a line; its id is the number of the line, from 0
 *
 * "\n" ends a line, and may be missing at the end. White space at the end of a line is not part of
 * the token, an empty line is the empty token, and of equal lines the last one counts. A line must
 * be UTF-8 of at most 1 KiB.
 */
#include "files/utf8.h"
#include "text/tokenizer_json.h"
#include "text/unicode.h"
#include "text/wordpiece.h"

/* ---- Parts of a tokenizer.json --------------------------------------------------------------- */

/*
 * The parts of a tokenizer.json that are WordPiece's:
 *
 *     model  WordPiece      normalizer  BertNormalizer      pre_tokenizer  BertPreTokenizer
 *
 * Lowercase may stand before the normalizer.
 */

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
        return QKVI_TOKENIZER_FAIL(
            r, QKV_ERR_LIMIT, "model.continuing_subword_prefix has %zu bytes, the limit is %zu",
            strlen(mark), sizeof model->mark - 1);
    memcpy(model->mark, mark, strlen(mark) + 1);
    return QKV_OK;
}

static qkv_status read_unk(const qkvi_tokenizer_reader *r, const qkvi_json_reader *inner) {
    const char *unk = "[UNK]";
    qkvi_wordpiece *model = qkvi_wordpiece_of(r->tokenizer);
    QKV_TRY(qkvi_json_take_string(inner, "unk_token", &unk));
    return qkvi_tokenizer_set_unk(r, unk, &model->unk);
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
        return QKVI_TOKENIZER_FAIL(r, QKV_ERR_MEMORY, "no memory for a tokenizer");
    QKV_TRY(read_normalizer(r));
    QKV_TRY(read_pre_tokenizer(r));
    return read_model(r);
}

static qkv_status add_line(qkv_tokenizer *tokenizer, const char *name, int32_t id, const char *line,
                           size_t n, qkv_error *error) {
    const int line_number = id + 1;
    if (n > QKVI_PIECE_MAX_BYTES)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "%s: line %d has %zu bytes, the limit is %d",
                              name, line_number, n, QKVI_PIECE_MAX_BYTES);
    if (id >= QKVI_PIECES_MAX_IDS)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "%s: more than %d lines, the limit", name,
                              QKVI_PIECES_MAX_IDS);
    if (qkvi_utf8_valid(line, n) < n)
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: line %d is not valid UTF-8", name,
                              line_number);
    if (id == 0 && n >= 3 && memcmp(line, "\xEF\xBB\xBF", 3) == 0)
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: line 1 starts with a byte order mark",
                              name);
    if (qkvi_pieces_add(&tokenizer->pieces, id, line, n) != QKV_OK)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory for the vocabulary", name);
    return QKV_OK;
}

/* The length of a line without the white space at its end; as it is where it is no UTF-8. */
static size_t trim(const char *line, size_t n) {
    while (n > 0) {
        size_t at = n - 1;
        int32_t code = 0;
        while (at > 0 && ((unsigned char)line[at] & 0xC0) == 0x80) at--;
        if (qkvi_utf8_next(line + at, n - at, &code) != n - at) break;
        if (!(qkvi_char_class(code) & QKVI_CHAR_SPACE)) break;
        n = at;
    }
    return n;
}

static qkv_status read_lines(qkv_tokenizer *tokenizer, const qkvi_text_file *file,
                             qkv_error *error) {
    const char *const end = file->bytes + file->n_bytes;
    int32_t id = 0;
    for (const char *line = file->bytes; line < end; id++) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *stop = newline ? newline : end;
        const char *next = newline ? newline + 1 : end;
        const size_t n = trim(line, (size_t)(stop - line));
        QKV_TRY(add_line(tokenizer, file->name, id, line, n, error));
        line = next;
    }
    return qkvi_tokenizer_seal_model(tokenizer, error);
}

static qkv_status read_words(const qkvi_settings *s, const json_t *root, qkv_tokenizer *tokenizer) {
    const qkvi_tokenizer_reader r = qkvi_tokenizer_reader_of(s, root, tokenizer);
    const json_t *model = NULL;
    if (root == NULL) return read_lines(tokenizer, &s->files->vocab, s->error);
    QKV_TRY(qkvi_tokenizer_model(&r, "WordPiece", &model));
    return qkvi_tokenizer_read_words(&r, model);
}

/* The token of words that no other fits: of the vocabulary, where an added one does not help. */
static qkv_status find_unk(const qkvi_settings *s, const json_t *root, qkv_tokenizer *tokenizer) {
    const char *const unk = s->named[QKVI_UNK].content;
    char escaped[96];
    qkvi_wordpiece *model = qkvi_wordpiece_of(tokenizer);
    model->unk = qkvi_pieces_find(&tokenizer->pieces, unk, strlen(unk));
    if (model->unk >= 0) return QKV_OK;
    qkvi_escape(escaped, sizeof escaped, unk, strlen(unk));
    return root ? qkvi_error_set(s->error, QKV_ERR_FORMAT,
                                 "%s: unk_token \"%s\" is not in model.vocab",
                                 s->files->tokenizer.name, escaped)
                : qkvi_error_set(s->error, QKV_ERR_FORMAT, "%s: no line is %s",
                                 s->files->vocab.name, escaped);
}

static qkv_status fill(const qkvi_settings *s, const json_t *root, qkv_tokenizer *tokenizer) {
    qkvi_bert_rules *rules = &qkvi_wordpiece_of(tokenizer)->rules;
    rules->lowercase = s->lower_case;
    rules->lower_first = s->files->lower_first;
    rules->split_cjk = s->split_cjk;
    rules->strip_accents = s->strip_accents < 0 ? s->lower_case : s->strip_accents;
    QKV_TRY(read_words(s, root, tokenizer));
    QKV_TRY(find_unk(s, root, tokenizer));
    QKV_TRY(qkvi_settings_add_tokens(s, root, tokenizer));
    const int is_mpnet = s->class->maker == QKVI_MADE_BY_MPNET;
    tokenizer->trim_offsets = is_mpnet;
    (is_mpnet ? qkvi_tokenizer_roberta_templates : qkvi_tokenizer_bert_templates)(
        tokenizer, tokenizer->special[QKV_TOKEN_CLS], tokenizer->special[QKV_TOKEN_SEP]);
    return qkvi_settings_apply(s, tokenizer);
}

qkv_status qkvi_bert_make(const qkvi_settings *s, const json_t *root, qkv_tokenizer **out) {
    return qkvi_settings_make(s, root, qkvi_wordpiece_new(), fill, out);
}

/*
 * Of a class that is named, or that of a type whose files are lines: other types have other files.
 */
qkv_status qkvi_tokenizer_read_vocab(const qkvi_text_files *files, qkv_tokenizer **tokenizer,
                                     qkv_error *error) {
    static const qkvi_settings_wanted wanted = { "vocab.txt",
                                                 QKVI_MADE_BY_BERT | QKVI_MADE_BY_MPNET,
                                                 QKVI_MADE_BY_BERT, 1 };
    qkvi_settings settings;
    *tokenizer = NULL;
    qkv_status status = qkvi_settings_read(files, &wanted, &settings, error);
    if (status == QKV_OK) status = qkvi_bert_make(&settings, NULL, tokenizer);
    qkvi_settings_free(&settings);
    return status;
}
