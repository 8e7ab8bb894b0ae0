/*
 * preprocessor_config.json: see rules.h. The defaults are those of the classes of transformers 5
 * (image_processing_vit.py and its siblings). Fields that no class here knows are ignored, as
 * there; a step that would change pixels and is not implemented is refused.
 */
#include "image/rules.h"

#include <math.h>

#include "files/json.h"

enum { HALF, OPENAI, IMAGENET }; /* means */

static const double means[][3] = { [HALF] = { 0.5, 0.5, 0.5 },
                                   [OPENAI] = { 0.48145466, 0.4578275, 0.40821073 },
                                   [IMAGENET] = { 0.485, 0.456, 0.406 } };
static const double stds[][3] = { [HALF] = { 0.5, 0.5, 0.5 },
                                  [OPENAI] = { 0.26862954, 0.26130258, 0.27577711 },
                                  [IMAGENET] = { 0.229, 0.224, 0.225 } };

/* What a class does where a file says nothing. */
typedef struct processor {
    const char *name;
    const char *model_types; /* that it is for, where a file names no class */
    int64_t size, crop;      /* crop 0: none */
    bool is_square;          /* that size is of both sides, not of the shorter one */
    bool squares;            /* an integer of a file is */
    qkvi_image_filter filter;
    int mean;
    bool rescales_first;
} processor;

static const processor classes[] = {
    { "ViTImageProcessor", " vit ", 224, 0, true, true, QKVI_IMAGE_BILINEAR, HALF, false },
    { "DeiTImageProcessor", " deit ", 256, 224, true, true, QKVI_IMAGE_BICUBIC, HALF, false },
    { "CLIPImageProcessor", " clip clip_vision_model ", 224, 224, false, false, QKVI_IMAGE_BICUBIC,
      OPENAI, false },
    { "BitImageProcessor", " bit dinov2 dinov2_with_registers ", 224, 224, false, false,
      QKVI_IMAGE_BICUBIC, OPENAI, false },
    { "SiglipImageProcessor", " siglip siglip_vision_model ", 224, 0, true, false,
      QKVI_IMAGE_BICUBIC, HALF, false },
    { "DINOv3ViTImageProcessor", " dinov3_vit ", 224, 0, true, true, QKVI_IMAGE_BILINEAR, IMAGENET,
      true }
};
enum { N_CLASSES = sizeof classes / sizeof *classes };

/* ---- Whose rules they are -------------------------------------------------------------------- */

static bool is_class(const char *type, const char *name) {
    const size_t n = strlen(name);
    if (strncmp(type, name, n) != 0) return false;
    return !type[n] || strcmp(type + n, "Fast") == 0 || strcmp(type + n, "Pil") == 0;
}

/* Before transformers 4.27 classes had this name, and files another field. */
static bool is_old_class(const char *type, const char *name) {
    const size_t n = strlen(name) - strlen("ImageProcessor");
    return strncmp(type, name, n) == 0 && strcmp(type + n, "FeatureExtractor") == 0;
}

static bool has_word(const char *words, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at++)
        if (n > 0 && at[-1] == ' ' && at[n] == ' ') return true;
    return false;
}

static qkv_status refuse_class(const qkvi_json_reader *reader, const char *field,
                               const char *type) {
    char printable[128];
    qkvi_escape(printable, sizeof printable, type, strlen(type));
    return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED,
                          "%s '%s' is not supported; qkv has those of ViT, DeiT, CLIP, Bit, "
                          "Siglip and DINOv3ViT",
                          field, printable);
}

