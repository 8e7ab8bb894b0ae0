/**
 * Weights in several safetensors files. model.safetensors.index.json tells which there are:
 *
 *     {"metadata":{…}, "weight_map":{"TENSOR":"model-00001-of-00002.safetensors", …}}
 *
 * A set opens as one file whose tensors lie in its shards. What opened has been checked: every name
 * of the map is a plain file name, every shard is a whole file, no tensor is in two of them, and
 * each tensor of the map is in the shard that the map names. A shard may hold tensors that the map
 * does not know: they are tensors like the others, as transformers has it.
 */
#ifndef QKVI_FILES_SHARDS_H
#define QKVI_FILES_SHARDS_H

#include "files/safetensors.h"

enum { QKVI_MAX_SHARDS = 512 }; /* each is an open file; the largest published models have 200 */

/** 1 if a path ends as the name of an index does: ".safetensors.index.json". */
int qkvi_is_index(const char *path);

/** The set of an index, given as bytes, with the path that it has or might have. */
qkv_status qkvi_shards_open(const char *path, const void *bytes, size_t n_bytes,
                            qkvi_safetensors **file, qkv_error *error);

/**
 * Opens a .safetensors file, or all that an index names.
 * FORMAT, LIMIT, UNSUPPORTED, IO, MEMORY as for each of the files. *file is NULL on error.
 */
qkv_status qkvi_weights_open(const char *path, qkvi_safetensors **file, qkv_error *error);

#endif
