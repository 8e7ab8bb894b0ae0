/**
 * Values of keys, by the type that a reader wants. A key of another type is FORMAT, naming both.
 * What was asked for is marked, so that what was not can be named.
 */
#ifndef QKVI_FILES_GGUF_KEYS_H
#define QKVI_FILES_GGUF_KEYS_H

#include "files/gguf_container.h"

typedef struct qkvi_gguf_keys {
    const qkvi_gguf_file *file;
    bool *asked; /* [n_keys], or NULL */
    qkv_error *error;
} qkvi_gguf_keys;

/** "FILE: …", as printf has it; is the status. */
#define QKVI_GGUF_FAIL(keys, status, ...)                                                          \
    qkvi_file_fail((keys)->error, (status), (keys)->file->source.name, __VA_ARGS__)

/** Marked; NULL if there is none of that name. */
const qkvi_gguf_key *qkvi_gguf_ask(const qkvi_gguf_keys *keys, const char *name);

/*
 * take_…: absent leaves *value as it was. An integer is of any integer type and fits i64; a real is
 * an f32, an f64 or an integer.
 */
qkv_status qkvi_gguf_take_int(const qkvi_gguf_keys *keys, const char *name, int64_t *value);
/** An f32 is the shortest decimal number that is the same f32: 1e-05, not 9.999999747378752e-06. */
qkv_status qkvi_gguf_take_real(const qkvi_gguf_keys *keys, const char *name, double *value);
qkv_status qkvi_gguf_take_bool(const qkvi_gguf_keys *keys, const char *name, bool *value);
/** A string without NUL and of valid UTF-8, copied: free it. Absent: NULL. */
qkv_status qkvi_gguf_take_text(const qkvi_gguf_keys *keys, const char *name, char **value);

/** An array whose elements are of that kind, or NULL: absent. */
qkv_status qkvi_gguf_take_array(const qkvi_gguf_keys *keys, const char *name, qkvi_gguf_kind kind,
                                const qkvi_gguf_key **array);
/** Element i of an array of integers or bools, and of reals. */
qkv_status qkvi_gguf_int_of(const qkvi_gguf_keys *keys, const qkvi_gguf_key *key, uint64_t i,
                            int64_t *value);
double qkvi_gguf_real_of(const qkvi_gguf_file *file, const qkvi_gguf_key *key, uint64_t i);

/** The shortest decimal number that is this float. */
double qkvi_gguf_shortest(float value);

/** A value as text, cut to size: of a long array its beginning. */
void qkvi_gguf_show(const qkvi_gguf_file *file, const qkvi_gguf_key *key, char *text,
                    size_t text_bytes);

#endif
