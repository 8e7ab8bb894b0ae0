/* JSON as the tool writes it. */
#ifndef QKV_CLI_COMMON_JSON_H
#define QKV_CLI_COMMON_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <qkv/status.h>

/* A text, escaped if it is not UTF-8. */
json_t *json_text(const char *text);
json_t *json_bytes(const char *bytes, size_t n);

/* A number for JSON, which has no NaN and no infinity: null for those. */
json_t *json_number(double value);
/* An integer; null if it is negative, which means that there is none. */
json_t *json_count(int64_t n);

/* Arrays of n elements: of json_number, of integers, of json_text. */
json_t *json_doubles(int64_t n, const double *values);
json_t *json_floats(int64_t n, const float *values);
json_t *json_ids(int64_t n, const int32_t *ids);
json_t *json_ints(int64_t n, const int64_t *values);
json_t *json_texts(int64_t n, char *const *texts);

/*
 * Adds members to an object, a new one if it is NULL: json_set(NULL, "layer:i weight:n label:t",
 * …). Letters of values: i an int64_t, d an int, c an int64_t for json_count, n a double for
 * json_number, b an int for true or false, s a string, t a string for json_text, o a json_t * whose
 * reference is taken. A string or json_t * that is NULL is left out.
 * Returns NULL without memory.
 */
json_t *json_set(json_t *object, const char *members, ...);

/*
 * Writes JSON with 9 significant digits; characters that could steer a terminal are \uXXXX.
 * json_print adds a line feed, and takes the reference. False if it cannot be written.
 */
bool json_put(FILE *out, const json_t *value);
bool json_print(FILE *out, json_t *object);
/* json_print to standard output; returns an exit code. */
int json_emit(json_t *object);

/* Writes an object to a file, whole or not at all. Takes the reference. */
qkv_status json_write_file(const char *path, json_t *object, qkv_error *error);

#endif
