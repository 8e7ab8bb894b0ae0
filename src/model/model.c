/*
 * Opening a model: config.json promises sizes, the architecture makes its table of parameters from
 * them, the resolver finds and checks each one in the weights file, and only then is memory of
 * their size allocated and filled, with weights of layers at once in the form that they run with. A
 * GGUF file comes as the texts and tensors of such a folder (gguf/gguf.h).
 */

#include "attn/ctx.h"
#include "core/half.h"
#include "core/memory.h"
#include "core/options.h"
#include "files/file.h"
#include "files/gguf_find.h"
#include "files/hub.h"
#include "files/shards.h"
#include "gguf/gguf.h"
#include "model/arch/family.h"
#include "model/arch/net.h"
#include "model/arch/net_params.h"
#include "model/config/config.h"
#include "model/model_impl.h"
#include "model/weights/resolver.h"
#include "text/tokenizer_json.h"

enum { MAX_CONFIG = 1 << 20 };

/*
 * Linux grants memory that it does not have, and ends the process when it is used: so what cannot
 * fit is refused before anything is read.
 */
static qkv_status check_memory(const qkv_model *model, qkv_error *error) {
    const int64_t free_bytes = qkvi_memory_free("");
    const double bytes = (double)model->params.n_elems * (double)sizeof *model->arena;
    if (bytes <= (double)free_bytes) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_MEMORY,
                          "%s: the weights take %.1f MB, and %.1f MB of memory are free",
                          model->source, bytes / 1e6, (double)free_bytes / 1e6);
}

/* Memory for the parameters in the form that they are kept in, filled. */
static qkv_status load_arena(qkv_model *model, qkvi_resolver *resolver, qkvi_pool *pool,
                             qkv_error *error) {
    qkvi_param_table *const table = &model->params;
    if (model->info.weights == QKV_WEIGHTS_FILE && !qkvi_resolver_blocks(resolver, table))
        model->info.weights = QKV_WEIGHTS_F32;
    if (!model->is_to_train)
        QKV_TRY(qkvi_params_pack(table, qkvi_weights_param(model->info.weights), error));
    QKV_TRY(check_memory(model, error));
    model->arena = qkvi_params_room(table);
    if (!model->arena)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory for %zu parameters",
                              model->source, table->n_elems);
    model->info.weights_bytes = (int64_t)(table->n_elems * sizeof *model->arena);
    return qkvi_resolver_load(resolver, table, pool, model->arena, error);
}

static qkv_status bind(qkv_model *model, qkv_error *error) {
    const unsigned form = qkvi_weights_form(model->info.weights);
    if (model->is_to_train) return QKV_OK;
    QKV_TRY(qkvi_net_bind(&model->info, &model->params, model->arena, form, &model->net, error));
    qkvi_net_take_buffers(model->net, model->lm_bias, model->positions);
    return QKV_OK;
}

/*
 * The root of hidden that words are multiplied with, in the type that they are stored in (Gemma).
 */
static void round_word_scale(qkv_model *model, const qkvi_model_family *family,
                             const qkvi_resolver *resolver) {
    char name[128];
    qkv_model_info *const info = &model->info;
    if (!family->gemma) return;
    snprintf(name, sizeof name, "%s.weight", qkvi_word_name(info, family, 0));
    const qkvi_stored *const words = qkvi_resolve(resolver, name);
    if (!words) return;
    const float scale = (float)info->word_scale;
    if (words->type == QKVI_BF16)
        info->word_scale = (double)qkvi_f32_of_bf16(qkvi_bf16_of_f32(scale));
    if (words->type == QKVI_F16) info->word_scale = (double)qkvi_f32_of_f16(qkvi_f16_of_f32(scale));
}

