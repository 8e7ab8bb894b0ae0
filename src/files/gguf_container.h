/**
 * Reading the container of a GGUF file, version 2 or 3, from untrusted bytes:
 *
 *     "GGUF" | u32 version | i64 tensors | i64 keys | keys | infos of tensors | padding | data
 *
 * Numbers are little-endian. A file that opens has been checked whole: every length, count and
 * product is compared with the bytes that are there before memory is allocated, every name is
 * unique, and tensors are in order without gaps, as ggml requires. What keys mean is not known
 * here.
 */
#ifndef QKVI_FILES_GGUF_CONTAINER_H
#define QKVI_FILES_GGUF_CONTAINER_H

#include "files/file.h"
#include "files/gguf_types.h"

typedef enum qkvi_gguf_kind {
    QKVI_GGUF_U8_VALUE,
    QKVI_GGUF_I8_VALUE,
    QKVI_GGUF_U16_VALUE,
    QKVI_GGUF_I16_VALUE,
    QKVI_GGUF_U32_VALUE,
    QKVI_GGUF_I32_VALUE,
    QKVI_GGUF_F32_VALUE,
    QKVI_GGUF_BOOL_VALUE,
    QKVI_GGUF_TEXT_VALUE,
    QKVI_GGUF_ARRAY_VALUE,
    QKVI_GGUF_U64_VALUE,
    QKVI_GGUF_I64_VALUE,
    QKVI_GGUF_F64_VALUE,
    QKVI_GGUF_N_KINDS
} qkvi_gguf_kind;

/** For messages: "u32", "string". */
const char *qkvi_gguf_kind_name(qkvi_gguf_kind kind);

typedef struct qkvi_gguf_key {
    char *name;          /* without NUL, raw: escape before printing */
    qkvi_gguf_kind kind; /* of the value, or of an array's elements */
    bool is_array;
    uint64_t count; /* elements of an array; else 1 */
    uint64_t at;    /* offset in `header` of the value, or of the first element */
} qkvi_gguf_key;

enum { QKVI_GGUF_MAX_RANK = 4 };

typedef struct qkvi_gguf_tensor {
    char *name; /* without NUL, raw */
    const qkvi_gguf_type *type;
    int rank;
    int64_t shape[QKVI_GGUF_MAX_RANK]; /* as in torch: the last dimension is contiguous */
    uint64_t n_elems;
    uint64_t begin, n_bytes; /* in its file */
    int64_t part;            /* the index of its file, if there are several (gguf_parts.h) */
} qkvi_gguf_tensor;

typedef struct qkvi_gguf_file {
    qkvi_source source;
    uint8_t *header; /* all before the data */
    size_t n_header;
    qkvi_gguf_key *keys; /* in byte order of their names */
    int64_t n_keys;
    qkvi_gguf_tensor *tensors; /* in byte order of their names */
    int64_t n_tensors;
} qkvi_gguf_file;

/**
 * Reads a file. It owns the source then, even after a failure. FORMAT, LIMIT, UNSUPPORTED (version,
 * byte order, a type that the format does not have), IO, MEMORY. *file is NULL on error.
 */
qkv_status qkvi_gguf_read(qkvi_source *source, qkvi_gguf_file **file, qkv_error *error);
void qkvi_gguf_file_close(qkvi_gguf_file *file);

/** NULL if there is none of that name. */
const qkvi_gguf_key *qkvi_gguf_key_of(const qkvi_gguf_file *file, const char *name);

/** A string, which does not end with a NUL and may contain some. */
typedef struct qkvi_gguf_text {
    const char *bytes;
    size_t n;
} qkvi_gguf_text;

/** The string at offset *at of `header`; moves *at to the end of it. */
qkvi_gguf_text qkvi_gguf_text_at(const qkvi_gguf_file *file, uint64_t *at);

#endif
