/*
 * Fine-tuning: a run that takes weights, tokenizer and sizes from a model's folder, and copies the
 * other files of the folder to its own. Of a GGUF file these are the files that it is read as.
 */
#include <errno.h>

#include "core/os.h"
#include "files/gguf_find.h"
#include "files/hub.h"
#include "gguf/gguf.h"
#include "model/arch/net.h"
#include "model/config/recipe.h"
#include "model/model_impl.h"
#include "train/run_fields.h"
#include "train/trainer.h"

static qkv_status take_sizes(qkvi_trainer *trainer, qkv_error *error) {
    qkv_train_options *const o = trainer->options;
    const qkv_model_info *const info = &trainer->info;
    o->kind = info->kind;
    if (info->patch_height > 0)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "%s: a %s reads images, not texts",
                              info->source, info->architecture);
    if (!info->has_lm && !info->has_mlm)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "%s: has neither an MLM head nor one of a language model to train",
                              info->source);
    if (o->max_len > info->max_len)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "max_len = %lld is more than %lld, that of "
                              "%s",
                              (long long)o->max_len, (long long)info->max_len, info->source);
    if ((o->kind == QKV_MODEL_DECODER && (qkvi_begin_id(info) < 0 || info->eos_id < 0)) ||
        (o->kind == QKV_MODEL_PAIR && info->start_id < 0))
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "%s: config.json names no token that a text begins or ends with",
                              info->source);
    o->n_layers = info->n_layers;
    o->n_heads = info->n_heads;
    o->hidden = info->hidden;
    o->intermediate = info->intermediate;
    o->vocab_size = info->vocab_size;
    o->n_decoder_layers = info->n_decoder_layers;
    o->sinusoidal_positions = info->sinusoidal_positions;
    return QKV_OK;
}

/* Takes what a run needs out of an open model. */
static qkv_status take_model(qkvi_trainer *trainer, qkv_model *model, qkv_error *error) {
    trainer->info = model->info;
    if (model->no_head) return qkvi_model_check_head(model, 0, "", error);
    QKV_TRY(take_sizes(trainer, error));
    trainer->from_hash =
        qkvi_hash(QKVI_HASH_START, model->arena, model->params.n_elems * sizeof *model->arena);
    trainer->params = model->arena;
    trainer->lm_bias = model->lm_bias;
    for (int p = 0; p < 2; p++) trainer->positions[p] = model->positions[p];
    trainer->tokenizer = model->tokenizer;
    trainer->target_tokenizer = model->target_tokenizer;
    trainer->info.source = trainer->options->out;
    model->arena = NULL;
    model->lm_bias = NULL;
    model->positions[0] = model->positions[1] = NULL;
    model->tokenizer = model->target_tokenizer = NULL;
    return QKV_OK;
}

/* A folder, or a GGUF file, which stays open for what is written of it at the end. */
static qkv_status find_source(qkvi_trainer *trainer, qkv_error *error) {
    const char *const path = trainer->options->from;
    char *gguf, *weights;
    QKV_TRY(qkvi_gguf_find(path, &gguf, error));
    trainer->from = gguf;
    if (gguf) return qkvi_gguf_open(gguf, &trainer->gguf, error);
    QKV_TRY(qkvi_hub_find(path, &trainer->from, &weights, error));
    free(weights);
    return QKV_OK;
}

qkv_status qkvi_fine_tune_open(qkvi_trainer *trainer, qkv_error *error) {
    qkv_model *model;
    QKV_TRY(find_source(trainer, error));
    QKV_TRY(qkvi_model_open_to_train(trainer->options->from, &model, error));
    const qkv_status status = take_model(trainer, model, error);
    qkv_model_free(model);
    return status;
}

