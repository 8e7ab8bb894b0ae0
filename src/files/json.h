/**
 * JSON of untrusted files, by jansson behind a scan of our own.
 *
 * jansson spends up to 325 bytes a value and recurses 2048 levels deep, so a small file can cost
 * much memory and stack. One linear pass that knows strings bounds depth and number of values
 * before jansson sees a byte. Duplicate keys, NUL in names and invalid UTF-8 are errors of class
 * FORMAT; what exceeds a limit is LIMIT.
 */
#ifndef QKVI_FILES_JSON_H
#define QKVI_FILES_JSON_H

#include <jansson.h>

#include "files/base.h"
#include "files/file.h"

typedef struct qkvi_json_limits {
    size_t max_bytes;
    int64_t max_values;     /* values, keys not counted; an empty container counts twice */
    int64_t max_containers; /* objects and arrays; 0: no limit of their own */
    int max_depth;          /* {"a":[1]} has depth 2 */
    int max_array;          /* entries of an array; 0: no limit of its own */
    const char *raised_by;  /* what raises max_values, for messages; NULL: nothing does */
    int strict_ends;        /* 1: starts with '{', and after its '}' only spaces (safetensors) */
    int wide_integers;      /* 1: integers beyond 64 bits are reals (json_walk.c), not errors */
} qkvi_json_limits;

/**
 * For config.json and tokenizer_config.json: 1 MiB, 20,000 values, depth 16. tokenizer.json needs
 * more.
 */
extern const qkvi_json_limits qkvi_json_limits_config;

/**
 * Parses an object. file is the name used in messages.
 * @return QKV_OK with *root to be freed by json_decref; FORMAT; LIMIT; MEMORY. *root is NULL on
 * error.
 */
qkv_status qkvi_json_load(const char *file, const void *bytes, size_t n_bytes,
                          const qkvi_json_limits *limits, json_t **root, qkv_error *error);

/** The same, whatever kind of value it is. */
qkv_status qkvi_json_load_any(const char *file, const void *bytes, size_t n_bytes,
                              const qkvi_json_limits *limits, json_t **root, qkv_error *error);

/** The scan alone, for those that parse by other means: FORMAT above max_depth; LIMIT. */
qkv_status qkvi_json_scan(const char *file, const void *bytes, size_t n_bytes,
                          const qkvi_json_limits *limits, qkv_error *error);

/** An object being read: its fields are named "path.field" in messages (path "" at the top). */
typedef struct qkvi_json_reader {
    const char *file, *path;
    const json_t *object;
    qkv_error *error;
} qkvi_json_reader;

/** "FILE: …", as printf has it; is the status. */
#define QKVI_JSON_FAIL(reader, status, ...)                                                        \
    qkvi_file_fail((reader)->error, (status), (reader)->file, __VA_ARGS__)

/*
 * Checked fields. need_…: absent is an error. take_…: absent or null leaves *value as it was. Of
 * another JSON type: FORMAT. Integers must lie in [0, 2^31) (FORMAT) and be at most limit (LIMIT).
 * Strings live as long as the object and hold no NUL.
 */
qkv_status qkvi_json_need_int(const qkvi_json_reader *reader, const char *field, int64_t limit,
                              int64_t *value);
qkv_status qkvi_json_take_int(const qkvi_json_reader *reader, const char *field, int64_t limit,
                              int64_t *value);
/** A number of which more than limit is as much as limit: no limit at all. */
qkv_status qkvi_json_take_limit(const qkvi_json_reader *reader, const char *field, int64_t limit,
                                int64_t *value);
qkv_status qkvi_json_take_bool(const qkvi_json_reader *reader, const char *field, int *value);
qkv_status qkvi_json_take_real(const qkvi_json_reader *reader, const char *field, double *value);
qkv_status qkvi_json_need_string(const qkvi_json_reader *reader, const char *field,
                                 const char **value);
qkv_status qkvi_json_take_string(const qkvi_json_reader *reader, const char *field,
                                 const char **value);
/**
 * An integer, or a list of at most max_n: FORMAT, LIMIT. Absent: *n stays as it was; null: 0. All
 * that are below 0 become -1.
 */
qkv_status qkvi_json_take_ids(const qkvi_json_reader *reader, const char *field, int64_t max_n,
                              int64_t *ids, int64_t *n);
/** take_object and take_array give NULL when absent. */
qkv_status qkvi_json_take_object(const qkvi_json_reader *reader, const char *field,
                                 const json_t **value);
qkv_status qkvi_json_take_array(const qkvi_json_reader *reader, const char *field,
                                const json_t **value);

/**
 * Walking an object of a JSON text by its bytes, for those who want to know where things are and
 * how they are spelled, which no parser of values tells. Values are skipped, not understood: what
 * is no JSON inside them is left to who parses them.
 */

/** Bytes [begin, end) of a text. A key's include its quotes. */
typedef struct qkvi_json_span {
    size_t begin, end;
} qkvi_json_span;

typedef qkv_status qkvi_json_visit(void *user, qkvi_json_span key, qkvi_json_span value);

/**
 * Calls visit for each member of the object that begins at text[*at], in order, until visit returns
 * something other than QKV_OK, which is returned. *at becomes the place after its '}', or with
 * *is_broken = 1 the place where no JSON can be.
 */
qkv_status qkvi_json_walk(const char *text, size_t n, size_t *at, int *is_broken,
                          qkvi_json_visit *visit, void *user);

/** The place after the string whose opening quote is text[at], or n. */
size_t qkvi_json_skip_string(const char *text, size_t n, size_t at);

/** The first place from at that is no JSON blank, or n. */
size_t qkvi_json_skip_blanks(const char *text, size_t n, size_t at);

/**
 * Integers beyond 64 bits. Python writes them (transformers: a length without a limit is
 * 1000000000000000019884624838656), and jansson refuses a text that has one. Here they become reals
 * of about the same value, in as many bytes, so that a field that is not needed stops no reader,
 * and places in messages stay right.
 */

/** A copy of text with such reals, to be freed; NULL: text has no such integer. MEMORY. */
qkv_status qkvi_json_widen(const char *file, const char *text, size_t n, char **wide,
                           qkv_error *error);

/** Adds a file of JSON. Takes root, which may be NULL for want of memory: MEMORY; IO. */
QKV_NODISCARD qkv_status qkvi_files_add_json(qkvi_files *files, const char *name, json_t *root,
                                             qkv_error *error);

#endif
