/**
 * vocab.txt: one token a line, its id is the number of the line from 0; tokenizer_config.json
 * beside it has the switches.
 *
 * "\n" and "\r\n" end a line, the last one may be missing, an empty line is the empty token, and of
 * equal lines the last one wins. Every line is UTF-8 of at most 1 KiB; found while walking the
 * bytes once.
 */
#include <string.h>

#include "core/status.h"
#include "model/store/json.h"
#include "model/text/unicode.h"
#include "model/text/wordpiece.h"

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

static qkv_status read_lines(qkv_tokenizer *tokenizer, const char *name, const char *bytes,
                             size_t n_bytes, qkv_error *error) {
    const char *const end = bytes + n_bytes;
    int32_t id = 0;
    for (const char *line = bytes; line < end; id++) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *stop = newline ? newline : end;
        const char *next = newline ? newline + 1 : end;
        if (newline && stop > line && stop[-1] == '\r') stop--;
        QKV_TRY(add_line(tokenizer, name, id, line, (size_t)(stop - line), error));
        line = next;
    }
    return QKV_OK;
}

/* [UNK], [CLS] and [SEP] must be there. All of the five that are there are cut out of raw text. */
static qkv_status add_special(qkv_tokenizer *tokenizer, const char *name, qkv_error *error) {
    for (int role = 0; role < QKVI_N_ROLES; role++) {
        const char *token = qkvi_role_names[role];
        const int32_t id = qkv_tokenizer_id(tokenizer, token, strlen(token));
        if (id >= 0) {
            if (qkvi_added_add(&tokenizer->added, id, token, strlen(token), QKVI_ADDED_SPECIAL) !=
                QKV_OK)
                return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory for the vocabulary",
                                      name);
        } else if (role == QKV_TOKEN_UNK || role == QKV_TOKEN_CLS || role == QKV_TOKEN_SEP) {
            return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: no line is %s", name, token);
        }
    }
    return QKV_OK;
}

/* Classes whose Python code splits text as BERT does; others (MeCab, byte pairs …) would silently
 * give wrong ids. */
static qkv_status check_class(const char *name, const char *class, qkv_error *error) {
    static const char *const known[] = { "BertTokenizer",        "DistilBertTokenizer",
                                         "ElectraTokenizer",     "MobileBertTokenizer",
                                         "SqueezeBertTokenizer", "ConvBertTokenizer",
                                         "PreTrainedTokenizer",  "TokenizersBackend" };
    char escaped[96];
    size_t n = strlen(class);
    if (n > 4 && strcmp(class + n - 4, "Fast") == 0) n -= 4;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strlen(known[i]) == n && memcmp(known[i], class, n) == 0) return QKV_OK;
    }
    return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                          "%s: tokenizer_class \"%s\" is not one that vocab.txt can be read for",
                          name, qkvi_escape(escaped, sizeof escaped, class, strlen(class)));
}

static qkv_status read_config(qkv_tokenizer *tokenizer, const char *name, const void *bytes,
                              size_t n_bytes, qkv_error *error) {
    json_t *root = NULL;
    QKV_TRY(qkvi_json_load(name, bytes, n_bytes, &qkvi_json_limits_config, &root, error));
    const qkvi_json_reader reader = { name, "", root, error };
    const char *class = "BertTokenizer";
    int strip = -1; /* absent or null: as lower case */
    qkvi_bert_rules *rules = &qkvi_wordpiece_of(tokenizer)->rules;
    qkv_status status = qkvi_json_take_bool(&reader, "do_lower_case", &rules->lowercase);
    if (status == QKV_OK) status = qkvi_json_take_bool(&reader, "strip_accents", &strip);
    if (status == QKV_OK)
        status = qkvi_json_take_bool(&reader, "tokenize_chinese_chars", &rules->split_cjk);
    if (status == QKV_OK) status = qkvi_json_take_string(&reader, "tokenizer_class", &class);
    if (status == QKV_OK) status = check_class(name, class, error);
    rules->strip_accents = strip < 0 ? rules->lowercase : strip;
    json_decref(root);
    return status;
}

qkv_status qkvi_tokenizer_read_vocab(const char *name, const void *vocab, size_t vocab_bytes,
                                     const char *config_name, const void *config,
                                     size_t config_bytes, qkv_tokenizer **out, qkv_error *error) {
    *out = NULL;
    qkv_tokenizer *tokenizer = qkvi_wordpiece_new();
    if (tokenizer == NULL)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory for a tokenizer", name);
    qkv_status status = QKV_OK;
    if (config) status = read_config(tokenizer, config_name, config, config_bytes, error);
    if (status == QKV_OK) status = read_lines(tokenizer, name, vocab, vocab_bytes, error);
    if (status == QKV_OK) status = qkvi_tokenizer_seal_model(tokenizer, error);
    if (status == QKV_OK) status = add_special(tokenizer, name, error);
    if (status == QKV_OK) status = qkvi_tokenizer_seal(tokenizer, error);
    if (status != QKV_OK) {
        qkv_tokenizer_free(tokenizer);
        return status;
    }
    qkvi_wordpiece_of(tokenizer)->unk = tokenizer->special[QKV_TOKEN_UNK];
    qkvi_tokenizer_bert_templates(tokenizer, tokenizer->special[QKV_TOKEN_CLS],
                                  tokenizer->special[QKV_TOKEN_SEP]);
    *out = tokenizer;
    return QKV_OK;
}
