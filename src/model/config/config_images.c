/*
 * config.json of models that read images, and of CLIP: see config_images.h. image_size and
 * patch_size are an integer, or [height, width].
 */
#include "model/config/config_images.h"

enum { MAX_SIDE = 1 << 15, MAX_REGISTERS = 1 << 10, MAX_RATIO = 64 };

/* ---- Towers ---------------------------------------------------------------------------------- */

/* Whether the first of `architectures` ends so. */
static bool is_task(const qkvi_json_reader *reader, const char *task) {
    const json_t *const list = json_object_get(reader->object, "architectures");
    const char *const first = json_string_value(json_array_get(list, 0));
    return first && qkvi_ends_with(first, task);
}

const qkvi_model_family *qkvi_config_tower(const qkvi_json_reader *reader,
                                           const qkvi_model_family *family, bool images) {
    if (family->images && (images || is_task(reader, "ForImageClassification")))
        return qkvi_family_of(family->images);
    return family;
}

/* Fields of an object over those of another. */
static qkv_status put_over(const qkvi_json_reader *reader, const char *field, json_t *object) {
    const json_t *part = NULL;
    QKV_TRY(qkvi_json_take_object(reader, field, &part));
    if (!part || json_object_update(object, (json_t *)(uintptr_t)part) == 0) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_MEMORY, "no memory for a field");
}

qkv_status qkvi_config_part(const qkvi_json_reader *reader, const char *part, json_t **object) {
    char old[64];
    snprintf(old, sizeof old, "%s_dict", part);
    *object = json_object();
    if (!*object) return QKVI_JSON_FAIL(reader, QKV_ERR_MEMORY, "no memory for a field");
    qkv_status status = put_over(reader, part, *object);
    if (status == QKV_OK) status = put_over(reader, old, *object);
    if (status == QKV_OK) return QKV_OK;
    json_decref(*object);
    *object = NULL;
    return status;
}

qkv_status qkvi_config_joint(const qkvi_json_reader *reader, const qkvi_model_family *family,
                             qkv_model_info *info) {
    if (!family->joint_biased) {
        info->joint_dim = 512;
        return qkvi_config_take_size(reader, "projection_dim", QKVI_MAX_HIDDEN, &info->joint_dim);
    }
    info->joint_dim = info->hidden;
    info->padded_len = info->max_len;
    info->match_each = 1;
    return qkvi_config_take_size(reader, "projection_size", QKVI_MAX_HIDDEN, &info->joint_dim);
}

/* ---- Images ---------------------------------------------------------------------------------- */

static qkv_status take_sides(const qkvi_json_reader *reader, const char *field, int64_t absent,
                             int64_t *height, int64_t *width) {
    int64_t sides[2] = { absent, absent }, n = 1;
    QKV_TRY(qkvi_json_take_ids(reader, field, 2, sides, &n));
    *height = n > 0 ? sides[0] : absent;
    *width = n == 2 ? sides[1] : *height;
    if (*height < 1 || *width < 1)
        return QKVI_JSON_FAIL(reader, QKV_ERR_SHAPE, "%s is less than 1", field);
    if (*height <= MAX_SIDE && *width <= MAX_SIDE) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_LIMIT, "%s = %lld is more than %d", field,
                          (long long)(*height > *width ? *height : *width), MAX_SIDE);
}

static qkv_status check_channels(const qkvi_json_reader *reader) {
    int64_t channels = 3;
    QKV_TRY(qkvi_json_take_int(reader, "num_channels", INT32_MAX, &channels));
    if (channels == 3) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED, "num_channels = %lld is not 3",
                          (long long)channels);
}

/* Patches of an image of the size that the model learned from. */
static qkv_status count_rows(const qkvi_json_reader *reader, const qkvi_image_family *f,
                             qkv_model_info *info) {
    const int64_t rows = info->image_height / info->patch_height;
    const int64_t columns = info->image_width / info->patch_width;
    if (rows < 1 || columns < 1)
        return QKVI_JSON_FAIL(reader, QKV_ERR_SHAPE, "patch_size is larger than image_size");
    if (f->position && rows != columns)
        return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED,
                              "image_size and patch_size make %lld by %lld patches, and a table of "
                              "positions that is not square is not supported",
                              (long long)rows, (long long)columns);
    info->n_prefix = info->n_registers + (f->classes[0] != NULL) + (f->classes[1] != NULL);
    info->max_len = info->n_prefix + rows * columns;
    if (info->max_len <= QKVI_MAX_POSITIONS) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_LIMIT, "an image has %lld patches, more than %d",
                          (long long)(rows * columns), QKVI_MAX_POSITIONS);
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static qkv_status read_ratio(const qkvi_json_reader *reader, qkv_model_info *info) {
    double ratio = 4;
    QKV_TRY(qkvi_json_take_real(reader, "mlp_ratio", &ratio));
    QKV_TRY(qkvi_json_take_bool(reader, "use_swiglu_ffn", &info->gated));
    if (!(ratio > 0 && ratio <= MAX_RATIO))
        return QKVI_JSON_FAIL(reader, QKV_ERR_LIMIT, "mlp_ratio = %g is not above 0 and at most %d",
                              ratio, MAX_RATIO);
    info->intermediate = (int64_t)((double)info->hidden * ratio);
    if (info->intermediate < 1)
        return QKVI_JSON_FAIL(reader, QKV_ERR_SHAPE, "mlp_ratio = %g makes no width", ratio);
    if (!info->gated) return QKV_OK;
    info->intermediate = ((int64_t)((double)info->intermediate * 2 / 3) + 7) / 8 * 8;
    info->activation = "silu";
    return QKV_OK;
}

