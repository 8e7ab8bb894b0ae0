/*
 * generation_config.json, or what config.json has of it (transformers: GenerationConfig). A field that
 * would change what is written is honoured or refused, never ignored. Values are only read here;
 * whether they go together is found where they are used (plan.c).
 */
#include "model/generate/generate_config.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/status.h"
#include "model/store/file.h"
#include "model/store/hub.h"
#include "model/store/json.h"

enum { MAX_BYTES = 1 << 20, MAX_IDS = 1 << 24 };

/* The options come first: one address. Lists lie behind. */
typedef struct config {
    qkv_generate_options options;
    int64_t n_ids, n_lengths; /* that are taken, of both lists */
    int32_t *ids;
    int64_t *lengths;
} config;

static qkv_status wrong(const qkvi_json_reader *reader, qkv_status status, const char *field,
                        const char *rule) {
    return qkvi_error_set(reader->error, status, "%s: %s %s", reader->file, field, rule);
}

/* ---- Lists ----------------------------------------------------------------------------------- */

static qkv_status take_id(const qkvi_json_reader *reader, const char *field, const json_t *value,
                          config *c) {
    const json_int_t id = json_integer_value(value);
    if (!json_is_integer(value) || id < 0 || id >= MAX_IDS)
        return wrong(reader, QKV_ERR_FORMAT, field, "has an entry that is no id");
    c->ids[c->n_ids++] = (int32_t)id;
    return QKV_OK;
}

/* An id or a list of ids; their number. */
static qkv_status take_ids(const qkvi_json_reader *reader, const char *field, const json_t *value,
                           config *c, int64_t *n) {
    const int64_t before = c->n_ids;
    if (json_is_array(value))
        for (size_t i = 0; i < json_array_size(value); i++)
            QKV_TRY(take_id(reader, field, json_array_get(value, i), c));
    else
        QKV_TRY(take_id(reader, field, value, c));
    *n = c->n_ids - before;
    return QKV_OK;
}

static const json_t *field_of(const qkvi_json_reader *reader, const char *field) {
    const json_t *const value = json_object_get(reader->object, field);
    return json_is_null(value) ? NULL : value;
}

static qkv_status take_eos(const qkvi_json_reader *reader, config *c) {
    const json_t *const value = field_of(reader, "eos_token_id");
    if (value == NULL) return QKV_OK;
    c->options.eos = c->ids + c->n_ids;
    return take_ids(reader, "eos_token_id", value, c, &c->options.n_eos);
}

static qkv_status take_bad_words(const qkvi_json_reader *reader, config *c) {
    const json_t *words = NULL;
    QKV_TRY(qkvi_json_take_array(reader, "bad_words_ids", &words));
    if (json_array_size(words) > 0) {
        c->options.bad_words = c->ids + c->n_ids;
        c->options.bad_word_lengths = c->lengths;
    }
    for (size_t w = 0; w < json_array_size(words); w++) {
        const json_t *const word = json_array_get(words, w);
        if (json_array_size(word) == 0)
            return wrong(reader, QKV_ERR_FORMAT, "bad_words_ids",
                         "has an entry that is no list of ids");
        QKV_TRY(take_ids(reader, "bad_words_ids", word, c, &c->lengths[c->n_lengths]));
        c->n_lengths++;
    }
    c->options.n_bad_words = c->n_lengths;
    return QKV_OK;
}

/* One id, or a list of one. */
static qkv_status take_forced(const qkvi_json_reader *reader, const char *field, config *c,
                              int32_t *id) {
    const json_t *const value = field_of(reader, field);
    int64_t n;
    if (value == NULL) return QKV_OK;
    QKV_TRY(take_ids(reader, field, value, c, &n));
    if (n != 1)
        return wrong(reader, QKV_ERR_UNSUPPORTED, field, "with several ids is not supported");
    *id = c->ids[--c->n_ids];
    return QKV_OK;
}

/* ---- Fields ---------------------------------------------------------------------------------- */

static qkv_status take_numbers(const qkvi_json_reader *reader, qkv_generate_options *o) {
    const struct {
        const char *field;
        int64_t *whole;
        double *real;
        int *flag;
    } fields[] = {
        { "max_new_tokens", &o->max_new, NULL, NULL },
        { "max_length", &o->max_length, NULL, NULL },
        { "min_new_tokens", &o->min_new, NULL, NULL },
        { "min_length", &o->min_length, NULL, NULL },
        { "num_beams", &o->n_beams, NULL, NULL },
        { "num_return_sequences", &o->n_return, NULL, NULL },
        { "top_k", &o->top_k, NULL, NULL },
        { "no_repeat_ngram_size", &o->no_repeat_ngram, NULL, NULL },
        { "length_penalty", NULL, &o->length_penalty, NULL },
        { "temperature", NULL, &o->temperature, NULL },
        { "top_p", NULL, &o->top_p, NULL },
        { "repetition_penalty", NULL, &o->repetition_penalty, NULL },
        { "do_sample", NULL, NULL, &o->sample },
        { "renormalize_logits", NULL, NULL, &o->renormalize },
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const char *const field = fields[i].field;
        if (fields[i].whole) QKV_TRY(qkvi_json_take_int(reader, field, INT32_MAX, fields[i].whole));
        if (fields[i].real) QKV_TRY(qkvi_json_take_real(reader, field, fields[i].real));
        if (fields[i].flag) QKV_TRY(qkvi_json_take_bool(reader, field, fields[i].flag));
    }
    return QKV_OK;
}

