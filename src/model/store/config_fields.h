/*
 * Fields of a config.json as every architecture reads them: sizes within limits, and options that
 * must be what we compute. Messages name file, field, value and rule.
 */
#ifndef QKVI_STORE_CONFIG_FIELDS_H
#define QKVI_STORE_CONFIG_FIELDS_H

#include "model/store/json.h"
#include "qkv/model.h"

enum {
    QKVI_MAX_LAYERS = 1024,
    QKVI_MAX_HIDDEN = 65536,
    QKVI_MAX_INTERMEDIATE = 1 << 20,
    QKVI_MAX_VOCAB = 1 << 24,
    QKVI_MAX_POSITIONS = 1 << 20,
    QKVI_MAX_TYPES = 256 /* qkv_encoding.types are bytes */
};

/* UNSUPPORTED: field 'value' is not supported. */
qkv_status qkvi_config_refuse(const qkvi_json_reader *reader, const char *field, const char *value);

/* A string, and a switch, that must be `wanted` if they are there: UNSUPPORTED. */
qkv_status qkvi_config_word(const qkvi_json_reader *reader, const char *field, const char *wanted);
qkv_status qkvi_config_switch(const qkvi_json_reader *reader, const char *field, int wanted);

/* UNSUPPORTED, if a field that others take for every model changes what is computed. decodes: there is a decoder. */
qkv_status qkvi_config_refuse_others(const qkvi_json_reader *reader, int decodes);

/* A size from 1 to limit, which must be there, or has *value where it is not: FORMAT, SHAPE, LIMIT. */
qkv_status qkvi_config_need_size(const qkvi_json_reader *reader, const char *field, int64_t limit,
                                 int64_t *value);
qkv_status qkvi_config_take_size(const qkvi_json_reader *reader, const char *field, int64_t limit,
                                 int64_t *value);

/* Between 0 and 1. */
qkv_status qkvi_config_take_eps(const qkvi_json_reader *reader, const char *field, double *eps);

/* SHAPE unless info->hidden, from the field of that name, is a multiple of n_heads. */
qkv_status qkvi_config_heads(const qkvi_json_reader *reader, const char *hidden, const char *heads,
                             const qkv_model_info *info, int64_t n_heads);

/* One of the activations that are computed, by its name in transformers; `absent` where it is not. UNSUPPORTED. */
qkv_status qkvi_config_activation(const qkvi_json_reader *reader, const char *field,
                                  const char *absent, qkv_model_info *info);

/* tie_word_embeddings: false unties these (QKV_UNTIED_…). */
qkv_status qkvi_config_ties(const qkvi_json_reader *reader, int untied, qkv_model_info *info);

#endif
