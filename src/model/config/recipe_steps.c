/*
 * Modules with weights: Dense, y = f(W x + b) or with what went in added, and LayerNorm. Weights
 * are a model.safetensors in the module's folder, whose tensors are those of the module and no
 * others.
 */

#include "files/safetensors.h"
#include "model/config/config.h"
#include "model/config/recipe.h"

/* ---- Weights --------------------------------------------------------------------------------- */

/* A tensor that the module has. */
struct wanted {
    const char *name;
    int rank;
    int64_t shape[2];
    float **values;
};

static qkv_status load_tensor(const qkvi_safetensors *file, const struct wanted *wanted,
                              qkv_error *error) {
    const qkvi_stored *const stored = qkvi_safetensors_find(file, wanted->name);
    char is[128], must[64];
    if (!stored)
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: tensor %s is missing", file->source.name,
                              wanted->name);
    if (stored->rank != wanted->rank || stored->shape[0] != wanted->shape[0] ||
        (wanted->rank == 2 && stored->shape[1] != wanted->shape[1]))
        return qkvi_error_set(error, QKV_ERR_SHAPE, "%s: tensor %s is %s, must be %s",
                              file->source.name, wanted->name,
                              qkvi_shape_text(stored->rank, stored->shape, is, sizeof is),
                              qkvi_shape_text(wanted->rank, wanted->shape, must, sizeof must));
    *wanted->values = qkvi_malloc_array(stored->n_elems, sizeof(float));
    if (!*wanted->values)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory for a module",
                              file->source.name);
    return qkvi_safetensors_read_f32(file, stored, *wanted->values, error);
}

static qkv_status check_others(const qkvi_safetensors *file, const struct wanted *wanted, int n,
                               qkv_error *error) {
    for (int64_t t = 0; t < file->n_tensors; t++) {
        const char *const name = file->tensors[t].name;
        int i = 0;
        while (i < n && strcmp(wanted[i].name, name) != 0) i++;
        if (i == n)
            return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "%s: tensor %s is none of the module",
                                  file->source.name, QKVI_PRINTABLE(128, name));
    }
    return QKV_OK;
}

static qkv_status load_weights(const char *folder, const char *module, const struct wanted *wanted,
                               int n, qkv_error *error) {
    qkvi_safetensors *file;
    char name[160];
    snprintf(name, sizeof name, "%s/model.safetensors", module);
    char *const path = qkvi_path_join(folder, name);
    if (!path) return qkvi_no_memory(error, "a path");
    qkv_status status = QKV_OK;
    if (!qkvi_file_exists(path)) {
        status = qkvi_error_set(error, QKV_ERR_IO,
                                "%s is not there; of a pytorch_model.bin, a pickle file, "
                                "tools/bin2safetensors.py makes it",
                                QKVI_PRINTABLE(QKVI_NAME_BYTES, path));
    }
    if (status == QKV_OK) status = qkvi_safetensors_open(path, &file, error);
    free(path);
    if (status != QKV_OK) return status;
    for (int i = 0; i < n && status == QKV_OK; i++) status = load_tensor(file, &wanted[i], error);
    if (status == QKV_OK) status = check_others(file, wanted, n, error);
    qkvi_safetensors_close(file);
    return status;
}

/* ---- Dense ----------------------------------------------------------------------------------- */

/* "torch.nn.modules.activation.Tanh": a class of PyTorch, by its last word. */
static qkv_status take_act(const qkvi_json_reader *reader, qkvi_step *step) {
    static const struct {
        const char *name;
        qkvi_dense_act act;
    } acts[] = { { "Identity", QKVI_DENSE_IDENTITY }, { "Tanh", QKVI_DENSE_TANH },
                 { "ReLU", QKVI_DENSE_RELU },         { "GELU", QKVI_DENSE_GELU },
                 { "Sigmoid", QKVI_DENSE_SIGMOID },   { "SiLU", QKVI_DENSE_SILU } };
    const char *name = "torch.nn.Tanh";
    QKV_TRY(qkvi_json_take_string(reader, "activation_function", &name));
    const char *const dot = strrchr(name, '.');
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
        if (strncmp(name, "torch.nn.", 9) != 0 || strcmp(dot + 1, acts[i].name) != 0) continue;
        step->act = acts[i].act;
        return QKV_OK;
    }
    return qkvi_recipe_refuse(reader->file, "activation_function", name, reader->error);
}

