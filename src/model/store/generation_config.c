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

/* Appends word w; n_used: tokens of those before it. */
static qkv_status take_bad_word(const qkvi_json_reader *reader, size_t w, const json_t *word,
                                const qkv_model_info *info, int64_t *n_used,
                                qkvi_generation_config *c) {
    const size_t n = json_array_size(word);
    if ((size_t)(QKVI_MAX_BAD_TOKENS - *n_used) < n)
        return qkvi_error_set(reader->error, QKV_ERR_LIMIT,
                              "%s: bad_words_ids has more than %d tokens", reader->file,
                              QKVI_MAX_BAD_TOKENS);
    for (size_t i = 0; i < n || i == 0; i++) {
        const json_t *const item = json_array_get(word, i);
        const json_int_t id = json_integer_value(item);
        if (!json_is_integer(item))
            return qkvi_error_set(reader->error, QKV_ERR_FORMAT,
                                  "%s: bad_words_ids[%zu] is no list of integers", reader->file, w);
        if (id < 0 || id >= info->target_vocab_size)
            return no_token(reader, "bad_words_ids", id, info);
        c->bad_words[(*n_used)++] = (int32_t)id;
    }
    c->bad_word_lengths[c->n_bad_words++] = (int64_t)n;
    return QKV_OK;
}

/* [[id], [id, id], …] */
static qkv_status take_bad_words(const qkvi_json_reader *reader, const qkv_model_info *info,
                                 qkvi_generation_config *c) {
    const json_t *list;
    int64_t n_used = 0;
    QKV_TRY(qkvi_json_take_array(reader, "bad_words_ids", &list));
    if (json_array_size(list) > QKVI_MAX_BAD_WORDS)
        return qkvi_error_set(reader->error, QKV_ERR_LIMIT,
                              "%s: bad_words_ids has %zu entries, the limit is %d", reader->file,
                              json_array_size(list), QKVI_MAX_BAD_WORDS);
    for (size_t w = 0; w < json_array_size(list); w++)
        QKV_TRY(take_bad_word(reader, w, json_array_get(list, w), info, &n_used, c));
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
        { "num_return_sequences", MAX_BEAMS, &c->num_return_sequences },
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
    QKV_TRY(qkvi_json_take_bool(reader, "renormalize_logits", &c->renormalize_logits));
    return take_early_stopping(reader, c);
}

/* What transformers does with these is not done here, so only values that do nothing are taken. */
static void find_unsupported(const qkvi_json_reader *reader, qkvi_generation_config *c) {
    static const struct {
        const char *field;
        double nothing;
    } others[] = {
        { "begin_suppress_tokens", 0 },
        { "constraints", 0 },
        { "diversity_penalty", 0 },
        { "dola_layers", 0 },
        { "encoder_no_repeat_ngram_size", 0 },
        { "encoder_repetition_penalty", 1 },
        { "epsilon_cutoff", 0 },
        { "eta_cutoff", 0 },
        { "exponential_decay_length_penalty", 0 },
        { "force_words_ids", 0 },
        { "forced_decoder_ids", 0 },
        { "guidance_scale", 1 },
        { "max_time", 0 },
        { "min_p", 0 },
        { "num_beam_groups", 1 },
        { "penalty_alpha", 0 },
        { "sequence_bias", 0 },
        { "stop_strings", 0 },
        { "suppress_tokens", 0 },
        { "top_h", 0 },
        { "typical_p", 1 },
        { "watermarking_config", 0 },
    };
    for (size_t i = 0; i < sizeof others / sizeof *others && !c->unsupported; i++) {
        const json_t *const value = json_object_get(reader->object, others[i].field);
        const int nothing =
            value == NULL || json_is_null(value) || json_is_false(value) ||
            (json_is_number(value) && json_number_value(value) == others[i].nothing) ||
            (json_is_array(value) && json_array_size(value) == 0) ||
            (json_is_object(value) && json_object_size(value) == 0);
        if (!nothing) c->unsupported = others[i].field;
    }
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
                                     .num_return_sequences = 1,
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
    if (status == QKV_OK) find_unsupported(&reader, config);
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
