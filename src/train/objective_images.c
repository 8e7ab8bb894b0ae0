/*
 * A Vision Transformer (Dosovitskiy et al. 2021) that predicts the label of a picture:
 * cross-entropy of the classifier's logits, from the last hidden state of [CLS]. Pixels are
 * (v / 255 - 1/2) / (1/2), as the preprocessor_config.json says that is written.
 */
#include "files/json.h"
#include "image/prepare.h"
#include "train/trainer.h"

/* ---- Examples -------------------------------------------------------------------------------- */

static void make_example(const qkvi_examples *examples, qkvi_split split, int64_t index,
                         qkvi_example *slot) {
    const int64_t n = examples->image_side * examples->image_side;
    slot->n = examples->max_len;
    slot->label = qkvi_pictures_draw(examples->pictures, split, index, examples->seed, slot->rgb);
    memset(slot->ids, 0, (size_t)slot->n * sizeof *slot->ids);
    memset(slot->types, 0, (size_t)slot->n);
    /* as qkvi_image_prepare rounds: (v - 127.5) / 127.5 */
    for (int64_t c = 0; c < 3; c++)
        for (int64_t p = 0; p < n; p++)
            slot->pixels[c * n + p] = ((float)slot->rgb[3 * p + c] - 127.5f) / 127.5f;
}

/* ---- Files ----------------------------------------------------------------------------------- */

static json_t *label_names(const qkvi_pictures *pictures, bool by_name) {
    json_t *const names = json_object();
    for (int64_t l = 0; l < qkvi_pictures_n_labels(pictures); l++) {
        char number[24];
        const char *const name = qkvi_pictures_label(pictures, l);
        snprintf(number, sizeof number, "%lld", (long long)l);
        if (by_name)
            json_object_set_new(names, name, json_integer(l));
        else
            json_object_set_new(names, number, json_string(name));
    }
    return names;
}

static qkv_status write_config(const qkvi_trainer *trainer, qkvi_files *files, qkv_error *error) {
    const qkv_model_info *const info = &trainer->info;
    const double dropout = trainer->options->dropout;
    json_t *const config = json_pack(
        "{s[s],sf,ss,sf,sI,so,sI,sf,sI,so,sf,ss,sI,sI,sI,sI,sb}", "architectures",
        "ViTForImageClassification", "attention_probs_dropout_prob", dropout, "hidden_act", "gelu",
        "hidden_dropout_prob", dropout, "hidden_size", (json_int_t)info->hidden, "id2label",
        label_names(trainer->pictures, false), "image_size", (json_int_t)info->image_height,
        "initializer_range", 0.02, "intermediate_size", (json_int_t)info->intermediate, "label2id",
        label_names(trainer->pictures, true), "layer_norm_eps", info->layer_norm_eps, "model_type",
        "vit", "num_attention_heads", (json_int_t)info->n_heads, "num_channels", (json_int_t)3,
        "num_hidden_layers", (json_int_t)info->n_layers, "patch_size",
        (json_int_t)info->patch_height, "qkv_bias", 1);
    return qkvi_files_add_json(files, "config.json", config, error);
}

static qkv_status save(const qkvi_trainer *trainer, qkvi_files *files, qkv_error *error) {
    const json_int_t side = trainer->info.image_height;
    QKV_TRY(write_config(trainer, files, error));
    json_t *const processor =
        json_pack("{sb,sb,sb,s[fff],ss,s[fff],si,sf,s{sI,sI}}", "do_normalize", 1, "do_rescale", 1,
                  "do_resize", 1, "image_mean", 0.5, 0.5, 0.5, "image_processor_type",
                  "ViTImageProcessor", "image_std", 0.5, 0.5, 0.5, "resample", 2, "rescale_factor",
                  1 / 255.0, "size", "height", side, "width", side);
    return qkvi_files_add_json(files, "preprocessor_config.json", processor, error);
}

/* ---------------------------------------------------------------------------------------------- */

static void fill_info(const qkvi_trainer *trainer, qkv_model_info *info) {
    const qkv_train_options *const o = trainer->options;
    info->architecture = "vit";
    info->vocab_size = info->target_vocab_size = 0;
    info->layer_norm_eps = 1e-12;
    info->image_height = info->image_width = o->image_size;
    info->patch_height = info->patch_width = o->patch_size;
    info->n_prefix = 1;
    info->max_len = o->max_len;
    info->n_labels = qkvi_pictures_n_labels(trainer->pictures);
    info->biases = QKV_BIAS_QKV | QKV_BIAS_OUTPUT | QKV_BIAS_MLP;
}

static const char *const losses[] = { "label_loss", NULL };

const qkvi_objective qkvi_objective_images = {
    .losses = losses, .example = make_example, .save_vocabulary = save, .fill_info = fill_info
};
