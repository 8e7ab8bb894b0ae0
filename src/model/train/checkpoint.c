/*
 * Checkpoints: see trainer.h. One safetensors file of three one-dimensional tensors, the arenas,
 * with one metadata entry, "qkv_run": run_fields.h. It is written beside its place and renamed, so
 * that a killed run leaves the checkpoint before or the new one. A file with any byte changed is
 * refused, or is the same checkpoint: the line has a checksum, and has those of the arenas.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/status.h"
#include "model/store/safetensors.h"
#include "model/train/run_fields.h"

enum { MAX_CORPUS = 1 << 30 };
static const char file_name[] = "checkpoint.safetensors", run_key[] = "qkv_run";

qkv_status qkvi_corpus_fingerprint(const char *path, uint64_t *fingerprint, qkv_error *error) {
    char *bytes;
    size_t n;
    QKV_TRY(qkvi_file_load(path, MAX_CORPUS, &bytes, &n, error));
    *fingerprint = qkvi_hash(QKVI_HASH_START, bytes, n);
    free(bytes);
    return QKV_OK;
}

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
    qkvi_stored_out arenas[] = { { "adam.m", QKVI_F32, 1, { n }, trainer->m },
                                 { "adam.v", QKVI_F32, 1, { n }, trainer->v },
                                 { "weights", QKVI_F32, 1, { n }, trainer->params } };
    qkvi_run_fields fields;
    char text[QKVI_RUN_BYTES], path[PATH_MAX];
    qkvi_run_fields_of(trainer, &fields);
    fields.bits[QKVI_RUN_WEIGHTS] = hash_arena(trainer, trainer->params);
    fields.bits[QKVI_RUN_M] = hash_arena(trainer, trainer->m);
    fields.bits[QKVI_RUN_V] = hash_arena(trainer, trainer->v);
    qkvi_run_fields_print(&fields, text);
    return qkvi_safetensors_write(checkpoint_path(folder, path), arenas, 3, run_key, text, error);
}

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
    if (!text || file->n_tensors != 3)
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: is not a checkpoint", name);
    qkvi_run_fields_of(trainer, &ours);
    QKV_TRY(qkvi_run_fields_parse(name, text, run, error));
    QKV_TRY(qkvi_run_fields_match(name, run, &ours, error));
    return check_progress(run, name, error);
}

static qkv_status read_checkpoint(qkvi_trainer *trainer, const qkvi_safetensors *file,
                                  qkv_error *error) {
    qkvi_run_fields run;
    QKV_TRY(read_run(trainer, file, &run, error));
    const uint64_t *const bits = run.bits;
    QKV_TRY(read_arena(trainer, file, "weights", bits[QKVI_RUN_WEIGHTS], trainer->params, error));
    QKV_TRY(read_arena(trainer, file, "adam.m", bits[QKVI_RUN_M], trainer->m, error));
    QKV_TRY(read_arena(trainer, file, "adam.v", bits[QKVI_RUN_V], trainer->v, error));
    trainer->step = (int64_t)bits[QKVI_RUN_STEP];
    trainer->sums = (qkvi_train_sums){ .n_steps = (int64_t)bits[QKVI_RUN_SUM_STEPS],
                                       .n_tokens = (int64_t)bits[QKVI_RUN_SUM_TOKENS],
                                       .losses = { qkvi_bits_real(bits[QKVI_RUN_SUM_FIRST]),
                                                   qkvi_bits_real(bits[QKVI_RUN_SUM_SECOND]) } };
    return QKV_OK;
}

static qkv_status open_checkpoint(const char *folder, qkvi_safetensors **file, qkv_error *error) {
    char printable[QKVI_NAME_BYTES], buffer[PATH_MAX];
    const char *const path = checkpoint_path(folder, buffer);
    if (access(path, F_OK) == 0) return qkvi_safetensors_open(path, file, error);
    return qkvi_error_set(error, QKV_ERR_IO,
                          "%s: is not there: no run was stopped here, or it was finished",
                          qkvi_escape(printable, sizeof printable, path, strlen(path)));
}

qkv_status qkvi_checkpoint_load(qkvi_trainer *trainer, const char *folder, qkv_error *error) {
    qkvi_safetensors *file;
    QKV_TRY(open_checkpoint(folder, &file, error));
    const qkv_status status = read_checkpoint(trainer, file, error);
    qkvi_safetensors_close(file);
    return status;
}

qkv_status qkvi_checkpoint_none(const qkvi_trainer *trainer, const char *folder, qkv_error *error) {
    qkvi_safetensors *file;
    qkvi_run_fields run;
    char path[PATH_MAX];
    if (access(checkpoint_path(folder, path), F_OK) != 0) return QKV_OK;
    qkv_status status = open_checkpoint(folder, &file, error);
    if (status == QKV_ERR_MEMORY || status == QKV_ERR_IO) return status;
    if (status != QKV_OK) return QKV_OK; /* no checkpoint that anyone could resume */
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
    unlink(checkpoint_path(folder, path));
}

/* NAME.PID-COUNT.tmp, of a file that was being written when its process was killed: qkvi_writer. */
static int is_left_over(const char *entry) {
    static const char *const names[] = {
        file_name,    "model.safetensors",     "train_log.tsv",         "config.json",
        "vocab.txt",  "tokenizer.json",        "tokenizer_config.json", "vocab.json",
        "merges.txt", "generation_config.json"
    };
    for (size_t f = 0; f < sizeof names / sizeof *names; f++) {
        const size_t n = strlen(names[f]);
        if (strncmp(entry, names[f], n) != 0 || entry[n] != '.') continue;
        const char *const number = entry + n + 1;
        const size_t n_digits = strspn(number, "0123456789");
        if (n_digits == 0 || number[n_digits] != '-') continue;
        if (strcmp(number + n_digits + 1 + strspn(number + n_digits + 1, "0123456789"), ".tmp") ==
            0)
            return 1;
    }
    return 0;
}

void qkvi_checkpoint_sweep(const char *folder) {
    DIR *const list = opendir(folder);
    const struct dirent *entry;
    while (list && (entry = readdir(list)))
        if (is_left_over(entry->d_name)) unlinkat(dirfd(list), entry->d_name, 0);
    if (list) closedir(list);
}
