/**
 * .npy: one array of numpy. "\x93NUMPY" | version 1…3 | header length | a Python dict literal |
 * data.
 *
 * The header is read by a parser of exactly what numpy writes: three keys, plain strings, True or
 * False, a tuple of integers. The size that it claims must be the size that is there before
 * anything is allocated.
 *
 * An array is a file of its own, or an entry of a zip (npz.c): bytes that come in order.
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
    int untyped; /* `<V2`: type is bf16 if the caller says so */
    int rank;
    int64_t shape[QKVI_NPY_MAX_RANK];
    size_t n_elems;
    uint64_t data_begin;
} qkvi_npy;

/**
 * Takes and checks the header; what is left to be taken are n_elems elements. FORMAT, LIMIT,
 * UNSUPPORTED, MEMORY, and what take says.
 */
qkv_status qkvi_npy_take_header(const qkvi_byte_source *bytes, qkvi_npy *npy, qkv_error *error);
/** Takes the whole array; floats: see qkv_array_read. *array is to be freed after a failure. */
qkv_status qkvi_npy_take_array(const qkvi_byte_source *bytes, qkv_array_type floats,
                               qkv_array **array, qkv_error *error);

/** Reads and checks the header of a whole file. FORMAT, LIMIT, UNSUPPORTED, IO, MEMORY. */
qkv_status qkvi_npy_read_header(const qkvi_source *source, qkvi_npy *npy, qkv_error *error);

/** The array of a file; *array is to be freed after a failure. */
qkv_status qkvi_npy_read_array(const char *path, qkv_array_type floats, qkv_array **array,
                               qkv_error *error);

enum { QKVI_NPY_HEADER = 512 }; /* room for any that we write: 8 dimensions of 19 digits */

/** A version 1 header, padded so that the data begins at a multiple of 64. */
void qkvi_npy_make_header(const char *descr, int rank, const int64_t *shape,
                          char header[QKVI_NPY_HEADER], size_t *n_bytes);

/**
 * .npz: arrays by name, each a .npy file in a zip, as numpy.savez and savez_compressed write them.
 * The array NAME is the entry NAME.npy. Other entries are no arrays.
 */

/** The array of that name, or of the entry of that name. ARGUMENT if there is none. */
qkv_status qkvi_npz_read(const char *path, const char *name, qkv_array_type floats,
                         qkv_array **array, qkv_error *error);

typedef void qkvi_visit_entry(void *user, const qkv_tensor_entry *entry);

/** Visits every array, in byte order of their names; reads no more than their headers. */
qkv_status qkvi_npz_list(const char *path, qkvi_visit_entry *visit, void *user, qkv_error *error);

/** Where the colon of F.npz:NAME is, or NULL. */
const char *qkvi_npz_colon(const char *path);

#endif
