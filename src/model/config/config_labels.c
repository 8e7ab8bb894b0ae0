/*
 * Classes of a classifier in config.json: what they are of, how many there are, what they are
 * called, and what the classifier reads. transformers counts id2label; without it num_labels, and
 * without both there are 2.
 */
#include <stdlib.h>

#include "model/arch/family.h"
#include "model/config/config.h"

/* What names of classes of transformers end with. */
static const struct {
    const char *end;
    qkv_label_task task;
} tasks[] = {
    { "ForSequenceClassification", QKV_LABELS_OF_TEXTS },
    { "ForTokenClassification", QKV_LABELS_OF_TOKENS },
    { "ForQuestionAnswering", QKV_LABELS_OF_ANSWERS },
    { "ForImageClassification", QKV_LABELS_OF_TEXTS },
    { "ForImageClassificationWithTeacher", QKV_LABELS_OF_TEXTS },
};

/* Without architectures a stored classifier is one of texts. */
static qkv_status read_task(const qkvi_json_reader *reader, bool *classifies,
                            qkv_label_task *task) {
    const json_t *list = NULL;
    QKV_TRY(qkvi_json_take_array(reader, "architectures", &list));
    const char *const first = list ? json_string_value(json_array_get(list, 0)) : NULL;
    *classifies = !first;
    for (size_t t = 0; first && t < sizeof tasks / sizeof *tasks; t++) {
        if (!qkvi_ends_with(first, tasks[t].end)) continue;
        *classifies = true;
        *task = tasks[t].task;
    }
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

/*
 * What sentence-transformers applies to the one logit of a cross-encoder: sigmoid, unless the file
 * names another function of torch, in sentence_transformers.activation_fn (before version 4
 * sbert_ce_default_activation_function).
 */
static qkv_status read_activation(const qkvi_json_reader *reader, qkv_label_kind *kind) {
    const json_t *object = NULL;
    const char *name = NULL;
    QKV_TRY(qkvi_json_take_object(reader, "sentence_transformers", &object));
    const qkvi_json_reader inner = { .file = reader->file,
                                     .path = "sentence_transformers",
                                     .object = object,
                                     .error = reader->error };
    QKV_TRY(qkvi_json_take_string(reader, "sbert_ce_default_activation_function", &name));
    if (object) QKV_TRY(qkvi_json_take_string(&inner, "activation_fn", &name));
    if (!name || qkvi_ends_with(name, ".Sigmoid")) return QKV_OK;
    *kind = QKV_LABELS_VALUES;
    if (qkvi_ends_with(name, ".Identity")) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED,
                          "activation_fn '%s' of one label is not supported",
                          QKVI_PRINTABLE(128, name));
}

/* As transformers applies softmax, sigmoid or nothing to logits. */
static qkv_status read_kind(const qkvi_json_reader *reader, qkv_model_info *info) {
    const char *problem = NULL;
    QKV_TRY(qkvi_json_take_string(reader, "problem_type", &problem));
    info->label_kind = info->n_labels == 1 ? QKV_LABELS_EACH : QKV_LABELS_ONE;
    if (info->n_labels == 1) QKV_TRY(read_activation(reader, &info->label_kind));
    if (!problem || strcmp(problem, "single_label_classification") == 0) return QKV_OK;
    const bool regression = strcmp(problem, "regression") == 0;
    if (regression) info->label_kind = QKV_LABELS_VALUES;
    if (!regression && info->n_labels > 1) info->label_kind = QKV_LABELS_EACH;
    if (regression || strcmp(problem, "multi_label_classification") == 0) return QKV_OK;
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
    bool classifies;
    info->label_pooling = QKV_POOLING_CLS;
    const qkvi_model_family *const family = qkvi_family_of(info->architecture);
    QKV_TRY(read_task(reader, &classifies, &info->label_task));
    if (info->label_task != QKV_LABELS_OF_TEXTS && !family->token_classifier) classifies = false;
    if (!classifies) return QKV_OK;
    if (family->kind == QKV_MODEL_DECODER) info->label_pooling = QKV_POOLING_LAST;
    if (strcmp(info->architecture, "modernbert") == 0)
        QKV_TRY(read_pooling(reader, &info->label_pooling));
    QKV_TRY(count_labels(reader, &info->n_labels));
    if (info->label_task == QKV_LABELS_OF_TEXTS) return read_kind(reader, info);
    info->label_kind = QKV_LABELS_ONE; /* problem_type is of texts */
    if (info->label_task == QKV_LABELS_OF_TOKENS || info->n_labels == 2) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED,
                          "%lld labels of a model that answers questions, which has 2: an answer "
                          "begins, and ends",
                          (long long)info->n_labels);
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
