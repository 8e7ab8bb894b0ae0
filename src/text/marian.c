/** Marian's tokenizer as a kind; see marian.h. */
#include "text/marian.h"

#include "core/find.h"
#include "files/utf8.h"
#include "text/byte_level.h"
#include "text/tokenizer_json.h"
#include "text/unicode.h"

/* One call of encode. */
struct work {
    const qkv_tokenizer *tokenizer;
    qkvi_tokens *list;
    uint32_t begin; /* of the text that the .spm sees */
};

static void *start(const qkv_tokenizer *tokenizer, qkvi_tokens *list) {
    struct work *work = calloc(1, sizeof *work);
    if (work) *work = (struct work){ .tokenizer = tokenizer, .list = list };
    return work;
}

/* The id of bytes that may be a token. */
static int32_t id_of(const qkv_tokenizer *tokenizer, const char *bytes, size_t n_bytes) {
    const int32_t id = qkv_tokenizer_id(tokenizer, bytes, n_bytes);
    return id >= 0 ? id : tokenizer->special[QKV_TOKEN_UNK];
}

static qkv_status push(void *user, const qkvi_spm_token *token) {
    const struct work *work = user;
    const qkvi_marian *model = work->tokenizer->model;
    const int32_t id = token->id == model->spm.unk
                           ? id_of(work->tokenizer, token->piece, token->n_bytes)
                           : model->ids[token->id];
    return qkvi_tokens_push(work->list, id, work->begin + token->begin, work->begin + token->end);
}

/* The bytes of a language code ">>…<<" at the front, 0 if there is none. */
static uint32_t code_bytes(const char *text, uint32_t n) {
    if (n < 4 || memcmp(text, ">>", 2) != 0) return 0;
    const char *end = qkvi_find(text, n, "<<", 2);
    return end ? (uint32_t)(end - text) + 2 : 0;
}

static qkv_status encode(void *user, const char *text, uint32_t begin, uint32_t end) {
    struct work *work = user;
    const qkvi_marian *model = work->tokenizer->model;
    const uint32_t code = code_bytes(text + begin, end - begin);
    if (code > 0)
        QKV_TRY(qkvi_tokens_push(work->list, id_of(work->tokenizer, text + begin, code), begin,
                                 begin + code));
    work->begin = begin + code;
    return qkvi_spm_encode(&model->spm, text + work->begin, end - work->begin, push, work);
}

/* U+2581 begins a word. */
static int piece(const qkv_tokenizer *tokenizer, int32_t id, char *text, size_t *n_bytes) {
    const char *token = qkv_tokenizer_token(tokenizer, id, n_bytes);
    const int begins = *n_bytes >= 3 && memcmp(token, "\xE2\x96\x81", 3) == 0;
    if (begins) *n_bytes -= 3;
    memcpy(text, begins ? token + 3 : token, *n_bytes);
    return !begins;
}

/* The ids of all pieces at once, after the tokenizer was sealed: each is looked up here and never
 * again. MEMORY. */
static qkv_status marian_number(const qkv_tokenizer *tokenizer, qkv_error *error) {
    qkvi_marian *model = tokenizer->model;
    const qkvi_pieces *pieces = &model->spm.pieces;
    model->ids = qkvi_malloc_array((size_t)pieces->n_ids, sizeof *model->ids);
    if (model->ids == NULL) return qkvi_no_memory(error, "the vocabulary");
    for (int32_t i = 0; i < pieces->n_ids; i++)
        model->ids[i] = id_of(tokenizer, pieces->bytes + pieces->tokens[i].offset,
                              (size_t)pieces->tokens[i].length);
    return QKV_OK;
}

/* The text of ids: transformers' convert_tokens_to_string. Special tokens stand as they are
 * written, with a space behind; what is between is the .spm's; white space at the ends goes. */
static qkv_status decode_between(const qkv_tokenizer *tokenizer, const int32_t *ids, size_t n,
                                 qkvi_growing *text) {
    const qkvi_marian *model = tokenizer->model;
    qkvi_spm_decoder decoder = { .spm = &model->spm };
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        size_t n_bytes = 0;
        const char *token = qkv_tokenizer_token(tokenizer, ids[i], &n_bytes);
        status = qkvi_spm_decode(&decoder, token, n_bytes);
    }
    if (status == QKV_OK) status = qkvi_spm_decode_end(&decoder);
    if (status == QKV_OK) status = qkvi_growing_put(text, decoder.bytes, decoder.n_bytes);
    qkvi_spm_decoder_free(&decoder);
    return status;
}