static qkv_status load_params(qkv_model *model, const qkvi_model_family *family,
                              qkvi_resolver *resolver, qkvi_pool *pool, qkv_error *error) {
    QKV_TRY(qkvi_model_match(model, family, resolver, error));
    QKV_TRY(qkvi_model_ties(model, family, resolver, error));
    QKV_TRY(qkvi_model_positions(model, family, resolver, error));
    QKV_TRY(qkvi_net_table(&model->info, &model->params, error));
    QKV_TRY(qkvi_resolver_check(resolver, &model->params, error));
    round_word_scale(model, family, resolver);
    QKV_TRY(load_arena(model, resolver, pool, error));
    QKV_TRY(qkvi_model_lm_bias(model, family, resolver, error));
    for (int64_t r = 0; r < model->params.n_rows; r++)
        model->info.n_parameters += (int64_t)model->params.rows[r].n_elems;
    QKV_TRY(qkvi_resolver_unused(resolver, &model->unused, &model->n_unused, error));
    QKV_TRY(bind(model, error));
    return qkvi_model_warn(model, error);
}

/* used: tensors that the other tower has read, or NULL; receives what both have. */
static qkv_status load_tower(qkv_model *model, const qkvi_safetensors *file, qkvi_pool *pool,
                             uint8_t *used, qkv_error *error) {
    qkvi_resolver resolver;
    const qkvi_model_family *const family = qkvi_family_of(model->info.architecture);
    QKV_TRY(qkvi_resolver_make(file, &family->spelling, &resolver, error));
    for (int64_t t = 0; used && t < file->n_tensors; t++) resolver.used[t] = used[t];
    const qkv_status status = load_params(model, family, &resolver, pool, error);
    for (int64_t t = 0; used && t < file->n_tensors; t++) used[t] = resolver.used[t];
    qkvi_resolver_free(&resolver);
    return status;
}

/* Of two towers each reads its own tensors, and what neither reads is not used. */
static qkv_status load_weights(qkv_model *model, const qkvi_safetensors *file, qkvi_pool *pool,
                               qkv_error *error) {
    qkv_model *const tower = model->tower;
    if (!tower) return load_tower(model, file, pool, NULL, error);
    tower->info.weights = model->info.weights;
    tower->is_to_train = model->is_to_train;
    uint8_t *const used = calloc((size_t)file->n_tensors + 1, 1);
    if (!used) return qkvi_no_memory(error, "tensor names");
    qkv_status status = load_tower(tower, file, pool, used, error);
    for (int64_t u = 0; u < tower->n_unused; u++) free(tower->unused[u]);
    tower->n_unused = 0;
    if (status == QKV_OK) status = load_tower(model, file, pool, used, error);
    free(used);
    return status;
}

/* Names of classes, whether or not the weights will have a classifier. */
static qkv_status read_labels(const char *config_name, const void *config, size_t config_bytes,
                              qkv_model *model, qkv_error *error) {
    const int64_t n = model->info.n_labels;
    if (n == 0) return QKV_OK;
    model->labels = calloc((size_t)n, sizeof *model->labels);
    if (!model->labels) return qkvi_no_memory(error, "names of classes");
    model->n_label_names = n;
    return qkvi_config_labels(config_name, config, config_bytes, n, model->labels, error);
}

static qkv_status name_source(const char *source, qkv_model *model, qkv_error *error) {
    model->source = strdup(QKVI_PRINTABLE(1024, source));
    if (!model->source) return qkvi_no_memory(error, "a name");
    model->info.source = model->source;
    return QKV_OK;
}

/* Of SigLIP, whose images have no layer to the space of both: it is that of their vectors. */
static qkv_status join_towers(const char *config_name, qkv_model *model, qkv_error *error) {
    qkv_model_info *const images = &model->tower->info;
    const qkv_model_info *const texts = &model->info;
    if (!texts->match_each) return QKV_OK;
    images->joint_dim = images->hidden;
    images->match_each = 1;
    if (images->joint_dim == texts->joint_dim) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_SHAPE,
                          "%s: hidden_size = %lld of vision_config is not the %lld channels of "
                          "text_config's projection_size",
                          config_name, (long long)images->joint_dim, (long long)texts->joint_dim);
}

