/**
 * Reading values of keys as the type that a reader needs. FORMAT for a key of another type, naming
 * both. Keys that were asked for are marked, so that the others can be reported.
 */
#ifndef QKVI_FILES_GGUF_KEYS_H
#define QKVI_FILES_GGUF_KEYS_H

#include "files/gguf_container.h"

typedef struct qkvi_gguf_keys {
    const qkvi_gguf_file *file;
    bool *asked; /* [n_keys], or NULL */
    qkv_error *error;
} qkvi_gguf_keys;

/** Sets "FILE: …" as printf does; its value is the status. */
#define QKVI_GGUF_FAIL(keys, status, ...)                                                          \
    qkvi_file_fail((keys)->error, (status), (keys)->file->source.name, __VA_ARGS__)

/** Finds a key and marks it; NULL: there is none. */
const qkvi_gguf_key *qkvi_gguf_ask(const qkvi_gguf_keys *keys, const char *name);

/*
 * take_…: an absent key leaves *value as it was. An integer may have any integer type, and must fit
 * i64; a real may be f32, f64 or an integer.
 */
qkv_status qkvi_gguf_take_int(const qkvi_gguf_keys *keys, const char *name, int64_t *value);
/** An f32 becomes the shortest decimal that rounds to it: 1e-05, not 9.999999747378752e-06. */
qkv_status qkvi_gguf_take_real(const qkvi_gguf_keys *keys, const char *name, double *value);
qkv_status qkvi_gguf_take_bool(const qkvi_gguf_keys *keys, const char *name, bool *value);
/** A copy of a string, to be freed: valid UTF-8 without NUL. Absent: NULL. */
qkv_status qkvi_gguf_take_text(const qkvi_gguf_keys *keys, const char *name, char **value);

/** An array with elements of this kind. Absent: NULL. */
qkv_status qkvi_gguf_take_array(const qkvi_gguf_keys *keys, const char *name, qkvi_gguf_kind kind,
                                const qkvi_gguf_key **array);
/** Element i of an array of integers or bools; of an array of reals. */
qkv_status qkvi_gguf_int_of(const qkvi_gguf_keys *keys, const qkvi_gguf_key *key, uint64_t i,
                            int64_t *value);
double qkvi_gguf_real_of(const qkvi_gguf_file *file, const qkvi_gguf_key *key, uint64_t i);

/** The shortest decimal that rounds to this float. */
double qkvi_gguf_shortest(float value);

/** A value as text, cut to text_bytes; of a long array its beginning. */
void qkvi_gguf_show(const qkvi_gguf_file *file, const qkvi_gguf_key *key, char *text,
                    size_t text_bytes);

#endif
