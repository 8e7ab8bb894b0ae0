/**
 * A qkv_array in the making: what the readers of .npy, .npz, .csv and .safetensors fill.
 */
#ifndef QKVI_FILES_ARRAY_H
#define QKVI_FILES_ARRAY_H

#include "files/base.h"
#include "files/elems.h"
#include "qkv/files.h"

/** Bytes that come in order, n_bytes of them. */
typedef struct qkvi_byte_source {
    const char *name; /* for messages, escaped */
    uint64_t n_bytes;
    qkv_status (*take)(void *user, void *destination, size_t n, qkv_error *error);
    void *user;
} qkvi_byte_source;

/** An array without values yet; *array is to be freed after a failure. */
qkv_status qkvi_array_make(qkv_array_type type, int rank, const int64_t *shape, size_t n_elems,
                           qkv_array **array, qkv_error *error);
/** Stored elements to the array's own. LIMIT: an integer above 2^63 - 1. */
qkv_status qkvi_array_convert(const char *file, qkvi_elem_type type, const void *stored, size_t n,
                              qkv_array *array, qkv_error *error);

/** The type that elements get in memory; floats: what floats become. */
qkv_array_type qkvi_array_type_of(qkvi_elem_type type, qkv_array_type floats);

/** Bytes of an element in memory. */
size_t qkvi_array_width(qkv_array_type type);

/** Elements as a file has them. */
typedef struct qkvi_stored_elems {
    qkvi_elem_type type;
    int is_swapped; /* big-endian */
    size_t n;
} qkvi_stored_elems;

/**
 * Takes stored elements, swaps them if need be, and converts. MEMORY, LIMIT, and what take says.
 */
qkv_status qkvi_array_fill(const qkvi_byte_source *bytes, const qkvi_stored_elems *stored,
                           qkv_array *array, qkv_error *error);

#endif