/* The tower that reads images beside the one that reads texts, if there is one. */
static qkv_status start_tower(const char *config_name, const void *config, size_t config_bytes,
                              qkv_model *model, qkv_error *error) {
    bool has;
    if (!qkvi_family_of(model->info.architecture)->images) return QKV_OK;
    qkv_model *const tower = calloc(1, sizeof *tower);
    if (!tower) return qkvi_no_memory(error, "a model");
    model->tower = tower;
    QKV_TRY(qkvi_config_read_images(config_name, config, config_bytes, &has, &tower->info, error));
    tower->info.n_labels = 0; /* a classifier has no tower of texts beside it */
    QKV_TRY(join_towers(config_name, model, error));
    tower->source = strdup(model->source);
    if (!tower->source) return qkvi_no_memory(error, "a name");
    tower->info.source = tower->source;
    return QKV_OK;
}

/* A model with its config read and nothing else. */
static qkv_status start(const char *source, const char *config_name, const void *config,
                        size_t config_bytes, qkv_model **model, qkv_error *error) {
    *model = calloc(1, sizeof **model);
    if (!*model) return qkvi_no_memory(error, "a model");
    QKV_TRY(qkvi_config_read(config_name, config, config_bytes, &(*model)->info, error));
    QKV_TRY(read_labels(config_name, config, config_bytes, *model, error));
    QKV_TRY(name_source(source, *model, error));
    return start_tower(config_name, config, config_bytes, *model, error);
}

static qkv_status start_folder(const char *folder, qkv_model **model, qkv_error *error) {
    char *config = NULL;
    size_t config_bytes = 0;
    char *const path = qkvi_path_join(folder, "config.json");
    if (!path) return qkvi_no_memory(error, "a path");
    qkv_status status = qkvi_file_load(path, MAX_CONFIG, &config, &config_bytes, error);
    if (status == QKV_OK)
        status = start(folder, QKVI_PRINTABLE(1024, path), config, config_bytes, model, error);
    free(path);
    free(config);
    return status;
}

/* Only what generates may fail by what the file says; what cannot be read at all is an error. */
static qkv_status put_off(qkv_model *model, qkv_status status, const qkv_error *cause,
                          qkv_error *error) {
    if (status == QKV_OK) return QKV_OK;
    if (status == QKV_ERR_MEMORY || status == QKV_ERR_IO)
        return qkvi_error_set(error, status, "%s", cause->message);
    model->generation_problem = *cause;
    return QKV_OK;
}

/*
 * What generation_config.json says about tokens goes before config.json, for other uses than
 * generating. Not about padding: the row of embeddings that learns nothing is config.json's. folder
 * NULL: there are only these bytes.
 */
static qkv_status read_generation(const char *folder, const char *name, const void *bytes,
                                  size_t n_bytes, qkv_model *model, qkv_error *error) {
    qkv_model_info *const info = &model->info;
    qkvi_generation_config *const config = &model->generation;
    qkv_error cause = { 0 };
    if (!info->has_lm) return QKV_OK;
    const qkv_status status =
        folder ? qkvi_generation_config_read(folder, info, config, &cause)
               : qkvi_generation_config_parse(name, bytes, n_bytes, info, config, &cause);
    QKV_TRY(put_off(model, status, &cause, error));
    if (config->bos >= 0) info->bos_id = config->bos;
    model->config_start = info->start_id;
    if (config->start >= 0) info->start_id = config->start;
    if (config->n_ends > 0) info->eos_id = config->ends[0];
    return QKV_OK;
}

