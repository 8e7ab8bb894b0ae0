/**
 * A model in one GGUF file, or in several: NAME-00001-of-00003.gguf and so on, of which the first
 * has the keys. All tensors are in one order, whichever file they lie in.
 */
#ifndef QKVI_FILES_GGUF_PARTS_H
#define QKVI_FILES_GGUF_PARTS_H

#include "files/gguf_container.h"

enum { QKVI_GGUF_MAX_PARTS = 512 }; /* each is an open file */

typedef struct qkvi_gguf_parts {
    qkvi_gguf_file **files; /* the first has the keys */
    int64_t n_files;
    qkvi_gguf_tensor **tensors; /* in byte order of their names; they live in the files */
    int64_t n_tensors;
} qkvi_gguf_parts;

/** ARGUMENT for another than the first file; else as qkvi_gguf_read. Zeros after a failure. */
qkv_status qkvi_gguf_parts_open(const char *path, qkvi_gguf_parts *parts, qkv_error *error);
/** The same of a whole model in memory, whose bytes must outlive it. */
qkv_status qkvi_gguf_parts_memory(const char *name, const void *bytes, size_t n_bytes,
                                  qkvi_gguf_parts *parts, qkv_error *error);
void qkvi_gguf_parts_close(qkvi_gguf_parts *parts);

/** NULL if there is none of that name. */
const qkvi_gguf_tensor *qkvi_gguf_tensor_of(const qkvi_gguf_parts *parts, const char *name);

#endif
