/*
 * Rotary positions in config.json. transformers 5 writes rope_parameters, in models with layers of
 * two kinds one object for each; version 4 wrote rope_theta and rope_scaling, which goes before
 * rope_parameters where it is not null, and older files call rope_type type. A field counts where
 * transformers reads it, and nowhere else. What is not computed is refused by its name, in every
 * place where transformers would read it.
 */
#include <math.h>

#include "layer/angles.h"
#include "model/config/config_rotary.h"

/* The fields of positions at the top of the file. */
typedef struct rope_fields {
    const json_t *scaling, *parameters; /* objects, or NULL */
    bool two_kinds;                     /* of layers, with an object for each */
    double original;                    /* 0: absent */
    double turned; /* the share of channels that turn, of a family that has one; 0: it has none */
    int truncates; /* of yarn */
} rope_fields;

static qkv_status take_between(const qkvi_json_reader *reader, const char *field, double least,
                               double most, double *value) {
    QKV_TRY(qkvi_json_take_real(reader, field, value));
    if (*value >= least && *value <= most) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT, "%s%s%s = %g is not between %g and %g",
                          reader->path, *reader->path ? "." : "", field, *value, least, most);
}

/* Every channel turns: partial_rotary_factor is absent, null, or 1. */
static qkv_status refuse_partial(const qkvi_json_reader *reader) {
    double share = 1;
    QKV_TRY(qkvi_json_take_real(reader, "partial_rotary_factor", &share));
    if (share == 1) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED,
                          "partial_rotary_factor = %g is not supported", share);
}

/* null, with which transformers cannot compute either. */
static qkv_status refuse_null(const qkvi_json_reader *reader, const char *field) {
    const json_t *const given = json_object_get(reader->object, field);
    if (!given || !json_is_null(given)) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT, "%s%s%s is null", reader->path,
                          *reader->path ? "." : "", field);
}

/* How much of a head turns: all, but where a family has a share. */
static qkv_status read_share(const qkvi_json_reader *reader, rope_fields *fields) {
    if (fields->turned == 0) return refuse_partial(reader);
    QKV_TRY(refuse_null(reader, "partial_rotary_factor"));
    return take_between(reader, "partial_rotary_factor", 0, 1, &fields->turned);
}

/*
 * transformers puts the fields of rope_scaling into an object of each kind of layers, which has a
 * rope_type already: there type says nothing.
 */
static qkv_status read_rope_type(const qkvi_json_reader *reader, const rope_fields *fields,
                                 qkv_rope *rope) {
    static const struct {
        const char *name;
        qkv_rope_type type;
    } types[] = { { "default", QKV_ROPE_DEFAULT },
                  { "linear", QKV_ROPE_LINEAR },
                  { "dynamic", QKV_ROPE_DYNAMIC },
                  { "llama3", QKV_ROPE_LLAMA3 },
                  { "yarn", QKV_ROPE_YARN } };
    const char *older = "default", *type = NULL;
    if (!fields->two_kinds || reader->object != fields->scaling)
        QKV_TRY(qkvi_json_take_string(reader, "type", &older));
    QKV_TRY(qkvi_json_take_string(reader, "rope_type", &type));
    const char *const field = type ? "rope_type" : "type";
    if (!type) type = older;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        if (strcmp(type, types[t].name) == 0) {
            rope->type = types[t].type;
            return QKV_OK;
        }
    return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED, "%s.%s '%s' is not supported", reader->path,
                          field, QKVI_PRINTABLE(128, type));
}

static qkv_status need_real(const qkvi_json_reader *reader, const char *field) {
    const json_t *const value = json_object_get(reader->object, field);
    if (value && !json_is_null(value)) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT, "%s.%s is missing", reader->path, field);
}

/* Waves that are stretched by the factor, and those that stay. */
static qkv_status read_llama3(const qkvi_json_reader *reader, qkv_rope *rope) {
    QKV_TRY(need_real(reader, "low_freq_factor"));
    QKV_TRY(need_real(reader, "high_freq_factor"));
    QKV_TRY(take_between(reader, "low_freq_factor", 1e-6, 1e6, &rope->low_freq_factor));
    QKV_TRY(take_between(reader, "high_freq_factor", 1e-6, 1e6, &rope->high_freq_factor));
    if (rope->high_freq_factor > rope->low_freq_factor) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT,
                          "%s.high_freq_factor = %g is not above low_freq_factor = %g",
                          reader->path, rope->high_freq_factor, rope->low_freq_factor);
}

/* 0.1 scale ln f + 1, the factor by which scores of longer texts are sharpened. */
static double mscale(double factor, double scale) {
    return factor > 1 ? 0.1 * scale * qkvi_ln(factor) + 1 : 1;
}

/* Factors of channels are longrope, which transformers makes of Phi-3's yarn. */
static qkv_status refuse_channels(const qkvi_json_reader *reader) {
    static const char *const names[] = { "short_factor", "long_factor" };
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        const json_t *const value = json_object_get(reader->object, names[n]);
        if (value && !json_is_null(value))
            return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED, "%s.%s is not supported",
                                  reader->path, names[n]);
    }
    return QKV_OK;
}

