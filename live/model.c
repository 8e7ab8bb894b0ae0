/*
 * The model that a live page brings along: its files are not in the module, so that two modules
 * share them. What cli/embedded.c is to the tool.
 */
#include <stdlib.h>

#include "common/session.h"
#include "live/engine.h"

enum { CONFIG, VOCAB, WEIGHTS, N_FILES };
static struct {
    char *bytes;
    size_t n;
} files[N_FILES];

char *live_file(unsigned which, size_t n) {
    const size_t alignment = 64; /* tensors are read in place */
    if (which >= N_FILES || n > SIZE_MAX - alignment) return NULL;
    free(files[which].bytes);
    files[which].bytes = aligned_alloc(alignment, (n / alignment + 1) * alignment);
    files[which].n = files[which].bytes ? n : 0;
    return files[which].bytes;
}

bool embedded_model(const qkv_model_open_options *options, qkv_model **model, qkv_status *status,
                    qkv_error *error) {
    for (int i = 0; i < N_FILES; i++)
        if (!files[i].bytes) return false;
    *status = qkv_model_open_memory(files[CONFIG].bytes, files[CONFIG].n, files[VOCAB].bytes,
                                    files[VOCAB].n, files[WEIGHTS].bytes, files[WEIGHTS].n, options,
                                    model, error);
    return true;
}

const char *embedded_grammar(size_t *n_bytes) {
    *n_bytes = 0;
    return NULL;
}
