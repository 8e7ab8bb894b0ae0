/*
 * Checkpoints: see trainer.h. One safetensors file of three one-dimensional tensors, the arenas,
 * with one metadata entry "qkv_run": "step=N " and a text of every option that the result depends
 * on, which must be the same to go on.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/status.h"
#include "model/store/safetensors.h"
#include "model/train/trainer.h"

enum { RUN_BYTES = 1024, MAX_CORPUS = 1 << 30 };
static const char file_name[] = "checkpoint.safetensors", run_key[] = "qkv_run";

qkv_status qkvi_corpus_fingerprint(const char *path, uint64_t *fingerprint, qkv_error *error) {
    char *bytes;
    size_t n;
    QKV_TRY(qkvi_file_load(path, MAX_CORPUS, &bytes, &n, error));
    *fingerprint = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        *fingerprint = (*fingerprint ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    free(bytes);
    return QKV_OK;
}

/* "… options …": what must not change between a run and its continuation. */
static void run_text(const qkvi_trainer *trainer, char text[RUN_BYTES]) {
    const qkv_train_options *const o = trainer->options;
    snprintf(text, RUN_BYTES,
             "%s corpus=%016llx layers=%lld heads=%lld hidden=%lld intermediate=%lld vocab=%lld "
             "len=%lld steps=%lld batch=%lld warmup=%lld rate=%.17g decay=%.17g beta1=%.17g "
             "beta2=%.17g clip=%.17g seed=%llu sinusoidal=%d",
             o->text ? "text" : "grammar", (unsigned long long)trainer->fingerprint,
             (long long)o->n_layers, (long long)o->n_heads, (long long)o->hidden,
             (long long)o->intermediate, (long long)o->vocab_size, (long long)o->max_len,
             (long long)o->n_steps, (long long)o->batch, (long long)o->warmup, o->learning_rate,
             o->weight_decay, o->beta1, o->beta2, o->clip, (unsigned long long)o->seed,
             o->sinusoidal_positions);
}

static char *checkpoint_path(const char *folder) { return qkvi_path_join(folder, file_name); }

qkv_status qkvi_checkpoint_save(const qkvi_trainer *trainer, const char *folder, qkv_error *error) {
    const int64_t n = (int64_t)trainer->table.n_elems;
    qkvi_stored_out arenas[] = { { "adam.m", QKVI_F32, 1, { n }, trainer->m },
                                 { "adam.v", QKVI_F32, 1, { n }, trainer->v },
                                 { "weights", QKVI_F32, 1, { n }, trainer->params } };
    char options[RUN_BYTES], run[RUN_BYTES + 32];
    char *const path = checkpoint_path(folder);
    if (!path) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a path");
    run_text(trainer, options);
    snprintf(run, sizeof run, "step=%lld %s", (long long)trainer->step, options);
    const qkv_status status = qkvi_safetensors_write(path, arenas, 3, run_key, run, error);
    free(path);
    return status;
}

static qkv_status read_arena(const qkvi_safetensors *file, const char *name, size_t n, float *arena,
                             qkv_error *error) {
    const qkvi_stored *const tensor = qkvi_safetensors_find(file, name);
    if (!tensor || tensor->rank != 1 || tensor->n_elems != n || tensor->type != QKVI_F32)
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: no tensor '%s' of %zu floats",
                              file->source.name, name, n);
    return qkvi_safetensors_read_f32(file, tensor, arena, error);
}

static qkv_status read_checkpoint(qkvi_trainer *trainer, const qkvi_safetensors *file,
                                  qkv_error *error) {
    char options[RUN_BYTES];
    const char *const run = json_string_value(json_object_get(file->metadata, run_key));
    long long step = -1;
    int begin = 0;
    if (!run || sscanf(run, "step=%lld %n", &step, &begin) != 1 || begin == 0 || step < 0 ||
        step > trainer->options->n_steps)
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: is not a checkpoint", file->source.name);
    run_text(trainer, options);
    if (strcmp(run + begin, options) != 0)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "%s: was written with other options or another corpus",
                              file->source.name);
    const size_t n = trainer->table.n_elems;
    QKV_TRY(read_arena(file, "weights", n, trainer->params, error));
    QKV_TRY(read_arena(file, "adam.m", n, trainer->m, error));
    QKV_TRY(read_arena(file, "adam.v", n, trainer->v, error));
    trainer->step = step;
    return QKV_OK;
}

qkv_status qkvi_checkpoint_load(qkvi_trainer *trainer, const char *folder, qkv_error *error) {
    qkvi_safetensors *file;
    char *const path = checkpoint_path(folder);
    if (!path) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a path");
    qkv_status status = qkvi_safetensors_open(path, &file, error);
    free(path);
    if (status != QKV_OK) return status;
    status = read_checkpoint(trainer, file, error);
    qkvi_safetensors_close(file);
    return status;
}

void qkvi_checkpoint_remove(const char *folder) {
    char *const path = checkpoint_path(folder);
    if (path) unlink(path);
    free(path);
}
