/*
 * config.json: see config.h. Which fields there are, and what an absent one means, is in the
 * family's row (arch/family.h). A field that changes what is computed is honoured or refused, never
 * ignored; limits hold before anything is allocated.
 */
#include "model/config/config.h"

#include "files/base.h"
#include "model/arch/family.h"
#include "model/config/config_distance.h"
#include "model/config/config_images.h"
#include "model/config/config_rotary.h"

enum { MAX_IDS = 8 };

/* The type that was perhaps meant: at most half of it is otherwise. NULL: none is near. */
static const char *nearest_type(const char *type) {
    const char *nearest = NULL;
    int least = (int)(strlen(type) < QKVI_NEAREST_BYTES ? strlen(type) / 2 : 0) + 1;
    for (const qkvi_model_family *f = qkvi_families; f->type; f++) {
        const int distance = qkvi_edit_distance(type, f->type);
        if (distance >= least) continue;
        least = distance;
        nearest = f->type;
    }
    return nearest;
}

static qkv_status refuse_type(const qkvi_json_reader *reader, const char *type) {
    const char *const nearest = nearest_type(type);
    char printable[128];
    qkvi_escape(printable, sizeof printable, type, strlen(type));
    return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED,
                          "model_type '%s' is not supported; qkv loads %s%s%s%s", printable,
                          qkvi_family_types, nearest ? "; the nearest is \"" : "",
                          nearest ? nearest : "", nearest ? "\"" : "");
}

/* Whose config.json it is. */
static qkv_status read_type(const qkvi_json_reader *reader, const qkvi_model_family **family) {
    const char *type = NULL;
    QKV_TRY(qkvi_json_take_string(reader, "model_type", &type));
    if (!type)
        return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED, "model_type is missing; qkv loads %s",
                              qkvi_family_types);
    *family = qkvi_family_of(type);
    return *family ? QKV_OK : refuse_type(reader, type);
}

/* ---- Sizes ----------------------------------------------------------------------------------- */

/*
 * *value is what the file says, or what its absence means. A size without a field keeps *value, if
 * it is no multiple of hidden.
 */
static qkv_status read_size(const qkvi_json_reader *reader, const qkvi_size *size, int64_t limit,
                            const qkv_model_info *info, int64_t *value) {
    if (!size->field && size->absent < 0) *value = -size->absent * info->hidden;
    if (!size->field) return QKV_OK;
    if (size->absent == 0) return qkvi_config_need_size(reader, size->field, limit, value);
    *value = size->absent < 0 ? -size->absent * info->hidden : size->absent;
    return qkvi_config_take_size(reader, size->field, limit, value);
}

/* The layers, heads and width of the feed-forward of a stack. */
static qkv_status read_stack(const qkvi_json_reader *reader, const qkvi_config_fields *fields,
                             int stack, const qkv_model_info *info, int64_t sizes[3]) {
    const qkvi_size *const heads = &fields->stacks[stack].n_heads;
    QKV_TRY(read_size(reader, &fields->stacks[stack].n_layers, QKVI_MAX_LAYERS, info, &sizes[0]));
    QKV_TRY(read_size(reader, heads, QKVI_MAX_HIDDEN, info, &sizes[1]));
    QKV_TRY(read_size(reader, &fields->stacks[stack].intermediate, QKVI_MAX_INTERMEDIATE, info,
                      &sizes[2]));
    return QKV_OK;
}

static qkv_status read_stacks(const qkvi_json_reader *reader, const qkvi_model_family *family,
                              qkv_model_info *info) {
    int64_t sizes[2][3] = { { 0 } };
    /* others have a head_dim */
    const bool divides = family->positions != QKVI_ROTARY && family->positions != QKVI_DISTANCES;
    for (int s = 0; s < qkvi_family_stacks(family); s++) {
        QKV_TRY(read_stack(reader, &family->config, s, info, sizes[s]));
        if (divides)
            QKV_TRY(qkvi_config_heads(reader, family->config.hidden.field,
                                      family->config.stacks[s].n_heads.field, info, sizes[s][1]));
    }
    info->n_layers = sizes[0][0], info->n_heads = sizes[0][1], info->intermediate = sizes[0][2];
    info->head_dim = info->hidden / info->n_heads;
    info->n_kv_heads = info->n_heads;
    info->n_decoder_layers = sizes[1][0], info->n_decoder_heads = sizes[1][1];
    info->decoder_intermediate = sizes[1][2];
    return QKV_OK;
}

