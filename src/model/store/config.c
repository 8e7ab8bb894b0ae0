/*
 * config.json: see config.h. A field that changes what is computed is honoured or refused, never
 * ignored; limits hold before anything is allocated. "gelu" is the exact form with erf, for the
 * family of BERT the only one we compute. Models with a decoder are in config_decoder.c.
 */
#include "model/store/config.h"

#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "model/arch/family.h"
#include "model/store/config_fields.h"
#include "model/store/file.h"

/* What the fields are called, by model_type. */
typedef struct config_fields {
    const char *type;
    const char *n_layers, *hidden, *n_heads, *intermediate, *activation;
    const char *n_types, *eps; /* NULL: there is none */
    const char *tied;          /* older spelling of tie_word_embeddings; NULL */
} config_fields;

#define BERT_FIELDS                                                                                \
    .n_layers = "num_hidden_layers", .hidden = "hidden_size", .n_heads = "num_attention_heads",    \
    .intermediate = "intermediate_size", .activation = "hidden_act", .n_types = "type_vocab_size", \
    .eps = "layer_norm_eps"

static const config_fields all_fields[] = {
    { .type = "bert", BERT_FIELDS },
    { .type = "roberta", BERT_FIELDS },
    { .type = "electra", BERT_FIELDS },
    { .type = "distilbert",
      .n_layers = "n_layers",
      .hidden = "dim",
      .n_heads = "n_heads",
      .intermediate = "hidden_dim",
      .activation = "activation",
      .tied = "tie_weights_" },
};

static const config_fields *fields_of(const char *type) {
    for (size_t f = 0; f < sizeof all_fields / sizeof *all_fields; f++)
        if (strcmp(all_fields[f].type, type) == 0) return &all_fields[f];
    return NULL;
}

/* Whose config.json it is. */
static qkv_status read_type(const qkvi_json_reader *reader, qkv_model_info *info) {
    const char *type = NULL;
    QKV_TRY(qkvi_json_take_string(reader, "model_type", &type));
    if (!type)
        return qkvi_error_set(reader->error, QKV_ERR_UNSUPPORTED,
                              "%s: model_type is missing; qkv loads %s", reader->file,
                              qkvi_family_types);
    const qkvi_model_family *const family = qkvi_family_of(type);
    if (!family) return qkvi_config_refuse(reader, "model_type", type);
    info->architecture = family->type;
    return QKV_OK;
}

static qkv_status read_switches(const qkvi_json_reader *reader, const config_fields *fields) {
    QKV_TRY(qkvi_config_word(reader, fields->activation, "gelu"));
    QKV_TRY(qkvi_config_word(reader, "position_embedding_type", "absolute"));
    QKV_TRY(qkvi_config_switch(reader, "tie_word_embeddings", 1));
    if (fields->tied) QKV_TRY(qkvi_config_switch(reader, fields->tied, 1));
    QKV_TRY(qkvi_config_switch(reader, "is_decoder", 0));
    return qkvi_config_switch(reader, "add_cross_attention", 0);
}

/* Segments, if there are any. */
static qkv_status read_types(const qkvi_json_reader *reader, const config_fields *fields,
                             qkv_model_info *info) {
    info->n_types = 0;
    if (!fields->n_types) return QKV_OK;
    info->n_types = 2;
    return qkvi_config_take_size(reader, fields->n_types, QKVI_MAX_TYPES, &info->n_types);
}

/* RoBERTa's first position is the row after that of padding. */
static qkv_status read_positions(const qkvi_json_reader *reader, qkv_model_info *info) {
    int64_t pad = 1;
    QKV_TRY(qkvi_config_need_size(reader, "max_position_embeddings", QKVI_MAX_POSITIONS,
                                  &info->max_len));
    info->first_position = 0;
    if (strcmp(info->architecture, "roberta") != 0) return QKV_OK;
    QKV_TRY(qkvi_json_take_int(reader, "pad_token_id", QKVI_MAX_VOCAB, &pad));
    info->first_position = pad + 1;
    info->max_len -= info->first_position;
    if (info->max_len >= 1) return QKV_OK;
    return qkvi_error_set(reader->error, QKV_ERR_SHAPE,
                          "%s: max_position_embeddings = %lld leaves no position after "
                          "pad_token_id = %lld",
                          reader->file, (long long)(info->max_len + info->first_position),
                          (long long)pad);
}

