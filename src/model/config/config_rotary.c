/*
 * config.json of models with rotary positions, Llama and its kin and ModernBERT, beyond the fields
 * that all families have: key/value heads, windows, layers of two kinds, biases, soft caps.
 * Spellings are those of transformers 4 and 5; what an absent field means is in the family's row.
 * Positions are in config_rope.c.
 */
#include "model/config/config_rotary.h"

#include <math.h>

/* ---- Heads ----------------------------------------------------------------------------------- */

static qkv_status read_head_dim(const qkvi_json_reader *reader, const qkvi_config_fields *f,
                                qkv_model_info *info) {
    const json_t *const given = json_object_get(reader->object, "head_dim");
    info->head_dim = f->head_dim.absent;
    if (info->head_dim == 0 && (!given || json_is_null(given))) {
        QKV_TRY(qkvi_config_heads(reader, f->hidden.field, f->stacks[0].n_heads.field, info,
                                  info->n_heads));
        info->head_dim = info->hidden / info->n_heads;
    }
    return qkvi_config_take_size(reader, "head_dim", QKVI_MAX_HIDDEN, &info->head_dim);
}

/* ModernBERT and GPT-NeoX have as many of all heads, whose width follows. */
static qkv_status check_heads(const qkvi_json_reader *reader, const qkvi_config_fields *f,
                              const qkv_model_info *info) {
    int64_t head_dim = info->head_dim;
    QKV_TRY(qkvi_config_heads(reader, f->hidden.field, f->stacks[0].n_heads.field, info,
                              info->n_heads));
    QKV_TRY(qkvi_json_take_int(reader, "head_dim", INT32_MAX, &head_dim));
    if (head_dim == info->head_dim) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_SHAPE, "head_dim = %lld is not %lld, %s / %s",
                          (long long)head_dim, (long long)info->head_dim, f->hidden.field,
                          f->stacks[0].n_heads.field);
}

static qkv_status check_even(const qkvi_json_reader *reader, const qkv_model_info *info) {
    if (info->head_dim % 2 == 0) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_SHAPE,
                          "head_dim = %lld is odd, which rotary positions cannot be",
                          (long long)info->head_dim);
}

static qkv_status read_kv_heads(const qkvi_json_reader *reader, const qkvi_config_fields *f,
                                qkv_model_info *info) {
    info->n_kv_heads = f->n_kv_heads.absent ? f->n_kv_heads.absent : info->n_heads;
    const json_t *const given = json_object_get(reader->object, "num_key_value_heads");
    if (given && json_is_null(given)) info->n_kv_heads = info->n_heads;
    QKV_TRY(
        qkvi_config_take_size(reader, "num_key_value_heads", QKVI_MAX_HIDDEN, &info->n_kv_heads));
    if (info->n_heads % info->n_kv_heads == 0) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_SHAPE,
                          "num_attention_heads = %lld is not a multiple of num_key_value_heads = "
                          "%lld",
                          (long long)info->n_heads, (long long)info->n_kv_heads);
}

/* ---- Layers ---------------------------------------------------------------------------------- */

static qkv_status need_length(const qkvi_json_reader *reader, const char *field, const json_t *list,
                              const qkv_model_info *info) {
    if ((int64_t)json_array_size(list) == info->n_layers) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_SHAPE, "%s has %zu entries, there are %lld layers", field,
                          json_array_size(list), (long long)info->n_layers);
}

/* layer_types, if it is there. */
static qkv_status take_layer_types(const qkvi_json_reader *reader, const json_t *list,
                                   qkv_model_info *info) {
    QKV_TRY(need_length(reader, "layer_types", list, info));
    for (int64_t l = 0; l < info->n_layers; l++) {
        const char *const type = json_string_value(json_array_get(list, (size_t)l));
        const bool slides = type && strcmp(type, "sliding_attention") == 0;
        if (!type || (!slides && strcmp(type, "full_attention") != 0))
            return QKVI_JSON_FAIL(reader, type ? QKV_ERR_UNSUPPORTED : QKV_ERR_FORMAT,
                                  "layer_types[%lld] is neither \"full_attention\" nor "
                                  "\"sliding_attention\"",
                                  (long long)l);
        if (slides) info->layer_kinds[l] |= QKV_LAYER_SLIDES;
    }
    return QKV_OK;
}

