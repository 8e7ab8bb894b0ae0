/** A tokenizer: making, freeing, and what ids and tokens it has. Encoding is in encode.c. */
#include "model/text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "core/status.h"

const char *const qkvi_role_names[QKVI_N_ROLES] = { "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]" };

/* ---- Making
 * ------------------------------------------------------------------------------------------------
 * */

qkv_tokenizer *qkvi_tokenizer_new(const qkvi_tokenizer_kind *kind, void *model) {
    qkv_tokenizer *tokenizer = model ? calloc(1, sizeof *tokenizer) : NULL;
    if (tokenizer == NULL) {
        kind->free(model);
        return NULL;
    }
    tokenizer->kind = kind;
    tokenizer->model = model;
    for (int role = 0; role < QKVI_N_ROLES; role++) tokenizer->special[role] = -1;
    return tokenizer;
}

void qkv_tokenizer_free(qkv_tokenizer *tokenizer) {
    if (tokenizer == NULL) return;
    tokenizer->kind->free(tokenizer->model);
    qkvi_pieces_free(&tokenizer->pieces);
    qkvi_pieces_free(&tokenizer->added);
    free(tokenizer);
}

qkv_status qkvi_tokenizer_seal_model(qkv_tokenizer *tokenizer, qkv_error *error) {
    if (qkvi_pieces_seal(&tokenizer->pieces) != QKV_OK)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for the vocabulary");
    return tokenizer->kind->seal ? tokenizer->kind->seal(tokenizer, error) : QKV_OK;
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
    const int32_t model = tokenizer->pieces.n_ids, added = tokenizer->added.n_ids;
    return model > added ? model : added;
}

static const char *token_of(const qkvi_pieces *pieces, int32_t id, size_t *bytes) {
    if (id < 0 || id >= pieces->n_ids || pieces->tokens[id].length < 0) return NULL;
    *bytes = (size_t)pieces->tokens[id].length;
    return pieces->bytes + pieces->tokens[id].offset;
}

const char *qkv_tokenizer_token(const qkv_tokenizer *tokenizer, int32_t id, size_t *bytes) {
    const char *token = token_of(&tokenizer->pieces, id, bytes);
    return token ? token : token_of(&tokenizer->added, id, bytes);
}

int32_t qkv_tokenizer_id(const qkv_tokenizer *tokenizer, const char *token, size_t bytes) {
    const int32_t id = qkvi_pieces_find(&tokenizer->pieces, token, bytes);
    return id >= 0 ? id : qkvi_pieces_find(&tokenizer->added, token, bytes);
}

int32_t qkv_tokenizer_special(const qkv_tokenizer *tokenizer, qkv_token_role role) {
    const int index = (int)role;
    return index >= 0 && index < QKVI_N_ROLES ? tokenizer->special[index] : -1;
}

int qkvi_tokenizer_piece(const qkv_tokenizer *tokenizer, int32_t id,
                         char text[QKVI_PIECE_MAX_BYTES], size_t *n_bytes) {
    *n_bytes = 0;
    if (token_of(&tokenizer->pieces, id, n_bytes))
        return tokenizer->kind->piece(tokenizer, id, text, n_bytes);
    const char *token = token_of(&tokenizer->added, id, n_bytes);
    if (token) memcpy(text, token, *n_bytes);
    return 0;
}
