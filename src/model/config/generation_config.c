/*
 * generation_config.json: see generation_config.h. Meanings and defaults are those of transformers
 * 5 (generation/configuration_utils.py).
 */
#include "model/config/generation_config.h"

#include <math.h>

#include "files/base.h"
#include "files/file.h"
#include "files/json.h"

/* ---- What is not implemented ----------------------------------------------------------------- */

/*
 * Fields of generation_config.json that are not implemented: each is named where transformers
 * (generation/utils.py: _get_logits_processor, _get_stopping_criteria, get_generation_mode) would
 * write something else because of it.
 */

/* What else than null and false changes what is written. */
typedef struct other {
    const char *field;
    qkvi_search_kind kind;
    double above, below; /* numbers between these … */
    double but;          /* … but this one */
    int even_empty;      /* a list or an object without entries, too */
} other;

static const other others[] = {
    { "begin_suppress_tokens", QKVI_ANY_SEARCH, 0, 0, 0, 0 },
    { "constraints", QKVI_ANY_SEARCH, 0, 0, 0, 1 },
    { "encoder_no_repeat_ngram_size", QKVI_ANY_SEARCH, 0, INFINITY, 0, 0 },
    { "encoder_repetition_penalty", QKVI_ANY_SEARCH, -INFINITY, INFINITY, 1, 0 },
    { "exponential_decay_length_penalty", QKVI_ANY_SEARCH, 0, 0, 0, 1 },
    { "force_words_ids", QKVI_ANY_SEARCH, 0, 0, 0, 1 },
    { "guidance_scale", QKVI_ANY_SEARCH, -INFINITY, INFINITY, 1, 0 },
    { "is_assistant", QKVI_ANY_SEARCH, 0, 0, 0, 0 },
    { "max_time", QKVI_ANY_SEARCH, -INFINITY, INFINITY, INFINITY, 0 },
    { "sequence_bias", QKVI_ANY_SEARCH, 0, 0, 0, 0 },
    { "stop_strings", QKVI_ANY_SEARCH, 0, 0, 0, 0 },
    { "suppress_tokens", QKVI_ANY_SEARCH, 0, 0, 0, 0 },
    { "token_healing", QKVI_ANY_SEARCH, 0, 0, 0, 0 },
    { "watermarking_config", QKVI_ANY_SEARCH, 0, 0, 0, 1 },
    { "epsilon_cutoff", QKVI_SAMPLING, 0, 1, 0, 0 },
    { "eta_cutoff", QKVI_SAMPLING, 0, 1, 0, 0 },
    { "top_h", QKVI_SAMPLING, -INFINITY, INFINITY, INFINITY, 0 },
    { "typical_p", QKVI_SAMPLING, -INFINITY, 1, 1, 0 },
    { "num_beam_groups", QKVI_BEAMS, 1, INFINITY, 1, 0 },
    { "dola_layers", QKVI_NO_BEAMS, -INFINITY, INFINITY, INFINITY, 1 },
    { "penalty_alpha", QKVI_GREEDY, 0, INFINITY, 0, 0 },
};

