/**
 * safetensors: named arrays in one file.
 *
 *     u64 N (little-endian) | N bytes of JSON | data
 *     JSON: {"name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}, …}, offsets into data
 *
 * A file that opens has been checked whole: the bytes of each tensor are the product of its shape
 * and the width of its type, and all tensors together cover the data section without holes and
 * overlaps. docs/checkpoints.md says where this is stricter than the reference reader.
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
    uint64_t begin, end; /* in its file */
    int64_t shard;       /* the index of its file, if there are several (shards.h) */
    const struct qkvi_gguf_type *blocks; /* of a matrix whose rows are whole blocks; else NULL */
} qkvi_stored;

/**
 * Reads tensors of another container for the calls below: n elements of the index-th tensor, from
 * element first on, as floats. Several threads may call it at once.
 */
typedef struct qkvi_stored_reader {
    qkv_status (*read)(const void *user, const qkvi_stored *tensor, int64_t index, size_t first,
                       size_t n, float *destination, qkv_error *error);
    /* n rows of blocks from row `first` on, of a tensor that has them. */
    qkv_status (*read_rows)(const void *user, const qkvi_stored *tensor, int64_t index,
                            int64_t first, int64_t n, uint8_t *destination, qkv_error *error);
    void *user; /* freed with the file */
} qkvi_stored_reader;

typedef struct qkvi_safetensors {
    qkvi_source source;
    qkvi_stored *tensors; /* in byte order of their names */
    int64_t n_tensors;
    char *names;
    json_t *metadata;                 /* "__metadata__": an object of strings, or NULL */
    struct qkvi_safetensors **shards; /* [n_shards]: of a set, the files of its tensors */
    int64_t n_shards;
    qkvi_stored_reader reader; /* all 0: elements are bytes of the source */
} qkvi_safetensors;

/** FORMAT, LIMIT, UNSUPPORTED (an element type), IO, MEMORY. *file is NULL on error. */
qkv_status qkvi_safetensors_open(const char *path, qkvi_safetensors **file, qkv_error *error);
/** The same for bytes, which must outlive *file. */
qkv_status qkvi_safetensors_open_memory(const char *name, const void *bytes, size_t n_bytes,
                                        qkvi_safetensors **file, qkv_error *error);
/** Closes a file, and its shards. */
void qkvi_safetensors_close(qkvi_safetensors *file);
/** For qsort and bsearch: compares the bytes of names. */
int qkvi_stored_by_name(const void *left, const void *right);

/** NULL if there is none of that name. */
const qkvi_stored *qkvi_safetensors_find(const qkvi_safetensors *file, const char *name);

/** The file with the tensor's bytes: file, or a shard of it. */
const qkvi_safetensors *qkvi_safetensors_home(const qkvi_safetensors *file,
                                              const qkvi_stored *tensor);

/** Reads n elements from element first on, as floats; UNSUPPORTED for integers and bool. */
qkv_status qkvi_safetensors_read_part(const qkvi_safetensors *file, const qkvi_stored *tensor,
                                      size_t first, size_t n, float *destination, qkv_error *error);
/** Reads all elements as floats. */
qkv_status qkvi_safetensors_read_f32(const qkvi_safetensors *file, const qkvi_stored *tensor,
                                     float *destination, qkv_error *error);
/** Reads the blocks of n rows from row `first` on, of a tensor that has blocks. IO. */
qkv_status qkvi_safetensors_read_rows(const qkvi_safetensors *file, const qkvi_stored *tensor,
                                      int64_t first, int64_t n, uint8_t *destination,
                                      qkv_error *error);
/** Reads the stored bytes. */
qkv_status qkvi_safetensors_read_raw(const qkvi_safetensors *file, const qkvi_stored *tensor,
                                     void *destination, qkv_error *error);

/** A shape as "[2,3]", cut to text_bytes; returns text. */
const char *qkvi_shape_text(int rank, const int64_t *shape, char *text, size_t text_bytes);

/** A tensor to be written; data has the type `type`. */
typedef struct qkvi_stored_out {
    const char *name;
    qkvi_elem_type type;
    int rank;
    int64_t shape[QKVI_MAX_RANK];
    const void *data;
} qkvi_stored_out;

/**
 * Writes the same bytes as the reference writer (safetensors 0.8.0): tensors by type, widest first,
 * then by name. The array is sorted in place. metadata: one key and its value, or NULL.
 */
qkv_status qkvi_safetensors_put(qkvi_writer *writer, qkvi_stored_out *tensors, int64_t n_tensors,
                                const char *metadata_key, const char *metadata_value,
                                qkv_error *error);
/** The same to a new file. */
qkv_status qkvi_safetensors_write(const char *path, qkvi_stored_out *tensors, int64_t n_tensors,
                                  const char *metadata_key, const char *metadata_value,
                                  qkv_error *error);

#endif
