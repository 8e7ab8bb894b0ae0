/*
 * The folder of a trained model: see trainer.h. The names and the metadata are those that
 * transformers expects.
 */

#include "files/safetensors.h"
#include "model/arch/family.h"
#include "model/config/config.h"
#include "train/trainer.h"

/* Tensors that are no row of the table, at most. */
enum { N_OTHERS = 8 };

/* Tensors to write, and memory for those that files have otherwise than the arena. */
typedef struct shelf {
    qkvi_stored_out *tensors;
    int64_t n;
    float *room; /* an arena of the table: a tensor begins where its first row does */
} shelf;

/*
 * Of a BERT with sinusoids: they are no parameter of ours, but readers that know only learned
 * positions find them stored as such.
 */
static void put_sinusoids(const qkvi_trainer *trainer, shelf *out) {
    const qkv_model_info *const info = &trainer->info;
    const qkvi_model_family *const family = qkvi_family_of(info->architecture);
    if (!info->sinusoidal_positions || family->positions != QKVI_LEARNED) return;
    out->tensors[out->n++] =
        (qkvi_stored_out){ .name = "bert.embeddings.position_embeddings.weight",
                           .type = QKVI_F32,
                           .rank = 2,
                           .shape = { info->max_len, info->hidden },
                           .data = trainer->weights->stacks[0].embed.position };
}

static void put_matrix(shelf *out, const char *name, int64_t rows, int64_t cols,
                       const float *data) {
    out->tensors[out->n++] = (qkvi_stored_out){
        .name = name, .type = QKVI_F32, .rank = 2, .shape = { rows, cols }, .data = data
    };
}

/* The bias of a Marian's logits, and positions that were stored, which are no parameters either. */
static void put_buffers(const qkvi_trainer *trainer, shelf *out) {
    static const char *const positions[] = { "model.encoder.embed_positions.weight",
                                             "model.decoder.embed_positions.weight" };
    const qkv_model_info *const info = &trainer->info;
    if (trainer->lm_bias)
        put_matrix(out, qkvi_family_of(info->architecture)->lm_bias, 1, info->target_vocab_size,
                   trainer->lm_bias);
    for (int p = 0; p < 2; p++)
        if (trainer->positions[p])
            put_matrix(out, positions[p], info->max_len, info->hidden, trainer->positions[p]);
}

/* The row of that name; NULL. */
static const qkvi_param *row_of(const qkvi_trainer *trainer, const char *name) {
    char full[128];
    snprintf(full, sizeof full, "%s.weight", name);
    return qkvi_params_find(&trainer->table, full);
}

/*
 * What transformers has a parameter for where nothing is tied, and computes nothing with: it finds
 * a copy, so that no part of the model is missing there.
 */
static void put_copies(const qkvi_trainer *trainer, shelf *out) {
    const qkv_model_info *const info = &trainer->info;
    const qkvi_model_family *const family = qkvi_family_of(info->architecture);
    const char *const *const bias = family->spelling.bias;
    if (info->untied & QKV_UNTIED_HEAD && info->has_mlm && bias[0]) {
        const qkvi_param *const row = qkvi_params_find(&trainer->table, bias[0]);
        out->tensors[out->n++] = (qkvi_stored_out){ .name = bias[1],
                                                    .type = QKVI_F32,
                                                    .rank = 1,
                                                    .shape = { row->shape[0] },
                                                    .data = trainer->params + row->offset };
    }
    if (!family->shared_words || info->separate_words || row_of(trainer, family->shared_words))
        return;
    const qkvi_param *const words = row_of(trainer, family->stacks[0].word);
    put_matrix(out, family->spelling.ties[0].source, words->shape[0], words->shape[1],
               trainer->params + words->offset);
}

/* A row, or the tensor that it and those that follow are parts of. */
static void put_row(const qkvi_trainer *trainer, int64_t r, shelf *out) {
    const qkvi_param *const row = &trainer->table.rows[r];
    const float *data = trainer->params + row->offset;
    const int is_whole = !row->transposed && row->n_parts == 1;
    int64_t shape[QKVI_STORED_AXES] = { 0 };
    if (row->part > 0) return;
    for (int p = 0; !is_whole && p < row->n_parts; p++)
        qkvi_param_to_stored(row + p, trainer->params + row[p].offset, out->room + row->offset);
    if (!is_whole) data = out->room + row->offset;
    const int rank = qkvi_param_stored_shape(row, shape);
    out->tensors[out->n++] = (qkvi_stored_out){ .name = qkvi_param_stored_name(row),
                                                .type = QKVI_F32,
                                                .rank = rank,
                                                .shape = { shape[0], shape[1], shape[2], shape[3] },
                                                .data = data };
}

/* After the last step the memory of gradients is free for tensors that are stored otherwise. */
static qkv_status add_weights(qkvi_files *files, const qkvi_trainer *trainer, qkv_error *error) {
    const int64_t n_rows = trainer->table.n_rows;
    shelf out = { .room = trainer->grads };
    out.tensors = qkvi_calloc_array((size_t)n_rows + N_OTHERS, sizeof *out.tensors);
    if (!out.tensors) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory to save the model");
    for (int64_t r = 0; r < n_rows; r++) put_row(trainer, r, &out);
    put_sinusoids(trainer, &out);
    put_buffers(trainer, &out);
    put_copies(trainer, &out);
    qkvi_writer *writer;
    qkv_status status = qkvi_files_begin(files, "model.safetensors", &writer, error);
    if (status == QKV_OK)
        status = qkvi_safetensors_put(writer, out.tensors, out.n, "format", "pt", error);
    free(out.tensors);
    return status;
}

static qkv_status save_new(const qkvi_trainer *trainer, qkvi_files *files, qkv_error *error) {
    if (!trainer->pictures)
        QKV_TRY(qkvi_config_write(files, &trainer->info, trainer->options->dropout, error));
    return trainer->objective->save_vocabulary(trainer, files, error);
}

/* A folder that holds a model already has all of the new one after it, or all of the old one. */
qkv_status qkvi_trainer_save(const qkvi_trainer *trainer, qkv_error *error) {
    qkvi_files files = { .folder = trainer->options->out };
    qkv_status status = add_weights(&files, trainer, error);
    if (status == QKV_OK)
        status = trainer->from ? qkvi_fine_tune_save(trainer, &files, error)
                               : save_new(trainer, &files, error);
    if (status == QKV_OK)
        status = qkvi_files_add(&files, "train_log.tsv", trainer->log.bytes, trainer->log.n, error);
    if (status == QKV_OK) status = qkvi_finished_put(trainer, &files, error);
    if (status == QKV_OK) return qkvi_files_commit(&files, error);
    qkvi_files_end(&files);
    return status;
}