static int is_empty(const json_t *value) {
    return (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

static int counts(const other *o, const json_t *value) {
    if (value == NULL || json_is_null(value) || json_is_false(value)) return 0;
    if (json_is_number(value)) {
        const double number = json_number_value(value);
        return number > o->above && number < o->below && number != o->but;
    }
    return !is_empty(value) || o->even_empty;
}

/* 0, "", [] or {}: what Python takes for false, but is no false. */
static int is_falsy(const json_t *value) {
    return (json_is_number(value) && json_number_value(value) == 0) ||
           (json_is_string(value) && json_string_length(value) == 0) || is_empty(value);
}

/*
 * Finds these fields. With a use_cache that is falsy transformers 5.24 neither keeps keys nor reads
 * the whole text again, and writes something else.
 */
static void generation_find_unsupported(const json_t *object, qkvi_generation_config *config) {
    const char *const cache = json_string_value(json_object_get(object, "cache_implementation"));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const other *const o = &others[i];
        if (!config->unsupported[o->kind] && counts(o, json_object_get(object, o->field)))
            config->unsupported[o->kind] = o->field;
    }
    if (cache && strcmp(cache, "quantized") == 0 && !config->unsupported[QKVI_ANY_SEARCH])
        config->unsupported[QKVI_ANY_SEARCH] = "cache_implementation";
    if (is_falsy(json_object_get(object, "use_cache")) && !config->unsupported[QKVI_ANY_SEARCH])
        config->unsupported[QKVI_ANY_SEARCH] = "use_cache";
}

const char *qkvi_generation_unsupported(const qkvi_generation_config *config, int samples,
                                        int64_t n_beams) {
    const int is_kind[QKVI_SEARCH_KINDS] = { [QKVI_ANY_SEARCH] = 1,
                                             [QKVI_SAMPLING] = samples,
                                             [QKVI_BEAMS] = n_beams > 1,
                                             [QKVI_NO_BEAMS] = n_beams <= 1,
                                             [QKVI_GREEDY] =
                                                 n_beams <= 1 && !samples && config->top_k > 1 };
    for (int k = 0; k < QKVI_SEARCH_KINDS; k++)
        if (is_kind[k] && config->unsupported[k]) return config->unsupported[k];
    return NULL;
}

enum { MAX_BYTES = 1 << 20, MAX_BEAMS = 256 /* QKVI_BEAMS_MAX */, MAX_LENGTH = 1 << 24 };

/* ---- Tokens ---------------------------------------------------------------------------------- */

static qkv_status no_token(const qkvi_json_reader *reader, const char *field, int64_t id,
                           const qkv_model_info *info) {
    return QKVI_JSON_FAIL(reader, QKV_ERR_SHAPE,
                          "%s = %lld is not less than the %lld tokens of the model", field,
                          (long long)id, (long long)info->target_vocab_size);
}

static qkv_status take_token(const qkvi_json_reader *reader, const char *field, int64_t *id) {
    int64_t n = 0;
    QKV_TRY(qkvi_json_take_ids(reader, field, 1, id, &n));
    if (n == 0) *id = -1;
    return QKV_OK;
}

/* One that nothing writes may be any number. */
static qkv_status take_known_token(const qkvi_json_reader *reader, const char *field,
                                   const qkv_model_info *info, int64_t *id) {
    QKV_TRY(take_token(reader, field, id));
    if (*id >= info->target_vocab_size) *id = -1;
    return QKV_OK;
}

static qkv_status take_written_token(const qkvi_json_reader *reader, const char *field,
                                     const qkv_model_info *info, int64_t *id) {
    QKV_TRY(take_token(reader, field, id));
    return *id < info->target_vocab_size ? QKV_OK : no_token(reader, field, *id, info);
}

/* Those of a list that are tokens. */
static qkv_status take_ends(const qkvi_json_reader *reader, const char *field,
                            const qkv_model_info *info, int64_t ids[QKVI_MAX_ENDS], int64_t *n) {
    int64_t n_kept = 0;
    QKV_TRY(qkvi_json_take_ids(reader, field, QKVI_MAX_ENDS, ids, n));
    for (int64_t i = 0; i < *n; i++)
        if (ids[i] >= 0 && ids[i] < info->target_vocab_size) ids[n_kept++] = ids[i];
    *n = n_kept;
    return QKV_OK;
}

/* Appends word w; n_used: tokens of those before it. */
static qkv_status take_bad_word(const qkvi_json_reader *reader, size_t w, const json_t *word,
                                const qkv_model_info *info, int64_t *n_used,
                                qkvi_generation_config *c) {
    const size_t n = json_array_size(word);
    if ((size_t)(QKVI_MAX_BAD_TOKENS - *n_used) < n)
        return QKVI_JSON_FAIL(reader, QKV_ERR_LIMIT, "bad_words_ids has more than %d tokens",
                              QKVI_MAX_BAD_TOKENS);
    for (size_t i = 0; i < n || i == 0; i++) {
        const json_t *const item = json_array_get(word, i);
        const json_int_t id = json_integer_value(item);
        if (!json_is_integer(item))
            return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT,
                                  "bad_words_ids[%zu] is no list of integers", w);
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
        return QKVI_JSON_FAIL(reader, QKV_ERR_LIMIT,
                              "bad_words_ids has %zu entries, the limit is %d",
                              json_array_size(list), QKVI_MAX_BAD_WORDS);
    for (size_t w = 0; w < json_array_size(list); w++)
        QKV_TRY(take_bad_word(reader, w, json_array_get(list, w), info, &n_used, c));
    return QKV_OK;
}

static qkv_status take_tokens(const qkvi_json_reader *reader, const qkv_model_info *info,
                              qkvi_generation_config *c) {
    int64_t forced[QKVI_MAX_ENDS];
    QKV_TRY(take_known_token(reader, "bos_token_id", info, &c->bos));
    QKV_TRY(take_known_token(reader, "pad_token_id", info, &c->pad));
    QKV_TRY(take_ends(reader, "eos_token_id", info, c->ends, &c->n_ends));
    QKV_TRY(take_written_token(reader, "decoder_start_token_id", info, &c->start));
    QKV_TRY(take_written_token(reader, "forced_bos_token_id", info, &c->forced_first));
    QKV_TRY(take_ends(reader, "forced_eos_token_id", info, forced, &c->n_forced_last));
    for (int64_t i = 0; i < c->n_forced_last; i++) c->forced_last[i] = (int32_t)forced[i];
    return take_bad_words(reader, info, c);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

/* At least 1, if it is there; more than MAX_LENGTH is no limit. */
static qkv_status take_length(const qkvi_json_reader *reader, const char *field, int64_t *value) {
    *value = INT64_MAX;
    QKV_TRY(qkvi_json_take_limit(reader, field, MAX_LENGTH, value));
    if (*value == 0) return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT, "%s = 0 is less than 1", field);
    if (*value >= MAX_LENGTH) *value = 0;
    return QKV_OK;
}

/* A number of which one below 0 is like 0. */
static qkv_status take_count(const qkvi_json_reader *reader, const char *field, int64_t limit,
                             int64_t *value) {
    const json_t *const found = json_object_get(reader->object, field);
    if (json_is_integer(found) && json_integer_value(found) < 0) return QKV_OK;
    return qkvi_json_take_int(reader, field, limit, value);
}

static qkv_status take_early_stopping(const qkvi_json_reader *reader, qkvi_generation_config *c) {
    int stops = c->early_stopping == QKVI_STOP_AT_ONCE;
    const char *word = "never";
    if (json_is_string(json_object_get(reader->object, "early_stopping"))) {
        QKV_TRY(qkvi_json_take_string(reader, "early_stopping", &word));
        c->early_stopping = QKVI_STOP_NEVER;
        if (strcmp(word, "never") == 0) return QKV_OK;
        return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT,
                              "early_stopping is a string other than \"never\"");
    }
    QKV_TRY(qkvi_json_take_bool(reader, "early_stopping", &stops));
    c->early_stopping = stops ? QKVI_STOP_AT_ONCE : QKVI_STOP_BY_HEURISTIC;
    return QKV_OK;
}