static size_t count_between(const qkv_tokenizer *tokenizer, const int32_t *ids, size_t n) {
    const qkvi_added *const added = &tokenizer->added;
    size_t i = 0;
    while (i < n && !(ids[i] < added->n_ids && (added->flags[ids[i]] & QKVI_ADDED_SPECIAL))) i++;
    return i;
}

/* What Python's strip() takes away. */
static int is_blank(const char *bytes, size_t n) {
    int32_t code;
    return n > 0 && qkvi_utf8_next(bytes, n, &code) > 0 && qkvi_char_strips(code);
}

/* The place of the last character. */
static size_t last_char(const char *bytes, size_t n) {
    size_t at = n - 1;
    while (at > 0 && ((unsigned char)bytes[at] & 0xC0) == 0x80) at--;
    return at;
}

/* A sign of a space that is in no piece of the .spm is one, too; and the ends are trimmed. */
static void tidy(qkvi_growing *text) {
    char *bytes = text->bytes;
    size_t n = 0, begin = 0;
    for (size_t i = 0; i < text->n; n++) {
        const int is_sign = text->n - i >= 3 && memcmp(bytes + i, "\xE2\x96\x81", 3) == 0;
        bytes[n] = is_sign ? ' ' : bytes[i];
        i += is_sign ? 3 : 1;
    }
    while (n > 0 && is_blank(bytes + last_char(bytes, n), n - last_char(bytes, n)))
        n = last_char(bytes, n);
    while (begin < n && is_blank(bytes + begin, n - begin)) {
        int32_t code;
        begin += qkvi_utf8_next(bytes + begin, n - begin, &code);
    }
    if (begin > 0) memmove(bytes, bytes + begin, n - begin);
    text->n = n - begin;
}

static qkv_status decode(const qkv_tokenizer *tokenizer, const int32_t *ids, size_t n,
                         qkvi_growing *text) {
    for (size_t i = 0; i < n; i++) {
        const size_t between = count_between(tokenizer, ids + i, n - i);
        QKV_TRY(decode_between(tokenizer, ids + i, between, text));
        i += between;
        if (i == n) break;
        size_t n_bytes = 0;
        const char *token = qkv_tokenizer_token(tokenizer, ids[i], &n_bytes);
        QKV_TRY(qkvi_growing_put(text, token, n_bytes));
        QKV_TRY(qkvi_growing_put(text, " ", 1));
    }
    tidy(text);
    return QKV_OK;
}

/* U+2581 is a space, and a byte piece its byte. */
static qkv_status show(const qkv_tokenizer *tokenizer, int32_t id, qkvi_growing *text) {
    const qkvi_marian *model = tokenizer->model;
    size_t n_bytes = 0;
    const char *token = qkv_tokenizer_token(tokenizer, id, &n_bytes);
    const int32_t piece_id = qkvi_spm_id(&model->spm, token, n_bytes);
    if (piece_id >= 0 && model->spm.types[piece_id] == QKVI_SPM_BYTE) {
        const char byte = (char)qkvi_spm_byte(token, n_bytes);
        return qkvi_show(&byte, 1, text);
    }
    while (n_bytes > 0) {
        const char *const sign = qkvi_find(token, n_bytes, "\xE2\x96\x81", 3);
        const size_t before = sign ? (size_t)(sign - token) : n_bytes,
                     gone = before + (sign ? 3 : 0);
        QKV_TRY(qkvi_show(token, before, text));
        if (sign) QKV_TRY(qkvi_show(" ", 1, text));
        token += gone;
        n_bytes -= gone;
    }
    return QKV_OK;
}

static void free_model(void *user) {
    qkvi_marian *model = user;
    if (model == NULL) return;
    qkvi_spm_free(&model->spm);
    free(model->ids);
    free(model);
}

const qkvi_tokenizer_kind qkvi_marian_kind = {
    .name = "Marian",
    .start = start,
    .encode = encode,
    .finish = free,
    .piece = piece,
    .decode = decode,
    .show = show,
    .free = free_model,
};

/* ---- Files ----------------------------------------------------------------------------------- */

/*
 * The files of a Marian folder, read; see marian.h.
 *
 * unk and eos are in the vocabulary. sp_model_kwargs may only be empty: sampling would give other
 * ids each time.
 */

qkv_status qkvi_marian_separate(const qkvi_text_file *config, int *separate, qkv_error *error) {
    json_t *root = NULL;
    *separate = 0;
    if (config->bytes == NULL) return QKV_OK;
    QKV_TRY(qkvi_json_load(config->name, config->bytes, config->n_bytes,
                           &qkvi_json_limits_tokenizer, &root, error));
    const qkvi_json_reader reader = { config->name, "", root, error };
    const qkv_status status = qkvi_json_take_bool(&reader, "separate_vocabs", separate);
    json_decref(root);
    return status;
}

