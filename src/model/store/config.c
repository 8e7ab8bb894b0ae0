/*
 * config.json: see config.h. A field that changes what is computed is honoured or refused, never
 * ignored; limits hold before anything is allocated. "gelu" is the exact form with erf, for the
 * family of BERT the only one we compute.
 */
#include "model/store/config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "model/arch/family.h"
#include "model/store/file.h"
#include "model/store/json.h"

enum {
    MAX_LAYERS = 1024,
    MAX_HIDDEN = 65536,
    MAX_INTERMEDIATE = 1 << 20,
    MAX_VOCAB = 1 << 24,
    MAX_POSITIONS = 1 << 20,
    MAX_TYPES = 256 /* qkv_encoding.types are bytes */
};

static qkv_status refuse(const qkvi_json_reader *reader, const char *field, const char *value) {
    char printable[128];
    qkvi_escape(printable, sizeof printable, value, strlen(value));
    return qkvi_error_set(reader->error, QKV_ERR_UNSUPPORTED, "%s: %s '%s' is not supported",
                          reader->file, field, printable);
}

/* A string that must be `wanted` if it is there. */
static qkv_status must_be(const qkvi_json_reader *reader, const char *field, const char *wanted) {
    const char *value = wanted;
    QKV_TRY(qkvi_json_take_string(reader, field, &value));
    return strcmp(value, wanted) == 0 ? QKV_OK : refuse(reader, field, value);
}

/* A switch that must be `wanted` if it is there. */
static qkv_status must_be_switch(const qkvi_json_reader *reader, const char *field, int wanted) {
    int value = wanted;
    QKV_TRY(qkvi_json_take_bool(reader, field, &value));
    return value == wanted ? QKV_OK : refuse(reader, field, value ? "true" : "false");
}

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

static qkv_status read_kind(const qkvi_json_reader *reader, const config_fields **fields,
                            qkv_model_info *info) {
    const char *type = NULL;
    QKV_TRY(qkvi_json_take_string(reader, "model_type", &type));
    if (!type)
        return qkvi_error_set(reader->error, QKV_ERR_UNSUPPORTED,
                              "%s: model_type is missing; qkv loads %s", reader->file,
                              qkvi_family_types);
    const qkvi_family *const family = qkvi_family_of(type);
    *fields = family ? fields_of(type) : NULL;
    if (!*fields) return refuse(reader, "model_type", type);
    info->architecture = family->type;
    QKV_TRY(must_be(reader, (*fields)->activation, "gelu"));
    QKV_TRY(must_be(reader, "position_embedding_type", "absolute"));
    QKV_TRY(must_be_switch(reader, "tie_word_embeddings", 1));
    if ((*fields)->tied) QKV_TRY(must_be_switch(reader, (*fields)->tied, 1));
    QKV_TRY(must_be_switch(reader, "is_decoder", 0));
    return must_be_switch(reader, "add_cross_attention", 0);
}

static qkv_status check_size(const qkvi_json_reader *reader, const char *field, int64_t value) {
    if (value > 0) return QKV_OK;
    return qkvi_error_set(reader->error, QKV_ERR_SHAPE, "%s: %s = 0 is less than 1", reader->file,
                          field);
}

static qkv_status need_size(const qkvi_json_reader *reader, const char *field, int64_t limit,
                            int64_t *value) {
    QKV_TRY(qkvi_json_need_int(reader, field, limit, value));
    return check_size(reader, field, *value);
}

/* The same where a default is known. */
static qkv_status take_size(const qkvi_json_reader *reader, const char *field, int64_t limit,
                            int64_t *value) {
    QKV_TRY(qkvi_json_take_int(reader, field, limit, value));
    return check_size(reader, field, *value);
}

static qkv_status read_heads(const qkvi_json_reader *reader, const config_fields *fields,
                             qkv_model_info *info) {
    QKV_TRY(need_size(reader, fields->n_heads, MAX_HIDDEN, &info->n_heads));
    if (info->hidden % info->n_heads != 0)
        return qkvi_error_set(reader->error, QKV_ERR_SHAPE,
                              "%s: %s = %lld is not a multiple of %s = %lld", reader->file,
                              fields->hidden, (long long)info->hidden, fields->n_heads,
                              (long long)info->n_heads);
    int64_t kv_heads = info->n_heads;
    QKV_TRY(qkvi_json_take_int(reader, "num_key_value_heads", MAX_HIDDEN, &kv_heads));
    if (kv_heads != info->n_heads)
        return qkvi_error_set(reader->error, QKV_ERR_SHAPE,
                              "%s: num_key_value_heads = %lld is not %s = %lld", reader->file,
                              (long long)kv_heads, fields->n_heads, (long long)info->n_heads);
    info->head_dim = info->hidden / info->n_heads;
    return QKV_OK;
}

/* Segments, if there are any. */
static qkv_status read_types(const qkvi_json_reader *reader, const config_fields *fields,
                             qkv_model_info *info) {
    info->n_types = 0;
    if (!fields->n_types) return QKV_OK;
    info->n_types = 2;
    return take_size(reader, fields->n_types, MAX_TYPES, &info->n_types);
}