/* One below 0 is an error where it is used. */
static qkv_status take_top_k(const qkvi_json_reader *reader, qkvi_generation_config *c) {
    const json_t *const found = json_object_get(reader->object, "top_k");
    if (!json_is_integer(found) || json_integer_value(found) >= 0)
        return qkvi_json_take_limit(reader, "top_k", INT32_MAX, &c->top_k);
    c->top_k = -1;
    return QKV_OK;
}

/* Beams, or texts. */
static qkv_status take_number_of(const qkvi_json_reader *reader, const char *field,
                                 int64_t *value) {
    QKV_TRY(qkvi_json_take_int(reader, field, MAX_BEAMS, value));
    if (*value > 0) return QKV_OK;
    return qkvi_error_set(reader->error, QKV_ERR_FORMAT, "%s: %s = 0 is less than 1", reader->file,
                          field);
}

static qkv_status take_counts(const qkvi_json_reader *reader, qkvi_generation_config *c) {
    QKV_TRY(take_length(reader, "max_length", &c->max_length));
    QKV_TRY(take_length(reader, "max_new_tokens", &c->max_new_tokens));
    QKV_TRY(take_count(reader, "min_length", MAX_LENGTH, &c->min_length));
    QKV_TRY(take_count(reader, "min_new_tokens", MAX_LENGTH, &c->min_new_tokens));
    QKV_TRY(take_count(reader, "no_repeat_ngram_size", MAX_LENGTH, &c->no_repeat_ngram_size));
    QKV_TRY(take_number_of(reader, "num_beams", &c->num_beams));
    return take_number_of(reader, "num_return_sequences", &c->num_return_sequences);
}

