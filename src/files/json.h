/**
 * JSON of untrusted files, parsed by jansson after a scan of our own.
 *
 * jansson takes up to 325 bytes a value and recurses up to 2048 levels, so a small file could take
 * much memory and stack. The scan, one linear pass that knows about strings, bounds depth and
 * number of values first. FORMAT for duplicate keys, NUL in names and invalid UTF-8; LIMIT for what
 * exceeds a limit.
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
    int max_array;          /* entries of an array; 0: no limit of their own */
    const char *raised_by;  /* for messages: what raises max_values; NULL: nothing does */
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

/** The same for a value of any type. */
qkv_status qkvi_json_load_any(const char *file, const void *bytes, size_t n_bytes,
                              const qkvi_json_limits *limits, json_t **root, qkv_error *error);

/** The scan alone, for texts that jansson does not parse: FORMAT above max_depth; LIMIT. */
qkv_status qkvi_json_scan(const char *file, const void *bytes, size_t n_bytes,
                          const qkvi_json_limits *limits, qkv_error *error);

/** A reader of an object. Messages call its fields "path.field"; path is "" at the top. */
typedef struct qkvi_json_reader {
    const char *file, *path;
    const json_t *object;
    qkv_error *error;
} qkvi_json_reader;

/** Sets "FILE: …" as printf does; its value is the status. */
#define QKVI_JSON_FAIL(reader, status, ...)                                                        \
    qkvi_file_fail((reader)->error, (status), (reader)->file, __VA_ARGS__)

/*
 * Checked fields. need_…: an absent field is an error. take_…: an absent field, or null, leaves
 * *value as it was. FORMAT for another JSON type. Integers must be in [0, 2^31) (FORMAT) and at
 * most limit (LIMIT). Strings live as long as the object and contain no NUL.
 */
qkv_status qkvi_json_need_int(const qkvi_json_reader *reader, const char *field, int64_t limit,
                              int64_t *value);
qkv_status qkvi_json_take_int(const qkvi_json_reader *reader, const char *field, int64_t limit,
                              int64_t *value);
/** A number, which is cut to limit: files write huge ones for "no limit". */
qkv_status qkvi_json_take_limit(const qkvi_json_reader *reader, const char *field, int64_t limit,
                                int64_t *value);
qkv_status qkvi_json_take_bool(const qkvi_json_reader *reader, const char *field, int *value);
qkv_status qkvi_json_take_real(const qkvi_json_reader *reader, const char *field, double *value);
qkv_status qkvi_json_need_string(const qkvi_json_reader *reader, const char *field,
                                 const char **value);
qkv_status qkvi_json_take_string(const qkvi_json_reader *reader, const char *field,
                                 const char **value);
/**
 * An integer, or a list of at most max_n integers: FORMAT, LIMIT. Absent: *n stays as it was; null:
 * *n = 0. Negative ones become -1.
 */
qkv_status qkvi_json_take_ids(const qkvi_json_reader *reader, const char *field, int64_t max_n,
                              int64_t *ids, int64_t *n);
/** *value is NULL if the field is absent. */
qkv_status qkvi_json_take_object(const qkvi_json_reader *reader, const char *field,
                                 const json_t **value);
qkv_status qkvi_json_take_array(const qkvi_json_reader *reader, const char *field,
                                const json_t **value);

/**
 * Walking through the members of an object by their bytes, for code that needs their offsets and
 * spelling, which a parser of values does not give. Values are skipped and not checked.
 */

/** Bytes [begin, end) of a text. A key's include its quotes. */
typedef struct qkvi_json_span {
    size_t begin, end;
} qkvi_json_span;

typedef qkv_status qkvi_json_visit(void *user, qkvi_json_span key, qkvi_json_span value);

/**
 * Calls visit for each member of the object that begins at text[*at], in order, until visit returns
 * something other than QKV_OK, which is returned. *at becomes the offset after its '}' or, with
 * *is_broken = 1, that of a syntax error.
 */
qkv_status qkvi_json_walk(const char *text, size_t n, size_t *at, int *is_broken,
                          qkvi_json_visit *visit, void *user);

/** The offset after the string whose opening quote is text[at], or n. */
size_t qkvi_json_skip_string(const char *text, size_t n, size_t at);

/** The offset of the first byte from `at` on that is not JSON white space, or n. */
size_t qkvi_json_skip_blanks(const char *text, size_t n, size_t at);

/**
 * Integers beyond 64 bits, which Python writes (transformers: a length without a limit is
 * 1000000000000000019884624838656), and for which jansson refuses a whole text. *wide is a copy of
 * text in which they are reals of about the same value, in as many bytes, so that offsets in
 * messages stay right; to be freed. NULL: text has no such integer. MEMORY.
 */
qkv_status qkvi_json_widen(const char *file, const char *text, size_t n, char **wide,
                           qkv_error *error);

/** Adds a JSON file, and takes the reference of root. MEMORY, also if root is NULL; IO. */
QKV_NODISCARD qkv_status qkvi_files_add_json(qkvi_files *files, const char *name, json_t *root,
                                             qkv_error *error);

#endif