static qkv_status find_class(const qkvi_json_reader *reader, const char *model_type,
                             const processor **found) {
    const char *type = NULL, *old = NULL;
    QKV_TRY(qkvi_json_take_string(reader, "image_processor_type", &type));
    QKV_TRY(qkvi_json_take_string(reader, "feature_extractor_type", &old));
    for (int i = 0; i < N_CLASSES; i++) {
        const processor *const c = &classes[i];
        *found = c;
        if (type  ? is_class(type, c->name)
            : old ? is_class(old, c->name) || is_old_class(old, c->name)
                  : model_type && has_word(c->model_types, model_type))
            return QKV_OK;
    }
    if (type || old)
        return refuse_class(reader, type ? "image_processor_type" : "feature_extractor_type",
                            type ? type : old);
    return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED,
                          "image_processor_type is missing, and model_type says nothing of it");
}

/* ---- Fields ---------------------------------------------------------------------------------- */

/* A side from 1 to the limit. */
static qkv_status check_size(const qkvi_json_reader *reader, const char *field, int64_t value) {
    if (value < 1)
        return QKVI_JSON_FAIL(reader, QKV_ERR_SHAPE, "%s = %lld is less than 1", field,
                              (long long)value);
    if (value <= QKVI_IMAGE_MAX_OUTPUT) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_LIMIT, "%s = %lld, the limit is %d", field,
                          (long long)value, QKVI_IMAGE_MAX_OUTPUT);
}

static qkv_status take_size(const qkvi_json_reader *reader, const char *field, int64_t *value) {
    *value = 0;
    QKV_TRY(qkvi_json_take_int(reader, field, INT32_MAX, value));
    return json_object_get(reader->object, field) ? check_size(reader, field, *value) : QKV_OK;
}

/* {"height", "width"} or, where shortest is not NULL, {"shortest_edge"}. */
static qkv_status take_sides(const qkvi_json_reader *reader, const char *field,
                             const json_t *object, int64_t sides[2], int64_t *shortest) {
    const qkvi_json_reader inner = { reader->file, field, object, reader->error };
    int64_t edge;
    QKV_TRY(take_size(&inner, "height", &sides[0]));
    QKV_TRY(take_size(&inner, "width", &sides[1]));
    QKV_TRY(take_size(&inner, "shortest_edge", &edge));
    const bool has_sides = sides[0] && sides[1];
    if (json_object_size(object) == 2 && has_sides) return QKV_OK;
    if (json_object_size(object) == 1 && edge && shortest) {
        *shortest = edge;
        return QKV_OK;
    }
    return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED, "%s is neither {height, width}%s", field,
                          shortest ? " nor {shortest_edge}" : " nor an integer");
}

static qkv_status take_number(const qkvi_json_reader *reader, const char *field,
                              const json_t *value, int64_t *side) {
    if (!json_is_integer(value))
        return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT, "%s has no integers", field);
    *side = json_integer_value(value);
    return check_size(reader, field, *side);
}

/* Files before transformers 4.26 have an integer, or [height, width]. */
static qkv_status take_old_sides(const qkvi_json_reader *reader, const char *field,
                                 const json_t *value, bool squares, int64_t sides[2],
                                 int64_t *shortest) {
    if (json_is_array(value) && json_array_size(value) == 2) {
        QKV_TRY(take_number(reader, field, json_array_get(value, 0), &sides[0]));
        return take_number(reader, field, json_array_get(value, 1), &sides[1]);
    }
    if (json_is_array(value))
        return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT, "%s has %zu entries, not 2", field,
                              json_array_size(value));
    if (!squares && shortest) return take_number(reader, field, value, shortest);
    QKV_TRY(take_number(reader, field, value, &sides[0]));
    sides[1] = sides[0];
    return QKV_OK;
}

/* Both sides, or the shorter one; where the file says nothing they stay as they are. */
static qkv_status read_sides(const qkvi_json_reader *reader, const char *field, bool squares,
                             int64_t sides[2], int64_t *shortest) {
    const json_t *const value = json_object_get(reader->object, field);
    if (value == NULL || json_is_null(value)) return QKV_OK;
    sides[0] = sides[1] = 0;
    if (shortest) *shortest = 0;
    if (json_is_object(value)) return take_sides(reader, field, value, sides, shortest);
    return take_old_sides(reader, field, value, squares, sides, shortest);
}