static qkv_status take_numbers(const qkvi_json_reader *reader, qkvi_generation_config *c) {
    QKV_TRY(take_counts(reader, c));
    QKV_TRY(take_top_k(reader, c));
    QKV_TRY(qkvi_json_take_real(reader, "length_penalty", &c->length_penalty));
    QKV_TRY(qkvi_json_take_real(reader, "repetition_penalty", &c->repetition_penalty));
    QKV_TRY(qkvi_json_take_real(reader, "temperature", &c->temperature));
    QKV_TRY(qkvi_json_take_real(reader, "top_p", &c->top_p));
    QKV_TRY(qkvi_json_take_real(reader, "min_p", &c->min_p));
    QKV_TRY(qkvi_json_take_bool(reader, "do_sample", &c->do_sample));
    QKV_TRY(qkvi_json_take_bool(reader, "renormalize_logits", &c->renormalize_logits));
    if (c->top_p > 1) c->top_p = 1;
    return take_early_stopping(reader, c);
}

/* ---- Files ----------------------------------------------------------------------------------- */

static const qkvi_generation_config absent = { .bos = -1,
                                               .pad = -1,
                                               .start = -1,
                                               .forced_first = -1,
                                               .num_beams = 1,
                                               .num_return_sequences = 1,
                                               .top_k = 50,
                                               .length_penalty = 1,
                                               .repetition_penalty = 1,
                                               .temperature = 1,
                                               .top_p = 1 };

/*
 * What has no start starts from bos_token_id. A config.json that lacks the field has that of its
 * type.
 */
static void take_start(const qkvi_json_reader *reader, const qkv_model_info *info,
                       qkvi_generation_config *c) {
    const int is_config = json_object_get(reader->object, "model_type") != NULL;
    const int is_there = json_object_get(reader->object, "decoder_start_token_id") != NULL;
    if (info->kind == QKV_MODEL_PAIR && c->start < 0 && (is_there || !is_config)) c->start = c->bos;
}

/* A config.json of before 2021 says so that the first token is that of the beginning. */
static qkv_status take_old_field(const qkvi_json_reader *reader, qkvi_generation_config *c) {
    int forced = 0;
    if (!json_object_get(reader->object, "model_type")) return QKV_OK;
    QKV_TRY(qkvi_json_take_bool(reader, "force_bos_token_to_be_generated", &forced));
    if (forced) c->forced_first = c->bos;
    return QKV_OK;
}

qkv_status qkvi_generation_config_parse(const char *file, const void *bytes, size_t n_bytes,
                                        const qkv_model_info *info, qkvi_generation_config *config,
                                        qkv_error *error) {
    json_t *root;
    *config = absent;
    QKV_TRY(qkvi_json_load(file, bytes, n_bytes, &qkvi_json_limits_config, &root, error));
    const qkvi_json_reader reader = { .file = file, .path = "", .object = root, .error = error };
    generation_find_unsupported(root, config);
    qkv_status status = take_tokens(&reader, info, config);
    if (status == QKV_OK) take_start(&reader, info, config);
    if (status == QKV_OK) status = take_numbers(&reader, config);
    if (status == QKV_OK) status = take_old_field(&reader, config);
    json_decref(root);
    return status;
}

static qkv_status read_path(const char *path, const qkv_model_info *info,
                            qkvi_generation_config *config, qkv_error *error) {
    char *bytes = NULL;
    size_t n_bytes = 0;
    *config = absent;
    QKV_TRY(qkvi_file_load(path, MAX_BYTES, &bytes, &n_bytes, error));
    const qkv_status status = qkvi_generation_config_parse(QKVI_PRINTABLE(1024, path), bytes,
                                                           n_bytes, info, config, error);
    free(bytes);
    return status;
}

qkv_status qkvi_generation_config_read(const char *folder, const qkv_model_info *info,
                                       qkvi_generation_config *config, qkv_error *error) {
    char *path = qkvi_path_join(folder, "generation_config.json");
    if (path && !qkvi_file_exists(path)) {
        free(path);
        path = qkvi_path_join(folder, "config.json");
    }
    if (!path) return qkvi_no_memory(error, "a path");
    const qkv_status status = read_path(path, info, config, error);
    free(path);
    return status;
}