/* The names of the files that the weights came from. */
static qkv_status note_files(qkv_model *model, const qkvi_safetensors *file, qkv_error *error) {
    const int64_t n = file->n_shards ? file->n_shards : 1;
    model->files = calloc((size_t)n, sizeof *model->files);
    for (int64_t f = 0; model->files && f < n; f++) {
        const char *const name = (file->n_shards ? file->shards[f] : file)->source.name;
        model->files[f] = strdup(qkvi_path_name(name));
        if (!model->files[f]) break;
        model->n_files++;
    }
    return model->n_files == n
               ? QKV_OK
               : qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory for names", model->source);
}

/*
 * How vectors of sentences are made, and the tokenizer that their texts need. folder NULL: there is
 * none.
 */
static qkv_status read_sentence(const char *folder, qkv_model *model, qkv_error *error) {
    const int64_t max_len = model->tokenizer ? model->tokenizer->max_len : model->info.max_len;
    QKV_TRY(qkvi_recipe_read(folder, max_len, &model->info, &model->recipe, error));
    if (!model->recipe.lower_case) return QKV_OK;
    return qkvi_tokenizer_open_lower(folder, &model->sentence_tokenizer, error);
}

static qkv_status folder_has(const char *folder, const char *name, int *there, qkv_error *error) {
    char *const path = qkvi_path_join(folder, name);
    if (!path) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a path");
    *there = qkvi_file_exists(path);
    free(path);
    return QKV_OK;
}

/* Files that a caller may think are read. */
static qkv_status look_beside(const char *folder, const char *weights, int is_named,
                              qkv_model *model, qkv_error *error) {
    QKV_TRY(folder_has(folder, "adapter_config.json", &model->has_adapter, error));
    if (is_named || qkvi_is_index(weights)) return QKV_OK;
    return folder_has(folder, "model.safetensors.index.json", &model->has_index, error);
}

/* What callers ask for. */
typedef struct wanted {
    qkv_model_weights weights;
    qkvi_pool *pool;
    int is_to_train;
    int is_named; /* the file of the weights, not only their folder */
} wanted;

static qkv_status open_files(const char *folder, const char *weights, const wanted *asked,
                             qkv_model **model, qkv_error *error) {
    qkvi_safetensors *file;
    QKV_TRY(start_folder(folder, model, error));
    (*model)->info.weights = asked->weights;
    (*model)->is_to_train = asked->is_to_train;
    QKV_TRY(look_beside(folder, weights, asked->is_named, *model, error));
    QKV_TRY(read_generation(folder, NULL, NULL, 0, *model, error));
    const int reads_texts = (*model)->info.patch_height == 0;
    if (reads_texts) QKV_TRY(qkv_tokenizer_open(folder, QKV_SOURCE, &(*model)->tokenizer, error));
    if ((*model)->info.kind == QKV_MODEL_PAIR)
        QKV_TRY(qkv_tokenizer_open(folder, QKV_TARGET, &(*model)->target_tokenizer, error));
    QKV_TRY(read_sentence(reads_texts ? folder : NULL, *model, error));
    QKV_TRY(qkvi_model_read_rules(folder, *model, error));
    QKV_TRY(qkvi_weights_open(weights, &file, error));
    qkv_status status = load_weights(*model, file, asked->pool, error);
    if (status == QKV_OK) status = note_files(*model, file, error);
    qkvi_safetensors_close(file);
    return status;
}

/* ---- GGUF ------------------------------------------------------------------------------------ */

_Static_assert((int)QKVI_GGUF_MAX_LAYERS == (int)QKV_MAX_LAYERS, "one limit of both formats");

/* The vector of a sentence is what the file says of it, and else the mean. */
static qkv_status read_gguf_sentence(const qkvi_gguf *gguf, qkv_model *model, qkv_error *error) {
    static const qkv_pooling poolings[] = {
        [QKVI_GGUF_POOLING_MEAN] = QKV_POOLING_MEAN,
        [QKVI_GGUF_POOLING_FIRST] = QKV_POOLING_CLS,
        [QKVI_GGUF_POOLING_LAST] = QKV_POOLING_LAST,
    };
    QKV_TRY(read_sentence(NULL, model, error));
    if (gguf->pooling == QKVI_GGUF_POOLING_NONE) return QKV_OK;
    model->recipe.poolings[0] = model->info.pooling = poolings[gguf->pooling];
    return QKV_OK;
}

