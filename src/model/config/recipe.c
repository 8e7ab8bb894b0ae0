/*
 * modules.json and the pooling: see recipe.h. Versions up to 5.0 of sentence-transformers wrote a
 * switch for each kind of pooling, later ones its name, or several. Module folders are plain names
 * inside the model's folder, whatever the file says.
 */
#include "model/config/recipe.h"

#include "core/os.h"
#include "files/file.h"
#include "model/config/config.h"

enum { MAX_BYTES = 1 << 20, MAX_MODULES = 64 };

/* In the order in which vectors stand side by side where switches choose them. */
static const struct mode {
    const char *name, *old_switch;
    qkv_pooling pooling;
} modes[QKVI_POOLINGS] = {
    { "cls", "pooling_mode_cls_token", QKV_POOLING_CLS },
    { "max", "pooling_mode_max_tokens", QKV_POOLING_MAX },
    { "mean", "pooling_mode_mean_tokens", QKV_POOLING_MEAN },
    { "mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", QKV_POOLING_MEAN_SQRT_LEN },
    { "weightedmean", "pooling_mode_weightedmean_tokens", QKV_POOLING_WEIGHTED_MEAN },
    { "lasttoken", "pooling_mode_lasttoken", QKV_POOLING_LAST },
};

qkv_status qkvi_recipe_load(const char *folder, const char *name, char file[1024], json_t **root,
                            qkv_error *error) {
    char *const path = qkvi_path_join(folder, name), *bytes = NULL;
    size_t n_bytes = 0;
    qkv_status status = QKV_OK;
    *root = NULL;
    if (!path) return qkvi_no_memory(error, "a path");
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

qkv_status qkvi_recipe_refuse(const char *file, const char *what, const char *value,
                              qkv_error *error) {
    return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "%s: %s '%s' is not supported", file, what,
                          QKVI_PRINTABLE(128, value));
}

void qkvi_recipe_free(qkvi_recipe *s) {
    for (int i = 0; i < s->n_steps; i++) {
        free(s->steps[i].name);
        free(s->steps[i].weight);
        free(s->steps[i].bias);
        free(s->steps[i].residual);
    }
    for (int64_t p = 0; p < s->n_prompts; p++) {
        free(s->prompts[p].name);
        free(s->prompts[p].text);
    }
    free(s->steps);
    free(s->prompts);
    *s = (qkvi_recipe){ 0 };
}

/* ---- Pooling --------------------------------------------------------------------------------- */

/* The mean where no switch is on. */
static qkv_status take_switches(const qkvi_json_reader *reader, qkvi_recipe *s) {
    s->n_poolings = 0;
    for (int m = 0; m < QKVI_POOLINGS; m++) {
        int on = 0;
        QKV_TRY(qkvi_json_take_bool(reader, modes[m].old_switch, &on));
        if (on) s->poolings[s->n_poolings++] = modes[m].pooling;
    }
    if (s->n_poolings > 0) return QKV_OK;
    s->poolings[s->n_poolings++] = QKV_POOLING_MEAN;
    return QKV_OK;
}

static qkv_status take_mode(const qkvi_json_reader *reader, const json_t *value, qkvi_recipe *s) {
    const char *const name = json_string_value(value);
    if (!name)
        return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT,
                              "pooling_mode is neither a name nor a list of names");
    for (int m = 0; m < QKVI_POOLINGS; m++) {
        if (strcmp(name, modes[m].name) != 0) continue;
        s->poolings[s->n_poolings++] = modes[m].pooling;
        return QKV_OK;
    }
    return qkvi_recipe_refuse(reader->file, "pooling_mode", name, reader->error);
}

static qkv_status take_modes(const qkvi_json_reader *reader, qkvi_recipe *s) {
    const json_t *const value = json_object_get(reader->object, "pooling_mode");
    const size_t n = json_array_size(value);
    if (!value) return take_switches(reader, s);
    s->n_poolings = 0;
    if (!json_is_array(value)) return take_mode(reader, value, s);
    if (n < 1 || n > QKVI_POOLINGS)
        return QKVI_JSON_FAIL(reader, QKV_ERR_LIMIT, "pooling_mode has %zu names, must be 1 to %d",
                              n, (int)QKVI_POOLINGS);
    for (size_t i = 0; i < n; i++) QKV_TRY(take_mode(reader, json_array_get(value, i), s));
    return QKV_OK;
}

