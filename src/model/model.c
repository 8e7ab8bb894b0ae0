/*
 * Opening a model: config.json promises sizes, the architecture makes its table of parameters from
 * them, the resolver finds and checks each one in the weights file, and only then is memory of
 * their size allocated and filled, with weights of layers at once in the form that they run with.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/options.h"
#include "core/status.h"
#include "model/arch/family.h"
#include "model/arch/net.h"
#include "model/model_impl.h"
#include "model/store/config.h"
#include "model/store/file.h"
#include "model/store/hub.h"
#include "model/store/pooling.h"
#include "model/store/resolver.h"
#include "model/store/shards.h"

enum { MAX_CONFIG = 1 << 20 };

/* A part is there if its weight is. */
static int has(const qkvi_resolver *resolver, const char *part) {
    char name[128];
    if (!part) return 0;
    snprintf(name, sizeof name, "%s.weight", part);
    return qkvi_resolve(resolver, name) != NULL;
}

static void find_heads(const qkvi_resolver *resolver, const qkvi_model_family *family,
                       qkv_model_info *info) {
    info->has_mlm = has(resolver, family->transform);
    info->has_nsp = has(resolver, family->nsp);
    info->has_pooler = info->has_nsp || has(resolver, family->pooler);
    info->has_judge = has(resolver, family->judge);
}

static qkv_status check_words(const qkv_model *model, const qkv_tokenizer *tokenizer,
                              const char *field, int64_t vocab_size, qkv_error *error) {
    const int64_t words = qkv_tokenizer_size(tokenizer);
    if (words <= vocab_size) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_SHAPE,
                          "%s: the tokenizer has %lld tokens, config.json says %s = %lld",
                          model->source, (long long)words, field, (long long)vocab_size);
}

static qkv_status check_vocabulary(const qkv_model *model, qkv_error *error) {
    const qkv_model_info *const info = &model->info;
    QKV_TRY(check_words(model, model->tokenizer, "vocab_size", info->vocab_size, error));
    if (!model->target_tokenizer) return QKV_OK;
    return check_words(model, model->target_tokenizer,
                       info->separate_words ? "decoder_vocab_size" : "vocab_size",
                       info->target_vocab_size, error);
}

/* Positions that are stored for other readers; ours computes them. */
static void skip_positions(qkvi_resolver *resolver, const qkvi_model_family *family) {
    char name[128];
    for (int s = 0; s < 2; s++) {
        if (!family->stacks[s].position) continue;
        snprintf(name, sizeof name, "%s.weight", family->stacks[s].position);
        qkvi_resolver_skip(resolver, name);
    }
}

/* A bias of the logits that is no parameter; of zeros it is none. */
static qkv_status load_lm_bias(qkv_model *model, const qkvi_model_family *family,
                               qkvi_resolver *resolver, qkv_error *error) {
    qkvi_param_table table = { 0 };
    const int64_t n = model->info.target_vocab_size;
    int64_t n_set = 0;
    if (!family->lm_bias || !qkvi_resolve(resolver, family->lm_bias)) return QKV_OK;
    qkv_status status = qkvi_params_add(&table, 2, 1, n, error, "%s", family->lm_bias);
    if (status == QKV_OK) status = qkvi_resolver_check(resolver, &table, error);
    if (status == QKV_OK && !(model->lm_bias = qkvi_params_arena(&table)))
        status = qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a bias");
    if (status == QKV_OK) status = qkvi_resolver_load(resolver, &table, model->lm_bias, error);
    qkvi_params_free(&table);
    if (status != QKV_OK) return status;
    for (int64_t i = 0; i < n; i++) n_set += model->lm_bias[i] != 0;
    if (n_set > 0) return QKV_OK;
    free(model->lm_bias);
    model->lm_bias = NULL;
    return QKV_OK;
}

/* Memory for the parameters in the form that they are kept in, filled. */
static qkv_status load_arena(qkv_model *model, qkvi_resolver *resolver, qkv_error *error) {
    const bool is_f32 = model->info.weights == QKV_WEIGHTS_F32;
    qkvi_param_table *const table = &model->params;
    if (!model->is_to_train)
        QKV_TRY(qkvi_params_pack(table, is_f32 ? QKVI_PARAM_PANELS : QKVI_PARAM_HALF, error));
    model->arena = qkvi_params_room(table);
    if (!model->arena)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory for %zu parameters",
                              model->source, table->n_elems);
    model->info.weights_bytes = (int64_t)(table->n_elems * sizeof *model->arena);
    return qkvi_resolver_load(resolver, table, model->arena, error);
}

