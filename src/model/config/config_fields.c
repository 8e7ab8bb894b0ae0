/* Fields of a config.json: see config.h. */
#include "model/config/config.h"

#include "files/file.h"

/* UNSUPPORTED: field 'value' is not supported. */
static qkv_status config_refuse(const qkvi_json_reader *reader, const char *field,
                                const char *value) {
    return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED, "%s '%s' is not supported", field,
                          QKVI_PRINTABLE(128, value));
}

qkv_status qkvi_config_word(const qkvi_json_reader *reader, const char *field, const char *wanted) {
    const char *value = wanted;
    QKV_TRY(qkvi_json_take_string(reader, field, &value));
    return strcmp(value, wanted) == 0 ? QKV_OK : config_refuse(reader, field, value);
}

qkv_status qkvi_config_switch(const qkvi_json_reader *reader, const char *field, int wanted) {
    int value = wanted;
    QKV_TRY(qkvi_json_take_bool(reader, field, &value));
    return value == wanted ? QKV_OK : config_refuse(reader, field, value ? "true" : "false");
}

/*
 * transformers reads these for every model, whatever its type: another file of weights, weights
 * that are to be rounded, layers that differ, keys that a decoder forgets. is_causal is a decoder's
 * mask, and null is false there.
 */
qkv_status qkvi_config_refuse_others(const qkvi_json_reader *reader, int decodes, int slides) {
    static const char *const names[] = { "transformers_weights", "quantization_config",
                                         "per_layer_config", /* of decoders: */ "sliding_window",
                                         "attention_chunk_size" };
    const size_t n = decodes ? sizeof names / sizeof *names : 3;
    for (size_t i = 0; i < n; i++) {
        const json_t *const value = json_object_get(reader->object, names[i]);
        if (slides && strcmp(names[i], "sliding_window") == 0) continue;
        if (value && !json_is_null(value))
            return qkvi_error_set(reader->error, QKV_ERR_UNSUPPORTED, "%s: %s is not supported",
                                  reader->file, names[i]);
    }
    const json_t *const causal = json_object_get(reader->object, "is_causal");
    if (!decodes || !causal || json_is_true(causal)) return QKV_OK;
    return qkvi_error_set(reader->error, QKV_ERR_UNSUPPORTED,
                          "%s: is_causal that is not true is not supported", reader->file);
}

qkv_status qkvi_config_activation(const qkvi_json_reader *reader, const char *field,
                                  const char *absent, qkv_model_info *info) {
    static const char *const names[][2] = {
        { "gelu", "gelu" },
        { "gelu_python", "gelu" },
        { "gelu_new", "gelu_tanh" },
        { "gelu_pytorch_tanh", "gelu_tanh" },
        { "gelu_python_tanh", "gelu_tanh" },
        { "gelu_fast", "gelu_tanh" }, /* the same formula, multiplied out otherwise */
        { "gelu_accurate", "gelu_tanh" },
        { "quick_gelu", "quick_gelu" },
        { "relu", "relu" },
        { "silu", "silu" },
        { "swish", "silu" },
        { "tanh", "tanh" },
    };
    const char *value = absent;
    if (field) QKV_TRY(qkvi_json_take_string(reader, field, &value));
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        if (strcmp(value, names[n][0]) != 0) continue;
        info->activation = names[n][1];
        return QKV_OK;
    }
    return config_refuse(reader, field, value);
}

qkv_status qkvi_config_ties(const qkvi_json_reader *reader, int ties, int untied,
                            qkv_model_info *info) {
    QKV_TRY(qkvi_json_take_bool(reader, "tie_word_embeddings", &ties));
    info->untied = ties ? 0 : untied;
    return QKV_OK;
}

static qkv_status check_size(const qkvi_json_reader *reader, const char *field, int64_t value) {
    if (value > 0) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_SHAPE, "%s = 0 is less than 1", field);
}

qkv_status qkvi_config_need_size(const qkvi_json_reader *reader, const char *field, int64_t limit,
                                 int64_t *value) {
    QKV_TRY(qkvi_json_need_int(reader, field, limit, value));
    return check_size(reader, field, *value);
}

qkv_status qkvi_config_take_size(const qkvi_json_reader *reader, const char *field, int64_t limit,
                                 int64_t *value) {
    QKV_TRY(qkvi_json_take_int(reader, field, limit, value));
    return check_size(reader, field, *value);
}

qkv_status qkvi_config_take_eps(const qkvi_json_reader *reader, const char *field, double *eps) {
    QKV_TRY(qkvi_json_take_real(reader, field, eps));
    if (*eps > 0 && *eps < 1) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT, "%s = %g is not between 0 and 1", field, *eps);
}

qkv_status qkvi_config_heads(const qkvi_json_reader *reader, const char *hidden, const char *heads,
                             const qkv_model_info *info, int64_t n_heads) {
    if (info->hidden % n_heads == 0) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_SHAPE, "%s = %lld is not a multiple of %s = %lld", hidden,
                          (long long)info->hidden, heads, (long long)n_heads);
}
