/**
 * Models that Ollama has on this machine, read as they lie:
 *
 *     ROOT/manifests/registry.ollama.ai/library/NAME/TAG   JSON: which layer is the model
 *     ROOT/blobs/sha256-DIGEST                             that layer, a GGUF file
 *
 * with ROOT = $OLLAMA_MODELS, else ~/.ollama/models, else /usr/share/ollama/.ollama/models.
 */
#ifndef QKVI_FILES_OLLAMA_H
#define QKVI_FILES_OLLAMA_H

#include "files/base.h"

/** Whether a name begins with "ollama:". */
bool qkvi_is_ollama(const char *name);

/**
 * The path of the GGUF file of ollama:NAME[:TAG], to be freed; NAME may be USER/NAME, and TAG is
 * latest where it is absent. ARGUMENT: no such name can be; IO: it is not there; FORMAT,
 * UNSUPPORTED: its manifest.
 */
qkv_status qkvi_ollama_find(const char *name, char **path, qkv_error *error);

#endif