static void keep_gguf_warnings(qkvi_gguf *gguf, qkv_model *model) {
    for (int w = 0; w < QKVI_GGUF_WARNINGS && gguf->warnings[w]; w++) {
        model->warnings[model->n_warnings++] = gguf->warnings[w];
        gguf->warnings[w] = NULL;
    }
}

static qkv_status read_gguf(qkvi_gguf *gguf, const char *source, const wanted *asked,
                            qkv_model **model, qkv_error *error) {
    const qkvi_text_file *const config = &gguf->config, *const generation = &gguf->generation;
    QKV_TRY(start(source, config->name, config->bytes, config->n_bytes, model, error));
    (*model)->info.weights = asked->weights;
    (*model)->is_to_train = asked->is_to_train;
    keep_gguf_warnings(gguf, *model);
    QKV_TRY(read_generation(NULL, generation->name, generation->bytes, generation->n_bytes, *model,
                            error));
    QKV_TRY(qkvi_tokenizer_read_json(&gguf->tokenizer, &(*model)->tokenizer, error));
    QKV_TRY(read_gguf_sentence(gguf, *model, error));
    QKV_TRY(load_weights(*model, gguf->weights, asked->pool, error));
    if ((*model)->n_unused > 0) return qkvi_gguf_refuse_unused(gguf, (*model)->unused[0], error);
    return note_files(*model, gguf->weights, error);
}

static qkv_status open_gguf(const char *path, const char *source, const wanted *asked,
                            qkv_model **model, qkv_error *error) {
    qkvi_gguf *gguf;
    QKV_TRY(qkvi_gguf_open(path, &gguf, error));
    const qkv_status status = read_gguf(gguf, source, asked, model, error);
    qkvi_gguf_close(gguf);
    return status;
}

/* ---- Callers --------------------------------------------------------------------------------- */

static qkv_status read_options(const qkv_model_open_options *given, wanted *asked,
                               qkv_error *error) {
    qkv_model_open_options options = qkv_model_open_options_init();
    if (given)
        QKV_TRY(
            qkvi_options_read(&options, sizeof options, given, "qkv_model_open_options", error));
    *asked = (wanted){ .pool = options.ctx ? options.ctx->pool : NULL };
    if (qkvi_weights_resolve((int)options.weights, &asked->weights)) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "weights = %d is no qkv_model_weights",
                          (int)options.weights);
}

static qkv_status open_folder(const char *path_or_name, wanted asked, qkv_model **model,
                              qkv_error *error) {
    char *folder, *weights;
    QKV_TRY(qkvi_hub_find(path_or_name, &folder, &weights, error));
    asked.is_named = strcmp(path_or_name, weights) == 0;
    const qkv_status status = open_files(folder, weights, &asked, model, error);
    free(folder);
    free(weights);
    return status;
}

static qkv_status open_found(const char *path_or_name, wanted asked, qkv_model **model,
                             qkv_error *error) {
    char *gguf;
    *model = NULL;
    QKV_TRY(qkvi_gguf_find(path_or_name, &gguf, error));
    const qkv_status status = gguf ? open_gguf(gguf, path_or_name, &asked, model, error)
                                   : open_folder(path_or_name, asked, model, error);
    free(gguf);
    if (status != QKV_OK) {
        qkv_model_free(*model);
        *model = NULL;
    }
    return status;
}

qkv_status qkv_model_open(const char *path_or_name, const qkv_model_open_options *options,
                          qkv_model **model, qkv_error *error) {
    wanted asked;
    if (!model) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "model is NULL");
    *model = NULL;
    if (!path_or_name) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "path_or_name is NULL");
    QKV_TRY(read_options(options, &asked, error));
    return open_found(path_or_name, asked, model, error);
}

