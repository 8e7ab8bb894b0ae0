/** Finds the GGUF file that a name means. */
#ifndef QKVI_FILES_GGUF_FIND_H
#define QKVI_FILES_GGUF_FIND_H

#include "files/base.h"

/** Does a name end in .gguf, or begin with ollama:? Then it means a GGUF file, even without one. */
bool qkvi_is_gguf_name(const char *name);

/**
 * The GGUF file that a name means: a path that ends in .gguf, the path of a file whose first bytes
 * are GGUF, or ollama:NAME[:TAG] (ollama.h). *path, to be freed, is NULL if the name is none of
 * these. IO, FORMAT, UNSUPPORTED, MEMORY.
 */
qkv_status qkvi_gguf_find(const char *path_or_name, char **path, qkv_error *error);

#endif
