/**
 * Text to tokens: the template around the text, the tokens that are cut out of it raw, and
 * WordPiece for what is between.
 *
 * Order matters and is the reference's: special tokens are found in the raw bytes, before any
 * normalisation, the longest one first; each stretch between two of them is normalised by itself.
 */
#include "model/text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/status.h"
#include "model/text/unicode.h"

const char *const qkvi_role_names[QKVI_N_ROLES] = { "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]" };

/* ---- Making
 * ------------------------------------------------------------------------------------------------
 * */

qkv_tokenizer *qkvi_tokenizer_new(void) {
    qkv_tokenizer *tokenizer = calloc(1, sizeof *tokenizer);
    if (tokenizer == NULL) return NULL;
    tokenizer->rules = (qkvi_bert_rules){ 1, 1, 1, 1 };
    tokenizer->model.max_chars = QKVI_WORDPIECE_MAX_CHARS;
    tokenizer->model.unk = -1;
    memcpy(tokenizer->model.mark, "##", 3);
    for (int role = 0; role < QKVI_N_ROLES; role++) tokenizer->special[role] = -1;
    return tokenizer;
}

void qkv_tokenizer_free(qkv_tokenizer *tokenizer) {
    if (tokenizer == NULL) return;
    qkvi_pieces_free(&tokenizer->model.pieces);
    qkvi_pieces_free(&tokenizer->added);
    free(tokenizer);
}

qkv_status qkvi_tokenizer_seal_model(qkv_tokenizer *tokenizer, qkv_error *error) {
    qkvi_wordpiece *model = &tokenizer->model;
    if (qkvi_pieces_seal(&model->pieces) != QKV_OK)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for the vocabulary");
    model->continuing = qkvi_pieces_prefix(&model->pieces, model->mark, strlen(model->mark));
    return QKV_OK;
}

qkv_status qkvi_tokenizer_seal(qkv_tokenizer *tokenizer, qkv_error *error) {
    const qkvi_pieces *added = &tokenizer->added;
    if (qkvi_pieces_seal(&tokenizer->added) != QKV_OK)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for the added tokens");
    for (int32_t i = 0; i < added->n_sorted; i++) {
        const struct qkvi_piece token = added->tokens[added->sorted[i]];
        if (token.length > 0) tokenizer->added_first[(unsigned char)added->bytes[token.offset]] = 1;
    }
    for (int role = 0; role < QKVI_N_ROLES; role++) {
        const char *name = qkvi_role_names[role];
        if (tokenizer->special[role] < 0)
            tokenizer->special[role] = qkv_tokenizer_id(tokenizer, name, strlen(name));
    }
    return QKV_OK;
}

void qkvi_tokenizer_bert_templates(qkv_tokenizer *tokenizer, int32_t cls, int32_t sep) {
    tokenizer->single = (qkvi_template){ 3, { { cls, 0 }, { QKVI_TEMPLATE_TEXT, 0 }, { sep, 0 } } };
    tokenizer->pair = (qkvi_template){
        5,
        { { cls, 0 }, { QKVI_TEMPLATE_TEXT, 0 }, { sep, 0 }, { QKVI_TEMPLATE_PAIR, 1 }, { sep, 1 } }
    };
}

/* ---- Asking
 * ------------------------------------------------------------------------------------------------
 * */

int32_t qkv_tokenizer_size(const qkv_tokenizer *tokenizer) {
    const int32_t model = tokenizer->model.pieces.n_ids, added = tokenizer->added.n_ids;
    return model > added ? model : added;
}

static const char *token_of(const qkvi_pieces *pieces, int32_t id, size_t *bytes) {
    if (id < 0 || id >= pieces->n_ids || pieces->tokens[id].length < 0) return NULL;
    *bytes = (size_t)pieces->tokens[id].length;
    return pieces->bytes + pieces->tokens[id].offset;
}

