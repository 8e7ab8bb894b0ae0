/**
 * .npy: one array of numpy. "\x93NUMPY" | version 1…3 | header length | a Python dict literal |
 * data.
 *
 * The parser of the header reads exactly what numpy writes: three keys, plain strings, True or
 * False, a tuple of integers. The size that it claims is compared with the bytes that are there
 * before anything is allocated.
 *
 * The bytes come in order, from a file or from an entry of a zip (npz.c).
 */
#ifndef QKVI_FILES_NPY_H
#define QKVI_FILES_NPY_H

#include "files/array.h"
#include "files/file.h"
#include "files/zip.h"

enum { QKVI_NPY_MAX_RANK = 8 };

typedef struct qkvi_npy {
    qkvi_elem_type type;
    int big_endian, fortran_order;
    int untyped; /* descr is `<V2`, which may be bf16: the caller decides */
    int rank;
    int64_t shape[QKVI_NPY_MAX_RANK];
    size_t n_elems;
    uint64_t data_begin;
} qkvi_npy;

/**
 * Reads and checks the header; n_elems elements follow it in bytes. FORMAT, LIMIT, UNSUPPORTED,
 * MEMORY, and the errors of take.
 */
qkv_status qkvi_npy_take_header(const qkvi_byte_source *bytes, qkvi_npy *npy, qkv_error *error);
/** Reads a whole array; floats: see qkv_array_read. *array is to be freed after a failure, too. */
qkv_status qkvi_npy_take_array(const qkvi_byte_source *bytes, qkv_array_type floats,
                               qkv_array **array, qkv_error *error);

/** Reads and checks the header of a whole file. FORMAT, LIMIT, UNSUPPORTED, IO, MEMORY. */
qkv_status qkvi_npy_read_header(const qkvi_source *source, qkvi_npy *npy, qkv_error *error);

/** Reads the array of a file; *array is to be freed after a failure, too. */
qkv_status qkvi_npy_read_array(const char *path, qkv_array_type floats, qkv_array **array,
                               qkv_error *error);

enum { QKVI_NPY_HEADER = 512 }; /* enough for 8 dimensions of 19 digits */

/** Makes a header of version 1, padded so that the data begins at a multiple of 64 bytes. */
void qkvi_npy_make_header(const char *descr, int rank, const int64_t *shape,
                          char header[QKVI_NPY_HEADER], size_t *n_bytes);

/**
 * .npz: a zip of .npy files, as numpy.savez and savez_compressed write it. The array NAME is the
 * entry NAME.npy. Entries with other names are not arrays.
 */

/** Reads an array by its name, or by that of its entry. ARGUMENT if there is none. */
qkv_status qkvi_npz_read(const char *path, const char *name, qkv_array_type floats,
                         qkv_array **array, qkv_error *error);

typedef void qkvi_visit_entry(void *user, const qkv_tensor_entry *entry);

/** Visits every array, in byte order of their names; reads no more than their headers. */
qkv_status qkvi_npz_list(const char *path, qkvi_visit_entry *visit, void *user, qkv_error *error);

/** The colon of F.npz:NAME, or NULL. */
const char *qkvi_npz_colon(const char *path);

#endif
