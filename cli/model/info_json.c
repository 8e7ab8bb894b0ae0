/* `qkv info --json` of a model, and names that its text has, too. */
#include "model/model.h"
#include <qkv/vision.h>

/* What models with a decoder have besides; tokens that there are none of are null. */
static void add_decoder(json_t *object, const qkv_model_info *info) {
    json_t *const more = json_pack(
        "{s:b,s:b,s:b,s:I,s:I,s:I,s:I,s:b,s:b,s:b,s:b,s:o,s:o,s:o,s:o}", JSON_FIELD(info, has_lm),
        "is_decoder", info->kind == QKV_MODEL_DECODER, "is_encoder_decoder",
        info->kind == QKV_MODEL_PAIR, JSON_INT(info, n_decoder_layers),
        JSON_INT(info, n_decoder_heads), JSON_INT(info, decoder_intermediate),
        JSON_INT(info, target_vocab_size), JSON_FIELD(info, separate_words),
        JSON_FIELD(info, scales_words), JSON_FIELD(info, unscaled),
        JSON_FIELD(info, scales_by_layer), JSON_COUNT(info, bos_id), JSON_COUNT(info, eos_id),
        JSON_COUNT(info, pad_id), JSON_COUNT(info, start_id));
    json_object_update(object, more);
    json_decref(more);
}

/* As --weights names them. */
static const char *weights_type(qkv_model_weights weights) {
    if (weights == QKV_WEIGHTS_INT8) return "int8";
    if (weights == QKV_WEIGHTS_FILE) return "file";
    return weights == QKV_WEIGHTS_F32 ? "f32" : "bf16";
}

/* How they are kept: by --weights, not as the file has them. */
const char *info_weights(const qkv_model_info *info) {
    switch (info->weights) {
    case QKV_WEIGHTS_BF16_DP: return "bf16 (class dp)";
    case QKV_WEIGHTS_BF16_AMX: return "bf16 (class amx)";
    case QKV_WEIGHTS_INT8: return "int8";
    case QKV_WEIGHTS_FILE: return "blocks of the file, all else f32";
    default: return "f32";
    }
}

/* Who has weights of its own where a family ties them, as words of JSON. */
static json_t *untied_json(const qkv_model_info *info) {
    static const char *const names[] = { "head", "encoder", "decoder" };
    json_t *const list = json_array();
    for (int n = 0; n < 3; n++)
        if (info->untied & (QKV_UNTIED_HEAD << n))
            json_array_append_new(list, json_string(names[n]));
    return list;
}

bool info_has_prompts(const qkv_model *model) {
    const qkv_prompt *prompt;
    bool has = false;
    for (int64_t p = 0; (prompt = qkv_model_prompt(model, p)); p++) has |= *prompt->text != '\0';
    return has;
}

/*
 * {"prompts": {"query": "query: ", …}, "default_prompt": "query" or null}, of models that have
 * some.
 */
static void add_prompts(json_t *object, const qkv_model *model) {
    json_t *const prompts = json_object(), *name = json_null();
    const qkv_prompt *prompt;
    for (int64_t p = 0; (prompt = qkv_model_prompt(model, p)); p++) {
        json_object_set_new(prompts, prompt->name, json_text(prompt->text));
        if (prompt->is_default) name = json_text(prompt->name);
    }
    if (info_has_prompts(model)) {
        json_object_set(object, "default_prompt", name);
        json_object_set(object, "prompts", prompts);
    }
    json_decref(prompts);
    json_decref(name);
}

static json_t *texts_json(const qkv_model *model, const char *(*text)(const qkv_model *, int64_t)) {
    json_t *const list = json_array();
    for (int64_t i = 0; text(model, i); i++) json_array_append_new(list, json_text(text(model, i)));
    return list;
}

const char *info_rope(qkv_rope_type type) {
    static const char *const names[] = { "none", "default", "linear", "dynamic", "llama3", "yarn" };
    return names[type];
}

/* Of models with rotary positions. */
static void add_rotary(json_t *object, const qkv_model_info *info) {
    json_t *const sliding = json_array(), *const unrotated = json_array();
    for (int64_t l = 0; l < info->n_layers; l++) {
        if (info->layer_kinds[l] & QKV_LAYER_SLIDES)
            json_array_append_new(sliding, json_integer(l));
        if (info->layer_kinds[l] & QKV_LAYER_UNROTATED)
            json_array_append_new(unrotated, json_integer(l));
    }
    json_object_set_new(object, "n_kv_heads", json_integer(info->n_kv_heads));
    json_object_set_new(object, "rope_type", json_text(info_rope(info->rope[0].type)));
    json_object_set_new(object, "rope_theta", json_real(info->rope[0].theta));
    json_object_set_new(object, "rope_factor", json_real(info->rope[0].factor));
    json_object_set_new(object, "rotary_dim", json_integer(info->rotary_dim));
    json_object_set_new(object, "rotary_neighbours", json_boolean(info->rotary_neighbours));
    json_object_set_new(object, "parallel", json_boolean(info->parallel));
    json_object_set_new(object, "local_rope_theta", json_real(info->rope[1].theta));
    json_object_set_new(object, "window_left", json_integer(info->window_left));
    json_object_set_new(object, "window_right", json_integer(info->window_right));
    json_object_set_new(object, "sliding_layers", sliding);
    json_object_set_new(object, "unrotated_layers", unrotated);
    json_object_set_new(object, "score_cap", json_real(info->score_cap));
    json_object_set_new(object, "logit_cap", json_real(info->logit_cap));
}