/* no_rope_layers: 0 for a layer without positions. */
static qkv_status read_unrotated(const qkvi_json_reader *reader, qkv_model_info *info) {
    const json_t *list = NULL;
    int64_t interval = 4;
    QKV_TRY(qkvi_config_take_size(reader, "no_rope_layer_interval", INT32_MAX, &interval));
    QKV_TRY(qkvi_json_take_array(reader, "no_rope_layers", &list));
    if (list) QKV_TRY(need_length(reader, "no_rope_layers", list, info));
    for (int64_t l = 0; l < info->n_layers; l++) {
        const json_t *const entry = list ? json_array_get(list, (size_t)l) : NULL;
        const bool is_number = entry && json_is_integer(entry);
        if (entry && (!is_number || json_integer_value(entry) < 0 || json_integer_value(entry) > 1))
            return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT, "no_rope_layers[%lld] is not 0 or 1",
                                  (long long)l);
        const bool rotated = entry ? json_integer_value(entry) != 0 : (l + 1) % interval != 0;
        if (!rotated) info->layer_kinds[l] |= QKV_LAYER_UNROTATED;
    }
    return QKV_OK;
}

/* Keys that a query of a layer with a window sees, its own among them; 0: null, none. */
static qkv_status read_window(const qkvi_json_reader *reader, const qkvi_model_family *family,
                              int64_t *window) {
    const json_t *const given = json_object_get(reader->object, "sliding_window");
    int uses = 0;
    *window = given && json_is_null(given) ? 0 : family->config.window;
    if (given && !json_is_null(given))
        QKV_TRY(qkvi_config_take_size(reader, "sliding_window", INT32_MAX, window));
    if (family->slides != QKVI_SLIDES_ABOVE && family->slides != QKVI_SLIDES_NOPE) return QKV_OK;
    QKV_TRY(qkvi_json_take_bool(reader, "use_sliding_window", &uses));
    if (!uses) *window = 0;
    return QKV_OK;
}

/*
 * Keys that a query of ModernBERT sees to each side. sliding_window is this number, and as
 * transformers sets it last it goes before local_attention, which counts both sides.
 */
static qkv_status read_sides(const qkvi_json_reader *reader, int64_t *window) {
    int64_t both = 128;
    QKV_TRY(qkvi_config_take_size(reader, "local_attention", INT32_MAX, &both));
    *window = both / 2;
    return qkvi_json_take_int(reader, "sliding_window", INT32_MAX, window);
}

/* Whether a layer slides if layer_types does not say it. */
static bool slides_by_rule(qkvi_slides rule, int64_t period, int64_t l, unsigned kind) {
    switch (rule) {
    case QKVI_SLIDES_ALWAYS: return true;
    case QKVI_SLIDES_ABOVE: return l >= period;
    case QKVI_SLIDES_EVEN: return l % 2 == 0;
    case QKVI_SLIDES_PATTERN: return (l + 1) % period != 0;
    case QKVI_SLIDES_NOPE: return kind & QKV_LAYER_UNROTATED;
    case QKVI_SLIDES_LOCAL: return l % period != 0;
    default: return false;
    }
}

static qkv_status read_period(const qkvi_json_reader *reader, qkvi_slides rule, int64_t *period) {
    switch (rule) {
    case QKVI_SLIDES_ABOVE:
        *period = 28;
        return qkvi_json_take_int(reader, "max_window_layers", INT32_MAX, period);
    case QKVI_SLIDES_PATTERN:
        *period = 6;
        return qkvi_config_take_size(reader, "sliding_window_pattern", INT32_MAX, period);
    case QKVI_SLIDES_LOCAL:
        *period = 3;
        return qkvi_config_take_size(reader, "global_attn_every_n_layers", INT32_MAX, period);
    default: return QKV_OK;
    }
}

