/*
 * Checkpoints: see trainer.h. A safetensors file of four one-dimensional tensors, three arenas and
 * the log, with one metadata entry, "qkv_run": run_fields.h. (In older checkpoints, which have no
 * log, its lines are in the folder's train_log.tsv.) It is written under a temporary name and
 * renamed, so that a killed run leaves the old checkpoint or the new one. A file with a changed
 * byte is refused, or is read as the same checkpoint: the line of run_fields.h has a checksum of
 * itself and those of the tensors.
 */
#include <limits.h>

#include "core/os.h"
#include "files/safetensors.h"
#include "model/config/recipe.h"
#include "model/model_impl.h"
#include "train/run_fields.h"

/* ---- Runs that are finished ------------------------------------------------------------------ */

/*
 * A run that is finished: see trainer.h. train_run.txt is the line of run_fields.h after the last
 * step, without the hashes of what is then no longer there. It gets its place after all other files
 * of the run, of which model.safetensors is the first: so where the line is of a run and the
 * weights have its hash, everything is that run's.
 */

static const char run_file[] = "train_run.txt";

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
    return qkvi_files_add(files, run_file, text, strlen(text), error);
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
    qkvi_run_fields run, ours;
    bool found;
    QKV_TRY(read_line(path, &run, &found, error));
    if (!found) return QKV_OK;
    qkvi_run_fields_of(trainer, &ours);
    QKV_TRY(qkvi_run_fields_match(QKVI_PRINTABLE(QKVI_NAME_BYTES, path), &run, &ours, error));
    if (run.bits[QKVI_RUN_STEP] != run.bits[QKVI_RUN_STEPS]) return QKV_OK;
    return check_weights(trainer->options->out, run.bits[QKVI_RUN_WEIGHTS], is_finished, error);
}

/*
 * Whether options->out holds this very run, finished. ARGUMENT: it holds another one; MEMORY, IO.
 */
static qkv_status finished_find(const qkvi_trainer *trainer, bool *is_finished, qkv_error *error) {
    char *const path = qkvi_path_join(trainer->options->out, run_file);
    *is_finished = false;
    if (!path) return qkvi_no_memory(error, "a path");
    const qkv_status status = find(trainer, path, is_finished, error);
    free(path);
    return status;
}

enum { MAX_LOG = 1 << 28, N_BEFORE = 3 };
static const char file_name[] = "checkpoint.safetensors", run_key[] = "qkv_run", log_name[] = "log";

/* Without memory, so that a run that is finished can always remove it; "" if it is too long. */
static const char *checkpoint_path(const char *folder, char path[PATH_MAX]) {
    const int n = snprintf(path, PATH_MAX, "%s/%s", folder, file_name);
    return n > 0 && n < PATH_MAX ? path : "";
}

static uint64_t hash_arena(const qkvi_trainer *trainer, const float *arena) {
    return qkvi_hash(QKVI_HASH_START, arena, trainer->table.n_elems * sizeof *arena);
}

qkv_status qkvi_checkpoint_save(const qkvi_trainer *trainer, const char *folder, qkv_error *error) {
    const int64_t n = (int64_t)trainer->table.n_elems;
    const qkvi_growing *const log = &trainer->log;
    qkvi_stored_out tensors[] = { { "adam.m", QKVI_F32, 1, { n }, qkvi_whole_m(trainer) },
                                  { "adam.v", QKVI_F32, 1, { n }, qkvi_whole_v(trainer) },
                                  { "weights", QKVI_F32, 1, { n }, trainer->params },
                                  { log_name, QKVI_U8, 1, { (int64_t)log->n }, log->bytes } };
    qkvi_run_fields fields;
    char text[QKVI_RUN_BYTES], path[PATH_MAX];
    qkvi_run_fields_of(trainer, &fields);
    fields.bits[QKVI_RUN_WEIGHTS] = hash_arena(trainer, trainer->params);
    fields.bits[QKVI_RUN_M] = hash_arena(trainer, qkvi_whole_m(trainer));
    fields.bits[QKVI_RUN_V] = hash_arena(trainer, qkvi_whole_v(trainer));
    fields.bits[QKVI_RUN_LOG] = qkvi_hash(QKVI_HASH_START, log->bytes, log->n);
    qkvi_run_fields_print(&fields, text);
    return qkvi_safetensors_write(checkpoint_path(folder, path), tensors, 4, run_key, text, error);
}

/* ---- The log --------------------------------------------------------------------------------- */