static qkv_status bind(qkv_model *model, qkv_error *error) {
    const unsigned form = qkvi_weights_form((qkv_model_weights)model->info.weights);
    if (model->is_to_train) return QKV_OK;
    QKV_TRY(qkvi_net_bind(&model->info, &model->params, model->arena, form, &model->net, error));
    model->net->lm.bias = model->lm_bias;
    return QKV_OK;
}

static qkv_status load_params(qkv_model *model, const qkvi_model_family *family,
                              qkvi_resolver *resolver, qkv_error *error) {
    find_heads(resolver, family, &model->info);
    QKV_TRY(qkvi_net_table(&model->info, &model->params, error));
    QKV_TRY(qkvi_resolver_check(resolver, &model->params, error));
    QKV_TRY(load_arena(model, resolver, error));
    if (model->info.sinusoidal_positions) skip_positions(resolver, family);
    QKV_TRY(load_lm_bias(model, family, resolver, error));
    for (int64_t r = 0; r < model->params.n_rows; r++)
        model->info.n_parameters += (int64_t)model->params.rows[r].n_elems;
    QKV_TRY(qkvi_resolver_unused(resolver, &model->unused, &model->n_unused, error));
    QKV_TRY(bind(model, error));
    return qkvi_model_warn(model, error);
}

static qkv_status load_weights(qkv_model *model, const qkvi_safetensors *file, qkv_error *error) {
    qkvi_resolver resolver;
    QKV_TRY(check_vocabulary(model, error));
    const qkvi_model_family *const family = qkvi_family_of(model->info.architecture);
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

/* What generation_config.json says about tokens goes before config.json. folder NULL: there is none. */
static qkv_status read_generation(const char *folder, qkv_model *model, qkv_error *error) {
    qkv_model_info *const info = &model->info;
    qkvi_generation_config *const config = &model->generation;
    if (!info->has_lm) return QKV_OK;
    if (folder)
        QKV_TRY(qkvi_generation_config_read(folder, info, config, error));
    else
        QKV_TRY(qkvi_generation_config_parse("", "{}", 2, info, config, error));
    info->bos_id = config->bos;
    info->pad_id = config->pad;
    if (config->start < 0) config->start = info->start_id;
    info->start_id = config->start;
    info->eos_id = config->n_ends > 0 ? config->ends[0] : -1;
    return QKV_OK;
}

/* The names of the files that the weights came from. */
static qkv_status note_files(qkv_model *model, const qkvi_safetensors *file, qkv_error *error) {
    const int64_t n = file->n_shards ? file->n_shards : 1;
    model->files = calloc((size_t)n, sizeof *model->files);
    for (int64_t f = 0; model->files && f < n; f++) {
        const char *const name = (file->n_shards ? file->shards[f] : file)->source.name;
        const char *const slash = strrchr(name, '/');
        model->files[f] = strdup(slash ? slash + 1 : name);
        if (!model->files[f]) break;
        model->n_files++;
    }
    return model->n_files == n
               ? QKV_OK
               : qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory for names", model->source);
}

static qkv_status open_files(const char *folder, const char *weights, qkv_model_weights kind,
                             int is_to_train, qkv_model **model, qkv_error *error) {
    qkvi_safetensors *file;
    QKV_TRY(start_folder(folder, model, error));
    (*model)->info.weights = (int)kind;
    (*model)->is_to_train = is_to_train;
    QKV_TRY(qkvi_pooling_read(folder, &(*model)->info, error));
    QKV_TRY(read_generation(folder, *model, error));
    QKV_TRY(qkv_tokenizer_open(folder, &(*model)->tokenizer, error));
    if ((*model)->info.is_encoder_decoder)
        QKV_TRY(qkv_tokenizer_open_target(folder, &(*model)->target_tokenizer, error));
    QKV_TRY(qkvi_weights_open(weights, &file, error));
    qkv_status status = load_weights(*model, file, error);
    if (status == QKV_OK) status = note_files(*model, file, error);
    qkvi_safetensors_close(file);
    return status;
}

static qkv_status read_options(const qkv_model_open_options *given, qkv_model_weights *weights,
                               qkv_error *error) {
    qkv_model_open_options options = QKV_MODEL_OPEN_OPTIONS_INIT;
    if (given)
        QKV_TRY(
            qkvi_options_read(&options, sizeof options, given, "qkv_model_open_options", error));
    if (qkvi_weights_resolve((int)options.weights, weights)) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "weights = %d is no qkv_model_weights",
                          (int)options.weights);
}