static qkv_status read_pooling(const char *folder, const char *module, qkvi_recipe *s,
                               qkv_error *error) {
    char name[160], file[1024];
    json_t *root;
    int include = 1;
    snprintf(name, sizeof name, "%s/config.json", module);
    QKV_TRY(qkvi_recipe_load(folder, name, file, &root, error));
    if (!json_is_object(root)) {
        json_decref(root);
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: %s", file,
                              root ? "the JSON is not an object" : "the pooling's file is missing");
    }
    const qkvi_json_reader reader = { .file = file, .path = "", .object = root, .error = error };
    qkv_status status = take_modes(&reader, s);
    if (status == QKV_OK) status = qkvi_json_take_bool(&reader, "include_prompt", &include);
    s->leaves_prompt = !include || json_is_null(json_object_get(root, "include_prompt"));
    s->dim *= s->n_poolings;
    json_decref(root);
    return status;
}

/* ---- Modules --------------------------------------------------------------------------------- */

/* What the last word of a type means; types are those of sentence-transformers, whose versions have
 * their modules in several places. */
enum module_kind { TRANSFORMER, POOLING, DENSE, LAYER_NORM, NORMALIZE, DROPOUT, N_KINDS };

static enum module_kind kind_of(const char *type) {
    static const char *const names[N_KINDS] = { "Transformer", "Pooling",   "Dense",
                                                "LayerNorm",   "Normalize", "Dropout" };
    static const char own[] = "sentence_transformers.";
    const char *const dot = strrchr(type, '.');
    int kind = 0;
    if (strncmp(type, own, strlen(own)) != 0) return N_KINDS;
    while (kind < N_KINDS && strcmp(dot + 1, names[kind]) != 0) kind++;
    return (enum module_kind)kind;
}

/* A folder in the one of the model. */
static int is_plain(const char *name) {
    size_t n_folder;
    return *name && strlen(name) < 128 && qkvi_os_split(name, &n_folder) == 0 &&
           strcmp(name, "..") != 0 && strcmp(name, ".") != 0;
}

/* What has been read of the list. */
struct modules {
    const char *folder;
    qkvi_recipe *sentence;
    int seen[N_KINDS];
};

static qkv_status add_normalize(const struct modules *m, const char *module, qkv_error *error) {
    static const char *const names[] = { "module_input_name", "module_output_name" };
    char name[160], file[1024];
    json_t *root;
    snprintf(name, sizeof name, "%s/config.json", module);
    QKV_TRY(qkvi_recipe_load(m->folder, name, file, &root, error));
    const qkvi_json_reader reader = { file, "", root, error };
    qkv_status status = QKV_OK;
    if (json_is_null(json_object_get(root, names[0]))) /* of null nothing is normalised */
        status = qkvi_recipe_refuse(file, names[0], "null", error);
    for (int n = 0; n < 2 && json_is_object(root) && status == QKV_OK; n++)
        status = qkvi_config_word(&reader, names[n], "sentence_embedding");
    json_decref(root);
    if (status != QKV_OK || !m->seen[POOLING]) return status; /* before it there is nothing */
    return qkvi_recipe_add_step(m->folder, module, QKVI_STEP_NORMALIZE, m->sentence, error);
}

static qkv_status out_of_place(const qkvi_json_reader *reader, const char *type, const char *rule) {
    return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED, "module '%s' %s", QKVI_PRINTABLE(128, type),
                          rule);
}