/* Of T5. */
static void add_distances(json_t *object, const qkv_model_info *info) {
    json_object_set_new(object, "distance_buckets", json_integer(info->distance_buckets));
    json_object_set_new(object, "max_distance", json_integer(info->max_distance));
    json_object_set_new(object, "gated", json_boolean(info->gated));
    json_object_set_new(object, "scales_logits", json_boolean(info->scales_logits));
}

/* An entry of a label: its name, or null. */
static json_t *labels_json(const qkv_model *model) {
    json_t *const list = json_array();
    for (int64_t l = 0; l < qkv_model_get_info(model)->n_labels; l++) {
        const char *const name = qkv_model_label(model, l);
        json_array_append_new(list, name ? json_text(name) : json_null());
    }
    return list;
}

/* Of models that read images: of the tower that does, beside one of texts. */
static void add_images(json_t *object, const qkv_model *model) {
    const qkv_model *const sees = qkv_model_images(model);
    if (!sees) return;
    const qkv_model_info *const info = qkv_model_get_info(sees);
    json_t *const images = json_pack(
        "{s:[I,I],s:[I,I],s:I,s:I,s:I,s:f,s:f}", "image_size", (json_int_t)info->image_height,
        (json_int_t)info->image_width, "patch_size", (json_int_t)info->patch_height,
        (json_int_t)info->patch_width, JSON_INT(info, n_prefix), JSON_INT(info, n_registers),
        JSON_INT(info, joint_dim), JSON_FIELD(info, match_scale), JSON_FIELD(info, match_bias));
    if (sees != model) {
        json_object_set_new(images, "n_layers", json_integer(info->n_layers));
        json_object_set_new(images, "n_heads", json_integer(info->n_heads));
        json_object_set_new(images, "hidden", json_integer(info->hidden));
        json_object_set_new(images, "intermediate", json_integer(info->intermediate));
    }
    json_object_set_new(object, "images", images);
}

json_t *info_model_json(const qkv_model *model) {
    const qkv_model_info *info = qkv_model_get_info(model);
    json_t *object = json_pack(
        "{s:s,s:o,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:f,s:b,s:b,s:b,s:b,s:b,s:I,s:I,s:o,s:o,s:o,"
        "s:s,s:I,s:o,s:s,s:I}",
        JSON_FIELD(info, architecture), "source", json_text(info->source), JSON_INT(info, n_layers),
        JSON_INT(info, n_heads), JSON_INT(info, hidden), JSON_INT(info, head_dim),
        JSON_INT(info, intermediate), JSON_INT(info, vocab_size), JSON_INT(info, max_len),
        JSON_INT(info, n_types), JSON_INT(info, n_parameters), JSON_FIELD(info, layer_norm_eps),
        JSON_FIELD(info, has_mlm), JSON_FIELD(info, has_nsp), JSON_FIELD(info, has_pooler),
        JSON_FIELD(info, has_discriminator), JSON_FIELD(info, sinusoidal_positions),
        JSON_INT(info, embedding_size), JSON_INT(info, sentence_len), "files",
        texts_json(model, qkv_model_file), "unused", texts_json(model, qkv_model_unused),
        "warnings", texts_json(model, qkv_model_warning), "weights", weights_type(info->weights),
        JSON_INT(info, weights_bytes), "untied", untied_json(info), JSON_FIELD(info, activation),
        JSON_INT(info, sentence_dim));
    if (object) add_prompts(object, model);
    if (object && info->rope[0].type != QKV_ROPE_NONE) add_rotary(object, info);
    if (object && info->max_distance > 0) add_distances(object, info);
    if (object && info->alibi) {
        json_object_set_new(object, "alibi", json_true());
        json_object_set_new(object, "adds_to_norm", json_boolean(info->adds_to_norm));
    }
    if (object && info->has_lm) add_decoder(object, info);
    const char *const chat = qkv_tokenizer_chat(qkv_model_tokenizer(model, QKV_SOURCE));
    if (object && chat) json_object_set_new(object, "chat_template", json_string(chat));
    if (object) add_images(object, model);
    if (object && info->n_labels > 0) json_object_set_new(object, "labels", labels_json(model));
    return object;
}