/* Positions may begin after that of padding. */
static qkv_status read_positions(const qkvi_json_reader *reader, const qkvi_model_family *family,
                                 qkv_model_info *info) {
    const qkvi_config_fields *const fields = &family->config;
    int64_t pad = fields->pad;
    QKV_TRY(read_size(reader, &fields->max_len, QKVI_MAX_POSITIONS, info, &info->max_len));
    info->first_position = family->first_position;
    if (!family->first_after_pad) return QKV_OK;
    QKV_TRY(qkvi_json_take_int(reader, "pad_token_id", QKVI_MAX_VOCAB, &pad));
    info->first_position = pad + 1;
    info->max_len -= info->first_position;
    if (info->max_len >= 1) return QKV_OK;
    return QKVI_JSON_FAIL(
        reader, QKV_ERR_SHAPE, "%s = %lld leaves no position after pad_token_id = %lld",
        fields->max_len.field, (long long)(info->max_len + info->first_position), (long long)pad);
}

static qkv_status check_equal(const qkvi_json_reader *reader, const char *field, qkv_status status,
                              const char *other, int64_t wanted) {
    int64_t value = wanted;
    if (!field) return QKV_OK;
    QKV_TRY(qkvi_json_take_int(reader, field, INT32_MAX, &value));
    if (value == wanted) return QKV_OK;
    return QKVI_JSON_FAIL(reader, status, "%s = %lld is not %s%lld", field, (long long)value, other,
                          (long long)wanted);
}

/* Of one vocabulary, or of one for each language. */
static qkv_status read_target_words(const qkvi_json_reader *reader, const char *field,
                                    qkv_model_info *info) {
    info->target_vocab_size = info->vocab_size;
    if (!field) return QKV_OK;
    QKV_TRY(qkvi_config_take_size(reader, field, QKVI_MAX_VOCAB, &info->target_vocab_size));
    if (info->separate_words || info->target_vocab_size == info->vocab_size) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_SHAPE,
                          "%s = %lld is not vocab_size = %lld, but "
                          "share_encoder_decoder_embeddings is true",
                          field, (long long)info->target_vocab_size, (long long)info->vocab_size);
}

static qkv_status read_sizes(const qkvi_json_reader *reader, const qkvi_model_family *family,
                             qkv_model_info *info) {
    const qkvi_config_fields *const f = &family->config;
    char heads[64];
    QKV_TRY(read_size(reader, &f->hidden, QKVI_MAX_HIDDEN, info, &info->hidden));
    if (f->hidden_before)
        QKV_TRY(qkvi_config_take_size(reader, f->hidden_before, QKVI_MAX_HIDDEN, &info->hidden));
    info->embedding_size = info->hidden;
    QKV_TRY(read_size(reader, &f->embedding_size, QKVI_MAX_HIDDEN, info, &info->embedding_size));
    QKV_TRY(read_size(reader, &f->vocab_size, QKVI_MAX_VOCAB, info, &info->vocab_size));
    QKV_TRY(read_positions(reader, family, info));
    QKV_TRY(read_size(reader, &f->n_types, QKVI_MAX_TYPES, info, &info->n_types));
    QKV_TRY(read_stacks(reader, family, info));
    snprintf(heads, sizeof heads, "%s = ", f->stacks[0].n_heads.field);
    QKV_TRY(check_equal(reader, f->kv_heads, QKV_ERR_SHAPE, heads, info->n_heads));
    QKV_TRY(check_equal(reader, f->first_position, QKV_ERR_UNSUPPORTED, "", info->first_position));
    if (family->positions == QKVI_ROTARY) QKV_TRY(qkvi_config_rotary(reader, family, info));
    if (family->positions == QKVI_DISTANCES) QKV_TRY(qkvi_config_distances(reader, family, info));
    if (family->positions == QKVI_ALIBI) QKV_TRY(qkvi_config_alibi(reader, info));
    info->pooled_dim = family->positions_last ? info->embedding_size : info->hidden;
    info->pooling = QKV_POOLING_MEAN; /* unless a modules.json says otherwise */
    info->sentence_len = info->max_len;
    return read_target_words(reader, f->target_vocab_size, info);
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

/*
 * What transformers gives to nn.Embedding as padding_idx: below 0 it counts from the end, and null
 * is none. What no row of the words has is none here.
 */
static int64_t read_padding(const qkvi_json_reader *reader, int64_t absent, int64_t n_words) {
    const json_t *const value = json_object_get(reader->object, "pad_token_id");
    int64_t pad = absent;
    if (value) pad = json_is_integer(value) ? json_integer_value(value) : INT64_MIN;
    if (pad < 0 && pad >= -n_words) pad += n_words;
    return pad >= 0 && pad < n_words ? pad : -1;
}

/* The first of the tokens that a field names; one that the vocabulary does not have is none. */
static qkv_status read_id(const qkvi_json_reader *reader, const char *field, int64_t absent,
                          int64_t n_words, int64_t *id) {
    int64_t ids[MAX_IDS] = { absent }, n = 1;
    QKV_TRY(qkvi_json_take_ids(reader, field, MAX_IDS, ids, &n));
    *id = n > 0 && ids[0] < n_words ? ids[0] : -1;
    return QKV_OK;
}

static qkv_status read_start(const qkvi_json_reader *reader, qkv_model_info *info) {
    QKV_TRY(qkvi_json_take_int(reader, "decoder_start_token_id", INT32_MAX, &info->start_id));
    if (info->start_id < info->target_vocab_size) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_SHAPE,
                          "decoder_start_token_id = %lld is not less than the %lld tokens of "
                          "the decoder",
                          (long long)info->start_id, (long long)info->target_vocab_size);
}

