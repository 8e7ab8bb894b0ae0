/**
 * The files of a Marian folder, read; see marian.h.
 *
 * unk and eos are in the vocabulary. sp_model_kwargs may only be empty: sampling would give other ids
 * each time.
 */

#include "model/text/marian.h"
#include "model/text/tokenizer_json.h"

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
    char escaped[96];
    if (*token == '\0')
        return qkvi_error_set(s->error, QKV_ERR_FORMAT, "%s: %s is the empty token",
                              s->files->vocab.name, field);
    if (qkvi_pieces_find(&tokenizer->pieces, token, strlen(token)) >= 0) return QKV_OK;
    return qkvi_error_set(s->error, QKV_ERR_FORMAT, "%s: %s \"%s\" is not there",
                          s->files->vocab.name, field,
                          qkvi_escape(escaped, sizeof escaped, token, strlen(token)));
}

static qkv_status read_words(const qkvi_settings *s, const json_t *vocab,
                             qkv_tokenizer *tokenizer) {
    const qkvi_tokenizer_reader r = { s->files->vocab.name, NULL, tokenizer, s->error, 0 };
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
    qkvi_settings_apply(s, tokenizer);
    return qkvi_marian_number(tokenizer, s->error);
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