static qkv_status read_resize(const qkvi_json_reader *reader, const processor *kind,
                              qkvi_image_rules *rules) {
    int resizes = 1;
    const int64_t side = kind->is_square ? kind->size : 0;
    int64_t filter = kind->filter, sides[2] = { side, side }, shortest = kind->size - side;
    QKV_TRY(qkvi_json_take_bool(reader, "do_resize", &resizes));
    QKV_TRY(read_sides(reader, "size", kind->squares, sides, &shortest));
    QKV_TRY(qkvi_json_take_int(reader, "resample", INT32_MAX, &filter));
    if (filter > QKVI_IMAGE_BICUBIC)
        return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED,
                              "resample = %lld is not 0 (nearest), 1 (Lanczos), 2 (bilinear) or 3 "
                              "(bicubic)",
                              (long long)filter);
    rules->filter = (qkvi_image_filter)filter;
    if (!resizes) return QKV_OK;
    rules->height = sides[0], rules->width = sides[1], rules->shortest_edge = shortest;
    return QKV_OK;
}

static qkv_status read_crop(const qkvi_json_reader *reader, const processor *kind,
                            qkvi_image_rules *rules) {
    int crops = kind->crop > 0;
    int64_t sides[2] = { kind->crop, kind->crop };
    QKV_TRY(qkvi_json_take_bool(reader, "do_center_crop", &crops));
    QKV_TRY(read_sides(reader, "crop_size", true, sides, NULL));
    if (!crops) return QKV_OK;
    rules->crop_height = sides[0], rules->crop_width = sides[1];
    if (sides[0] > 0) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT, "do_center_crop is true without crop_size");
}

/* One number for all channels, or three. */
static qkv_status take_channels(const qkvi_json_reader *reader, const char *field,
                                const double *absent, double values[3]) {
    const json_t *const value = json_object_get(reader->object, field);
    memcpy(values, absent, 3 * sizeof *values);
    if (value == NULL || json_is_null(value)) return QKV_OK;
    if (json_is_array(value) && json_array_size(value) != 3)
        return QKVI_JSON_FAIL(reader, QKV_ERR_SHAPE, "%s has %zu entries, not 3", field,
                              json_array_size(value));
    for (size_t c = 0; c < 3; c++) {
        const json_t *const number = json_is_array(value) ? json_array_get(value, c) : value;
        if (!json_is_number(number))
            return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT, "%s is neither a number nor 3 numbers",
                                  field);
        values[c] = json_number_value(number);
        if (!(fabs(values[c]) <= 1e6))
            return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT, "%s has %g, beyond 1e6", field,
                                  values[c]);
    }
    return QKV_OK;
}

static qkv_status read_values(const qkvi_json_reader *reader, const processor *kind,
                              qkvi_image_rules *rules) {
    int rescales = 1, normalizes = 1;
    double factor = 1 / 255.0;
    QKV_TRY(qkvi_json_take_bool(reader, "do_rescale", &rescales));
    QKV_TRY(qkvi_json_take_bool(reader, "do_normalize", &normalizes));
    QKV_TRY(qkvi_json_take_real(reader, "rescale_factor", &factor));
    QKV_TRY(take_channels(reader, "image_mean", means[kind->mean], rules->mean));
    QKV_TRY(take_channels(reader, "image_std", stds[kind->mean], rules->std));
    if (!(factor >= 1e-9 && factor <= 1e9))
        return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT, "rescale_factor = %g is not from 1e-9 to 1e9",
                              factor);
    for (int c = 0; c < 3; c++)
        if (!(rules->std[c] >= 1e-9))
            return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT, "image_std[%d] = %g is less than 1e-9", c,
                                  rules->std[c]);
    rules->rescales_first = rescales && kind->rescales_first;
    rules->rescale_factor = rescales ? factor : 0;
    rules->normalizes = normalizes;
    return QKV_OK;
}

