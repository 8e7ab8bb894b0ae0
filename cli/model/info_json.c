/* `qkv info --json` of a model, and names that its text has, too. */
#include "model/model.h"
#include <qkv/vision.h>

/* What models with a decoder have besides; tokens that there are none of are null. */
static void add_decoder(json_t *object, const qkv_model_info *info) {
    json_set(object,
             "has_lm:b is_decoder:b is_encoder_decoder:b n_decoder_layers:i n_decoder_heads:i "
             "decoder_intermediate:i target_vocab_size:i separate_words:b scales_words:b",
             info->has_lm, info->kind == QKV_MODEL_DECODER, info->kind == QKV_MODEL_PAIR,
             info->n_decoder_layers, info->n_decoder_heads, info->decoder_intermediate,
             info->target_vocab_size, info->separate_words, info->scales_words);
    json_set(object, "unscaled:b scales_by_layer:b bos_id:c eos_id:c pad_id:c start_id:c",
             info->unscaled, info->scales_by_layer, info->bos_id, info->eos_id, info->pad_id,
             info->start_id);
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
    const qkv_rope *const rope = info->rope;
    json_set(object,
             "n_kv_heads:i rope_type:s rope_theta:n rope_factor:n rotary_dim:i "
             "rotary_neighbours:b parallel:b local_rope_theta:n",
             info->n_kv_heads, info_rope(rope[0].type), rope[0].theta, rope[0].factor,
             info->rotary_dim, info->rotary_neighbours, info->parallel, rope[1].theta);
    json_set(object,
             "window_left:i window_right:i sliding_layers:o unrotated_layers:o score_cap:n "
             "logit_cap:n",
             info->window_left, info->window_right, sliding, unrotated, info->score_cap,
             info->logit_cap);
}

/* Of T5. */
static void add_distances(json_t *object, const qkv_model_info *info) {
    json_set(object, "distance_buckets:i max_distance:i gated:b scales_logits:b",
             info->distance_buckets, info->max_distance, info->gated, info->scales_logits);
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
    const int64_t sizes[] = { info->image_height, info->image_width },
                  patches[] = { info->patch_height, info->patch_width };
    json_t *const images =
        json_set(NULL,
                 "image_size:o patch_size:o n_prefix:i n_registers:i joint_dim:i match_scale:n "
                 "match_bias:n",
                 json_ints(2, sizes), json_ints(2, patches), info->n_prefix, info->n_registers,
                 info->joint_dim, info->match_scale, info->match_bias);
    if (sees != model)
        json_set(images, "n_layers:i n_heads:i hidden:i intermediate:i", info->n_layers,
                 info->n_heads, info->hidden, info->intermediate);
    json_object_set_new(object, "images", images);
}

json_t *info_model_json(const qkv_model *model) {
    const qkv_model_info *info = qkv_model_get_info(model);
    json_t *const object =
        json_set(NULL,
                 "architecture:s source:t n_layers:i n_heads:i hidden:i head_dim:i intermediate:i "
                 "vocab_size:i max_len:i n_types:i n_parameters:i layer_norm_eps:n",
                 info->architecture, info->source, info->n_layers, info->n_heads, info->hidden,
                 info->head_dim, info->intermediate, info->vocab_size, info->max_len, info->n_types,
                 info->n_parameters, info->layer_norm_eps);
    json_set(object,
             "has_mlm:b has_nsp:b has_pooler:b has_discriminator:b sinusoidal_positions:b "
             "embedding_size:i sentence_len:i",
             info->has_mlm, info->has_nsp, info->has_pooler, info->has_discriminator,
             info->sinusoidal_positions, info->embedding_size, info->sentence_len);
    json_set(object,
             "files:o unused:o warnings:o weights:s weights_bytes:i untied:o activation:s "
             "sentence_dim:i",
             texts_json(model, qkv_model_file), texts_json(model, qkv_model_unused),
             texts_json(model, qkv_model_warning), weights_type(info->weights), info->weights_bytes,
             untied_json(info), info->activation, info->sentence_dim);
    if (!object) return NULL;
    add_prompts(object, model);
    if (info->rope[0].type != QKV_ROPE_NONE) add_rotary(object, info);
    if (info->max_distance > 0) add_distances(object, info);
    if (info->alibi) json_set(object, "alibi:b adds_to_norm:b", 1, info->adds_to_norm);
    if (info->has_lm) add_decoder(object, info);
    const char *const chat = qkv_tokenizer_chat(qkv_model_tokenizer(model, QKV_SOURCE));
    json_set(object, "chat_template:s", chat);
    add_images(object, model);
    if (info->n_labels > 0) json_set(object, "labels:o", labels_json(model));
    return object;
}
