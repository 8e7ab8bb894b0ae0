/**
 * Integers beyond 64 bits. Python writes them (transformers: a length without a limit is
 * 1000000000000000019884624838656), and jansson refuses a text that has one. Here they become reals of
 * about the same value, in as many bytes, so that a field that nobody needs stops nobody, and places in
 * messages stay right.
 */
#ifndef QKVI_STORE_JSON_NUMBERS_H
#define QKVI_STORE_JSON_NUMBERS_H

#include "model/base.h"

/** A copy of text with such reals, to be freed; NULL: text has no such integer. MEMORY. */
qkv_status qkvi_json_widen(const char *file, const char *text, size_t n, char **wide,
                           qkv_error *error);

#endif
