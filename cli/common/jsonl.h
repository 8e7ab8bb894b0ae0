/*
 * Lines of JSON, each a string or an array of two. A line is data from anywhere: it is looked over
 * before it is parsed, so that it cannot make the parser use more memory than a few times its bytes.
 */
#ifndef QKV_CLI_COMMON_JSONL_H
#define QKV_CLI_COMMON_JSONL_H

#include <jansson.h>

#include "common/lines.h"

/* The texts of the line, which live as long as *root, which the caller releases; how many. */
qkv_status jsonl_parse(const struct text *line, struct text texts[2], int *n_texts, json_t **root,
                       qkv_error *error);

#endif