/* Steps that change pixels, and that we have not. */
static qkv_status refuse_others(const qkvi_json_reader *reader) {
    static const char *const fields[] = { "do_pad", "do_flip_channel_order", "use_square_size",
                                          "do_thumbnail", "do_align_long_axis" };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (json_is_true(json_object_get(reader->object, fields[i])))
            return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED, "%s = true is not supported",
                                  fields[i]);
    return QKV_OK;
}

/* ---- Files ----------------------------------------------------------------------------------- */

static qkv_status read_rules(const qkvi_json_reader *reader, const char *model_type,
                             qkvi_image_rules *rules) {
    const processor *kind;
    *rules = (qkvi_image_rules){ 0 };
    QKV_TRY(find_class(reader, model_type, &kind));
    rules->type = kind->name;
    QKV_TRY(refuse_others(reader));
    QKV_TRY(read_resize(reader, kind, rules));
    QKV_TRY(read_crop(reader, kind, rules));
    return read_values(reader, kind, rules);
}

/* Of the inner object where there is one; *found: there is, or it is not needed. */
static qkv_status read_object(const char *file, const json_t *root, const char *model_type,
                              bool needs_inner, bool *found, qkvi_image_rules *rules,
                              qkv_error *error) {
    const qkvi_json_reader outer = { file, "", root, error };
    const json_t *inner;
    QKV_TRY(qkvi_json_take_object(&outer, "image_processor", &inner));
    *found = inner || !needs_inner;
    const qkvi_json_reader reader = { file, "image_processor", inner, error };
    return *found ? read_rules(inner ? &reader : &outer, model_type, rules) : QKV_OK;
}

static qkv_status read_bytes(const char *file, const void *bytes, size_t n_bytes,
                             const char *model_type, bool needs_inner, bool *found,
                             qkvi_image_rules *rules, qkv_error *error) {
    json_t *root = NULL;
    QKV_TRY(qkvi_json_load(file, bytes, n_bytes, &qkvi_json_limits_config, &root, error));
    const qkv_status status = read_object(file, root, model_type, needs_inner, found, rules, error);
    json_decref(root);
    return status;
}

qkv_status qkvi_image_rules_read(const char *file, const void *bytes, size_t n_bytes,
                                 const char *model_type, qkvi_image_rules *rules,
                                 qkv_error *error) {
    bool found;
    return read_bytes(file, bytes, n_bytes, model_type, false, &found, rules, error);
}

/* The file of that name, if it is there and, with needs_inner, has that object. */
static qkv_status try_file(const char *folder, const char *name, const char *model_type,
                           bool needs_inner, bool *found, qkvi_image_rules *rules,
                           qkv_error *error) {
    char *bytes = NULL;
    size_t n_bytes = 0;
    char *const path = qkvi_path_join(folder, name);
    if (!path) return qkvi_no_memory(error, "a file name");
    qkv_status status = QKV_OK;
    if (qkvi_file_exists(path)) {
        status = qkvi_file_load(path, qkvi_json_limits_config.max_bytes, &bytes, &n_bytes, error);
        if (status == QKV_OK)
            status = read_bytes(QKVI_PRINTABLE(QKVI_NAME_BYTES, path), bytes, n_bytes, model_type,
                                needs_inner, found, rules, error);
    }
    free(bytes);
    free(path);
    return status;
}

qkv_status qkvi_image_rules_find(const char *folder, const char *model_type,
                                 qkvi_image_rules *rules, qkv_error *error) {
    static const char nested[] = "processor_config.json", plain[] = "preprocessor_config.json";
    bool found = false;
    QKV_TRY(try_file(folder, nested, model_type, true, &found, rules, error));
    if (!found) QKV_TRY(try_file(folder, plain, model_type, false, &found, rules, error));
    if (found) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_IO,
                          "%s: there is no %s, and no %s with an image_processor, which say how "
                          "images are resized",
                          QKVI_PRINTABLE(QKVI_NAME_BYTES, folder), plain, nested);
}