/* Adds a file of the folder, if it has it. */
static qkv_status fine_tune_copy(const qkvi_trainer *trainer, const char *name, qkvi_files *files,
                                 qkv_error *error) {
    enum { MAX_FILE = 1 << 27 };
    char *const path = qkvi_path_join(trainer->from, name), *bytes = NULL;
    size_t n;
    qkv_status status = QKV_OK;
    if (!path) return qkvi_no_memory(error, "a path");
    if (qkvi_file_exists(path)) {
        status = qkvi_file_load(path, MAX_FILE, &bytes, &n, error);
        if (status == QKV_OK) status = qkvi_files_add(files, name, bytes, n, error);
    }
    free(bytes);
    free(path);
    return status;
}

const char *const qkvi_fine_tune_files[] = { "config.json",
                                             "generation_config.json",
                                             "tokenizer.json",
                                             "vocab.txt",
                                             "tokenizer_config.json",
                                             "chat_template.jinja",
                                             "special_tokens_map.json",
                                             "vocab.json",
                                             "merges.txt",
                                             "added_tokens.json",
                                             "source.spm",
                                             "target.spm",
                                             "target_vocab.json",
                                             "modules.json",
                                             NULL };

/* The files that a GGUF file becomes. */
static qkv_status save_gguf(const qkvi_gguf *gguf, qkvi_files *files, qkv_error *error) {
    const struct {
        const char *name;
        const qkvi_text_file *file;
    } texts[] = { { "config.json", &gguf->config },
                  { "generation_config.json", &gguf->generation },
                  { "tokenizer.json", &gguf->tokenizer.tokenizer },
                  { "tokenizer_config.json", &gguf->tokenizer.tokenizer_config } };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        QKV_TRY(qkvi_files_add(files, texts[i].name, texts[i].file->bytes, texts[i].file->n_bytes,
                               error));
    return QKV_OK;
}

qkv_status qkvi_fine_tune_save(const qkvi_trainer *trainer, qkvi_files *files, qkv_error *error) {
    if (trainer->gguf) return save_gguf(trainer->gguf, files, error);
    for (const char *const *name = qkvi_fine_tune_files; *name; name++)
        QKV_TRY(fine_tune_copy(trainer, *name, files, error));
    return qkvi_fine_tune_modules(trainer, files, error);
}

/* ---- Modules of sentence-transformers -------------------------------------------------------- */

/*
 * What a folder of sentence-transformers has beside the model: its settings, and a folder for each
 * module behind the encoder. Without them the modules.json that is copied would name what is not
 * there.
 */

/* Names were checked when the model was opened. */
static qkv_status copy_module(const qkvi_trainer *trainer, const char *module, qkvi_files *files,
                              qkv_error *error) {
    static const char *const names[] = { "config.json", "model.safetensors" };
    char name[160], reason[128];
    char *const folder = qkvi_path_join(trainer->options->out, module);
    if (!folder) return qkvi_no_memory(error, "a path");
    const int failed = qkvi_os_make_folder(folder) != 0 ? errno : 0;
    free(folder);
    if (failed)
        return qkvi_error_set(error, QKV_ERR_IO, "cannot make the folder of a module: %s",
                              qkvi_os_reason(failed, reason, sizeof reason));
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s/%s", module, names[i]);
        QKV_TRY(fine_tune_copy(trainer, name, files, error));
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
    if (trainer->gguf) return QKV_OK;
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
        QKV_TRY(fine_tune_copy(trainer, qkvi_recipe_files[i], files, error));
    return each_module(trainer, copy_module, files, error);
}

static qkv_status sweep_module(const qkvi_trainer *trainer, const char *module, qkvi_files *files,
                               qkv_error *error) {
    (void)files;
    char *const folder = qkvi_path_join(trainer->options->out, module);
    if (!folder) return qkvi_no_memory(error, "a path");
    qkvi_checkpoint_sweep(folder);
    free(folder);
    return QKV_OK;
}

qkv_status qkvi_fine_tune_sweep(const qkvi_trainer *trainer, qkv_error *error) {
    return each_module(trainer, sweep_module, NULL, error);
}
