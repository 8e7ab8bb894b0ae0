/**
 * Finds the files of a model by a folder, a .safetensors file, the index of several, or a name in
 * the local Hugging Face cache. Offline.
 */
#ifndef QKVI_FILES_HUB_H
#define QKVI_FILES_HUB_H

#include "files/base.h"

/**
 * Finds the folder of a model (with config.json and tokenizer), and its file of weights, or the
 * index of several (shards.h); both are freed by free(). ARGUMENT if the name is one of several
 * files. IO if there is nothing of that name (the message says how to get it), UNSUPPORTED for
 * formats that are not read.
 */
qkv_status qkvi_hub_find(const char *path_or_name, char **folder, char **weights, qkv_error *error);

#endif
