/** Arrays as text, F.csv and F.tsv: see qkv_array_read. */
#ifndef QKVI_FILES_CSV_ARRAY_H
#define QKVI_FILES_CSV_ARRAY_H

#include "files/npy.h"

/**
 * The array [lines, fields] of a file; *array is to be freed after a failure. FORMAT, LIMIT, IO.
 */
qkv_status qkvi_csv_read_array(const char *path, qkv_array_type floats, qkv_array **array,
                               qkv_error *error);

/** The same of bytes in memory, which are unquoted in place and followed by a NUL. */
qkv_status qkvi_csv_parse(const char *name, char *bytes, size_t n_bytes, qkv_array_type floats,
                          qkv_array **array, qkv_error *error);

#endif
