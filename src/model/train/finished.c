/*
 * A run that is finished: see trainer.h. train_run.txt is the line of run_fields.h after the last step,
 * without the hashes of what is then no longer there. It gets its place after all other files of the
 * run, of which model.safetensors is the first: so where the line is of a run and the weights have its
 * hash, everything is that run's.
 */

#include "model/model_impl.h"
#include "model/train/run_fields.h"

static const char file_name[] = "train_run.txt";

static uint64_t hash_weights(const float *arena, size_t n) {
    return qkvi_hash(QKVI_HASH_START, arena, n * sizeof *arena);
}

qkv_status qkvi_finished_put(const qkvi_trainer *trainer, qkvi_files *files, qkv_error *error) {
    qkvi_run_fields fields;
    char text[QKVI_RUN_BYTES + 1];
    qkvi_run_fields_of(trainer, &fields);
    fields.bits[QKVI_RUN_WEIGHTS] = hash_weights(trainer->params, trainer->table.n_elems);
    qkvi_run_fields_print(&fields, text);
    strcat(text, "\n");
    return qkvi_files_add(files, file_name, text, strlen(text), error);
}

/* The line, if the folder has one that can be read. */
static qkv_status read_line(const char *path, qkvi_run_fields *run, bool *found, qkv_error *error) {
    char *text, name[QKVI_NAME_BYTES];
    size_t n;
    *found = false;
    if (!qkvi_file_exists(path)) return QKV_OK;
    const qkv_status status = qkvi_file_load(path, QKVI_RUN_BYTES, &text, &n, error);
    if (status == QKV_ERR_LIMIT) return QKV_OK;
    if (status != QKV_OK) return status;
    if (n > 0 && text[n - 1] == '\n') text[n - 1] = '\0';
    qkvi_escape(name, sizeof name, path, strlen(path));
    *found = qkvi_run_fields_parse(name, text, run, NULL) == QKV_OK;
    free(text);
    return QKV_OK;
}

/* Are the weights in the folder those of the run? What cannot be read is not. */
static qkv_status check_weights(const char *folder, uint64_t hash, bool *are, qkv_error *error) {
    qkv_model *model;
    qkv_error own;
    const qkv_status status = qkvi_model_open_to_train(folder, &model, &own);
    *are = false;
    if (status == QKV_ERR_MEMORY) return qkvi_error_set(error, status, "%s", own.message);
    if (status != QKV_OK) return QKV_OK;
    *are = hash_weights(model->arena, model->params.n_elems) == hash;
    qkv_model_free(model);
    return QKV_OK;
}

static qkv_status find(const qkvi_trainer *trainer, const char *path, bool *is_finished,
                       qkv_error *error) {
    char name[QKVI_NAME_BYTES];
    qkvi_run_fields run, ours;
    bool found;
    QKV_TRY(read_line(path, &run, &found, error));
    if (!found) return QKV_OK;
    qkvi_run_fields_of(trainer, &ours);
    QKV_TRY(qkvi_run_fields_match(qkvi_escape(name, sizeof name, path, strlen(path)), &run, &ours,
                                  error));
    if (run.bits[QKVI_RUN_STEP] != run.bits[QKVI_RUN_STEPS]) return QKV_OK;
    return check_weights(trainer->options->out, run.bits[QKVI_RUN_WEIGHTS], is_finished, error);
}

qkv_status qkvi_finished_find(const qkvi_trainer *trainer, bool *is_finished, qkv_error *error) {
    char *const path = qkvi_path_join(trainer->options->out, file_name);
    *is_finished = false;
    if (!path) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a path");
    const qkv_status status = find(trainer, path, is_finished, error);
    free(path);
    return status;
}