qkv_status qkvi_model_open_to_train(const char *path_or_name, qkv_model **model, qkv_error *error) {
    const wanted asked = { .weights = QKV_WEIGHTS_F32, .is_to_train = 1 };
    return open_found(path_or_name, asked, model, error);
}

static qkv_status open_bytes(const void *config, size_t config_bytes, const void *vocab,
                             size_t vocab_bytes, const void *weights, size_t weights_bytes,
                             qkv_model_weights kind, qkv_model **model, qkv_error *error) {
    qkvi_safetensors *file;
    QKV_TRY(start("embedded", "embedded config.json", config, config_bytes, model, error));
    (*model)->info.weights = kind;
    QKV_TRY(read_generation(NULL, "config.json", config, config_bytes, *model, error));
    QKV_TRY(qkv_tokenizer_open_memory(vocab, vocab_bytes, NULL, 0, &(*model)->tokenizer, error));
    QKV_TRY(read_sentence(NULL, *model, error));
    QKV_TRY(qkvi_safetensors_open_memory("embedded model.safetensors", weights, weights_bytes,
                                         &file, error));
    const qkv_status status = load_weights(*model, file, NULL, error);
    qkvi_safetensors_close(file);
    return status;
}

qkv_status qkv_model_open_memory(const void *config, size_t config_bytes, const void *vocab,
                                 size_t vocab_bytes, const void *weights, size_t weights_bytes,
                                 const qkv_model_open_options *options, qkv_model **model,
                                 qkv_error *error) {
    wanted asked;
    if (!model) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "model is NULL");
    *model = NULL;
    QKV_TRY(qkvi_need(config, "config", error));
    QKV_TRY(qkvi_need(vocab, "vocab", error));
    QKV_TRY(qkvi_need(weights, "weights", error));
    QKV_TRY(read_options(options, &asked, error));
    const qkv_status status = open_bytes(config, config_bytes, vocab, vocab_bytes, weights,
                                         weights_bytes, asked.weights, model, error);
    if (status != QKV_OK) {
        qkv_model_free(*model);
        *model = NULL;
    }
    return status;
}

void qkv_model_free(qkv_model *model) {
    if (!model) return;
    qkv_model_free(model->tower);
    qkvi_net_free(model->net);
    qkv_tokenizer_free(model->tokenizer);
    qkv_tokenizer_free(model->target_tokenizer);
    qkv_tokenizer_free(model->sentence_tokenizer);
    qkvi_recipe_free(&model->recipe);
    qkvi_params_free(&model->params);
    for (int64_t u = 0; u < model->n_unused; u++) free(model->unused[u]);
    free(model->unused);
    for (int64_t l = 0; l < model->n_label_names; l++) free(model->labels[l]);
    free(model->labels);
    for (int64_t f = 0; f < model->n_files; f++) free(model->files[f]);
    free(model->files);
    for (int w = 0; w < model->n_warnings; w++) free(model->warnings[w]);
    qkvi_aligned_free(model->arena);
    qkvi_aligned_free(model->lm_bias);
    for (int p = 0; p < 2; p++) qkvi_aligned_free(model->positions[p]);
    free(model->no_head);
    free(model->source);
    free(model);
}

const qkv_model_info *qkv_model_get_info(const qkv_model *model) {
    return model ? &model->info : NULL;
}

const qkv_tokenizer *qkv_model_tokenizer(const qkv_model *model, qkv_side side) {
    if (!model) return NULL;
    return side == QKV_TARGET && model->target_tokenizer ? model->target_tokenizer
                                                         : model->tokenizer;
}

const char *qkv_model_file(const qkv_model *model, int64_t index) {
    return model && index >= 0 && index < model->n_files ? model->files[index] : NULL;
}

const char *qkv_model_unused(const qkv_model *model, int64_t index) {
    return model && index >= 0 && index < model->n_unused ? model->unused[index] : NULL;
}
