/* Rows of an array that a file holds: vectors in place of those of a model. */
#ifndef QKV_CLI_COMMON_ROWS_H
#define QKV_CLI_COMMON_ROWS_H

#include <qkv/files.h>

/*
 * Any array that an option names: a file as qkv_array_read has it, or "-", a .npy or text on
 * standard input, which can be read only once.
 */
qkv_status array_read(const char *path, qkv_array_type floats, qkv_array **array, qkv_error *error);

/* What an array of one dimension is. */
enum rows_vector { VECTOR_IS_WRONG, VECTOR_IS_ROW, VECTOR_IS_COLUMN };

/*
 * Reads an array of floats or integers of [n][channels], with dimensions of 1 before it at most: n
 * and channels into shape. channels: what an error calls them. *array is to be freed after an
 * error, too.
 */
qkv_status rows_read(const char *path, const char *channels, enum rows_vector vector,
                     qkv_array **array, int64_t shape[2], qkv_error *error);

/* Integers become floats, rounded once, in place. What is none of both stays. */
void rows_to_floats(qkv_array *array);

/* The product of two vectors, in double precision. */
double rows_product(const float *a, const float *b, int64_t n);

/*
 * Names of n rows that have none: "q0", "q1", … with `before` "q", every step-th of them. To be
 * freed by session_labels_free; NULL: no memory.
 */
char **rows_labels(const char *before, int64_t n, int64_t step);

#endif