static qkv_status read_ids(const qkvi_json_reader *reader, const qkvi_model_family *family,
                           qkv_model_info *info) {
    const qkvi_config_fields *const f = &family->config;
    const int64_t n = info->target_vocab_size;
    info->bos_id = f->bos, info->eos_id = f->eos, info->start_id = f->start;
    info->pad_id = read_padding(reader, f->pad, n);
    if (family->kind == QKV_MODEL_ENCODER) return QKV_OK;
    QKV_TRY(read_id(reader, "bos_token_id", f->bos, n, &info->bos_id));
    QKV_TRY(read_id(reader, "eos_token_id", f->eos, n, &info->eos_id));
    return family->kind == QKV_MODEL_PAIR
               ? read_start(reader, info)
               : read_id(reader, "pad_token_id", f->pad, n, &info->pad_id);
}

/* ---- Switches -------------------------------------------------------------------------------- */

static qkv_status read_switch(const qkvi_json_reader *reader, const qkvi_switch *s,
                              qkv_model_info *info) {
    int value = s->usual;
    if (s->at == 0) return qkvi_config_switch(reader, s->field, s->usual);
    QKV_TRY(qkvi_json_take_bool(reader, s->field, &value));
    if (s->at != QKVI_SWITCH_IGNORED) *(int *)((char *)info + s->at) = value != s->usual;
    return QKV_OK;
}

/* Biases of all linear layers in blocks, or of none. */
static qkv_status read_enabled(const qkvi_json_reader *reader, qkv_model_info *info) {
    int enabled = 1;
    QKV_TRY(qkvi_json_take_bool(reader, "enable_bias", &enabled));
    info->biases = enabled ? QKV_BIAS_QKV | QKV_BIAS_OUTPUT | QKV_BIAS_MLP : 0;
    return QKV_OK;
}

/* Where each side has words of its own, only the head is tied to something: the decoder's. */
static qkv_status read_ties(const qkvi_json_reader *reader, const qkvi_model_family *family,
                            qkv_model_info *info) {
    const bool sides = family->shared_words && !info->separate_words;
    if (family->always_tied) return QKV_OK;
    return qkvi_config_ties(reader, !family->config.untied,
                            QKV_UNTIED_HEAD | (sides ? QKV_UNTIED_ENCODER | QKV_UNTIED_DECODER : 0),
                            info);
}

/* Gemma's gelu is the tanh form, too; from Gemma 2 on, the field has another name. */
static qkv_status read_activation(const qkvi_json_reader *reader, const qkvi_model_family *family,
                                  qkv_model_info *info) {
    const qkvi_config_fields *const f = &family->config;
    const char *const field = family->gemma > 1 ? "hidden_activation" : f->activation;
    if (family->positions == QKVI_DISTANCES) return qkvi_config_feed_forward(reader, family, info);
    QKV_TRY(qkvi_config_activation(reader, field, f->activation_absent, info));
    if (family->gemma == 1 && strcmp(info->activation, "gelu") == 0) info->activation = "gelu_tanh";
    return QKV_OK;
}

static qkv_status read_switches(const qkvi_json_reader *reader, const qkvi_model_family *family,
                                qkv_model_info *info) {
    const qkvi_config_fields *const f = &family->config;
    info->kind = family->kind;
    info->has_lm = family->kind != QKV_MODEL_ENCODER && !family->headless;
    info->sinusoidal_positions = family->positions == QKVI_SINUSOIDS;
    info->layer_norm_eps = f->eps_absent;
    if (f->eps) QKV_TRY(qkvi_config_take_eps(reader, f->eps, &info->layer_norm_eps));
    QKV_TRY(read_activation(reader, family, info));
    if (f->position_word) QKV_TRY(qkvi_config_word(reader, f->position_word, "absolute"));
    for (int s = 0; s < QKVI_SWITCHES && f->switches[s].field; s++)
        QKV_TRY(read_switch(reader, &f->switches[s], info));
    if (info->post_norm) info->no_last_norm = 1;
    if (family->biases == QKVI_BIASES_ENABLED) QKV_TRY(read_enabled(reader, info));
    return read_ties(reader, family, info);
}