const char *qkv_tokenizer_token(const qkv_tokenizer *tokenizer, int32_t id, size_t *bytes) {
    const char *token = token_of(&tokenizer->model.pieces, id, bytes);
    return token ? token : token_of(&tokenizer->added, id, bytes);
}

int32_t qkv_tokenizer_id(const qkv_tokenizer *tokenizer, const char *token, size_t bytes) {
    const int32_t id = qkvi_pieces_find(&tokenizer->model.pieces, token, bytes);
    return id >= 0 ? id : qkvi_pieces_find(&tokenizer->added, token, bytes);
}

int32_t qkv_tokenizer_special(const qkv_tokenizer *tokenizer, qkv_token_role role) {
    const int index = (int)role;
    return index >= 0 && index < QKVI_N_ROLES ? tokenizer->special[index] : -1;
}

int qkvi_tokenizer_continues(const qkv_tokenizer *tokenizer, int32_t id) {
    const size_t mark_bytes = strlen(tokenizer->model.mark);
    size_t bytes = 0;
    const char *token = token_of(&tokenizer->model.pieces, id, &bytes);
    return token && bytes > mark_bytes && memcmp(token, tokenizer->model.mark, mark_bytes) == 0;
}

/* ---- Encoding -------------------------------------------------------------------------------- */

struct token {
    int32_t id;
    uint8_t type, special;
    uint32_t begin, end;
};

/* An encoding being made. */
struct encoder {
    const qkv_tokenizer *tokenizer;
    struct token *tokens;
    int64_t n, capacity;
    qkvi_normalizer *normalizer;
    qkvi_word_piece *pieces; /* of one word */
    uint8_t type;            /* of the text being read */
};

static qkv_status push(struct encoder *e, struct token token) {
    if (e->n == e->capacity) {
        const int64_t capacity = e->capacity ? 2 * e->capacity : 64;
        struct token *tokens = qkvi_realloc_array(e->tokens, (size_t)capacity, sizeof *tokens);
        if (tokens == NULL) return QKV_ERR_MEMORY;
        e->tokens = tokens;
        e->capacity = capacity;
    }
    e->tokens[e->n++] = token;
    return QKV_OK;
}

static qkv_status push_word(void *user, const qkvi_word *word) {
    struct encoder *e = user;
    const size_t n = qkvi_wordpiece_split(&e->tokenizer->model, word, e->pieces);
    for (size_t i = 0; i < n; i++) {
        const qkvi_word_piece piece = e->pieces[i];
        QKV_TRY(push(e, (struct token){ piece.id, e->type, 0, piece.begin, piece.end }));
    }
    return QKV_OK;
}

/* The added token that text[at …) begins with, the longest; -1 if there is none. */
static int32_t added_at(const qkv_tokenizer *tokenizer, const char *text, uint32_t at, uint32_t n,
                        uint32_t *length) {
    if (!tokenizer->added_first[(unsigned char)text[at]]) return -1;
    const qkvi_prefix whole = { 0, tokenizer->added.n_sorted, 0 };
    size_t bytes = 0;
    const int32_t id =
        qkvi_pieces_longest(&tokenizer->added, whole, text + at, (size_t)(n - at), &bytes);
    *length = (uint32_t)bytes;
    return id;
}

static qkv_status push_text(struct encoder *e, const char *text, uint32_t n) {
    uint32_t begin = 0; /* of the stretch since the last added token */
    for (uint32_t at = 0; at < n;) {
        uint32_t length = 0;
        const int32_t id = added_at(e->tokenizer, text, at, n, &length);
        if (id < 0) {
            at++;
            continue;
        }
        QKV_TRY(qkvi_normalize(e->normalizer, text, begin, at));
        QKV_TRY(push(e, (struct token){ id, e->type, 1, at, at + length }));
        at += length;
        begin = at;
    }
    return qkvi_normalize(e->normalizer, text, begin, n);
}