static qkv_status open_found(const char *path_or_name, qkv_model_weights kind, int is_to_train,
                             qkv_model **model, qkv_error *error) {
    char *folder, *weights;
    *model = NULL;
    QKV_TRY(qkvi_hub_find(path_or_name, &folder, &weights, error));
    const qkv_status status = open_files(folder, weights, kind, is_to_train, model, error);
    free(folder);
    free(weights);
    if (status != QKV_OK) {
        qkv_model_free(*model);
        *model = NULL;
    }
    return status;
}

qkv_status qkv_model_open(const char *path_or_name, qkv_model **model, qkv_error *error) {
    return qkv_model_open_with(path_or_name, NULL, model, error);
}

qkv_status qkv_model_open_with(const char *path_or_name, const qkv_model_open_options *options,
                               qkv_model **model, qkv_error *error) {
    qkv_model_weights kind;
    if (!model) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "model is NULL");
    *model = NULL;
    if (!path_or_name) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "path_or_name is NULL");
    QKV_TRY(read_options(options, &kind, error));
    return open_found(path_or_name, kind, 0, model, error);
}

qkv_status qkvi_model_open_to_train(const char *path_or_name, qkv_model **model, qkv_error *error) {
    return open_found(path_or_name, QKV_WEIGHTS_F32, 1, model, error);
}

static qkv_status open_bytes(const void *config, size_t config_bytes, const void *vocab,
                             size_t vocab_bytes, const void *weights, size_t weights_bytes,
                             qkv_model_weights kind, qkv_model **model, qkv_error *error) {
    qkvi_safetensors *file;
    QKV_TRY(start("embedded", "embedded config.json", config, config_bytes, model, error));
    (*model)->info.weights = (int)kind;
    QKV_TRY(read_generation(NULL, *model, error));
    QKV_TRY(qkv_tokenizer_open_memory(vocab, vocab_bytes, NULL, 0, &(*model)->tokenizer, error));
    QKV_TRY(qkvi_safetensors_open_memory("embedded model.safetensors", weights, weights_bytes,
                                         &file, error));
    const qkv_status status = load_weights(*model, file, error);
    qkvi_safetensors_close(file);
    return status;
}

qkv_status qkv_model_open_memory(const void *config, size_t config_bytes, const void *vocab,
                                 size_t vocab_bytes, const void *weights, size_t weights_bytes,
                                 const qkv_model_open_options *options, qkv_model **model,
                                 qkv_error *error) {
    qkv_model_weights kind;
    if (!model) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "model is NULL");
    *model = NULL;
    if (!config || !vocab || !weights)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              !config  ? "config"
                              : !vocab ? "vocab"
                                       : "weights");
    QKV_TRY(read_options(options, &kind, error));
    const qkv_status status = open_bytes(config, config_bytes, vocab, vocab_bytes, weights,
                                         weights_bytes, kind, model, error);
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
    qkv_tokenizer_free(model->target_tokenizer);
    qkvi_params_free(&model->params);
    for (int64_t u = 0; u < model->n_unused; u++) free(model->unused[u]);
    free(model->unused);
    for (int64_t f = 0; f < model->n_files; f++) free(model->files[f]);
    free(model->files);
    for (int w = 0; w < model->n_warnings; w++) free(model->warnings[w]);
    free(model->arena);
    free(model->lm_bias);
    free(model->source);
    free(model);
}

const qkv_model_info *qkv_model_get_info(const qkv_model *model) { return &model->info; }

const qkv_tokenizer *qkv_model_tokenizer(const qkv_model *model) { return model->tokenizer; }

const qkv_tokenizer *qkv_model_target_tokenizer(const qkv_model *model) {
    return model->target_tokenizer ? model->target_tokenizer : model->tokenizer;
}

const char *qkv_model_file(const qkv_model *model, int64_t index) {
    return index >= 0 && index < model->n_files ? model->files[index] : NULL;
}

const char *qkv_model_unused(const qkv_model *model, int64_t index) {
    return index >= 0 && index < model->n_unused ? model->unused[index] : NULL;
}