static qkv_status read_yarn(const qkvi_json_reader *reader, const rope_fields *fields,
                            qkv_rope *rope) {
    double scale = 0, scale_all = 0;
    rope->beta_fast = 32, rope->beta_slow = 1, rope->truncates = fields->truncates;
    QKV_TRY(refuse_channels(reader));
    QKV_TRY(take_between(reader, "beta_fast", 1e-3, 1e6, &rope->beta_fast));
    QKV_TRY(take_between(reader, "beta_slow", 1e-3, 1e6, &rope->beta_slow));
    QKV_TRY(take_between(reader, "mscale", 0, 1e3, &scale));
    QKV_TRY(take_between(reader, "mscale_all_dim", 0, 1e3, &scale_all));
    rope->attention_factor = scale > 0 && scale_all > 0
                                 ? mscale(rope->factor, scale) / mscale(rope->factor, scale_all)
                                 : mscale(rope->factor, 1);
    return take_between(reader, "attention_factor", 1e-3, 1e3, &rope->attention_factor);
}

/* factor: of yarn it may be null, then it follows from the two lengths. */
static qkv_status read_factor(const qkvi_json_reader *reader, const qkv_model_info *info,
                              qkv_rope *rope) {
    rope->factor = (double)info->max_len / rope->original_len;
    if (rope->type != QKV_ROPE_YARN) QKV_TRY(need_real(reader, "factor"));
    return take_between(reader, "factor", 1, 1e6, &rope->factor);
}

/* One object of positions, whose absent rope_theta is `theta`. */
static qkv_status read_rope(const qkvi_json_reader *reader, rope_fields *fields,
                            const qkv_model_info *info, double theta, qkv_rope *rope) {
    const double original = fields->original;
    *rope = (qkv_rope){ .theta = theta, .factor = 1, .attention_factor = 1 };
    rope->original_len = original > 0 ? original : (double)info->max_len;
    QKV_TRY(read_rope_type(reader, fields, rope));
    QKV_TRY(read_share(reader, fields));
    QKV_TRY(take_between(reader, "rope_theta", 1.001, 1e30, &rope->theta));
    if (rope->type == QKV_ROPE_DEFAULT) return QKV_OK;
    if (original <= 0)
        QKV_TRY(
            take_between(reader, "original_max_position_embeddings", 1, 1e9, &rope->original_len));
    QKV_TRY(read_factor(reader, info, rope));
    /* transformers stretches from max_position_embeddings on, whatever original length is given */
    if (rope->type == QKV_ROPE_DYNAMIC) rope->original_len = (double)info->max_len;
    if (rope->type == QKV_ROPE_LLAMA3) return read_llama3(reader, rope);
    return rope->type == QKV_ROPE_YARN ? read_yarn(reader, fields, rope) : QKV_OK;
}

/* ---- Which object ---------------------------------------------------------------------------- */

/* The object of positions of a kind of layers. An object without any fields is what is absent. */
static qkv_status read_kind(const qkvi_json_reader *reader, rope_fields *fields,
                            const json_t *object, const char *path, double theta,
                            const qkv_model_info *info, qkv_rope *rope) {
    json_t *const none = json_object();
    const qkvi_json_reader inner = { reader->file, path, object ? object : none, reader->error };
    const qkv_status status = none
                                  ? read_rope(&inner, fields, info, theta, rope)
                                  : QKVI_JSON_FAIL(reader, QKV_ERR_MEMORY, "no memory for a field");
    json_decref(none);
    return status;
}

/* Whatever kinds of layers there are, yarn's truncate is read beside them. There null is false. */
static qkv_status read_truncates(const qkvi_json_reader *reader, const json_t *object,
                                 const char *path, rope_fields *fields) {
    const qkvi_json_reader inner = { reader->file, path, object, reader->error };
    const json_t *const given = object ? json_object_get(object, "truncate") : NULL;
    fields->truncates = !given || !json_is_null(given);
    return object ? qkvi_json_take_bool(&inner, "truncate", &fields->truncates) : QKV_OK;
}

/*
 * Of layers of two kinds. In the flat spelling there are two fields for theta; rope_scaling is of
 * full layers alone, and in ModernBERT of both. transformers does not read the original length that
 * is beside the objects.
 */
