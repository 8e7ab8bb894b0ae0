/* Tokens in JSON and CSV. */
#ifndef QKV_CLI_COMMON_TOKENS_H
#define QKV_CLI_COMMON_TOKENS_H

#include "common/csv.h"
#include "common/json.h"
#include <qkv/tokenizer.h>

/*
 * A token as a string, and those of an encoding as an array. Escaped only if not UTF-8. Tokens of
 * an image are what qkv_image_token calls them, and need no tokenizer.
 */
json_t *token_json(const qkv_tokenizer *tokenizer, int32_t id);
json_t *tokens_json(const qkv_tokenizer *tokenizer, const qkv_encoding *input);
/* A token as a field. */
void csv_token(struct csv *csv, const qkv_tokenizer *tokenizer, int32_t id);

#endif
