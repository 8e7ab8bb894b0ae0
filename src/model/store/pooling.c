/*
 * modules.json and its modules: see pooling.h. Versions up to 5.0 of sentence-transformers wrote a
 * switch for each kind of pooling, later ones its name. Module folders are plain names inside the
 * model's folder, whatever the file says.
 */
#include "model/store/pooling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "model/store/file.h"
#include "model/store/json.h"

enum { MAX_BYTES = 1 << 20, MAX_POSITIONS = 1 << 20 };

static const struct mode {
    const char *name, *old_switch;
    qkv_pooling pooling;
} modes[] = {
    { "mean", "pooling_mode_mean_tokens", QKV_POOLING_MEAN },
    { "cls", "pooling_mode_cls_token", QKV_POOLING_CLS },
    { "max", "pooling_mode_max_tokens", QKV_POOLING_MAX },
    { "mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", QKV_POOLING_MEAN_SQRT_LEN },
    { "weightedmean", "pooling_mode_weightedmean_tokens", QKV_POOLING_WEIGHTED_MEAN },
    { "lasttoken", "pooling_mode_lasttoken", QKV_POOLING_LAST },
};
enum { N_MODES = sizeof modes / sizeof *modes };

/* A JSON file of the folder; *root NULL if it is not there. */
static qkv_status load(const char *folder, const char *name, char file[1024], json_t **root,
                       qkv_error *error) {
    char *const path = qkvi_path_join(folder, name), *bytes = NULL;
    size_t n_bytes = 0;
    qkv_status status = QKV_OK;
    *root = NULL;
    if (!path) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a path");
    qkvi_escape(file, 1024, path, strlen(path));
    if (qkvi_file_exists(path)) {
        status = qkvi_file_load(path, MAX_BYTES, &bytes, &n_bytes, error);
        if (status == QKV_OK)
            status =
                qkvi_json_load_any(file, bytes, n_bytes, &qkvi_json_limits_config, root, error);
    }
    free(bytes);
    free(path);
    return status;
}

static qkv_status refuse(const char *file, const char *what, const char *value, qkv_error *error) {
    char printable[128];
    qkvi_escape(printable, sizeof printable, value, strlen(value));
    return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "%s: %s '%s' is not supported", file, what,
                          printable);
}

/* ---- Pooling --------------------------------------------------------------------------------- */

static qkv_status take_switches(const qkvi_json_reader *reader, qkv_pooling *pooling) {
    int n_on = 0;
    for (int m = 0; m < N_MODES; m++) {
        int on = 0;
        QKV_TRY(qkvi_json_take_bool(reader, modes[m].old_switch, &on));
        if (on) *pooling = modes[m].pooling;
        n_on += on;
    }
    if (n_on == 1) return QKV_OK;
    return qkvi_error_set(reader->error, n_on ? QKV_ERR_UNSUPPORTED : QKV_ERR_FORMAT,
                          n_on ? "%s: several poolings side by side are not supported"
                               : "%s: no pooling_mode",
                          reader->file);
}

static qkv_status take_mode(const qkvi_json_reader *reader, qkv_pooling *pooling) {
    const char *name = NULL;
    if (!json_object_get(reader->object, "pooling_mode")) return take_switches(reader, pooling);
    QKV_TRY(qkvi_json_need_string(reader, "pooling_mode", &name));
    for (int m = 0; m < N_MODES; m++) {
        if (strcmp(name, modes[m].name) != 0) continue;
        *pooling = modes[m].pooling;
        return QKV_OK;
    }
    return refuse(reader->file, "pooling_mode", name, reader->error);
}

static qkv_status read_pooling(const char *folder, const char *module, qkv_model_info *info,
                               qkv_error *error) {
    char name[160], file[1024];
    json_t *root;
    snprintf(name, sizeof name, "%s/config.json", module);
    QKV_TRY(load(folder, name, file, &root, error));
    if (!json_is_object(root)) {
        json_decref(root);
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: %s", file,
                              root ? "the JSON is not an object" : "the pooling's file is missing");
    }
    const qkvi_json_reader reader = { .file = file, .path = "", .object = root, .error = error };
    const qkv_status status = take_mode(&reader, &info->pooling);
    json_decref(root);
    return status;
}

/* The longest text that the sentence model was made for. */
static qkv_status read_length(const char *folder, qkv_model_info *info, qkv_error *error) {
    char file[1024];
    json_t *root;
    QKV_TRY(load(folder, "sentence_bert_config.json", file, &root, error));
    int64_t longest = info->max_len;
    const qkvi_json_reader reader = { .file = file, .path = "", .object = root, .error = error };
    qkv_status status = QKV_OK;
    if (json_is_object(root))
        status = qkvi_json_take_int(&reader, "max_seq_length", MAX_POSITIONS, &longest);
    json_decref(root);
    if (longest >= 1 && longest < info->max_len) info->sentence_len = longest;
    return status;
}

/* ---- Modules --------------------------------------------------------------------------------- */

/* "sentence_transformers.models.Pooling" and what later versions write: the last word. */
static const char *kind_of(const char *type) {
    const char *const dot = strrchr(type, '.');
    return dot ? dot + 1 : type;
}

static int is_plain(const char *name) {
    return *name && strlen(name) < 128 && !strchr(name, '/') && strcmp(name, "..") != 0 &&
           strcmp(name, ".") != 0;
}

static qkv_status read_module(const char *folder, const qkvi_json_reader *reader,
                              qkv_model_info *info) {
    const char *type = NULL, *path = "";
    QKV_TRY(qkvi_json_need_string(reader, "type", &type));
    QKV_TRY(qkvi_json_take_string(reader, "path", &path));
    const char *const kind = kind_of(type);
    if (strcmp(kind, "Transformer") == 0) return QKV_OK;
    if (strcmp(kind, "Normalize") == 0) {
        info->normalizes = 1;
        return QKV_OK;
    }
    if (strcmp(kind, "Pooling") != 0) return refuse(reader->file, "module", type, reader->error);
    if (!is_plain(path)) return refuse(reader->file, "path", path, reader->error);
    return read_pooling(folder, path, info, reader->error);
}

qkv_status qkvi_pooling_read(const char *folder, qkv_model_info *info, qkv_error *error) {
    char file[1024];
    json_t *root;
    qkv_status status = QKV_OK;
    QKV_TRY(load(folder, "modules.json", file, &root, error));
    if (!root) return QKV_OK;
    if (!json_is_array(root))
        status = qkvi_error_set(error, QKV_ERR_FORMAT, "%s: the JSON is not an array", file);
    for (size_t m = 0; status == QKV_OK && m < json_array_size(root); m++) {
        char path[32];
        snprintf(path, sizeof path, "[%zu]", m);
        const json_t *const module = json_array_get(root, m);
        const qkvi_json_reader reader = { file, path, module, error };
        status = json_is_object(module)
                     ? read_module(folder, &reader, info)
                     : qkvi_error_set(error, QKV_ERR_FORMAT, "%s: %s is not an object", file, path);
    }
    json_decref(root);
    return status == QKV_OK ? read_length(folder, info, error) : status;
}