static qkv_status read_kv_heads(const qkvi_json_reader *reader, const config_fields *fields,
                                const qkv_model_info *info) {
    int64_t kv_heads = info->n_heads;
    QKV_TRY(qkvi_json_take_int(reader, "num_key_value_heads", QKVI_MAX_HIDDEN, &kv_heads));
    if (kv_heads == info->n_heads) return QKV_OK;
    return qkvi_error_set(reader->error, QKV_ERR_SHAPE,
                          "%s: num_key_value_heads = %lld is not %s = %lld", reader->file,
                          (long long)kv_heads, fields->n_heads, (long long)info->n_heads);
}

static qkv_status read_sizes(const qkvi_json_reader *reader, const config_fields *fields,
                             qkv_model_info *info) {
    QKV_TRY(qkvi_config_need_size(reader, fields->n_layers, QKVI_MAX_LAYERS, &info->n_layers));
    QKV_TRY(qkvi_config_need_size(reader, fields->hidden, QKVI_MAX_HIDDEN, &info->hidden));
    info->embedding_size = info->hidden;
    if (strcmp(info->architecture, "electra") == 0) {
        info->embedding_size = 128;
        QKV_TRY(qkvi_config_take_size(reader, "embedding_size", QKVI_MAX_HIDDEN,
                                      &info->embedding_size));
    }
    QKV_TRY(qkvi_config_need_size(reader, fields->intermediate, QKVI_MAX_INTERMEDIATE,
                                  &info->intermediate));
    QKV_TRY(qkvi_config_need_size(reader, "vocab_size", QKVI_MAX_VOCAB, &info->vocab_size));
    QKV_TRY(read_positions(reader, info));
    info->pooling = QKV_POOLING_MEAN; /* unless a modules.json says otherwise */
    info->sentence_len = info->max_len;
    QKV_TRY(read_types(reader, fields, info));
    QKV_TRY(qkvi_config_need_size(reader, fields->n_heads, QKVI_MAX_HIDDEN, &info->n_heads));
    QKV_TRY(qkvi_config_heads(reader, fields->hidden, fields->n_heads, info, info->n_heads));
    info->head_dim = info->hidden / info->n_heads;
    return read_kv_heads(reader, fields, info);
}

static qkv_status read_rest(const qkvi_json_reader *reader, const config_fields *fields,
                            qkv_model_info *info) {
    info->layer_norm_eps = 1e-12;
    if (fields->eps) QKV_TRY(qkvi_config_take_eps(reader, fields->eps, &info->layer_norm_eps));
    info->target_vocab_size = info->vocab_size;
    info->activation = "gelu";
    info->bos_id = info->eos_id = info->pad_id = info->start_id = -1;
    if (strcmp(info->architecture, "bert") != 0) /* the field is ours */
        return qkvi_config_switch(reader, "sinusoidal_positions", 0);
    return qkvi_json_take_bool(reader, "sinusoidal_positions", &info->sinusoidal_positions);
}

static qkv_status read_encoder(const qkvi_json_reader *reader, const config_fields *fields,
                               qkv_model_info *info) {
    QKV_TRY(read_switches(reader, fields));
    QKV_TRY(read_sizes(reader, fields, info));
    return read_rest(reader, fields, info);
}

static qkv_status read_any(const qkvi_json_reader *reader, qkv_model_info *info) {
    QKV_TRY(read_type(reader, info));
    const config_fields *const fields = fields_of(info->architecture);
    return fields ? read_encoder(reader, fields, info) : qkvi_config_read_decoder(reader, info);
}

qkv_status qkvi_config_read(const char *file, const void *bytes, size_t n_bytes,
                            qkv_model_info *info, qkv_error *error) {
    json_t *root;
    memset(info, 0, sizeof *info);
    QKV_TRY(qkvi_json_load(file, bytes, n_bytes, &qkvi_json_limits_config, &root, error));
    const qkvi_json_reader reader = { .file = file, .path = "", .object = root, .error = error };
    const qkv_status status = read_any(&reader, info);
    json_decref(root);
    return status;
}
