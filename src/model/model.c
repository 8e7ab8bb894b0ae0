/*
 * Opening a model: config.json promises sizes, the architecture makes its table of parameters from
 * them, the resolver finds and checks each one in the weights file, and only then is memory of
 * their size allocated and filled.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "model/arch/net.h"
#include "model/arch/family.h"
#include "model/model_impl.h"
#include "model/store/config.h"
#include "model/store/file.h"
#include "model/store/hub.h"
#include "model/store/pooling.h"
#include "model/store/resolver.h"

enum { MAX_CONFIG = 1 << 20 };

/* A part is there if its weight is. */
static int has(const qkvi_resolver *resolver, const char *part) {
    char name[128];
    if (!part) return 0;
    snprintf(name, sizeof name, "%s.weight", part);
    return qkvi_resolve(resolver, name) != NULL;
}

static void find_heads(const qkvi_resolver *resolver, const qkvi_family *family,
                       qkv_model_info *info) {
    info->has_mlm = has(resolver, family->transform);
    info->has_nsp = has(resolver, family->nsp);
    info->has_pooler = info->has_nsp || has(resolver, family->pooler);
    info->has_judge = has(resolver, family->judge);
}

static qkv_status check_vocabulary(const qkv_model *model, qkv_error *error) {
    const int64_t words = qkv_tokenizer_size(model->tokenizer);
    if (words <= model->info.vocab_size) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_SHAPE,
                          "%s: the tokenizer has %lld tokens, config.json says vocab_size = %lld",
                          model->source, (long long)words, (long long)model->info.vocab_size);
}

static qkv_status load_params(qkv_model *model, const qkvi_family *family, qkvi_resolver *resolver,
                              qkv_error *error) {
    find_heads(resolver, family, &model->info);
    QKV_TRY(qkvi_net_table(&model->info, &model->params, error));
    QKV_TRY(qkvi_resolver_check(resolver, &model->params, error));
    model->arena = qkvi_params_arena(&model->params);
    if (!model->arena)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory for %zu parameters",
                              model->source, model->params.n_elems);
    QKV_TRY(qkvi_resolver_load(resolver, &model->params, model->arena, error));
    if (model->info.sinusoidal_positions) /* stored for other readers; ours computes them */
        qkvi_resolver_skip(resolver, "bert.embeddings.position_embeddings.weight");
    for (int64_t r = 0; r < model->params.n_rows; r++)
        model->info.n_parameters += (int64_t)model->params.rows[r].n_elems;
    QKV_TRY(qkvi_resolver_unused(resolver, &model->unused, &model->n_unused, error));
    QKV_TRY(qkvi_net_bind(&model->info, &model->params, model->arena, QKVI_NET_FORWARD,
                           &model->net, error));
    qkvi_net_pack(NULL, model->net);
    return qkvi_model_warn(model, error);
}

static qkv_status load_weights(qkv_model *model, const qkvi_safetensors *file, qkv_error *error) {
    qkvi_resolver resolver;
    QKV_TRY(check_vocabulary(model, error));
    const qkvi_family *const family = qkvi_family_of(model->info.architecture);
    QKV_TRY(qkvi_resolver_make(file, &family->spelling, &resolver, error));
    const qkv_status status = load_params(model, family, &resolver, error);
    qkvi_resolver_free(&resolver);
    return status;
}

/* A model with its config read and nothing else. */
static qkv_status start(const char *source, const char *config_name, const void *config,
                        size_t config_bytes, qkv_model **model, qkv_error *error) {
    char printable[1024];
    *model = calloc(1, sizeof **model);
    if (!*model) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a model");
    QKV_TRY(qkvi_config_read(config_name, config, config_bytes, &(*model)->info, error));
    (*model)->source = strdup(qkvi_escape(printable, sizeof printable, source, strlen(source)));
    if (!(*model)->source) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a name");
    (*model)->info.source = (*model)->source;
    return QKV_OK;
}