static qkv_status read_log(qkvi_trainer *trainer, const qkvi_safetensors *file, uint64_t hash,
                           qkv_error *error) {
    const qkvi_stored *const tensor = qkvi_safetensors_find(file, log_name);
    const size_t n = tensor ? tensor->n_elems : 0;
    if (!tensor || tensor->rank != 1 || tensor->type != QKVI_U8 || n > MAX_LOG)
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: no tensor '%s' of bytes",
                              file->source.name, log_name);
    char *const bytes = qkvi_malloc_array(n + 1, 1);
    if (!bytes) return qkvi_no_memory(error, "the log");
    trainer->log = (qkvi_growing){ bytes, n, n + 1 };
    QKV_TRY(qkvi_safetensors_read_raw(file, tensor, bytes, error));
    if (qkvi_hash(QKVI_HASH_START, bytes, n) == hash) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: is damaged: the checksum of '%s' is another",
                          file->source.name, log_name);
}

/* The header and the lines up to the step. */
static size_t lines_until(const char *text, int64_t step) {
    const char *end = strchr(text, '\n');
    while (end && end[1] && strtoll(end + 1, NULL, 10) <= step) {
        const char *const next = strchr(end + 1, '\n');
        if (!next) break;
        end = next;
    }
    return end ? (size_t)(end + 1 - text) : 0;
}

/* Of a checkpoint of before. */
static qkv_status read_old_log(qkvi_trainer *trainer, const char *folder, qkv_error *error) {
    char *const path = qkvi_path_join(folder, "train_log.tsv"), *bytes = NULL;
    qkv_status status = QKV_OK;
    size_t n;
    if (!path) return qkvi_no_memory(error, "a path");
    if (qkvi_file_exists(path)) status = qkvi_file_load(path, MAX_LOG, &bytes, &n, error);
    if (bytes) trainer->log = (qkvi_growing){ bytes, lines_until(bytes, trainer->step), n + 1 };
    free(path);
    return status;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static qkv_status read_arena(const qkvi_trainer *trainer, const qkvi_safetensors *file,
                             const char *name, uint64_t hash, float *arena, qkv_error *error) {
    const size_t n = trainer->table.n_elems;
    const qkvi_stored *const tensor = qkvi_safetensors_find(file, name);
    if (!tensor || tensor->rank != 1 || tensor->n_elems != n || tensor->type != QKVI_F32)
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: no tensor '%s' of %zu floats",
                              file->source.name, name, n);
    QKV_TRY(qkvi_safetensors_read_raw(file, tensor, arena, error));
    if (hash_arena(trainer, arena) == hash) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: is damaged: the checksum of '%s' is another",
                          file->source.name, name);
}

static qkv_status check_progress(const qkvi_run_fields *run, const char *name, qkv_error *error) {
    const uint64_t step = run->bits[QKVI_RUN_STEP], steps = run->bits[QKVI_RUN_STEPS];
    if (step <= steps && run->bits[QKVI_RUN_SUM_STEPS] <= step &&
        run->bits[QKVI_RUN_SUM_TOKENS] <= INT64_MAX)
        return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: step %llu of %llu cannot be", name,
                          (unsigned long long)step, (unsigned long long)steps);
}

/* The line of a checkpoint, if it is one of this run. */
static qkv_status read_run(const qkvi_trainer *trainer, const qkvi_safetensors *file,
                           qkvi_run_fields *run, qkv_error *error) {
    const char *const name = file->source.name;
    const char *const text = json_string_value(json_object_get(file->metadata, run_key));
    qkvi_run_fields ours;
    if (!text || (file->n_tensors != 4 && file->n_tensors != N_BEFORE))
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: is not a checkpoint", name);
    qkvi_run_fields_of(trainer, &ours);
    QKV_TRY(qkvi_run_fields_parse(name, text, run, error));
    QKV_TRY(qkvi_run_fields_match(name, run, &ours, error));
    return check_progress(run, name, error);
}