/* Which layers slide. Those of Mistral and Phi-3 do, whatever layer_types says. */
static qkv_status read_kinds(const qkvi_json_reader *reader, const qkvi_model_family *family,
                             bool has_window, qkv_model_info *info) {
    const json_t *list = NULL;
    int64_t period = 1;
    bool any = false;
    QKV_TRY(qkvi_json_take_array(reader, "layer_types", &list));
    QKV_TRY(read_period(reader, family->slides, &period));
    if (list && family->slides != QKVI_SLIDES_ALWAYS) {
        QKV_TRY(take_layer_types(reader, list, info));
        for (int64_t l = 0; l < info->n_layers; l++) any |= info->layer_kinds[l] & QKV_LAYER_SLIDES;
        if (!any || has_window) return QKV_OK;
        return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED,
                              "layer_types has \"sliding_attention\", and there is no window");
    }
    for (int64_t l = 0; has_window && l < info->n_layers; l++)
        if (slides_by_rule(family->slides, period, l, info->layer_kinds[l]))
            info->layer_kinds[l] |= QKV_LAYER_SLIDES;
    return QKV_OK;
}

static qkv_status read_layers(const qkvi_json_reader *reader, const qkvi_model_family *family,
                              qkv_model_info *info) {
    int64_t window = 0;
    if (family->slides == QKVI_SLIDES_NOPE) QKV_TRY(read_unrotated(reader, info));
    if (family->slides == QKVI_SLIDES_LOCAL) {
        QKV_TRY(read_sides(reader, &window));
        info->window_left = info->window_right = window;
        return read_kinds(reader, family, true, info);
    }
    if (family->slides != QKVI_SLIDES_NEVER) QKV_TRY(read_window(reader, family, &window));
    info->window_left = window - 1;
    info->window_right = family->kind == QKV_MODEL_DECODER ? 0 : -1;
    return read_kinds(reader, family, window > 0, info);
}

/* ---- Scores, logits, biases ------------------------------------------------------------------ */

/* A number above 0, or null: 0. Absent: *value stays. */
static qkv_status take_positive(const qkvi_json_reader *reader, const char *field, double *value) {
    const json_t *const given = json_object_get(reader->object, field);
    if (!given) return QKV_OK;
    if (json_is_null(given)) {
        *value = 0;
        return QKV_OK;
    }
    QKV_TRY(qkvi_json_take_real(reader, field, value));
    if (*value > 1e-6 && *value < 1e9) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT, "%s = %g is not between 1e-6 and 1e9", field,
                          *value);
}

static qkv_status read_gemma(const qkvi_json_reader *reader, int gemma, qkv_model_info *info) {
    double scalar = 256, ignored = 0;
    info->scales_words = 1;
    info->word_scale = sqrt((double)info->hidden);
    if (gemma < 2) return QKV_OK;
    info->score_cap = gemma == 2 ? 50 : 0;
    info->logit_cap = gemma == 2 ? 30 : 0;
    QKV_TRY(take_positive(reader, "query_pre_attn_scalar", &scalar));
    QKV_TRY(take_positive(reader, "final_logit_softcapping", &info->logit_cap));
    /* Gemma 3 takes the field and does nothing with it. */
    QKV_TRY(
        take_positive(reader, "attn_logit_softcapping", gemma == 2 ? &info->score_cap : &ignored));
    if (scalar > 0) {
        info->score_scale = 1 / sqrt(scalar);
        return QKV_OK;
    }
    return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT, "query_pre_attn_scalar is null");
}

