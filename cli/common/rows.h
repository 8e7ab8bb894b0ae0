/* Arrays of vectors from files, in place of vectors from a model. */
#ifndef QKV_CLI_COMMON_ROWS_H
#define QKV_CLI_COMMON_ROWS_H

#include <qkv/files.h>
#include <stdbool.h>

/*
 * Reads the array that an option names: a file (qkv_array_read), or "-", a .npy or text on standard
 * input, which can be read only once. quiet: no remark about a byte order mark (lines.h).
 */
qkv_status array_read(const char *path, bool quiet, qkv_array_type floats, qkv_array **array,
                      qkv_error *error);

/* How an array of one dimension is read: not at all, as [1][channels], or as [n][1]. */
enum rows_vector { VECTOR_IS_WRONG, VECTOR_IS_ROW, VECTOR_IS_COLUMN };

/*
 * Reads an array [n][channels] of floats or integers; more dimensions before these must be 1. Sets
 * shape to n and channels. channels: the word for them in errors. The caller frees *array, after an
 * error too.
 */
qkv_status rows_read(const char *path, bool quiet, const char *channels, enum rows_vector vector,
                     qkv_array **array, int64_t shape[2], qkv_error *error);

/* Converts integers to floats in place, each rounded once. Other types are left as they are. */
void rows_to_floats(qkv_array *array);

/* The product of two vectors, in double precision. */
double rows_product(const float *a, const float *b, int64_t n);

/*
 * n names for rows without names: `before` and a number, which is a multiple of step: "q0", "q1",
 * … for before "q" and step 1. session_labels_free frees them; NULL: no memory.
 */
char **rows_labels(const char *before, int64_t n, int64_t step);

#endif
