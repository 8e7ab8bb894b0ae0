#include "common/tokens.h"

#include <qkv/vision.h>

json_t *token_json(const qkv_tokenizer *tokenizer, int32_t id) {
    size_t n = 0;
    const char *token = qkv_tokenizer_token(tokenizer, id, &n);
    return json_bytes(token ? token : "", token ? n : 0);
}

json_t *tokens_json(const qkv_tokenizer *tokenizer, const qkv_encoding *input) {
    json_t *tokens = json_array();
    for (int64_t i = 0; i < input->n; i++) {
        char name[32];
        qkv_image_token(input, i, name);
        json_array_append_new(tokens,
                              *name ? json_string(name) : token_json(tokenizer, input->ids[i]));
    }
    return tokens;
}

void csv_token(struct csv *csv, const qkv_tokenizer *tokenizer, int32_t id) {
    json_t *token = token_json(tokenizer, id);
    csv->failed |= !token;
    if (token) csv_field(csv, json_string_value(token), json_string_length(token));
    json_decref(token);
}