static qkv_status read_two(const qkvi_json_reader *reader, const qkvi_model_family *family,
                           rope_fields *fields, qkv_model_info *info) {
    static const char *const kinds[2] = { "full_attention", "sliding_attention" };
    static const char *const paths[2] = { "rope_parameters.full_attention",
                                          "rope_parameters.sliding_attention" };
    static const char *const thetas[2][2] = { { "rope_theta", "rope_local_base_freq" },
                                              { "global_rope_theta", "local_rope_theta" } };
    const bool is_encoder = family->kind == QKV_MODEL_ENCODER;
    QKV_TRY(read_truncates(reader, fields->parameters, "rope_parameters", fields));
    for (int k = 0; k < 2; k++) {
        const json_t *object = NULL;
        double theta = family->theta[k];
        const qkvi_json_reader inner = { reader->file, "rope_parameters", fields->parameters,
                                         reader->error };
        const bool scaled = json_object_size(fields->scaling) > 0 && (k == 0 || is_encoder);
        if (fields->parameters) QKV_TRY(qkvi_json_take_object(&inner, kinds[k], &object));
        if (object && scaled)
            return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED,
                                  "rope_scaling beside %s is not supported", paths[k]);
        QKV_TRY(take_between(reader, thetas[is_encoder][k], 1.001, 1e30, &theta));
        const char *const path = object ? paths[k] : scaled ? "rope_scaling" : "";
        QKV_TRY(read_kind(reader, fields,
                          object   ? object
                          : scaled ? fields->scaling
                                   : NULL,
                          path, theta, info, &info->rope[k]));
    }
    return QKV_OK;
}

/* rope_parameters of two kinds in a family that has one would be read otherwise. */
static qkv_status refuse_nested(const qkvi_json_reader *reader, const json_t *object,
                                const char *path) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        if (json_is_object(value))
            return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED,
                                  "%s.%s is not supported: the model has one kind of positions",
                                  path, QKVI_PRINTABLE(64, key));
    }
    return QKV_OK;
}

/* Texts of a model with dynamic positions may be so much longer than those that it learned from. */
static void stretch(qkv_model_info *info) {
    const qkv_rope *const dynamic = info->rope[0].type == QKV_ROPE_DYNAMIC   ? &info->rope[0]
                                    : info->rope[1].type == QKV_ROPE_DYNAMIC ? &info->rope[1]
                                                                             : NULL;
    if (!dynamic) return;
    const double longest = dynamic->factor * (double)info->max_len;
    info->max_len = longest < QKVI_MAX_POSITIONS ? (int64_t)longest : QKVI_MAX_POSITIONS;
}

/* What the top of the file says. GPT-NeoX has names of its own, and reads no others. */
static qkv_status read_top(const qkvi_json_reader *reader, const qkvi_model_family *family,
                           rope_fields *fields, double *theta) {
    const qkvi_config_fields *const f = &family->config;
    if (!f->turned) return take_between(reader, "rope_theta", 1.001, 1e30, theta);
    fields->turned = f->turned_absent;
    QKV_TRY(refuse_null(reader, f->theta));
    QKV_TRY(refuse_null(reader, f->turned));
    QKV_TRY(take_between(reader, f->theta, 1.001, 1e30, theta));
    return take_between(reader, f->turned, 0, 1, &fields->turned);
}

/* The channels that turn, which are pairs. */
static qkv_status count_turned(const qkvi_json_reader *reader, const qkvi_model_family *family,
                               const rope_fields *fields, qkv_model_info *info) {
    info->rotary_dim = info->head_dim;
    if (!family->config.turned) return QKV_OK;
    info->rotary_dim = (int64_t)((double)info->head_dim * fields->turned);
    if (info->rotary_dim >= 2 && info->rotary_dim % 2 == 0) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED,
                          "%s, or partial_rotary_factor, = %g turns %lld of %lld channels of a "
                          "head, which is no even number above 0",
                          family->config.turned, fields->turned, (long long)info->rotary_dim,
                          (long long)info->head_dim);
}

/* Of layers of one kind. */
static qkv_status read_one(const qkvi_json_reader *reader, const qkvi_model_family *family,
                           rope_fields *fields, qkv_model_info *info) {
    const bool scaled = fields->scaling && json_object_size(fields->scaling) > 0;
    const json_t *const object = scaled ? fields->scaling : fields->parameters;
    const char *const path = scaled ? "rope_scaling" : "rope_parameters";
    double theta = family->theta[0] > 0 ? family->theta[0] : 10000;
    if (object) QKV_TRY(refuse_nested(reader, object, path));
    QKV_TRY(take_between(reader, "original_max_position_embeddings", 0, 1e9, &fields->original));
    QKV_TRY(read_top(reader, family, fields, &theta));
    QKV_TRY(read_truncates(reader, object, path, fields));
    QKV_TRY(read_kind(reader, fields, object, path, theta, info, &info->rope[0]));
    info->rope[1] = info->rope[0];
    return QKV_OK;
}

qkv_status qkvi_config_rope(const qkvi_json_reader *reader, const qkvi_model_family *family,
                            qkv_model_info *info) {
    rope_fields fields = { .two_kinds = family->theta[1] > 0 };
    QKV_TRY(qkvi_json_take_object(reader, "rope_scaling", &fields.scaling));
    QKV_TRY(qkvi_json_take_object(reader, "rope_parameters", &fields.parameters));
    if (!family->config.turned) QKV_TRY(refuse_partial(reader));
    QKV_TRY(fields.two_kinds ? read_two(reader, family, &fields, info)
                             : read_one(reader, family, &fields, info));
    stretch(info);
    return count_turned(reader, family, &fields, info);
}
