/*
 * generation_config.json: see generation_config.h. Meanings and defaults are those of transformers 5
 * (generation/configuration_utils.py); numbers that would make no sense there make none here.
 */
#include "model/store/generation_config.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "model/store/file.h"
#include "model/store/json.h"

enum { MAX_BYTES = 1 << 20, MAX_BEAMS = 1024, MAX_LENGTH = 1 << 24 };

/* ---- Tokens ----------------------------------------------------------------------------------- */

static qkv_status no_token(const qkvi_json_reader *reader, const char *field, int64_t id,
                           const qkv_model_info *info) {
    return qkvi_error_set(reader->error, QKV_ERR_SHAPE,
                          "%s: %s = %lld is not less than the %lld tokens of the model",
                          reader->file, field, (long long)id, (long long)info->target_vocab_size);
}

static qkv_status take_token(const qkvi_json_reader *reader, const char *field,
                             const qkv_model_info *info, int64_t *id) {
    int64_t n = *id >= 0;
    QKV_TRY(qkvi_json_take_ids(reader, field, 1, id, &n));
    if (n == 0) *id = -1;
    return *id < info->target_vocab_size ? QKV_OK : no_token(reader, field, *id, info);
}

/* Tokens that end a text. */
static qkv_status take_ends(const qkvi_json_reader *reader, const char *field,
                            const qkv_model_info *info, int64_t ids[QKVI_MAX_ENDS], int64_t *n) {
    int64_t n_kept = 0;
    QKV_TRY(qkvi_json_take_ids(reader, field, QKVI_MAX_ENDS, ids, n));
    for (int64_t i = 0; i < *n; i++)
        if (ids[i] < info->target_vocab_size) ids[n_kept++] = ids[i];
    *n = n_kept;
    return QKV_OK;
}

/* [[id], [id], …] */
static qkv_status take_bad_words(const qkvi_json_reader *reader, const qkv_model_info *info,
                                 qkvi_generation_config *c) {
    const json_t *list;
    QKV_TRY(qkvi_json_take_array(reader, "bad_words_ids", &list));
    if (json_array_size(list) > QKVI_MAX_BAD_WORDS)
        return qkvi_error_set(reader->error, QKV_ERR_LIMIT,
                              "%s: bad_words_ids has %zu entries, the limit is %d", reader->file,
                              json_array_size(list), QKVI_MAX_BAD_WORDS);
    for (size_t w = 0; w < json_array_size(list); w++) {
        const json_t *const word = json_array_get(list, w);
        const json_int_t id = json_integer_value(json_array_get(word, 0));
        if (!json_is_array(word) || !json_is_integer(json_array_get(word, 0)))
            return qkvi_error_set(reader->error, QKV_ERR_FORMAT,
                                  "%s: bad_words_ids[%zu] is no list of integers", reader->file, w);
        if (json_array_size(word) > 1)
            return qkvi_error_set(reader->error, QKV_ERR_UNSUPPORTED,
                                  "%s: bad_words_ids[%zu] has %zu tokens: only words of one token "
                                  "are supported",
                                  reader->file, w, json_array_size(word));
        if (id < 0 || id >= info->target_vocab_size)
            return no_token(reader, "bad_words_ids", id, info);
        c->bad_words[c->n_bad_words++] = id;
    }
    return QKV_OK;
}

static qkv_status take_tokens(const qkvi_json_reader *reader, const qkv_model_info *info,
                              qkvi_generation_config *c) {
    QKV_TRY(take_token(reader, "bos_token_id", info, &c->bos));
    QKV_TRY(take_token(reader, "pad_token_id", info, &c->pad));
    QKV_TRY(take_token(reader, "decoder_start_token_id", info, &c->start));
    QKV_TRY(take_token(reader, "forced_bos_token_id", info, &c->forced_first));
    QKV_TRY(take_ends(reader, "eos_token_id", info, c->ends, &c->n_ends));
    QKV_TRY(take_ends(reader, "forced_eos_token_id", info, c->forced_last, &c->n_forced_last));
    return take_bad_words(reader, info, c);
}

/* ---- Numbers ---------------------------------------------------------------------------------- */

static qkv_status take_positive(const qkvi_json_reader *reader, const char *field, double most,
                                double *value) {
    QKV_TRY(qkvi_json_take_real(reader, field, value));
    if (*value > 0 && *value <= most) return QKV_OK;
    return qkvi_error_set(reader->error, QKV_ERR_FORMAT, "%s: %s = %g is not above 0%s",
                          reader->file, field, *value, most == 1 ? " and at most 1" : "");
}

