/*
 * Classes of a classifier in config.json: how many there are, what they are called, and what the
 * classifier reads. transformers counts id2label; without it num_labels, and without both there are
 * 2.
 */
#include <stdlib.h>

#include "model/config/config.h"

/* Whether a name of a class of transformers is of a classifier of whole texts, or of images. */
static bool is_of_texts(const char *architecture) {
    static const char *const tasks[] = { "ForSequenceClassification", "ForImageClassification",
                                         "ForImageClassificationWithTeacher" };
    for (size_t t = 0; t < sizeof tasks / sizeof *tasks; t++)
        if (qkvi_ends_with(architecture, tasks[t])) return true;
    return false;
}

/* Without architectures a stored classifier is one of texts. */
static qkv_status read_task(const qkvi_json_reader *reader, bool *of_texts) {
    const json_t *list = NULL;
    QKV_TRY(qkvi_json_take_array(reader, "architectures", &list));
    const char *const first = list ? json_string_value(json_array_get(list, 0)) : NULL;
    *of_texts = !first || is_of_texts(first);
    return QKV_OK;
}

static qkv_status read_pooling(const qkvi_json_reader *reader, qkv_pooling *pooling) {
    const char *name = "cls";
    QKV_TRY(qkvi_json_take_string(reader, "classifier_pooling", &name));
    *pooling = strcmp(name, "mean") == 0 ? QKV_POOLING_MEAN : QKV_POOLING_CLS;
    if (*pooling == QKV_POOLING_MEAN || strcmp(name, "cls") == 0) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED, "classifier_pooling '%s' is not supported",
                          QKVI_PRINTABLE(128, name));
}

/* As transformers applies softmax, sigmoid or nothing to logits. */
static qkv_status read_kind(const qkvi_json_reader *reader, qkv_model_info *info) {
    const char *problem = NULL;
    QKV_TRY(qkvi_json_take_string(reader, "problem_type", &problem));
    info->label_kind = info->n_labels == 1 ? QKV_LABELS_EACH : QKV_LABELS_ONE;
    if (!problem || strcmp(problem, "single_label_classification") == 0) return QKV_OK;
    info->label_kind = strcmp(problem, "regression") == 0 ? QKV_LABELS_VALUES : QKV_LABELS_EACH;
    if (info->label_kind == QKV_LABELS_VALUES || strcmp(problem, "multi_label_classification") == 0)
        return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED, "problem_type '%s' is not supported",
                          QKVI_PRINTABLE(128, problem));
}

static qkv_status count_labels(const qkvi_json_reader *reader, int64_t *n) {
    const json_t *names = NULL;
    *n = 2;
    QKV_TRY(qkvi_json_take_object(reader, "id2label", &names));
    if (!names) return qkvi_config_take_size(reader, "num_labels", QKVI_MAX_LABELS, n);
    *n = (int64_t)json_object_size(names);
    return QKV_OK;
}

qkv_status qkvi_config_classes(const qkvi_json_reader *reader, qkv_model_info *info) {
    bool of_texts;
    info->label_pooling = QKV_POOLING_CLS;
    QKV_TRY(read_task(reader, &of_texts));
    if (!of_texts) return QKV_OK;
    if (strcmp(info->architecture, "modernbert") == 0)
        QKV_TRY(read_pooling(reader, &info->label_pooling));
    QKV_TRY(count_labels(reader, &info->n_labels));
    return read_kind(reader, info);
}

/* "0", "1", … without other ways to write a number; -1: none of them. */
static int64_t label_of(const char *key, int64_t n) {
    char *end;
    const long long label = strtoll(key, &end, 10);
    const bool plain = key[0] >= '0' && key[0] <= '9' && *end == 0 && (key[0] != '0' || !key[1]);
    return plain && label < n ? label : -1;
}

static qkv_status take_names(const qkvi_json_reader *reader, int64_t n, char **names) {
    const json_t *object = NULL;
    const char *key;
    const json_t *value;
    QKV_TRY(qkvi_json_take_object(reader, "id2label", &object));
    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        const int64_t label = label_of(key, n);
        const char *const name = json_string_value(value);
        if (label < 0 || !name)
            return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT,
                                  "id2label '%s' is not a number below %lld with a name",
                                  QKVI_PRINTABLE(128, key), (long long)n);
        names[label] = strdup(QKVI_PRINTABLE(256, name));
        if (!names[label]) return QKVI_JSON_FAIL(reader, QKV_ERR_MEMORY, "no memory for a name");
    }
    return QKV_OK;
}

qkv_status qkvi_config_labels(const char *file, const void *bytes, size_t n_bytes, int64_t n,
                              char **names, qkv_error *error) {
    json_t *root;
    QKV_TRY(qkvi_json_load(file, bytes, n_bytes, &qkvi_json_limits_config, &root, error));
    const qkvi_json_reader reader = { .file = file, .path = "", .object = root, .error = error };
    const qkv_status status = take_names(&reader, n, names);
    json_decref(root);
    return status;
}
