/**
 * Walking an object of a JSON text by its bytes, for those who want to know where things are and
 * how they are spelled, which no parser of values tells. Values are skipped, not understood: what
 * is no JSON inside them is left to who parses them.
 */
#ifndef QKVI_STORE_JSON_WALK_H
#define QKVI_STORE_JSON_WALK_H

#include "model/base.h"

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

#endif