static qkv_status start_folder(const char *folder, qkv_model **model, qkv_error *error) {
    char printable[1024], *config = NULL;
    size_t config_bytes = 0;
    char *const path = qkvi_path_join(folder, "config.json");
    if (!path) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a path");
    qkv_status status = qkvi_file_load(path, MAX_CONFIG, &config, &config_bytes, error);
    qkvi_escape(printable, sizeof printable, path, strlen(path));
    if (status == QKV_OK) status = start(folder, printable, config, config_bytes, model, error);
    free(path);
    free(config);
    return status;
}

static qkv_status open_files(const char *folder, const char *weights, qkv_model **model,
                             qkv_error *error) {
    qkvi_safetensors *file;
    QKV_TRY(start_folder(folder, model, error));
    QKV_TRY(qkvi_pooling_read(folder, &(*model)->info, error));
    QKV_TRY(qkv_tokenizer_open(folder, &(*model)->tokenizer, error));
    QKV_TRY(qkvi_safetensors_open(weights, &file, error));
    const qkv_status status = load_weights(*model, file, error);
    qkvi_safetensors_close(file);
    return status;
}

qkv_status qkv_model_open(const char *path_or_name, qkv_model **model, qkv_error *error) {
    char *folder, *weights;
    if (!model) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "model is NULL");
    *model = NULL;
    if (!path_or_name) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "path_or_name is NULL");
    QKV_TRY(qkvi_hub_find(path_or_name, &folder, &weights, error));
    const qkv_status status = open_files(folder, weights, model, error);
    free(folder);
    free(weights);
    if (status != QKV_OK) {
        qkv_model_free(*model);
        *model = NULL;
    }
    return status;
}

static qkv_status open_bytes(const void *config, size_t config_bytes, const void *vocab,
                             size_t vocab_bytes, const void *weights, size_t weights_bytes,
                             qkv_model **model, qkv_error *error) {
    qkvi_safetensors *file;
    QKV_TRY(start("embedded", "embedded config.json", config, config_bytes, model, error));
    QKV_TRY(qkv_tokenizer_open_memory(vocab, vocab_bytes, NULL, 0, &(*model)->tokenizer, error));
    QKV_TRY(qkvi_safetensors_open_memory("embedded model.safetensors", weights, weights_bytes,
                                         &file, error));
    const qkv_status status = load_weights(*model, file, error);
    qkvi_safetensors_close(file);
    return status;
}

qkv_status qkv_model_open_memory(const void *config, size_t config_bytes, const void *vocab,
                                 size_t vocab_bytes, const void *weights, size_t weights_bytes,
                                 qkv_model **model, qkv_error *error) {
    if (!model) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "model is NULL");
    *model = NULL;
    if (!config || !vocab || !weights)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              !config  ? "config"
                              : !vocab ? "vocab"
                                       : "weights");
    const qkv_status status =
        open_bytes(config, config_bytes, vocab, vocab_bytes, weights, weights_bytes, model, error);
    if (status != QKV_OK) {
        qkv_model_free(*model);
        *model = NULL;
    }
    return status;
}

void qkv_model_free(qkv_model *model) {
    if (!model) return;
    qkvi_net_free(model->net);
    qkv_tokenizer_free(model->tokenizer);
    qkvi_params_free(&model->params);
    for (int64_t u = 0; u < model->n_unused; u++) free(model->unused[u]);
    free(model->unused);
    for (int w = 0; w < model->n_warnings; w++) free(model->warnings[w]);
    free(model->arena);
    free(model->source);
    free(model);
}

const qkv_model_info *qkv_model_get_info(const qkv_model *model) { return &model->info; }

const qkv_tokenizer *qkv_model_tokenizer(const qkv_model *model) { return model->tokenizer; }

const char *qkv_model_unused(const qkv_model *model, int64_t index) {
    return index >= 0 && index < model->n_unused ? model->unused[index] : NULL;
}
