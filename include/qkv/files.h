/**
 * qkv files: arrays (.npy, .npz, .safetensors, .csv), tables of keys and values, and whole-file
 * writes; tensors of a file: their list, and an audit.
 *
 *     qkv_array *q = NULL;
 *     if (qkv_array_read("q.npy", QKV_ARRAY_F32, &q, &error) == QKV_OK)
 *         printf("%d dimensions\n", q->rank);
 *     qkv_array_free(q);
 *
 * Every byte of a file is checked. Messages name the file, the field, the value and the rule.
 * Tables and arrays as text may be read from pipes. All other files must be regular.
 * Every object is freed by its own function, which accepts NULL.
 */
#ifndef QKV_FILES_H
#define QKV_FILES_H

#include "qkv/qkv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Arrays ---------------------------------------------------------------------------------- */

typedef enum qkv_array_type {
    QKV_ARRAY_F32,
    QKV_ARRAY_BOOL,
    QKV_ARRAY_I64,
    /** uint16_t, as in qkv_dtype. It is written as f32, because .npy has no bf16. */
    QKV_ARRAY_BF16,
    QKV_ARRAY_F16,
    /** Never read. Written as they are, as a file of its own kind. */
    QKV_ARRAY_BYTES
} qkv_array_type;

/**
 * A dense array in row-major order. Floats of other widths are converted when they are read, and
 * integers become i64.
 */
typedef struct qkv_array {
    qkv_array_type type;
    int rank;
    int64_t shape[8];
    int64_t n_elems;
    void *data;
    /**
     * Of an array that was read, its type in the file: "F64", "F16", "U8" …, as in
     * qkv_tensor_entry. NULL for text. Not read by what writes arrays.
     */
    const char *stored;
} qkv_array;

/**
 * Reads F.npy, F.safetensors:NAME or F.npz:NAME, the array that numpy's load knows as NAME.
 * A zip may be stored or deflated. It is checked whole, and so is the checksum of what is read.
 *
 * F.csv and F.tsv are arrays [lines, fields] of text, with separators, quotes and limits as
 * those of a qkv_table. Fields are numbers, with inf and nan, or all of them are true or false. If
 * all numbers are whole, without a point and at most 2^53, they are integers. A first line without
 * any value has the names of the columns, and is skipped.
 *
 * @param floats  QKV_ARRAY_F32, QKV_ARRAY_BF16 or QKV_ARRAY_F16: what floats of every width become.
 *                They are rounded once, to nearest even, where they do not fit. An .npy of the type
 *                `<V2`, which ml_dtypes writes for bf16, is read with QKV_ARRAY_BF16 only.
 */
QKV_API QKV_NODISCARD qkv_status qkv_array_read(const char *path, qkv_array_type floats,
                                                qkv_array **array, qkv_error *error);
/**
 * Reads an array from bytes in memory, such as those of a pipe. They are what a .npy holds if they
 * begin so, and else what a .csv or .tsv holds. name is for messages.
 * @return as qkv_array_read; QKV_ERR_UNSUPPORTED for a .npz.
 */
QKV_API QKV_NODISCARD qkv_status qkv_array_parse(const char *name, const void *bytes,
                                                 size_t n_bytes, qkv_array_type floats,
                                                 qkv_array **array, qkv_error *error);
QKV_API void qkv_array_free(qkv_array *array);

/**
 * Reads a part of the rows of F.npy, and no other rows: of n_parts equal ones the part-th, from 0.
 * Rows are those of the dimension before the last. Part p begins with row floor(n p / n_parts). So
 * each of several processes can read its piece of a sequence [.., token, channel].
 *
 * @param floats  as for qkv_array_read.
 * @param array   receives an array of the part's rows, which may be none; NULL after an error.
 * @param rows    receives the first row of the part, and the number of rows of the whole array.
 * @return QKV_ERR_SHAPE for an array of fewer than two dimensions; QKV_ERR_UNSUPPORTED for one in
 *         Fortran order; else as qkv_array_read.
 */
QKV_API QKV_NODISCARD qkv_status qkv_array_read_part(const char *path, qkv_array_type floats,
                                                     int64_t part, int64_t n_parts,
                                                     qkv_array **array, int64_t rows[2],
                                                     qkv_error *error);

/**
 * Writes F.npy, of version 1, or F.npz:NAME, a .npz with this array alone, as qkv_file_write does.
 */
QKV_API QKV_NODISCARD qkv_status qkv_array_write(const char *path, const qkv_array *array,
                                                 qkv_error *error);

/**
 * Writes n arrays to n files. Those of F.npz:NAME with the same F go into one new file, in their
 * order, with the bytes of numpy.savez.
 *
 * Files appear together: all of them are written beside their places before the first one is put
 * there. A failure such as a full disk leaves every old file as it was. Only where a written file
 * cannot be put in its place may those before it be new already.
 */
QKV_API QKV_NODISCARD qkv_status qkv_arrays_write(int n, const char *const *paths,
                                                  const qkv_array *const *arrays, qkv_error *error);

/* ---- Tables ---------------------------------------------------------------------------------- */

