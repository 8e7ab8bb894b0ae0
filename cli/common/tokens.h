/* Tokens in what is printed and written. */
#ifndef QKV_CLI_COMMON_TOKENS_H
#define QKV_CLI_COMMON_TOKENS_H

#include "common/csv.h"
#include "common/json.h"
#include "common/session.h"

/* "tokens": the tokens of an encoding as a JSON array. */
json_t *text_tokens_json(const struct session *session, const qkv_encoding *input);

json_t *tokens_json(const qkv_tokenizer *tokenizer, const qkv_encoding *input);
json_t *token_json(const qkv_tokenizer *tokenizer, int32_t id);

/* A token of the vocabulary, or any text: escaped if it is not UTF-8. */
json_t *text_token_json(const struct session *session, int32_t id);
/* A token as JSON has it: escaped only if it is not UTF-8. */
void csv_token(struct csv *csv, const qkv_tokenizer *tokenizer, int32_t id);

#endif
