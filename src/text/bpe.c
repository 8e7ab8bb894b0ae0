/**
 * Byte-level BPE as a kind of tokenizer: making and decoding; also the merges of both kinds of BPE.
 * Encoding is in bpe_encode.c.
 */
#include "text/bpe.h"

#include <assert.h>

#include "files/json.h"
#include "files/utf8.h"
#include "text/byte_level.h"
#include "text/unicode.h"

static const char end_of_word[] = "</w>"; /* of CLIP */

/* Bytes of a token without it; 0: it does not end so. */
static size_t without_end(const qkv_tokenizer *tokenizer, const char *token, size_t n) {
    const qkvi_bpe *const model = tokenizer->model;
    const size_t n_end = sizeof end_of_word - 1;
    const bool ends =
        model->ends_words && n > n_end && memcmp(token + n - n_end, end_of_word, n_end) == 0;
    return ends ? n - n_end : 0;
}

static size_t bytes_of(const qkv_tokenizer *tokenizer, int32_t id,
                       char bytes[QKVI_PIECE_MAX_BYTES]) {
    size_t n = 0;
    const char *token = qkv_tokenizer_token(tokenizer, id, &n);
    const size_t cut = without_end(tokenizer, token, n);
    return qkvi_byte_level_bytes(token, cut > 0 ? cut : n, bytes);
}

/* A token continues a word unless it begins with white space, punctuation or a symbol. */
static int piece(const qkv_tokenizer *tokenizer, int32_t id, char *text, size_t *n_bytes) {
    size_t n = bytes_of(tokenizer, id, text), length = 0;
    int32_t code = 'x'; /* a part of a character is of some letter */
    const int space = n > 0 && text[0] == ' ';
    if (space) memmove(text, text + 1, --n);
    if (n > 0) length = qkvi_utf8_next(text, n, &code);
    *n_bytes = n;
    /* Of CLIP a token does not tell what stands before it. */
    if (((const qkvi_bpe *)tokenizer->model)->ends_words) return 0;
    const qkvi_char_group group = qkvi_char_group_of(length > 0 ? code : 'x');
    return !space && n > 0 && (group == QKVI_GROUP_LETTER || group == QKVI_GROUP_NUMBER);
}

static qkv_status decode(const qkv_tokenizer *tokenizer, const int32_t *ids, size_t n,
                         qkvi_growing *text) {
    qkvi_growing bytes = { 0 };
    qkv_status status = QKV_OK;
    char token[QKVI_PIECE_MAX_BYTES];
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        size_t n_bytes = 0;
        const char *const decoded = qkvi_tokenizer_decoded(tokenizer, ids[i], &n_bytes);
        const size_t cut = without_end(tokenizer, decoded, n_bytes);
        n_bytes = qkvi_byte_level_bytes(decoded, cut > 0 ? cut : n_bytes, token);
        status = qkvi_growing_put(&bytes, token, n_bytes);
        if (status == QKV_OK && cut > 0 && i + 1 < n) status = qkvi_growing_put(&bytes, " ", 1);
    }
    if (status == QKV_OK) status = qkvi_byte_level_text(bytes.bytes, bytes.n, text);
    free(bytes.bytes);
    return status;
}

static qkv_status show(const qkv_tokenizer *tokenizer, int32_t id, qkvi_growing *text) {
    char bytes[QKVI_PIECE_MAX_BYTES];
    return qkvi_show(bytes, bytes_of(tokenizer, id, bytes), text);
}

/* ---- The model ------------------------------------------------------------------------------- */

/* The tokens of single bytes. */
static qkv_status seal(qkv_tokenizer *tokenizer, qkv_error *error) {
    qkvi_bpe *model = tokenizer->model;
    (void)error;
    for (int byte = 0; byte < 256; byte++) {
        char token[4 + sizeof end_of_word];
        const size_t n = qkvi_utf8_put(qkvi_byte_char(byte), token);
        model->byte_ids[byte] = qkvi_pieces_find(&tokenizer->pieces, token, n);
        memcpy(token + n, end_of_word, sizeof end_of_word - 1);
        model->last_ids[byte] =
            qkvi_pieces_find(&tokenizer->pieces, token, n + sizeof end_of_word - 1);
    }
    return QKV_OK;
}

static qkv_status merge_failed(const char *file, const char *place, const char *token, size_t n,
                               qkv_error *error) {
    return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: %s: \"%s\" is not in the vocabulary", file,
                          place, QKVI_PRINTABLE_BYTES(96, token, n));
}

qkv_status qkvi_bpe_add_merge(qkv_tokenizer *tokenizer, const char *file, const char *place,
                              const char *const parts[2], const size_t n[2], qkv_error *error) {
    qkvi_bpe *model = tokenizer->model;
    const qkvi_pieces *pieces = &tokenizer->pieces;
    char both[2 * QKVI_PIECE_MAX_BYTES];
    int32_t ids[2];
    for (int i = 0; i < 2; i++) {
        ids[i] = qkvi_pieces_find(pieces, parts[i], n[i]);
        if (ids[i] < 0) return merge_failed(file, place, parts[i], n[i], error);
    }
    memcpy(both, parts[0], n[0]); /* each is a token, so not longer than half of it */
    memcpy(both + n[0], parts[1], n[1]);
    const int32_t id = qkvi_pieces_find(pieces, both, n[0] + n[1]);
    if (id < 0) return merge_failed(file, place, both, n[0] + n[1], error);
    const qkv_status status = qkvi_ranks_add(&model->ranks, ids[0], ids[1], id);
    if (status == QKV_ERR_LIMIT)
        return qkvi_error_set(error, status, "%s: more than %d merges, the limit", file,
                              QKVI_RANKS_MAX);
    if (status != QKV_OK)
        return qkvi_error_set(error, status, "%s: no memory for the merges", file);
    return QKV_OK;
}

qkv_status qkvi_bpe_end_merges(qkv_tokenizer *tokenizer, const char *file, qkv_error *error) {
    qkvi_bpe *model = tokenizer->model;
    if (qkvi_ranks_seal(&model->ranks, tokenizer->pieces.n_ids) == QKV_OK) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory for the merges", file);
}

void qkvi_bpe_free_model(void *user) {
    qkvi_bpe *model = user;
    if (model == NULL) return;
    qkvi_ranks_free(&model->ranks);
    free(model);
}

const qkvi_tokenizer_kind qkvi_bpe_kind = {
    .name = "BPE",
    .decoder = "ByteLevel",
    .may_be_bare = 1,
    .seal = seal,
    .start = qkvi_bpe_start,
    .encode = qkvi_bpe_encode,
    .normalize = qkvi_bpe_normalize,
    .encode_normal = qkvi_bpe_encode_normal,
    .is_normal = qkvi_bpe_is_normal,
    .finish = qkvi_bpe_finish,
    .piece = piece,
    .decode = decode,
    .show = show,
    .free = qkvi_bpe_free_model,
};

qkv_tokenizer *qkvi_bpe_new(void) {
    qkvi_bpe *model = calloc(1, sizeof *model);
    if (model == NULL) return NULL;
    model->unk = -1;
    model->gpt2_words = 1;
    return qkvi_tokenizer_new(&qkvi_bpe_kind, model);
}

qkvi_bpe *qkvi_bpe_of(const qkv_tokenizer *tokenizer) {
    assert(tokenizer->kind == &qkvi_bpe_kind || tokenizer->kind == &qkvi_metaspace_kind);
    return tokenizer->model;
}