static qkv_status read_module(struct modules *m, const qkvi_json_reader *reader) {
    const char *type = NULL, *path = "";
    QKV_TRY(qkvi_json_need_string(reader, "type", &type));
    QKV_TRY(qkvi_json_take_string(reader, "path", &path));
    const enum module_kind kind = kind_of(type);
    if (kind == N_KINDS) return qkvi_recipe_refuse(reader->file, "module", type, reader->error);
    if (kind == TRANSFORMER ? *path != '\0' : !is_plain(path))
        return qkvi_recipe_refuse(reader->file, "path", path, reader->error);
    if (kind != TRANSFORMER && !m->seen[TRANSFORMER])
        return out_of_place(reader, type, "comes before a Transformer");
    if ((kind == TRANSFORMER || kind == POOLING) && m->seen[kind])
        return out_of_place(reader, type, "is there twice, which is not supported");
    if ((kind == DENSE || kind == LAYER_NORM) && !m->seen[POOLING])
        return out_of_place(reader, type, "comes before a Pooling, which is not supported");
    m->seen[kind] = 1;
    switch (kind) {
    case POOLING: return read_pooling(m->folder, path, m->sentence, reader->error);
    case NORMALIZE: return add_normalize(m, path, reader->error);
    case DENSE:
    case LAYER_NORM:
        return qkvi_recipe_add_step(m->folder, path,
                                    kind == DENSE ? QKVI_STEP_DENSE : QKVI_STEP_LAYER_NORM,
                                    m->sentence, reader->error);
    default: return QKV_OK; /* what is dropped in training stays here */
    }
}

static qkv_status read_modules(struct modules *m, const char *file, const json_t *root,
                               qkv_error *error) {
    if (!json_is_array(root))
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: the JSON is not an array", file);
    if (json_array_size(root) > MAX_MODULES)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "%s: %zu modules, the limit is %d", file,
                              json_array_size(root), MAX_MODULES);
    for (size_t i = 0; i < json_array_size(root); i++) {
        char path[32];
        snprintf(path, sizeof path, "[%zu]", i);
        const json_t *const module = json_array_get(root, i);
        const qkvi_json_reader reader = { file, path, module, error };
        if (!json_is_object(module))
            return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: %s is not an object", file, path);
        QKV_TRY(read_module(m, &reader));
    }
    if (m->seen[POOLING]) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                          "%s: there is no Pooling, so nothing makes a vector", file);
}

/* What the model says of itself to those who ask. */
static void tell(const qkvi_recipe *s, qkv_model_info *info) {
    info->pooling = s->poolings[0];
    info->normalizes =
        s->kept == s->dim && s->n_steps > 0 && s->steps[s->n_steps - 1].kind == QKVI_STEP_NORMALIZE;
    info->sentence_len = s->max_len;
    info->sentence_dim = s->kept;
    info->sentence_layers = 0;
    for (int i = 0; i < s->n_steps; i++)
        info->sentence_layers += s->steps[i].kind != QKVI_STEP_NORMALIZE;
}

static qkv_status read_folder(const char *folder, const qkv_model_info *info, qkvi_recipe *s,
                              qkv_error *error) {
    struct modules modules = { .folder = folder, .sentence = s };
    char file[1024];
    json_t *root;
    QKV_TRY(qkvi_recipe_load(folder, "modules.json", file, &root, error));
    if (!root) return qkvi_recipe_config(NULL, info, s, error);
    qkv_status status = read_modules(&modules, file, root, error);
    json_decref(root);
    if (status == QKV_OK && info->kind == QKV_MODEL_PAIR)
        status = qkvi_recipe_refuse(file, "Transformer of type", info->architecture, error);
    s->kept = s->dim;
    return status == QKV_OK ? qkvi_recipe_config(folder, info, s, error) : status;
}

qkv_status qkvi_recipe_read(const char *folder, int64_t max_len, qkv_model_info *info,
                            qkvi_recipe *s, qkv_error *error) {
    *s = (qkvi_recipe){ .n_poolings = 1,
                        .poolings = { QKV_POOLING_MEAN },
                        .dim = info->pooled_dim,
                        .kept = info->pooled_dim,
                        .max_len = max_len < info->max_len ? max_len : info->max_len,
                        .default_prompt = -1 };
    QKV_TRY(folder ? read_folder(folder, info, s, error)
                   : qkvi_recipe_config(NULL, info, s, error));
    tell(s, info);
    return QKV_OK;
}