/* RoBERTa's first position is the row after that of padding. */
static qkv_status read_positions(const qkvi_json_reader *reader, qkv_model_info *info) {
    int64_t pad = 1;
    QKV_TRY(need_size(reader, "max_position_embeddings", MAX_POSITIONS, &info->max_len));
    info->first_position = 0;
    if (strcmp(info->architecture, "roberta") != 0) return QKV_OK;
    QKV_TRY(qkvi_json_take_int(reader, "pad_token_id", MAX_VOCAB, &pad));
    info->first_position = pad + 1;
    info->max_len -= info->first_position;
    if (info->max_len >= 1) return QKV_OK;
    return qkvi_error_set(reader->error, QKV_ERR_SHAPE,
                          "%s: max_position_embeddings = %lld leaves no position after "
                          "pad_token_id = %lld",
                          reader->file, (long long)(info->max_len + info->first_position),
                          (long long)pad);
}

static qkv_status read_sizes(const qkvi_json_reader *reader, const config_fields *fields,
                             qkv_model_info *info) {
    QKV_TRY(need_size(reader, fields->n_layers, MAX_LAYERS, &info->n_layers));
    QKV_TRY(need_size(reader, fields->hidden, MAX_HIDDEN, &info->hidden));
    info->embedding_size = info->hidden;
    if (strcmp(info->architecture, "electra") == 0) {
        info->embedding_size = 128;
        QKV_TRY(take_size(reader, "embedding_size", MAX_HIDDEN, &info->embedding_size));
    }
    QKV_TRY(need_size(reader, fields->intermediate, MAX_INTERMEDIATE, &info->intermediate));
    QKV_TRY(need_size(reader, "vocab_size", MAX_VOCAB, &info->vocab_size));
    QKV_TRY(read_positions(reader, info));
    info->pooling = QKV_POOLING_MEAN; /* unless a modules.json says otherwise */
    info->sentence_len = info->max_len;
    QKV_TRY(read_types(reader, fields, info));
    return read_heads(reader, fields, info);
}

static qkv_status read_rest(const qkvi_json_reader *reader, const config_fields *fields,
                            qkv_model_info *info) {
    info->layer_norm_eps = 1e-12;
    if (fields->eps) QKV_TRY(qkvi_json_take_real(reader, fields->eps, &info->layer_norm_eps));
    if (!(info->layer_norm_eps > 0 && info->layer_norm_eps < 1))
        return qkvi_error_set(reader->error, QKV_ERR_FORMAT,
                              "%s: layer_norm_eps = %g is not between 0 and 1", reader->file,
                              info->layer_norm_eps);
    if (strcmp(info->architecture, "bert") != 0) /* the field is ours */
        return must_be_switch(reader, "sinusoidal_positions", 0);
    return qkvi_json_take_bool(reader, "sinusoidal_positions", &info->sinusoidal_positions);
}

qkv_status qkvi_config_read(const char *file, const void *bytes, size_t n_bytes,
                            qkv_model_info *info, qkv_error *error) {
    json_t *root;
    memset(info, 0, sizeof *info);
    QKV_TRY(qkvi_json_load(file, bytes, n_bytes, &qkvi_json_limits_config, &root, error));
    const qkvi_json_reader reader = { .file = file, .path = "", .object = root, .error = error };
    const config_fields *fields = NULL;
    qkv_status status = read_kind(&reader, &fields, info);
    if (status == QKV_OK) status = read_sizes(&reader, fields, info);
    if (status == QKV_OK) status = read_rest(&reader, fields, info);
    json_decref(root);
    return status;
}

static const char *architecture_class(const qkv_model_info *info) {
    return info->has_mlm && info->has_nsp ? "BertForPreTraining"
           : info->has_mlm                ? "BertForMaskedLM"
                                          : "BertModel";
}

qkv_status qkvi_config_write(qkvi_files *files, const qkv_model_info *info, qkv_error *error) {
    static const char format[] = "{\n"
                                 "  \"architectures\": [\"%s\"],\n"
                                 "  \"attention_probs_dropout_prob\": 0.0,\n"
                                 "  \"hidden_act\": \"gelu\",\n"
                                 "  \"hidden_dropout_prob\": 0.0,\n"
                                 "  \"hidden_size\": %lld,\n"
                                 "  \"initializer_range\": 0.02,\n"
                                 "  \"intermediate_size\": %lld,\n"
                                 "  \"layer_norm_eps\": %.17g,\n"
                                 "  \"max_position_embeddings\": %lld,\n"
                                 "  \"model_type\": \"bert\",\n"
                                 "  \"num_attention_heads\": %lld,\n"
                                 "  \"num_hidden_layers\": %lld,\n"
                                 "  \"pad_token_id\": 0,\n"
                                 "  \"position_embedding_type\": \"absolute\",\n"
                                 "  \"sinusoidal_positions\": %s,\n"
                                 "  \"type_vocab_size\": %lld,\n"
                                 "  \"vocab_size\": %lld\n"
                                 "}\n";
    char text[2048];
    const int n = snprintf(text, sizeof text, format, architecture_class(info),
                           (long long)info->hidden, (long long)info->intermediate,
                           info->layer_norm_eps, (long long)info->max_len, (long long)info->n_heads,
                           (long long)info->n_layers, info->sinusoidal_positions ? "true" : "false",
                           (long long)info->n_types, (long long)info->vocab_size);
    return qkvi_files_add(files, "config.json", text, (size_t)n, error);
}