/* ---- Whole files ----------------------------------------------------------------------------- */

/*
 * Sizes under the names that transformers has for all models: they go before the model's own, in
 * whichever order they are written.
 */
static qkv_status rename_sizes(const qkvi_json_reader *reader, json_t *root,
                               const qkvi_config_fields *f) {
    const char *const names[][2] = { { "hidden_size", f->hidden.field },
                                     { "num_attention_heads", f->stacks[0].n_heads.field },
                                     { "num_hidden_layers", f->stacks[0].n_layers.field },
                                     { "head_dim", f->head_dim.field },
                                     { "max_position_embeddings", f->max_len.field } };
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        if (!names[n][1]) continue;
        json_t *const value = json_object_get(root, names[n][0]);
        if (!value || json_is_null(value) || strcmp(names[n][0], names[n][1]) == 0) continue;
        if (json_object_set(root, names[n][1], value) != 0)
            return QKVI_JSON_FAIL(reader, QKV_ERR_MEMORY, "no memory for a field");
    }
    return QKV_OK;
}

static qkv_status read_row(const qkvi_json_reader *reader, json_t *object,
                           const qkvi_model_family *family, qkv_model_info *info) {
    info->architecture = family->type;
    QKV_TRY(qkvi_config_refuse_others(reader, family->kind != QKV_MODEL_ENCODER,
                                      family->slides != QKVI_SLIDES_NEVER));
    if (family->positions == QKVI_DISTANCES)
        QKV_TRY(qkvi_config_own_layers(reader, family, object));
    QKV_TRY(rename_sizes(reader, object, &family->config));
    QKV_TRY(read_switches(reader, family, info));
    QKV_TRY(read_sizes(reader, family, info));
    if (qkvi_family_sees(family)) QKV_TRY(qkvi_config_images(reader, family, info));
    info->sentence_len = info->max_len;
    if (family->joint_biased) QKV_TRY(qkvi_config_joint(reader, family, info));
    return read_ids(reader, family, info);
}

/* Sizes of a tower are in a part of the file; classes, and what both have, in the file itself. */
static qkv_status read_tower(const qkvi_json_reader *reader, const char *part,
                             const qkvi_model_family *family, qkv_model_info *info) {
    json_t *object;
    QKV_TRY(qkvi_config_part(reader, part, &object));
    const qkvi_json_reader inner = {
        .file = reader->file, .path = reader->path, .object = object, .error = reader->error
    };
    const qkv_status status = read_row(&inner, object, family, info);
    json_decref(object);
    return status;
}

static qkv_status read_any(const qkvi_json_reader *reader, json_t *root, bool images,
                           qkv_model_info *info) {
    const qkvi_model_family *type = NULL;
    QKV_TRY(read_type(reader, &type));
    const qkvi_model_family *const family = qkvi_config_tower(reader, type, images);
    const char *const part = family != type ? "vision_config" : family->part;
    if (part) QKV_TRY(qkvi_config_refuse_others(reader, 0, 0));
    QKV_TRY(part ? read_tower(reader, part, family, info) : read_row(reader, root, family, info));
    if (family->joint && !family->joint_biased) QKV_TRY(qkvi_config_joint(reader, family, info));
    return family->classifier ? qkvi_config_classes(reader, info) : QKV_OK;
}

static qkv_status config_read(const char *file, const void *bytes, size_t n_bytes, bool images,
                              qkv_model_info *info, qkv_error *error) {
    json_t *root;
    memset(info, 0, sizeof *info);
    QKV_TRY(qkvi_json_load(file, bytes, n_bytes, &qkvi_json_limits_config, &root, error));
    const qkvi_json_reader reader = { .file = file, .path = "", .object = root, .error = error };
    const qkv_status status = read_any(&reader, root, images, info);
    json_decref(root);
    return status;
}

qkv_status qkvi_config_read(const char *file, const void *bytes, size_t n_bytes,
                            qkv_model_info *info, qkv_error *error) {
    return config_read(file, bytes, n_bytes, false, info, error);
}

qkv_status qkvi_config_read_images(const char *file, const void *bytes, size_t n_bytes, bool *has,
                                   qkv_model_info *info, qkv_error *error) {
    qkv_model_info whole;
    memset(info, 0, sizeof *info);
    *has = false;
    QKV_TRY(qkvi_config_read(file, bytes, n_bytes, &whole, error));
    if (!qkvi_family_of(whole.architecture)->images) return QKV_OK;
    *has = true;
    return config_read(file, bytes, n_bytes, true, info, error);
}
