/**
 * A model in one or several GGUF files, NAME-00001-of-00003.gguf and so on, of which the first has
 * the keys. One sorted list has the tensors of all files.
 */
#ifndef QKVI_FILES_GGUF_PARTS_H
#define QKVI_FILES_GGUF_PARTS_H

#include "files/gguf_container.h"

enum { QKVI_GGUF_MAX_PARTS = 512 }; /* each is an open file */

typedef struct qkvi_gguf_parts {
    qkvi_gguf_file **files; /* the first has the keys */
    int64_t n_files;
    qkvi_gguf_tensor **tensors; /* of the files, in byte order of their names */
    int64_t n_tensors;
} qkvi_gguf_parts;

/** ARGUMENT for a file that is not the first; else as qkvi_gguf_read. All 0 after a failure. */
qkv_status qkvi_gguf_parts_open(const char *path, qkvi_gguf_parts *parts, qkv_error *error);
/** The same for a model in memory, in one file; the bytes must outlive it. */
qkv_status qkvi_gguf_parts_memory(const char *name, const void *bytes, size_t n_bytes,
                                  qkvi_gguf_parts *parts, qkv_error *error);
void qkvi_gguf_parts_close(qkvi_gguf_parts *parts);

/** NULL if there is none of that name. */
const qkvi_gguf_tensor *qkvi_gguf_tensor_of(const qkvi_gguf_parts *parts, const char *name);

#endif