static qkv_status push_template(struct encoder *e, const qkvi_template *template,
                                const char *const texts[2], const size_t bytes[2]) {
    uint32_t at = 0; /* where an inserted token stands */
    for (int i = 0; i < template->n; i++) {
        const qkvi_template_item item = template->items[i];
        e->type = item.type;
        if (item.id >= 0) {
            QKV_TRY(push(e, (struct token){ item.id, item.type, 1, at, at }));
        } else {
            const int which = item.id == QKVI_TEMPLATE_PAIR;
            at = (uint32_t)bytes[which];
            QKV_TRY(push_text(e, texts[which], at));
        }
    }
    return QKV_OK;
}

static qkv_status finish(const struct encoder *e, qkv_encoding **encoding) {
    qkv_encoding *out = calloc(1, sizeof *out);
    if (out == NULL) return QKV_ERR_MEMORY;
    const size_t n = (size_t)e->n;
    out->n = e->n;
    out->ids = qkvi_malloc_array(n, sizeof *out->ids);
    out->types = qkvi_malloc_array(n, sizeof *out->types);
    out->special = qkvi_malloc_array(n, sizeof *out->special);
    out->begin = qkvi_malloc_array(n, sizeof *out->begin);
    out->end = qkvi_malloc_array(n, sizeof *out->end);
    if (!out->ids || !out->types || !out->special || !out->begin || !out->end) {
        qkv_encoding_free(out);
        return QKV_ERR_MEMORY;
    }
    for (size_t i = 0; i < n; i++) {
        out->ids[i] = e->tokens[i].id;
        out->types[i] = e->tokens[i].type;
        out->special[i] = e->tokens[i].special;
        out->begin[i] = e->tokens[i].begin;
        out->end[i] = e->tokens[i].end;
    }
    *encoding = out;
    return QKV_OK;
}

void qkv_encoding_free(qkv_encoding *encoding) {
    if (encoding == NULL) return;
    free(encoding->ids);
    free(encoding->types);
    free(encoding->special);
    free(encoding->begin);
    free(encoding->end);
    free(encoding);
}

static qkv_status check_text(const char *name, const char *text, size_t bytes, qkv_error *error) {
    if (text == NULL && bytes > 0)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL but has %zu bytes", name, bytes);
    if (bytes > UINT32_MAX)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "%s has %zu bytes, the limit is %u", name,
                              bytes, UINT32_MAX);
    const size_t valid = qkvi_utf8_valid(text, bytes);
    if (valid < bytes)
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s is not valid UTF-8 at byte %zu", name,
                              valid);
    return QKV_OK;
}

qkv_status qkv_tokenizer_encode(const qkv_tokenizer *tokenizer, const char *text, size_t text_bytes,
                                const char *pair, size_t pair_bytes, qkv_encoding **encoding,
                                qkv_error *error) {
    if (encoding == NULL || tokenizer == NULL)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              encoding ? "tokenizer" : "encoding");
    *encoding = NULL;
    QKV_TRY(check_text("text", text, text_bytes, error));
    QKV_TRY(check_text("pair", pair, pair_bytes, error));

    const char *const texts[2] = { text, pair };
    const size_t bytes[2] = { text_bytes, pair_bytes };
    const uint32_t max_chars = tokenizer->model.max_chars;
    struct encoder e = { .tokenizer = tokenizer };
    e.pieces = qkvi_malloc_array((size_t)max_chars + 1, sizeof *e.pieces);
    e.normalizer = qkvi_normalizer_create(&tokenizer->rules, max_chars, push_word, &e);
    qkv_status status = QKV_ERR_MEMORY;
    if (e.pieces && e.normalizer)
        status = push_template(&e, pair ? &tokenizer->pair : &tokenizer->single, texts, bytes);
    if (status == QKV_OK) status = finish(&e, encoding);
    qkvi_normalizer_free(e.normalizer);
    free(e.pieces);
    free(e.tokens);
    if (status == QKV_ERR_MEMORY)
        return qkvi_error_set(error, status, "no memory for the tokens of %zu bytes",
                              text_bytes + pair_bytes);
    return status;
}
