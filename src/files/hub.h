/**
 * Where a model's files are: a folder, a .safetensors file, the index of several, or a name in the
 * local Hugging Face cache. Offline.
 */
#ifndef QKVI_FILES_HUB_H
#define QKVI_FILES_HUB_H

#include "files/base.h"

/**
 * Finds the folder (with config.json and tokenizer) and the weights file of a model, or the index
 * of its files (shards.h); both are freed by free(). ARGUMENT for one of several files. IO when
 * there is nothing of that name (the message says how to get it), UNSUPPORTED for formats that we
 * do not read.
 */
qkv_status qkvi_hub_find(const char *path_or_name, char **folder, char **weights, qkv_error *error);

#endif
