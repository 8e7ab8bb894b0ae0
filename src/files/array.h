/** Making a qkv_array, for the readers of .npy, .npz, .csv and .safetensors. */
#ifndef QKVI_FILES_ARRAY_H
#define QKVI_FILES_ARRAY_H

#include "files/base.h"
#include "files/elems.h"
#include "qkv/files.h"

/** A stream of n_bytes bytes; take gives the next n. */
typedef struct qkvi_byte_source {
    const char *name; /* for messages, escaped */
    uint64_t n_bytes;
    qkv_status (*take)(void *user, void *destination, size_t n, qkv_error *error);
    void *user;
} qkvi_byte_source;

/** Allocates an array without values; *array is to be freed after a failure, too. */
qkv_status qkvi_array_make(qkv_array_type type, int rank, const int64_t *shape, size_t n_elems,
                           qkv_array **array, qkv_error *error);
/** Converts stored elements to those of the array. LIMIT: an integer above 2^63 - 1. */
qkv_status qkvi_array_convert(const char *file, qkvi_elem_type type, const void *stored, size_t n,
                              qkv_array *array, qkv_error *error);

/** The type of stored elements in memory; floats: the type that floats of any width become. */
qkv_array_type qkvi_array_type_of(qkvi_elem_type type, qkv_array_type floats);

/** Bytes of an element in memory. */
size_t qkvi_array_width(qkv_array_type type);

/** The elements in a file. */
typedef struct qkvi_stored_elems {
    qkvi_elem_type type;
    int is_swapped; /* big-endian */
    size_t n;
} qkvi_stored_elems;

/** Reads stored elements from bytes into the array. MEMORY, LIMIT, and the errors of take. */
qkv_status qkvi_array_fill(const qkvi_byte_source *bytes, const qkvi_stored_elems *stored,
                           qkv_array *array, qkv_error *error);

#endif
