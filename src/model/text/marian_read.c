/**
 * The files of a Marian folder, read; see marian.h.
 *
 * A special token is a string, or an object whose "content" is one, and must be in the vocabulary;
 * only pad may be missing. Each is cut out of the raw text. sp_model_kwargs may only be empty:
 * sampling would give other ids each time.
 */
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "model/text/marian.h"
#include "model/text/tokenizer_json.h"

/* What tokenizer_config.json says. The strings live as long as root. */
struct settings {
    json_t *root;
    const char *unk, *eos, *pad;
};

static qkv_status load_config(const qkvi_marian_file *file, json_t **root, qkv_error *error) {
    *root = NULL;
    if (file->bytes == NULL) return QKV_OK;
    return qkvi_json_load(file->name, file->bytes, file->n_bytes, &qkvi_json_limits_config, root,
                          error);
}

qkv_status qkvi_marian_separate(const qkvi_marian_file *config, int *separate, qkv_error *error) {
    json_t *root = NULL;
    *separate = 0;
    QKV_TRY(load_config(config, &root, error));
    const qkvi_json_reader reader = { config->name, "", root, error };
    qkv_status status = QKV_OK;
    if (root) status = qkvi_json_take_bool(&reader, "separate_vocabs", separate);
    json_decref(root);
    return status;
}

/* A token by its name, or an object that has it. */
static qkv_status take_token(const qkvi_json_reader *reader, const char *field,
                             const char **token) {
    const json_t *value = json_object_get(reader->object, field);
    if (!json_is_object(value)) return qkvi_json_take_string(reader, field, token);
    const qkvi_json_reader inner = { reader->file, field, value, reader->error };
    return qkvi_json_need_string(&inner, "content", token);
}

static qkv_status read_settings(const qkvi_marian_file *file, struct settings *settings,
                                qkv_error *error) {
    *settings = (struct settings){ NULL, "<unk>", "</s>", "<pad>" };
    QKV_TRY(load_config(file, &settings->root, error));
    if (settings->root == NULL) return QKV_OK;
    const qkvi_json_reader reader = { file->name, "", settings->root, error };
    const json_t *sampling = NULL;
    QKV_TRY(take_token(&reader, "unk_token", &settings->unk));
    QKV_TRY(take_token(&reader, "eos_token", &settings->eos));
    QKV_TRY(take_token(&reader, "pad_token", &settings->pad));
    QKV_TRY(qkvi_json_take_object(&reader, "sp_model_kwargs", &sampling));
    if (json_object_size(sampling) > 0)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "%s: sp_model_kwargs is not empty: that is not supported",
                              file->name);
    return QKV_OK;
}

/* ---- The vocabulary -------------------------------------------------------------------------- */

static qkv_status special(const qkvi_tokenizer_reader *r, const char *field, const char *token,
                          int32_t *id) {
    char escaped[96];
    *id = qkvi_pieces_find(&r->tokenizer->pieces, token, strlen(token));
    if (*id < 0)
        return qkvi_error_set(r->error, QKV_ERR_FORMAT, "%s: %s \"%s\" is not there", r->name,
                              field, qkvi_escape(escaped, sizeof escaped, token, strlen(token)));
    if (token[0] == '\0')
        return qkvi_error_set(r->error, QKV_ERR_FORMAT, "%s: %s is the empty token", r->name,
                              field);
    return qkvi_tokenizer_add_added(r, field, token, *id, QKVI_ADDED_SPECIAL);
}

static qkv_status read_special(const qkvi_tokenizer_reader *r, const struct settings *settings) {
    qkv_tokenizer *tokenizer = r->tokenizer;
    int32_t *roles = tokenizer->special;
    QKV_TRY(special(r, "unk_token", settings->unk, &roles[QKV_TOKEN_UNK]));
    QKV_TRY(special(r, "eos_token", settings->eos, &roles[QKV_TOKEN_SEP]));
    if (qkvi_pieces_find(&tokenizer->pieces, settings->pad, strlen(settings->pad)) >= 0)
        QKV_TRY(special(r, "pad_token", settings->pad, &roles[QKV_TOKEN_PAD]));
    const int32_t eos = roles[QKV_TOKEN_SEP];
    tokenizer->single = (qkvi_template){ 2, { { QKVI_TEMPLATE_TEXT, 0 }, { eos, 0 } } };
    tokenizer->pair =
        (qkvi_template){ 3, { { QKVI_TEMPLATE_TEXT, 0 }, { QKVI_TEMPLATE_PAIR, 0 }, { eos, 0 } } };
    return QKV_OK;
}

static qkv_status read_vocab(qkvi_tokenizer_reader *r, const struct settings *settings) {
    qkv_tokenizer *tokenizer = r->tokenizer;
    QKV_TRY(qkvi_tokenizer_read_ids(r, "the vocabulary", r->root));
    QKV_TRY(qkvi_tokenizer_seal_model(tokenizer, r->error));
    QKV_TRY(read_special(r, settings));
    QKV_TRY(qkvi_tokenizer_seal(tokenizer, r->error));
    return qkvi_marian_number(tokenizer, r->error);
}

/* ---- The whole ------------------------------------------------------------------------------- */

static qkv_status make(const qkvi_marian_file *spm, qkv_tokenizer **tokenizer, qkv_error *error) {
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

static qkv_status read_all(const qkvi_marian_files *files, const struct settings *settings,
                           qkv_tokenizer **tokenizer, qkv_error *error) {
    QKV_TRY(make(&files->spm, tokenizer, error));
    qkvi_tokenizer_reader r = { files->vocab.name, NULL, *tokenizer, error };
    json_t *root = NULL;
    QKV_TRY(qkvi_json_load(r.name, files->vocab.bytes, files->vocab.n_bytes,
                           &qkvi_json_limits_tokenizer, &root, error));
    r.root = root;
    const qkv_status status = read_vocab(&r, settings);
    json_decref(root);
    return status;
}

qkv_status qkvi_marian_read(const qkvi_marian_files *files, qkv_tokenizer **tokenizer,
                            qkv_error *error) {
    struct settings settings;
    *tokenizer = NULL;
    qkv_status status = read_settings(&files->config, &settings, error);
    if (status == QKV_OK) status = read_all(files, &settings, tokenizer, error);
    json_decref(settings.root);
    if (status == QKV_OK) return QKV_OK;
    qkv_tokenizer_free(*tokenizer);
    *tokenizer = NULL;
    return status;
}
