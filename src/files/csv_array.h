/** Reading arrays from text, F.csv and F.tsv: see qkv_array_read. */
#ifndef QKVI_FILES_CSV_ARRAY_H
#define QKVI_FILES_CSV_ARRAY_H

#include "files/npy.h"

/**
 * Reads the array [lines, fields] of a file; *array is to be freed after a failure, too. FORMAT,
 * LIMIT, IO.
 */
qkv_status qkvi_csv_read_array(const char *path, qkv_array_type floats, qkv_array **array,
                               qkv_error *error);

/** The same for bytes in memory, followed by a NUL; quotes are removed in place. */
qkv_status qkvi_csv_parse(const char *name, char *bytes, size_t n_bytes, qkv_array_type floats,
                          qkv_array **array, qkv_error *error);

#endif
