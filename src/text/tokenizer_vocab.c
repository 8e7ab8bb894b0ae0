/* The vocabulary of a tokenizer.json: ids of tokens. See tokenizer_json.h. */
#include "text/tokenizer_json.h"

qkv_status qkvi_tokenizer_add_word(const qkvi_tokenizer_reader *r, const char *path,
                                   const char *token, size_t n_bytes, int64_t id) {
    qkvi_pieces *const pieces = &r->tokenizer->pieces;
    char escaped[96];
    qkvi_escape(escaped, sizeof escaped, token, n_bytes);
    if (id < 0 || id >= QKVI_PIECES_MAX_IDS)
        return QKVI_TOKENIZER_FAIL(r, id < 0 ? QKV_ERR_FORMAT : QKV_ERR_LIMIT,
                                   "%s: \"%s\" has id %lld, the limit is %d", path, escaped,
                                   (long long)id, QKVI_PIECES_MAX_IDS - 1);
    if (n_bytes > QKVI_PIECE_MAX_BYTES)
        return QKVI_TOKENIZER_FAIL(r, QKV_ERR_LIMIT, "%s: \"%s\" has %zu bytes, the limit is %d",
                                   path, escaped, n_bytes, QKVI_PIECE_MAX_BYTES);
    if (id < pieces->n_ids && pieces->tokens[id].length >= 0)
        return QKVI_TOKENIZER_FAIL(r, QKV_ERR_FORMAT, "%s: two tokens have id %lld", path,
                                   (long long)id);
    if (qkvi_pieces_add(pieces, (int32_t)id, token, n_bytes) != QKV_OK)
        return QKVI_TOKENIZER_FAIL(r, QKV_ERR_MEMORY, "no memory for the vocabulary");
    return QKV_OK;
}

qkv_status qkvi_tokenizer_read_ids(const qkvi_tokenizer_reader *r, const char *path,
                                   const json_t *vocab) {
    const char *key;
    const json_t *value;
    json_object_foreach((json_t *)vocab, key, value) {
        if (!json_is_integer(value))
            return QKVI_TOKENIZER_FAIL(r, QKV_ERR_FORMAT, "an id in %s is no integer", path);
        QKV_TRY(qkvi_tokenizer_add_word(r, path, key, strlen(key), json_integer_value(value)));
    }
    return QKV_OK;
}

/* {"token": id, …} by its bytes. */
static qkv_status walk_vocab(const qkvi_tokenizer_reader *r, qkvi_json_span list) {
    static const char path[] = "model.vocab";
    qkvi_json_cursor c = { r->words->text, list.begin, list.end };
    char token[QKVI_PIECE_MAX_BYTES];
    int64_t id = 0, n_tokens = 0;
    size_t n = 0;
    int more = qkvi_json_take_mark(&c, '{') && qkvi_json_peek(&c) != '}';
    while (more) {
        if (!qkvi_json_take_text(&c, token, sizeof token, &n) || !qkvi_json_take_mark(&c, ':'))
            return qkvi_tokenizer_broken(r, path, &c);
        if (!qkvi_json_take_number(&c, &id))
            return QKVI_TOKENIZER_FAIL(r, QKV_ERR_FORMAT, "an id in %s is no integer", path);
        if (++n_tokens > QKVI_VOCAB_MAX_TOKENS)
            return QKVI_TOKENIZER_FAIL(r, QKV_ERR_LIMIT, "%s has more than %d tokens, the limit",
                                       path, QKVI_VOCAB_MAX_TOKENS);
        QKV_TRY(qkvi_tokenizer_add_word(r, path, token, n, id));
        more = qkvi_json_take_mark(&c, ',');
    }
    if (!qkvi_json_take_mark(&c, '}') || c.at < list.end) return qkvi_tokenizer_broken(r, path, &c);
    return QKV_OK;
}

/* What jansson refuses where it reads the list. */
qkv_status qkvi_tokenizer_check_twice(const qkvi_tokenizer_reader *r) {
    const qkvi_pieces *const pieces = &r->tokenizer->pieces;
    size_t n = 0;
    if (pieces->n_hidden == 0) return QKV_OK;
    const char *const token = qkvi_pieces_token(pieces, pieces->first_hidden, &n);
    return QKVI_TOKENIZER_FAIL(r, QKV_ERR_FORMAT, "model.vocab: \"%s\" is a duplicate key",
                               QKVI_PRINTABLE_BYTES(96, token, n));
}

qkv_status qkvi_tokenizer_read_words(const qkvi_tokenizer_reader *r, const json_t *model) {
    const json_t *vocab = NULL;
    const qkvi_json_reader inner = qkvi_tokenizer_fields(r, "model", model);
    QKV_TRY(qkvi_json_take_object(&inner, "vocab", &vocab));
    if (vocab == NULL) return QKVI_TOKENIZER_FAIL(r, QKV_ERR_FORMAT, "model.vocab is missing");
    if (r->words && r->words->vocab.end > 0)
        QKV_TRY(walk_vocab(r, r->words->vocab));
    else
        QKV_TRY(qkvi_tokenizer_read_ids(r, "model.vocab", vocab));
    QKV_TRY(qkvi_tokenizer_seal_model(r->tokenizer, r->error));
    return qkvi_tokenizer_check_twice(r);
}

qkv_status qkvi_tokenizer_set_unk(const qkvi_tokenizer_reader *r, const char *unk, int32_t *id) {
    *id = qkvi_pieces_find(&r->tokenizer->pieces, unk, strlen(unk));
    r->tokenizer->special[QKV_TOKEN_UNK] = *id;
    if (*id >= 0) return QKV_OK;
    return QKVI_TOKENIZER_FAIL(r, QKV_ERR_FORMAT, "model.unk_token \"%s\" is not in model.vocab",
                               QKVI_PRINTABLE(96, unk));
}
