/*
 * Fine-tuning: a run that starts from a model's folder. Its weights, tokenizer and sizes are the
 * run's; its files, but for the weights, are copied to the folder that is written.
 */

#include "model/arch/net.h"
#include "model/model_impl.h"
#include "model/store/hub.h"
#include "model/train/run_fields.h"
#include "model/train/trainer.h"

static qkv_status take_sizes(qkvi_trainer *trainer, qkv_error *error) {
    qkv_train_options *const o = trainer->options;
    const qkv_model_info *const info = &trainer->info;
    o->kind = info->kind;
    if (!info->has_lm && !info->has_mlm)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "%s: has neither an MLM head nor one of a language model to train",
                              info->source);
    if (o->max_len > info->max_len)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "max_len = %lld is more than %lld, that of "
                              "%s",
                              (long long)o->max_len, (long long)info->max_len, info->source);
    if ((o->kind == QKV_MODEL_DECODER && (info->bos_id < 0 || info->eos_id < 0)) ||
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

qkv_status qkvi_fine_tune_open(qkvi_trainer *trainer, qkv_error *error) {
    const char *const path = trainer->options->from;
    char *weights;
    qkv_model *model;
    QKV_TRY(qkvi_hub_find(path, &trainer->from, &weights, error));
    free(weights);
    QKV_TRY(qkvi_model_open_to_train(path, &model, error));
    const qkv_status status = take_model(trainer, model, error);
    qkv_model_free(model);
    return status;
}

qkv_status qkvi_fine_tune_copy(const qkvi_trainer *trainer, const char *name, qkvi_files *files,
                               qkv_error *error) {
    enum { MAX_FILE = 1 << 27 };
    char *const path = qkvi_path_join(trainer->from, name), *bytes = NULL;
    size_t n;
    qkv_status status = QKV_OK;
    if (!path) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a path");
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
                                             "special_tokens_map.json",
                                             "vocab.json",
                                             "merges.txt",
                                             "added_tokens.json",
                                             "source.spm",
                                             "target.spm",
                                             "target_vocab.json",
                                             "modules.json",
                                             NULL };

qkv_status qkvi_fine_tune_save(const qkvi_trainer *trainer, qkvi_files *files, qkv_error *error) {
    for (const char *const *name = qkvi_fine_tune_files; *name; name++)
        QKV_TRY(qkvi_fine_tune_copy(trainer, *name, files, error));
    return qkvi_fine_tune_modules(trainer, files, error);
}