static qkv_status take_early_stopping(const qkvi_json_reader *reader, qkvi_generation_config *c) {
    int stops = c->early_stopping == QKVI_STOP_AT_ONCE;
    const char *word = "never";
    if (json_is_string(json_object_get(reader->object, "early_stopping"))) {
        QKV_TRY(qkvi_json_take_string(reader, "early_stopping", &word));
        c->early_stopping = QKVI_STOP_NEVER;
        if (strcmp(word, "never") == 0) return QKV_OK;
        return qkvi_error_set(reader->error, QKV_ERR_FORMAT,
                              "%s: early_stopping is a string other than \"never\"", reader->file);
    }
    QKV_TRY(qkvi_json_take_bool(reader, "early_stopping", &stops));
    c->early_stopping = stops ? QKVI_STOP_AT_ONCE : QKVI_STOP_BY_HEURISTIC;
    return QKV_OK;
}

static qkv_status take_numbers(const qkvi_json_reader *reader, qkvi_generation_config *c) {
    const struct {
        const char *name;
        int64_t limit, *value;
    } sizes[] = {
        { "max_length", MAX_LENGTH, &c->max_length },
        { "max_new_tokens", MAX_LENGTH, &c->max_new_tokens },
        { "min_length", MAX_LENGTH, &c->min_length },
        { "min_new_tokens", MAX_LENGTH, &c->min_new_tokens },
        { "num_beams", MAX_BEAMS, &c->num_beams },
        { "no_repeat_ngram_size", MAX_LENGTH, &c->no_repeat_ngram_size },
        { "top_k", INT32_MAX, &c->top_k },
    };
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        QKV_TRY(qkvi_json_take_int(reader, sizes[s].name, sizes[s].limit, sizes[s].value));
    if (c->num_beams == 0)
        return qkvi_error_set(reader->error, QKV_ERR_FORMAT, "%s: num_beams = 0 is less than 1",
                              reader->file);
    QKV_TRY(qkvi_json_take_real(reader, "length_penalty", &c->length_penalty));
    QKV_TRY(take_positive(reader, "repetition_penalty", DBL_MAX, &c->repetition_penalty));
    QKV_TRY(take_positive(reader, "temperature", DBL_MAX, &c->temperature));
    QKV_TRY(take_positive(reader, "top_p", 1, &c->top_p));
    QKV_TRY(qkvi_json_take_bool(reader, "do_sample", &c->do_sample));
    return take_early_stopping(reader, c);
}

/* ---- Files ------------------------------------------------------------------------------------ */

/* forced_eos_token_id of an encoder-decoder is its eos where config.json alone speaks: the default of
 * its class, which generation_config.json, where there is one, has no more. */
static qkvi_generation_config absent(const qkv_model_info *info, int is_config) {
    const int forces = is_config && info->is_encoder_decoder && info->eos_id >= 0;
    return (qkvi_generation_config){ .bos = info->bos_id,
                                     .pad = info->pad_id,
                                     .start = info->start_id,
                                     .ends = { info->eos_id },
                                     .n_ends = info->eos_id >= 0,
                                     .forced_first = -1,
                                     .forced_last = { info->eos_id },
                                     .n_forced_last = forces,
                                     .num_beams = 1,
                                     .top_k = 50,
                                     .length_penalty = 1,
                                     .repetition_penalty = 1,
                                     .temperature = 1,
                                     .top_p = 1 };
}

static qkv_status parse(const char *file, const void *bytes, size_t n_bytes,
                        qkvi_generation_config start, const qkv_model_info *info,
                        qkvi_generation_config *config, qkv_error *error) {
    json_t *root;
    *config = start;
    QKV_TRY(qkvi_json_load(file, bytes, n_bytes, &qkvi_json_limits_config, &root, error));
    const qkvi_json_reader reader = { .file = file, .path = "", .object = root, .error = error };
    qkv_status status = take_tokens(&reader, info, config);
    if (status == QKV_OK) status = take_numbers(&reader, config);
    json_decref(root);
    return status;
}

qkv_status qkvi_generation_config_parse(const char *file, const void *bytes, size_t n_bytes,
                                        const qkv_model_info *info, qkvi_generation_config *config,
                                        qkv_error *error) {
    return parse(file, bytes, n_bytes, absent(info, 0), info, config, error);
}

static qkv_status read_path(const char *path, int is_config, const qkv_model_info *info,
                            qkvi_generation_config *config, qkv_error *error) {
    char printable[1024], *bytes = NULL;
    size_t n_bytes = 0;
    QKV_TRY(qkvi_file_load(path, MAX_BYTES, &bytes, &n_bytes, error));
    qkvi_escape(printable, sizeof printable, path, strlen(path));
    const qkv_status status =
        parse(printable, bytes, n_bytes, absent(info, is_config), info, config, error);
    free(bytes);
    return status;
}

qkv_status qkvi_generation_config_read(const char *folder, const qkv_model_info *info,
                                       qkvi_generation_config *config, qkv_error *error) {
    char *path = qkvi_path_join(folder, "generation_config.json");
    const int is_config = path && !qkvi_file_exists(path);
    if (is_config) {
        free(path);
        path = qkvi_path_join(folder, "config.json");
    }
    if (!path) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a path");
    const qkv_status status = read_path(path, is_config, info, config, error);
    free(path);
    return status;
}
