/**
 * Finds models that Ollama has on this machine:
 *
 *     ROOT/manifests/registry.ollama.ai/library/NAME/TAG   JSON with the digest of the model
 *     ROOT/blobs/sha256-DIGEST                             the model, a GGUF file
 *
 * with ROOT = $OLLAMA_MODELS, else ~/.ollama/models, else /usr/share/ollama/.ollama/models.
 */
#ifndef QKVI_FILES_OLLAMA_H
#define QKVI_FILES_OLLAMA_H

#include "files/base.h"

/** Does a name begin with "ollama:"? */
bool qkvi_is_ollama(const char *name);

/**
 * The path of the GGUF file of ollama:NAME[:TAG], to be freed. NAME may be USER/NAME; the default
 * of TAG is latest. ARGUMENT: not a valid name; IO: no such model; FORMAT, UNSUPPORTED: its
 * manifest.
 */
qkv_status qkvi_ollama_find(const char *name, char **path, qkv_error *error);

#endif
