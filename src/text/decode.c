/**
 * Decoding, as far as all kinds of tokenizers share it: checks ids, and leaves out or keeps special
 * tokens. What comes between tokens depends on the decoder.
 */

#include "text/tokenizer.h"

/* Tokenizers without a decoder: "a b". */
static qkv_status decode_plain(const qkv_tokenizer *tokenizer, const int32_t *ids, size_t n,
                               qkvi_growing *text) {
    for (size_t i = 0; i < n; i++) {
        size_t n_bytes = 0;
        const char *token = qkvi_tokenizer_decoded(tokenizer, ids[i], &n_bytes);
        if (i > 0) QKV_TRY(qkvi_growing_put(text, " ", 1));
        QKV_TRY(qkvi_growing_put(text, token, n_bytes));
    }
    return QKV_OK;
}

/*
 * As in the reference, what a token becomes must be a special token's own text: what the normaliser
 * changed is none.
 */
static int is_special(const qkv_tokenizer *tokenizer, int32_t id) {
    const qkvi_added *const added = &tokenizer->added;
    size_t n_bytes = 0;
    if (id >= added->n_ids || !(added->flags[id] & QKVI_ADDED_SPECIAL)) return 0;
    const char *const token = qkvi_tokenizer_decoded(tokenizer, id, &n_bytes);
    const int32_t found = qkvi_added_find(added, token, n_bytes);
    return found >= 0 && (added->flags[found] & QKVI_ADDED_SPECIAL);
}

/* The ids that become text. */
static qkv_status choose(const qkv_tokenizer *tokenizer, const int32_t *ids, int64_t n, int flags,
                         int32_t *chosen, size_t *n_chosen, qkv_error *error) {
    for (int64_t i = 0; i < n; i++) {
        size_t n_bytes;
        if (!qkv_tokenizer_token(tokenizer, ids[i], &n_bytes))
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "ids[%lld] = %d: no token has this id",
                                  (long long)i, ids[i]);
        if (!(flags & QKV_DECODE_SKIP_SPECIAL) || !is_special(tokenizer, ids[i]))
            chosen[(*n_chosen)++] = ids[i];
    }
    return QKV_OK;
}

/* Takes text. */
static qkv_status finish(qkvi_growing *text, qkv_status status, qkv_text **out, qkv_error *error) {
    qkv_text *result = NULL;
    if (status == QKV_OK) status = qkvi_growing_put(text, "", 1);
    if (status == QKV_OK) {
        result = malloc(sizeof *result);
        if (result == NULL) status = QKV_ERR_MEMORY;
    }
    if (status != QKV_OK) {
        free(text->bytes);
        return status == QKV_ERR_MEMORY ? qkvi_error_set(error, status, "no memory for a text")
                                        : status;
    }
    *result = (qkv_text){ text->bytes, (int64_t)text->n - 1 };
    *out = result;
    return QKV_OK;
}

static qkv_status check(const qkv_tokenizer *tokenizer, const int32_t *ids, int64_t n,
                        qkv_text **text, qkv_error *error) {
    if (text == NULL) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "text is NULL");
    *text = NULL;
    if (tokenizer == NULL) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "tokenizer is NULL");
    if (n < 0) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "n = %lld is negative", (long long)n);
    if (ids == NULL && n > 0) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "ids is NULL");
    return QKV_OK;
}

/* The decoder of a tokenizer. */
typedef qkv_status decoder(const qkv_tokenizer *tokenizer, const int32_t *ids, size_t n,
                           qkvi_growing *text);

static decoder *decoder_of(const qkv_tokenizer *tokenizer, int goes_on) {
    const qkvi_tokenizer_kind *const kind = tokenizer->kind;
    if (tokenizer->decoder == QKVI_DECODER_PLAIN) return decode_plain;
    return goes_on && kind->decode_on ? kind->decode_on : kind->decode;
}

static qkv_status decode(const qkv_tokenizer *tokenizer, const int32_t *ids, int64_t n, int flags,
                         int goes_on, qkv_text **out, qkv_error *error) {
    if (tokenizer->decoder == QKVI_DECODER_OTHER)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "the decoder of this tokenizer is not supported");
    int32_t *chosen = qkvi_malloc_array((size_t)n, sizeof *chosen);
    if (chosen == NULL)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld ids", (long long)n);
    size_t n_chosen = 0;
    qkvi_growing text = { 0 };
    qkv_status status = choose(tokenizer, ids, n, flags, chosen, &n_chosen, error);
    if (status == QKV_OK)
        status = decoder_of(tokenizer, goes_on)(tokenizer, chosen, n_chosen, &text);
    free(chosen);
    return finish(&text, status, out, error);
}

qkv_status qkv_tokenizer_decode(const qkv_tokenizer *tokenizer, const int32_t *ids, int64_t n,
                                int flags, qkv_text **out, qkv_error *error) {
    QKV_TRY(check(tokenizer, ids, n, out, error));
    if (flags & ~QKV_DECODE_SKIP_SPECIAL)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "flags = %d has unknown bits", flags);
    return decode(tokenizer, ids, n, flags, 0, out, error);
}

qkv_status qkvi_tokenizer_decode_on(const qkv_tokenizer *tokenizer, const int32_t *ids, int64_t n,
                                    qkv_text **out, qkv_error *error) {
    QKV_TRY(check(tokenizer, ids, n, out, error));
    return decode(tokenizer, ids, n, QKV_DECODE_SKIP_SPECIAL, 1, out, error);
}

qkv_status qkv_tokenizer_show(const qkv_tokenizer *tokenizer, int32_t id, qkv_text **out,
                              qkv_error *error) {
    QKV_TRY(check(tokenizer, &id, 1, out, error));
    qkvi_growing text = { 0 };
    size_t n_bytes = 0;
    const char *token = qkv_tokenizer_token(tokenizer, id, &n_bytes);
    if (token == NULL)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "id = %d: no token has this id", id);
    size_t ignored;
    const int is_added = qkvi_added_token(&tokenizer->added, id, &ignored) != NULL;
    const qkv_status status = tokenizer->kind->show && !is_added
                                  ? tokenizer->kind->show(tokenizer, id, &text)
                                  : qkvi_growing_put(&text, token, n_bytes);
    return finish(&text, status, out, error);
}

void qkv_text_free(qkv_text *text) {
    if (text == NULL) return;
    free(text->bytes);
    free(text);
}