/**
 * A table of keys and values: one line `key,value` for each. The text is UTF-8, with or without a
 * byte order mark. Lines end in LF or CRLF, and fields are those of RFC 4180.
 * The separator is a tab if the first line has one outside of quotes, else a comma, else a
 * semicolon. Spaces around keys and numbers are ignored, and so are empty lines.
 *
 *   Values   The other fields are decimal numbers, as many in every line. A single one may be a
 *            list instead, of numbers between spaces, commas or semicolons: "1, 2, 3" or "[1, 2,
 *            3]".
 *   Names    The first line has the names of the columns if none of its values begins like a
 *            number: a digit, a sign, a point, "[", nan or inf.
 *   Limits   64 MiB, 1,000,000 lines, 4,096 values a line, 64 KiB a field, 63 bytes a number.
 *   Errors   QKV_ERR_FORMAT with line and column (both from 1, in bytes) and the rule;
 *            QKV_ERR_LIMIT; QKV_ERR_IO; QKV_ERR_MEMORY.
 */
typedef struct qkv_table {
    int64_t n_rows, n_values;
    /** [n_rows], as they are in the file: not fit to print. */
    char **keys;
    /** [n_values]; NULL if the table has none. */
    char **names;
    /** [n_rows][n_values], rounded once. */
    float *values;
} qkv_table;

QKV_API QKV_NODISCARD qkv_status qkv_table_read(const char *path, qkv_table **table,
                                                qkv_error *error);
/** Reads a table from bytes in memory. name is for messages. */
QKV_API QKV_NODISCARD qkv_status qkv_table_parse(const char *name, const void *bytes,
                                                 size_t n_bytes, qkv_table **table,
                                                 qkv_error *error);
QKV_API void qkv_table_free(qkv_table *table);

/* ---- Whole files ----------------------------------------------------------------------------- */

/**
 * Writes a file whole or not at all, as everything here that writes files does. The file has no
 * name until it is complete and on the disk (or a temporary one beside path, where the file system
 * needs one). Then it replaces the old one and takes its permissions. Links are followed and kept.
 * A pipe or a device is written to directly.
 */
QKV_API QKV_NODISCARD qkv_status qkv_file_write(const char *path, const void *bytes, size_t n_bytes,
                                                qkv_error *error);
/** Whether a file could be written to path now, to be asked before a long computation. */
QKV_API QKV_NODISCARD qkv_status qkv_file_writable(const char *path, qkv_error *error);

/* ---- What is in a file ----------------------------------------------------------------------- */

/** A tensor of a .safetensors, .npz or .gguf file as it is stored. It may grow at its end. */
typedef struct qkv_tensor_entry {
    /** Escaped for printing, cut at 400 bytes. */
    const char *name;
    /**
     * "F32", "BF16", "I64" …; of .gguf also "Q4_K" and its like. Types of .npz without a name here
     * are "V2": two bytes each.
     */
    const char *type;
    int rank;
    int64_t shape[8];
    /**
     * Of a GGUF file, the bytes that an opened model keeps of it with QKV_WEIGHTS_FILE: its blocks
     * as they lie, or floats. Else 0.
     */
    int64_t opened_bytes;
} qkv_tensor_entry;

/**
 * Lists the tensors of a file: a .safetensors, all files that a .safetensors.index.json names, a
 * .npz, or a GGUF file with those that follow it. That is a path that ends in .gguf, or
 * ollama:NAME[:TAG]. Headers are checked first. visit is called in byte order of the names, and an
 * entry lives until it returns.
 */
QKV_API QKV_NODISCARD qkv_status qkv_tensor_list(const char *path,
                                                 void (*visit)(void *user,
                                                               const qkv_tensor_entry *entry),
                                                 void *user, qkv_error *error);

/** A key of a GGUF file. It may grow at its end. */
typedef struct qkv_key_entry {
    /** Escaped for printing, cut at 400 bytes. */
    const char *name;
    /** "u32", "string", "array of f32" … */
    const char *type;
    /** Elements of an array; 1. */
    int64_t n;
    /** The value, escaped for printing; of long arrays and strings the beginning. */
    const char *text;
} qkv_key_entry;

/**
 * Lists the keys of a GGUF file, as qkv_tensor_list lists its tensors.
 * @return QKV_OK; the errors of the file; QKV_ERR_ARGUMENT if it is no GGUF file; QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_key_list(const char *path,
                                              void (*visit)(void *user, const qkv_key_entry *entry),
                                              void *user, qkv_error *error);

/**
 * A fault that a strict reader finds in a .safetensors file, though other readers may load it. The
 * struct may grow at its end.
 */
typedef struct qkv_finding {
    /** "duplicate-key", "hole" …: docs/hostile-inputs.md has them all. */
    const char *rule;
    /** Escaped for printing, cut at 400 bytes; NULL if the fault is not of one tensor. */
    const char *tensor;
    /** What is wrong, escaped for printing. */
    const char *text;
    /** Where it is in the file. */
    uint64_t offset;
} qkv_finding;

/** Made by qkv_audit_init(). */
typedef struct qkv_audit {
    size_t struct_size;
    uint64_t n_bytes;
    int64_t n_tensors, n_findings;
} qkv_audit;
QKV_DEFINE_INIT(qkv_audit)

/**
 * Reads a whole .safetensors file and calls visit for every fault, as far as the file can be read.
 * A finding lives until visit returns. Every file without findings opens.
 * @return QKV_OK, with findings or without; QKV_ERR_IO; QKV_ERR_MEMORY; QKV_ERR_LIMIT if the header
 *         is above our limits; QKV_ERR_ARGUMENT; QKV_ERR_VERSION.
 */
QKV_API QKV_NODISCARD qkv_status qkv_tensor_audit(const char *path,
                                                  void (*visit)(void *user,
                                                                const qkv_finding *finding),
                                                  void *user, qkv_audit *audit, qkv_error *error);

#ifdef __cplusplus
}
#endif
#endif
