/** A tokenizer: making, freeing, its ids and tokens. Encoding is in encode.c. */
#include "text/tokenizer.h"

const char *const qkvi_role_names[QKVI_N_ROLES] = { "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]" };

/* RoBERTa's, BART's and most others'. */
static const char *const other_role_names[QKVI_N_ROLES] = { "<unk>", "</s>", "<pad>", "<s>",
                                                            "<mask>" };

const qkvi_template qkvi_bare_single = { 1, { { QKVI_TEMPLATE_TEXT, 0 } } };
const qkvi_template qkvi_bare_pair = { 2,
                                       { { QKVI_TEMPLATE_TEXT, 0 }, { QKVI_TEMPLATE_PAIR, 1 } } };

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
    tokenizer->has_types = 1;
    tokenizer->max_len = QKVI_NO_LIMIT;
    for (int role = 0; role < QKVI_N_ROLES; role++) tokenizer->special[role] = -1;
    return tokenizer;
}

void qkv_tokenizer_free(qkv_tokenizer *tokenizer) {
    if (tokenizer == NULL) return;
    tokenizer->kind->free(tokenizer->model);
    qkvi_pieces_free(&tokenizer->pieces);
    qkvi_added_free(&tokenizer->added);
    qkvi_chat_free(&tokenizer->chat);
    free(tokenizer);
}

qkv_status qkvi_tokenizer_seal_model(qkv_tokenizer *tokenizer, qkv_error *error) {
    if (qkvi_pieces_seal(&tokenizer->pieces) != QKV_OK)
        return qkvi_no_memory(error, "the vocabulary");
    return tokenizer->kind->seal ? tokenizer->kind->seal(tokenizer, error) : QKV_OK;
}

/* Of the names that a role goes by the first that is a token. */
static int32_t find_role(const qkv_tokenizer *tokenizer, int role) {
    const char *const names[] = { qkvi_role_names[role], other_role_names[role] };
    int32_t id = -1;
    for (int i = 0; i < 2 && id < 0; i++)
        id = qkv_tokenizer_id(tokenizer, names[i], strlen(names[i]));
    return id;
}

/* What the kind's normaliser makes of a token. */
static qkv_status normalize(void *user, const char *token, size_t n_bytes, qkvi_growing *pattern) {
    const qkv_tokenizer *tokenizer = user;
    qkvi_tokens none = { 0 };
    qkvi_normal_text normal = { 0 };
    void *work = tokenizer->kind->start(tokenizer, &none);
    qkv_status status = work ? QKV_OK : QKV_ERR_MEMORY;
    if (work) status = tokenizer->kind->normalize(work, token, 0, (uint32_t)n_bytes, &normal);
    if (status == QKV_OK) status = qkvi_growing_put(pattern, normal.bytes.bytes, normal.bytes.n);
    tokenizer->kind->finish(work);
    qkvi_normal_text_free(&normal);
    return status;
}

qkv_status qkvi_tokenizer_seal(qkv_tokenizer *tokenizer, const char *file, qkv_error *error) {
    QKV_TRY(qkvi_added_seal(&tokenizer->added, file, tokenizer->normalizes ? normalize : NULL,
                            tokenizer, error));
    for (int role = 0; role < QKVI_N_ROLES; role++) {
        if (tokenizer->special[role] < 0) tokenizer->special[role] = find_role(tokenizer, role);
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

void qkvi_tokenizer_roberta_templates(qkv_tokenizer *tokenizer, int32_t cls, int32_t sep) {
    const qkvi_template_item before = { cls, 0 }, after = { sep, 0 };
    const qkvi_template_item a = { QKVI_TEMPLATE_TEXT, 0 }, b = { QKVI_TEMPLATE_PAIR, 0 };
    tokenizer->single = (qkvi_template){ 3, { before, a, after } };
    tokenizer->pair = (qkvi_template){ 6, { before, a, after, after, b, after } };
}

/* ---- Asking
 * ------------------------------------------------------------------------------------------------
 * */

int32_t qkv_tokenizer_size(const qkv_tokenizer *tokenizer) {
    if (!tokenizer) return 0;
    const int32_t model = tokenizer->pieces.n_ids, added = tokenizer->added.n_ids;
    return model > added ? model : added;
}

const char *qkv_tokenizer_token(const qkv_tokenizer *tokenizer, int32_t id, size_t *bytes) {
    if (!tokenizer || !bytes) return NULL;
    const char *token = qkvi_added_token(&tokenizer->added, id, bytes);
    return token ? token : qkvi_pieces_token(&tokenizer->pieces, id, bytes);
}

const char *qkvi_tokenizer_decoded(const qkv_tokenizer *tokenizer, int32_t id, size_t *n_bytes) {
    const char *pattern = qkvi_pieces_token(&tokenizer->added.passes[1].patterns, id, n_bytes);
    return pattern ? pattern : qkv_tokenizer_token(tokenizer, id, n_bytes);
}

int32_t qkv_tokenizer_id(const qkv_tokenizer *tokenizer, const char *token, size_t bytes) {
    if (!tokenizer || !token) return -1;
    const int32_t id = qkvi_added_find(&tokenizer->added, token, bytes);
    return id >= 0 ? id : qkvi_pieces_find(&tokenizer->pieces, token, bytes);
}

int32_t qkv_tokenizer_special(const qkv_tokenizer *tokenizer, qkv_token_role role) {
    const int index = (int)role;
    return tokenizer && index >= 0 && index < QKVI_N_ROLES ? tokenizer->special[index] : -1;
}

int qkvi_tokenizer_piece(const qkv_tokenizer *tokenizer, int32_t id,
                         char text[QKVI_PIECE_MAX_BYTES], size_t *n_bytes) {
    size_t ignored;
    *n_bytes = 0;
    const char *token = qkvi_added_token(&tokenizer->added, id, n_bytes);
    if (token)
        memcpy(text, token, *n_bytes);
    else if (qkvi_pieces_token(&tokenizer->pieces, id, &ignored))
        return tokenizer->kind->piece(tokenizer, id, text, n_bytes);
    return 0;
}