static qkv_status read_biases(const qkvi_json_reader *reader, const qkvi_model_family *family,
                              qkv_model_info *info) {
    int attention = family->biases == QKVI_BIASES_UNLESS_ATTENTION, mlp = attention;
    if (family->biases == QKVI_BIASES_NONE) return QKV_OK;
    if (family->biases == QKVI_BIASES_QKV) {
        info->biases = QKV_BIAS_QKV;
        return QKV_OK;
    }
    QKV_TRY(qkvi_json_take_bool(reader, "attention_bias", &attention));
    if (family->mlp_bias) QKV_TRY(qkvi_json_take_bool(reader, "mlp_bias", &mlp));
    info->biases = (attention ? QKV_BIAS_QKV | QKV_BIAS_OUTPUT : 0) | (mlp ? QKV_BIAS_MLP : 0);
    return QKV_OK;
}

/* Of ModernBERT: heads that are not read as others are. */
static qkv_status read_norms(const qkvi_json_reader *reader, const qkvi_model_family *family) {
    if (!family->norm_bias) return QKV_OK;
    QKV_TRY(qkvi_config_switch(reader, "norm_bias", 0));
    QKV_TRY(qkvi_config_switch(reader, "classifier_bias", 0));
    QKV_TRY(qkvi_config_switch(reader, "decoder_bias", 1));
    return qkvi_config_word(reader, "classifier_activation", "gelu");
}

/*
 * Of GPT-J: so many channels of a head, by frequencies that no field changes. null, 0, odd numbers,
 * and more channels than a head has, transformers cannot compute.
 */
static qkv_status read_neighbours(const qkvi_json_reader *reader, const qkvi_model_family *family,
                                  qkv_model_info *info) {
    const qkvi_config_fields *const f = &family->config;
    const json_t *const given = json_object_get(reader->object, f->rotary_dim.field);
    int64_t *const n = &info->rotary_dim;
    QKV_TRY(qkvi_config_heads(reader, f->hidden.field, f->stacks[0].n_heads.field, info,
                              info->n_heads));
    *n = f->rotary_dim.absent;
    if (given && json_is_null(given))
        return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT, "%s is null", f->rotary_dim.field);
    QKV_TRY(qkvi_config_take_size(reader, f->rotary_dim.field, QKVI_MAX_HIDDEN, n));
    if (*n % 2 != 0 || *n > info->head_dim)
        return QKVI_JSON_FAIL(reader, QKV_ERR_SHAPE,
                              "%s = %lld is odd, or above %lld, the channels of a head",
                              f->rotary_dim.field, (long long)*n, (long long)info->head_dim);
    info->rotary_neighbours = 1;
    info->biases = QKV_BIAS_MLP;
    info->window_left = info->window_right = -1;
    info->rope[0] = info->rope[1] = (qkv_rope){ .type = QKV_ROPE_DEFAULT,
                                                .theta = 10000,
                                                .factor = 1,
                                                .original_len = (double)info->max_len,
                                                .attention_factor = 1 };
    return QKV_OK;
}

qkv_status qkvi_config_rotary(const qkvi_json_reader *reader, const qkvi_model_family *family,
                              qkv_model_info *info) {
    const qkvi_config_fields *const f = &family->config;
    info->rms_norm = family->norm != QKVI_LAYER_NORM;
    info->parallel = family->parallel || family->one_norm;
    if (family->neighbours) return read_neighbours(reader, family, info);
    if (family->parallel)
        QKV_TRY(qkvi_json_take_bool(reader, "use_parallel_residual", &info->parallel));
    if (family->kind == QKV_MODEL_ENCODER || family->parallel) {
        QKV_TRY(check_heads(reader, f, info));
    } else {
        QKV_TRY(read_head_dim(reader, f, info));
        QKV_TRY(read_kv_heads(reader, f, info));
    }
    QKV_TRY(check_even(reader, info));
    QKV_TRY(read_layers(reader, family, info));
    QKV_TRY(read_biases(reader, family, info));
    QKV_TRY(read_norms(reader, family));
    if (family->gemma) QKV_TRY(read_gemma(reader, family->gemma, info));
    return qkvi_config_rope(reader, family, info);
}