static qkv_status take_dense(const qkvi_json_reader *reader, qkvi_step *step, int *has_bias) {
    int64_t n_in = 0;
    QKV_TRY(qkvi_config_need_size(reader, "in_features", QKVI_MAX_INTERMEDIATE, &n_in));
    QKV_TRY(qkvi_config_need_size(reader, "out_features", QKVI_MAX_HIDDEN, &step->n_out));
    if (n_in != step->n_in)
        return QKVI_JSON_FAIL(reader, QKV_ERR_SHAPE, "in_features = %lld, but %lld numbers come in",
                              (long long)n_in, (long long)step->n_in);
    QKV_TRY(qkvi_json_take_bool(reader, "bias", has_bias));
    QKV_TRY(qkvi_json_take_bool(reader, "use_residual", &step->adds_input));
    QKV_TRY(take_act(reader, step));
    QKV_TRY(qkvi_config_word(reader, "module_input_name", "sentence_embedding"));
    return qkvi_config_word(reader, "module_output_name", "sentence_embedding");
}

static qkv_status add_dense(const char *folder, const char *module, const qkvi_json_reader *reader,
                            qkvi_step *step) {
    int has_bias = 1, n = 0;
    QKV_TRY(take_dense(reader, step, &has_bias));
    struct wanted wanted[3];
    wanted[n++] = (struct wanted){ "linear.weight", 2, { step->n_out, step->n_in }, &step->weight };
    if (has_bias) wanted[n++] = (struct wanted){ "linear.bias", 1, { step->n_out }, &step->bias };
    if (step->adds_input && step->n_in != step->n_out)
        wanted[n++] =
            (struct wanted){ "residual.weight", 2, { step->n_out, step->n_in }, &step->residual };
    return load_weights(folder, module, wanted, n, reader->error);
}

/* ---- LayerNorm, Normalize -------------------------------------------------------------------- */

static qkv_status add_norm(const char *folder, const char *module, const qkvi_json_reader *reader,
                           qkvi_step *step) {
    int64_t n = 0;
    QKV_TRY(qkvi_config_need_size(reader, "dimension", QKVI_MAX_INTERMEDIATE, &n));
    if (n != step->n_in)
        return QKVI_JSON_FAIL(reader, QKV_ERR_SHAPE, "dimension = %lld, but %lld numbers come in",
                              (long long)n, (long long)step->n_in);
    const struct wanted wanted[2] = { { "norm.weight", 1, { n }, &step->weight },
                                      { "norm.bias", 1, { n }, &step->bias } };
    return load_weights(folder, module, wanted, 2, reader->error);
}

static qkv_status fill(const char *folder, const char *module, qkvi_step *step, qkv_error *error) {
    char name[160], file[1024];
    json_t *root;
    step->name = strdup(module);
    if (!step->name) return qkvi_no_memory(error, "a module");
    if (step->kind == QKVI_STEP_NORMALIZE) return QKV_OK;
    snprintf(name, sizeof name, "%s/config.json", module);
    QKV_TRY(qkvi_recipe_load(folder, name, file, &root, error));
    if (!json_is_object(root)) {
        json_decref(root);
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: %s", file,
                              root ? "the JSON is not an object" : "the module's file is missing");
    }
    const qkvi_json_reader reader = { file, "", root, error };
    const qkv_status status =
        (step->kind == QKVI_STEP_DENSE ? add_dense : add_norm)(folder, module, &reader, step);
    json_decref(root);
    return status;
}

qkv_status qkvi_recipe_add_step(const char *folder, const char *module, qkvi_step_kind kind,
                                qkvi_recipe *s, qkv_error *error) {
    qkvi_step *const steps = qkvi_realloc_array(s->steps, (size_t)s->n_steps + 1, sizeof *s->steps);
    if (!steps) return qkvi_no_memory(error, "a module");
    s->steps = steps;
    qkvi_step *const step = &steps[s->n_steps++];
    *step = (qkvi_step){ .kind = kind, .n_in = s->dim, .n_out = s->dim };
    QKV_TRY(fill(folder, module, step, error));
    s->dim = step->n_out;
    return QKV_OK;
}
