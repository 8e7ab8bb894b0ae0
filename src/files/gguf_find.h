/** Which GGUF file a name stands for. */
#ifndef QKVI_FILES_GGUF_FIND_H
#define QKVI_FILES_GGUF_FIND_H

#include "files/base.h"

/**
 * Whether a name is of a GGUF file whatever the file holds: it ends in .gguf, or begins with
 * ollama:.
 */
bool qkvi_is_gguf_name(const char *name);

/**
 * The GGUF file that a name stands for: a path that ends in .gguf, or of a file that begins with
 * GGUF, or ollama:NAME[:TAG] (ollama.h). *path is NULL if the name is none of these; else free it.
 * IO, FORMAT, UNSUPPORTED, MEMORY.
 */
qkv_status qkvi_gguf_find(const char *path_or_name, char **path, qkv_error *error);

#endif
