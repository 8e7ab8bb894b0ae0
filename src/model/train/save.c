/*
 * The folder of a trained model: see trainer.h. The names and the metadata are those that
 * transformers expects.
 */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/status.h"
#include "model/store/config.h"
#include "model/store/safetensors.h"
#include "model/text/vocab.h"
#include "model/train/trainer.h"

static const char position_name[] = "bert.embeddings.position_embeddings.weight";

/*
 * Sinusoids are no parameter of ours, but readers that know only learned positions find them stored
 * as such.
 */
static qkvi_stored_out sinusoids(const qkvi_trainer *trainer) {
    return (qkvi_stored_out){ .name = position_name,
                              .type = QKVI_F32,
                              .rank = 2,
                              .shape = { trainer->info.max_len, trainer->info.hidden },
                              .data = trainer->weights->stacks[0].embed.position };
}

static qkv_status add_weights(qkvi_files *files, const qkvi_trainer *trainer, qkv_error *error) {
    const qkvi_param_table *const table = &trainer->table;
    qkvi_stored_out *const tensors = qkvi_calloc_array((size_t)table->n_rows + 1, sizeof *tensors);
    int64_t n = 0;
    if (!tensors) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory to save the model");
    for (; n < table->n_rows; n++) {
        const qkvi_param *const row = &table->rows[n];
        tensors[n] = (qkvi_stored_out){ .name = row->name,
                                        .type = QKVI_F32,
                                        .rank = row->rank,
                                        .shape = { row->shape[0], row->shape[1] },
                                        .data = trainer->params + row->offset };
    }
    if (trainer->info.sinusoidal_positions) tensors[n++] = sinusoids(trainer);
    qkvi_writer *writer;
    qkv_status status = qkvi_files_begin(files, "model.safetensors", &writer, error);
    if (status == QKV_OK) status = qkvi_safetensors_put(writer, tensors, n, "format", "pt", error);
    free(tensors);
    return status;
}

/* A folder that holds a model already has all of the new one after it, or all of the old one. */
qkv_status qkvi_trainer_save(const qkvi_trainer *trainer, qkv_error *error) {
    qkvi_files files = { .folder = trainer->options->out };
    qkv_status status = add_weights(&files, trainer, error);
    if (status == QKV_OK) status = qkvi_config_write(&files, &trainer->info, error);
    if (status == QKV_OK)
        status = qkvi_tokenizer_save(&files, trainer->vocab, trainer->vocab_bytes,
                                     &qkvi_bert_uncased, trainer->info.max_len, error);
    if (status == QKV_OK) return qkvi_files_commit(&files, error);
    qkvi_files_end(&files);
    return status;
}