static qkv_status take_early_stopping(const qkvi_json_reader *reader, qkv_generate_options *o) {
    const json_t *const value = field_of(reader, "early_stopping");
    if (json_is_string(value) && strcmp(json_string_value(value), "never") == 0)
        o->early_stopping = QKV_EARLY_NEVER;
    else if (json_is_boolean(value))
        o->early_stopping = json_is_true(value) ? QKV_EARLY_ALWAYS : QKV_EARLY_LIKELY;
    else if (value)
        return wrong(reader, QKV_ERR_FORMAT, "early_stopping",
                     "is none of true, false and \"never\"");
    return QKV_OK;
}

/* What transformers does with these is not done here: only the values that do nothing are taken. */
static qkv_status refuse_others(const qkvi_json_reader *reader) {
    static const struct {
        const char *field;
        double nothing;
    } others[] = {
        { "assistant_early_exit", 0 },
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
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const json_t *const value = field_of(reader, others[i].field);
        const int nothing =
            value == NULL || json_is_false(value) ||
            (json_is_number(value) && json_number_value(value) == others[i].nothing) ||
            (json_is_array(value) && json_array_size(value) == 0) ||
            (json_is_object(value) && json_object_size(value) == 0);
        if (!nothing)
            return wrong(reader, QKV_ERR_UNSUPPORTED, others[i].field, "is not supported");
    }
    return QKV_OK;
}

static qkv_status read_fields(const qkvi_json_reader *reader, config *c) {
    QKV_TRY(take_numbers(reader, &c->options));
    QKV_TRY(take_early_stopping(reader, &c->options));
    QKV_TRY(take_forced(reader, "forced_bos_token_id", c, &c->options.forced_bos));
    QKV_TRY(take_forced(reader, "forced_eos_token_id", c, &c->options.forced_eos));
    QKV_TRY(take_eos(reader, c));
    QKV_TRY(take_bad_words(reader, c));
    return refuse_others(reader);
}

/* Room for as many ids and lengths as there are values in the text. */
static config *config_new(size_t n_bytes) {
    const size_t room = n_bytes / 2 + 8; /* "[1," */
    config *const c = calloc(1, sizeof *c);
    if (c == NULL) return NULL;
    c->options = (qkv_generate_options)QKV_GENERATE_OPTIONS_INIT;
    c->ids = qkvi_malloc_array(room, sizeof *c->ids);
    c->lengths = qkvi_malloc_array(room, sizeof *c->lengths);
    if (c->ids && c->lengths) return c;
    qkv_generate_config_free(&c->options);
    return NULL;
}

void qkv_generate_config_free(qkv_generate_options *options) {
    config *const c = (config *)options;
    if (c == NULL) return;
    free(c->ids);
    free(c->lengths);
    free(c);
}

qkv_status qkvi_generate_config_parse(const char *file, const void *bytes, size_t n_bytes,
                                      qkv_generate_options **options, qkv_error *error) {
    json_t *root;
    *options = NULL;
    QKV_TRY(qkvi_json_load(file, bytes, n_bytes, &qkvi_json_limits_config, &root, error));
    config *const c = config_new(n_bytes);
    const qkvi_json_reader reader = { .file = file, .path = "", .object = root, .error = error };
    const qkv_status status = c ? read_fields(&reader, c)
                                : qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %s", file);
    json_decref(root);
    if (status == QKV_OK)
        *options = &c->options;
    else if (c)
        qkv_generate_config_free(&c->options);
    return status;
}

/* ---- Files ----------------------------------------------------------------------------------- */

static qkv_status read_file(const char *path, qkv_generate_options **options, qkv_error *error) {
    char printable[1024], *bytes = NULL;
    size_t n_bytes = 0;
    QKV_TRY(qkvi_file_load(path, MAX_BYTES, &bytes, &n_bytes, error));
    qkvi_escape(printable, sizeof printable, path, strlen(path));
    const qkv_status status = qkvi_generate_config_parse(printable, bytes, n_bytes, options, error);
    free(bytes);
    return status;
}

static qkv_status read_folder(const char *folder, qkv_generate_options **options,
                              qkv_error *error) {
    char *path = qkvi_path_join(folder, "generation_config.json");
    if (path && !qkvi_file_exists(path)) {
        free(path);
        path = qkvi_path_join(folder, "config.json");
    }
    if (path == NULL) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a path");
    const qkv_status status = read_file(path, options, error);
    free(path);
    return status;
}

qkv_status qkv_generate_config_read(const char *path_or_name, qkv_generate_options **options,
                                    qkv_error *error) {
    char *folder, *weights;
    if (!options) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "options is NULL");
    *options = NULL;
    if (!path_or_name) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "path_or_name is NULL");
    QKV_TRY(qkvi_hub_find(path_or_name, &folder, &weights, error));
    const qkv_status status = read_folder(folder, options, error);
    free(folder);
    free(weights);
    return status;
}