static qkv_status check_settings(const qkvi_settings *s) {
    const char *const file = s->files->tokenizer_config.name;
    const qkvi_json_reader reader = { file, "", s->tokenizer_config, s->error };
    const json_t *sampling = NULL;
    if (s->tokenizer_config) QKV_TRY(qkvi_json_take_object(&reader, "sp_model_kwargs", &sampling));
    if (json_object_size(sampling) == 0) return QKV_OK;
    return qkvi_error_set(s->error, QKV_ERR_UNSUPPORTED,
                          "%s: sp_model_kwargs is not empty: that is not supported", file);
}

/* ---- The vocabulary -------------------------------------------------------------------------- */

static qkv_status need(const qkvi_settings *s, const char *field, qkvi_named which,
                       const qkv_tokenizer *tokenizer) {
    const char *const token = s->named[which].content;
    if (*token == '\0')
        return qkvi_error_set(s->error, QKV_ERR_FORMAT, "%s: %s is the empty token",
                              s->files->vocab.name, field);
    if (qkvi_pieces_find(&tokenizer->pieces, token, strlen(token)) >= 0) return QKV_OK;
    return qkvi_error_set(s->error, QKV_ERR_FORMAT, "%s: %s \"%s\" is not there",
                          s->files->vocab.name, field, QKVI_PRINTABLE(96, token));
}

static qkv_status read_words(const qkvi_settings *s, const json_t *vocab,
                             qkv_tokenizer *tokenizer) {
    const qkvi_tokenizer_reader r = { s->files->vocab.name, NULL, tokenizer, s->error, 0, NULL };
    QKV_TRY(qkvi_tokenizer_read_ids(&r, "the vocabulary", vocab));
    QKV_TRY(qkvi_tokenizer_seal_model(tokenizer, s->error));
    QKV_TRY(need(s, "unk_token", QKVI_UNK, tokenizer));
    QKV_TRY(need(s, "eos_token", QKVI_EOS, tokenizer));
    QKV_TRY(qkvi_settings_add_tokens(s, NULL, tokenizer));
    const int32_t eos = qkvi_settings_id(s, QKVI_EOS, tokenizer);
    tokenizer->special[QKV_TOKEN_SEP] = eos;
    tokenizer->single = (qkvi_template){ 2, { { QKVI_TEMPLATE_TEXT, 0 }, { eos, 0 } } };
    tokenizer->pair =
        (qkvi_template){ 3, { { QKVI_TEMPLATE_TEXT, 0 }, { QKVI_TEMPLATE_PAIR, 0 }, { eos, 0 } } };
    QKV_TRY(qkvi_settings_apply(s, tokenizer));
    return marian_number(tokenizer, s->error);
}

/* ---- The whole ------------------------------------------------------------------------------- */

static qkv_status make(const qkvi_text_file *spm, qkv_tokenizer **tokenizer, qkv_error *error) {
    qkvi_marian *model = calloc(1, sizeof *model);
    if (model == NULL)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory for a tokenizer", spm->name);
    const qkv_status status =
        qkvi_spm_open(&model->spm, spm->name, spm->bytes, spm->n_bytes, error);
    if (status != QKV_OK) {
        free(model);
        return status;
    }
    *tokenizer = qkvi_tokenizer_new(&qkvi_marian_kind, model);
    if (*tokenizer) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory for a tokenizer", spm->name);
}

static qkv_status read_all(const qkvi_settings *s, qkv_tokenizer **tokenizer) {
    const qkvi_text_file *const file = &s->files->vocab;
    json_t *vocab = NULL;
    QKV_TRY(check_settings(s));
    QKV_TRY(make(&s->files->spm, tokenizer, s->error));
    QKV_TRY(qkvi_json_load(file->name, file->bytes, file->n_bytes, &qkvi_json_limits_tokenizer,
                           &vocab, s->error));
    const qkv_status status = read_words(s, vocab, *tokenizer);
    json_decref(vocab);
    return status;
}

qkv_status qkvi_marian_read(const qkvi_text_files *files, int is_other, qkv_tokenizer **tokenizer,
                            qkv_error *error) {
    static const qkvi_settings_wanted wanted = { "source.spm and target.spm", QKVI_MADE_BY_MARIAN,
                                                 QKVI_MADE_BY_MARIAN, 1 };
    qkvi_settings settings;
    *tokenizer = NULL;
    qkv_status status = qkvi_settings_read(files, &wanted, &settings, error);
    settings.is_other = is_other;
    if (status == QKV_OK) status = read_all(&settings, tokenizer);
    qkvi_settings_free(&settings);
    if (status == QKV_OK) return QKV_OK;
    qkv_tokenizer_free(*tokenizer);
    *tokenizer = NULL;
    return status;
}
