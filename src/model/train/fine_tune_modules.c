/*
 * What a folder of sentence-transformers has beside the model: its settings, and a folder for each module
 * behind the encoder. Without them the modules.json that is copied would name what is not there.
 */
#include <errno.h>
#include <sys/stat.h>

#include "model/store/recipe.h"
#include "model/train/trainer.h"

/* Names were checked when the model was opened. */
static qkv_status copy_module(const qkvi_trainer *trainer, const char *module, qkvi_files *files,
                              qkv_error *error) {
    static const char *const names[] = { "config.json", "model.safetensors" };
    char name[160];
    char *const folder = qkvi_path_join(trainer->options->out, module);
    if (!folder) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a path");
    const int failed = mkdir(folder, 0777) != 0 && errno != EEXIST ? errno : 0;
    free(folder);
    if (failed)
        return qkvi_error_set(error, QKV_ERR_IO, "cannot make the folder of a module: %s",
                              strerror(failed));
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s/%s", module, names[i]);
        QKV_TRY(qkvi_fine_tune_copy(trainer, name, files, error));
    }
    return QKV_OK;
}

typedef qkv_status visit_fn(const qkvi_trainer *trainer, const char *module, qkvi_files *files,
                            qkv_error *error);

/* Each module that has a folder. */
static qkv_status each_module(const qkvi_trainer *trainer, visit_fn *visit, qkvi_files *files,
                              qkv_error *error) {
    char file[1024];
    json_t *root;
    qkv_status status = qkvi_recipe_load(trainer->from, "modules.json", file, &root, error);
    if (status != QKV_OK) return status;
    for (size_t m = 0; m < json_array_size(root) && status == QKV_OK; m++) {
        const char *path = json_string_value(json_object_get(json_array_get(root, m), "path"));
        if (path && *path) status = visit(trainer, path, files, error);
    }
    json_decref(root);
    return status;
}

qkv_status qkvi_fine_tune_modules(const qkvi_trainer *trainer, qkvi_files *files,
                                  qkv_error *error) {
    for (int i = 0; qkvi_recipe_files[i]; i++)
        QKV_TRY(qkvi_fine_tune_copy(trainer, qkvi_recipe_files[i], files, error));
    return each_module(trainer, copy_module, files, error);
}

static qkv_status sweep_module(const qkvi_trainer *trainer, const char *module, qkvi_files *files,
                               qkv_error *error) {
    (void)files;
    char *const folder = qkvi_path_join(trainer->options->out, module);
    if (!folder) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a path");
    qkvi_checkpoint_sweep(folder);
    free(folder);
    return QKV_OK;
}

qkv_status qkvi_fine_tune_sweep(const qkvi_trainer *trainer, qkv_error *error) {
    return each_module(trainer, sweep_module, NULL, error);
}
