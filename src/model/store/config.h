/** config.json of a model folder: what is honoured, what is refused by name, and what we write. */
#ifndef QKVI_STORE_CONFIG_H
#define QKVI_STORE_CONFIG_H

#include "model/store/file.h"
#include "qkv/model.h"

/**
 * Reads the sizes of a BERT. Fills the numbers of *info (no strings, nothing about heads on top).
 * FORMAT (not JSON, wrong type), SHAPE (sizes that do not fit), LIMIT, UNSUPPORTED (another
 * architecture or option).
 */
qkv_status qkvi_config_read(const char *file, const void *bytes, size_t n_bytes,
                            qkv_model_info *info, qkv_error *error);

/**
 * Adds config.json to files, with the fields that transformers needs to load the model, and
 * generation_config.json for a model that writes. dropout is what it was trained with. MEMORY, IO.
 */
qkv_status qkvi_config_write(qkvi_files *files, const qkv_model_info *info, double dropout,
                             qkv_error *error);

#endif