static qkv_status read_biases(const qkvi_json_reader *reader, const qkvi_model_family *family,
                              qkv_model_info *info) {
    static const char *const names[] = { "query_bias", "key_bias", "value_bias", "proj_bias",
                                         "mlp_bias" };
    int asked = 1, has[5] = { 1, 0, 1, 1, 1 };
    if (family->biases == QKVI_BIASES_QKV_ASKED) {
        QKV_TRY(qkvi_json_take_bool(reader, "qkv_bias", &asked));
        info->biases = (asked ? QKV_BIAS_QKV : 0) | QKV_BIAS_OUTPUT | QKV_BIAS_MLP;
    }
    if (family->biases != QKVI_BIASES_APART) return QKV_OK;
    for (int i = 0; i < 5; i++) QKV_TRY(qkvi_json_take_bool(reader, names[i], &has[i]));
    if (has[0] != has[2] || (has[1] && !has[0]))
        return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED,
                              "query_bias and value_bias must be alike, and key_bias not alone");
    info->biases = (has[0] ? QKV_BIAS_QKV : 0) | (has[1] ? 0 : QKV_BIAS_NO_KEY) |
                   (has[3] ? QKV_BIAS_OUTPUT : 0) | (has[4] ? QKV_BIAS_MLP : 0);
    return QKV_OK;
}

/* DINOv3: half of a head's channels turn by the row of a patch, and half by its column. */
static qkv_status read_turns(const qkvi_json_reader *reader, const qkvi_model_family *family,
                             qkv_model_info *info) {
    double theta = family->theta[0];
    QKV_TRY(qkvi_json_take_bool(reader, "use_gated_mlp", &info->gated));
    QKV_TRY(qkvi_json_take_real(reader, "rope_theta", &theta));
    if (!(theta > 1 && theta <= 1e12))
        return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT,
                              "rope_theta = %g is not above 1 and at most 1e12", theta);
    if (info->head_dim % 4 != 0)
        return QKVI_JSON_FAIL(reader, QKV_ERR_SHAPE,
                              "a head has %lld channels, which is not a multiple of 4",
                              (long long)info->head_dim);
    info->rotary_dim = info->head_dim;
    info->rope[0] = info->rope[1] =
        (qkv_rope){ .type = QKV_ROPE_DEFAULT, .theta = theta, .factor = 1, .attention_factor = 1 };
    return QKV_OK;
}

static qkv_status check_pooler(const qkvi_json_reader *reader, const qkv_model_info *info) {
    int64_t size = info->hidden;
    QKV_TRY(qkvi_config_word(reader, "pooler_act", "tanh"));
    QKV_TRY(qkvi_json_take_int(reader, "pooler_output_size", INT32_MAX, &size));
    if (size == info->hidden || size == 0) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED,
                          "pooler_output_size = %lld is not hidden_size = %lld", (long long)size,
                          (long long)info->hidden);
}

qkv_status qkvi_config_images(const qkvi_json_reader *reader, const qkvi_model_family *family,
                              qkv_model_info *info) {
    const qkvi_image_family *const f = &family->image;
    if (is_task(reader, "ForMaskedImageModeling"))
        return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED,
                              "a model for masked images is not supported");
    QKV_TRY(check_channels(reader));
    QKV_TRY(take_sides(reader, "image_size", f->size, &info->image_height, &info->image_width));
    QKV_TRY(take_sides(reader, "patch_size", f->side, &info->patch_height, &info->patch_width));
    if (f->registers) {
        info->n_registers = f->n_registers;
        QKV_TRY(
            qkvi_json_take_int(reader, "num_register_tokens", MAX_REGISTERS, &info->n_registers));
    }
    QKV_TRY(count_rows(reader, f, info));
    if (f->by_ratio) QKV_TRY(read_ratio(reader, info));
    QKV_TRY(read_biases(reader, family, info));
    if (family->positions == QKVI_ROTARY_PLANE) QKV_TRY(read_turns(reader, family, info));
    return family->pooler ? check_pooler(reader, info) : QKV_OK;
}
