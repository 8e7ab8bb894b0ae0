/**
 * Weights in several safetensors files, the shards, which model.safetensors.index.json lists:
 *
 *     {"metadata":{…}, "weight_map":{"TENSOR":"model-00001-of-00002.safetensors", …}}
 *
 * A set opens as one file with the tensors of all shards. A set that opens has been checked: every
 * name of the map is a plain file name, every shard is a valid file, no tensor is in two of them,
 * and each tensor of the map is in the shard that the map names. Tensors of a shard that are not in
 * the map count like all others, as in transformers.
 */
#ifndef QKVI_FILES_SHARDS_H
#define QKVI_FILES_SHARDS_H

#include "files/safetensors.h"

enum { QKVI_MAX_SHARDS = 512 }; /* each is an open file; the largest published models have 200 */

/** 1 if a path ends in ".safetensors.index.json". */
int qkvi_is_index(const char *path);

/** Opens the set of an index, given as bytes; shards are searched in the folder of path. */
qkv_status qkvi_shards_open(const char *path, const void *bytes, size_t n_bytes,
                            qkvi_safetensors **file, qkv_error *error);

/**
 * Opens a .safetensors file, or the set of an index.
 * FORMAT, LIMIT, UNSUPPORTED, IO, MEMORY as for each of the files. *file is NULL on error.
 */
qkv_status qkvi_weights_open(const char *path, qkvi_safetensors **file, qkv_error *error);

#endif