static qkv_status read_checkpoint(qkvi_trainer *trainer, const char *folder,
                                  const qkvi_safetensors *file, qkv_error *error) {
    qkvi_run_fields run;
    QKV_TRY(read_run(trainer, file, &run, error));
    const uint64_t *const bits = run.bits;
    QKV_TRY(read_arena(trainer, file, "weights", bits[QKVI_RUN_WEIGHTS], trainer->params, error));
    QKV_TRY(read_arena(trainer, file, "adam.m", bits[QKVI_RUN_M], qkvi_whole_m(trainer), error));
    QKV_TRY(read_arena(trainer, file, "adam.v", bits[QKVI_RUN_V], qkvi_whole_v(trainer), error));
    qkvi_moments_take(trainer);
    trainer->step = (int64_t)bits[QKVI_RUN_STEP];
    trainer->from_hash = bits[QKVI_RUN_FROM]; /* that model may have changed since */
    trainer->sums = (qkvi_train_sums){ .n_steps = (int64_t)bits[QKVI_RUN_SUM_STEPS],
                                       .n_tokens = (int64_t)bits[QKVI_RUN_SUM_TOKENS],
                                       .losses = { qkvi_bits_real(bits[QKVI_RUN_SUM_FIRST]),
                                                   qkvi_bits_real(bits[QKVI_RUN_SUM_SECOND]) } };
    return file->n_tensors == N_BEFORE ? read_old_log(trainer, folder, error)
                                       : read_log(trainer, file, bits[QKVI_RUN_LOG], error);
}

/* NULL, and no error, where there is none. */
static qkv_status open_checkpoint(const char *folder, qkvi_safetensors **file, qkv_error *error) {
    char buffer[PATH_MAX];
    const char *const path = checkpoint_path(folder, buffer);
    *file = NULL;
    qkvi_os_about about;
    return qkvi_os_examine(path, &about) == 0 ? qkvi_safetensors_open(path, file, error) : QKV_OK;
}

static qkv_status find_finished(qkvi_trainer *trainer, const char *folder, qkv_error *error) {
    QKV_TRY(finished_find(trainer, &trainer->is_finished, error));
    if (trainer->is_finished) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_IO,
                          "%s/%s: is not there: no run was stopped here, or it was finished",
                          QKVI_PRINTABLE(QKVI_NAME_BYTES, folder), file_name);
}

qkv_status qkvi_checkpoint_load(qkvi_trainer *trainer, const char *folder, qkv_error *error) {
    qkvi_safetensors *file;
    QKV_TRY(open_checkpoint(folder, &file, error));
    if (!file) return find_finished(trainer, folder, error);
    const qkv_status status = read_checkpoint(trainer, folder, file, error);
    qkvi_safetensors_close(file);
    return status;
}

qkv_status qkvi_checkpoint_none(const qkvi_trainer *trainer, const char *folder, qkv_error *error) {
    qkvi_safetensors *file;
    qkvi_run_fields run;
    qkv_status status = open_checkpoint(folder, &file, error);
    if (status == QKV_ERR_MEMORY || status == QKV_ERR_IO) return status;
    if (status != QKV_OK || !file) return QKV_OK; /* no checkpoint that anyone could resume */
    if (read_run(trainer, file, &run, NULL) == QKV_OK)
        status = qkvi_error_set(error, QKV_ERR_ARGUMENT,
                                "%s: this run was stopped after step %llu: resume it, or remove "
                                "the file to begin anew",
                                file->source.name, (unsigned long long)run.bits[QKVI_RUN_STEP]);
    qkvi_safetensors_close(file);
    return status;
}

void qkvi_checkpoint_remove(const char *folder) {
    char path[PATH_MAX];
    (void)qkvi_os_remove(checkpoint_path(folder, path));
}

/* NAME.PID-COUNT.tmp */
static int is_temporary(const char *entry, const char *const *names) {
    for (; *names; names++) {
        const size_t n = strlen(*names);
        if (strncmp(entry, *names, n) != 0 || entry[n] != '.') continue;
        const char *const number = entry + n + 1;
        const size_t n_digits = strspn(number, "0123456789");
        if (n_digits == 0 || number[n_digits] != '-') continue;
        const char *const count = number + n_digits + 1;
        if (strcmp(count + strspn(count, "0123456789"), ".tmp") == 0) return 1;
    }
    return 0;
}

/* A file that was being written when its process was killed: qkvi_writer. */
static int is_left_over(const char *entry) {
    static const char *const names[] = { file_name,       "model.safetensors", "train_log.tsv",
                                         "train_run.txt", "loss.png",          NULL };
    return is_temporary(entry, names) || is_temporary(entry, qkvi_fine_tune_files) ||
           is_temporary(entry, qkvi_recipe_files);
}

void qkvi_checkpoint_sweep(const char *folder) {
    qkvi_os_list *const list = qkvi_os_list_open(folder);
    const char *entry;
    while (list && (entry = qkvi_os_list_next(list))) {
        char *const path = is_left_over(entry) ? qkvi_path_join(folder, entry) : NULL;
        if (path) (void)qkvi_os_remove(path);
        free(path);
    }
    if (list) qkvi_os_list_close(list);
}
