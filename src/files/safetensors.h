/**
 * safetensors: named arrays in one file.
 *
 *     u64 N (little-endian) | N bytes of JSON | data
 *     JSON: {"name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}, …}, offsets into data
 *
 * A file that opens has been checked whole: every tensor's bytes are its shape times its type, and
 * together they cover the data section without hole or overlap. Stricter than the reference reader
 * where it is lax (docs/checkpoints.md).
 */
#ifndef QKVI_FILES_SAFETENSORS_H
#define QKVI_FILES_SAFETENSORS_H

#include <jansson.h>

#include "files/elems.h"
#include "files/file.h"

enum { QKVI_MAX_RANK = 8, QKVI_MAX_NAME = 1 << 16 };

typedef struct qkvi_stored {
    const char *name; /* raw bytes: escape before printing */
    qkvi_elem_type type;
    int rank;
    int64_t shape[QKVI_MAX_RANK];
    size_t n_elems;
    uint64_t begin, end; /* in the file … */
    int64_t shard;       /* … which is this one of a set (shards.h), or the only one */
} qkvi_stored;

/**
 * Tensors of another container, behind the same calls: how n elements of the index-th tensor, from
 * element first on, become floats. By several threads at once.
 */
typedef struct qkvi_stored_reader {
    qkv_status (*read)(const void *user, const qkvi_stored *tensor, int64_t index, size_t first,
                       size_t n, float *destination, qkv_error *error);
    void *user; /* freed with the file */
} qkvi_stored_reader;

typedef struct qkvi_safetensors {
    qkvi_source source;
    qkvi_stored *tensors; /* in byte order of their names */
    int64_t n_tensors;
    char *names;
    json_t *metadata;                 /* "__metadata__": an object of strings, or NULL */
    struct qkvi_safetensors **shards; /* of a set: where its tensors lie */
    int64_t n_shards;
    qkvi_stored_reader reader; /* zeros: bytes of the source are the elements */
} qkvi_safetensors;

/** FORMAT, LIMIT, UNSUPPORTED (a type that we cannot hold), IO, MEMORY. *file is NULL on error. */
qkv_status qkvi_safetensors_open(const char *path, qkvi_safetensors **file, qkv_error *error);
/** The same for bytes, which must outlive *file. */
qkv_status qkvi_safetensors_open_memory(const char *name, const void *bytes, size_t n_bytes,
                                        qkvi_safetensors **file, qkv_error *error);
/** With its shards. */
void qkvi_safetensors_close(qkvi_safetensors *file);
/** For qsort and bsearch: the order of their names' bytes. */
int qkvi_stored_by_name(const void *left, const void *right);

/** NULL if there is none of that name. */
const qkvi_stored *qkvi_safetensors_find(const qkvi_safetensors *file, const char *name);

/** The file that holds the tensor: file, or a shard of it. */
const qkvi_safetensors *qkvi_safetensors_home(const qkvi_safetensors *file,
                                              const qkvi_stored *tensor);

/** n elements from element first on, as floats; UNSUPPORTED for integers and bool. */
qkv_status qkvi_safetensors_read_part(const qkvi_safetensors *file, const qkvi_stored *tensor,
                                      size_t first, size_t n, float *destination, qkv_error *error);
/** The same of all n_elems. */
qkv_status qkvi_safetensors_read_f32(const qkvi_safetensors *file, const qkvi_stored *tensor,
                                     float *destination, qkv_error *error);
/** The stored bytes. */
qkv_status qkvi_safetensors_read_raw(const qkvi_safetensors *file, const qkvi_stored *tensor,
                                     void *destination, qkv_error *error);

/** "[2,3]" of a shape, cut to size. */
const char *qkvi_shape_text(int rank, const int64_t *shape, char *text, size_t text_bytes);

/** A tensor to be written: data has the stored type. */
typedef struct qkvi_stored_out {
    const char *name;
    qkvi_elem_type type;
    int rank;
    int64_t shape[QKVI_MAX_RANK];
    const void *data;
} qkvi_stored_out;

/**
 * Puts a file with the bytes that the reference writer (safetensors 0.8.0) gives the
 * same tensors: by type, widest first, then by name. The array is sorted in place. metadata: one
 * key and value, or NULL.
 */
qkv_status qkvi_safetensors_put(qkvi_writer *writer, qkvi_stored_out *tensors, int64_t n_tensors,
                                const char *metadata_key, const char *metadata_value,
                                qkv_error *error);
/** The same as a file of its own. */
qkv_status qkvi_safetensors_write(const char *path, qkvi_stored_out *tensors, int64_t n_tensors,
                                  const char *metadata_key, const char *metadata_value,
                                  qkv_error *error);

#endif
